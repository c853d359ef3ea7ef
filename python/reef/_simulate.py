"""Learning over a network with gradients written in Python: one call per step for all agents."""
from __future__ import annotations

import ctypes as c
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Optional, Union

import numpy as np

from . import _library
from ._checks import check_callable, malicious_flags, whole
from ._library import Handle, call, lib, spelled
from ._rows import is_tensor
from ._rule import Rule

Array = np.ndarray[Any, Any]
_COUNTS = ("rounds", "messages", "bytes", "gradients", "kept", "dropped", "silent", "late")


@dataclass(frozen=True)
class Step:
    """What a gradient is wanted for, beside the models: which agents (ascending), round and local step within it, samples per
    gradient (0: all), which agents should learn from wrong labels (None: nobody), and the number of the repetition."""

    agents: Array
    round: int
    step: int
    size: int
    flipped: Optional[Array]
    repetition: int = 0

    def generator(self, seed: int, agent: int) -> np.random.Generator:
        """Random numbers for one agent in this step: the same whenever, wherever and in whatever order they are drawn."""
        return np.random.Generator(np.random.Philox(np.random.SeedSequence(
            [seed, int(agent), self.repetition, self.round, self.step])))


@dataclass
class Simulation:
    """models    (K, M) at the end; with a server its model for all
    history   {"round": [...], "metric": [...]} as asked for with metric and every
    trust     (receivers, K) effective weights of the last round, NaN where nobody is heard; None if not asked for
    malicious     flags of the malicious agents
    counts    rounds, messages, bytes, gradients; combines without a usable message (kept), rows with NaN (dropped), ...
    """

    models: Array
    malicious: Array
    counts: dict[str, int]
    trust: Optional[Array] = None
    history: dict[str, list[Any]] = field(default_factory=lambda: {"round": [], "metric": []})

    @property
    def honest(self) -> Array:
        """Models of the honest agents."""
        found: Array = self.models[~self.malicious]
        return found


class _Run:
    """The objects of a run, in the order in which they must be destroyed."""

    def __init__(self, agents: int, start: Array, gradients: Any, samples: Optional[Array], setup: dict[str, Any]) -> None:
        context = _library.context(setup["threads"])
        seed = setup["seed"]
        self.callback = _library.GRADIENTS(gradients)
        self.problem = Handle("reef_problem_destroy", lib.reef_ffi_problem, agents, len(start), start.ctypes.data,
                              None if samples is None else samples.ctypes.data, self.callback, None, context=context)
        graph = links = attack = None
        if setup["graph"] is not None:
            weights = setup["weights"]
            graph = Handle("reef_graph_destroy", lib.reef_ffi_graph, spelled(setup["graph"], "the graph"),
                           None if weights is None else spelled(weights, "weights"), agents, seed, context=context)
            links = Handle("reef_links_destroy", lib.reef_ffi_links, spelled(setup["links"], "links"), graph.pointer, seed,
                           context=context, needs=[graph])
        if setup["attack"] is not None:
            attack = Handle("reef_attack_destroy", lib.reef_ffi_attack, spelled(setup["attack"], "the attack"), context=context)
        rule = setup["rule"]
        self.rule = Rule(rule, threads=setup["threads"]) if isinstance(rule, str) else rule
        self.malicious = setup["malicious"]
        flags = self.malicious.astype(np.uint8)
        self.handle = Handle("reef_run_destroy", lib.reef_ffi_run, self.problem.pointer, spelled(setup["strategy"], "the strategy"),
                             None if self.rule is None else self.rule.handle.pointer, links and links.pointer,
                             attack and attack.pointer, flags.ctypes.data, None, seed, int(setup["trust"]), context=context,
                             needs=[self.problem, links, attack, None if self.rule is None else self.rule.handle])
        self.agents, self.dimension = agents, len(start)

    def models(self) -> Array:
        result = np.empty((self.agents, self.dimension), np.float32)
        for agent in range(self.agents):
            address = lib.reef_run_model(self.handle.pointer, agent)
            c.memmove(result[agent].ctypes.data, address, 4 * self.dimension)
        return result

    def counts(self) -> dict[str, int]:
        numbers = (c.c_int64 * len(_COUNTS))()
        lib.reef_ffi_run_counts(self.handle.pointer, numbers)
        return dict(zip(_COUNTS, numbers))

    def trust(self, receivers: int) -> Array:
        result = np.full((receivers, self.agents), np.nan)
        senders, shares = np.empty(self.agents, np.int32), np.empty(self.agents)
        for receiver in range(receivers):
            count = lib.reef_run_trust(self.handle.pointer, receiver, senders.ctypes.data, shares.ctypes.data, self.agents)
            result[receiver, senders[:count]] = shares[:count]
        return result


class _Gradients:
    """The callback of the library on the caller's function. What that raises is kept, and raised when the round is over."""

    def __init__(self, function: Callable[[Array, Step], Any], dimension: int) -> None:
        self.function = function
        self.dimension = dimension
        self.error: Optional[BaseException] = None

    def __call__(self, _: Any, count: int, agents: int, models: int, gradients: int, flipped: Optional[int], round: int,
                 step: int, size: int) -> None:
        shape = count * self.dimension
        into = np.ctypeslib.as_array((c.c_float * shape).from_address(gradients)).reshape(count, self.dimension)
        into[:] = 0
        if self.error is not None:
            return
        try:
            at = np.ctypeslib.as_array((c.c_float * shape).from_address(models)).reshape(count, self.dimension)
            who = np.ctypeslib.as_array((c.c_int32 * count).from_address(agents)).copy()
            lies = None
            if flipped:
                lies = np.ctypeslib.as_array((c.c_uint8 * count).from_address(flipped)).astype(bool)
            found = self.function(at, Step(who, round, step, size, lies))
            found = found.detach().cpu().numpy() if is_tensor(found) else np.asarray(found)
            if found.shape != into.shape:
                raise ValueError(f"grad returned the shape {found.shape}; expected {into.shape}, one row per agent")
            into[:] = found
        except BaseException as error:
            self.error = error
            into[:] = 0


def simulate(grad: Callable[[Array, Step], Any], agents: int, start: Any, *, rounds: int = 100,
             strategy: str = "diffusion:mu=0.1", rule: Union[str, Rule, None] = "mref", graph: Optional[str] = None,
             weights: Optional[str] = None, links: str = "static", attack: Optional[str] = None,
             malicious: Union[int, Iterable[int]] = 0, samples: Any = None, seed: int = 1, trust: bool = False,
             metric: Optional[Callable[[Array], Any]] = None, every: int = 1, threads: Optional[int] = None) -> Simulation:
    """Runs diffusion or federated learning with a gradient of your own.

    grad      grad(models, step) -> gradients. models is (n, M) float32, one row per agent in step.agents; the result has the same
              shape, as an array or a CPU tensor. It is called once per step, for all agents together. models is only valid during the call.
    start     where all agents start: M numbers (an array of another shape is flattened), or M itself for zeros
    strategy  "diffusion:mu=0.1", "federated:mu=0.1,steps=5,fraction=0.5", ...: reef.kinds("strategy")
    rule, attack, graph, weights, links   strings as in experiment files; graph: who hears whom, "complete" by default
    malicious     how many agents (the last ones), a list of their numbers, or K flags; samples: how many each agent has, for weights=samples
    metric    metric(models of the honest agents), every `every` rounds and at the end, into history
    """
    agents, rounds, every = whole(agents, "agents", 1), whole(rounds, "rounds", 0), whole(every, "every", 1)
    seed = whole(seed, "seed", 0, (1 << 64) - 1)
    check_callable(grad, "grad")
    if metric is not None:
        check_callable(metric, "metric")
    first = _start(start)
    flags = malicious_flags(malicious, agents)
    callback = _Gradients(grad, len(first))
    server = strategy.split(":")[0] == "federated"
    setup = {"threads": threads, "seed": seed, "graph": graph or (None if server else "complete"), "weights": weights,
             "links": links, "attack": attack, "rule": rule, "strategy": strategy, "malicious": flags, "trust": trust}
    counts = None if samples is None else np.ascontiguousarray(samples, dtype=np.int64)
    if counts is not None and counts.shape != (agents,):
        raise ValueError(f"samples have the shape {counts.shape}; there are {agents} agents")
    run = _Run(agents, first, callback, counts, setup)
    result = Simulation(first, flags, {})
    for number in range(rounds):
        if metric is not None and number % every == 0:
            _note(result, run, metric, number)
        call(lib.reef_ffi_run_step, run.handle.pointer, 1)
        if callback.error is not None:
            raise callback.error
    if metric is not None:
        _note(result, run, metric, rounds)
    result.models, result.counts = run.models(), run.counts()
    result.trust = run.trust(1 if server else agents) if trust else None
    return result


def _start(start: Any) -> Array:
    """The model with which all agents begin."""
    if isinstance(start, (int, np.integer)):
        return np.zeros(whole(start, "start", 0), np.float32)
    with np.errstate(over="ignore"):  # refused below
        first = np.ascontiguousarray(start.detach().cpu().numpy() if is_tensor(start) else start, dtype=np.float32).reshape(-1)
    if not np.isfinite(first).all():
        raise ValueError("start contains NaN or Inf, or numbers that float32 cannot hold")
    return first


def _note(result: Simulation, run: _Run, metric: Callable[[Array], Any], number: int) -> None:
    result.history["round"].append(number)
    result.history["metric"].append(metric(run.models()[~result.malicious]))
