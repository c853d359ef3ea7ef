"""An adapter for strategies of flwr.server.strategy (the legacy API)."""
from __future__ import annotations

from logging import ERROR, INFO, WARNING
from os import PathLike
from typing import Any, Optional, Union

from flwr.common import Parameters
from flwr.common.logger import log
from flwr.server.strategy import Strategy

from .._federation import (Reply, check_folder, check_layouts, chosen_rule, distrusted, layout_of, memory_for, npy_array, try_to_combine,
                           weigh, write_csv)
from .._rule import Rule
from ._asked import Asked


class LegacyRobust(Strategy):
    """Any legacy strategy with its aggregate_fit replaced by a rule of Reef:

        strategy = LegacyRobust(FedAvg(fraction_fit=0.5), rule="vref")

    Sampling, evaluation and metrics stay with the strategy inside. Results that do not fit are left out and named, as in RobustFedAvg.
    `replies` has the last round. Clients are remembered by their id; in tables they are numbered by it where it is a number, else in the
    order in which they come.
    """

    def __init__(self, strategy: Any, rule: Union[None, str, Rule] = None, *, per_array: bool = False, weighted: bool = False,
                 weight_cap: float = 2.0, trust_csv: Union[None, str, "PathLike[str]"] = None, step: float = 0.0,
                 memory: Union[None, str, "PathLike[str]"] = None) -> None:
        self.strategy = strategy
        self.rule = chosen_rule(rule, per_array)
        self.per_array, self.weighted, self.weight_cap = per_array, weighted, weight_cap
        self.memory = memory_for(self.rule, per_array, step, memory)
        check_folder("trust_csv", trust_csv)
        self.trust_csv = trust_csv
        self.replies: list[Reply] = []
        self._numbers: dict[str, int] = {}
        self._asked = Asked()
        self._warned: set[int] = set()
        self._sent: Optional[dict[str, Any]] = None  # the model of the round

    def _number(self, name: str) -> int:
        return int(name) if name.isdecimal() else self._numbers.setdefault(name, len(self._numbers))

    def aggregate_fit(self, server_round: int, results: Any, failures: Any) -> tuple[Optional[Parameters], dict[str, Any]]:
        self.replies = [self._read(client, result) for client, result in results]
        for failure in failures:
            log(WARNING, "aggregate_fit: a client failed: %.200r", failure)
        if not self.replies and not self._asked.nodes:
            return None, {}
        check_layouts(self.replies, None if self._sent is None else layout_of(self._sent))
        weigh(self.replies, self.weighted, self.weight_cap)
        combined, reason = try_to_combine(self.replies, self.rule, self.per_array, server_round, self.memory, self._sent)
        if combined is not None and self.memory is not None and (failure := self.memory.keep()):
            log(ERROR, "aggregate_fit: %s", failure)
        if combined is None:
            log(ERROR, "aggregate_fit: nothing was aggregated, the model stays as it is: %s", reason)
        for reply in self.replies:
            if not reply.used:
                log(WARNING, "aggregate_fit: client %d is left out: %s", reply.node, reply.reason)
        for reply in distrusted(self.replies, 0.3, self._warned):
            log(WARNING, "aggregate_fit: client %s has a trust of %.2f: %s", reply.name, reply.trust, reply.why)
        log(INFO, "aggregate_fit: %d of %d results used", sum(reply.used for reply in self.replies), len(self.replies))
        resumed = self.memory is not None and self.memory.resumed
        if self.trust_csv is not None and (failure := write_csv(self.trust_csv, server_round, self.replies, resumed)):
            log(ERROR, "aggregate_fit: %s", failure)
        metrics: dict[str, Any] = {f"trust/{reply.node}": reply.trust for reply in self.replies}
        metrics["reef/aggregated"] = int(combined is not None)
        return (None if combined is None else _parameters(combined)), metrics

    def _read(self, client: Any, result: Any) -> Reply:
        name = str(getattr(client, "node_id", None) or getattr(client, "cid", client))
        reply = Reply(self._number(name), count=result.num_examples, name=name)
        try:
            if result.parameters.tensor_type != "numpy.ndarray":
                raise ValueError(f"tensors of type {result.parameters.tensor_type!r:.40}")
            reply.arrays = _arrays(result.parameters)
        except Exception as error:  # noqa: BLE001 - hostile bytes may raise anything
            reply.leave_out(f"it cannot be read: {error}")
        return reply

    # ---- the rest is the strategy's ----

    def initialize_parameters(self, client_manager: Any) -> Any:
        return self.strategy.initialize_parameters(client_manager)

    def configure_fit(self, server_round: int, parameters: Any, client_manager: Any) -> Any:
        try:
            self._sent = _arrays(parameters)
        except ValueError:  # tensors of another kind
            self._sent = None
        instructions = self.strategy.configure_fit(server_round, parameters, client_manager)
        if self.memory is not None and instructions:
            self.memory.learn_step(getattr(instructions[0][1], "config", {}))
        self._asked.check(self.rule, len(instructions), "configure_fit")
        return instructions

    def configure_evaluate(self, server_round: int, parameters: Any, client_manager: Any) -> Any:
        return self.strategy.configure_evaluate(server_round, parameters, client_manager)

    def aggregate_evaluate(self, server_round: int, results: Any, failures: Any) -> Any:
        return self.strategy.aggregate_evaluate(server_round, results, failures)

    def evaluate(self, server_round: int, parameters: Any) -> Any:
        return self.strategy.evaluate(server_round, parameters)


def _arrays(parameters: Parameters) -> dict[str, Any]:
    """By their place."""
    return {f"{place:06d}": npy_array(data) for place, data in enumerate(parameters.tensors)}


def _parameters(arrays: dict[str, Any]) -> Parameters:
    from flwr.common import ndarrays_to_parameters

    return ndarrays_to_parameters([arrays[name] for name in sorted(arrays)])
