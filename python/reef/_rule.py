"""Aggregation: rules, reports, memory."""
from __future__ import annotations

import ctypes as c
from functools import lru_cache
from typing import Any, Hashable, Optional, Sequence, Union

import numpy as np

from . import _library
from ._kinds import Value, make_spec
from ._library import Handle, call, lib
from ._rows import Batch, empty_like, is_tensor, overlap, pointer, size_of, split, type_of, usable

Array = np.ndarray[Any, Any]
REASONS = ("used", "zero weight", "non-finite")


class Report:
    """Who was believed in one aggregation.

    trust        mean over coordinates of effective weight over weight, per row: 1 is the fair share, 0 means ignored
    rejected     share of the coordinates at which the row counted nothing
    dropped      rows left out as a whole: {row: "non-finite" or "zero weight"}
    iterations   mean number of iterations per column, block or vector; max_iterations the largest
    unconverged  of them, those that met their cap before their tolerance
    efficiency   at Gaussian data, that the rule is tuned to for this number of rows; NaN: none stated
    masked       single entries left out (nan="drop-coordinate")
    centre_share mean share of the origin (clip, arc) or the centre (cclip)
    dominant     the row that holds half of the weight or more, -1 if none does
    shares       effective weights of every coordinate if asked for, shaped like (K, *row), or a dict or list of such
    """

    trust: Array
    rejected: Array
    dropped: dict[int, str]
    shares: Any

    def __init__(self, handle: Handle, rows: int) -> None:
        report = handle.pointer
        self.trust = _doubles(lib.reef_report_trust(report), rows)
        self.rejected = _doubles(lib.reef_report_rejected(report), rows)
        reasons = ((row, lib.reef_report_reason(report, row)) for row in range(rows))
        self.dropped = {row: REASONS[reason] for row, reason in reasons if reason}
        self.iterations: float = lib.reef_report_mean_iterations(report)
        self.max_iterations: int = lib.reef_report_max_iterations(report)
        self.unconverged: int = lib.reef_report_unconverged(report)
        self.efficiency: float = lib.reef_report_efficiency(report)
        self.masked: int = lib.reef_report_masked(report)
        self.centre_share: float = lib.reef_report_centre_share(report)
        self.dominant: int = lib.reef_report_dominant(report)
        self.shares = None

    def suspects(self, below: float = 0.5) -> list[int]:
        """Rows whose trust is below a bound, the least trusted first."""
        return [int(row) for row in np.argsort(self.trust, kind="stable") if self.trust[row] < below]

    def __repr__(self) -> str:
        dropped = f", dropped={self.dropped}" if self.dropped else ""
        trust = np.array2string(self.trust, precision=2, threshold=12)
        return f"<reef.Report trust={trust}{dropped}, iterations={self.iterations:.3g}>"


def _doubles(address: int, count: int) -> Array:
    return np.ctypeslib.as_array((c.c_double * count).from_address(address)).copy()


class State:
    """What a rule remembers from one aggregation to the next (centered clipping: its last result). Hand the same object to every
    call; it takes its shape from the first. `centre`, if given, is the first guess: an array, or a dict or list of arrays."""

    def __init__(self, centre: Any = None) -> None:
        self._handle: Optional[Handle] = None
        self._shape: Any = None
        self._first = centre

    def prepare(self, rule: Rule, batch: Batch, keys: Sequence[Hashable]) -> Handle:
        """The library's state for this shape."""
        lengths = batch.lengths(keys)
        shape = (tuple(lengths), batch.type)
        if self._handle is None:
            self._handle = Handle("reef_state_destroy", _state_maker(rule), batch.count, len(keys), lengths, batch.type,
                                  needs=[rule.handle])
            self._shape = shape
            if self._first is not None:
                self._set(batch, keys)
        elif shape != self._shape:
            raise ValueError("this state is of aggregations of another shape or type")
        return self._handle

    def _set(self, batch: Batch, keys: Sequence[Hashable]) -> None:
        assert self._handle is not None
        centres: Any = self._first if isinstance(self._first, (dict, list, tuple)) else {None: self._first}
        dtype = np.float64 if batch.type == _library.F64 else np.float32
        for segment, key in enumerate(keys):
            given = centres[key]
            given = given.detach().cpu().numpy() if is_tensor(given) else given
            centre = np.ascontiguousarray(given, dtype=dtype)
            if centre.size != size_of(batch.columns[key][0]):
                raise ValueError(f"the first centre has {centre.size} numbers, the rows have "
                                 f"{size_of(batch.columns[key][0])}")
            call(lib.reef_flat_set_centre, self._handle.pointer, segment, centre.ctypes.data)

    def reset(self) -> None:
        """Forgets everything, the first guess included."""
        self._handle, self._first = None, None


def _state_maker(rule: Rule) -> Any:
    def make(place: Any, *arguments: Any) -> int:
        status: int = lib.reef_flat_state(rule.handle.pointer, place, *arguments)
        return status

    return make


class Rule:
    """A rule or a pipe, ready to aggregate:

        reef.Rule("ref")
        reef.Rule("ref", efficiency=0.95, n="auto")
        reef.Rule("nnm:f=4 | ref")

    Keyword arguments go to the last part of the pipe. Which there are, with defaults and ranges: `reef.rules()["ref"]`. The last rule
    also takes nan="drop-row" (default), "drop-coordinate" or "error". threads: as in reef.set_threads.
    """

    def __init__(self, spec: str, *, threads: Optional[int] = None, **parameters: Value) -> None:
        text = make_spec(str(spec), parameters)
        context = _library.context(threads)
        self.handle = Handle("reef_agg_destroy", lib.reef_flat_agg, text.encode(), context=context)
        self._given = text

    @property
    def spec(self) -> str:
        """The spec with every parameter spelled out."""
        room = lib.reef_agg_print(self.handle.pointer, None, 0) + 1
        text = c.create_string_buffer(room)
        lib.reef_agg_print(self.handle.pointer, text, room)
        return text.value.decode()

    @property
    def traits(self) -> tuple[str, ...]:
        """Claims that hold for these parameters, see reef/rule.h."""
        from ._kinds import _TRAITS

        bits: int = lib.reef_agg_traits(self.handle.pointer)
        return tuple(name for i, name in enumerate(_TRAITS) if bits >> i & 1)

    def liars(self, n: int) -> Optional[int]:
        """The most liars among n rows that it bears by its own setting of f; None: it states none."""
        found: int = lib.reef_agg_liars(self.handle.pointer, n)
        return None if found < 0 else found

    def __repr__(self) -> str:
        return f"reef.Rule({self._given!r})"

    def __call__(self, rows: Any, weights: Any = None, *, report: bool = False, shares: bool = False, out: Any = None,
                 copy: bool = False, state: Optional[State] = None, round: int = 0, self_row: int = -1) -> Any:
        """Aggregates rows; see reef.aggregate."""
        batch, form = split(rows, copy)
        keys = batch.used()
        results: dict[Hashable, Any] = {key: empty_like(batch.columns[key][0]) for key in batch.real}
        if out is not None:
            results[None] = _check_out(out, batch, form)
        told = self._apply(batch, keys, results, weights, report or shares, shares, state, round, self_row)
        results.update(batch.votes())
        result = _shape(results, form, list(batch.columns))
        if told is None:
            return result
        if told.shares is not None:
            told.shares = _shape(told.shares, form, keys)
        return result, told

    def _apply(self, batch: Batch, keys: list[Hashable], results: dict[Hashable, Any], weights: Any, wanted: bool,
               shares: bool, state: Optional[State], round: int, self_row: int) -> Optional[Report]:
        if not keys:
            raise ValueError("the rows hold no floating-point numbers")
        rows = batch.count
        vector = _check_weights(weights, rows)
        lengths = batch.lengths(keys)
        outs = (c.c_void_p * len(keys))(*(pointer(results[key]) for key in keys))
        memory = state.prepare(self, batch, keys).pointer if state is not None else None
        handle = Handle("reef_report_destroy", _report_maker(rows)) if wanted else None
        kept = np.empty((rows, sum(lengths))) if shares else None
        if kept is not None and handle is not None:
            lib.reef_report_keep_shares(handle.pointer, kept.ctypes.data, None)
        call(lib.reef_flat_apply, self.handle.pointer, rows, len(keys), lengths, batch.type, batch.pointers(keys), outs,
             None if vector is None else vector.ctypes.data, self_row, round, memory,
             None if handle is None else handle.pointer)
        if handle is None:
            return None
        told = Report(handle, rows)
        if kept is not None:
            told.shares = _cut(kept, batch, keys)
        return told


def _report_maker(rows: int) -> Any:
    def make(place: Any, *text: Any) -> int:
        status: int = lib.reef_flat_report(None, place, rows, *text)
        return status

    return make


def _check_weights(weights: Any, rows: int) -> Optional[Array]:
    if weights is None:
        return None
    vector = np.ascontiguousarray(weights, dtype=np.float64)
    if vector.shape != (rows,):
        raise ValueError(f"weights have the shape {vector.shape}; there are {rows} rows")
    return vector


def _check_out(out: Any, batch: Batch, form: str) -> Any:
    row = batch.columns[next(iter(batch.columns))][0]
    if form != "array":
        raise TypeError("out is for rows that are arrays, not models of several tensors")
    if is_tensor(out) != is_tensor(row) or usable(out) or type_of(out) != batch.type or tuple(out.shape) != tuple(row.shape):
        raise TypeError(f"out must be contiguous, of type {row.dtype} and shape {tuple(row.shape)}, like a row")
    if not is_tensor(out) and not out.flags.writeable:
        raise TypeError("out is read-only")
    if any(overlap(out, row) for row in batch.columns[None]):
        raise ValueError("out shares memory with a row")
    return out


def _cut(kept: Array, batch: Batch, keys: Sequence[Hashable]) -> dict[Hashable, Array]:
    """Shares (K, all coordinates) as one array per tensor."""
    parts: dict[Hashable, Array] = {}
    start = 0
    for key in keys:
        first = batch.columns[key][0]
        parts[key] = kept[:, start:start + size_of(first)].reshape(batch.count, *first.shape)
        start += size_of(first)
    return parts


def _shape(results: dict[Hashable, Any], form: str, keys: Sequence[Hashable]) -> Any:
    if form == "array":
        return results[None]
    return {key: results[key] for key in keys} if form == "dict" else [results[key] for key in keys]


@lru_cache(maxsize=256)
def _cached(spec: str, threads: int) -> Rule:
    return Rule(spec, threads=threads)


def rule_of(rule: Union[str, Rule], parameters: dict[str, Value]) -> Rule:
    """A Rule from what callers write; those from texts are kept for the next time."""
    if isinstance(rule, Rule):
        if parameters:
            raise TypeError(f"parameters {', '.join(parameters)} go with a rule's name, not with a reef.Rule")
        return rule
    return _cached(make_spec(rule, parameters), _library.get_threads())


def aggregate(rows: Any, rule: Union[str, Rule] = "ref", weights: Any = None, report: bool = False, *, shares: bool = False,
              out: Any = None, copy: bool = False, state: Optional[State] = None, round: int = 0, self_row: int = -1,
              **parameters: Value) -> Any:
    """Combines K rows into one so that liars among them do little harm.

    rows      an array or tensor (K, ...); a list of K arrays of one shape; or a list of K models: dicts of arrays, PyTorch
              state_dicts, or lists of arrays. Read where they lie: contiguous float32 or float64 (float16 and bfloat16 are widened
              block by block). Integer tensors inside models get the value of the majority.
    rule      a spec such as "ref", "vref", "nnm:f=4 | ref", or a reef.Rule; further keyword arguments are parameters of the rule
    weights   K numbers >= 0, any positive sum; None: equal
    report    also return a reef.Report; shares=True keeps the effective weights of every coordinate in it
    out       array to write the result to, where rows are arrays
    copy      convert what cannot be read as it is, instead of a TypeError
    state     memory of rules that have one, a reef.State; round: number of this aggregation, for rules that draw random numbers;
              self_row: which row is the receiver's own
    Returns what a row is: an array or tensor, a dict or a list; with report a pair (result, report).
    """
    return rule_of(rule, parameters)(rows, weights, report=report, shares=shares, out=out, copy=copy, state=state,
                                     round=round, self_row=self_row)
