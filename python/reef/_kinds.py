"""The catalogue, from the field tables of the library: rules, attacks, graphs, problems, strategies, with their parameters."""
from __future__ import annotations

import inspect
import keyword
import numbers
import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Optional, Union

import numpy as np

from ._library import add_plugin, context, lib

FAMILIES = ("rule", "attack", "problem", "graph", "weights", "links", "strategy", "source", "partition", "placement")
_TYPES = ("real", "int", "bool", "word", "malicious", "text", "rest")
_TRAITS = ("weights", "replication", "permutation", "translation", "scale", "hull", "robust", "centre", "self",
           "elementwise", "senders")
Value = Union[str, int, float, bool]


@dataclass(frozen=True)
class Field:
    """One parameter: its default as text, its range (None: no limit), words it takes, one line of help."""

    name: str
    type: str
    default: str
    minimum: Optional[float]
    maximum: Optional[float]
    unit: str
    help: str
    words: tuple[str, ...]

    @property
    def value(self) -> Value:
        """The default as a Python value."""
        return parse_value(self.default, self.type)

    def describe(self) -> str:
        """Two lines for a docstring."""
        facts = [self.help] if self.help else []
        if self.words:
            facts.append("one of " + ", ".join(self.words) if self.type == "word" else "or " + ", ".join(self.words))
        if self.minimum is not None:
            facts.append(f"{self.minimum:g} to {self.maximum:g}")
        if self.unit:
            facts.append(f"in {self.unit}")
        return f"{self.name} = {self.default}\n    " + "; ".join(facts)


def parse_value(text: str, kind: str) -> Value:
    """A value of a field table as Python has it; words and fractions with % stay texts."""
    if kind == "bool":
        return text in ("true", "yes", "on", "1")
    if kind in ("real", "int", "malicious"):
        try:
            number = float(text)
            return int(text) if number.is_integer() and text.lstrip("-").isdigit() else number
        except ValueError:
            pass
    return text


class Kind:
    """A rule, attack, ... by name. Calling it with keyword arguments gives its text (name:key=value,...) or, for a rule, a reef.Rule."""

    def __init__(self, family: str, index: int) -> None:
        self.family = family
        name = family.encode()

        def text(part: str) -> str:
            found: bytes = lib.reef_ffi_kind(context().pointer, name, index, part.encode())
            return found.decode()

        self.name = text("name")
        self.summary = text("summary")
        self.citation = text("citation")
        self.is_mixer = family == "rule" and bool(lib.reef_ffi_is_mixer(context().pointer, index))
        bits: int = lib.reef_ffi_traits(context().pointer, name, index)
        self.traits = tuple(t for i, t in enumerate(_TRAITS) if bits >> i & 1) if family == "rule" else ()
        self.fields = tuple(_field(name, index, i) for i in range(lib.reef_ffi_fields(context().pointer, name, index)))
        self.__doc__ = self._document()
        self.__name__ = self.name
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(_python_name(f.name), inspect.Parameter.KEYWORD_ONLY, default=f.value) for f in self.fields])

    def _document(self) -> str:
        parts = [self.summary[:1].upper() + self.summary[1:] + "."]
        if self.citation:
            parts.append(self.citation)
        if self.fields:
            parts.append("Parameters, with their defaults:\n\n" + "\n".join(f.describe() for f in self.fields))
        return "\n\n".join(parts)

    def __call__(self, **parameters: Value) -> Any:
        if self.family == "rule":
            from ._rule import Rule

            return Rule(make_spec(self.name, parameters))
        return make_spec(self.name, parameters)

    def __repr__(self) -> str:
        return f"<{self.family} {self.name}: {self.summary}>"


def _field(family: bytes, kind: int, index: int) -> Field:
    def text(part: str) -> str:
        found: Optional[bytes] = lib.reef_ffi_field(context().pointer, family, kind, index, part.encode())
        return found.decode() if found else ""

    words: list[str] = []
    while word := lib.reef_ffi_field_word(context().pointer, family, kind, index, len(words)):
        words.append(word.decode())
    low, high = (lib.reef_ffi_field_limit(context().pointer, family, kind, index, end) for end in (0, 1))
    limited = low != 0 or high != 0
    return Field(text("name"), _TYPES[lib.reef_ffi_field_type(context().pointer, family, kind, index)], text("preset"),
                 low if limited else None, high if limited else None, text("unit"), text("help"), tuple(words))


def _python_name(name: str) -> str:
    """Names that Python keeps for itself get an underscore at the end: from_."""
    return name + "_" if keyword.iskeyword(name) else name


def write_value(name: str, value: Value) -> str:
    """A value as text in name:key=value."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (numbers.Integral, str)):
        return str(value)
    if isinstance(value, numbers.Real):
        return repr(float(value))
    raise TypeError(f"{name} is {value!r:.40}; parameters are numbers, booleans or strings")


def make_spec(spec: str, parameters: dict[str, Value]) -> str:
    """The rule string with parameters added to its last part."""
    if not parameters:
        return spec
    last = spec.rsplit("|", 1)[-1]
    names = {name: name[:-1] if keyword.iskeyword(name[:-1]) and name.endswith("_") else name for name in parameters}
    pairs = ",".join(f"{names[name]}={write_value(name, value)}" for name, value in parameters.items())
    return spec.rstrip() + (":" if ":" not in last else "," if not last.rstrip().endswith(":") else "") + pairs


@lru_cache(maxsize=None)
def kinds(family: str) -> dict[str, Kind]:
    """All kinds of a family (one of FAMILIES) by name."""
    if family not in FAMILIES:
        raise ValueError(f"no family {family!r}; there are {', '.join(FAMILIES)}")
    found = (Kind(family, index) for index in range(lib.reef_ffi_kinds(context().pointer, family.encode())))
    return {kind.name: kind for kind in found}


def load_plugin(path: Union[str, "os.PathLike[str]"]) -> None:
    """Loads a shared library with rules, attacks and problems of your own (docs/plugins.md): they can then be named in rule strings and
    experiment files like the others. A plug-in is code: load only what you trust. REEF_PLUGINS=PATH:PATH in the environment does the
    same when the package is first used. Not while aggregations, runs or experiments are under way."""
    add_plugin(os.fspath(path))
    kinds.cache_clear()


def rules() -> dict[str, Kind]:
    """The aggregation rules and pre-aggregators by name, with summary, citation, traits and fields; help() of one shows all."""
    return dict(kinds("rule"))


def attacks() -> dict[str, Kind]:
    """The attacks by name; calling one with keyword arguments gives its text, name:key=value,..."""
    return dict(kinds("attack"))
