"""The package as it lies in the source tree, with the library that REEF_LIBRARY names. What a test needs beyond numpy is asked for
with need("torch"): absent modules skip the test, unless REEF_REQUIRE names them, as the runs do that install them."""
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
