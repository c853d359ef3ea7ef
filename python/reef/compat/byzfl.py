"""The aggregators, pre-aggregators and attacks of ByzFL: same names, arguments, defaults and numbers, computed by Reef.

    from byzfl import TrMean, Krum, NNM              becomes
    from reef.compat.byzfl import TrMean, Krum, NNM

Vectors are a 2-D array or tensor, or a list of 1-D ones; what comes back is of the same kind. As in ByzFL, tensors become float32, and what
comes of tensors that require a gradient carries one. Differences, all on purpose: vectors that hold NaN or Inf are left out by the
aggregators, and f is reduced by their number; the pre-aggregators turn them into NaN and nothing else; Meamed treats ties equally; Clipping
and ARC return new rows and leave the caller's alone; CenteredClipping takes a first `m` (ByzFL's own check refuses every one). Tensors on
a device are copied to memory, and the result goes back to the device.

Random ones (Bucketing, Gaussian, CAF, SMEA) draw from numpy's or PyTorch's global generator in the same order as ByzFL, so that a seed
gives the same numbers.
"""
from __future__ import annotations

import ctypes
import itertools
import math
import sys
from typing import Any, Callable, Optional

import numpy as np

from .. import _library
from .._rows import is_array, is_tensor
from .._rule import Rule, State, aggregate

__all__ = ["ARC", "ALittleIsEnough", "Average", "Bucketing", "CAF", "CenteredClipping", "Clipping", "Gaussian",
           "GeometricMedian", "Inf", "InnerProductManipulation", "Krum", "LabelFlipping", "MDA", "Meamed", "Median",
           "MREF", "Mimic", "MoNNA", "MultiKrum", "NNM", "Optimal_ALittleIsEnough", "Optimal_InnerProductManipulation", "SMEA",
           "SignFlipping", "TrMean"]

Array = np.ndarray[Any, Any]
Formula = Callable[[Any], Any]  # of the tensor of vectors: what PyTorch is to differentiate


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
        self._vectors = vectors

    @property
    def torch(self) -> bool:
        return self.device is not None

    @property
    def carries_gradient(self) -> bool:
        """As PyTorch has it: some vector requires one, and nobody has said no_grad."""
        if not self.torch or not sys.modules["torch"].is_grad_enabled():
            return False
        given = self._vectors
        return any(row.requires_grad for row in given) if isinstance(given, list) else bool(given.requires_grad)

    def constant(self, result: Array) -> Any:
        """A result that does not depend on the vectors, as the caller's kind."""
        return sys.modules["torch"].from_numpy(np.ascontiguousarray(result)).to(self.device) if self.torch else result

    def back(self, result: Array, formula: Formula) -> Any:
        """A result as the caller's kind. The formula gives its gradient, where one is asked for."""
        found = self.constant(result)
        if not self.carries_gradient:
            return found
        torch = sys.modules["torch"]
        given = self._vectors
        x = (torch.stack(given) if isinstance(given, list) else given).float()
        good = torch.from_numpy(self.finite()).to(self.device)
        made = formula(torch.where(good[:, None], x, torch.zeros_like(x))) + 0
        made.data = found
        return made

    def aggregate(self, rule: str, weights: Any = None, formula: Optional[Formula] = None) -> Any:
        """By a rule. Without a formula the gradient is that of the mean with the weights that the rule gave: what it is for rules that
        select or average."""
        if formula is not None or not self.carries_gradient:
            return self.back(aggregate(self.rows, rule, weights, copy=True), formula or _no_formula)
        result, report = aggregate(self.rows, rule, weights, shares=True, copy=True)

        def weighted(x: Any) -> Any:
            return (sys.modules["torch"].from_numpy(report.shares).to(x) * x).sum(0)

        return self.back(result, weighted)

    def matrix(self) -> Array:
        """All rows in one array of floating-point numbers."""
        x = self.rows if isinstance(self.rows, np.ndarray) else np.stack(self.rows)
        return x if x.dtype in (np.float32, np.float64) else x.astype(np.float64)

    def finite(self) -> Array:
        """Which rows hold no NaN or Inf."""
        return np.array([bool(np.isfinite(row).all()) for row in self.rows])

    def gram(self) -> Array:
        """Inner products of the rows around their coordinatewise median, by the library: no malicious vector spoils those of the others. NaN for rows
        with NaN or Inf; an infinite diagonal for rows whose square overflows."""
        x = np.ascontiguousarray(self.matrix())
        gram = np.empty((self.n, self.n))
        pointers = (ctypes.c_void_p * self.n)(*(x.ctypes.data + row * x.strides[0] for row in range(self.n)))
        _library.call(_library.lib.reef_ffi_gram, _library.context().pointer, self.n, x.shape[1],
                      _library.F64 if x.dtype == np.float64 else _library.F32, pointers, gram.ctypes.data)
        return gram

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


def _no_formula(x: Any) -> Any:
    raise AssertionError("no gradient was asked for")


def _distances2(gram: Array) -> Array:
    """Squared distances; infinite to rows that are left out or too far away, -1 of a row to itself."""
    squares = np.diag(gram)
    with np.errstate(invalid="ignore"):
        distances: Array = np.maximum(squares[:, None] + squares[None, :] - 2 * gram, 0)
    good = np.isfinite(squares)
    distances[~(good[:, None] & good[None, :])] = math.inf
    np.fill_diagonal(distances, -1)
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
    """Aggregators that take the number f of malicious vectors."""

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
            return rows.constant(np.zeros_like(rows.rows[0]))
        good = rows.finite()

        def steps(x: Any) -> Any:
            z, x = 0 * x[0], x[good]
            for _ in range(self.T):
                share = 1 / (x - z).norm(dim=1).clamp(min=self.nu)
                z = (x * share[:, None]).sum(0) / share.sum()
            return z

        return rows.aggregate(f"geomed:dialect=byzfl,nu={self.nu!r},steps={self.T}", formula=steps)


class CenteredClipping:
    """L steps of centered clipping from m, which is remembered from call to call."""

    def __init__(self, m: Any = None, L: int = 1, tau: float = 100.0) -> None:
        self.m = m
        self.L = _count(L, "L")
        self.tau = _number(tau, "tau", ValueError, 0)

    def __call__(self, vectors: Any) -> Any:
        rows = _Rows(vectors)
        first = self.m
        centre = np.zeros_like(rows.matrix()[0]) if first is None else _numpy(first)
        rule = Rule("cclip", tau=self.tau)
        for _ in range(self.L):
            centre, report = rule(rows.rows, copy=True, state=State(centre=centre), report=True)
            used = report.trust[[row for row in range(rows.n) if row not in report.dropped]]
            if report.centre_share <= 0 and (used == used[0]).all():  # nothing was clipped: the mean, to the last bit
                centre = aggregate(rows.rows, "mean", copy=True)
        good = rows.finite()

        def steps(x: Any) -> Any:
            v, x = 0 * x[0] if first is None else first, x[good]
            for _ in range(self.L):
                away = x - v
                v = v + (away * (self.tau / away.norm(dim=1)).clamp(max=1)[:, None]).mean(0)
            return v

        self.m = rows.back(centre, steps) if self.L else rows.constant(centre)
        return self.m


class MREF:
    """Reef's rule that remembers its senders, which ByzFL has no counterpart of: needs no f. The memory is in the object, and senders are told
    apart by their position among the vectors, whose number must stay the same. step: step size of the training, if it is known; further
    arguments are parameters of the rule. `report` is that of the last call, `state` the memory."""

    def __init__(self, step: float = 0, **parameters: Any) -> None:
        self._rule = Rule("mref", **parameters)
        self._step = _number(float(step), "step", ValueError, 0)
        self.state = State()
        self.report: Any = None

    def __call__(self, vectors: Any) -> Any:
        rows = _Rows(vectors)
        result, self.report = self._rule(rows.rows, copy=True, state=self.state, report=True, step=self._step,
                                         shares=rows.carries_gradient)
        shares = self.report.shares

        def weighted(x: Any) -> Any:
            return (sys.modules["torch"].from_numpy(shares).to(x) * x).sum(0)

        return rows.back(result, weighted)


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
        distances = _distances2(rows.gram())[self.idx]
        if not np.isfinite(rows.rows[self.idx]).all():
            raise ValueError(f"vector idx={self.idx}, which the others are compared with, contains NaN or Inf")
        nearest = np.argsort(distances, kind="stable")[:rows.n - self.f]
        return rows.aggregate("mean", weights=np.isin(np.arange(rows.n), nearest).astype(float))


class _Spectral(_WithLiars):
    """One step of the power iteration from a random vector, in the space of the rows: everything but the first product follows from
    the inner products of the rows. Rows that are left out, or too far away for a square, are not among them."""

    def _good(self, rows: _Rows) -> tuple[Array, Array, Array, int]:
        """Which rows, those rows, their inner products, and how many malicious ones may be left among them."""
        gram = rows.gram()
        good = np.flatnonzero(np.isfinite(np.diag(gram)))
        return good, rows.matrix()[good], gram[np.ix_(good, good)], max(self.f - (rows.n - len(good)), 0)

    @staticmethod
    def _step(gram: Array, product: Array, c: Array) -> tuple[float, Array]:
        """Rows d_i with inner products `gram` and weights c: w = sum_i c_i (d_i v) d_i / sum c, where product_i = d_i v. Returns |w|
        and (d_i w / |w|)^2."""
        a = c * product / c.sum()
        along = gram @ a
        length = math.sqrt(max(float(a @ along), 0))
        return length, (along / length) ** 2 if length > 0 else np.zeros_like(along)

    @staticmethod
    def _start(rows: _Rows, x: Array) -> Array:
        """x v for a random direction v."""
        v = rows.normals(x.shape[1])
        v = (v / np.linalg.norm(v)).astype(x.dtype).astype(np.float64)
        return np.array([row.astype(np.float64) @ v for row in x])  # in float64: lies would drown the others' differences


class CAF(_Spectral):
    """Covariance-bound agnostic filter: weights shrink along the direction of the largest variance. Where a malicious vector is so large that ByzFL's
    loop stands still, it goes by the rows that still have weight."""

    def __call__(self, vectors: Any) -> Any:
        rows = _Rows(vectors)
        rows.need_majority(self.f)
        good, x, gram, f = self._good(rows)
        n = len(good)
        c = np.ones(n)
        least, best = math.inf, c
        while c.sum() > n - 2 * f:
            share = c / c.sum()
            mixed = gram @ share
            around = gram - mixed[:, None] - mixed[None, :] + share @ mixed
            product = self._start(rows, x)
            value, tau = self._step(around, product - share @ product, c)
            if value < least:
                least, best = value, c
            before = c.sum()
            fewer = c * (1 - tau / max(tau.max(), np.finfo(float).tiny))
            if not fewer.sum() < before * (1 - 1e-4):  # held up by a row that has no weight any more
                fewer = c * (1 - np.minimum(tau / max(tau[c > 0].max(), np.finfo(float).tiny), 1))
            if not (fewer < c).any():  # all that have weight are one point; the sum does not show weights of 1e-17, which a lie of 1e37 does
                break
            c = fewer
        weights = np.zeros(rows.n)
        weights[good] = best
        result = rows.aggregate("mean", weights=weights)
        return result if rows.torch else result.astype(np.float64, copy=False)  # as ByzFL, whose weights are float64


class SMEA(_Spectral):
    """Mean of the n - f vectors whose covariance has the smallest largest eigenvalue, by one step of the power iteration each."""

    def __call__(self, vectors: Any) -> Any:
        rows = _Rows(vectors)
        rows.need_majority(self.f)
        good, x, gram, f = self._good(rows)
        least, best = math.inf, np.arange(len(good))
        for subset in itertools.combinations(range(len(good)), len(good) - f):
            chosen = np.array(subset)
            part = gram[np.ix_(chosen, chosen)]
            mean = part.mean(axis=0)
            around = part - mean[:, None] - mean[None, :] + mean.mean()
            product = self._start(rows, x[chosen])
            ones = np.ones(len(chosen))
            value = self._step(around, product - product.mean(), ones)[0]
            if value < least:
                least, best = value, chosen
        return rows.aggregate("mean", weights=np.isin(np.arange(rows.n), good[best]).astype(float))


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
        good = rows.finite()
        nearest = np.argsort(_distances2(rows.gram()), axis=1, kind="stable")[:, :rows.n - self.f]
        mixing = np.zeros((rows.n, rows.n), x.dtype)
        np.put_along_axis(mixing, nearest, 1, axis=1)
        mixing *= good  # if there are more bad rows than f, there are fewer neighbours
        mixing /= np.maximum(mixing.sum(axis=1, keepdims=True), 1)
        mixed = mixing @ np.where(good[:, None], x, 0)
        mixed[~good] = math.nan
        return rows.back(mixed, lambda tensor: sys.modules["torch"].from_numpy(mixing).to(tensor) @ tensor)


class Bucketing:
    """Means of random groups of s vectors; those with NaN or Inf are left out of their group."""

    def __init__(self, s: int = 1) -> None:
        if not isinstance(s, int) or s <= 0:
            raise ValueError("s must be a positive integer")
        self.s = s

    def __call__(self, vectors: Any) -> Any:
        rows = _Rows(vectors)
        good = rows.finite()
        order = rows.permutation()
        groups = [order[start:start + self.s] for start in range(0, rows.n, self.s)]
        groups = [group[good[group]] if good[group].any() else group for group in groups]
        means = np.stack([np.mean([rows.rows[i] for i in group], axis=0) for group in groups])
        return rows.back(means, lambda x: sys.modules["torch"].stack([x[group].mean(0) for group in groups]))


def _shortened(rows: _Rows, x: Array, norms: Array, most: float) -> Any:
    """Rows no longer than `most`; NaN for those with NaN or Inf."""
    with np.errstate(invalid="ignore"):
        factors = np.minimum(1, most / np.maximum(norms, np.finfo(float).tiny))
        result = (x * factors[:, None]).astype(x.dtype, copy=False)
    result[~rows.finite()] = math.nan

    def formula(tensor: Any) -> Any:  # of a bound that is given, or the length of one of the rows
        lengths = tensor.norm(dim=1)
        bound = lengths[int(np.flatnonzero(norms == most)[0])] if (norms == most).any() else most
        return tensor * (bound / lengths.clamp(min=1e-30)).clamp(max=1)[:, None]

    return rows.back(result, formula)


class Clipping:
    """Vectors longer than c are shortened to c."""

    def __init__(self, c: float = 2.0) -> None:
        self.c = _number(c, "c", ValueError, 0)

    def __call__(self, vectors: Any) -> Any:
        rows = _Rows(vectors)
        x = rows.matrix()
        return _shortened(rows, x, _norms(x), self.c)


class ARC:
    """The 2 f (n - f) / n longest vectors are shortened to the length of the longest of the others."""

    def __init__(self, f: int = 0) -> None:
        self.f = _count(f)

    def __call__(self, vectors: Any) -> Any:
        rows = _Rows(vectors)
        if self.f > rows.n:
            raise ValueError(f"f must be smaller than len(vectors)+1, but got f={self.f} and len(vectors)={rows.n}")
        x = rows.matrix()
        norms = np.nan_to_num(_norms(x), nan=math.inf, posinf=math.inf)
        left = rows.n - int((2 * self.f / rows.n) * (rows.n - self.f))
        return _shortened(rows, x, norms, float(np.sort(norms)[left - 1]))


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
        return rows.back(x.mean(axis=0) + (self.tau * x.std(axis=0, ddof=1)).astype(x.dtype),
                         lambda tensor: tensor.mean(0) + self.tau * tensor.std(0))


class _Optimal:
    """The factor of an attack that takes the result farthest from the mean of the honest vectors, by a search of `evals` tries: steps that
    double while they help, then steps that shrink by `ratio`."""

    attack: Any = None

    def __init__(self, agg: Any = None, pre_agg_list: Any = None, f: int = 1, evals: int = 20, start: float = 0.0,
                 delta: float = 10.0, ratio: float = 0.8) -> None:
        self.agg = Average() if agg is None else agg
        self.pre_agg_list = [Clipping()] if pre_agg_list is None else pre_agg_list
        self.f = _count(f)
        if not isinstance(evals, int) or evals <= 0:
            raise ValueError("evals must be a positive integer")
        self.evals = evals
        self.start = _number(start, "start", ValueError)
        self.delta = _number(delta, "delta", ValueError)
        self.ratio = _number(ratio, "ratio", ValueError)
        if delta == 0 or not 0.5 < ratio < 1:
            raise ValueError("delta must not be 0, and ratio must be between 0.5 and 1")

    def _harm(self, honest: Any, mean: Array, tau: float) -> float:
        """How far from the mean the aggregator ends if f malicious vectors use this factor."""
        lie = type(self).attack(tau)(honest)
        vectors: Any = [*honest, *[lie] * self.f]
        for mixer in self.pre_agg_list:
            vectors = mixer(vectors)
        return float(np.linalg.norm(_numpy(self.agg(vectors)) - mean))

    def __call__(self, honest_vectors: Any) -> Any:
        mean = _numpy(_Rows(honest_vectors).aggregate("mean"))
        best, most = self.start, self._harm(honest_vectors, mean, self.start)
        delta, growing = self.delta, True
        for _ in range(self.evals - 1):
            harm = self._harm(honest_vectors, mean, best + delta)
            better = harm > most
            if better:
                best, most = best + delta, harm
            growing = growing and better
            delta *= 2 if growing else self.ratio
        return type(self).attack(best)(honest_vectors)


class Optimal_InnerProductManipulation(_Optimal):  # noqa: N801 - ByzFL's name
    """InnerProductManipulation with the factor that does the most harm to an aggregator."""

    attack = InnerProductManipulation


class Optimal_ALittleIsEnough(_Optimal):  # noqa: N801 - ByzFL's name
    """ALittleIsEnough with the factor that does the most harm to an aggregator."""

    attack = ALittleIsEnough


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
        return rows.constant(np.full(rows.rows[0].shape, np.inf))


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
    """The mean: the attack is in the data that the vectors were computed from."""
