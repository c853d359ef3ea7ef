"""The comparison that a user of ByzFL would make: its own framework (Client, ByzantineClient, Server), with its aggregators and with Reef's.

    make bench-byzfl, or with options: scripts/bench_byzfl.sh --seeds 5 --attacks "sign flip"

Same data, model, partition, attacks, number of malicious clients and seeds for all; only what the server aggregates with differs. Distributed
SGD with momentum at the clients, as in ByzFL's benchmark. Digits (data/) by default, MNIST with MNIST=folder of its idx files. Malicious clients
are exact copies of each other, as in ByzFL, or have noise of their own ("jitter"), so that no test for copies wins by that alone. Rows
that are in the file already are not run again: interrupt it, and start it once more. Tables are printed at the end:
means over the seeds and standard deviations.
"""
from __future__ import annotations

import argparse
import csv
import importlib
import importlib.util
import os
import random
import sys
import time
import types
from collections import defaultdict
from pathlib import Path
from typing import Any, Callable

import numpy as np
import reef
import reef.data
import torch
from torch.utils.data import DataLoader, Subset, TensorDataset

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import kept  # noqa: E402

HONEST = 10
HEAD = ["data", "partition", "f", "attack", "jitter", "seed", "aggregator", "steps", "accuracy", "milliseconds"]
ATTACKS: dict[str, tuple[str, dict[str, float]]] = {
    "none": ("", {}), "sign flip": ("SignFlipping", {}), "IPM 2": ("InnerProductManipulation", {"tau": 2.0}),
    "ALIE 1.5": ("ALittleIsEnough", {"tau": 1.5}), "ALIE 1": ("ALittleIsEnough", {"tau": 1.0})}
PARTITIONS = {"dirichlet 1": ("dirichlet_niid", 1.0), "one class each": ("extreme_niid", 1.0)}


def load_framework() -> Any:
    """byzfl.fed_framework without the top of the package, which wants torchvision for downloads."""
    spec = importlib.util.find_spec("byzfl")
    if spec is None or spec.submodule_search_locations is None:
        raise SystemExit("ByzFL is not installed here; scripts/python_extras.sh makes an environment that has it")
    package = types.ModuleType("byzfl")
    package.__path__ = list(spec.submodule_search_locations)
    sys.modules["byzfl"] = package
    framework = importlib.import_module("byzfl.fed_framework")
    framework.models.perceptron_digits = lambda: _perceptron(64, 32)
    framework.models.perceptron_mnist = lambda: _perceptron(784, 64)
    return framework


def _perceptron(inputs: int, hidden: int) -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(inputs, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 10))


def seed_everything(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


# ---- data ----


def load_data(name: str) -> tuple[TensorDataset, TensorDataset]:
    """Training and test set; images from 0 to 1."""
    if name == "mnist":
        images, labels, test_images, test_labels = reef.data.mnist(os.environ["MNIST"])
        parts = [(images, labels), (test_images, test_labels)]
    else:
        x, y = np.load(ROOT / "data" / "digits.npy"), np.load(ROOT / "data" / "digits_labels.npy")
        order = np.random.default_rng(1).permutation(len(x))
        parts = [(x[order[397:]], y[order[397:]]), (x[order[:397]], y[order[:397]])]
    sets = []
    for x, y in parts:
        made = TensorDataset(torch.from_numpy(x.reshape(len(x), -1).astype(np.float32) / max(float(x.max()), 1.0)),
                             torch.from_numpy(y.astype(np.int64)))
        made.targets = made.tensors[1]  # where ByzFL looks for labels
        sets.append(made)
    return sets[0], sets[1]


# ---- aggregators ----

Aggregate = Callable[[list[torch.Tensor]], torch.Tensor]


def byzfl_pipeline(framework: Any, last: str, before: list[str], f: int) -> Aggregate:
    parameters = {"TrMean": {"f": f}, "NNM": {"f": f}, "ARC": {"f": f}, "MultiKrum": {"f": f}, "Clipping": {"c": 2.0}}
    pipeline = framework.RobustAggregator({"name": last, "parameters": parameters.get(last, {})},
                                          [{"name": name, "parameters": parameters.get(name, {})} for name in before])
    return pipeline.aggregate_vectors  # type: ignore[no-any-return]


def reef_rule(spec: str, remembers: bool = False) -> Aggregate:
    rule, state, rounds = reef.Rule(spec), reef.State() if remembers else None, iter(range(1 << 60))
    return lambda vectors: rule([vector.contiguous() for vector in vectors], state=state, round=next(rounds))


def aggregators(framework: Any, f: int, seed: int) -> dict[str, Callable[[], Aggregate]]:
    """By name; each is made anew for every run. Those of ByzFL are told the true f. seed: of mref's sketch, so that a run can be repeated."""
    def theirs(last: str, *before: str) -> Callable[[], Aggregate]:
        return lambda: byzfl_pipeline(framework, last, list(before), f)

    return {"ByzFL Average": theirs("Average"), "ByzFL NNM | TrMean": theirs("TrMean", "NNM"),
            "ByzFL Clipping | NNM | TrMean": theirs("TrMean", "Clipping", "NNM"), "ByzFL ARC | NNM | TrMean": theirs("TrMean", "ARC", "NNM"),
            "ByzFL NNM | GeometricMedian": theirs("GeometricMedian", "NNM"), "ByzFL NNM | MultiKrum": theirs("MultiKrum", "NNM"),
            "Reef ref": lambda: reef_rule("ref"), "Reef vref": lambda: reef_rule("vref"),
            f"Reef nnm:f={f} | ref": lambda: reef_rule(f"nnm:f={f} | ref"), "Reef mref": lambda: reef_rule(f"mref:seed={seed}", True)}


# ---- one run ----


def run(framework: Any, data: tuple[TensorDataset, TensorDataset], model: str, row: dict[str, Any], aggregate: Aggregate) -> None:
    """Fills in accuracy at the end, and processor time of the aggregation per step."""
    train, test = data
    seed_everything(1000 + row["seed"])
    kind, parameter = PARTITIONS[row["partition"]]
    parts = framework.DataDistributor({"data_distribution_name": kind, "distribution_parameter": parameter, "nb_honest": HONEST,
                                       "data_loader": Subset(train, list(range(len(train)))), "batch_size": 32}).split_data()
    seed_everything(row["seed"])
    server = framework.Server({"model_name": model, "device": "cpu", "validation_loader": None, "test_loader": DataLoader(test, 500),
                               "optimizer_name": "SGD", "learning_rate": 0.2, "weight_decay": 1e-4, "milestones": [],
                               "learning_rate_decay": 1.0, "aggregator_info": {"name": "Average", "parameters": {}}, "pre_agg_list": []})
    clients = [framework.Client({"model_name": model, "device": "cpu", "loss_name": "CrossEntropyLoss", "LabelFlipping": False,
                                 "nb_labels": 10, "momentum": 0.9, "training_dataloader": part, "learning_rate": None,
                                 "store_per_client_metrics": False}) for part in parts]
    name, parameters = ATTACKS[row["attack"]]
    liars = framework.ByzantineClient({"name": name, "f": row["f"], "parameters": dict(parameters)}) if name else None
    spent = 0.0
    for _ in range(row["steps"]):
        state = server.get_dict_parameters()
        for client in clients:
            client.set_model_state(state)
            client.compute_gradients()
        honest = [client.get_flat_gradients_with_momentum().clone() for client in clients]
        lies = [] if liars is None else [lie.float() for lie in liars.apply_attack(honest)]
        if row["jitter"] and lies:
            spread = torch.stack(honest).std(0)
            lies = [lie + row["jitter"] * spread * torch.randn_like(lie) for lie in lies]
        before = time.process_time()
        combined = aggregate(honest + lies)
        spent += time.process_time() - before
        server.set_gradients(combined)
        server._step()
    row["accuracy"] = f"{100 * float(server.compute_test_accuracy()):.2f}"
    row["milliseconds"] = f"{1000 * spent / row['steps']:.3f}"


# ---- all of them ----


def key_of(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in HEAD[:8])


def tables(rows: list[dict[str, str]]) -> str:
    """One for each data set and partition: a row per aggregator, a column per case, the mean over the seeds and their standard deviation."""
    settings = list(dict.fromkeys((row["data"], row["partition"]) for row in rows))
    return "\n\n".join(f"{data}, {partition}:\n\n" + _table([row for row in rows if (row["data"], row["partition"]) == (data, partition)])
                       for data, partition in settings)


def _table(rows: list[dict[str, str]]) -> str:
    cells: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    times: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        name = "Reef nnm | ref" if row["aggregator"].startswith("Reef nnm") else row["aggregator"]
        cells[name][_case(row)].append(float(row["accuracy"]))
        times[name].append(float(row["milliseconds"]))
    cases = list(dict.fromkeys(_case(row) for row in rows))
    seeds = max(len(values) for found in cells.values() for values in found.values())
    lines = ["| aggregator | " + " | ".join(cases) + " | ms per step |", "|---" * (len(cases) + 2) + "|"]
    for name, found in cells.items():
        lines.append("| " + name.replace("|", "\\|") + " | " + " | ".join(_cell(found[case], seeds) for case in cases)
                     + f" | {np.median(times[name]):.2f} |")
    return "\n".join(lines)


def _case(row: dict[str, str]) -> str:
    if row["attack"] == "none":
        return "no attack"
    return f"{row['attack']}, f = {row['f']}" + (", noise" if float(row["jitter"]) else "")


def _cell(values: list[float], seeds: int) -> str:
    """A case for which some seeds are missing says how many there are."""
    if not values:
        return ""
    spread = f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else ""
    return f"{np.mean(values):.1f}{spread}" + (f" ({len(values)} of {seeds} seeds)" if len(values) < seeds else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "byzfl.csv")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--f", type=int, nargs="*", default=[2, 4])
    parser.add_argument("--attacks", nargs="*", default=list(ATTACKS), choices=list(ATTACKS))
    parser.add_argument("--partitions", nargs="*", default=list(PARTITIONS), choices=list(PARTITIONS))
    parser.add_argument("--aggregators", nargs="*", default=[""], help="only those whose names end in one of these")
    parser.add_argument("--jitter", type=float, nargs="*", default=[0.0, 0.5], help="in deviations of the honest clients")
    given = parser.parse_args()
    torch.set_num_threads(1)
    reef.set_threads(1)
    framework = load_framework()
    name = "mnist" if os.environ.get("MNIST") else "digits"
    data = load_data(name)
    known = {key_of(row) for row in kept.begin(given.out, HEAD)}
    with open(given.out, "a", newline="") as file:
        writer = csv.DictWriter(file, HEAD)
        for seed in range(given.seeds):
            for partition in given.partitions:
                for attack in given.attacks:
                    for f, jitter in [(0, 0.0)] if attack == "none" else [(f, j) for f in given.f for j in given.jitter]:
                        for aggregator, make in aggregators(framework, f or max(given.f), seed).items():
                            row: dict[str, Any] = {"data": name, "partition": partition, "f": f, "attack": attack, "jitter": jitter,
                                                   "seed": seed, "aggregator": aggregator, "steps": given.steps}
                            if key_of(row) not in known and aggregator.endswith(tuple(given.aggregators)):
                                run(framework, data, f"perceptron_{name}", row, make())
                                writer.writerow(row)
                                file.flush()
    print(tables(kept.whole_rows(given.out, HEAD[-1])))


if __name__ == "__main__":
    main()
