"""Data and model: softmax regression on 8 x 8 images of digits, in numpy."""
from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import reef  # noqa: F401 - an installed package says where its data are

Arrays = dict[str, np.ndarray]
CLASSES = 10
TEST = 397  # images kept for the server


def load() -> tuple[np.ndarray, np.ndarray]:
    """All images, 0 to 1, and their labels, in an order that is random but always the same."""
    folder = Path(os.environ["REEF_DATA"])
    x = np.load(folder / "digits.npy").reshape(-1, 64).astype(np.float32)
    y = np.load(folder / "digits_labels.npy").astype(np.int64)
    order = np.random.default_rng(1).permutation(len(x))
    return x[order] / max(float(x.max()), 1.0), y[order]


def part(number: int, parts: int) -> tuple[np.ndarray, np.ndarray]:
    """The images of one node."""
    x, y = load()
    return x[TEST + number::parts], y[TEST + number::parts]


def start() -> Arrays:
    return {"weight": np.zeros((64, CLASSES), np.float32), "bias": np.zeros(CLASSES, np.float32)}


def probabilities(model: Arrays, x: np.ndarray) -> np.ndarray:
    z = x @ model["weight"] + model["bias"]
    z = np.exp(z - z.max(axis=1, keepdims=True))
    return z / z.sum(axis=1, keepdims=True)


def train(model: Arrays, x: np.ndarray, y: np.ndarray, epochs: int, step: float) -> Arrays:
    """Gradient steps on all of a node's images."""
    model = {name: array.copy() for name, array in model.items()}
    wanted = np.eye(CLASSES, dtype=np.float32)[y]
    for _ in range(epochs):
        error = (probabilities(model, x) - wanted) / len(x)
        model["weight"] -= step * (x.T @ error)
        model["bias"] -= step * error.sum(axis=0)
    return model


def accuracy(model: Arrays) -> float:
    """On the images that no node has."""
    x, y = load()
    return float((probabilities(model, x[:TEST]).argmax(axis=1) == y[:TEST]).mean())
