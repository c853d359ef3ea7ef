"""Why rules that look at one round lose under sign flips, and what mref does to clients with one class each:

    PYTHONPATH=python python3 bench/byzfl/why.py          (a minute; `make` first)

Ten honest clients with different data and four that send the negative of the honest mean, which is what ByzFL's SignFlipping does; SGD with
momentum at the clients and a perceptron, as in bench/byzfl, but in numpy, so that what is inside can be printed.
"""
from __future__ import annotations

from typing import Any

import numpy as np
import reef
import reef.data

HONEST, MALICIOUS, STEPS, RATE, MOMENTUM, BATCH = 10, 4, 300, 0.2, 0.9, 32
SHAPES = ((64, 32), (32,), (32, 10), (10,))
Array = np.ndarray


def layers(model: Array) -> list[Array]:
    ends = np.cumsum([int(np.prod(shape)) for shape in SHAPES])[:-1]
    return [piece.reshape(shape) for piece, shape in zip(np.split(model, ends), SHAPES)]


def forward(model: Array, x: Array) -> tuple[Array, Array]:
    a, b, c, d = layers(model)
    hidden = np.maximum(x @ a + b, 0)
    scores = np.exp(hidden @ c + d - (hidden @ c + d).max(1, keepdims=True))
    return hidden, scores / scores.sum(1, keepdims=True)


def gradient(model: Array, x: Array, y: Array) -> Array:
    hidden, error = forward(model, x)
    error[np.arange(len(y)), y] -= 1
    error /= len(y)
    back = (error @ layers(model)[2].T) * (hidden > 0)
    return np.concatenate([(x.T @ back).ravel(), back.sum(0), (hidden.T @ error).ravel(), error.sum(0)]).astype(np.float32)


class Training:
    """facts: per round, the trust of honest and malicious clients, the part of the honest step that is left, and two lengths."""

    def __init__(self, partition: str, malicious: int, seed: int = 0) -> None:
        x, self.y, test_x, self.test_y = reef.data.digits()
        self.x, self.test_x, self.malicious = x.reshape(-1, 64), test_x.reshape(-1, 64), malicious
        self.parts = reef.data.split(self.y, HONEST, partition, alpha=1.0, seed=seed)
        self.draw = np.random.default_rng(seed)
        self.model = np.concatenate([(self.draw.uniform(-1, 1, size=shape) / 7).ravel() for shape in SHAPES]).astype(np.float32)
        self.velocity = np.zeros((HONEST, len(self.model)), np.float32)
        self.facts: list[list[float]] = []

    def step(self, rule: reef.Rule, state: Any, number: int) -> reef.Report:
        """What the rule says of everybody."""
        for part, velocity in zip(self.parts, self.velocity):
            chosen = part[self.draw.integers(len(part), size=BATCH)]
            velocity += (1 - MOMENTUM) * (gradient(self.model, self.x[chosen], self.y[chosen]) - velocity)
        mean = self.velocity.mean(0)
        more = {} if state is None else {"state": state}
        result, report = rule([*self.velocity, *[-mean] * self.malicious], report=True, round=number, **more)
        self.model = self.model - RATE * np.asarray(result)
        trust = np.asarray(report.trust)
        self.facts.append([trust[:HONEST].mean(), trust[HONEST:].mean() if self.malicious else np.nan, result @ mean / (mean @ mean),
                           np.linalg.norm(mean), np.linalg.norm(self.velocity - mean, axis=1).mean()])
        return report

    def accuracy(self) -> tuple[float, list[int]]:
        """Of all test images, and by class."""
        right = forward(self.model, self.test_x)[1].argmax(1) == self.test_y
        return 100 * right.mean(), [round(100 * right[self.test_y == label].mean()) for label in range(10)]


def compare_rules() -> None:
    print("Dirichlet 1, 4 of 14 send the negative mean; means over 300 rounds\n")
    print("| rule | accuracy | trust honest | malicious | step left | length of the mean | distance to it |\n|---|---|---|---|---|---|---|")
    for spec in ("mean", "ref", "vref", "nnm:f=4 | ref", "nnm:f=4 | trimmed:f=4", "mref:seed=1"):
        run, rule = Training("dirichlet", MALICIOUS), reef.Rule(spec)
        state = reef.State() if "senders" in rule.traits else None
        for number in range(STEPS):
            run.step(rule, state, number)
        shown = " | ".join(f"{value:.2f}" for value in np.mean(run.facts, axis=0))
        print("| " + spec.replace("|", "\\|") + f" | {run.accuracy()[0]:.1f} | {shown} |")


def follow_mref(malicious: int, seed: int = 0, without: str = "nothing") -> float:
    """Prints accuracy and trust over the rounds and, of the honest clients that lose half of their weight, what took it at first and at the end."""
    print(f"\nOne class each, {malicious} malicious, mref, seed {seed}, without {without}\n")
    print("| round | accuracy | by class | trust in the clients of these classes |\n|---|---|---|---|")
    run, rule, state = Training("class", malicious, seed), reef.Rule(f"mref:seed=1,without={without}"), reef.State()
    first: dict[int, str] = {}
    for number in range(STEPS):
        report = run.step(rule, state, number)
        trust = np.asarray(report.trust)[:HONEST]
        for client in np.flatnonzero(trust < 0.7):
            first.setdefault(int(client), f"round {number + 1}: {report.explain(int(client))}")
        if number + 1 in (50, 100, 150, 200, 300):
            whole, each = run.accuracy()
            print(f"| {number + 1} | {whole:.1f} | {' '.join(map(str, each))} | {' '.join(f'{value:.1f}' for value in trust)} |")
    for client in np.flatnonzero(trust < 0.5):
        print(f"\nclass {client}: {first[int(client)]}; round {STEPS}: {report.explain(int(client))}")
    return run.accuracy()[0]


def leave_out(parts: tuple[str, ...]) -> None:
    """Whether one part of the rule alone is responsible."""
    found = {part: [follow_mref(MALICIOUS, seed, part) for seed in range(2)] for part in parts}
    print("\n| without | final accuracy, two seeds |\n|---|---|")
    for part, values in found.items():
        print(f"| {part} | {', '.join(f'{value:.1f}' for value in values)} |")


if __name__ == "__main__":
    reef.set_threads(1)
    compare_rules()
    follow_mref(MALICIOUS)
    follow_mref(0)
    leave_out(("nothing", "gate", "short", "middle", "long", "tail"))
