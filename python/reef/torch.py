"""A PyTorch model as a problem of an experiment:

    def problem(agents, seed, width=8):
        x, y, test_x, test_y = reef.data.digits()
        parts = reef.data.split(y, agents, "dirichlet", seed=seed)
        return reef.torch.Problem(lambda: make_model(width), torch.nn.functional.cross_entropy,
                                  [(x[part], y[part]) for part in parts], test=(test_x, test_y), seed=seed)

    reef.run("exp.yaml", problems={"mine": problem})         # problem: {kind: mine, width: 16}
"""
from __future__ import annotations

import threading
from typing import Any, Callable, Optional, Sequence

import numpy as np
import torch

from ._simulate import Array, Step

_TIES = hasattr(torch, "func")  # functional_call follows a parameter to every module that shares it
try:
    from torch.func import functional_call, grad, vmap
except ImportError:  # before PyTorch 2
    from functorch import grad, vmap  # type: ignore[no-redef]
    from torch.nn.utils.stateless import functional_call  # type: ignore[no-redef]

_drawing = threading.Lock()  # parameters are drawn from torch's global generator: by one thread at a time, else bits would depend on timing


def _single_precision(tensor: torch.Tensor) -> torch.Tensor:
    """What the models are in; whole numbers stay, truth values become some."""
    return tensor.float() if tensor.is_floating_point() else tensor.long() if tensor.dtype == torch.bool else tensor


def _tensors(data: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and targets: a pair of arrays or tensors, a TensorDataset, or any data set of pairs."""
    if hasattr(data, "tensors"):
        data = data.tensors
    elif not isinstance(data, (tuple, list)):
        data = tuple(zip(*(data[i] for i in range(len(data)))))
        data = tuple(torch.stack(part) if torch.is_tensor(part[0]) else torch.tensor(np.array(part)) for part in data)
    inputs, targets = (_single_precision(part if torch.is_tensor(part) else torch.as_tensor(np.asarray(part))) for part in data)
    if len(inputs) == 0 or len(inputs) != len(targets):
        raise ValueError(f"{len(inputs)} inputs and {len(targets)} targets; each agent needs at least one of both")
    return inputs, targets


def _shared(model: torch.nn.Module) -> dict[str, str]:
    """Parameters that several modules share (tied weights): further names of each, with the one that named_parameters has."""
    first: dict[int, str] = {}
    others: dict[str, str] = {}
    for prefix, module in model.named_modules():
        for name, value in module.named_parameters(prefix, recurse=False):
            if first.setdefault(id(value), name) != name:
                others[name] = first[id(value)]
    return others


def _right(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Whether each prediction is. Outputs are (n, classes), or (n, classes, ...) or (n, ..., classes) for targets (n, ...)."""
    if targets.dim() == 1:
        return outputs.reshape(len(targets), -1).argmax(1) == targets
    axis = next((axis for axis in (1, -1) if outputs.dim() == targets.dim() + 1 and outputs.argmax(axis).shape == targets.shape), None)
    if axis is None:
        raise ValueError(f"outputs of the shape {tuple(outputs.shape)} do not fit targets {tuple(targets.shape)}; "
                         "outputs (n, classes) fit targets (n,), for instance. Targets other than classes must be floating-point numbers")
    return outputs.argmax(axis) == targets


class Problem:
    """What agents learn: a model, a loss, and a data set per agent.

    make_model   makes the module; all agents start from the same parameters, drawn anew in every repetition
    loss         loss(outputs, targets), the mean over a batch, as torch.nn.functional.cross_entropy
    datasets     one per agent: (inputs, targets) as arrays or tensors, or a torch Dataset
    test         the same for evaluation; None: the data of all agents
    vectorize    all agents of a step in one call (vmap); None: if the model can, else they are asked one by one

    Models are in evaluation mode: BatchNorm normalizes by the buffers that make_model made, dropout does nothing. Whole-number targets are
    classes, negative ones to be ignored: accuracies are measured, and label flips turn y into classes - 1 - y. Batches are drawn with
    replacement by (seed, agent, repetition, round, step). Parameters are those that require a gradient; buffers stay as make_model made
    them. Models and data are float32, whatever they were before. With torch.set_num_threads(1) the same seed gives the same bits.
    """

    def __init__(self, make_model: Callable[[], torch.nn.Module], loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
                 datasets: Sequence[Any], *, test: Optional[Any] = None, seed: int = 1, vectorize: Optional[bool] = None) -> None:
        self.make_model, self.loss, self.seed = make_model, loss, seed
        self.data = [_tensors(dataset) for dataset in datasets]
        self.test = _tensors(test) if test is not None else tuple(torch.cat(part) for part in zip(*self.data))
        self.model = self._fresh(0).eval()
        self.shapes = {name: value.shape for name, value in self.model.named_parameters() if value.requires_grad}
        self.dimension = sum(shape.numel() for shape in self.shapes.values())
        if self.dimension == 0:
            raise ValueError("the model has no parameters that require a gradient")
        shared = {} if _TIES else _shared(self.model)
        self._other_names = {other: name for other, name in shared.items() if name in self.shapes}
        self.samples = [len(targets) for _, targets in self.data]
        whole = not (self.test[1].is_floating_point() or self.test[1].is_complex())
        self.classes = 1 + max(int(targets.max()) for _, targets in [*self.data, self.test]) if whole else 0
        self._single = grad(self._risk)
        self._several = vmap(self._single)
        self.vectorized = self._can_vectorize() if vectorize is None else vectorize

    def _fresh(self, repetition: int) -> torch.nn.Module:
        with _drawing, torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(np.random.SeedSequence([self.seed, repetition]).generate_state(1, np.uint64)[0] >> np.uint64(1)))
            return self.make_model().float()

    def _parts(self, flat: torch.Tensor) -> dict[str, torch.Tensor]:
        pieces = flat.split([shape.numel() for shape in self.shapes.values()])
        parts = {name: piece.reshape(shape) for (name, shape), piece in zip(self.shapes.items(), pieces)}
        return {**parts, **{other: parts[name] for other, name in self._other_names.items()}}

    def _risk(self, flat: torch.Tensor, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return self.loss(functional_call(self.model, self._parts(flat), (inputs,)), targets)

    def _can_vectorize(self) -> bool:
        """Tried with two agents: vmap refuses what it cannot do."""
        inputs, targets = self.data[0][0][:1], self.data[0][1][:1]
        try:
            found = self._several(torch.zeros(2, self.dimension), torch.stack([inputs] * 2), torch.stack([targets] * 2))
            return found.shape == (2, self.dimension)
        except Exception:  # noqa: BLE001 - whatever the model cannot do
            return False

    def start(self, repetition: int = 0) -> Array:
        """Where everybody starts."""
        parameters = dict(self._fresh(repetition).named_parameters())
        found: Array = torch.cat([parameters[name].detach().reshape(-1) for name in self.shapes]).float().numpy()
        return found

    def _batch(self, agent: int, step: Step, flipped: bool) -> tuple[torch.Tensor, torch.Tensor]:
        inputs, targets = self.data[agent]
        if step.size > 0:
            chosen = torch.from_numpy(step.generator(self.seed, agent).integers(len(targets), size=step.size))
            inputs, targets = inputs[chosen], targets[chosen]
        return inputs, torch.where(targets >= 0, self.classes - 1 - targets, targets) if flipped and self.classes else targets

    def gradient(self, models: Array, agents: Array, step: Step) -> Array:
        """(n, M) gradients."""
        flags = np.zeros(len(agents), bool) if step.flipped is None else step.flipped
        batches = [self._batch(int(agent), step, bool(flag)) for agent, flag in zip(agents, flags)]
        flat = torch.from_numpy(np.array(models))
        if self.vectorized and len({len(targets) for _, targets in batches}) == 1:
            found = self._several(flat, torch.stack([inputs for inputs, _ in batches]), torch.stack([targets for _, targets in batches]))
        else:
            found = torch.stack([self._single(row, *batch) for row, batch in zip(flat, batches)])
        result: Array = found.detach().numpy()
        return result

    def evaluate(self, models: Array) -> dict[str, list[float]]:
        """Loss and, of classifiers, accuracy over all test samples and over those of the class that fares worst."""
        scores: dict[str, list[float]] = {"loss": [], **({"accuracy": [], "worst_accuracy": []} if self.classes else {})}
        inputs, targets = self.test
        with torch.no_grad():
            for row in torch.from_numpy(np.array(models)):
                outputs = functional_call(self.model, self._parts(row), (inputs,))
                scores["loss"].append(float(self.loss(outputs, targets)))
                if self.classes:
                    right = _right(outputs, targets)
                    by_class = [float(right[targets == label].float().mean()) for label in targets.unique() if label >= 0]
                    scores["accuracy"].append(float(right[targets >= 0].float().mean()))
                    scores["worst_accuracy"].append(min(by_class))
        return scores
