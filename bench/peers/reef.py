"""Just enough of libreef through ctypes to time it: a context with a number of threads, float32 rows aggregated."""
from __future__ import annotations

import ctypes as c

import numpy as np

REEF_F32 = 0


class Input(c.Structure):
    """reef_input of reef/agg.h."""

    _fields_ = [("rows", c.POINTER(c.c_void_p)), ("weights", c.c_void_p), ("ids", c.c_void_p), ("has_self", c.c_bool),
                ("self", c.c_ssize_t), ("round", c.c_int64), ("state", c.c_void_p)]


class Error(c.Structure):
    """reef_error of reef/status.h."""

    _fields_ = [("status", c.c_int), ("text", c.c_char * 320)]


class Reef:
    """The library with `threads` threads (0: all). Lives as long as the process, so nothing is destroyed."""

    def __init__(self, library: str, threads: int) -> None:
        self.lib = c.CDLL(library)
        self.lib.reef_version.restype = c.c_char_p
        self.version: str = self.lib.reef_version().decode()
        self.context = c.c_void_p()
        error = Error()
        self._check(self.lib.reef_context_create(c.byref(self.context), None, c.byref(error)), error)
        self._check(self.lib.reef_context_set_threads(self.context, c.c_ssize_t(threads), c.byref(error)), error)

    def aggregator(self, spec: str) -> Aggregator:
        return Aggregator(self, spec)

    @staticmethod
    def _check(status: int, error: Error) -> None:
        if status != 0:
            raise RuntimeError(f"reef: {error.text.decode()}")


class Aggregator:
    def __init__(self, reef: Reef, spec: str) -> None:
        self.reef = reef
        self.handle = c.c_void_p()
        error = Error()
        status = reef.lib.reef_agg_create_in(reef.context, c.byref(self.handle), spec.encode(), c.byref(error))
        reef._check(status, error)

    def bind(self, x: np.ndarray, out: np.ndarray) -> Call:
        """A call that aggregates the rows of x (float32, contiguous along the last axis) into out."""
        k = x.shape[0]
        m = x.size // k
        if x.dtype != np.float32 or out.dtype != np.float32 or out.size != m or not out.flags.c_contiguous:
            raise ValueError("rows and out must be float32, out contiguous and as long as a row")
        if not x[0].flags.c_contiguous:
            raise ValueError("rows must be contiguous")
        return Call(self, x, out, k, m)


class Call:
    """Arguments made ready once, so that calling it times the library and not ctypes."""

    def __init__(self, agg: Aggregator, x: np.ndarray, out: np.ndarray, k: int, m: int) -> None:
        self.keep = (agg, x)
        self.out = out
        self.error = Error()
        self.rows = (c.c_void_p * k)(*(x.ctypes.data + row * x.strides[0] for row in range(k)))
        self.input = Input(rows=c.cast(self.rows, c.POINTER(c.c_void_p)))
        self.arguments = (agg.handle, c.byref(self.input), c.c_ssize_t(k), c.c_ssize_t(m), REEF_F32,
                          c.c_void_p(out.ctypes.data), None, c.byref(self.error))
        self.apply = agg.reef.lib.reef_agg_apply

    def __call__(self) -> np.ndarray:
        Reef._check(self.apply(*self.arguments), self.error)
        return self.out
