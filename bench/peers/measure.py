"""One environment, one number of threads: every function of the peers found there against Reef, in one process."""
from __future__ import annotations

import importlib
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Callable, Iterator

import numpy as np
import sim_numpy
from case import Array, Case, Peer
from data import SPREAD
from reef import Reef
from timing import Times, interleave, seconds

Record = dict[str, Any]
REPETITIONS = (16, 64, 256)  # of the simulation; the best one counts


@dataclass
class Setting:
    environment: str
    mode: str  # "1" or "all"
    threads: int
    repeats: int
    seconds: float  # the longest one call of a peer may take; beyond, it gets part of the coordinates
    malicious: int  # f of the rules that need one


@dataclass
class Task:
    """One function of a peer with its data, as many coordinates of them as the limit of time allows."""

    peer: Peer
    case: Case
    data: Any
    coordinates: int

    def __call__(self) -> Any:
        return self.case.run(self.data)


def fit(peer: Peer, case: Case, x: Array, limit: float) -> Task:
    """Tries the function on a small part to see how many coordinates it can take."""
    m = x.shape[1]
    small = min(m, max(4096, m // 64))
    data = case.prepare(np.ascontiguousarray(x[:, :small]))
    most = int(limit / max(seconds(lambda: case.run(data)), 1e-9) * small)
    if most >= m:
        return Task(peer, case, case.prepare(x), m)
    count = max(small, most // 16 * 16)
    return Task(peer, case, case.prepare(np.ascontiguousarray(x[:, :count])), count)


def differences(task: Task, x: Array, reef: Reef) -> Array:
    """To Reef on the coordinates of the task, in scales of the data."""
    part = np.ascontiguousarray(x[:, :task.coordinates])
    out = np.empty(task.coordinates, dtype=np.float32)
    reef.aggregator(task.case.spec).bind(part, out)()
    return np.abs(task.case.result(task()) - out) / SPREAD


def agreement(task: Task, x: Array, reef: Reef) -> Record:
    """NaN in a result counts as a difference."""
    error = differences(task, x, reef)
    other = int((~(error <= task.case.tolerance)).sum())
    if other == 0:
        return {"agrees": "same", "error": float(error.max()), "other": 0}
    agrees = "same but for ties" if other <= task.case.ties * error.size else "MISMATCH"
    return {"agrees": agrees, "error": float(error.max()), "other": other}


def record(setting: Setting, task: Task, times: Times, ours: dict[str, float], x: Array, reef: Reef) -> Record:
    return {"kind": "rule", "environment": setting.environment, "mode": setting.mode, "threads": setting.threads,
            "k": x.shape[0], "m": x.shape[1], "repeats": setting.repeats, "rule": task.case.rule,
            "spec": task.case.spec, "peer": task.peer.name, "version": task.peer.version, "function": task.case.name,
            "coordinates": task.coordinates, "ns": times.summary(task.coordinates), "reef_ns": ours,
            **agreement(task, x, reef)}


def measure_rule(setting: Setting, cases: list[tuple[Peer, Case]], x: Array, reef: Reef) -> Iterator[Record]:
    """All functions for one rule and the Reef specs they are compared with, interleaved."""
    tasks = [fit(peer, case, x, setting.seconds) for peer, case in cases]
    specs = sorted({task.case.spec for task in tasks})
    out = np.empty(x.shape[1], dtype=np.float32)
    calls: list[Callable[[], Any]] = [reef.aggregator(spec).bind(x, out) for spec in specs]
    times = interleave(calls + tasks, setting.repeats)
    ours = {spec: t.summary(x.shape[1]) for spec, t in zip(specs, times)}
    for task, t in zip(tasks, times[len(specs):]):
        yield record(setting, task, t, ours[task.case.spec], x, reef)


def load(name: str, k: int, setting: Setting) -> Peer | Record:
    """The peer, or a record that says why it is absent."""
    try:
        return importlib.import_module(f"peer_{name}").load(k, setting.malicious, setting.threads)
    except (ImportError, OSError, AttributeError) as error:
        reason = " ".join(str(error).split())
        return {"kind": "absent", "environment": setting.environment, "peer": name, "reason": reason}


def measure_peers(setting: Setting, names: list[str], x: Array, reef: Reef) -> Iterator[Record]:
    found = [load(name, x.shape[0], setting) for name in names]
    yield from (entry for entry in found if isinstance(entry, dict))
    pairs = [(peer, case) for peer in found if isinstance(peer, Peer) for case in peer.cases]
    pairs.sort(key=lambda pair: pair[1].rule)
    for _, group in groupby(pairs, key=lambda pair: pair[1].rule):
        yield from measure_rule(setting, list(group), x, reef)


def reef_aggregate(reef: Reef) -> sim_numpy.Aggregate:
    """Reef's ref as the aggregation of the numpy simulation, which hands over the same array in every step."""
    agg = reef.aggregator("ref")
    bound: list[Any] = []

    def aggregate(phi: Array) -> Array:
        if not bound or bound[0] != (phi.ctypes.data, phi.shape):
            bound[:] = [(phi.ctypes.data, phi.shape), agg.bind(phi, np.empty(phi.shape[1], dtype=np.float32))]
        return bound[1]()

    return aggregate


def measure_simulation(setting: Setting, budget: float, reef: Reef) -> Iterator[Record]:
    for name, make in (("numpy", lambda: sim_numpy.reference), ("numpy, REF by Reef", lambda: reef_aggregate(reef))):
        rates = {r: sim_numpy.rate(make(), r, budget) for r in REPETITIONS}
        best = max(rates, key=lambda r: rates[r]["updates_per_second"])
        yield {"kind": "simulation", "environment": setting.environment, "mode": setting.mode, "name": name,
               "version": np.__version__, "repetitions": best, **rates[best]}
