"""A small convolutional network that agents learn together, some of them malicious:

    python -m reef run examples/torch/digits_cnn.yaml --allow-code

MNIST instead of the shipped digits: --set problem.mnist=FOLDER, with its idx files in FOLDER.
"""
import numpy as np
import torch
from torch.nn.functional import cross_entropy

import reef.data
import reef.torch

torch.set_num_threads(1)  # same seed, same bits


def make_model(side: int, width: int) -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, width, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(width, 2 * width, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(2 * width * (side // 4) ** 2, 10))


def problem(agents: int, seed: int, width: int = 8, alpha: float = 1.0, mnist: str = "") -> reef.torch.Problem:
    """a convolutional network on images of digits"""
    x, y, test_x, test_y = reef.data.mnist(mnist) if mnist else reef.data.digits()
    x, test_x = x[:, np.newaxis], test_x[:, np.newaxis]  # one channel
    parts = reef.data.split(y, agents, "dirichlet", alpha=alpha, seed=seed)
    return reef.torch.Problem(lambda: make_model(x.shape[-1], width), cross_entropy, [(x[part], y[part]) for part in parts],
                              test=(test_x, test_y), seed=seed)
