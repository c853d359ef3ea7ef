"""Plug-ins in Python: each test in an interpreter of its own, since what is loaded stays."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("REEF_LIBRARY", "")).parent
PLUGIN = BUILD / "examples" / "plugin.so"
WRONG = BUILD / "tests" / "plugins"
pytestmark = pytest.mark.skipif(not PLUGIN.exists(), reason="built without the examples")


def python(root: Path, program: str, **environment: str) -> str:
    path = {} if os.environ.get("REEF_INSTALLED") == "1" else {"PYTHONPATH": str(root / "python")}
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **path, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


NAMED = """
import numpy as np
rows = [np.full(3, value) for value in (1.0, 2.0, 3.0, 1000.0)]
assert reef.aggregate(rows, "midmean")[0] == 2.5
assert "midmean" in reef.rules() and "drift" in reef.attacks() and "points" in reef.kinds("problem")
assert reef.attacks()["drift"](speed=3) == "drift:speed=3"
assert [field.name for field in reef.kinds("problem")["points"].fields] == ["dimension", "spread"]
"""


def test_load_plugin(root: Path, tmp_path: Path) -> None:
    yaml = root / "examples" / "plugin" / "plugin.yaml"
    python(root, f"""
import reef
reef.set_threads(1)
assert "midmean" not in reef.rules()
reef.load_plugin({str(PLUGIN)!r})
{NAMED}
reef.set_threads(2)  # a context made afterwards has it too
{NAMED}
results = reef.run({str(yaml)!r}, folder={str(tmp_path / "out")!r})
assert len(results.rows) == 2
""")


def test_environment(root: Path) -> None:
    python(root, "import reef\n" + NAMED, REEF_PLUGINS=f":{PLUGIN}:")


def test_refusals(root: Path, tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("no library")
    said = python(root, f"""
import reef
for path in ({str(tmp_path / "text.so")!r}, {str(WRONG / "no_plugin.so")!r}, {str(WRONG / "other_version.so")!r}):
    try:
        reef.load_plugin(path)
    except reef.ReefError as error:
        print(error)
reef.load_plugin({str(PLUGIN)!r})
try:
    reef.load_plugin({str(PLUGIN)!r})
except reef.ReefError as error:
    print(error)
{NAMED}
""")
    for part in ("cannot be loaded as a plug-in", "is not a Reef plug-in", "version 1 of Reef's binary interface", "midmean' exists already"):
        assert part in said, said
