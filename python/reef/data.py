"""Data sets for problems in Python, as numpy arrays: the shipped digits, and files of yours. Nothing is downloaded.

    x, y, test_x, test_y = reef.data.digits()
    x, y, test_x, test_y = reef.data.mnist("folder with train-images-idx3-ubyte, ...")
    parts = reef.data.split(y, agents=10, partition="dirichlet", alpha=0.5, seed=1)       # indices per agent
"""
from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any, Union

import numpy as np

from . import _library  # noqa: F401 - sets REEF_DATA in an installed package

Array = np.ndarray[Any, Any]
Parts = tuple[Array, Array, Array, Array]
_IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def _folder() -> Path:
    """Folder of the shipped data: REEF_DATA, or data/ of the source tree."""
    return Path(os.environ.get("REEF_DATA") or Path(__file__).resolve().parents[2] / "data")


def digits(test: float = 0.2, seed: int = 1) -> Parts:
    """The shipped digits, 1797 images of 8 x 8 from 0 to 1: training images and labels, test images and labels."""
    images = np.load(_folder() / "digits.npy").astype(np.float32) / 16
    labels = np.load(_folder() / "digits_labels.npy").astype(np.int64)
    order = np.random.default_rng(seed).permutation(len(images))
    first = round(test * len(images))
    held, rest = order[:first], order[first:]
    images = images.reshape(len(images), 8, 8)
    return images[rest], labels[rest], images[held], labels[held]


def read_idx(path: Union[str, os.PathLike[str]]) -> Array:
    """An array from a file in the idx format (of MNIST), also with .gz. Files whose header does not match their content are refused."""
    name = Path(path)
    data = gzip.decompress(name.read_bytes()) if name.suffix == ".gz" else name.read_bytes()
    axes = data[3] if len(data) >= 4 else 0
    if len(data) < 4 + 4 * axes or data[:2] != b"\0\0" or data[2] not in _IDX_TYPES or axes == 0:
        raise ValueError(f"{name} is not an idx file")
    shape = [int(n) for n in np.frombuffer(data, ">u4", axes, 4)]
    dtype = np.dtype(_IDX_TYPES[data[2]])
    size = dtype.itemsize
    for length in shape:
        size *= length
    if len(data) != 4 + 4 * axes + size:
        raise ValueError(f"{name} should hold {' x '.join(map(str, shape))} values, and holds {len(data) - 4 - 4 * axes} bytes")
    return np.frombuffer(data, dtype, offset=4 + 4 * axes).reshape(shape)


def mnist(folder: Union[str, os.PathLike[str]]) -> Parts:
    """MNIST, or anything in its format: train-images-idx3-ubyte, train-labels-idx1-ubyte and the same of t10k, each also with .gz.
    Images from 0 to 1."""
    found: list[Array] = []
    for part in ("train", "t10k"):
        for name in (f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"):
            places = [Path(folder) / name, Path(folder) / f"{name}.gz"]
            place = next((place for place in places if place.exists()), None)
            if place is None:
                raise FileNotFoundError(f"there is neither {places[0]} nor {places[1].name}")
            found.append(read_idx(place))
        if len(found[-1]) != len(found[-2]) or found[-1].ndim != 1 or found[-2].ndim != 3:
            raise ValueError(f"{folder}: {part} has images of the shape {found[-2].shape} and labels of the shape {found[-1].shape}")
    x, y, test_x, test_y = found
    return x.astype(np.float32) / 255, y.astype(np.int64), test_x.astype(np.float32) / 255, test_y.astype(np.int64)


def split(labels: Array, agents: int, partition: str = "iid", alpha: float = 0.5, seed: int = 1) -> list[Array]:
    """Indices of each agent's samples. partition: "iid"; "dirichlet", shares of each class drawn with parameter alpha (small: agents
    differ more); "class", agent k gets class k modulo their number. Everybody gets at least one sample."""
    if agents < 1 or len(labels) < agents:
        raise ValueError(f"{len(labels)} samples cannot be divided among {agents} agents")
    draw = np.random.default_rng(seed)
    classes = np.unique(labels)
    if partition == "iid":
        parts = np.array_split(draw.permutation(len(labels)), agents)
    elif partition == "class":
        owners = [[k for k in range(agents) if k % len(classes) == c] or [c % agents] for c in range(len(classes))]
        parts = _cut(labels, classes, agents, draw, [[float(k in who) for k in range(agents)] for who in owners])
    elif partition == "dirichlet" and alpha > 0:
        parts = _cut(labels, classes, agents, draw, [draw.dirichlet([alpha] * agents) for _ in classes])
    else:
        raise ValueError(f"partition={partition!r}, alpha={alpha}; there are iid, dirichlet with alpha > 0, and class")
    for k in (k for k in range(agents) if len(parts[k]) == 0):
        rich = max(range(agents), key=lambda other: len(parts[other]))
        parts[k], parts[rich] = parts[rich][-1:], parts[rich][:-1]
    return [np.sort(part) for part in parts]


def _cut(labels: Array, classes: Array, agents: int, draw: np.random.Generator, shares: Any) -> list[Array]:
    """The samples of each class, cut by its shares."""
    pieces: list[list[Array]] = [[] for _ in range(agents)]
    for label, share in zip(classes, shares):
        own = draw.permutation(np.flatnonzero(labels == label))
        ends = np.round(np.cumsum(share) / np.sum(share) * len(own)).astype(int)[:-1]
        for k, piece in enumerate(np.split(own, ends)):
            pieces[k].append(piece)
    return [np.concatenate(piece) for piece in pieces]
