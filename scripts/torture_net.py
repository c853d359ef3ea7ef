"""The network's part of torture.py: agents, brokers and swarms are killed and stopped, and flooded by hostile clients. Each function is one
trial; b is the Bench of torture.py."""
import os, re, signal, subprocess, time
from pathlib import Path

import torture_agents, torture_netns
from torture_netns import Bad, limit, need

EXPERIMENT = """name: trial
agents: 12
graph: ring:k=2
weights: metropolis
rule: mref
problem: {kind: lms, dimension: 10, noise: 0.01}
strategy: {kind: diffusion, mu: 0.1}
rounds: %d
malicious: 2
attack: sign_flip
repetitions: 1
seed: %d
"""


def processes_below(pid):
    """(process, command) of all that descend from a process of ours."""
    parents, names = {}, {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                text = (entry / "stat").read_text()
                parents[int(entry.name)] = int(text.rsplit(")", 1)[1].split()[1])
                names[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
    below = [pid]
    for one in below:
        below += [child for child, parent in parents.items() if parent == one]
    return [(one, names.get(one, "")) for one in below[1:]]


def swarm(b, place, rounds, *options):
    (place / "trial.yaml").write_text(EXPERIMENT % (rounds, b.rng.randrange(1000)))
    words = [b.reef, "swarm", "trial.yaml", "--no-figures", "-o", "out", "--keep", "keep", *map(str, options)]
    with open(place / "log", "w") as log:
        return subprocess.Popen(words, cwd=place, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)


def end_well(place, child):
    """The swarm has ended by itself, no honest agent has signed a round twice, and nobody was blamed for it."""
    try:
        code = child.wait(limit())
    except subprocess.TimeoutExpired as hang:
        child.terminate()
        child.wait(60)
        raise Bad("the swarm hangs") from hang
    text = (place / "log").read_text()
    need(code == 0, f"exit {code}: {text[-500:]}")
    audit = "".join(path.read_text() for path in place.glob("keep/state-*/audit.log"))
    need("two_faced" not in audit, f"a round was signed twice:\n{audit[-500:]}")
    found = re.search(r"([0-9.]+) % of their rounds alone", text)
    need(found and float(found[1]) < 60, f"agents do not find together again: {text[-300:]}")


def net_kills(b, place):
    """Agents are killed and started again."""
    end_well(place, swarm(b, place, 200, "--kills", b.rng.randint(5, 30)))


def disturb(b, child, pattern, signals, times):
    """Sends (signal, pause behind it) to one of the swarm's processes whose command has this in it."""
    for _ in range(times):
        time.sleep(b.rng.uniform(0.5, 3))
        chosen = [pid for pid, command in processes_below(child.pid) if pattern in command]
        if child.poll() is not None or not chosen:
            return
        victim = b.rng.choice(chosen)
        for number, pause in signals:
            try:
                os.kill(victim, number)
            except ProcessLookupError:
                break
            time.sleep(pause)


def net_broker(b, place):
    """The server is killed, or stopped for some seconds; agents go on alone and find together again."""
    child = swarm(b, place, 300, "--deadline", "1", "--drop", "0.01")
    kill = [(signal.SIGKILL, 0)]
    stop = [(signal.SIGSTOP, b.rng.uniform(1, 5)), (signal.SIGCONT, 0)]
    disturb(b, child, "server.conf", b.rng.choice([kill, stop]), b.rng.randint(1, 3))
    end_well(place, child)


def net_stop(b, place):
    """An agent is stopped for up to 10 s."""
    child = swarm(b, place, 300, "--deadline", "1", "--drop", "0.01")
    disturb(b, child, " agent ", [(signal.SIGSTOP, b.rng.uniform(1, 10)), (signal.SIGCONT, 0)], b.rng.randint(1, 2))
    end_well(place, child)


def program(b, place, name, **settings):
    code, text = b.call([str(Path(b.reef).parent / "tests" / name)], place, env={key: str(value) for key, value in settings.items()})
    need(code == 0, f"{name}: {text[-1000:]}")


def net_frames(b, place):
    program(b, place, "test_net_hostile", REEF_HOSTILE_FRAMES=b.rng.randint(50000, 200000))


def net_strangers(b, place):
    program(b, place, "test_net_strangers", REEF_STRANGERS=b.rng.randint(1000, 5000))


def net_schedules(b, place):
    program(b, place, "test_net_rounds", REEF_FIRST=b.rng.randrange(100000, 2**40), REEF_SCHEDULES=3000)


PARTS = {"net_kills": net_kills, "net_broker": net_broker, "net_stop": net_stop, "net_frames": net_frames, "net_strangers": net_strangers,
         "net_schedules": net_schedules, **torture_netns.PARTS, **torture_agents.PARTS}
TELLS = {"net_kills": "a swarm whose agents are killed 5 to 30 times",
         "net_broker": "a swarm whose nats-server is killed or stopped for up to 5 s, up to three times",
         "net_stop": "a swarm of which agents are stopped for up to 10 s",
         "net_frames": "50 000 to 200 000 hostile frames, counted one by one",
         "net_strangers": "1000 to 5000 logins of strangers",
         "net_schedules": "6000 simulated runs that no test has played, half of them with two epochs: loss, crashes, partitions, hostile brokers",
         **torture_netns.TELLS, **torture_agents.TELLS}
