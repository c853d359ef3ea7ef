"""Rows as the library wants them: pointers straight into numpy arrays and CPU tensors.

Callers hand over an array (K, ...), a list of K arrays, or a list of K models (dicts or lists of arrays). All become a Batch:
`tensors` named arrays per model, K models. PyTorch is never imported from here: tensors are known by what they offer.
"""
from __future__ import annotations

import ctypes as c
import sys
from collections.abc import Mapping
from typing import Any, Hashable, Optional, Sequence

import numpy as np

from ._library import BF16, F16, F32, F64

_NUMPY = {"float32": F32, "float64": F64, "float16": F16, "bfloat16": BF16}
_TORCH = {f"torch.{name}": kind for name, kind in _NUMPY.items()}
_HELP = "; copy=True converts"


def is_tensor(value: Any) -> bool:
    """A PyTorch tensor, told without importing PyTorch."""
    return hasattr(value, "data_ptr") and hasattr(value, "is_contiguous")


def is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or is_tensor(value)


def type_of(array: Any) -> Optional[int]:
    """Number of the type in reef/flat.h; None: the library does not take it."""
    if is_tensor(array):
        return _TORCH.get(str(array.dtype))
    dtype = array.dtype
    return _NUMPY.get(dtype.name) if dtype.isnative else None


def is_whole_number(array: Any) -> bool:
    """Integers and truth values: no mean of them makes sense."""
    if is_tensor(array):
        return str(array.dtype) in ("torch.bool", "torch.uint8", "torch.int8", "torch.int16", "torch.int32", "torch.int64")
    return array.dtype.kind in "biu"


def usable(array: Any) -> Optional[str]:
    """None if the library can read it as it lies there, else the reason why not."""
    if type_of(array) is None:
        return f"numbers of type {array.dtype} are not taken as they are (float32, float64, float16 and bfloat16 are)"
    if is_tensor(array):
        if array.device.type != "cpu":
            return f"the tensor is on {array.device}, not in the processor's memory"
        if str(array.layout) != "torch.strided":
            return f"the tensor has the layout {array.layout}"
        return None if array.is_contiguous() else "the tensor is not contiguous"
    if isinstance(array, np.ma.MaskedArray):
        return "the array has a mask, which would be ignored"
    return None if array.flags.c_contiguous else "the array is not contiguous"


def converted(array: Any) -> Any:
    """A copy that the library can read: contiguous, in memory, floating-point."""
    if is_tensor(array):
        tensor = array.detach().cpu()
        tensor = tensor if str(tensor.layout) == "torch.strided" else tensor.to_dense()
        return (tensor if type_of(tensor) is not None else tensor.double()).contiguous()
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError("an array with a mask; fill it first, with NaN to have its row left out")
    array = np.asarray(array)
    if array.dtype.kind not in "biuf" and array.dtype.name != "bfloat16":
        raise TypeError(f"{array.dtype} is no type of real numbers")
    keeps = array.dtype.name in _NUMPY
    return np.array(array, dtype=array.dtype.newbyteorder("=") if keeps else np.float64, order="C")


def pointer(array: Any) -> int:
    address: int = array.data_ptr() if is_tensor(array) else array.ctypes.data
    return address


def overlap(one: Any, other: Any) -> bool:
    """Whether two contiguous arrays share memory."""
    a, b = pointer(one), pointer(other)
    return a < b + _bytes(other) and b < a + _bytes(one)


def _bytes(array: Any) -> int:
    return int(array.numel() * array.element_size() if is_tensor(array) else array.nbytes)


def size_of(array: Any) -> int:
    return int(array.numel() if is_tensor(array) else array.size)


def empty_like(array: Any) -> Any:
    """Room for a result: same shape and type, contiguous, in memory."""
    if is_tensor(array):
        return sys.modules["torch"].empty(tuple(array.shape), dtype=array.dtype)
    return np.empty(array.shape, array.dtype)


class Batch:
    """K models of the same named tensors. `whole` are integer tensors, `real` the others."""

    def __init__(self, models: Sequence[Mapping[Hashable, Any]], copy: bool) -> None:
        for number, model in enumerate(models):
            _same_keys(models[0], model, number)
        models = [{key: _array(model[key], number, key, copy) for key in models[0]} for number, model in enumerate(models)]
        first = models[0]
        self.count = len(models)
        self.whole = [key for key in first if key is not None and is_whole_number(first[key])]
        self.real = [key for key in first if key not in self.whole]
        self.columns: dict[Hashable, list[Any]] = {
            key: [_usable(model[key], number, key, copy) if key in self.real else model[key]
                  for number, model in enumerate(models)] for key in first}
        for key in first:
            _same_shapes(self.columns[key], key, compare_types=key in self.real)
        if self.real:
            self._unify(copy)

    def _unify(self, copy: bool) -> None:
        """One type for all tensors: the widest one if copies are allowed."""
        types = {str(self.columns[key][0].dtype): type_of(self.columns[key][0]) for key in self.real}
        if len(types) > 1:
            if not copy:
                raise TypeError(f"the tensors have different types: {', '.join(types)}{_HELP}")
            self._widen("float64" if F64 in types.values() else "float32")
        self.type = type_of(self.columns[self.real[0]][0])

    def _widen(self, name: str) -> None:
        for key in self.real:
            column = self.columns[key]
            if is_tensor(column[0]):
                wide = getattr(sys.modules["torch"], name)
                self.columns[key] = [tensor.to(wide) for tensor in column]
            else:
                self.columns[key] = [array.astype(name) for array in column]

    def used(self) -> list[Hashable]:
        """Tensors that hold any number."""
        return [key for key in self.real if size_of(self.columns[key][0])]

    def pointers(self, keys: Sequence[Hashable]) -> Any:
        addresses = [pointer(row) for key in keys for row in self.columns[key]]
        return (c.c_void_p * len(addresses))(*addresses)

    def lengths(self, keys: Sequence[Hashable]) -> Any:
        return (c.c_ssize_t * len(keys))(*(size_of(self.columns[key][0]) for key in keys))

    def votes(self) -> dict[Hashable, Any]:
        """Integer tensors: the middle value of each element, which is that of the majority wherever there is one."""
        results: dict[Hashable, Any] = {}
        for key in self.whole:
            rows = self.columns[key]
            plain = [row.detach().cpu().numpy() if is_tensor(row) else row for row in rows]
            middle = np.sort(np.stack(plain), axis=0)[(self.count - 1) // 2]
            results[key] = sys.modules["torch"].from_numpy(np.array(middle)) if is_tensor(rows[0]) else middle
        return results


def _same_keys(first: Mapping[Hashable, Any], model: Mapping[Hashable, Any], number: int) -> None:
    if model.keys() != first.keys():
        odd = sorted(map(str, model.keys() ^ first.keys()))
        raise ValueError(f"row {number} has not the same tensors as row 0: {', '.join(odd[:5])}")


def _name(key: Hashable) -> str:
    return "" if key is None else f", tensor {key!r}"


def _same_shapes(rows: Sequence[Any], key: Hashable, compare_types: bool) -> None:
    shape, dtype = tuple(rows[0].shape), rows[0].dtype
    tensor = is_tensor(rows[0])
    for number, row in enumerate(rows):
        if tuple(row.shape) != shape:
            raise ValueError(f"row {number}{_name(key)} has the shape {tuple(row.shape)}, row 0 {shape}")
        if is_tensor(row) != tensor or (compare_types and row.dtype != dtype):
            raise TypeError(f"row {number}{_name(key)} is of type {row.dtype}, row 0 {dtype}: all must be alike")


def _array(value: Any, number: int, key: Hashable, copy: bool) -> Any:
    if is_array(value):
        return value
    if not copy:
        raise TypeError(f"row {number}{_name(key)} is a {type(value).__name__}, not an array or tensor{_HELP}")
    return np.asarray(value)


def _usable(value: Any, number: int, key: Hashable, copy: bool) -> Any:
    reason = usable(value)
    if reason is None:
        return value
    if not copy:
        raise TypeError(f"row {number}{_name(key)}: {reason}{_HELP}")
    return converted(value)


def split(rows: Any, copy: bool) -> tuple[Batch, str]:
    """The batch, and how the result should look: "array", "dict" or "list"."""
    if not is_array(rows) and not isinstance(rows, (list, tuple)):
        rows = list(rows)
    if len(rows) == 0 if not is_array(rows) else not rows.ndim or len(rows) == 0:
        raise ValueError("there is no row to aggregate")
    first = rows[0]
    if isinstance(first, Mapping):
        if not first:
            raise ValueError("row 0 has no tensors")
        return Batch(list(rows), copy), "dict"
    if isinstance(first, (list, tuple)) and first and is_array(first[0]):
        for number, row in enumerate(rows):
            if len(row) != len(first):
                raise ValueError(f"row {number} has {len(row)} tensors, row 0 {len(first)}")
        return Batch([dict(enumerate(row)) for row in rows], copy), "list"
    if isinstance(rows, np.ndarray) and rows.ndim == 1:  # K numbers: rows without axes
        return Batch([{None: rows[i:i + 1].reshape(())} for i in range(len(rows))], copy), "array"
    return Batch([{None: row} for row in rows], copy), "array"
