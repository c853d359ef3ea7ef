"""Arguments that the library would never see: their types, and messages that name the argument."""
from __future__ import annotations

import numbers
import operator
from collections.abc import Iterable
from typing import Any, Optional

import numpy as np

Array = np.ndarray[Any, Any]


def whole(value: Any, what: str, least: Optional[int] = None, most: Optional[int] = None) -> int:
    """A whole number within its range, the ends included."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is {value!r:.40}, not a whole number") from None
    if (least is not None and number < least) or (most is not None and number > most):
        limit = f"at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{what} is {number}; it must be {limit}")
    return number


def check_callable(value: Any, what: str) -> None:
    """What is to be called later."""
    if not callable(value):
        raise TypeError(f"{what} is {value!r:.40}, not a function")


def step_size(step: Any) -> float:
    """Of its type alone; the library checks its range."""
    if not isinstance(step, numbers.Real):
        raise TypeError(f"step is {step!r:.40}, not a number")
    return float(step)


def weight_vector(weights: Any, rows: int) -> Optional[Array]:
    """One number per row; the library checks their range."""
    if weights is None:
        return None
    try:
        given = np.asarray(weights)
        if given.dtype.kind not in "biuf" and given.size:
            raise TypeError
        vector = np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"weights are {weights!r:.40}; pass one number per row") from None
    if given.shape != (rows,):
        raise ValueError(f"weights have the shape {given.shape}; there are {rows} rows")
    return vector


def sender_ids(ids: Any, rows: int, distinct: bool) -> Optional[list[Any]]:
    """One integer or string per row."""
    if ids is None:
        return None
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise TypeError(f"ids is {ids!r:.40}; pass one integer or string per row")
    given = [i.item() if isinstance(i, np.generic) else i for i in ids]
    if len(given) != rows:
        raise ValueError(f"{len(given)} ids for {rows} rows")
    for name in given:
        if not isinstance(name, (int, str)) or isinstance(name, bool):
            raise TypeError(f"ids must be all integers or all strings, and one of them is {name!r:.40}")
    if distinct and len(set(given)) < rows:
        twice = next(name for place, name in enumerate(given) if name in given[:place])
        raise ValueError(f"two rows have the id {twice!r}: each sender has one row")
    return given


def malicious_flags(malicious: Any, agents: int) -> Array:
    """A count (the last ones), numbers of agents, or one flag per agent."""
    flags = np.zeros(agents, bool)
    if isinstance(malicious, (int, np.integer)):
        flags[agents - whole(malicious, "malicious", 0, agents):] = True
        return flags
    if isinstance(malicious, (str, bytes)) or not isinstance(malicious, Iterable):
        raise TypeError(f"malicious is {malicious!r:.40}; pass how many agents are malicious, a list of their numbers, or one flag per agent")
    chosen = list(malicious)
    if len(chosen) == agents and all(isinstance(flag, (bool, np.bool_)) for flag in chosen):
        return np.array(chosen, bool)
    flags[[whole(agent, "an agent in malicious", 0, agents - 1) for agent in chosen]] = True
    return flags


