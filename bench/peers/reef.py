"""Just enough of libreef through ctypes to time it: a context with a number of threads, float32 rows aggregated."""
from __future__ import annotations

import ctypes as c

import numpy as np

REEF_FFI_F32 = 0  # of reef/ffi.h
ROOM = 320  # of error texts


class Reef:
    """The library with `threads` threads (0: all). Lives as long as the process, so nothing is destroyed."""

    def __init__(self, library: str, threads: int) -> None:
        self.lib = c.CDLL(library)
        self.lib.reef_version.restype = c.c_char_p
        self.version: str = self.lib.reef_version().decode()
        self.context = c.c_void_p()
        text = c.create_string_buffer(ROOM)
        self._check(self.lib.reef_ffi_context(c.byref(self.context), c.c_ssize_t(threads), text, c.c_size_t(ROOM)), text)

    def aggregator(self, spec: str) -> Aggregator:
        return Aggregator(self, spec)

    @staticmethod
    def _check(status: int, text: c.Array) -> None:
        if status != 0:
            raise RuntimeError(f"reef: {text.value.decode()}")


class Aggregator:
    def __init__(self, reef: Reef, spec: str) -> None:
        self.reef = reef
        self.handle = c.c_void_p()
        text = c.create_string_buffer(ROOM)
        status = reef.lib.reef_ffi_agg(reef.context, c.byref(self.handle), spec.encode(), text, c.c_size_t(ROOM))
        reef._check(status, text)

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
        self.text = c.create_string_buffer(ROOM)
        self.rows = (c.c_void_p * k)(*(x.ctypes.data + row * x.strides[0] for row in range(k)))
        self.outs = (c.c_void_p * 1)(out.ctypes.data)
        self.lengths = (c.c_ssize_t * 1)(m)
        self.types = (c.c_int * 1)(REEF_FFI_F32)
        self.arguments = (agg.handle, c.c_ssize_t(k), c.c_ssize_t(1), self.lengths, self.types, self.rows, self.outs, None,
                          c.c_ssize_t(-1), c.c_int64(0), None, None, self.text, c.c_size_t(ROOM))
        self.apply = agg.reef.lib.reef_ffi_apply

    def __call__(self) -> np.ndarray:
        Reef._check(self.apply(*self.arguments), self.text)
        return self.out
