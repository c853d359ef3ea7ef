"""The server: FedAvg with one of Reef's rules, or one of Flower's own strategies for comparison."""
from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Optional

from flwr.app import Array, ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from reef.flower import RobustFedAvg

from . import task

app = ServerApp()
PATIENCE = 120  # seconds until all nodes are there


def evaluate(server_round: int, arrays: ArrayRecord) -> Optional[MetricRecord]:
    return MetricRecord({"accuracy": task.accuracy({name: array.numpy() for name, array in arrays.items()})})


def wait_for(grid: Grid, nodes: int) -> None:
    """Flower's strategies wait for nodes indefinitely; here somebody is watching, so give up after PATIENCE seconds."""
    end = time.monotonic() + PATIENCE
    while (found := len(list(grid.get_node_ids()))) < nodes:
        if time.monotonic() > end:
            raise RuntimeError(f"{found} nodes have come, the app needs {nodes}: in a simulation, start it with "
                               f"--federation-config num-supernodes={nodes}, or set nodes= in --run-config")
        time.sleep(1)


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    nodes = int(config["nodes"])
    wait_for(grid, nodes)
    common = {"fraction_evaluate": 0.0, "min_train_nodes": nodes, "min_available_nodes": nodes}
    rule, trust = str(config["rule"]), str(config["trust-csv"])
    strategy = FedAvg(**common) if rule == "fedavg" else RobustFedAvg(rule, trust_csv=trust or None, step=float(config["step"]), **common)
    arrays = ArrayRecord({name: Array(array) for name, array in task.start().items()})
    result = strategy.start(grid, arrays, num_rounds=int(config["rounds"]), evaluate_fn=evaluate)
    if config["results"]:
        found = {
            "accuracy": [dict(record)["accuracy"] for _, record in sorted(result.evaluate_metrics_serverapp.items())],
            "train": [dict(record) for _, record in sorted(result.train_metrics_clientapp.items())],
        }
        Path(str(config["results"])).write_text(json.dumps(found))
