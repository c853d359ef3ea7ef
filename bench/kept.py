"""Rows of a comparison in a CSV file: what is there is not run again, so that a run can be interrupted and started once more."""
from __future__ import annotations

import csv
import os
from pathlib import Path


def whole_rows(path: Path, last: str) -> list[dict[str, str]]:
    """Whole lines only, those with something in the column `last`: an interrupted run may leave a half one, which is run again."""
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return [row for row in csv.DictReader(file) if row.get(last)]


def begin(path: Path, head: list[str]) -> list[dict[str, str]]:
    """The file with its head and whole lines alone, put in place in one step; what is in it."""
    rows = whole_rows(path, head[-1])
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".new")
    with open(beside, "w", newline="") as file:
        writer = csv.DictWriter(file, head)
        writer.writeheader()
        writer.writerows(rows)
    os.replace(beside, path)
    return rows
