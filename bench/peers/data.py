"""The rows every peer gets: made once per run and read from a file, so that all environments see the same bits."""
from __future__ import annotations

import numpy as np

SPREAD = 0.01  # typical standard deviation of an agent around the common model


def length(k: int, megabytes: float) -> int:
    """Coordinates per row, an odd multiple of 64 bytes: rows a power of two apart would share cache sets."""
    lines = max(1, int(megabytes * 1e6 / (64 * k)))
    return 16 * (lines | 1)


def make(k: int, m: int, seed: int = 2022) -> np.ndarray:
    """A common model 0.3 N(0, 1) plus noise of each agent. The agents differ in their noise by up to 60 %, in shuffled
    order, so that the choice of Krum is clear: rounding does not decide it, and it is not the first row."""
    rng = np.random.default_rng(seed)
    centre = 0.3 * rng.standard_normal(m, dtype=np.float32)
    spread = (SPREAD * rng.permutation(np.linspace(0.8, 1.3, k))).astype(np.float32)
    if k > 1 and spread.argmin() == 0:
        spread = np.roll(spread, 1)
    x = np.empty((k, m), dtype=np.float32)
    for row, scale in zip(x, spread):
        rng.standard_normal(out=row, dtype=np.float32)
        row *= scale
        row += centre
    return x
