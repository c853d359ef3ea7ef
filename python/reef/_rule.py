"""Aggregation: rules, reports, memory."""
from __future__ import annotations

import ctypes as c
import hashlib
import json
import math
import os
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any, Hashable, Iterator, Optional, Sequence, Union

import numpy as np

from . import _checks, _library
from ._kinds import _TRAITS, Value, make_spec
from ._library import Handle, call, lib, spelled
from ._rows import Batch, empty_like, is_array, is_tensor, overlap, pointer, size_of, split, type_of, usable

Array = np.ndarray[Any, Any]
REASONS = ("used", "zero weight", "non-finite")


class Report:
    """How much weight each input had in one aggregation.

    trust        mean over coordinates of effective weight over weight, per row: 1 is the fair share, 0 means ignored
    rejected     share of the coordinates in which the row had zero weight
    dropped      rows left out as a whole: {row: "non-finite" or "zero weight"}
    iterations   mean number of iterations per column, block or vector; max_iterations the largest
    unconverged  of them, those that met their cap before their tolerance
    efficiency   at Gaussian data, that the rule is tuned to for this number of rows; NaN: none stated
    masked       single entries left out (nan="drop-coordinate")
    centre_share mean share of the origin (clip, arc) or the centre (cclip)
    dominant     the row that holds half of the weight or more, -1 if none does
    shares       effective weights of every coordinate if asked for, shaped like (K, *row), or a dict or list of such
    tensors      trust of every row in each tensor of floating-point numbers of a model: a dict {name: K numbers} or a list of such, in the order of
                 the model; None where rows are arrays
    ids          of the senders, as they were given; None: they are identified by their position
    why          rules that remember senders: what each of their tests left of a sender's weight, {test: K numbers from 0 to 1}, with the
                 columns "sender" and "trust" before them, so that pandas.DataFrame(report.why) is a table; {} for other rules
    numbers      what such a rule reports about the round as a whole, {name: number}
    meanings     what these names mean
    """

    trust: Array
    rejected: Array
    dropped: dict[int, str]
    shares: Any
    tensors: Any
    why: dict[str, Any]
    numbers: dict[str, float]
    meanings: dict[str, str]

    def __init__(self, handle: Handle, rows: int, ids: Optional[list[Any]] = None) -> None:
        report = handle.pointer
        self.ids = ids
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
        self.tensors = None
        self._tell(report, rows)

    def _tell(self, report: Any, rows: int) -> None:
        self.why, self.numbers, self.meanings = {}, {}, {}
        tests = range(lib.reef_report_factor_count(report))
        text = c.create_string_buffer(256)
        self._reasons: list[str] = [""] * rows
        if tests:
            self.why = {"sender": list(range(rows)) if self.ids is None else list(self.ids), "trust": self.trust.copy()}
        for test in tests:
            name = lib.reef_report_factor_name(report, test).decode()
            self.why[name] = np.array([lib.reef_report_factor(report, row, test) for row in range(rows)])
            self.meanings[name] = lib.reef_report_factor_meaning(report, test).decode()
        for row in range(rows) if tests else ():
            lib.reef_report_explain(report, row, text, len(text))
            self._reasons[row] = text.value.decode()
        for number in range(lib.reef_report_number_count(report)):
            name = lib.reef_report_number_name(report, number).decode()
            self.numbers[name] = lib.reef_report_number(report, number)
            self.meanings[name] = lib.reef_report_number_meaning(report, number).decode()

    def explain(self, sender: Any) -> str:
        """Why a sender was down-weighted, for instance "long window leaves 0.12"; "" if it was not. By its id, or its row without ids."""
        if sender not in (range(len(self._reasons)) if self.ids is None else self.ids):
            raise KeyError(f"no input was sent by {sender!r}")
        reason: str = self._reasons[sender if self.ids is None else self.ids.index(sender)]
        return reason

    @classmethod
    def unmeasured(cls, handle: Handle, rows: int) -> Report:
        """Of models without floating-point numbers."""
        report = cls(handle, rows)
        report.trust[:], report.rejected[:] = math.nan, math.nan
        return report

    def suspects(self, below: float = 0.5) -> list[int]:
        """Rows whose trust is below a bound, the least trusted first."""
        return [int(row) for row in np.argsort(self.trust, kind="stable") if self.trust[row] < below]

    def __repr__(self) -> str:
        dropped = f", dropped={self.dropped}" if self.dropped else ""
        trust = np.array2string(self.trust, precision=2, threshold=12)
        return f"<reef.Report trust={trust}{dropped}, iterations={self.iterations:.3g}>"


def _doubles(address: int, count: int) -> Array:
    return np.ctypeslib.as_array((c.c_double * count).from_address(address)).copy()


_MAGIC = b"reef.State 1\n"
_NAMES = 2 * 65536  # names of senders that are kept at least: twice as many as the library remembers


def _numbered(ids: Optional[list[Any]], names: dict[str, int]) -> Optional[Array]:
    """Integers as they are; strings by a number of their own, kept in `names`."""
    if ids is None:
        return None
    if all(isinstance(name, str) for name in ids):
        return np.array([names.setdefault(name, next(reversed(names.values()), 0) - 1) for name in ids], dtype=np.int64)
    if all(isinstance(number, (int, np.integer)) and not isinstance(number, bool) for number in ids):
        if not all(-1 << 63 <= number < 1 << 63 for number in ids):
            raise OverflowError("ids that are integers must fit into 64 bits; larger ones can be given as strings")
        return np.array(ids, dtype=np.int64)
    raise TypeError("ids must be all integers or all strings")


class State:
    """What a rule remembers from one aggregation to the next: its last result (centered clipping), or every sender (mref). Hand the same
    object to every call; it takes its shape from the first. Threads that share it wait for each other. Senders are identified by the ids
    given with the rows, integers or strings: rows may then come in any order and number, absent senders are remembered, new ones start afresh.
    Without ids they are identified by position, and their number must not change. `centre`, if given, is where centered clipping
    starts: an array, or a dict or list of arrays."""

    def __init__(self, centre: Any = None) -> None:
        self.lock = threading.RLock()  # one aggregation at a time: the library is called without the GIL
        self._handle: Optional[Handle] = None
        self._made_for: Any = None  # rule, rows, lengths and type of the handle
        self._first = centre
        self._kind: Optional[str] = None  # of ids: "positions", "integers" or "strings"
        self._names: dict[str, int] = {}  # numbers of strings, as the library knows them: falling, in the order of the dict
        self._room = _NAMES

    @contextmanager
    def use(self) -> Iterator[None]:
        """The lock, for one aggregation. Of a first one that fails nothing stays: the next may be of another shape or have other ids."""
        with self.lock:
            fresh = self._handle is None
            try:
                yield
            except BaseException:
                if fresh:
                    self._forget()
                raise

    def prepare(self, rule: Rule, batch: Batch, keys: Sequence[Hashable]) -> Handle:
        """The library's state for this shape."""
        lengths = tuple(batch.lengths(keys))
        self.check_use(rule)
        if self._handle is None:
            self._make(rule, batch.count, lengths, batch.type)
            if self._first is not None:
                self._set(batch, keys)
        elif (lengths, batch.type) != self._made_for[2:]:
            raise ValueError(f"this state belongs to rows of {sum(self._made_for[2])} numbers in {len(self._made_for[2])} tensors, these are "
                             f"of {sum(lengths)} in {len(lengths)}, or of another shape or type")
        assert self._handle is not None
        return self._handle

    def check_use(self, rule: Rule, kind: Optional[str] = None) -> None:
        """Raises if it is the memory of another rule, or has senders by other ids than of this kind."""
        made_for = self._made_for[0] if self._handle is not None else rule
        if rule.name != made_for.name and {"centre", "senders"} & {*rule.traits, *made_for.traits}:
            raise ValueError(f"this state belongs to {made_for.name}, not to {rule.name}")
        if kind is not None and self._kind not in (None, kind):
            raise TypeError(f"this state identifies senders by {self._kind}, but now they have {kind}")

    def _make(self, rule: Rule, rows: int, lengths: tuple[int, ...], kind: int) -> None:
        sizes = (c.c_ssize_t * len(lengths))(*lengths)
        self._handle = Handle("reef_state_destroy", _state_maker(rule), rows, len(lengths), sizes, kind, needs=[rule.handle])
        self._made_for = (rule, rows, lengths, kind)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: what is remembered, as the library saves it."""
        saved = b""
        with self.lock:
            if self._handle is not None:
                room = c.create_string_buffer(lib.reef_state_size(self._handle.pointer))
                call(lib.reef_ffi_state_save, self._handle.pointer, room, len(room))
                saved = room.raw
            return {"first": self._first, "made_for": self._made_for if self._handle is not None else None, "saved": saved,
                    "kind": self._kind, "names": dict(self._names)}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__init__(kept["first"])  # type: ignore[misc] # an object that was not begun
        if kept["made_for"] is not None:
            self._make(*kept["made_for"])
            assert self._handle is not None
            call(lib.reef_ffi_state_load, self._handle.pointer, kept["saved"], len(kept["saved"]))
        self._kind, self._names = kept["kind"], dict(kept["names"])

    def ready(self, rule: Optional[Rule], rows: int, length: int, dtype: Any) -> Optional[c.c_void_p]:
        """The library's state for rows that are identified by position, if it is made for them; None: see prepare."""
        if self._handle is None or rule is None:
            return None
        made, count, lengths, kind = self._made_for
        if (count, lengths) != (rows, (length,)) or kind != (_library.F64 if dtype.itemsize == 8 else _library.F32):
            return None
        if rule is not made and rule.name != made.name or self._kind != "positions" and "senders" in rule.traits:
            return None
        return self._handle.pointer

    def numbered(self, ids: Optional[list[Any]], rows: int, by_sender: bool) -> Optional[Array]:
        """The ids as the library takes them."""
        kind = "positions" if ids is None else "strings" if ids and isinstance(ids[0], str) else "integers"
        if by_sender and self._kind not in (None, kind):
            raise TypeError(f"this state identifies senders by {self._kind}, but now they have {kind}")
        if by_sender and ids is None and self._made_for is not None and rows != self._made_for[1]:
            raise ValueError(f"{rows} rows after {self._made_for[1]}: without ids, senders are identified by their position; pass ids")
        if by_sender:
            self._kind = kind
        if len(self._names) >= self._room:
            self._forget_names()
        return _numbered(ids, self._names)

    def _forget_names(self) -> None:
        """Of senders that the library does not remember any more: however many come, only so many names are kept."""
        self._names = {name: number for name, number in self._names.items() if self.age(number)}
        self._room = max(self._room, 2 * len(self._names))

    def age(self, sender: Union[int, str]) -> int:
        """In how many remembered aggregations a sender took part; 0: it is unknown."""
        number = self._names.get(sender) if isinstance(sender, str) else sender
        if self._handle is None or number is None:
            return 0
        return int(lib.reef_state_age(self._handle.pointer, number))

    @property
    def senders(self) -> int:
        """How many senders are remembered."""
        return 0 if self._handle is None else int(lib.reef_state_senders(self._handle.pointer))

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes the memory to a file, atomically."""
        kept = self.__getstate__()
        if kept["made_for"] is None:
            raise ValueError("there is nothing to save yet: the state has not been used")
        rule, rows, lengths, kind = kept["made_for"]
        head = json.dumps({"rule": rule.spec, "rows": rows, "lengths": lengths, "type": kind, "kind": kept["kind"],
                           "names": list(kept["names"]), "numbers": list(kept["names"].values()), "bytes": len(kept["saved"])}).encode()
        body = _MAGIC + head + b"\n" + kept["saved"]
        target = Path(os.path.realpath(path))
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(body + hashlib.sha256(body).digest())
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise

    @classmethod
    def load(cls, path: Union[str, os.PathLike[str]]) -> State:
        """A state from a file that save wrote. Damaged files, and those of other versions, are refused."""
        whole = Path(path).read_bytes()
        body, digest = whole[:-32], whole[-32:]
        if not whole.startswith(_MAGIC[:-2]):
            raise ValueError(f"{os.fspath(path)!r} is not a state that reef.State.save wrote")
        if not whole.startswith(_MAGIC):
            raise ValueError(f"{os.fspath(path)!r} is a state of another version of Reef, which this one cannot read")
        if hashlib.sha256(body).digest() != digest:
            raise ValueError(f"{os.fspath(path)!r} is damaged")
        head, saved = body[len(_MAGIC):].split(b"\n", 1)
        told = json.loads(head)
        numbers = told.get("numbers", range(-1, -1 - len(told["names"]), -1))
        state = cls()
        state.__setstate__({"first": None, "saved": saved, "kind": told["kind"],
                            "made_for": (Rule(told["rule"]), told["rows"], tuple(told["lengths"]), told["type"]),
                            "names": dict(zip(told["names"], numbers))})
        return state

    def _set(self, batch: Batch, keys: Sequence[Hashable]) -> None:
        assert self._handle is not None
        dtype = np.float64 if batch.type == _library.F64 else np.float32
        for segment, key in enumerate(keys):
            given = self._centre(key)
            given = given.detach().cpu().double().numpy() if is_tensor(given) else given
            centre = np.ascontiguousarray(given, dtype=dtype)
            if centre.size != size_of(batch.columns[key][0]):
                raise ValueError(f"the first centre has {centre.size} numbers, the rows have "
                                 f"{size_of(batch.columns[key][0])}")
            call(lib.reef_ffi_set_centre, self._handle.pointer, segment, centre.ctypes.data)

    def _centre(self, key: Hashable) -> Any:
        """The part of the first centre that belongs to a tensor; key None: rows are arrays, and so is the centre."""
        if key is None and isinstance(self._first, Mapping):
            raise TypeError("the first centre is a dict, but the rows are arrays; pass an array like a row")
        try:
            return self._first if key is None else self._first[key]
        except (KeyError, IndexError, TypeError):
            raise ValueError(f"the first centre has nothing for the tensor {key!r} of the rows; it must be a model like them") from None

    def reset(self) -> None:
        """Forgets everything, the first guess included."""
        self._first = None
        self._forget()

    def _forget(self) -> None:
        self._handle, self._made_for = None, None
        self._kind, self._names, self._room = None, {}, _NAMES


def _state_maker(rule: Rule) -> Any:
    def make(place: Any, *arguments: Any) -> int:
        status: int = lib.reef_ffi_state(rule.handle.pointer, place, *arguments)
        return status

    return make


class Ready:
    """Aggregations of one small array after the other: what a rule needs for a shape is kept for the next call. Whatever is unusual is left
    to the usual way, which says what is wrong with it."""

    NUMBERS = 1 << 16  # larger arrays take so long that preparing does not matter
    SHAPES = 16

    def __init__(self, rule: Rule) -> None:
        self._agg = rule.handle
        self._rule = weakref.ref(rule)
        self._kept: dict[Any, list[Handle]] = {}

    def apply(self, rows: Array, out: Any, state: Optional[State], round: int) -> Any:
        """The result, or None."""
        shape, dtype = rows.shape, rows.dtype
        kept = self._kept.get((shape, dtype))
        if kept is None:
            kept = self._begin(rows)
        if kept is None or not rows.flags.c_contiguous:
            return None
        memory = None
        if state is not None:
            memory = state.ready(self._rule(), shape[0], rows.size // shape[0], dtype)
            if memory is None:
                return None
        if out is None:
            result = np.empty(shape[1:], dtype)
        elif type(out) is np.ndarray and out.shape == shape[1:] and out.dtype == dtype and out.flags.carray:
            result = out
        else:
            return None
        try:
            ready = kept.pop()  # nobody else has it until it is back: the lock of the interpreter is open during the call
        except IndexError:
            ready = self._make(shape[0], rows.size // shape[0], type_of(rows))
        status = _apply_prepared(ready.pointer, rows.ctypes.data, result.ctypes.data, round, memory)
        kept.append(ready)
        return result if status == 0 else None

    def _make(self, rows: int, length: int, kind: Optional[int]) -> Handle:
        def make(place: Any, *text: Any) -> int:
            status: int = lib.reef_ffi_prepare(self._agg.pointer, place, rows, length, kind, *text)
            return status

        return Handle("reef_ffi_prepared_destroy", make, needs=[self._agg])

    def _begin(self, rows: Array) -> Optional[list[Handle]]:
        """A place for what this shape needs."""
        if not 0 < rows.size <= self.NUMBERS or not rows.ndim or type_of(rows) not in (_library.F32, _library.F64):
            return None
        if len(self._kept) >= self.SHAPES:
            self._kept = {}
        return self._kept.setdefault((rows.shape, rows.dtype), [])


_apply_prepared = lib.reef_ffi_prepared_apply


class Rule:
    """A rule or a pipeline, ready to aggregate:

        reef.Rule("ref")
        reef.Rule("ref", efficiency=0.95, n="auto")
        reef.Rule("nnm:f=4 | ref")

    Keyword arguments go to the last part of the pipeline. Which there are, with defaults and ranges: `reef.rules()["ref"]`. The last rule
    also takes nan="drop-row" (default), "drop-coordinate" or "error". threads: as in reef.set_threads.
    """

    def __init__(self, spec: str, *, threads: Optional[int] = None, **parameters: Value) -> None:
        text = make_spec(str(spec), parameters)
        context = _library.context(threads)
        self.handle = Handle("reef_agg_destroy", lib.reef_ffi_agg, spelled(text, "the rule"), context=context)
        self._given, self._threads = text, threads
        self._name: Optional[str] = None  # and the traits, once they have been asked for
        self._traits: Optional[tuple[str, ...]] = None
        self._ready = Ready(self)

    def __reduce__(self) -> Any:
        """Pickled and copied by what it was made from."""
        return _restored, (self._given, self._threads)

    @property
    def spec(self) -> str:
        """The rule string with every parameter spelled out."""
        room = lib.reef_agg_print(self.handle.pointer, None, 0) + 1
        text = c.create_string_buffer(room)
        lib.reef_agg_print(self.handle.pointer, text, room)
        return text.value.decode()

    @property
    def name(self) -> str:
        """The rule at the end of the pipeline, without parameters."""
        if self._name is None:
            self._name = self.spec.split("|")[-1].split(":")[0].strip()
        return self._name

    @property
    def traits(self) -> tuple[str, ...]:
        """Claims that hold for these parameters, see reef/rule.h."""
        if self._traits is None:
            bits: int = lib.reef_agg_traits(self.handle.pointer)
            self._traits = tuple(name for i, name in enumerate(_TRAITS) if bits >> i & 1)
        return self._traits

    def tolerates(self, n: int) -> Optional[int]:
        """The largest number of malicious rows among n that it tolerates by its own setting of f; None: it states none."""
        found: int = lib.reef_agg_tolerates(self.handle.pointer, n)
        return None if found < 0 else found

    def __repr__(self) -> str:
        return f"reef.Rule({self._given!r})"

    def __call__(self, rows: Any, weights: Any = None, *, report: bool = False, shares: bool = False, out: Any = None,
                 copy: bool = False, state: Optional[State] = None, round: int = 0, self_row: int = -1,
                 ids: Optional[Sequence[Union[int, str]]] = None, step: float = 0) -> Any:
        """Aggregates rows; see reef.aggregate."""
        if state is not None and not isinstance(state, State):
            raise TypeError(f"state is {state!r:.40}; pass a reef.State()")
        plain = (type(rows) is np.ndarray and type(round) is int and type(step) in (int, float) and type(self_row) is int
                 and (step, self_row) == (0, -1) and 0 <= round <= sys.maxsize)
        if plain and weights is None and ids is None and not (report or shares):
            if state is None:
                quick = self._ready.apply(rows, out, None, round)
            else:
                with state.lock:
                    quick = self._ready.apply(rows, out, state, round)
            if quick is not None:
                return quick
        batch, form = split(rows, copy)
        step, round = _checks.step_size(step), _checks.whole(round, "round", 0, sys.maxsize)
        self_row = _checks.whole(self_row, "self_row", -1, sys.maxsize)
        keys = batch.used()
        results: dict[Hashable, Any] = {key: empty_like(batch.columns[key][0]) for key in batch.real}
        if out is not None:
            results[None] = _check_out(out, batch, form)
        if not keys and form == "array":
            raise ValueError("the rows have no floating-point numbers")
        vector = _checks.weight_vector(weights, batch.count)
        disputed = batch.disputed()
        given = _checks.sender_ids(ids, batch.count, "senders" in self.traits)
        use: Any = nullcontext() if state is None else state.use()
        with use:
            told = self._apply(batch, keys, results, vector, report or shares or disputed, shares, state, round, self_row, given,
                               step)
        results.update(_elect(batch, vector, told) if disputed else batch.unanimous())
        if out is None:
            results = {key: batch.back(key, result) for key, result in results.items()}
        result = _shape(results, form, list(batch.columns))
        if not (report or shares):
            return result
        if told is not None and told.shares is not None:
            told.shares = _shape(told.shares, form, keys)
        if told is not None and told.tensors is not None:
            told.tensors = None if form == "array" else _shape(told.tensors, form, list(told.tensors))
        return result, told

    def _apply(self, batch: Batch, keys: list[Hashable], results: dict[Hashable, Any], weights: Optional[Array], wanted: bool,
               shares: bool, state: Optional[State], round: int, self_row: int, ids: Optional[list[Any]],
               step: float) -> Optional[Report]:
        rows = batch.count
        handle = Handle("reef_report_destroy", _report_maker(rows)) if wanted else None
        if not keys:  # nothing but integers
            return None if handle is None else Report.unmeasured(handle, rows)
        lengths = batch.lengths(keys)
        outs = (c.c_void_p * len(keys))(*(pointer(results[key]) for key in keys))
        numbers = _numbered(ids, {}) if state is None else state.numbered(ids, rows, "senders" in self.traits)
        memory = state.prepare(self, batch, keys).pointer if state is not None else None
        kept = np.empty((rows, sum(lengths))) if shares else None
        if kept is not None and handle is not None:
            lib.reef_report_keep_shares(handle.pointer, kept.ctypes.data, None)
        parts = np.empty((len(keys), rows)) if handle is not None else None
        if parts is not None and handle is not None:
            lib.reef_report_keep_segments(handle.pointer, parts.ctypes.data)
        call(lib.reef_ffi_apply_senders, self.handle.pointer, rows, len(keys), lengths, batch.types(keys), batch.pointers(keys), outs,
             None if weights is None else weights.ctypes.data, self_row, round,
             None if numbers is None else numbers.ctypes.data, step, memory, None if handle is None else handle.pointer)
        if handle is None:
            return None
        told = Report(handle, rows, ids)
        told.tensors = dict(zip(keys, parts)) if parts is not None else None
        if kept is not None:
            told.shares = _cut(kept, batch, keys)
        return told


def _elect(batch: Batch, weights: Optional[Array], told: Optional[Report]) -> dict[Hashable, Any]:
    """The votes on integer tensors; rows that were left out have none."""
    assert told is not None
    voting = np.ones(batch.count) if weights is None else weights.copy()
    voting[list(told.dropped)] = 0
    return batch.votes(voting, told.trust if batch.used() else None)


def _report_maker(rows: int) -> Any:
    def make(place: Any, *text: Any) -> int:
        status: int = lib.reef_ffi_report(None, place, rows, *text)
        return status

    return make


def _check_out(out: Any, batch: Batch, form: str) -> Any:
    row = batch.columns[next(iter(batch.columns))][0]
    if form != "array":
        raise TypeError("out is for rows that are arrays, not models of several tensors")
    if not is_array(out):
        raise TypeError(f"out is of type {type(out).__name__}, not an array or tensor like a row")
    if is_tensor(out) != is_tensor(row) or usable(out) or type_of(out) != type_of(row) or tuple(out.shape) != tuple(row.shape):
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


def _restored(spec: str, threads: Optional[int]) -> Rule:
    return Rule(spec, threads=threads)


@lru_cache(maxsize=256)
def _cached(spec: str, threads: int) -> Rule:
    return Rule(spec, threads=threads)


def rule_of(rule: Union[str, Rule], parameters: dict[str, Value]) -> Rule:
    """A Rule from what callers write; those from texts are kept for the next time."""
    if isinstance(rule, Rule):
        if parameters:
            raise TypeError(f"parameters {', '.join(parameters)} go with a rule's name, not with a reef.Rule")
        return rule
    if not isinstance(rule, str):
        raise TypeError(f"the rule is {rule!r:.40}; pass a rule string such as \"ref\", or a reef.Rule")
    return _cached(make_spec(rule, parameters), _library.get_threads())


def aggregate(rows: Any, rule: Union[str, Rule] = "ref", weights: Any = None, report: bool = False, *, shares: bool = False,
              out: Any = None, copy: bool = False, state: Optional[State] = None, round: int = 0, self_row: int = -1,
              ids: Optional[Sequence[Union[int, str]]] = None, step: float = 0, **parameters: Value) -> Any:
    """Combines K rows into one so that malicious ones among them have bounded influence.

    rows      an array or tensor (K, ...); a list of K arrays of one shape; or a list of K models: dicts of arrays, PyTorch
              state_dicts, or lists of arrays. Read in place, without copying: contiguous float32, float64, float16, bfloat16, float8_e4m3fn
              or float8_e5m2; each tensor keeps its type. Integer tensors inside models get the value that more than half of the weight has,
              else that of the most trusted row.
    rule      a rule string such as "ref", "vref", "nnm:f=4 | ref", or a reef.Rule; further keyword arguments are parameters of the rule
    weights   K numbers >= 0, any positive sum; None: equal
    report    also return a reef.Report; shares=True keeps the effective weights of every coordinate in it
    out       array to write the result to, where rows are arrays
    copy      convert what cannot be read as it is, or differs in type from row 0, instead of a TypeError
    state     a reef.State: the memory of rules that have one; round: number of this aggregation, for rules that draw random numbers;
              self_row: which row is the receiver's own
    ids       of the senders of the rows, integers or strings, for rules that remember them (mref); step: step size of the recursion that
              the result feeds, which sets how long mref remembers
    Returns what a row is: an array or tensor, a dict or a list; with report a pair (result, report).
    """
    return rule_of(rule, parameters)(rows, weights, report=report, shares=shares, out=out, copy=copy, state=state,
                                     round=round, self_row=self_row, ids=ids, step=step)
