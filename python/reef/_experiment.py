"""Experiments from YAML files, and their results as tables, pandas frames and figures."""
from __future__ import annotations

import contextlib
import csv
import ctypes as c
import json
import os
import tempfile
import threading
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping, Optional, Union

from . import _library
from ._library import Handle, ReefError, call, lib
from ._problem import MakeProblem, ProblemKind, from_file

Cell = Union[str, int, float]


class Results:
    """The results of an experiment.

    summary, curves  pandas frames: one row per configuration, and one per configuration and point of the learning curve
    rows, points     the same as lists of dicts, without pandas
    axes             what varies, in the order of the file
    manifest         version, times, and the resolved configuration of every cell
    plot()           a figure, with matplotlib
    """

    def __init__(self, folder: Union[str, os.PathLike[str]], axes: Optional[list[str]] = None, stopped: bool = False,
                 keep: Any = None) -> None:
        self.folder = Path(folder)
        self.stopped = stopped
        self._keep = keep
        manifest = self.folder / "manifest.json"
        self.manifest: dict[str, Any] = json.loads(manifest.read_text()) if manifest.exists() else {}
        self.name: str = self.manifest.get("name", self.folder.name)
        self.axes = axes if axes is not None else self._guess_axes()

    def _guess_axes(self) -> list[str]:
        """What stands before the number of repetitions varies."""
        with open(self.folder / "summary.csv", newline="", encoding="utf-8") as file:
            head = next(csv.reader(file))
        return [name for name in head[:head.index("repetitions")] if name != "cell"] if "repetitions" in head else []

    def _read(self, name: str) -> list[dict[str, Cell]]:
        with open(self.folder / name, newline="", encoding="utf-8") as file:
            return [{key: _number(value) for key, value in row.items()} for row in csv.DictReader(file)]

    @property
    def rows(self) -> list[dict[str, Cell]]:
        return self._read("summary.csv")

    @property
    def points(self) -> list[dict[str, Cell]]:
        return self._read("curves.csv")

    @property
    def summary(self) -> Any:
        return _pandas().DataFrame(self.rows)

    @property
    def curves(self) -> Any:
        return _pandas().DataFrame(self.points)

    @property
    def metrics(self) -> list[str]:
        """Columns that can be plotted: in decibels where there are such."""
        columns = list(self.points[0]) if self.points else []
        return [name for name in columns if name not in self.axes and name not in ("cell", "round", "repetitions")
                and not name.endswith("_se") and f"{name}_db" not in columns]

    def plot(self, metric: Optional[str] = None, kind: Optional[str] = None, ax: Any = None, **style: Any) -> Any:
        """A figure on `ax` or on new axes, which are returned. Needs matplotlib.

        metric   a column of `metrics`, the first by default
        kind     "curves": metric against round, one line per cell; "final": steady state against the parameter that takes the
                 most numbers. By default the latter where there are more than 12 cells and such a parameter.
        """
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots()
        chosen = metric or self.metrics[0]
        along = self._parameter()
        kind = kind or ("final" if along and len(self.rows) > 12 else "curves")
        if kind not in ("curves", "final") or (kind == "final" and not along):
            raise ValueError(f"cannot draw kind={kind!r}; what varies here: {', '.join(self.axes) or 'nothing'}")
        across = along if kind == "final" and along else "round"
        table = self.rows if kind == "final" else self.points
        if not table or chosen not in table[0]:
            raise ValueError(f"unknown metric {chosen!r}; available: {', '.join(self.metrics)}")
        for label, (x, y) in self._lines(table, across, chosen).items():
            ax.plot(x, y, label=label, **style)
        ax.set_xlabel(across)
        ax.set_ylabel(chosen.replace("_db", " (dB)").replace("_", " "))
        ax.set_title(self.name)
        if kind == "final":
            ax.set_xscale("symlog", linthresh=_least_positive(row[across] for row in table))
        ax.legend()
        return ax

    def _parameter(self) -> Optional[str]:
        """The axis with the most different numbers, at least three."""
        table = self.rows
        counts = {axis: len({row[axis] for row in table}) for axis in self.axes
                  if all(isinstance(row[axis], (int, float)) for row in table)}
        best = max(counts, key=lambda axis: counts[axis], default=None)
        return best if best is not None and counts[best] >= 3 else None

    def _lines(self, table: list[dict[str, Cell]], across: str, metric: str) -> dict[str, tuple[list[Cell], list[Cell]]]:
        others = [axis for axis in self.axes if axis != across]
        lines: dict[str, tuple[list[Cell], list[Cell]]] = {}
        for row in table:
            label = ", ".join(f"{axis}={row[axis]}" if len(others) > 1 else str(row[axis]) for axis in others)
            x, y = lines.setdefault(label or self.name, ([], []))
            x.append(row[across])
            y.append(row[metric])
        return lines

    def __repr__(self) -> str:
        stopped = ", stopped early" if self.stopped else ""
        return f"<reef.Results {self.name}: {len(self.rows)} configurations over {', '.join(self.axes) or 'nothing'}{stopped}>"


def _least_positive(values: Iterable[Cell]) -> float:
    """Below it an axis that shows zero beside powers of ten is linear."""
    return min((float(value) for value in values if isinstance(value, (int, float)) and value > 0), default=1.0)


def _number(text: str) -> Cell:
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        return text


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError("data frames need pandas; `rows` and `points` work without it") from error
    return pandas


def _path(path: Any) -> bytes:
    name = os.fsencode(path)
    if b"\0" in name:
        raise ValueError(f"the path {path!r} contains a NUL character")
    return name


def _overrides(given: Mapping[str, Any]) -> list[bytes]:
    """path=value with the value as JSON, which is YAML; strategy__mu stands for strategy.mu."""
    return [f"{key.replace('__', '.')}={json.dumps(value)}".encode() for key, value in given.items()]


class _Progress:
    """Shows how far a run is, through tqdm when that is there."""

    def __init__(self, wanted: bool, name: str) -> None:
        self.bar: Any = None
        if wanted:
            try:
                from tqdm.auto import tqdm

                self.bar = tqdm(desc=name, unit="block", leave=False)
            except ImportError:
                pass
        self.callback = _library.PROGRESS(self._tell)

    def _tell(self, _: Any, items: int, items_done: int, cells: int, cells_done: int, seconds: float) -> None:
        if self.bar is not None:
            self.bar.total = items
            self.bar.set_postfix(cells=f"{cells_done}/{cells}", refresh=False)
            self.bar.update(items_done - self.bar.n)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()


def run(path: Union[str, os.PathLike[str]], overrides: Optional[Mapping[str, Any]] = None, *,
        folder: Union[None, str, os.PathLike[str]] = None, resume: bool = False, force: bool = False,
        progress: bool = True, threads: Optional[int] = None, problems: Optional[Mapping[str, MakeProblem]] = None,
        allow_code: bool = False, **more: Any) -> Results:
    """Runs the experiment of a YAML file (docs/experiments.md) and returns its Results.

    overrides   {"strategy.mu": 0.05, "rule": ["mean", "vref"]}; keyword arguments do the same: repetitions=10, strategy__mu=0.05
    folder      where results are kept; None: they live as long as the Results. resume: reuse what the folder has;
                force: replace results of another configuration there, which is an error otherwise
    progress    show it, through tqdm when that is installed
    problems    {"mine": MyProblem}: problems written in Python by the name that the file gives to their kind (docs/python.md)
    allow_code  the file may name code of its own: problem: {kind: python, module: mine.py, class: MyProblem}. Only for files you trust
    Ctrl-C ends the run cleanly and raises KeyboardInterrupt; finished configurations stay in the folder.
    """
    return run_texts(path, _overrides({**(overrides or {}), **more}), folder=folder, resume=resume, force=force, progress=progress,
                     threads=threads, problems=problems, allow_code=allow_code)


def run_texts(path: Any, texts: list[bytes], *, folder: Any, resume: bool, force: bool, progress: bool, threads: Optional[int],
              problems: Optional[Mapping[str, MakeProblem]] = None, allow_code: bool = False, home: Optional[Path] = None) -> Results:
    """run() with overrides as the command has them (path=value). Without a folder results go to home/NAME, if home is given."""
    own = [ProblemKind(name, make) for name, make in {**({"python": from_file} if allow_code else {}), **(problems or {})}.items()]
    with _explained(own):
        return _run(path, texts, folder, home, resume, force, progress, threads, own)


@contextlib.contextmanager
def _explained(own: list[ProblemKind]) -> Iterator[None]:
    """What Python code of a problem raised is the cause of the error that the library makes of it."""
    try:
        yield
    except ReefError as error:
        cause = next((kind.error for kind in own if kind.error is not None), None)
        if cause is not None and not isinstance(cause, Exception):  # Ctrl-C, or the end of the process
            raise cause
        raise error from cause


def _run(path: Any, texts: list[bytes], folder: Any, home: Optional[Path], resume: bool, force: bool, progress: bool,
         threads: Optional[int], own: list[ProblemKind]) -> Results:
    context = _library.context_with(threads, [kind.handle for kind in own]) if own else _library.context(threads)
    array = (c.c_char_p * max(len(texts), 1))(*texts)
    experiment = Handle("reef_experiment_destroy", lib.reef_ffi_experiment, _path(path), array, len(texts),
                        context=context)
    name = lib.reef_experiment_name(experiment.pointer).decode()
    axes = [lib.reef_experiment_axis(experiment.pointer, i).decode()
            for i in range(lib.reef_experiment_axes(experiment.pointer))]
    keep = None
    if folder is None and home is not None:
        folder = home / name
        folder.parent.mkdir(exist_ok=True)
    elif folder is None:
        keep = tempfile.TemporaryDirectory(prefix="reef-")
        folder = keep.name
    shown = _Progress(progress, name)
    try:
        stopped = _in_a_thread(experiment, _path(folder), resume, force, shown)
    finally:
        shown.close()
    return Results(folder, axes, stopped, keep)


def _in_a_thread(experiment: Handle, folder: bytes, resume: bool, force: bool, shown: _Progress) -> bool:
    """The run in a thread of its own, so that Ctrl-C reaches this one; it then tells the run to stop, and waits for it."""
    stop, stopped = c.c_int(0), c.c_int(0)
    failure: list[BaseException] = []

    def work() -> None:
        try:
            call(lib.reef_ffi_experiment_run, experiment.pointer, folder, int(resume), int(force), shown.callback, None,
                 c.byref(stop), c.byref(stopped))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=work, name="reef.run")
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.1)
    except BaseException:
        stop.value = 1
        thread.join()
        raise
    if failure:
        raise failure[0]
    return bool(stopped.value)
