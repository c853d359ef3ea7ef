"""numpy: its own functions, and rules written with it."""
from __future__ import annotations

import numpy as np
import ref_numpy
from case import Array, Case, Peer

BLOCK = 4096  # columns per block of the Gram matrix: 32 rows take half a megabyte


def trimmed_sort(x: Array, f: int) -> Array:
    k = x.shape[0]
    return np.sort(x, axis=0)[f:k - f].mean(axis=0)


def trimmed_blocks(x: Array, f: int) -> Array:
    """Columns made contiguous block by block, then sorted: the fastest way found."""
    k, m = x.shape
    out = np.empty(m, dtype=x.dtype)
    for start in range(0, m, 1024):
        columns = np.ascontiguousarray(x[:, start:start + 1024].T)
        columns.sort(axis=1)
        out[start:start + 1024] = columns[:, f:k - f].mean(axis=1)
    return out


def median_blocks(x: Array) -> Array:
    m = x.shape[1]
    out = np.empty(m, dtype=x.dtype)
    for start in range(0, m, 1024):
        out[start:start + 1024] = ref_numpy.middle(np.ascontiguousarray(x[:, start:start + 1024].T))
    return out


def gram(x: Array) -> Array:
    """Inner products of the rows around their mean, blocks in float32 by BLAS, their sum in float64."""
    total = np.zeros((x.shape[0], x.shape[0]))
    for start in range(0, x.shape[1], BLOCK):
        block = x[:, start:start + BLOCK]
        block = block - block.mean(axis=0)
        total += block @ block.T
    return total


def krum(x: Array, f: int) -> Array:
    k = x.shape[0]
    g = gram(x)
    squares = g.diagonal()
    distances = squares[:, None] + squares[None, :] - 2 * g
    np.fill_diagonal(distances, 0)
    scores = np.sort(distances, axis=1)[:, 1:k - f - 1].sum(axis=1)
    return x[scores.argmin()]


def load(k: int, f: int, threads: int) -> Peer:
    del k, threads
    cases = [
        Case("mean", "mean", "np.mean", lambda x: np.mean(x, axis=0)),
        Case("median", "median", "np.median", lambda x: np.median(x, axis=0)),
        Case("median", "median", "np.sort in blocks (ours)", median_blocks),
        Case("trimmed", f"trimmed:f={f}", "np.sort, mean", lambda x: trimmed_sort(x, f)),
        Case("trimmed", f"trimmed:f={f}", "np.sort in blocks (ours)", lambda x: trimmed_blocks(x, f)),
        Case("krum", f"krum:f={f}", "Gram matrix by BLAS (ours)", lambda x: krum(x, f)),
        Case("ref", "ref", "REF tuned (ours)", ref_numpy.ref),
        Case("ref", "ref", "REF plain (ours)", ref_numpy.ref_plain, tolerance=1e-3),
    ]
    return Peer("numpy", np.__version__, cases)
