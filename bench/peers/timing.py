"""Interleaved timing: in every repeat each task runs once, in random order, so that what else the machine does and what
the task before left in the caches hit all of them alike."""
from __future__ import annotations

import gc
import random
import time
from statistics import median
from typing import Callable


class Times:
    """Seconds per call: wall-clock time, and processor time of all threads of the process."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def add(self, task: Callable[[], object]) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        task()
        self.cpu.append(time.process_time() - cpu)
        self.wall.append(time.perf_counter() - wall)

    def summary(self, units: int) -> dict[str, float]:
        """Nanoseconds per unit."""
        scale = 1e9 / units
        return {"wall_min": min(self.wall) * scale, "wall_median": median(self.wall) * scale,
                "cpu_min": min(self.cpu) * scale, "cpu_median": median(self.cpu) * scale}


def interleave(tasks: list[Callable[[], object]], repeats: int) -> list[Times]:
    """Runs all tasks `repeats` times in turn, after one warm-up round. The result of a task is dropped inside its time:
    giving memory back is part of what a function that allocates its result costs."""
    times = [Times() for _ in tasks]
    for task in tasks:
        task()
    gc.collect()
    gc.disable()
    order = list(range(len(tasks)))
    shuffle = random.Random(1).shuffle
    try:
        for _ in range(repeats):
            shuffle(order)
            for i in order:
                times[i].add(tasks[i])
    finally:
        gc.enable()
    return times


def seconds(task: Callable[[], object]) -> float:
    """One call after a warm-up."""
    task()
    start = time.perf_counter()
    task()
    return time.perf_counter() - start
