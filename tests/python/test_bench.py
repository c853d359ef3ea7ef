"""The comparisons in bench/: with the real packages, one seed of one setting, and what is in the file is not run again."""
from __future__ import annotations

import csv
import importlib.util
import os
import sys
from typing import Any

import pytest
from conftest import ROOT, need
from test_data import write_mnist


def load(name: str, monkeypatch: Any) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    found = importlib.util.spec_from_file_location(f"bench_{name}", ROOT / "bench" / name / "compare.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def call(module: Any, monkeypatch: Any, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["compare.py", *arguments])
    module.main()


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_flower_with_colluders(monkeypatch, tmp_path, capsys):
    """Those inside the spread of the honest nodes who differ (Dirichlet 0.5): mref is within a point of the oracle, the others are not."""
    need("flwr")
    module = load("flower", monkeypatch)
    path = tmp_path / "flower.csv"
    options = ("--out", str(path), "--seeds", "1", "--partitions", "dirichlet", "--attacks", "ALIE 1")
    call(module, monkeypatch, *options)
    accuracy = {row["strategy"]: float(row["accuracy"]) for row in rows_of(path)}
    assert len(accuracy) == 7
    assert accuracy["mref"] > accuracy["oracle"] - 1
    assert max(accuracy["FedMedian"], accuracy["Krum, f=5"]) < accuracy["oracle"] - 5
    assert "| mref |" in capsys.readouterr().out
    before = path.read_bytes()
    path.write_bytes(before + b"dirichlet,ALIE 1")  # interrupted while writing
    monkeypatch.setattr(module, "run", lambda row: pytest.fail(f"{row} was run again"))
    call(module, monkeypatch, *options)
    assert path.read_bytes() == before


def test_byzfl_on_idx_files(monkeypatch, tmp_path, rng, capsys):
    """ByzFL's framework on a folder in MNIST's format; what comes out of three steps on noise does not matter."""
    if "byzfl" not in os.environ.get("REEF_REQUIRE", "").split() and importlib.util.find_spec("byzfl") is None:
        pytest.skip("could not import 'byzfl'")
    need("torch")
    folder = tmp_path / "mnist"
    folder.mkdir()
    write_mnist(folder, rng, sizes=(200, 40), side=28)
    monkeypatch.setenv("MNIST", str(folder))
    module = load("byzfl", monkeypatch)
    path = tmp_path / "byzfl.csv"
    call(module, monkeypatch, "--out", str(path), "--seeds", "1", "--steps", "3", "--f", "2", "--attacks", "sign flip", "--jitter", "0.5",
         "--aggregators", "NNM | TrMean", "mref")
    rows = rows_of(path)
    assert {row["partition"] for row in rows} == {"dirichlet 1", "one class each"} and len(rows) == 8
    assert all(row["data"] == "mnist" and 0 <= float(row["accuracy"]) <= 100 for row in rows)
    assert "Reef mref" in capsys.readouterr().out
    both = [{**row, "seed": str(seed), "accuracy": str(80 + 2 * seed)} for row in rows for seed in (0, 1)]
    first, second = module.tables([row for row in both if row["seed"] == "0" or "mref" in row["aggregator"]]).split("\n\nmnist, ")
    assert first.startswith("mnist, dirichlet 1:") and second.startswith("one class each:")
    assert "| Reef mref | 81.0 ± 1.4 |" in first and "| ByzFL NNM \\| TrMean | 80.0 (1 of 2 seeds) |" in second
