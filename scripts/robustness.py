#!/usr/bin/env python3
"""The table of docs/robustness.md: dB above the oracle, for every kind of rule and lie, 3, 8 and 14 liars of 32.

Usage: scripts/robustness.py REEF [FOLDER] [OPTION ...]

Runs experiments/robustness.yaml with the command REEF for every rule and number of liars (results in FOLDER, default
results/robustness; what is there already is not run again), options are handed on, and prints the table in Markdown. With gnuplot a picture of it is put in FOLDER."""
import re
import shutil
import subprocess
import sys

import results

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
    """The rows of all rules, each from a folder of its own, so that a rule that changed can be run alone."""
    rows = []
    for rule in rules_for(liars):
        print("%d liars: %s" % (liars, rule), file=sys.stderr, flush=True)
        own = folder / str(liars) / re.sub(r"[^a-z0-9.=]+", "_", rule)
        wanted = ["--set", "liars=%d" % liars, "--set", 'rule=["%s"]' % rule, *options]
        rows += [dict(row, rule=rule) for row in results.summary(reef, "robustness", own, wanted)]
    return rows


def shade(excess):
    return next(mark for most, mark in SHADES if excess <= most)


def cell(excess):
    if excess > 40:
        return "█ lost"
    return "%s %.1f" % (shade(excess), excess + 0.0 if abs(excess) >= 0.05 else 0.0)


def excess_of(rows, batch):
    """{rule: [dB above the oracle by attack]}, and the attacks."""
    attacks = list(dict.fromkeys(r["attack"] for r in rows))
    table = {}
    for rule in dict.fromkeys(r["rule"] for r in rows):
        found = {r["attack"]: r for r in rows if r["rule"] == rule and r["strategy.batch"] == batch}
        table[rule] = [float(found[a]["msd_db"]) - float(found[a]["oracle_db"]) for a in attacks]
    return table, [NAMES.get(a, a) for a in attacks]


def print_table(table, attacks, liars, batch):
    print("\n**%d liars of 32, batches of %s**\n" % (liars, batch))
    print("| rule | " + " | ".join(attacks) + " | worst |")
    print("|---" * (len(attacks) + 2) + "|")
    for rule, excess in table.items():
        print("| `%s` | " % rule.replace("|", "\\|") + " | ".join(cell(e) for e in excess + [max(excess)]) + " |")


def panel(table, attacks, liars, batch):
    """One heat map in the language of gnuplot; a rule is named once for all panels of a row."""
    name = "$map_%d_%s" % (liars, batch)
    short = [re.sub(r"[:,].*", "", rule) if "|" not in rule else re.sub(r":f=[0-9]+", "", rule) for rule in table]
    lines = ["%s << EOD" % name]
    lines += ["%d %d %.2f" % (x, y, min(e, 40)) for y, row in enumerate(table.values()) for x, e in enumerate(row)]
    lines += ["EOD", "set title '%d liars of 32, batches of %s'" % (liars, batch)]
    lines += ["set xtics rotate by 60 right (%s)" % ", ".join("'%s' %d" % (a, x) for x, a in enumerate(attacks))]
    lines += ["set ytics (%s)" % ", ".join("'%s' %d" % (r, y) for y, r in enumerate(short))]
    lines += ["set xrange [-0.5:%d.5]; set yrange [%d.5:-0.5]" % (len(attacks) - 1, len(table) - 1)]
    return "\n".join(lines + ["plot %s with image" % name])


def draw(panels, path):
    script = ["set terminal pngcairo size 1500,1900 font 'sans,11'", "set output '%s'" % path, "unset key",
              "set palette defined (0 '#f7fbff', 1.5 '#c6dbef', 5 '#6baed6', 15 '#2171b5', 40 '#08306b')",
              "set cbrange [0:40]", "set cblabel 'dB above the oracle'", "set multiplot layout 3,2", *panels]
    subprocess.run(["gnuplot"], input="\n".join(script), text=True, check=True)
    print("picture: %s" % path, file=sys.stderr)


def main():
    reef, folder, options = results.arguments(__doc__, "results/robustness")
    panels = []
    for liars in LIARS:
        rows = run(reef, folder, liars, options)
        for batch in ("1", "16"):
            table, attacks = excess_of(rows, batch)
            print_table(table, attacks, liars, batch)
            panels.append(panel(table, attacks, liars, batch))
    if shutil.which("gnuplot"):
        draw(panels, folder / "robustness.png")


if __name__ == "__main__":
    main()
