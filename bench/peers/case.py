"""What a peer offers: functions to time, each beside the Reef spec that computes the same thing."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

Array = np.ndarray


def same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Case:
    """One function of a peer. Only `run` is timed; `prepare` and `result` convert to and from the peer's types."""

    rule: str  # lines of one rule are compared with each other
    spec: str  # Reef's spec of the same definition
    name: str  # the function, as its users know it
    run: Callable[[Any], Any]
    prepare: Callable[[Array], Any] = same  # from the K x M array
    result: Callable[[Any], Array] = same  # to M numbers
    tolerance: float = 1e-4  # largest allowed difference to Reef, in scales of the data (data.SPREAD)
    ties: float = 0  # share of the coordinates that may differ by more, where float32 distances are equal by rounding


@dataclass(frozen=True)
class Peer:
    name: str
    version: str
    cases: list[Case]
