"""One round of a server that trusts no node: replies are examined, the usable ones aggregated, and everybody is accounted for.

What reef.flower is made of; nothing here knows Flower. Every byte of a reply may be hostile: a reply that does not fit is left out with
a reason, and no reply makes the round fail.
"""
from __future__ import annotations

import csv
import io
import math
import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np

from ._rows import vote
from ._checks import step_size
from ._rule import Rule, State, aggregate, rule_of

Array = np.ndarray[Any, Any]
Layout = tuple[tuple[str, tuple[int, ...], str], ...]


@dataclass
class Reply:
    """What a node sent, and what became of it. count: its number of samples as it says, anything; None: it says none. name: what it is
    remembered by, if not its number."""

    node: int
    arrays: Optional[Mapping[str, Array]] = None
    count: Any = None
    reason: str = ""  # why it was left out; "" while it is in
    why: str = ""  # what lowered its weight, of rules that tell
    trust: float = 0.0
    rejected: float = 1.0
    weight: float = 0.0
    name: str = ""

    @property
    def used(self) -> bool:
        return not self.reason

    def leave_out(self, reason: str) -> None:
        """With texts from outside made harmless: one line, no control characters, not endless."""
        self.reason = "".join(ch if ch.isprintable() else " " for ch in reason)[:200] or "no reason given"


def npy_array(data: bytes) -> Array:
    """The array in the bytes of an npy file, without copying them. Raises ValueError for whatever is not exactly that."""
    stream = io.BytesIO(data[:1 << 16])  # headers are shorter; the numbers stay where they are
    npy: Any = np.lib.format
    version = npy.read_magic(stream)
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"unknown npy version {version}")
    try:
        shape, fortran, dtype = readers[version](stream)
    except Exception as error:  # noqa: BLE001 - a parser of Python's stands behind it, with errors of its own
        raise ValueError(f"the header cannot be read: {error}") from error
    if dtype.hasobject:
        raise ValueError("the array contains Python objects")
    if any(axis < 0 for axis in shape):
        raise ValueError("the array has a negative length")
    count = math.prod(shape)
    if len(data) - stream.tell() != count * dtype.itemsize:
        raise ValueError(f"{len(data) - stream.tell()} bytes of numbers, expected {count * dtype.itemsize}")
    numbers = np.frombuffer(data, dtype, count, stream.tell()) if count else np.empty(0, dtype)
    return numbers.reshape(shape, order="F" if fortran else "C")


def layout_of(arrays: Mapping[str, Array]) -> Layout:
    """Names, shapes and types, in the order of the names."""
    return tuple((name, tuple(arrays[name].shape), str(arrays[name].dtype)) for name in sorted(arrays))


def _difference(found: Layout, wanted: Layout) -> str:
    """In words, what is wrong with a layout."""
    mine, theirs = ({name: rest for name, *rest in layout} for layout in (found, wanted))
    missing, extra = sorted(theirs.keys() - mine.keys()), sorted(mine.keys() - theirs.keys())
    if missing:
        return f"{len(missing)} arrays are missing, {missing[0]!r} for one"
    if extra:
        return f"{len(extra)} arrays that nobody asked for, {extra[0]!r} for one"
    for name, (shape, dtype) in theirs.items():
        if mine[name][0] != shape:
            return f"array {name!r} has the shape {mine[name][0]} instead of {shape}"
        if mine[name][1] != dtype:
            return f"array {name!r} is of type {mine[name][1]} instead of {dtype}"
    return "another layout"


def check_layouts(replies: Sequence[Reply], sent: Optional[Layout]) -> None:
    """Leaves out the replies of another layout than the model that was sent or, where no reply has that one, than most replies."""
    layouts = {id(reply): layout_of(reply.arrays) for reply in replies if reply.used and reply.arrays is not None}
    if not layouts:
        return
    wanted = sent if sent is not None and sent in layouts.values() else Counter(layouts.values()).most_common(1)[0][0]
    for reply in replies:
        if id(reply) in layouts and layouts[id(reply)] != wanted:
            reply.leave_out(_difference(layouts[id(reply)], wanted))


def weigh(replies: Sequence[Reply], weighted: bool, cap: float) -> None:
    """Weights by number of samples, at most cap times their median, so that no malicious node can claim more influence; absurd ones are left out."""
    for reply in (reply for reply in replies if reply.used):
        count = reply.count
        if not weighted:
            reply.weight = 1.0
        elif isinstance(count, bool) or not isinstance(count, (int, float)):
            reply.leave_out("it does not say how many samples it has")
        elif not 0 <= count <= 2**63:
            reply.leave_out(f"it claims {count!r:.40} samples")
        elif count == 0:
            reply.leave_out("it has no samples")
        else:
            reply.weight = float(count)
    used = [reply.weight for reply in replies if reply.used]
    most = cap * float(np.median(used)) if used else 0.0
    for reply in replies:
        reply.weight = min(reply.weight, most) if reply.used else 0.0


STEP_NAMES = ("lr", "learning-rate", "learning_rate")  # under which Flower's apps tell it to their clients


@dataclass
class Memory:
    """What a rule remembers of the nodes (mref), by their ids; kept in a file if there is one, so that a restart loses nothing."""

    step: float = 0.0  # step size of the clients, 0: not known yet
    path: Union[None, str, os.PathLike[str]] = None
    state: State = field(default_factory=State)
    resumed: bool = False  # from the file

    def __post_init__(self) -> None:
        if self.path is not None and os.path.exists(self.path):
            self.state = State.load(self.path)
            self.resumed = True

    def learn_step(self, config: Mapping[str, Any]) -> None:
        """From what the clients are told, if it is not known yet; schedules may lower it later, which changes nothing here."""
        for name in STEP_NAMES:
            value = config.get(name)
            usable = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value > 0
            if usable and self.step == 0:
                self.step = float(value)  # type: ignore[arg-type]

    def keep(self) -> str:
        """Into the file. Returns what went wrong: a full disk is no reason to end the training."""
        try:
            if self.path is not None:
                self.state.save(self.path)
        except OSError as error:
            return f"the memory could not be saved: {error}"
        return ""


def chosen_rule(rule: Union[None, str, Rule], per_array: bool) -> Rule:
    """What a server takes unless it is told: the rule that remembers its nodes or, array by array, where none can, the best without."""
    return rule_of(rule if rule is not None else "ref" if per_array else "mref", {})


def memory_for(rule: Rule, per_array: bool, step: float, path: Union[None, str, os.PathLike[str]]) -> Optional[Memory]:
    """None: the rule remembers nobody."""
    if "senders" not in rule.traits:
        if path is not None:
            raise ValueError(f"memory={os.fspath(path)!r}: {rule!r} does not remember nodes")
        return None
    if per_array:
        raise ValueError(f"{rule!r} remembers nodes by their whole models; it cannot work per array")
    check_folder("memory", path)
    if not 0 <= step_size(step) < math.inf:
        raise ValueError(f"step={step:g}; it must be finite and positive, or 0 if it is unknown")
    memory = Memory(float(step), path)
    if memory.resumed:
        memory.state.check_use(rule, "strings")
    return memory


def _moved(model: Mapping[str, Array], origin: Mapping[str, Array], sign: int) -> dict[str, Array]:
    """Floating-point arrays minus (sign -1) or plus (1) the origin, in float32 or wider; the others as they are."""
    def move(name: str) -> Array:
        array = model[name]
        if not _is_real(array):
            return array
        wide = np.promote_types(array.dtype, np.float32)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is left out by the rule
            moved: Array = array.astype(wide) + sign * origin[name].astype(wide)
        return moved

    return {name: move(name) for name in model}


def _origin_for(rule: Rule, model: Mapping[str, Array], sent: Optional[Mapping[str, Array]]) -> Optional[Mapping[str, Array]]:
    """The model to take updates from, for rules that measure lengths from an origin (clip, arc, cclip); None: the rule needs none."""
    if "translation" in rule.traits:
        return None
    if sent is None or layout_of(sent) != layout_of(model):
        raise ValueError(f"{rule!r} works on updates, and the model that was sent out is unknown or has a different layout")
    return sent


def combine(replies: Sequence[Reply], rule: Union[str, Rule], per_array: bool, number: int,
            memory: Optional[Memory] = None, sent: Optional[Mapping[str, Array]] = None) -> Optional[dict[str, Array]]:
    """Aggregates the usable replies and fills in their trust; None: there was nothing to aggregate. A reply with NaN or Inf is left
    out, from every array. Rules that measure lengths from an origin see the differences from the model that was sent. Raises
    reef.ReefError (a ValueError) where the rule cannot work with so few."""
    made = rule_of(rule, {})
    used = [reply for reply in replies if reply.used and reply.arrays is not None]
    models = [reply.arrays for reply in used if reply.arrays is not None]
    if not models:
        return None
    first, origin = models[0], _origin_for(made, models[0], sent)
    if origin is not None:
        models = [_moved(model, origin, -1) for model in models]
    weights = np.array([reply.weight for reply in used] if "weights" in made.traits else [1.0] * len(used))
    if per_array:
        result, trust, rejected, spoilt = _each_array(models, made, weights, number)
    else:
        result, trust, rejected, spoilt = _whole_model(models, made, weights, number, used, memory)
    for place, reply in enumerate(used):
        reply.trust, reply.rejected = float(trust[place]), float(rejected[place])
        if place in spoilt:
            reply.leave_out("it holds NaN or Inf")
    if origin is not None:
        result = _moved(result, origin, 1)
    return {name: np.asarray(result[name]).astype(first[name].dtype, copy=False) for name in first}


def try_to_combine(replies: Sequence[Reply], rule: Rule, per_array: bool, number: int, memory: Optional[Memory] = None,
                   sent: Optional[Mapping[str, Array]] = None) -> tuple[Optional[dict[str, Array]], str]:
    """combine(), or None and the reason why there is no result."""
    try:
        result = combine(replies, rule, per_array, number, memory, sent)
    except (ValueError, TypeError) as error:
        return None, str(error)
    return result, "" if result is not None else "no reply can be used"


Combined = tuple[Mapping[str, Array], Array, Array, set[int]]  # model, trust, rejected share, replies with NaN or Inf


def _whole_model(models: Sequence[Mapping[str, Array]], rule: Rule, weights: Array, number: int, replies: Sequence[Reply],
                 memory: Optional[Memory]) -> Combined:
    names = sorted(models[0])
    if not any(_is_real(models[0][name]) for name in names):
        raise ValueError("the model has no floating-point numbers")
    rows = [{name: model[name] for name in names} for model in models]
    ids = [reply.name or str(reply.node) for reply in replies]  # as texts: node ids may be any number
    remembered = {} if memory is None else {"state": memory.state, "step": memory.step, "ids": ids}
    result, report = aggregate(rows, rule, weights, report=True, copy=True, round=number, **remembered)  # type: ignore[arg-type]
    for place, reply in enumerate(replies):
        reply.why = report.explain(ids[place]) if remembered else ""
    return result, report.trust, report.rejected, set(report.dropped)


def _each_array(models: Sequence[Mapping[str, Array]], rule: Rule, weights: Array, number: int) -> Combined:
    """Every array on its own; integers by a vote in which trust is that of the whole model."""
    real = [name for name in sorted(models[0]) if _is_real(models[0][name])]
    if not real:
        raise ValueError("the model has no floating-point numbers")
    result, trust, rejected, spoilt = _real_arrays(models, real, rule, weights, number)
    if spoilt:  # who has NaN in one array is left out of all of them
        nothing = {name: np.full(models[0][name].shape, np.nan, models[0][name].dtype) for name in real}
        rows = [nothing if place in spoilt else model for place, model in enumerate(models)]
        result, trust, rejected, spoilt = _real_arrays(rows, real, rule, weights, number)
    voting = np.where(np.isin(np.arange(len(models)), list(spoilt)), 0.0, weights)
    votes = {name: vote([model[name] for model in models], voting, trust) for name in models[0].keys() - set(real)}
    return {**result, **votes}, trust, rejected, spoilt


def _real_arrays(models: Sequence[Mapping[str, Array]], names: Sequence[str], rule: Rule, weights: Array, number: int) -> Combined:
    result: dict[str, Array] = {}
    trust, rejected = np.zeros(len(models)), np.zeros(len(models))
    spoilt: set[int] = set()
    total = sum(models[0][name].size for name in names)
    for name in names:
        result[name], report = aggregate([model[name] for model in models], rule, weights, report=True, copy=True, round=number)
        spoilt |= set(report.dropped)
        trust += report.trust * models[0][name].size / total
        rejected += report.rejected * models[0][name].size / total
    return result, trust, rejected, spoilt


def _is_real(array: Array) -> bool:
    return array.size > 0 and array.dtype.kind not in "biu"


@dataclass
class Standing:
    """How nodes have fared over the rounds: a node that stays below `below` for `rounds` rounds in a row is left out from then on."""

    below: float = 0.3
    rounds: int = 0  # 0: nobody is ever left out
    low: dict[int, int] = field(default_factory=dict)
    banned: set[int] = field(default_factory=set)
    silent: set[int] = field(default_factory=set)  # of the banned, those who really were not asked last time

    def note(self, replies: Sequence[Reply]) -> list[int]:
        """Counts this round; returns who is to be left out from now on."""
        fresh = []
        for reply in replies:
            bad = not reply.used or reply.trust < self.below
            self.low[reply.node] = self.low.get(reply.node, 0) + 1 if bad else 0
            if self.rounds and self.low[reply.node] >= self.rounds and reply.node not in self.banned:
                fresh.append(reply.node)
        self.banned.update(fresh)
        return fresh

    def allowed(self, nodes: Sequence[int], least: int) -> list[int]:
        """The nodes that may take part. At least `least` and more than half of all stay: if need be, the best of the others."""
        good = [node for node in nodes if node not in self.banned]
        least = min(max(least, len(nodes) // 2 + 1), len(nodes))
        others = sorted((node for node in nodes if node in self.banned), key=lambda node: self.low.get(node, 0))
        return good + others[:max(0, least - len(good))]


    def changes(self, nodes: Sequence[int], asked: Sequence[int]) -> tuple[list[int], list[int]]:
        """Of `nodes`, who is not among `asked` any more, and who is again, since the last call."""
        now = set(nodes) - set(asked)
        gone, back = sorted(now - self.silent), sorted(self.silent & set(asked))
        self.silent = (self.silent | now) - set(back)
        return gone, back


def distrusted(replies: Sequence[Reply], below: float, known: set[int]) -> list[Reply]:
    """Who was used with less trust than that, for a reason that the rule tells; each node once."""
    found = [reply for reply in replies if reply.used and reply.why and reply.trust < below and reply.node not in known]
    known.update(reply.node for reply in found)
    return found


def check_count(rule: Rule, replies: int) -> None:
    """Raises reef.ReefError, in the words of the rule, if it cannot work with so many replies."""
    rule(np.zeros((replies, 1)), round=1)


HEAD = ["round", "node", "trust", "rejected", "weight", "left_out", "why"]


def check_folder(option: str, path: Union[None, str, os.PathLike[str]]) -> None:
    """Of a file that will be written, before the first round, not after it."""
    if path is not None and not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        raise ValueError(f"{option}={os.fspath(path)!r}: the folder does not exist")


def write_csv(path: Union[str, os.PathLike[str]], number: int, replies: Sequence[Reply], resumed: bool = False) -> str:
    """Adds one line per reply; the file is begun in the first round, unless the server resumes. Returns what went wrong."""
    try:
        _add_lines(path, number, replies, number <= 1 and not resumed or not os.path.exists(path))
    except OSError as error:
        return f"trust could not be written: {error}"
    return ""


def _add_lines(path: Union[str, os.PathLike[str]], number: int, replies: Sequence[Reply], fresh: bool) -> None:
    with open(path, "w" if fresh else "a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(HEAD)
        for reply in sorted(replies, key=lambda reply: reply.node):
            writer.writerow([number, reply.node, f"{reply.trust:.6g}", f"{reply.rejected:.6g}", f"{reply.weight:.6g}",
                             reply.reason, reply.why])


def middle_metrics(records: Sequence[Mapping[str, Any]], skip: str) -> dict[str, float]:
    """The median of every number that most records have: a single malicious node cannot move it far."""
    result: dict[str, float] = {}
    for key in sorted({key for record in records for key in record if key != skip}):
        values = [float(value) for record in records if isinstance(value := record.get(key), (int, float))
                  and not isinstance(value, bool) and abs(value) <= sys.float_info.max]
        if 2 * len(values) > len(records):
            result[key] = float(np.median(values))
    return result
