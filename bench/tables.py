#!/usr/bin/env python3
"""Turns build/bench/bench_rules.jsonl into Markdown tables.

usage: bench/tables.py [FILE]        (tables go to the terminal)
"""
import json
import sys

ROWS = (8, 16, 32, 64, 128, 512, 1024)

# Ratios that were aimed at for two threads, in the order of ROWS.
GOALS = {
    ("median", "clean"): (1.05, 1.05, 1.10, 1.10, 1.5, 2.5, 3.4),
    ("trimmed", "clean"): (1.05, 1.05, 1.10, 1.10, 1.5, 2.5, 3.4),
    ("ref", "clean"): (1.4, 1.25, 1.2, 1.35, 1.7, 2.5, 3.2),
    ("ref", "20% far"): (1.6, 1.4, 1.3, 1.5, 2.0, 3.0, 3.8),
    ("ref", "t2 tails"): (2.4, 2.2, 2.0, 2.2, 2.8, 4.0, 4.5),
    ("ref", "20% at edge"): (2.4, 2.2, 2.0, 2.2, 2.8, 4.0, 4.5),
}
OTHERS = (
    ("(reading)", "clean"), ("ref", "clean, +16 bytes"), ("ref, trust", "clean"), ("ref, weights", "clean"),
    ("median, trust", "clean"), ("meamed", "clean"), ("huber", "clean"), ("median, AVX2", "clean"),
    ("ref, AVX2", "clean"), ("ref", "clean, float64"), ("krum", "clean"), ("geomed", "clean"), ("vref", "clean"),
    ("vref, blocks", "clean"),
)


def load(path):
    with open(path, encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    return {(f["rows"], f["threads"], f["case"], f["data"]): f for f in found}


def row_of(found, threads, case, data, goals):
    cells = []
    for i, rows in enumerate(ROWS):
        line = found.get((rows, threads, case, data))
        text = f"{line['ratio_min']:.2f}" if line else ""
        cells.append(f"{text} ({goals[i]:g})" if goals and line else text)
    name = case if data == "clean" else f"{case}, {data.removeprefix('clean, ')}"
    return f"| {name} | " + " | ".join(cells) + " |" if any(cells) else None


def table(found, threads, wanted):
    print("| | " + " | ".join(f"K={rows}" for rows in ROWS) + " |")
    print("|---|" + "---|" * len(ROWS))
    for case, data in wanted:
        line = row_of(found, threads, case, data, wanted[case, data] if isinstance(wanted, dict) else None)
        if line:
            print(line)
    print()


def times(found, threads):
    print("| nanoseconds per coordinate | " + " | ".join(f"K={rows}" for rows in ROWS) + " |")
    print("|---|" + "---|" * len(ROWS))
    for case in ("mean", "median", "ref", "vref"):
        lines = [found.get((rows, threads, case, "clean")) for rows in ROWS]
        print(f"| {case} | " + " | ".join(f"{x['ns_per_coordinate']:.3g}" if x else "" for x in lines) + " |")
    print()


def main():
    found = load(sys.argv[1] if len(sys.argv) > 1 else "build/bench/bench_rules.jsonl")
    for threads in sorted({key[1] for key in found}):
        print(f"Threads: {threads}. Time over that of the mean (goal)\n")
        table(found, threads, GOALS)
        table(found, threads, OTHERS)
        times(found, threads)


if __name__ == "__main__":
    main()
