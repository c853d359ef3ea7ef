"""Problems written in Python as kinds that experiment files can name.

A problem is an object with

    dimension                         M, numbers of a model
    start()                           M numbers where all agents start; start(repetition) if it takes one
    gradient(models, agents, step)    (n, M) gradients at models (n, M) of these agents; step: a reef.Step
    evaluate(models)                  for models (n, M) a dict of n values each: "loss" and, of classifiers, "accuracy" and
                                      "worst_accuracy"; or n losses
    samples                           optional: how many samples each agent has, for weights=samples

and is made by a class or function called with agents=K, seed=S and whatever else the file sets. It is asked by one thread at a time. Same
seed, same bits: draw from step.generator(seed, agent), or else from a pure function of agent, step.repetition, step.round and step.step.
"""
from __future__ import annotations

import ctypes as c
import importlib.util
import inspect
import itertools
import os
import sys
import threading
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Union

import numpy as np

from . import _library
from ._checks import check_callable
from ._library import Handle, lib, spelled
from ._rows import is_tensor
from ._simulate import Array, Step

MakeProblem = Callable[..., Any]
_NEEDED = ("dimension", "start", "gradient", "evaluate")


def plain_value(text: str) -> Union[str, int, float, bool]:
    """A value of an experiment file: whole number, number, true or false, else the text."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def split_parameters(text: str) -> dict[str, Union[str, int, float, bool]]:
    """key=value,... as the library hands it on; a value in parentheses may hold commas."""
    found: dict[str, Union[str, int, float, bool]] = {}
    depth, begin = 0, 0
    for place, character in enumerate(text + ","):
        depth += (character == "(") - (character == ")")
        if character != "," or depth > 0 or place == begin:
            continue
        key, _, value = text[begin:place].partition("=")
        key, value, begin = key.strip(), value.strip(), place + 1
        if key in found:
            raise ValueError(f"{key} is given twice")
        found[key] = plain_value(value[1:-1] if value.startswith("(") and value.endswith(")") else value)
    return found


class _Object:
    """A problem with its lock, and what the library must know of it."""

    def __init__(self, problem: Any, agents: int) -> None:
        missing = [name for name in _NEEDED if not hasattr(problem, name)]
        if missing:
            raise TypeError(f"{type(problem).__name__} has no {', '.join(missing)}; a problem needs {', '.join(_NEEDED)}")
        self.problem = problem
        self.lock = threading.RLock()
        self.dimension = int(problem.dimension)
        self.by_repetition = bool(inspect.signature(problem.start).parameters)
        samples = getattr(problem, "samples", None)
        self.samples = np.ones(agents, np.int64) if samples is None else np.asarray(samples, np.int64)
        if self.samples.shape != (agents,):
            raise ValueError(f"samples have the shape {self.samples.shape}; there are {agents} agents")


def _numbers(found: Any, shape: tuple[int, ...], what: str) -> Array:
    array: Array = found.detach().cpu().numpy() if is_tensor(found) else np.asarray(found)
    if array.shape != shape:
        raise ValueError(f"{what} returned the shape {array.shape}; {shape} was wanted")
    return array


def _view(kind: Any, address: int, *shape: int) -> Array:
    return np.ctypeslib.as_array((kind * int(np.prod(shape))).from_address(address)).reshape(shape)


class ProblemKind:
    """The functions of one kind for the library. What they raise is kept in `error`; the library gets its text."""

    def __init__(self, name: str, make: MakeProblem) -> None:
        self.name = name
        self.make = make
        self.error: Optional[BaseException] = None
        self._objects: dict[int, _Object] = {}
        self._count = itertools.count()
        self._calls = (_library.MAKE(self._make), _library.END(self._end), _library.START(self._start),
                       _library.ASK(self._ask), _library.SCORE(self._score))
        summary = (inspect.getdoc(make) or "a problem written in Python").split("\n")[0][:150]
        self.handle = Handle("reef_ffi_kind_destroy", lib.reef_ffi_problem_kind, spelled(name, "the name of a problem"),
                             spelled(summary, "the summary"), *self._calls, None)
        self.handle.owner = self  # type: ignore[attr-defined] # the functions live as long as the handle

    def _fail(self, where: str, error: BaseException, text: int, room: int) -> int:
        if self.error is None:
            self.error = error
        said = f"{where}: {type(error).__name__}: {error}".replace("\n", " ").encode()[:room - 1].decode(errors="ignore").encode()
        c.memmove(text, said + b"\0", len(said) + 1)
        return -1

    def _make(self, _: Any, parameters: bytes, agents: int, seed: int, dimension: Any, samples: int, text: int, room: int) -> int:
        try:
            made = _Object(self.make(agents=agents, seed=seed, **split_parameters(parameters.decode())), agents)
            dimension[0] = made.dimension
            _view(c.c_int64, samples, agents)[:] = made.samples
            number = next(self._count)
            self._objects[number] = made
            return number
        except BaseException as error:  # noqa: BLE001 - nothing may fly through the library
            return self._fail(getattr(self.make, "__name__", self.name), error, text, room)

    def _end(self, _: Any, number: int) -> None:
        self._objects.pop(number, None)

    def _start(self, _: Any, number: int, repetition: int, model: int, text: int, room: int) -> int:
        try:
            made = self._objects[number]
            with made.lock:
                found = made.problem.start(repetition) if made.by_repetition else made.problem.start()
                _view(c.c_float, model, made.dimension)[:] = _numbers(found, (made.dimension,), "start")
            return 0
        except BaseException as error:  # noqa: BLE001
            return self._fail("start", error, text, room)

    def _ask(self, _: Any, number: int, count: int, agents: int, models: int, gradients: int, flipped: Optional[int], round: int,
             step: int, size: int, repetition: int, text: int, room: int) -> int:
        try:
            made = self._objects[number]
            who = _view(c.c_int32, agents, count).copy()
            lies = _view(c.c_uint8, flipped, count).astype(bool) if flipped else None
            at = _view(c.c_float, models, count, made.dimension)
            with made.lock:
                found = made.problem.gradient(at, who, Step(who, round, step, size, lies, repetition))
                _view(c.c_float, gradients, count, made.dimension)[:] = _numbers(found, at.shape, "gradient")
            return 0
        except BaseException as error:  # noqa: BLE001
            return self._fail("gradient", error, text, room)

    def _score(self, _: Any, number: int, model: int, score: Any, text: int, room: int) -> int:
        try:
            made = self._objects[number]
            with made.lock:
                found = made.problem.evaluate(_view(c.c_float, model, 1, made.dimension))
            values = found if isinstance(found, Mapping) else {"loss": found}
            unknown = set(values) - {"loss", "accuracy", "worst_accuracy"}
            if unknown or "loss" not in values:
                raise ValueError(f"evaluate returned {', '.join(sorted(values)) or 'nothing'}; loss, accuracy and worst_accuracy are known")
            for place, name in enumerate(("loss", "accuracy", "worst_accuracy")):
                if name in values:
                    score[place] = float(_numbers(values[name], (1,), f"evaluate's {name}")[0])
            return 0
        except BaseException as error:  # noqa: BLE001
            return self._fail("evaluate", error, text, room)


def load_class(module: str, name: str) -> MakeProblem:
    """The class or function `name` of a file, or of a module that can be imported."""
    path = Path(module)
    if not path.suffix == ".py":
        loaded = importlib.import_module(module)
    else:
        place = path.resolve()
        if not place.is_file():
            raise FileNotFoundError(f"there is no file {module} (in {os.getcwd()})")
        found = importlib.util.spec_from_file_location(f"reef_problem_{place.stem}", place)
        assert found is not None and found.loader is not None
        loaded = importlib.util.module_from_spec(found)
        sys.modules[found.name] = loaded  # dataclasses and pickle look there
        found.loader.exec_module(loaded)
    if not callable(getattr(loaded, name, None)):
        raise AttributeError(f"{module} has no class {name!r}")
    make: MakeProblem = getattr(loaded, name)
    return make


def from_file(**parameters: Any) -> Any:
    """code of a file that the experiment names: module and class"""
    given = dict(parameters)
    module, name = given.pop("module", None), given.pop("class", None)
    if module is None or name is None:
        raise ValueError("kind: python needs a module and a class, as in {kind: python, module: mine.py, class: Mine}")
    return load_class(str(module), str(name))(**given)


def register_problem(name: str, make: MakeProblem) -> None:
    """Makes a problem written in Python known under a name, as plug-ins do: reef.run and reef.kinds("problem") have it from now on.
    make(agents=K, seed=S, **parameters) returns an object as described in docs/python.md. Not while experiments are under way."""
    from ._kinds import kinds

    check_callable(make, "make")
    _library.add_problem(ProblemKind(name, make).handle)
    kinds.cache_clear()
