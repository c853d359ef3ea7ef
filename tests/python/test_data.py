"""Data sets for problems in Python: the shipped digits, idx files, partitions."""
from __future__ import annotations

import gzip
import struct
import subprocess
import sys

import numpy as np
import pytest

from reef import data


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.astype(np.uint8).tobytes()


def write_mnist(folder, rng, sizes=(40, 20), side=5):
    for part, count in zip(("train", "t10k"), sizes):
        images, labels = rng.integers(256, size=(count, side, side)), np.arange(count) % 10
        (folder / f"{part}-images-idx3-ubyte").write_bytes(idx(images))
        with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz", "wb") as file:
            file.write(idx(labels))
    return images


def test_the_module_comes_with_the_package():
    """In a process of its own, in which nothing has imported them."""
    code = f"import sys; sys.path[:] = {sys.path!r}; import reef; assert reef.data.digits and not hasattr(reef, 'nothing')"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_digits():
    x, y, test_x, test_y = data.digits()
    assert x.shape == (1438, 8, 8) and test_x.shape == (359, 8, 8) and len(y) == 1438 and len(test_y) == 359
    assert x.dtype == np.float32 and 0 == x.min() < x.max() == 1 and set(y) == set(range(10))
    assert np.array_equal(data.digits()[0], x) and not np.array_equal(data.digits(seed=2)[0], x)


def test_idx_files(tmp_path, rng):
    images = write_mnist(tmp_path, rng)
    x, y, test_x, test_y = data.mnist(tmp_path)
    assert x.shape == (40, 5, 5) and np.array_equal(np.round(255 * test_x), images) and list(test_y) == [k % 10 for k in range(20)]
    with pytest.raises(FileNotFoundError, match="neither .*train-images-idx3-ubyte nor"):
        data.mnist(tmp_path / "nowhere")


def test_files_that_are_none(tmp_path, rng):
    whole = idx(rng.integers(256, size=(3, 4)))
    claims_much = bytes([0, 0, 8, 3]) + struct.pack(">3I", 2**31, 2**31, 4) + b"x"
    for bad in (b"", b"\0\0", whole[:7], whole[:-1], whole + b"x", b"\1" + whole[1:], b"\0\0\x07\2" + whole[4:], b"\0\0\x08\0", claims_much):
        (tmp_path / "bad").write_bytes(bad)
        with pytest.raises(ValueError, match="is not an idx file|should hold"):
            data.read_idx(tmp_path / "bad")
    write_mnist(tmp_path, rng)
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(idx(rng.integers(256, size=(3, 2, 2))))
    with pytest.raises(ValueError, match="t10k has images of the shape"):
        data.mnist(tmp_path)


@pytest.mark.parametrize("partition", ["iid", "dirichlet", "class"])
@pytest.mark.parametrize("agents", [1, 3, 10, 25])
def test_partitions(partition, agents, rng):
    labels = rng.integers(10, size=300)
    parts = data.split(labels, agents, partition, alpha=0.05, seed=3)
    assert len(parts) == agents and min(map(len, parts)) >= 1
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(300))
    if partition == "class" and agents >= 10:
        assert all(len(set(labels[part])) == 1 for part in parts)
    again = data.split(labels, agents, partition, alpha=0.05, seed=3)
    assert all(np.array_equal(a, b) for a, b in zip(parts, again))
    with pytest.raises(ValueError, match="300 samples cannot"):
        data.split(labels, 301)
    with pytest.raises(ValueError, match="there are iid"):
        data.split(labels, 2, "odd")
