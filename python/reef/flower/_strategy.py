"""RobustFedAvg on Flower's message API."""
from __future__ import annotations

from logging import ERROR, INFO, WARNING
from os import PathLike
from typing import Any, Iterable, Optional, Union

from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.common.logger import log
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg

from .._federation import (Reply, Standing, check_folder, check_layouts, distrusted, layout_of, middle_metrics, npy_array,
                           chosen_rule, memory_for, try_to_combine, weigh, write_csv)
from .._rule import Rule
from ._asked import Asked


class _Nodes:
    """A grid that shows some nodes only, and remembers which."""

    def __init__(self, grid: Grid, standing: Standing, least: int) -> None:
        self._grid = grid
        self._standing = standing
        self._least = least
        self.all: list[int] = []
        self.shown: list[int] = []

    def get_node_ids(self) -> list[int]:
        self.all = list(self._grid.get_node_ids())
        self.shown = self._standing.allowed(self.all, self._least)
        return self.shown

    def __getattr__(self, name: str) -> Any:
        return getattr(self._grid, name)


class RobustFedAvg(FedAvg):
    """FedAvg with a robust rule of Reef at the server.

    rule           a spec ("mref", "ref", "nnm:f=3 | ref", ...) or a reef.Rule; by default "mref", which remembers the nodes, or with per_array
                   "ref"; no number of malicious nodes is needed. The seed of mref's sketch is drawn from the system, so that nobody can
                   know it; "mref:seed=1" makes runs repeatable
    per_array      aggregate every array on its own instead of the whole model at once
                   (rules that measure lengths, clip, arc and cclip, see the differences from the model that was sent in either case)
    weighted       False: all nodes count alike. True: by `weighted_by_key`, at most weight_cap times its median. The number of samples is
                   the node's own word, and malicious nodes that claim a large one gain by it
    step           rules that remember nodes (mref): the clients' learning rate, which sets how long they remember; 0: that of the train
                   config ("lr", "learning-rate" or "learning_rate"), if it has one, else unknown
    memory         file in which such a rule's memory is kept from round to round, and from which a restarted server resumes. Nodes are
                   remembered by their ids, whether they are asked or not; without a file the memory lasts as long as this object
    trust_csv      file that gets one line per node and round; a server that resumes from `memory` appends to it
    leave_out_rounds, leave_out_below   nodes whose trust stays below the bound for so many rounds in a row are not asked any more;
                   0: all are. At least min_available_nodes and more than half of the nodes stay.
    Everything else is that of FedAvg.

    A reply with an error, missing arrays, other shapes or types, NaN, or an absurd number of samples is left out and named in the log;
    it ends no round. A rule that cannot work with as many nodes as are asked in the first round (krum:f=3 with 5) raises before anybody
    trains; where too few replies come later, the model stays as it is, which is logged as an error. The aggregated MetricRecord has
    `trust/<node id>` (1: fair share, 0: ignored or left out), `reef/used`, `reef/left-out` and `reef/aggregated` (1, or 0: the model
    stayed) beside the medians of the clients' metrics (or what train_metrics_aggr_fn says).
    """

    def __init__(self, rule: Union[None, str, Rule] = None, *, per_array: bool = False, weighted: bool = False,
                 weight_cap: float = 2.0, trust_csv: Union[None, str, "PathLike[str]"] = None, leave_out_rounds: int = 0,
                 leave_out_below: float = 0.3, step: float = 0.0, memory: Union[None, str, "PathLike[str]"] = None,
                 **fedavg: Any) -> None:
        super().__init__(**fedavg)
        self.rule = chosen_rule(rule, per_array)
        if not weight_cap >= 1:
            raise ValueError(f"weight_cap={weight_cap}; it must be at least 1")
        if leave_out_rounds < 0:
            raise ValueError(f"leave_out_rounds={leave_out_rounds}; it must be at least 0")
        self.per_array, self.weighted, self.weight_cap = per_array, weighted, weight_cap
        check_folder("trust_csv", trust_csv)
        self.trust_csv = trust_csv
        self.standing = Standing(leave_out_below, leave_out_rounds)
        self.replies: list[Reply] = []  # of the last round, with trust and reasons
        self.memory = memory_for(self.rule, per_array, step, memory)
        self._warned: set[int] = set()
        self._sent: Optional[dict[str, Any]] = None  # the model of the round
        self._asked = Asked()
        self._own_train_metrics = fedavg.get("train_metrics_aggr_fn")
        self._own_evaluate_metrics = fedavg.get("evaluate_metrics_aggr_fn")

    def summary(self) -> None:
        """Logs the rule and the settings, then those of FedAvg."""
        log(INFO, "\t├──> Reef:")
        log(INFO, "\t│\t├──Rule: %s, %s", self.rule.spec, "per array" if self.per_array else "on the whole model")
        log(INFO, "\t│\t├──Weights: %s", f"by samples, at most {self.weight_cap:g} x their median" if self.weighted else "equal")
        bound = f"trust below {self.standing.below:g} for {self.standing.rounds} rounds" if self.standing.rounds else "never"
        log(INFO, "\t│\t└──Nodes are left out: %s", bound)
        super().summary()

    # ---- whom to ask ----

    def _nodes(self, grid: Grid, least: int) -> Any:
        return _Nodes(grid, self.standing, max(self.min_available_nodes, least)) if self.standing.rounds else grid

    def configure_train(self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid) -> Iterable[Message]:
        try:
            self._sent = {str(name): npy_array(array.data) for name, array in arrays.items()}
        except ValueError:  # arrays of another serialization: then the layout of most replies counts
            self._sent = None
        if self.memory is not None:
            self.memory.learn_step(config)
        nodes = self._nodes(grid, self.min_train_nodes)
        messages = list(super().configure_train(server_round, arrays, config, nodes))
        self._asked.check(self.rule, len(messages), "configure_train")
        if isinstance(nodes, _Nodes):
            self._say_who_is_asked(nodes)
        return messages

    def _say_who_is_asked(self, nodes: _Nodes) -> None:
        """Low trust does not always mean that a node is left out: enough nodes must stay."""
        gone, back = self.standing.changes(nodes.all, nodes.shown)
        for node in gone:
            log(WARNING, "configure_train: node %d is not asked any more: its trust stayed below %g for %d rounds", node,
                self.standing.below, self.standing.rounds)
        for node in back:
            log(WARNING, "configure_train: node %d is asked again, so few are left", node)

    def configure_evaluate(self, server_round: int, arrays: ArrayRecord, config: ConfigRecord,
                           grid: Grid) -> Iterable[Message]:
        return super().configure_evaluate(server_round, arrays, config, self._nodes(grid, self.min_evaluate_nodes))

    # ---- what they say ----

    def aggregate_train(self, server_round: int,
                        replies: Iterable[Message]) -> tuple[Optional[ArrayRecord], Optional[MetricRecord]]:
        """Combines what can be used; without anything usable the model stays as it is."""
        messages = list(replies)
        self.replies = [self._read(message) for message in messages]
        if not messages and not self._asked.nodes:
            return None, None
        check_layouts(self.replies, None if self._sent is None else layout_of(self._sent))
        weigh(self.replies, self.weighted, self.weight_cap)
        result = self._combine(server_round)
        self._tell(server_round, judged=result is not None)
        metrics = self._metrics(messages, self._own_train_metrics)
        for reply in self.replies:
            metrics[f"trust/{reply.node}"] = reply.trust
        used = sum(reply.used for reply in self.replies)
        metrics["reef/used"], metrics["reef/left-out"] = used, len(self.replies) - used
        metrics["reef/aggregated"] = int(result is not None)
        arrays = ArrayRecord({name: Array(value) for name, value in result.items()}) if result is not None else None
        return arrays, metrics

    def _combine(self, server_round: int) -> Optional[dict[str, Any]]:
        result, reason = try_to_combine(self.replies, self.rule, self.per_array, server_round, self.memory, self._sent)
        if result is not None and self.memory is not None and (failure := self.memory.keep()):
            log(ERROR, "aggregate_train: %s", failure)
        if result is None:
            log(ERROR, "aggregate_train: nothing was aggregated, the model stays as it is: %s", reason)
        return result

    def _read(self, message: Message) -> Reply:
        """One reply, or the reason why it cannot be used. Whatever goes wrong in here is the fault of its sender."""
        reply = Reply(int(message.metadata.src_node_id))
        if message.has_error():
            reply.leave_out(f"error {message.error.code}: {message.error.reason}")
            return reply
        try:
            records = list(message.content.array_records.values())
            if len(records) != 1:
                raise ValueError(f"{len(records)} ArrayRecords instead of one")
            if any(array.stype != "numpy.ndarray" for array in records[0].values()):
                raise ValueError("its arrays are not serialized by numpy")
            reply.arrays = {str(name): npy_array(array.data) for name, array in records[0].items()}
            metrics = list(message.content.metric_records.values())
            reply.count = metrics[0].get(self.weighted_by_key) if len(metrics) == 1 else None
        except Exception as error:  # noqa: BLE001 - hostile bytes may raise anything
            reply.leave_out(f"it cannot be read: {error}")
        return reply

    def _tell(self, server_round: int, judged: bool) -> None:
        """Log, file, and how nodes have fared."""
        for reply in self.replies:
            if not reply.used:
                log(WARNING, "aggregate_train: node %d is left out: %s", reply.node, reply.reason)
        for reply in distrusted(self.replies, self.standing.below, self._warned):
            log(WARNING, "aggregate_train: node %d has a trust of %.2f: %s", reply.node, reply.trust, reply.why)
        trusted = sorted(reply.trust for reply in self.replies if reply.used)
        if judged:
            self.standing.note(self.replies)
            log(INFO, "aggregate_train: %d of %d replies used, trust %.2f to %.2f", len(trusted), len(self.replies),
                trusted[0], trusted[-1])
        resumed = self.memory is not None and self.memory.resumed
        if self.trust_csv is not None and (failure := write_csv(self.trust_csv, server_round, self.replies, resumed)):
            log(ERROR, "aggregate_train: %s", failure)

    def _metrics(self, messages: list[Message], own: Any) -> MetricRecord:
        """Of the replies that were used: by the caller's function if it has one and can, else medians."""
        used = {id(message) for message, reply in zip(messages, self.replies) if reply.used}
        return self._summarise([message.content for message in messages if id(message) in used], own)

    def _summarise(self, contents: list[Any], own: Any) -> MetricRecord:
        if own is not None and contents:
            try:
                return MetricRecord(dict(own(contents, self.weighted_by_key)))
            except Exception as error:  # noqa: BLE001 - metrics of clients may be anything
                log(WARNING, "the metrics could not be aggregated as asked for, medians are taken: %s", error)
        records = [dict(record) for content in contents for record in content.metric_records.values()]
        return MetricRecord({**middle_metrics(records, self.weighted_by_key)})

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> Optional[MetricRecord]:
        """Medians of what the clients measured, or what evaluate_metrics_aggr_fn says; errors are logged and left out."""
        valid, _ = self._check_and_log_replies(replies, is_train=False, validate=False)
        return self._summarise([message.content for message in valid], self._own_evaluate_metrics) if valid else None


class FedREF(RobustFedAvg):
    """RobustFedAvg with REF: as robust as the median, nearly as efficient as the mean."""

    def __init__(self, efficiency: float = 0.95, **options: Any) -> None:
        super().__init__(Rule("ref", efficiency=efficiency), **options)


class FedMREF(RobustFedAvg):
    """RobustFedAvg with MREF, which remembers every node: it detects nodes that collude within the spread of the honest ones."""

    def __init__(self, **options: Any) -> None:
        super().__init__("mref", **options)


class FedVREF(RobustFedAvg):
    """RobustFedAvg with VREF: one robust weight per node, from its whole model. The better one against nodes that collude."""

    def __init__(self, **options: Any) -> None:
        super().__init__("vref", **options)
