"""libreef through ctypes: where it is, what its calls take, and its errors as exceptions.

Only handles, numbers, pointers to numbers and texts cross the border (reef/ffi.h); the layout of no struct is known here.
ctypes lets go of the interpreter's lock during every call.
"""
from __future__ import annotations

import ctypes as c
import ctypes.util
import numbers
import os
import sys
import threading
from pathlib import Path
from typing import Any, Iterable, Optional

F32, F64, F16, BF16, F8_E4M3, F8_E5M2 = range(6)
TEXT_ROOM = 1024


class ReefError(ValueError):
    """What the library refuses, in a sentence. `status` is its number in reef/status.h, `kind` a few words for that."""

    def __init__(self, text: str, status: int, kind: str) -> None:
        super().__init__(text)
        self.status = status
        self.kind = kind

    def __reduce__(self) -> Any:
        """For pools of processes, which send it back."""
        return ReefError, (str(self), self.status, self.kind), {**self.__dict__}


def _candidates() -> list[str]:
    here = Path(__file__).resolve().parent
    given = os.environ.get("REEF_LIBRARY")
    if given:
        return [given]
    found = ctypes.util.find_library("reef")
    beside = here / "libreef.so"  # in an installed package
    built = here.parent.parent / "build" / "release" / "libreef.so"  # in a source tree
    return [str(path) for path in (beside, built) if path.exists()] + ([found] if found else [])


def _load() -> c.CDLL:
    paths = _candidates()
    for path in paths:
        library = c.CDLL(path)
        if hasattr(library, "reef_ffi_apply"):
            return library
    found = f"lacks the functions that this package needs ({', '.join(paths)})" if paths else "was not found"
    raise ImportError(f"libreef {found}; build it with `make`, or set REEF_LIBRARY to its path")


lib = _load()
if (Path(__file__).resolve().parent / "data").is_dir():  # in an installed package: what experiments read
    os.environ.setdefault("REEF_DATA", str(Path(__file__).resolve().parent / "data"))

_p, _s, _n, _i, _d, _l = c.c_void_p, c.c_char_p, c.c_ssize_t, c.c_int, c.c_double, c.c_int64
_text = [c.c_char_p, c.c_size_t]
PROGRESS = c.CFUNCTYPE(None, _p, _n, _n, _n, _n, _d)
GRADIENTS = c.CFUNCTYPE(None, _p, _n, _p, _p, _p, _p, _l, _l, _l)
_into = [_p, c.c_size_t]  # a text that a callback fills in
MAKE = c.CFUNCTYPE(_l, _p, _s, _n, c.c_uint64, c.POINTER(_n), _p, *_into)
END = c.CFUNCTYPE(None, _p, _l)
START = c.CFUNCTYPE(_i, _p, _l, _n, _p, *_into)
ASK = c.CFUNCTYPE(_i, _p, _l, _n, _p, _p, _p, _p, _l, _l, _l, _n, *_into)
SCORE = c.CFUNCTYPE(_i, _p, _l, _p, c.POINTER(_d), *_into)

_PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "reef_version": (_s, []),
    "reef_status_text": (_s, [_i]),
    "reef_ffi_kinds": (_n, [_p, _s]),
    "reef_ffi_kind": (_s, [_p, _s, _n, _s]),
    "reef_ffi_traits": (c.c_uint, [_p, _s, _n]),
    "reef_ffi_is_mixer": (_i, [_p, _n]),
    "reef_ffi_fields": (_n, [_p, _s, _n]),
    "reef_ffi_field": (_s, [_p, _s, _n, _n, _s]),
    "reef_ffi_field_type": (_i, [_p, _s, _n, _n]),
    "reef_ffi_field_limit": (_d, [_p, _s, _n, _n, _i]),
    "reef_ffi_field_word": (_s, [_p, _s, _n, _n, _n]),
    "reef_ffi_context": (_i, [_p, _n, *_text]),
    "reef_context_destroy": (None, [_p]),
    "reef_ffi_plugin": (_i, [_p, _s, *_text]),
    "reef_ffi_agg": (_i, [_p, _p, _s, *_text]),
    "reef_agg_destroy": (None, [_p]),
    "reef_agg_print": (c.c_size_t, [_p, _s, c.c_size_t]),
    "reef_agg_traits": (c.c_uint, [_p]),
    "reef_agg_tolerates": (_n, [_p, _n]),
    "reef_ffi_report": (_i, [_p, _p, _n, *_text]),
    "reef_report_destroy": (None, [_p]),
    "reef_report_keep_shares": (None, [_p, _p, _p]),
    "reef_report_keep_segments": (None, [_p, _p]),
    "reef_report_trust": (_p, [_p]),
    "reef_report_rejected": (_p, [_p]),
    "reef_report_reason": (_i, [_p, _n]),
    "reef_report_masked": (_l, [_p]),
    "reef_report_centre_share": (_d, [_p]),
    "reef_report_efficiency": (_d, [_p]),
    "reef_report_dominant": (_n, [_p]),
    "reef_report_mean_iterations": (_d, [_p]),
    "reef_report_max_iterations": (_i, [_p]),
    "reef_report_unconverged": (_l, [_p]),
    "reef_ffi_state": (_i, [_p, _p, _n, _n, _p, _i, *_text]),
    "reef_state_destroy": (None, [_p]),
    "reef_state_reset": (None, [_p]),
    "reef_state_size": (c.c_size_t, [_p]),
    "reef_ffi_state_save": (_i, [_p, _p, c.c_size_t, *_text]),
    "reef_ffi_state_load": (_i, [_p, _p, c.c_size_t, *_text]),
    "reef_state_centre": (_p, [_p, _n]),
    "reef_ffi_set_centre": (_i, [_p, _n, _p, *_text]),
    "reef_ffi_vote": (_i, [_n, _n, _n, _p, _p, _p, _p, *_text]),
    "reef_ffi_gram": (_i, [_p, _n, _n, _i, _p, _p, *_text]),
    "reef_ffi_apply": (_i, [_p, _n, _n, _p, _p, _p, _p, _p, _n, _l, _p, _p, *_text]),
    "reef_ffi_apply_senders": (_i, [_p, _n, _n, _p, _p, _p, _p, _p, _n, _l, _p, _d, _p, _p, *_text]),
    "reef_ffi_prepare": (_i, [_p, _p, _n, _n, _i, *_text]),
    "reef_ffi_prepared_apply": (_i, [_p, _p, _p, _l, _p]),
    "reef_ffi_prepared_destroy": (None, [_p]),
    "reef_state_age": (_l, [_p, _l]),
    "reef_state_senders": (_n, [_p]),
    "reef_state_set_seed": (None, [_p, c.c_uint64]),
    "reef_report_factor_count": (_n, [_p]),
    "reef_report_factor_name": (_s, [_p, _n]),
    "reef_report_factor_meaning": (_s, [_p, _n]),
    "reef_report_factor": (_d, [_p, _n, _n]),
    "reef_report_explain": (c.c_size_t, [_p, _n, _s, c.c_size_t]),
    "reef_report_number_count": (_n, [_p]),
    "reef_report_number_name": (_s, [_p, _n]),
    "reef_report_number_meaning": (_s, [_p, _n]),
    "reef_report_number": (_d, [_p, _n]),
    "reef_ffi_problem": (_i, [_p, _p, _n, _n, _p, _p, GRADIENTS, _p, *_text]),
    "reef_problem_destroy": (None, [_p]),
    "reef_ffi_problem_kind": (_i, [_p, _s, _s, MAKE, END, START, ASK, SCORE, _p, *_text]),
    "reef_ffi_kind_destroy": (None, [_p]),
    "reef_ffi_register": (_i, [_p, _p, *_text]),
    "reef_ffi_graph": (_i, [_p, _p, _s, _s, _n, c.c_uint64, *_text]),
    "reef_graph_destroy": (None, [_p]),
    "reef_ffi_links": (_i, [_p, _p, _s, _p, c.c_uint64, *_text]),
    "reef_links_destroy": (None, [_p]),
    "reef_ffi_attack": (_i, [_p, _p, _s, *_text]),
    "reef_attack_destroy": (None, [_p]),
    "reef_ffi_run": (_i, [_p, _p, _p, _s, _p, _p, _p, _p, _p, c.c_uint64, _i, *_text]),
    "reef_run_destroy": (None, [_p]),
    "reef_ffi_run_step": (_i, [_p, _l, *_text]),
    "reef_run_round": (_l, [_p]),
    "reef_run_model": (_p, [_p, _n]),
    "reef_run_trust": (_n, [_p, _n, _p, _p, _n]),
    "reef_ffi_run_counts": (None, [_p, _p]),
    "reef_ffi_experiment": (_i, [_p, _p, _s, _p, _n, *_text]),
    "reef_experiment_destroy": (None, [_p]),
    "reef_experiment_name": (_s, [_p]),
    "reef_experiment_cells": (_n, [_p]),
    "reef_experiment_axes": (_n, [_p]),
    "reef_experiment_axis": (_s, [_p, _n]),
    "reef_ffi_experiment_report": (_i, [_s, *_text]),
    "reef_ffi_experiment_run": (_i, [_p, _s, _i, _i, PROGRESS, _p, _p, _p, *_text]),
}
for _name, (_result, _arguments) in _PROTOTYPES.items():
    _function = getattr(lib, _name)
    _function.restype = _result
    _function.argtypes = _arguments

def spelled(value: str, what: str) -> bytes:
    """A text for the library, which would take it to end at its first NUL."""
    if "\0" in value:
        raise ValueError(f"{what} {value!r} contains a NUL character")
    return value.encode()


version: str = lib.reef_version().decode()


def call(function: Any, *arguments: Any) -> None:
    """Calls a function that ends in (text, room) and raises what it complains about."""
    text = c.create_string_buffer(TEXT_ROOM)
    status = function(*arguments, text, TEXT_ROOM)
    if status != 0:
        kind = lib.reef_status_text(status).decode()
        sentence = text.value.decode(errors="replace") or kind
        if kind == "out of memory":
            raise MemoryError(sentence)
        raise ReefError(sentence, status, kind)


_counting = threading.RLock()  # a collection may come while a handle is being made


class Handle:
    """An object of the library, destroyed with this one, but after all handles that need it: Python's collector of cycles ends
    objects in any order."""

    def __init__(self, destroy: str, make: Any, *arguments: Any, context: Optional[Handle] = None,
                 needs: Iterable[Optional[Handle]] = ()) -> None:
        self._destroy = getattr(lib, destroy)
        self.pointer = c.c_void_p()
        self._needs = [handle for handle in (context, *needs) if handle is not None]
        self._users = 0
        self._ended = False
        before = () if context is None else (context.pointer,)
        call(make, *before, c.byref(self.pointer), *arguments)
        with _counting:
            for handle in self._needs:
                handle._users += 1

    def _end(self) -> None:
        if self._users == 0 and self._ended and self.pointer:
            self._destroy(c.byref(self.pointer))
            for handle in self._needs:
                handle._users -= 1
                handle._end()

    def __del__(self, _finalizing: Any = sys.is_finalizing) -> None:
        if not _finalizing() and getattr(self, "_ended", None) is not None:  # at the end of the process nothing is left to call
            with _counting:
                self._ended = True
                self._end()


class Context(Handle):
    """Threads and what plug-ins bring, shared by everything made in it."""

    def __init__(self, threads: int, plugins: Iterable[str], problems: Iterable[Handle] = ()) -> None:
        kinds = [*_problems, *problems]
        super().__init__("reef_context_destroy", lib.reef_ffi_context, threads, needs=kinds)
        for path in plugins:
            self.load(path)
        for kind in kinds:
            call(lib.reef_ffi_register, self.pointer, kind.pointer)

    def load(self, path: str) -> None:
        call(lib.reef_ffi_plugin, self.pointer, os.fsencode(path))


_plugins = [path for path in os.environ.get("REEF_PLUGINS", "").split(":") if path]
_problems: list[Handle] = []  # kinds of problems written in Python, of every context
_contexts: dict[int, Context] = {}
_lock = threading.Lock()
_threads = 0


def context(threads: Optional[int] = None) -> Context:
    """The context with so many threads; None: what set_threads said."""
    wanted = _threads if threads is None else threads
    with _lock:
        if wanted not in _contexts:
            _contexts[wanted] = Context(wanted, _plugins)
        return _contexts[wanted]


def add_plugin(path: str) -> None:
    """Loads a plug-in into every context, those to come too. Either all of them have it afterwards or, with an exception, none."""
    context()
    with _lock:
        for made in _contexts.values():  # all have the same kinds, so that the first one is refused or all are taken
            made.load(path)
        _plugins.append(path)


def context_with(threads: Optional[int], problems: Iterable[Handle]) -> Context:
    """A context of its own that has these kinds of problems beside everything else."""
    with _lock:
        return Context(_threads if threads is None else threads, _plugins, problems)


def add_problem(kind: Handle) -> None:
    """Adds a kind of problem to every context, those to come too."""
    context()
    with _lock:
        for made in _contexts.values():  # all have the same kinds, so that the first one is refused or all are taken
            call(lib.reef_ffi_register, made.pointer, kind.pointer)
        _problems.append(kind)


def set_threads(threads: int) -> None:
    """Threads that aggregations made from now on may use; 0: as many as the processor affinity allows, which is the default.
    Results do not depend on it."""
    global _threads
    if not isinstance(threads, numbers.Integral):
        raise TypeError(f"threads is {threads!r:.40}, not a whole number")
    context(threads)
    _threads = threads


def get_threads() -> int:
    """What set_threads said last; 0: all."""
    return _threads
