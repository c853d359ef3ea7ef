#!/usr/bin/env python3
"""Tables of docs/explanation/network-measured.md, by `reef swarm`:  net_tables.py REEF attacks|loss|pace|seal [--rounds N] [--seed N] [--only NAME,NAME]

attacks  every attack of the product over the wire: 20 agents that all hear each other, 6 (30 % of the weight) or 9 (45 %) of them malicious
loss     what it costs that 30 % of the messages are lost, with and without models of earlier rounds in the quorum: softmax and mlp on
         digits, rules ref and mref
pace     what `stale` costs and gains over time: seconds of a run and the error at its end, where 2, 10 and 30 % of the messages are lost
seal     what sealing costs in processor time and bytes: swarms with and without it in turn, the least of five each

A line is printed as soon as it is known. Reports and asserts nothing.
"""
import argparse, csv, math, re, resource, subprocess, sys, tempfile
from pathlib import Path

LMS = {"problem": "{kind: lms, dimension: 10, noise: 0.01}", "strategy": "{kind: diffusion, mu: 0.1}"}
# What one agent alone cannot do, done by the network instead: (attack of the experiment, options of the swarm).
BY_NETWORK = {"two_faced": ("zero", ["--brokers", "2", "--two-faced", "1000", "--deadline", "0.5"]), "late": ("zero", ["--late", "0.5", "--deadline", "1"])}
PARAMETERS = {"additive": "additive:delta=1000"}
# Nothing comes of these that could be used, nor of who is excluded; beyond the quorum every round waits for the deadline.
UNHEARD = {"nan": ["--deadline", "0.5"], "silent": ["--deadline", "0.5"]}


def exclusions(kept):
    """Who was excluded by how many of the other agents in which rounds, by the audit logs of agents that nobody has excluded."""
    logs = {int(log.parent.name.removeprefix("state-")): re.findall(r"event=two_faced at=(\d+) agent=agent-(\d+) ", log.read_text())
            for log in kept.glob("state-*/audit.log")}
    named = {int(agent) for events in logs.values() for _, agent in events}
    honest = [events for k, events in logs.items() if k not in named]
    rounds = [int(at) for events in honest for at, _ in events]
    return f"{len(named)} excluded: {len(rounds)} of {len(named) * len(honest)} times, in rounds {min(rounds)} to {max(rounds)}" if rounds else "nobody excluded"


def play(reef, settings, options=()):
    """Row of summary.csv and the share of rounds alone; or the sentence of a refusal."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "trial.yaml")
        file.write_text("".join(f"{key}: {value}\n" for key, value in {"name": "trial", "repetitions": 1, **settings}.items()))
        kept = ["--keep", f"{folder}/kept"] if "--two-faced" in options else []
        try:
            done = subprocess.run([reef, "swarm", file, "--no-figures", "-o", f"{folder}/out", *kept, *options], capture_output=True, text=True,
                                  timeout=600)
        except subprocess.TimeoutExpired:
            return None, "longer than 600 s"
        if done.returncode != 0:
            return None, done.stderr.strip().splitlines()[-1].removeprefix("reef swarm: ")
        with open(f"{folder}/out/summary.csv") as table:
            row = next(csv.DictReader(table))
        row["seconds"] = float(done.stdout.split(" agents in ")[1].split()[0])
        row["excluded"] = exclusions(Path(folder, "kept")) if "--two-faced" in options else ""
        row["alone"] = float(done.stdout.split(" % of their rounds alone")[0].split()[-1])
        return row, ""


def attacks(reef, rounds, seed, only):
    listed = subprocess.run([reef, "list", "attacks"], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in listed.splitlines() if line.startswith("  ")]
    rules = ["ref", "mref"]
    shares = [6, 9]
    print("| attack | " + " | ".join(f"{rule}, {5 * n} %" for n in shares for rule in rules) + " |")
    print("|---" * (1 + len(rules) * len(shares)) + "|", flush=True)
    for name in only or ["nobody", *names]:
        cells, note = [], ""
        for n in shares:
            for rule in rules:
                attack, options = BY_NETWORK.get(name, (PARAMETERS.get(name, name), UNHEARD.get(name, [])))
                settings = {**LMS, "agents": 20, "graph": "complete", "rule": rule, "rounds": rounds, "steady": rounds // 2, "seed": seed}
                if name != "nobody":
                    settings |= {"malicious": n, "attack": attack}
                row, why = play(reef, settings, options)
                value = float(row["msd_db"]) if row else math.nan
                cells.append((f"{value:.1f}" + (f" (alone {row['alone']:.0f} %)" if row["alone"] >= 1 else "")) if row else "-")
                note = "; ".join(filter(None, [note, why, row and row["excluded"]]))
        print(f"| `{name}` | " + " | ".join(cells) + " |" + (f" <!-- {note} -->" if note else ""), flush=True)


def loss(reef, rounds, seed, only):
    ways = [("no loss", []), ("loss 30 %, `stale: 0`", ["--drop", "0.3", "--stale", "0"]), ("loss 30 %, `stale: 1`", ["--drop", "0.3", "--stale", "1"]),
            ("loss 30 %, `stale: 2`", ["--drop", "0.3", "--stale", "2"])]
    print("| problem, rule, graph | " + " | ".join(name for name, _ in ways) + " |")
    print("|---" * (1 + len(ways)) + "|", flush=True)
    problems = {"softmax": "{kind: diffusion, mu: 0.5, batch: 16}", "mlp": "{kind: diffusion, mu: 0.1, batch: 16}"}
    for kind, strategy in problems.items():
        if only and kind not in only:
            continue
        for rule in ("ref", "mref"):
            for graph, malicious in (("ring:k=2", 0), ("ring:k=4", 2)):
                settings = {"problem": "{kind: %s, data: digits, partition: iid}" % kind, "strategy": strategy, "agents": 16, "graph": graph,
                            "weights": "metropolis", "rule": rule, "rounds": rounds, "every": rounds // 20, "seed": seed}
                if malicious:
                    settings |= {"malicious": malicious, "attack": "sign_flip"}
                cells = []
                for _, options in ways:
                    row, why = play(reef, settings, options)
                    cells.append(f"{float(row['loss']):.4f}, {100 * float(row['accuracy']):.2f} % (alone {row['alone']:.1f} %)" if row else why)
                print(f"| {kind}, `{rule}`, {graph}{', 2 malicious' if malicious else ''} | " + " | ".join(cells) + " |", flush=True)


def pace(reef, rounds, seed, only):
    problems = {"softmax": ("{kind: softmax, data: digits, partition: iid}", "{kind: diffusion, mu: 0.5, batch: 16}", "loss"),
                "lms": ("{kind: lms, dimension: 10, noise: 0.01}", "{kind: diffusion, mu: 0.05}", "msd_db")}
    ways = [("`stale: 0`", ["--stale", "0"], 1), ("`stale: 1`", ["--stale", "1"], 1), ("`stale: 2`", ["--stale", "2"], 1), ("`stale: 2`, twice the rounds", ["--stale", "2"], 2)]
    print("| problem, messages lost | " + " | ".join(name for name, _, _ in ways) + " |")
    print("|---" * (1 + len(ways)) + "|", flush=True)
    for kind, (problem, strategy, error) in problems.items():
        if only and kind not in only:
            continue
        for drop in (0.02, 0.1, 0.3):
            cells = []
            for _, options, times in ways:
                settings = {"problem": problem, "strategy": strategy, "agents": 16, "graph": "ring:k=2", "weights": "metropolis", "rule": "ref",
                            "rounds": times * rounds, "every": times * rounds // 20, "seed": seed}
                row, why = play(reef, settings, ["--drop", str(drop), *options])
                cells.append(f"{float(row[error]):.4g} in {row['seconds']:.0f} s (alone {row['alone']:.1f} %)" if row else why)
            print(f"| {kind}, {100 * drop:.0f} % | " + " | ".join(cells) + " |", flush=True)


def seal(reef, rounds, seed, only):
    print("| agents | neighbours | numbers | CPU per agent and round | sealed | more |")
    print("|---" * 6 + "|", flush=True)
    for agents, graph, degree, numbers in ((16, "ring:k=2", 4, 1000), (16, "complete", 15, 1000), (4, "complete", 3, 1000000)):
        if only and str(numbers) not in only:
            continue
        rounds_now = rounds if numbers <= 1000 else max(2, rounds // 20)
        settings = {"problem": "{kind: lms, dimension: %d, noise: 0.01}" % numbers, "strategy": "{kind: diffusion, mu: 1e-9}", "agents": agents,
                    "graph": graph, "weights": "metropolis", "rule": "mean", "rounds": rounds_now, "every": rounds_now, "seed": seed}
        least = [math.inf, math.inf]
        for _ in range(5):
            for sealed in (0, 1):
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                row, why = play(reef, settings, ["--seal"] if sealed else [])
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                least[sealed] = min(least[sealed], 1e3 * used / agents / rounds_now) if row else math.nan
                if why:
                    print(f"<!-- {why} -->")
        print(f"| {agents} | {degree} | {numbers} | {least[0]:.2f} ms | {least[1]:.2f} ms | {least[1] - least[0]:.2f} ms |", flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("reef")
    options.add_argument("table", choices=["attacks", "loss", "pace", "seal"])
    options.add_argument("--rounds", type=int, default=200)
    options.add_argument("--seed", type=int, default=3)
    options.add_argument("--only", help="rows of these attacks or problems only", default="")
    wanted = options.parse_args()
    reef = str(Path(wanted.reef).resolve())
    {"attacks": attacks, "loss": loss, "pace": pace, "seal": seal}[wanted.table](reef, wanted.rounds, wanted.seed, wanted.only.split(",") if wanted.only else [])


if __name__ == "__main__":
    sys.exit(main())
