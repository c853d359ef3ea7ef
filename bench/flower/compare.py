"""Colluders that stay inside the spread of the honest nodes, in Flower: its own strategies beside Reef's.

    make bench-flower, or with options: scripts/bench_flower.sh --seeds 1 --partitions iid

20 nodes of which 15 are asked in each round; 6 are malicious and send what the honest ones' mean and deviation tell them (ALIE): exact copies
of each other at z = 1, or at z = 0.5 with noise of their own. Strategies, sampling, messages and their bytes are Flower's; the nodes are
functions in this process instead of processes of their own, and what they compute depends on seed, node and round alone. Rows that are in the
file already are not run again. The table is printed at the end: mean final accuracy in percent, with that of the worst seed.
"""
from __future__ import annotations

import argparse
import csv
import importlib.util
import logging
import random
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, Callable, Iterable

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import kept  # noqa: E402
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict  # noqa: E402
from flwr.serverapp.strategy import FedAvg, FedMedian, Krum  # noqa: E402

import reef.data  # noqa: E402
from reef.flower import RobustFedAvg  # noqa: E402

if importlib.util.find_spec("flwr.supercore.task_identity"):  # messages of newer versions ask who they are made by
    from flwr.supercore.task_identity import TaskIdentity

    TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1

NODES, ASKED, MALICIOUS = 20, 15, 6
HIDDEN, STEP, STEPS, BATCH = 32, 0.2, 5, 16
HEAD = ["partition", "attack", "seed", "strategy", "rounds", "accuracy"]
ATTACKS = {"ALIE 1": (1.0, 0.0), "ALIE 0.5, own noise": (0.5, 0.5)}  # deviations off the mean, and of the noise
Model = dict[str, np.ndarray]


# ---- what nodes learn: a perceptron with one hidden layer ----


def start(seed: int) -> Model:
    draw = np.random.default_rng(seed)
    return {"a": (draw.normal(size=(64, HIDDEN)) / 8).astype(np.float32), "b": np.zeros(HIDDEN, np.float32),
            "c": (draw.normal(size=(HIDDEN, 10)) / HIDDEN**0.5).astype(np.float32), "d": np.zeros(10, np.float32)}


def forward(model: Model, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    hidden = np.maximum(x @ model["a"] + model["b"], 0)
    scores = hidden @ model["c"] + model["d"]
    scores = np.exp(scores - scores.max(1, keepdims=True))
    return hidden, scores / scores.sum(1, keepdims=True)


def train(sent: Model, x: np.ndarray, y: np.ndarray, draw: np.random.Generator) -> Model:
    model = {name: array.copy() for name, array in sent.items()}
    for _ in range(STEPS):
        chosen = draw.integers(len(x), size=BATCH)
        hidden, error = forward(model, x[chosen])
        error[np.arange(BATCH), y[chosen]] -= 1
        error /= BATCH
        back = (error @ model["c"].T) * (hidden > 0)
        for name, gradient in (("a", x[chosen].T @ back), ("b", back.sum(0)), ("c", hidden.T @ error), ("d", error.sum(0))):
            model[name] -= STEP * gradient
    return model


# ---- the nodes ----


class Nodes:
    """A grid of Flower's with nodes 1 to 20; the last ones are malicious. `honest_only`: these do not answer (the oracle)."""

    def __init__(self, partition: str, attack: str, seed: int, honest_only: bool) -> None:
        x, y, self.test_x, self.test_y = reef.data.digits()
        self.x, self.test_x = x.reshape(-1, 64), self.test_x.reshape(-1, 64)
        self.y, self.seed, self.honest_only = y, seed, honest_only
        self.parts = reef.data.split(y, NODES, partition, alpha=0.5, seed=seed)
        self.shift, self.noise = ATTACKS[attack]
        self.asked = 0

    def get_node_ids(self) -> list[int]:
        return list(range(1, NODES + 1))

    def send_and_receive(self, messages: Iterable[Message], *, timeout: Any = None) -> list[Message]:
        found: list[tuple[Message, Model]] = []
        given = list(messages)
        if not given:  # nobody is asked to evaluate
            return []
        self.asked += 1
        for place, message in enumerate(given):
            message.metadata.__dict__.update(_message_id=str(place), _run_id=1)
            node = message.metadata.dst_node_id
            if node <= NODES - MALICIOUS:
                sent = {name: array.numpy() for name, array in message.content["arrays"].items()}
                own = self.parts[node - 1]
                found.append((message, train(sent, self.x[own], self.y[own], np.random.default_rng([self.seed, node, self.asked]))))
        lies = [] if self.honest_only else [message for message in given if message.metadata.dst_node_id > NODES - MALICIOUS]
        honest = {name: np.stack([model[name] for _, model in found]) for name in found[0][1]}
        return [self._reply(*each) for each in [*found, *((message, self._lie(message, honest)) for message in lies)]]

    def _lie(self, message: Message, honest: Model) -> Model:
        draw = np.random.default_rng([self.seed, message.metadata.dst_node_id, self.asked])
        lie: Model = {}
        for name, rows in honest.items():
            spread = rows.std(0)
            noise = self.noise * spread * draw.normal(size=spread.shape)
            lie[name] = (rows.mean(0) - self.shift * spread + noise).astype(np.float32)
        return lie

    def _reply(self, message: Message, model: Model) -> Message:
        count = len(self.parts[message.metadata.dst_node_id - 1])
        return Message(RecordDict({"arrays": ArrayRecord({name: Array(value) for name, value in model.items()}),
                                   "metrics": MetricRecord({"num-examples": count})}), reply_to=message)

    def accuracy(self, model: Model) -> float:
        return float((forward(model, self.test_x)[1].argmax(1) == self.test_y).mean())


# ---- strategies ----


def strategies(seed: int) -> dict[str, Callable[..., Any]]:
    """Krum is told the five malicious nodes among 15 that are the most it can take there but one; Reef's need no number."""
    def ours(rule: str, **more: Any) -> Callable[..., Any]:
        return lambda **common: RobustFedAvg(rule, **more, **common)

    return {"oracle": FedAvg, "FedAvg": FedAvg, "FedMedian": FedMedian,
            "Krum, f=5": lambda **common: Krum(num_malicious_nodes=5, **common), "ref": ours("ref"), "vref": ours("vref"),
            "mref": ours(f"mref:seed={seed}", step=STEP)}


def run(row: dict[str, Any]) -> None:
    """Fills in the accuracy after the last round."""
    random.seed(row["seed"])  # by which Flower draws the nodes it asks
    nodes = Nodes(row["partition"], row["attack"], row["seed"], row["strategy"] == "oracle")
    strategy = strategies(row["seed"])[row["strategy"]](fraction_train=ASKED / NODES, fraction_evaluate=0.0, min_train_nodes=ASKED,
                                                        min_available_nodes=NODES)
    first = ArrayRecord({name: Array(value) for name, value in start(row["seed"]).items()})
    result = strategy.start(nodes, first, num_rounds=row["rounds"])
    row["accuracy"] = f"{100 * nodes.accuracy({name: array.numpy() for name, array in result.arrays.items()}):.2f}"


# ---- all of them ----


def table(rows: list[dict[str, str]]) -> str:
    cells: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        cells[row["strategy"]][f"{row['partition']}, {row['attack']}"].append(float(row["accuracy"]))
    cases = sorted({case for found in cells.values() for case in found})
    lines = ["| strategy | " + " | ".join(cases) + " |", "|---" * (len(cases) + 1) + "|"]
    for name, found in cells.items():
        shown = [f"{np.mean(found[case]):.1f} ({min(found[case]):.1f})" if case in found else "" for case in cases]
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "flower.csv")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--partitions", nargs="*", default=["dirichlet", "iid"], choices=["dirichlet", "iid"])
    parser.add_argument("--attacks", nargs="*", default=list(ATTACKS), choices=list(ATTACKS))
    given = parser.parse_args()
    logging.getLogger("flwr").setLevel(logging.ERROR)
    reef.set_threads(1)
    known = {tuple(row[name] for name in HEAD[:-1]) for row in kept.begin(given.out, HEAD)}
    with open(given.out, "a", newline="") as file:
        writer = csv.DictWriter(file, HEAD)
        for seed in range(1, given.seeds + 1):
            for partition in given.partitions:
                for attack in given.attacks:
                    for strategy in strategies(seed):
                        row: dict[str, Any] = {"partition": partition, "attack": attack, "seed": seed, "strategy": strategy,
                                               "rounds": given.rounds}
                        if tuple(str(row[name]) for name in HEAD[:-1]) not in known:
                            run(row)
                            writer.writerow(row)
                            file.flush()
    print(table(kept.whole_rows(given.out, HEAD[-1])))


if __name__ == "__main__":
    main()
