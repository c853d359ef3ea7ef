#!/usr/bin/env python3
"""What each part of mref is worth, for docs/robustness.md: dB lost where it is missed most, and won where it is in the way.

Usage: scripts/ablation.py REEF [FOLDER] [OPTION ...]

Runs experiments/mref_ablation.yaml and mref_ablation_settings.yaml with the command REEF (results in FOLDER, default
results/ablation; what is there already is not run again), options are handed on, and prints the table in Markdown."""
import sys

import results

FILES = ("mref_ablation", "mref_ablation_settings")
ABOUT = (("malicious", "%s malicious"), ("strategy.batch", "batches of %s"), ("attack", "`%s`"))
PLACE = (("agents", "K = %s"), ("graph", "`%s`"), ("problem.heterogeneity", "honest agents differ by %s"))


def setting(row):
    """In words; what goes without saying is left out."""
    silent = {"32", "complete", "0", ""}
    words = [form % row[key] for key, form in PLACE if row.get(key, "") not in silent]
    if row["malicious"] == "0":
        return ", ".join([*words, "nobody lies", "batches of %s" % row["strategy.batch"]])
    return ", ".join([*words, *(form % row[key] for key, form in ABOUT)])


def collect(rows):
    """{part: {setting: dB}}"""
    table = {}
    for row in rows:
        table.setdefault(row["rule.without"], {})[setting(row)] = float(row["msd_db"])
    return table


def main():
    reef, folder, options = results.arguments(__doc__, "results/ablation")
    rows = []
    for name in FILES:
        print(name, file=sys.stderr, flush=True)
        rows += results.summary(reef, name, folder / name, options)
    table = collect(rows)
    whole = table.pop("nothing")
    print("%d settings\n\n| part | lost without it [dB] | where | gained without it [dB] | where |\n|---|---|---|---|---|" % len(whole))
    worth = {part: {s: found[s] - whole[s] for s in whole} for part, found in table.items()}
    for part, loss in sorted(worth.items(), key=lambda item: -max(item[1].values())):
        most, least = max(loss, key=loss.get), min(loss, key=loss.get)
        print("| %s | %.1f | %s | %.1f | %s |" % (part, loss[most], most, -loss[least] + 0.0, least))


if __name__ == "__main__":
    main()
