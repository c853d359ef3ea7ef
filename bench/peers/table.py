"""Prints what was measured: the rules, the simulation, who is absent, and what was expected against what came out."""
from __future__ import annotations

from typing import Any, Iterable

Record = dict[str, Any]

REF_MOST = 1200.0  # ns per coordinate at K = 32: a slower numpy REF of ours would be unfit to compare with
UPDATES_LEAST = 0.5e6  # agent-updates per second of the numpy simulation, likewise
# Expected at K = 32, one thread each: least factor, and which functions it is about.
EXPECTED = [
    (50, "numpy's median", lambda r: r["function"] == "np.median"),
    (50, "ByzFL's median", lambda r: r["peer"] == "byzfl" and r["rule"] == "median"),
    (50, "Flower's median", lambda r: r["peer"] == "flower" and r["rule"] == "median"),
    (20, "the best trimmed mean", lambda r: r["rule"] == "trimmed"),
    (80, "the tuned numpy REF", lambda r: r["function"] == "REF tuned (ours)"),
    (30, "ByzFL's Krum", lambda r: r["peer"] == "byzfl" and r["rule"] == "krum"),
]


def clock(mode: str) -> str:
    """One thread: processor time, which other programs do not disturb. All threads: what one waits for."""
    return "cpu" if mode == "1" else "wall"


def factor(r: Record, of: str) -> float:
    key = f"{clock(r['mode'])}_{of}"
    return r["ns"][key] / r["reef_ns"][key]


def print_rules(records: list[Record]) -> None:
    rules = sorted({r["rule"] for r in records})
    print(f"{'':10} {'':8} {'':32} {'1 thread, processor time':>33}   {'all threads, wall-clock time':>33}")
    head = f"{'ns':>9} {'Reef':>8} {'factor':>6} {'(med.)':>8}"
    print(f"{'rule':10} {'where':8} {'peer and function':32} {head}   {head}   agreement")
    for rule in rules:
        for key in sorted({line_key(r) for r in records if r["rule"] == rule}):
            print_line(rule, [r for r in records if r["rule"] == rule and line_key(r) == key])


def line_key(r: Record) -> tuple[str, str, str]:
    return r["peer"], r["function"], r["environment"]


def print_line(rule: str, both: list[Record]) -> None:
    r = both[0]
    text = f"{rule:10} {r['environment']:8} {label(r):32}"
    for mode in ("1", "all"):
        cell = next((cells(entry) for entry in both if entry["mode"] == mode), " " * 34)
        text += f" {cell}  "
    part = "" if r["coordinates"] == r["m"] else f", {r['coordinates']} of {r['m']} coordinates"
    other = f" at {r['other']}" if r["other"] else ""
    print(f"{text} {r['agrees']} ({r['error']:.0e}{other}){part}")


def label(r: Record) -> str:
    known = r["peer"] == "numpy" or r["function"].startswith(r["peer"])
    return r["function"] if known else f"{r['peer']} {r['function']}"


def cells(r: Record) -> str:
    key = f"{clock(r['mode'])}_min"
    return f"{r['ns'][key]:9.1f} {r['reef_ns'][key]:8.2f} {factor(r, 'min'):6.1f} {'(%.1f)' % factor(r, 'median'):>8}"


def print_simulations(records: list[Record]) -> None:
    for r in records:
        rate = f"{r['updates_per_second'] / 1e6:7.2f} M agent-updates/s"
        how = f"numpy {r['version']}, {r['repetitions']} repetitions, {r['msd_db']:.1f} dB after {r['steps']} steps"
        print(f"simulation {r['environment']:8} {r['name']:32} {rate}   ({how})")


def print_versions(records: list[Record]) -> None:
    for environment, peer, version in sorted({(r["environment"], r["peer"], r["version"]) for r in records}):
        print(f"version: {environment:8} {peer:8} {version}")


def print_fitness(rules: list[Record], simulations: list[Record]) -> None:
    for r in rules:
        if r["function"] == "REF tuned (ours)" and r["mode"] == "1" and r["k"] == 32:
            ns = r["ns"]["cpu_min"]
            print(f"baseline: {r['environment']:8} tuned numpy REF {ns:.0f} ns per coordinate, at most {REF_MOST:.0f}: "
                  f"{'fit' if ns <= REF_MOST else 'UNFIT'}")
    for r in simulations:
        if r["name"] == "numpy":
            rate = r["updates_per_second"]
            print(f"baseline: {r['environment']:8} numpy simulation {rate / 1e6:.2f} M agent-updates/s, at least "
                  f"{UPDATES_LEAST / 1e6}: {'fit' if rate >= UPDATES_LEAST else 'UNFIT'}")


def print_expected(records: list[Record]) -> None:
    alone = [r for r in records if r["mode"] == "1" and r["k"] == 32]
    for least, text, about in EXPECTED if alone else []:
        found = [r for r in alone if about(r)]
        if not found:
            print(f"expected: {least} x {text}: not measured")
            continue
        worst = min(found, key=lambda r: factor(r, "min"))
        reached = factor(worst, "min")
        print(f"expected: {least} x {text}: {'reached' if reached >= least else 'NOT REACHED'}, {reached:.1f} "
              f"({worst['environment']}: {label(worst)})")


def of_kind(records: Iterable[Record], kind: str) -> list[Record]:
    return [r for r in records if r["kind"] == kind]


def print_markdown(records: list[Record]) -> None:
    """The table of docs/peers.md."""
    rules = of_kind(records, "rule")
    print("| rule | environment | peer and function | 1 thread: ns | Reef | factor | all threads: ns | Reef | factor |")
    print("|---|---|---|---|---|---|---|---|---|")
    for rule in sorted({r["rule"] for r in rules}):
        for key in sorted({line_key(r) for r in rules if r["rule"] == rule}):
            both = {r["mode"]: r for r in rules if r["rule"] == rule and line_key(r) == key}
            figures = [markdown_cells(both[mode]) if mode in both else "| | |" for mode in ("1", "all")]
            print(f"| {rule} | {key[2]} | {label(next(iter(both.values())))} {' '.join(figures)} |")


def markdown_cells(r: Record) -> str:
    key = f"{clock(r['mode'])}_min"
    return f"| {r['ns'][key]:.0f} | {r['reef_ns'][key]:.1f} | {factor(r, 'min'):.1f}"


def print_all(records: list[Record]) -> int:
    """Returns the number of functions that do not compute what they are compared with."""
    rules, simulations = of_kind(records, "rule"), of_kind(records, "simulation")
    for r in of_kind(records, "machine"):
        print(f"machine: {r['processor']}, {r['processors']} processors, load {r['load']:.1f}, Reef {r['reef']}, "
              f"K = {r['k']}, M = {r['m']}, {r['repeats']} repeats")
    print_versions(rules)
    for r in of_kind(records, "absent"):
        print(f"absent: {r['peer']} ({r['environment']}): {r['reason']}")
    print()
    print_rules(rules)
    print()
    print_simulations(simulations)
    print_fitness(rules, simulations)
    print_expected(rules)
    return sum(r["agrees"] == "MISMATCH" for r in rules)
