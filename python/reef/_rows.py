"""Rows as the library wants them: pointers straight into numpy arrays and CPU tensors.

Callers hand over an array (K, ...), a list of K arrays, or a list of K models (dicts or lists of arrays). All become a Batch:
`tensors` named arrays per model, K models. PyTorch is never imported from here: tensors are known by what they offer.
"""
from __future__ import annotations

import ctypes as c
import functools
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Hashable, Optional, Sequence

import numpy as np

from ._library import BF16, F16, F32, F64, F8_E4M3, F8_E5M2, call, lib

Array = np.ndarray[Any, Any]
_NUMPY = {"float32": F32, "float64": F64, "float16": F16, "bfloat16": BF16, "float8_e4m3fn": F8_E4M3, "float8_e5m2": F8_E5M2}
_SHORT = (BF16, F8_E4M3, F8_E5M2)  # types that numpy knows by packages like ml_dtypes only
_TORCH = {f"torch.{name}": kind for name, kind in _NUMPY.items()}
_TORCH_WHOLE = {"torch.bool"} | {f"torch.{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_HELP = "; pass copy=True to convert it"


def is_tensor(value: Any) -> bool:
    """Whether it is a PyTorch tensor, without importing PyTorch."""
    return hasattr(value, "data_ptr") and hasattr(value, "is_contiguous")


def is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or is_tensor(value)


def type_of(array: Any) -> Optional[int]:
    """Number of the type in reef/ffi.h; None: the library does not take it."""
    if is_tensor(array):
        return _TORCH.get(str(array.dtype))
    dtype = array.dtype
    return _NUMPY.get(dtype.name) if dtype.isnative else None


def is_whole_number(array: Any) -> bool:
    """Integers and truth values: no mean of them makes sense."""
    if is_tensor(array):
        return str(array.dtype) in _TORCH_WHOLE
    return array.dtype.kind in "biu"


def usable(array: Any) -> Optional[str]:
    """None if the library can read it in place, else the reason why not."""
    if type_of(array) is None:
        return f"numbers of type {array.dtype} cannot be read in place (float32, float64, float16, bfloat16, float8_e4m3fn and float8_e5m2 can)"
    if is_tensor(array):
        if array.device.type != "cpu":
            return f"the tensor is on {array.device}, not in the processor's memory"
        if str(array.layout) != "torch.strided":
            return f"the tensor has the layout {array.layout}"
        if array.is_neg():  # its memory holds the numbers with the other sign
            return "the tensor is a negative view"
        return None if array.is_contiguous() else "the tensor is not contiguous"
    return None if array.flags.c_contiguous else "the array is not contiguous"


def _check_kind(array: Any, where: str) -> None:
    """What no copy makes numbers of is a TypeError."""
    if is_tensor(array) and array.device.type == "meta":
        raise TypeError(f"{where} is on the device meta and has no numbers; load the weights first")
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{where} is a masked array; fill it first (with NaN to have the input left out)")
    real = (array.dtype.is_floating_point or is_whole_number(array) if is_tensor(array)
            else array.dtype.kind in "biuf" or array.dtype.name in _NUMPY)
    if not real:
        raise TypeError(f"{where}: {array.dtype} is not a real number type")


def converted(array: Any) -> Any:
    """A copy that the library can read: contiguous, in memory, floating-point."""
    if is_tensor(array):
        tensor = _in_memory(array)
        return (tensor if type_of(tensor) is not None else tensor.double()).contiguous()
    keeps = array.dtype.name in _NUMPY
    return np.array(array, dtype=array.dtype.newbyteorder("=") if keeps else np.float64, order="C")


def _in_memory(tensor: Any) -> Any:
    tensor = tensor.detach().cpu().resolve_neg()
    return tensor if str(tensor.layout) == "torch.strided" else tensor.to_dense()


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
    """K models of the same named tensors. `whole` are integer tensors, `real` the others. Each tensor keeps its type; `type` is what
    is computed with: float64 where any tensor is, else float32."""

    def __init__(self, models: Sequence[Mapping[Hashable, Any]], copy: bool) -> None:
        for number, model in enumerate(models):
            _same_keys(models[0], model, number)
        self.count = len(models)
        self.columns: dict[Hashable, list[Any]] = {}
        self.whole: list[Hashable] = []
        self.real: list[Hashable] = []
        self.devices = {key: value.device for key, value in models[0].items() if is_tensor(value)}
        for key in models[0]:
            rows = _alike([_array(model[key], number, key, copy) for number, model in enumerate(models)], key, copy)
            whole = key is not None and is_whole_number(rows[0])
            (self.whole if whole else self.real).append(key)
            self.columns[key] = rows if whole else [_usable(row, number, key, copy) for number, row in enumerate(rows)]
        self.type = F64 if any(type_of(self.columns[key][0]) == F64 for key in self.used()) else F32

    def used(self) -> list[Hashable]:
        """Tensors that hold any number."""
        return [key for key in self.real if size_of(self.columns[key][0])]

    def pointers(self, keys: Sequence[Hashable]) -> Any:
        addresses = [pointer(row) for key in keys for row in self.columns[key]]
        return (c.c_void_p * len(addresses))(*addresses)

    def lengths(self, keys: Sequence[Hashable]) -> Any:
        return (c.c_ssize_t * len(keys))(*(size_of(self.columns[key][0]) for key in keys))

    def types(self, keys: Sequence[Hashable]) -> Any:
        return (c.c_int * len(keys))(*(kind for key in keys if (kind := type_of(self.columns[key][0])) is not None))

    def back(self, key: Hashable, result: Any) -> Any:
        """A result where its rows are: tensors may have come from a device."""
        return result.to(self.devices[key]) if key in self.devices else result

    def disputed(self) -> bool:
        """Whether the rows differ in any integer tensor."""
        return any(not _equal(self.columns[key]) for key in self.whole)

    def votes(self, weights: Optional[Array], trust: Optional[Array]) -> dict[Hashable, Any]:
        """Integer tensors: see vote()."""
        return {key: vote(self.columns[key], weights, trust) for key in self.whole}

    def unanimous(self) -> dict[Hashable, Any]:
        """Integer tensors that are not disputed."""
        return {key: _of_kind(np.array(_plain(self.columns[key][0])), self.columns[key][0]) for key in self.whole}


def vote(rows: Sequence[Any], weights: Optional[Array], trust: Optional[Array]) -> Any:
    """Whole numbers or truth values: at each element the value with more than half of the weight, else that of the row with the highest
    trust, then weight. Rows of weight 0 have no vote. weights and trust: float64, None: all alike."""
    plain = [_plain(row) for row in rows]
    result = np.empty(plain[0].shape, plain[0].dtype)
    if result.size:
        data = (c.c_void_p * len(plain))(*(array.ctypes.data for array in plain))
        call(lib.reef_ffi_vote, len(plain), result.size, result.dtype.itemsize, data, _address(weights), _address(trust),
             result.ctypes.data)
    return _of_kind(result, rows[0])


def _of_kind(array: Array, row: Any) -> Any:
    """A tensor if the row is one."""
    return sys.modules["torch"].from_numpy(array) if is_tensor(row) else array


def _address(vector: Optional[Array]) -> Optional[int]:
    return None if vector is None else vector.ctypes.data


def _plain(row: Any) -> Array:
    """Whole numbers as a contiguous numpy array of the machine's byte order."""
    array = _in_memory(row).numpy() if is_tensor(row) else row
    return np.require(array, array.dtype.newbyteorder("="), "C")


def _equal(rows: Sequence[Any]) -> bool:
    first = _plain(rows[0])
    return all(np.array_equal(first, _plain(row)) for row in rows[1:])


def _same_keys(first: Mapping[Hashable, Any], model: Mapping[Hashable, Any], number: int) -> None:
    if not isinstance(model, Mapping):
        raise TypeError(f"row {number} is of type {type(model).__name__}, but row 0 is a model of named tensors")
    lacks, adds = first.keys() - model.keys(), model.keys() - first.keys()
    if lacks or adds:
        said = [f"{verb} {', '.join(sorted(map(repr, names))[:3])}" for verb, names in (("it lacks", lacks), ("it also has", adds)) if names]
        raise ValueError(f"row {number} does not have the same tensors as row 0: {', and '.join(said)}")


def _name(key: Hashable) -> str:
    return "" if key is None else f", tensor {key!r}"


def _alike(rows: list[Any], key: Hashable, copy: bool) -> list[Any]:
    """Rows of one shape, kind and type; with copy the kind is that of row 0 and the type one that holds all of them."""
    shape, dtype, tensor = tuple(rows[0].shape), rows[0].dtype, is_tensor(rows[0])
    odd = None
    for number, row in enumerate(rows):
        if tuple(row.shape) != shape:
            raise ValueError(f"row {number}{_name(key)} has the shape {tuple(row.shape)}, but row 0 has {shape}")
        if odd is None and (is_tensor(row) != tensor or row.dtype != dtype):
            odd = number
    if odd is None:
        return rows
    if not copy:
        kind = "" if is_tensor(rows[odd]) == tensor else f" {type(rows[odd]).__name__}"
        raise TypeError(f"row {odd}{_name(key)} is of type{kind} {rows[odd].dtype}, but row 0 is {dtype}: all must have one type{_HELP}")
    return _tensors(rows) if tensor else _arrays(rows)


def _tensors(rows: list[Any]) -> list[Any]:
    torch = sys.modules["torch"]
    tensors = [row if is_tensor(row) else torch.from_numpy(np.array(row, row.dtype.newbyteorder("="))) for row in rows]
    tensors = [tensor.float() if type_of(tensor) in (F8_E4M3, F8_E5M2) else tensor for tensor in tensors]  # PyTorch promotes none of 8 bits
    dtype = functools.reduce(torch.promote_types, (tensor.dtype for tensor in tensors))
    return [tensor.to(dtype) for tensor in tensors]


def _arrays(rows: list[Any]) -> list[Any]:
    arrays = []
    for row in rows:
        if is_tensor(row):
            row = _in_memory(row)
            row = (row.float() if type_of(row) in _SHORT else row).numpy()
        arrays.append(row)
    dtype = np.result_type(*(array.dtype for array in arrays))
    return [array.astype(dtype) for array in arrays]


def _array(value: Any, number: int, key: Hashable, copy: bool) -> Any:
    where = f"row {number}{_name(key)}"
    if not is_array(value):
        if hasattr(value, "state_dict"):
            raise TypeError(f"{where} is of type {type(value).__name__}; pass its state_dict()")
        if isinstance(value, Mapping):
            raise TypeError(f"{where} is itself a {type(value).__name__}; a model is one dict of arrays: pass the one that holds the weights, "
                            f"such as checkpoint[{key!r}]")
        if isinstance(value, Iterator):
            raise TypeError(f"{where} is a {type(value).__name__}; pass a list of its arrays, such as list(model.parameters())")
        if value is None or isinstance(value, (str, bytes)):
            raise TypeError(f"{where} is of type {type(value).__name__}, not an array or tensor")
        if not copy:
            raise TypeError(f"{where} is of type {type(value).__name__}, not an array or tensor{_HELP}")
        try:
            value = np.asarray(value)
        except ValueError:  # lists of different lengths
            raise ValueError(f"{where} cannot be converted to an array: its parts differ in length") from None
    _check_kind(value, where)
    return value


def _usable(value: Any, number: int, key: Hashable, copy: bool) -> Any:
    reason = usable(value)
    if reason is None:
        return value
    if not copy:
        raise TypeError(f"row {number}{_name(key)}: {reason}{_HELP}")
    return converted(value)


def split(rows: Any, copy: bool) -> tuple[Batch, str]:
    """The batch, and how the result should look: "array", "dict" or "list"."""
    if isinstance(rows, Mapping):
        raise TypeError("rows is one dict; pass a list with one model per participant (list(rows.values()), if its values are the models)")
    if not isinstance(rows, Iterable) or getattr(rows, "ndim", None) == 0:  # an array or tensor without axes
        raise TypeError(f"rows is of type {type(rows).__name__}; pass an array (K, ...) or a list of K arrays or models")
    if not is_array(rows) and not isinstance(rows, (list, tuple)):
        frame = hasattr(rows, "__array__") and not isinstance(rows, np.generic)  # of pandas, for instance
        if frame and not copy:
            raise TypeError(f"rows is of type {type(rows).__name__}, not an array or a list of arrays{_HELP}")
        rows = _array(rows, 0, None, copy) if frame else list(rows)
    if len(rows) == 0:
        raise ValueError("there is nothing to aggregate: rows is empty")
    first = rows[0]
    if isinstance(first, Mapping):
        if not first:
            raise ValueError("row 0 has no tensors")
        return Batch(list(rows), copy), "dict"
    if isinstance(first, (list, tuple)) and first and is_array(first[0]):
        for number, row in enumerate(rows):
            if not isinstance(row, (list, tuple)):
                raise TypeError(f"row {number} is of type {type(row).__name__}, but row 0 is a list of tensors")
            if len(row) != len(first):
                raise ValueError(f"row {number} has {len(row)} tensors, but row 0 has {len(first)}")
        return Batch([dict(enumerate(row)) for row in rows], copy), "list"
    if isinstance(rows, np.ma.MaskedArray):
        _check_kind(rows, "rows")
    if isinstance(rows, np.ndarray) and rows.ndim == 1:  # K numbers: rows without axes
        return Batch([{None: rows[i:i + 1].reshape(())} for i in range(len(rows))], copy), "array"
    return Batch([{None: row} for row in rows], copy), "array"
