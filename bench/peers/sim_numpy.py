"""The paper's simulation in numpy, repetitions vectorised: the baseline for agent-updates per second.

K = 32 agents on a complete graph, M = 10, LMS with adapt-then-combine and REF, one sample per step:
    e_k = u_k' (w_o - w) + v_k,      phi_k = w + mu u_k e_k,      w = REF over k of phi_k
All neighbourhoods are equal, so one aggregation per step serves all agents. Liars add 1000 to what they send.
Arrays are agent x coordinate x repetition; the aggregation sees M R columns.
"""
from __future__ import annotations

import math
import time
from typing import Callable

import numpy as np
import ref_numpy

AGENTS, LENGTH, LIARS = 32, 10, 3
STEP = np.float32(0.01)
NOISE = np.float32(0.1)  # standard deviation of v: variance 0.01
DELTA = np.float32(1000)

Aggregate = Callable[[np.ndarray], np.ndarray]  # K x (M R) -> M R


class Simulation:
    def __init__(self, repetitions: int, seed: int = 1) -> None:
        self.rng = np.random.default_rng(seed)
        self.repetitions = repetitions
        self.w = np.zeros((LENGTH, repetitions), dtype=np.float32)
        self.target = np.full((LENGTH, 1), 1 / math.sqrt(LENGTH), dtype=np.float32)
        self.u = np.empty((AGENTS, LENGTH, repetitions), dtype=np.float32)
        self.v = np.empty((AGENTS, repetitions), dtype=np.float32)

    def adapt(self) -> np.ndarray:
        """Draws new data and turns u into phi in place."""
        self.rng.standard_normal(out=self.u, dtype=np.float32)
        self.rng.standard_normal(out=self.v, dtype=np.float32)
        self.v *= NOISE
        self.v += np.einsum("kmr,mr->kr", self.u, self.target - self.w)
        self.v *= STEP
        self.u *= self.v[:, None, :]
        self.u += self.w
        self.u[:LIARS] += DELTA
        return self.u.reshape(AGENTS, -1)

    def advance(self, steps: int, aggregate: Aggregate) -> None:
        for _ in range(steps):
            self.w = aggregate(self.adapt()).reshape(LENGTH, self.repetitions)

    def deviation(self) -> float:
        """Mean square deviation from the target in dB."""
        return 10 * math.log10(float(((self.w - self.target) ** 2).sum(axis=0).mean()))


def rate(aggregate: Aggregate, repetitions: int, budget: float) -> dict[str, float]:
    """Agent-updates per second of processor time, best of three parts of one run of about `budget` seconds."""
    simulation = Simulation(repetitions)
    simulation.advance(3, aggregate)
    start = time.process_time()
    simulation.advance(10, aggregate)
    steps = max(10, int(budget / 3 * 10 / max(time.process_time() - start, 1e-6)))
    best = math.inf
    for _ in range(3):
        start = time.process_time()
        simulation.advance(steps, aggregate)
        best = min(best, time.process_time() - start)
    return {"updates_per_second": AGENTS * repetitions * steps / best, "msd_db": simulation.deviation(),
            "steps": 13 + 3 * steps}


def reference(phi: np.ndarray) -> np.ndarray:
    return ref_numpy.ref(phi)
