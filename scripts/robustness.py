#!/usr/bin/env python3
"""The tables of docs/robustness.md: dB above the oracle, for every kind of rule and attack, 3, 8 and 14 malicious agents of 32; hard cases first.

Usage: scripts/robustness.py REEF [FOLDER] [OPTION ...]
       scripts/robustness.py --picture docs/robustness.md docs/images/robustness.png

Runs experiments/hard_cases.yaml and experiments/robustness.yaml with the command REEF for every rule and number of malicious agents and prints the
tables in Markdown. Results go to FOLDER (default results/robustness); those already there are reused. OPTIONs are passed on to `reef run`. If gnuplot
is installed, a picture of the second experiment is drawn in FOLDER. --picture draws it from the tables of a page instead."""
import pathlib
import re
import shutil
import subprocess
import sys

import results

MALICIOUS = (3, 8, 14)
RULES = ("mean", "median", "trimmed:f={f}", "meamed:f={f}", "geomed", "krum:f={f}", "multikrum:f={f}", "bulyan:f={b}",
         "mda:f={f}", "cclip:tau=0.01,start=median", "huber", "tukey", "ref", "vref", "nnm:f={f} | ref",
         "arc:f={f} | median", "bucketing | geomed", "mref")
NAMES = {"alie:z=1,from=1000000": "none", "alie:sign=minus,z=0.1": "alie .1", "alie:sign=minus,z=0.5": "alie .5",
         "alie:sign=minus,z=1.5": "alie 1.5", "alie:sign=minus,z=3,on=5,off=195": "alie 3, 5 of 200",
         "additive:delta=1000": "+1000", "few_coordinates:delta=1000": "+1000 at one", "sign_flip:scale=1": "sign flip",
         "ipm:epsilon=0.5": "ipm .5", "min_max": "min-max", "mimic": "mimic",
         "whitewash": "new ids", "whitewash:identity=64": "new ids / 64", "whitewash:identity=64,away=1300,ids=same,z=0.6": "back after 1300",
         "come_and_go": "honest churn", "alie:z=0.3,period=100,jitter=1": "sides .3", "alie:z=0.1,period=100,jitter=1": "sides .1",
         "alie:z=1,period=16,jitter=1": "sides in step", "alie:z=3,period=2,jitter=1": "sides, fast", "shared_noise:z=1.1": "shared noise", "shared_noise:z=0.58,jitter=0.8,ids=3": "ids in turns", "alie:z=5,on=1,off=19,jitter=1": "strikes", "alie:z=0.5,jitter=1,from=900": "sleepers",
         "adaptive:period=100": "adaptive, sides", "adaptive": "adaptive", "sign_flip:reference=previous": "update flip",
         "mimic:targets=2,jitter=0.3": "copy 2", "mimic:targets=14,jitter=0.3": "copy 14", "alie:z=0.05,jitter=1": "constant .05",
         "alie:z=0.25,period=100,jitter=1,weak=0.6": "sides, unequal", "whitewash:z=0.3,identity=160,period=100": "sides, new ids / 160", "alie:z=1.5,period=100,jitter=1,strike=20": "hidden strikes", "frame": "frame"}
SHADES = ((0.5, "·"), (1.5, "░"), (5, "▒"), (15, "▓"), (float("inf"), "█"))


def rules_for(malicious):
    """Bulyan tolerates 7 of 32; mda takes too long for many malicious agents."""
    rules = [r.format(f=malicious, b=min(malicious, 7)) for r in RULES]
    return [r for r in rules if not r.startswith("mda") or malicious <= 3]


def run(reef, name, folder, malicious, options):
    """The rows of all rules, each from a folder of its own, so that a rule that changed can be run alone."""
    rows = []
    for rule in rules_for(malicious):
        print("%s, %d malicious: %s" % (name, malicious, rule), file=sys.stderr, flush=True)
        own = folder / str(malicious) / re.sub(r"[^a-z0-9.=]+", "_", rule)
        wanted = ["--set", "malicious=%d" % malicious, "--set", 'rule=["%s"]' % rule, *options]
        rows += [dict(row, rule=rule) for row in results.summary(reef, name, own, wanted)]
    return rows


def shade(excess):
    return next(mark for most, mark in SHADES if excess <= most)


def cell(excess):
    if excess > 40:
        return "█ diverged"
    return "%s %.1f" % (shade(excess), excess + 0.0 if abs(excess) >= 0.05 else 0.0)


def excess_of(rows, batch):
    """{rule: [dB above the oracle by attack]}, and the attacks."""
    attacks = list(dict.fromkeys(r["attack"] for r in rows))
    table = {}
    for rule in dict.fromkeys(r["rule"] for r in rows):
        found = {r["attack"]: r for r in rows if r["rule"] == rule and r.get("strategy.batch", batch) == batch}
        table[rule] = [float(found[a]["msd_db"]) - float(found[a]["oracle_db"]) for a in attacks]
    return table, [NAMES.get(a, a) for a in attacks]


def print_table(table, attacks, malicious, batch):
    print("\n**%d malicious agents of 32, batches of %s**\n" % (malicious, batch))
    print("| rule | " + " | ".join(attacks) + " | worst |")
    print("|---" * (len(attacks) + 2) + "|")
    for rule, excess in table.items():
        print("| `%s` | " % rule.replace("|", "\\|") + " | ".join(cell(e) for e in excess + [max(excess)]) + " |")


def print_hard(tables, attacks, rules=("mref", "mean", "vref")):
    """One line per attack: what the rules named have with 3, 8 and 14 malicious agents."""
    print("\n| attack | " + " | ".join("`%s`" % rule for rule in rules) + " |")
    print("|---" * (len(rules) + 1) + "|")
    for i, attack in enumerate(attacks):
        cells = [" / ".join("%.1f" % (table[rule][i] + 0.0) for table in tables) for rule in rules]
        print("| %s | " % attack + " | ".join(cells).replace("-0.0", "0.0") + " |")


def panel(table, attacks, malicious, batch):
    """One heat map in the language of gnuplot; a rule is named once for all panels of a row."""
    name = "$map_%d_%s" % (malicious, batch)
    short = [re.sub(r"[:,].*", "", rule) if "|" not in rule else re.sub(r":f=[0-9]+", "", rule) for rule in table]
    lines = ["%s << EOD" % name]
    lines += ["%d %d %.2f" % (x, y, min(e, 40)) for y, row in enumerate(table.values()) for x, e in enumerate(row)]
    lines += ["EOD", "set title '%d malicious agents of 32, batches of %s'" % (malicious, batch)]
    lines += ["set xtics rotate by 60 right (%s)" % ", ".join("'%s' %d" % (a, x) for x, a in enumerate(attacks))]
    lines += ["set ytics (%s)" % ", ".join("'%s' %d" % (r, y) for y, r in enumerate(short))]
    lines += ["set xrange [-0.5:%d.5]; set yrange [%d.5:-0.5]" % (len(attacks) - 1, len(table) - 1)]
    return "\n".join(lines + ["plot %s with image" % name])


def draw(panels, path):
    script = ["set terminal pngcairo size 1500,1900 font 'sans,11'", "set output '%s'" % path, "unset key", "set tics scale 0",
              "set palette defined (0 '#f7fbff', 1.5 '#c6dbef', 5 '#6baed6', 15 '#2171b5', 40 '#08306b')",
              "set cbrange [0:40]", "set cblabel 'MSD above the oracle [dB]; darkest: 40 dB and more'",
              "set colorbox user origin screen 0.92, screen 0.3 size screen 0.015, screen 0.4",  # one serves all panels
              "set multiplot layout 3,2 margins screen 0.11, screen 0.90, screen 0.075, screen 0.975 spacing screen 0.115, screen 0.1",
              panels[0], "unset colorbox", *panels[1:]]
    subprocess.run(["gnuplot"], input="\n".join(script), text=True, check=True)
    print("picture: %s" % path, file=sys.stderr)


def read_page(path):
    """The panels from the tables of a page, which print_table has written."""
    panels = []
    for title, rows in re.findall(r"\*\*(\d+ malicious agents of 32, batches of \d+)\*\*\n\n((?:\|.*\n)+)", pathlib.Path(path).read_text()):
        malicious, batch = re.findall(r"\d+", title)[0], re.findall(r"\d+", title)[2]
        head, _, *lines = [re.split(r" (?<!\\)\| ", line.strip("| \n")) for line in rows.splitlines()]
        table = {line[0].strip("`").replace("\\|", "|"): [40.0 if "diverged" in c else float(c.split()[1]) for c in line[1:-1]] for line in lines}
        panels.append(panel(table, head[1:-1], int(malicious), batch))
    return panels


def main():
    if sys.argv[1:2] == ["--picture"] and len(sys.argv) == 4:
        draw(read_page(sys.argv[2]), sys.argv[3])
        return
    reef, folder, options = results.arguments(__doc__, "results/robustness")
    panels = []
    hard = [excess_of(run(reef, "hard_cases", folder / "hard", malicious, options), "16") for malicious in MALICIOUS]
    print_hard([table for table, _ in hard], hard[0][1])
    for malicious, (table, attacks) in zip(MALICIOUS, hard):
        print_table(table, attacks, malicious, "16")
    for malicious in MALICIOUS:
        rows = run(reef, "robustness", folder, malicious, options)
        for batch in ("1", "16"):
            table, attacks = excess_of(rows, batch)
            print_table(table, attacks, malicious, batch)
            panels.append(panel(table, attacks, malicious, batch))
    if shutil.which("gnuplot"):
        draw(panels, folder / "robustness.png")


if __name__ == "__main__":
    main()
