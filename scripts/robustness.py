#!/usr/bin/env python3
"""The table of docs/robustness.md: dB above the oracle, for every kind of rule and lie, 3, 8 and 14 liars of 32.

Usage: scripts/robustness.py REEF [FOLDER] [OPTION ...]

Runs experiments/robustness.yaml with the command REEF three times (results in FOLDER, default results/robustness; a run
that was stopped goes on), options are handed on, and prints the table in Markdown."""
import csv
import pathlib
import subprocess
import sys

LIARS = (3, 8, 14)
RULES = ("mean", "median", "trimmed:f={f}", "meamed:f={f}", "geomed", "krum:f={f}", "multikrum:f={f}", "bulyan:f={b}",
         "mda:f={f}", "cclip:tau=0.01,start=median", "huber", "tukey", "ref", "vref", "nnm:f={f} | ref",
         "arc:f={f} | median", "bucketing | geomed", "mref")
NAMES = {"alie:z=1,from=1000000": "none", "alie:sign=minus,z=0.1": "alie .1", "alie:sign=minus,z=0.5": "alie .5",
         "alie:sign=minus,z=1.5": "alie 1.5", "alie:sign=minus,z=3,on=5,off=195": "alie 3, 5 of 200",
         "additive:delta=1000": "+1000", "few_coordinates:delta=1000": "+1000 at one", "sign_flip:scale=1": "sign flip",
         "ipm:epsilon=0.5": "ipm .5", "min_max": "min-max", "mimic": "mimic"}
SHADES = ((0.5, "·"), (1.5, "░"), (5, "▒"), (15, "▓"), (float("inf"), "█"))


def rules_for(liars):
    """Bulyan bears 7 of 32; mda takes too long for many liars."""
    rules = [r.format(f=liars, b=min(liars, 7)) for r in RULES]
    return [r for r in rules if not r.startswith("mda") or liars <= 3]


def run(reef, folder, liars, options):
    listed = ", ".join('"%s"' % r for r in rules_for(liars))
    experiment = pathlib.Path(__file__).parent.parent / "experiments" / "robustness.yaml"
    subprocess.run([reef, "run", str(experiment), "--resume", "--no-figures", "--quiet", "-o", str(folder), "--set",
                    "liars=%d" % liars, "--set", "rule=[%s]" % listed, *options], check=True)
    with open(folder / "summary.csv", newline="") as file:
        return list(csv.DictReader(file))


def shade(excess):
    return next(mark for most, mark in SHADES if excess <= most)


def cell(excess):
    if excess > 40:
        return "█ lost"
    return "%s %.1f" % (shade(excess), excess + 0.0 if abs(excess) >= 0.05 else 0.0)


def print_table(rows, liars, batch):
    attacks = [a for a in dict.fromkeys(r["attack"] for r in rows)]
    print("\n**%d liars of 32, batches of %s**\n" % (liars, batch))
    print("| rule | " + " | ".join(NAMES.get(a, a) for a in attacks) + " | worst |")
    print("|---" * (len(attacks) + 2) + "|")
    for rule in dict.fromkeys(r["rule"] for r in rows):
        found = {r["attack"]: r for r in rows if r["rule"] == rule and r["strategy.batch"] == batch}
        excess = [float(found[a]["msd_db"]) - float(found[a]["oracle_db"]) for a in attacks]
        print("| `%s` | " % rule.replace("|", "\\|") + " | ".join(cell(e) for e in excess + [max(excess)]) + " |")


def main():
    reef = sys.argv[1]
    folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "results/robustness")
    for liars in LIARS:
        rows = run(reef, folder / str(liars), liars, sys.argv[3:])
        for batch in ("1", "16"):
            print_table(rows, liars, batch)


if __name__ == "__main__":
    main()
