#!/usr/bin/env python3
"""Executes the code cells of a notebook in this process:  run_notebook.py FILE.ipynb [--write]
Figures are drawn without a screen. --write keeps what the cells print and draw in the file, as Jupyter would. Needs matplotlib."""
from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any


def _figures() -> list[dict[str, Any]]:
    """The figures that a cell has drawn, as outputs; they are closed."""
    import matplotlib.pyplot as plt

    outputs = []
    for number in plt.get_fignums():
        stream = io.BytesIO()
        plt.figure(number).savefig(stream, format="png", dpi=80, bbox_inches="tight", metadata={"Software": None})
        picture = base64.b64encode(stream.getvalue()).decode()
        outputs.append({"output_type": "display_data", "metadata": {}, "data": {"image/png": picture}})
    plt.close("all")
    return outputs


def run(path: Path, write: bool = False) -> dict[str, Any]:
    """Executes all cells in the notebook's folder and returns their names."""
    import matplotlib

    matplotlib.use("Agg")
    notebook = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    before = os.getcwd()
    os.chdir(path.parent)
    try:
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        for number, cell in enumerate(cells, 1):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)
            text = printed.getvalue()
            cell["execution_count"] = number
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": text.splitlines(True)}] if text else []
            cell["outputs"] += _figures()
    finally:
        os.chdir(before)
    if write:
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return names


if __name__ == "__main__":
    run(Path(sys.argv[1]), "--write" in sys.argv[2:])
