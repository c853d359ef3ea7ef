"""The package as it lies in the source tree, with the library that REEF_LIBRARY names. What a test needs beyond numpy is asked for
with need("torch"): absent modules skip the test, unless REEF_REQUIRE names them, as the runs do that install them. What ran and what was left
out, and why, goes to the file REEF_TESTED, of which scripts/steps.sh makes its summary."""
from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
if os.environ.get("REEF_INSTALLED") != "1":
    sys.path.insert(0, str(ROOT / "python"))


@pytest.fixture
def root() -> Path:
    return ROOT


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def need(name: str) -> Any:
    """A module, or a skipped test."""
    if name in os.environ.get("REEF_REQUIRE", "").split():
        return importlib.import_module(name)
    return pytest.importorskip(name)


def note(what: str, node: str, *more: str) -> None:
    """A line of REEF_TESTED. Files without folders, so that names are the same wherever pytest was started."""
    path = os.environ.get("REEF_TESTED")
    if path:
        module, *test = node.split("::", 1)
        with open(path, "a", encoding="utf-8") as file:
            file.write("\t".join([what, *more, "::".join([module.rsplit("/", 1)[-1], *test])]) + "\n")


def reason(report: Any) -> str:
    """Why it was skipped, on one line."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return " ".join(text.removeprefix("Skipped: ").split()) or "skipped"


def pytest_runtest_logreport(report: Any) -> None:
    if report.skipped:
        note("absent", report.nodeid, reason(report))
    elif report.when == "call" and report.passed:
        note("ran", report.nodeid)


def pytest_collectreport(report: Any) -> None:
    if report.skipped:
        note("absent", report.nodeid, reason(report))
