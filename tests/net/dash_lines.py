"""Lines of a made-up run, as docs/dash.md describes them: a ring of agents of which some attack from a round on."""
import json
import math


def dump(line):
    return json.dumps(line, separators=(",", ":"))


def neighbours(k, agents, reach):
    return [(k + d) % agents for d in range(-reach, reach + 1) if d != 0]


def run(agents, reach=3, malicious=(), rounds=0, names=None):
    edges = [[p, k, round(1 / (2 * reach + 1), 4)] for k in range(agents) for p in neighbours(k, agents, reach)]
    names = names or [f"agent-{k}" for k in range(agents)]
    return dump({"type": "run", "time": 0, "version": 1, "name": "trial", "rule": "mref", "attack": "sign_flip", "rounds": rounds,
                 "metric": "msd_db", "agents": names, "edges": edges, "malicious": list(malicious)})


def peer(p, round_number, attacked, why):
    bad = p in attacked
    return [p, 0 if bad else 1.1, 1 if (p + round_number) % 17 == 0 else 0, round_number // 5 if bad else 0, "value" if bad else "", why if bad else ""]


def status(k, round_number, agents, time, reach=3, attacked=(), why="points away from the others"):
    metric = -40 * (1 - math.exp(-round_number / 30)) + 2 * math.sin(k * 1.7 + round_number / 9)
    return dump({"type": "status", "time": time, "agent": k, "round": round_number, "state": "alone" if (k * 7 + round_number) % 61 == 0 else "combining",
                 "combined": round_number, "alone": round_number // 50, "skipped": 0, "idle": 0, "weight": 1,
                 "seconds": [0.01, 0.02 + 0.005 * (k % 3), 0.003], "bytes": [1000.0 * round_number * 2 * reach, 1000.0 * round_number], "resident": 2.1e7,
                 "metrics": {"msd_db": metric}, "peers": [peer(p, round_number, attacked, why) for p in neighbours(k, agents, reach)]})


def rounds(agents, first, last, seconds=0.1, reach=3, attacked=()):
    for r in range(first, last):
        for k in range(agents):
            yield status(k, r, agents, round(r * seconds, 3), reach, attacked)


def event(time, what, **more):
    return dump({"type": "event", "time": time, "what": what, **more})
