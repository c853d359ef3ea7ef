#!/usr/bin/env python3
"""Turns build/bench/bench_rules.jsonl into Markdown tables; behind a ratio, in brackets, is its goal, if it has one.

usage: bench/tables.py [FILE]        (tables go to the terminal)
"""
import json
import sys

ROWS = (8, 16, 32, 64, 128, 512, 1024)


def load(path):
    with open(path, encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    return {(f["rows"], f["threads"], f["case"], f["data"]): f for f in found}


def row_of(found, threads, case, data):
    cells = []
    for rows in ROWS:
        line = found.get((rows, threads, case, data))
        text = f"{line['ratio_min']:.2f}" if line else ""
        cells.append(f"{text} ({line['goal']:.2f})" if line and line["goal"] else text)
    name = case if data == "clean" else f"{case}, {data.removeprefix('clean, ')}"
    return f"| {name} | " + " | ".join(cells) + " |" if any(cells) else None


def table(found, threads):
    print("| | " + " | ".join(f"K={rows}" for rows in ROWS) + " |")
    print("|---|" + "---|" * len(ROWS))
    wanted = dict.fromkeys((case, data) for _, t, case, data in found if t == threads and case != "mean")
    for line in filter(None, (row_of(found, threads, case, data) for case, data in wanted)):
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
        table(found, threads)
        times(found, threads)


if __name__ == "__main__":
    main()
