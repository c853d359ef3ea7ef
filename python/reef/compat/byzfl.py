"""The aggregators, pre-aggregators and attacks of ByzFL: same names, arguments, defaults and numbers, computed by Reef.

    from byzfl import TrMean, Krum, NNM              becomes
    from reef.compat.byzfl import TrMean, Krum, NNM

Vectors are a 2-D array or tensor, or a list of 1-D ones; what comes back is of the same kind. As in ByzFL, tensors become float32.
Differences, all on purpose: rows that hold NaN or Inf are left out by the aggregators instead of spoiling the result; Clipping and ARC
return new rows and leave the caller's alone; CenteredClipping takes a first `m` (ByzFL's own check refuses every one). Tensors on a
device are copied to memory, and the result goes back to the device.

Random ones (Bucketing, Gaussian, CAF, SMEA) draw from numpy's or PyTorch's global generator in the same order as ByzFL, so that a seed
gives the same numbers.
"""
from __future__ import annotations

import itertools
import math
import sys
from typing import Any, Optional

import numpy as np

from .._rows import is_array, is_tensor
from .._rule import Rule, State, aggregate

__all__ = ["ARC", "ALittleIsEnough", "Average", "Bucketing", "CAF", "CenteredClipping", "Clipping", "Gaussian",
           "GeometricMedian", "Inf", "InnerProductManipulation", "Krum", "LabelFlipping", "MDA", "Meamed", "Median",
           "Mimic", "MoNNA", "MultiKrum", "NNM", "SMEA", "SignFlipping", "TrMean"]

Array = np.ndarray[Any, Any]


class _Rows:
    """Vectors as numpy rows without a copy where that is possible, and the way back."""

    def __init__(self, vectors: Any) -> None:
        listed = isinstance(vectors, list)
        first = vectors[0] if listed and vectors else vectors
        if not is_array(first):
            raise TypeError("'vectors' should be a 'list' of ('np.ndarray' or 'torch.Tensor') or 'np.ndarray' or "
                            "'torch.Tensor'")
        self.device: Any = first.device if is_tensor(first) else None
        self.rows: Any = [_numpy(row) for row in vectors] if listed else _numpy(vectors)  # both are sequences of rows
        self.n = len(self.rows)

    @property
    def torch(self) -> bool:
        return self.device is not None

    def back(self, result: Array) -> Any:
        """A result as the caller's kind."""
        if not self.torch:
            return result
        return sys.modules["torch"].from_numpy(np.ascontiguousarray(result)).to(self.device)

    def aggregate(self, rule: str, weights: Any = None, state: Optional[State] = None) -> Any:
        return self.back(aggregate(self.rows, rule, weights, state=state, copy=True))

    def matrix(self) -> Array:
        """All rows in one array."""
        return self.rows if isinstance(self.rows, np.ndarray) else np.stack(self.rows)

    def need_majority(self, f: int) -> None:
        if 2 * f >= self.n:
            raise ValueError(f"Cannot tolerate 2f ≥ n. Got f={f}, n={self.n}")

    def permutation(self) -> Array:
        if self.torch:
            order: Array = sys.modules["torch"].randperm(self.n).numpy()
            return order
        return np.random.permutation(self.n)

    def normals(self, count: int) -> Array:
        if self.torch:
            drawn: Array = sys.modules["torch"].randn(count, device=self.device).cpu().numpy()
            return drawn
        return np.random.randn(count)


def _numpy(value: Any) -> Array:
    if is_tensor(value):
        array: Array = value.detach().cpu().float().numpy()
        return array
    return np.asarray(value)


_BLOCK = 1 << 16


def _gram(x: Array) -> Array:
    """Inner products of the rows around their mean, in blocks that stay in the cache; sums of blocks in float64."""
    total = np.zeros((len(x), len(x)))
    for start in range(0, x.shape[1], _BLOCK):
        block = x[:, start:start + _BLOCK]
        block = block - block.mean(axis=0)
        total += block @ block.T
    return total


def _distances2(gram: Array) -> Array:
    squares = np.diag(gram)
    distances: Array = np.maximum(squares[:, None] + squares[None, :] - 2 * gram, 0)
    return distances


def _norms(x: Array) -> Array:
    norms: Array = np.sqrt(np.einsum("ij,ij->i", x, x, dtype=np.float64))
    return norms


def _count(value: Any, name: str = "f") -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"{name} must be a non-negative integer")
    return value


def _number(value: Any, name: str, error: type[Exception] = TypeError, least: float = -math.inf) -> float:
    if not isinstance(value, float) or not value >= least:
        raise error(f"{name} must be a {'non-negative ' if least == 0 else ''}float")
    return value


# ---- aggregators ----


class Average:
    """Mean of the vectors."""

    def __call__(self, vectors: Any) -> Any:
        return _Rows(vectors).aggregate("mean")


class Median:
    """Coordinatewise median."""

    def __call__(self, vectors: Any) -> Any:
        return _Rows(vectors).aggregate("median")


class _WithLiars:
    """What takes the number f of liars."""

    rule = ""

    def __init__(self, f: int = 0) -> None:
        self.f = _count(f)

    def __call__(self, vectors: Any) -> Any:
        rows = _Rows(vectors)
        rows.need_majority(self.f)
        return rows.aggregate(self.rule.format(f=self.f))


class TrMean(_WithLiars):
    """Mean without the f smallest and f largest values of each coordinate."""

    rule = "trimmed:f={f}"


class Krum(_WithLiars):
    """The vector with the smallest mean squared distance to its n - f - 1 nearest others."""

    rule = "krum:f={f},dialect=byzfl"


class MultiKrum(_WithLiars):
    """Mean of the n - f vectors with the smallest Krum scores."""

    rule = "multikrum:f={f},dialect=byzfl"


class MDA(_WithLiars):
    """Mean of the n - f vectors with the smallest diameter."""

    rule = "mda:f={f}"


class Meamed(_WithLiars):
    """Mean of the n - f values nearest to the median, in each coordinate."""

    rule = "meamed:f={f}"


class GeometricMedian:
    """T smoothed Weiszfeld steps from 0."""

    def __init__(self, nu: float = 0.1, T: int = 3) -> None:
        self.nu = _number(nu, "nu")
        self.T = _count(T, "T")

    def __call__(self, vectors: Any) -> Any:
        rows = _Rows(vectors)
        if self.T == 0:
            return rows.back(np.zeros_like(rows.rows[0]))
        return rows.aggregate(f"geomed:dialect=byzfl,nu={self.nu!r},steps={self.T}")


class CenteredClipping:
    """L steps of centered clipping from m, which is remembered from call to call."""

    def __init__(self, m: Any = None, L: int = 1, tau: float = 100.0) -> None:
        self.m = m
        self.L = _count(L, "L")
        self.tau = _number(tau, "tau", ValueError, 0)

    def __call__(self, vectors: Any) -> Any:
        rows = _Rows(vectors)
        centre = np.zeros_like(rows.rows[0]) if self.m is None else _numpy(self.m)
        rule = Rule("cclip", tau=self.tau)
        for _ in range(self.L):
            centre = rule(rows.rows, copy=True, state=State(centre=centre))
        self.m = rows.back(centre)
        return self.m


class MoNNA:
    """Mean of the n - f vectors nearest to vector idx."""

    def __init__(self, f: int = 0, idx: int = 0) -> None:
        self.f = _count(f)
        self.idx = _count(idx, "idx")

    def __call__(self, vectors: Any) -> Any:
        rows = _Rows(vectors)
        rows.need_majority(self.f)
        if self.idx >= rows.n:
            raise ValueError(f"idx must be smaller than n, but got idx={self.idx} and n={rows.n}")
        trusted = rows.rows[self.idx]
        distance = np.array([np.linalg.norm(row - trusted) for row in rows.rows])
        nearest = np.argpartition(distance, rows.n - self.f - 1)[:rows.n - self.f]
        return rows.aggregate("mean", weights=np.isin(np.arange(rows.n), nearest).astype(float))


class _Spectral(_WithLiars):
    """One step of the power iteration from a random vector, in the space of the rows: everything but the first product follows from
    the inner products of the rows."""

    @staticmethod
    def _step(gram: Array, product: Array, c: Array) -> tuple[float, Array]:
        """Rows d_i with inner products `gram` and weights c: w = sum_i c_i (d_i v) d_i / sum c, where product_i = d_i v. Returns |w|
        and (d_i w / |w|)^2."""
        a = c * product / c.sum()
        along = gram @ a
        length = math.sqrt(max(float(a @ along), 0))
        return length, (along / length) ** 2

    @staticmethod
    def _start(rows: _Rows, x: Array) -> Array:
        """x v for a random direction v."""
        v = rows.normals(x.shape[1])
        product: Array = x @ (v / np.linalg.norm(v)).astype(x.dtype)
        return product.astype(np.float64)


class CAF(_Spectral):
    """Covariance-bound agnostic filter: weights shrink along the direction of the largest variance."""

    def __call__(self, vectors: Any) -> Any:
        rows = _Rows(vectors)
        rows.need_majority(self.f)
        x = rows.matrix()
        gram = _gram(x)
        c = np.ones(rows.n)
        least, best = math.inf, c
        while c.sum() > rows.n - 2 * self.f:
            share = c / c.sum()
            mixed = gram @ share
            around = gram - mixed[:, None] - mixed[None, :] + share @ mixed
            product = self._start(rows, x)
            value, tau = self._step(around, product - share @ product, c)
            if value < least:
                least, best = value, c
            c = c * (1 - tau / tau.max())
        result = rows.aggregate("mean", weights=best)
        return result if rows.torch else result.astype(np.float64, copy=False)  # as ByzFL, whose weights are float64


class SMEA(_Spectral):
    """Mean of the n - f vectors whose covariance has the smallest largest eigenvalue, by one step of the power iteration each."""

    def __call__(self, vectors: Any) -> Any:
        rows = _Rows(vectors)
        rows.need_majority(self.f)
        x = rows.matrix()
        gram = _gram(x)
        least, best = math.inf, np.arange(rows.n)
        for subset in itertools.combinations(range(rows.n), rows.n - self.f):
            chosen = np.array(subset)
            part = gram[np.ix_(chosen, chosen)]
            mean = part.mean(axis=0)
            around = part - mean[:, None] - mean[None, :] + mean.mean()
            product = self._start(rows, x[chosen])
            ones = np.ones(len(chosen))
            value = self._step(around, product - product.mean(), ones)[0]
            if value < least:
                least, best = value, chosen
        return rows.aggregate("mean", weights=np.isin(np.arange(rows.n), best).astype(float))


# ---- pre-aggregators ----


class NNM:
    """Each vector becomes the mean of the n - f nearest to it, itself among them."""

    def __init__(self, f: int = 0) -> None:
        self.f = _count(f)

    def __call__(self, vectors: Any) -> Any:
        rows = _Rows(vectors)
        if self.f >= rows.n:
            raise ValueError(f"f must be smaller than len(vectors), but got f={self.f} and len(vectors)={rows.n}")
        x = rows.matrix()
        keep = rows.n - self.f
        nearest = np.argpartition(_distances2(_gram(x)), keep - 1, axis=1)[:, :keep]
        mixing = np.zeros((rows.n, rows.n), x.dtype if x.dtype.kind == "f" else np.float64)
        np.put_along_axis(mixing, nearest, 1 / keep, axis=1)
        return rows.back(mixing @ x)


class Bucketing:
    """Means of random groups of s vectors."""

    def __init__(self, s: int = 1) -> None:
        if not isinstance(s, int) or s <= 0:
            raise ValueError("s must be a positive integer")
        self.s = s

    def __call__(self, vectors: Any) -> Any:
        rows = _Rows(vectors)
        order = rows.permutation()
        groups = [order[start:start + self.s] for start in range(0, rows.n, self.s)]
        return rows.back(np.stack([np.mean([rows.rows[i] for i in group], axis=0) for group in groups]))


def _shortened(x: Array, norms: Array, most: float) -> Array:
    factors = np.minimum(1, most / np.maximum(norms, np.finfo(float).tiny))
    result: Array = (x * factors[:, None]).astype(x.dtype if x.dtype.kind == "f" else float, copy=False)
    return result


class Clipping:
    """Vectors longer than c are shortened to c."""

    def __init__(self, c: float = 2.0) -> None:
        self.c = _number(c, "c", ValueError, 0)

    def __call__(self, vectors: Any) -> Any:
        rows = _Rows(vectors)
        x = rows.matrix()
        return rows.back(_shortened(x, _norms(x), self.c))


class ARC:
    """The 2 f (n - f) / n longest vectors are shortened to the length of the longest of the others."""

    def __init__(self, f: int = 0) -> None:
        self.f = _count(f)

    def __call__(self, vectors: Any) -> Any:
        rows = _Rows(vectors)
        if self.f > rows.n:
            raise ValueError(f"f must be smaller than len(vectors)+1, but got f={self.f} and len(vectors)={rows.n}")
        x = rows.matrix()
        norms = _norms(x)
        left = rows.n - int((2 * self.f / rows.n) * (rows.n - self.f))
        return rows.back(_shortened(x, norms, float(np.sort(norms)[left - 1])))


# ---- attacks ----


class SignFlipping:
    """Minus the mean of the honest vectors."""

    def __call__(self, honest_vectors: Any) -> Any:
        return -_Rows(honest_vectors).aggregate("mean")


class InnerProductManipulation:
    """Minus tau times the mean of the honest vectors."""

    def __init__(self, tau: float = 2.0) -> None:
        self.tau = _number(tau, "tau")

    def __call__(self, honest_vectors: Any) -> Any:
        return -self.tau * _Rows(honest_vectors).aggregate("mean")


class ALittleIsEnough:
    """Mean plus tau standard deviations of the honest vectors, in each coordinate."""

    def __init__(self, tau: float = 1.5) -> None:
        self.tau = _number(tau, "tau")

    def __call__(self, honest_vectors: Any) -> Any:
        rows = _Rows(honest_vectors)
        x = rows.matrix()
        return rows.back(x.mean(axis=0) + (self.tau * x.std(axis=0, ddof=1)).astype(x.dtype if x.dtype.kind == "f" else float))


class Mimic:
    """The honest vector number epsilon."""

    def __init__(self, epsilon: int = 0) -> None:
        self.epsilon = _count(epsilon, "epsilon")

    def __call__(self, honest_vectors: Any) -> Any:
        if self.epsilon >= len(honest_vectors):
            raise ValueError(f"epsilon must be smaller than len(honest_vectors), but got epsilon={self.epsilon} and "
                             f"len(honest_vectors)={len(honest_vectors)}")
        return honest_vectors[self.epsilon]


class Inf:
    """Infinities, in float64 as in ByzFL."""

    def __call__(self, honest_vectors: Any) -> Any:
        rows = _Rows(honest_vectors)
        return rows.back(np.full(rows.rows[0].shape, np.inf))


class Gaussian:
    """Normal numbers with mean mu and standard deviation sigma."""

    def __init__(self, mu: float = 0.0, sigma: float = 1.0) -> None:
        self.mu = _number(mu, "mu")
        self.sigma = _number(sigma, "sigma", ValueError, 0)

    def __call__(self, honest_vectors: Any) -> Any:
        rows = _Rows(honest_vectors)
        size = len(rows.rows[0])
        if rows.torch:
            return sys.modules["torch"].randn(size) * self.sigma + self.mu
        return np.random.normal(loc=self.mu, scale=self.sigma, size=size)


class LabelFlipping(Average):
    """The mean: the lie is in the data the vectors were made from."""
