#!/usr/bin/env python3
"""Reef against other implementations of the same rules, on the same arrays, in the same run. See docs/peers.md.

    peers.py data  FILE.npy [--k K] [--megabytes N]              makes the rows
    peers.py run   FILE.npy PEER... --library libreef.so --jsonl FILE --environment NAME --threads 1|all
                   [--repeats N] [--seconds S] [--simulation S]  times the peers of this environment, adds lines to FILE
    peers.py absent PEER REASON --jsonl FILE --environment NAME  notes a peer that could not be installed
    peers.py table FILE.jsonl [--markdown]                       prints it all; fails if a peer disagrees with Reef
"""
from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)

    data = commands.add_parser("data")
    data.add_argument("file")
    data.add_argument("--k", type=int, default=32)
    data.add_argument("--megabytes", type=float, default=64)

    run = commands.add_parser("run")
    run.add_argument("file")
    run.add_argument("peers", nargs="+")
    run.add_argument("--library", required=True)
    run.add_argument("--threads", choices=["1", "all"], default="1")
    run.add_argument("--repeats", type=int, default=7)
    run.add_argument("--seconds", type=float, default=10, help="longest call of a peer")
    run.add_argument("--simulation", type=float, default=0, help="seconds for each size of the simulation, 0: none")

    absent = commands.add_parser("absent")
    absent.add_argument("peer")
    absent.add_argument("reason")
    for command in (run, absent):
        command.add_argument("--jsonl", required=True)
        command.add_argument("--environment", required=True)

    table = commands.add_parser("table")
    table.add_argument("file")
    table.add_argument("--markdown", action="store_true", help="the table of docs/peers.md")
    return parser.parse_args(arguments)


def processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "unknown")
    except OSError:
        return "unknown"


def append(path: str, records: Any) -> None:
    with open(path, "a", encoding="utf-8") as file:
        for entry in records:
            file.write(json.dumps(entry) + "\n")
            file.flush()


def make_data(options: argparse.Namespace) -> int:
    import data
    import numpy as np

    if options.k < 3 or options.megabytes <= 0:
        print("peers.py: --k must be at least 3 and --megabytes positive", file=sys.stderr)
        return 2
    np.save(options.file, data.make(options.k, data.length(options.k, options.megabytes)))
    return 0


def run(options: argparse.Namespace) -> int:
    processors = len(os.sched_getaffinity(0))
    threads = 1 if options.threads == "1" else processors
    for variable in THREAD_VARIABLES:  # read when numpy and torch are loaded, hence before them
        os.environ[variable] = str(threads)

    import numpy as np
    from measure import Setting, measure_peers, measure_simulation
    from reef import Reef

    x = np.load(options.file)
    reef = Reef(options.library, threads)
    k, m = x.shape
    setting = Setting(options.environment, options.threads, threads, options.repeats, options.seconds, k // 5)
    if not os.path.exists(options.jsonl):
        append(options.jsonl, [{"kind": "machine", "processor": processor(), "processors": processors, "k": k, "m": m,
                                "load": os.getloadavg()[0], "reef": reef.version, "repeats": options.repeats}])
    append(options.jsonl, measure_peers(setting, options.peers, x, reef))
    if options.simulation > 0:
        append(options.jsonl, measure_simulation(setting, options.simulation, reef))
    return 0


def table(options: argparse.Namespace) -> int:
    from table import print_all, print_markdown

    with open(options.file, encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    if options.markdown:
        print_markdown(records)
        return 0
    mismatches = print_all(records)
    if mismatches:
        print(f"peers.py: {mismatches} results are not those of Reef (MISMATCH above)", file=sys.stderr)
    return 1 if mismatches else 0


def main() -> int:
    options = parse(sys.argv[1:])
    if options.command == "data":
        return make_data(options)
    if options.command == "run":
        return run(options)
    if options.command == "absent":
        append(options.jsonl, [{"kind": "absent", "environment": options.environment, "peer": options.peer,
                                "reason": options.reason}])
        return 0
    return table(options)


if __name__ == "__main__":
    sys.exit(main())
