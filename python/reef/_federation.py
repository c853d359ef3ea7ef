"""One round of a server that trusts nobody: replies are examined, the usable ones aggregated, and everybody is accounted for.

What reef.flower is made of; nothing here knows Flower. Every byte of a reply may be hostile: a reply that does not fit is left out with
a reason, and no reply makes the round fail.
"""
from __future__ import annotations

import csv
import io
import math
import os
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np

from ._rule import Rule, aggregate, rule_of

Array = np.ndarray[Any, Any]
Layout = tuple[tuple[str, tuple[int, ...], str], ...]


@dataclass
class Reply:
    """What a node sent, and what became of it. count: its number of samples as it says, anything; None: it says none."""

    node: int
    arrays: Optional[Mapping[str, Array]] = None
    count: Any = None
    reason: str = ""  # why it was left out; "" while it is in
    trust: float = 0.0
    rejected: float = 1.0
    weight: float = 0.0

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
        raise ValueError(f"npy version {version} is not known")
    try:
        shape, fortran, dtype = readers[version](stream)
    except Exception as error:  # noqa: BLE001 - a parser of Python's stands behind it, with errors of its own
        raise ValueError(f"the header cannot be read: {error}") from error
    if dtype.hasobject:
        raise ValueError("the array holds Python objects")
    if any(axis < 0 for axis in shape):
        raise ValueError("the array has a negative length")
    count = math.prod(shape)
    if len(data) - stream.tell() != count * dtype.itemsize:
        raise ValueError(f"{len(data) - stream.tell()} bytes of numbers instead of {count * dtype.itemsize}")
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
    """Weights by number of samples, at most cap times their median, so that no liar can buy influence; absurd ones are left out."""
    for reply in (reply for reply in replies if reply.used):
        count = reply.count
        if not weighted:
            reply.weight = 1.0
        elif isinstance(count, bool) or not isinstance(count, (int, float)):
            reply.leave_out("it does not say how many samples it has")
        elif not math.isfinite(count) or count < 0 or count > 2**63:
            reply.leave_out(f"it claims {count!r:.40} samples")
        elif count == 0:
            reply.leave_out("it has no samples")
        else:
            reply.weight = float(count)
    used = [reply.weight for reply in replies if reply.used]
    most = cap * float(np.median(used)) if used else 0.0
    for reply in replies:
        reply.weight = min(reply.weight, most) if reply.used else 0.0


def combine(replies: Sequence[Reply], rule: Union[str, Rule], per_array: bool, number: int) -> Optional[dict[str, Array]]:
    """Aggregates the usable replies and fills in their trust; None: there was nothing to aggregate. A reply with NaN or Inf is left
    out. Raises reef.ReefError (a ValueError) where the rule cannot work with so few."""
    made = rule_of(rule, {})
    used = [reply for reply in replies if reply.used and reply.arrays is not None]
    if not used:
        return None
    weights = [reply.weight for reply in used]
    weights = weights if "weights" in made.traits else [1.0] * len(used)
    first = used[0].arrays
    assert first is not None
    groups = [[name] for name in sorted(first)] if per_array else [sorted(first)]
    total = sum(first[name].size for name in first if first[name].dtype.kind == "f")
    if total == 0:
        raise ValueError("the model holds no floating-point numbers")
    result: dict[str, Array] = {}
    trust, rejected = np.zeros(len(used)), np.zeros(len(used))
    spoilt: set[int] = set()
    for names in groups:
        models = [{name: reply.arrays[name] for name in names} for reply in used if reply.arrays is not None]
        size = sum(first[name].size for name in names if first[name].dtype.kind == "f")
        if size == 0:  # integers alone go with the majority
            result.update(_vote(models))
            continue
        combined, report = aggregate(models, made, weights, report=True, copy=True, round=number)
        result.update({name: combined[name].astype(first[name].dtype, copy=False) for name in names})
        spoilt |= set(report.dropped)
        trust += report.trust * size / total
        rejected += report.rejected * size / total
    for i, reply in enumerate(used):
        reply.trust, reply.rejected = float(trust[i]), float(rejected[i])
        if i in spoilt:
            reply.leave_out("it holds NaN or Inf")
    return {name: result[name] for name in first}


def _vote(models: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    return {name: np.sort(np.stack([model[name] for model in models]), axis=0)[(len(models) - 1) // 2] for name in models[0]}


@dataclass
class Standing:
    """How nodes have fared over the rounds: who stays below `below` for `rounds` rounds in a row is left out from then on."""

    below: float = 0.3
    rounds: int = 0  # 0: nobody is ever left out
    low: dict[int, int] = field(default_factory=dict)
    banned: set[int] = field(default_factory=set)

    def note(self, replies: Sequence[Reply]) -> list[int]:
        """Counts this round; returns who is left out from now on."""
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


HEAD = ["round", "node", "trust", "rejected", "weight", "left_out"]


def check_csv(path: Union[None, str, os.PathLike[str]]) -> None:
    """Before the first round, not after it."""
    if path is not None and not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        raise ValueError(f"trust_csv={os.fspath(path)!r}: there is no such folder")


def write_csv(path: Union[str, os.PathLike[str]], number: int, replies: Sequence[Reply]) -> None:
    """Adds one line per reply; the file is begun in the first round."""
    fresh = number <= 1 or not os.path.exists(path)
    with open(path, "w" if fresh else "a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(HEAD)
        for reply in sorted(replies, key=lambda reply: reply.node):
            writer.writerow([number, reply.node, f"{reply.trust:.6g}", f"{reply.rejected:.6g}", f"{reply.weight:.6g}",
                             reply.reason])


def middle_metrics(records: Sequence[Mapping[str, Any]], skip: str) -> dict[str, float]:
    """The median of every number that most records have: one liar cannot move it far."""
    result: dict[str, float] = {}
    for key in sorted({key for record in records for key in record if key != skip}):
        values = [float(value) for record in records if isinstance(value := record.get(key), (int, float))
                  and not isinstance(value, bool) and math.isfinite(value)]
        if 2 * len(values) > len(records):
            result[key] = float(np.median(values))
    return result
