"""The notebook of the documentation runs, and shows what it says."""
from __future__ import annotations

import sys

import numpy as np
from conftest import ROOT, need


def test_ten_clients(monkeypatch):
    for name in ("matplotlib", "torch"):
        need(name)
    sys.path.insert(0, str(ROOT / "scripts"))
    from run_notebook import run

    monkeypatch.setenv("REEF_DATA", str(ROOT / "data"))
    names = run(ROOT / "docs" / "ten_clients.ipynb")
    assert names["scores"]["vref"][-1] > 0.85 > names["scores"]["mean"][-1] + 0.2
    means = names["trust"]["vref"].mean(axis=0)
    assert set(np.argsort(means)[:3]) == names["malicious"] == {1, 4, 8}


def test_quick_start():
    """The first example of docs/python.md, of ten lines, detects the malicious one."""
    text = (ROOT / "docs" / "python.md").read_text()
    block = text.split("```python\n", 1)[1].split("```", 1)[0]
    assert len([line for line in block.splitlines() if line.strip()]) <= 10
    names: dict = {}
    exec(block, names)
    assert names["report"].suspects() == [7]
    error = np.abs(names["result"] - names["truth"]).max()
    assert error < np.abs(np.mean(names["models"], axis=0) - names["truth"]).max() / 2
