"""The parts of torture_net.py that watch agents by their metrics while they run: wall clocks that are set, monotonic clocks that differ, and memory
over half an hour."""
import os, re, signal, statistics, struct, subprocess, time, urllib.request
from pathlib import Path

from torture_netns import free_port, limit, make_run, need, nobody_blamed

DAY = 86400.0
MEMORY_SECONDS = float(os.environ.get("TORTURE_MEMORY_SECONDS", 1800))


def has_time_namespaces():
    return subprocess.run(["unshare", "--time", "--fork", "--monotonic", "1000", "true"], capture_output=True).returncode == 0


def tell(child, number):
    """A signal to a process, or to the one that `unshare --fork` waits for and keeps signals from."""
    below = Path(f"/proc/{child.pid}/task/{child.pid}/children")
    words = child.args[0] == "unshare" and below.exists() and below.read_text().split()
    if words:
        os.kill(int(words[0]), number)
    else:
        child.send_signal(number)


class Run:
    """A broker and agents on this machine that learn until they are ended."""

    def __init__(self, b, place, agents, lines):
        self.b, self.place, self.agents = b, place, agents
        self.broker = f"nats://127.0.0.1:{free_port()}"
        self.ports = [free_port() for _ in range(agents)]
        self.children = []
        make_run(b, place, agents, self.broker, lines)

    def __enter__(self):
        try:
            self.start("broker.log", self.b.reef, "broker", "run.yaml", "--store", "store")
            self.until(lambda: "ready" in (self.place / "broker.log").read_text(), "the broker is not ready")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for child in reversed(self.children):
            tell(child, signal.SIGTERM)
        for child in reversed(self.children):
            try:
                child.wait(60)
            except subprocess.TimeoutExpired:
                tell(child, signal.SIGKILL)
                child.wait()

    def start(self, name, *words, env=None):
        with open(self.place / name, "w") as log:
            self.children.append(subprocess.Popen([*map(str, words)], cwd=self.place, stdout=log, stderr=subprocess.STDOUT,
                                                  stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}))

    def start_agent(self, k, *before, env=None):
        self.start(f"agent-{k}.log", *before, self.b.reef, "agent", "run.yaml", "--key", f"a{k}.key", "--metrics", self.ports[k], "--log", "logfmt",
                   env=env)

    def until(self, condition, sentence):
        end = time.monotonic() + limit()
        while not condition():
            need(time.monotonic() < end, sentence)
            need(all(child.poll() is None for child in self.children), "a process has ended: " + self.logs())
            time.sleep(0.2)

    def logs(self):
        return "".join(f"{path.name}: {path.read_text()[-300:]}\n" for path in self.place.glob("*.log"))

    def metric(self, k, name):
        """0 while the agent does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[k]}/metrics", timeout=10) as page:
                found = re.search("^" + re.escape(name) + r" (\S+)$", page.read().decode(), re.M)
                return float(found[1]) if found else 0.0
        except OSError:
            return 0.0

    def combined(self, k):
        return self.metric(k, 'reef_agent_rounds_total{result="combined"}')

    def together(self, agents, rounds):
        """These combine so many times more, and with everybody."""
        since = {k: self.combined(k) for k in agents}
        for k, before in since.items():
            self.until(lambda k=k, before=before: self.combined(k) >= before + rounds and self.metric(k, "reef_agent_weight") > 1 - 1e-9,
                       f"agent {k} does not combine with everybody: {self.logs()}")

    def server(self):
        """The process of nats-server."""
        below = Path(f"/proc/{self.children[0].pid}/task/{self.children[0].pid}/children").read_text().split()
        return int(below[0]) if below else None

    def end(self, blamed=()):
        """All end well, and nobody is blamed but these."""
        for child in self.children[1:]:
            tell(child, signal.SIGTERM)
        for child in self.children[1:]:
            need(child.wait(limit()) == 0, f"exit {child.returncode}: {self.logs()}")
        nobody_blamed(self.place, blamed)


def set_clock(place, k, seconds):
    with open(place / f"clock-{k}", "r+b") as file:
        file.write(struct.pack("d", seconds))


def net_clock(b, place):
    """The wall clocks of agents are set by seconds to ten years, forwards and backwards, also while the broker is away; the monotonic clocks of two
    differ from the others' by a hundred days (where the machine has time namespaces)."""
    agents = 5
    lines = ["graph: complete", "rule: mref", 'strategy: "diffusion:mu=0.1"', "malicious: 0.2", "deadline: 3s",
             'test: {problem: "lms:dimension=10"}']
    shim = Path(b.reef).parent / "tests/clock_step.so"
    need(shim.exists(), f"{shim} was not built")
    for k in range(agents):
        (place / f"clock-{k}").write_bytes(struct.pack("d", b.rng.choice([0, 0, -3650 * DAY, 3650 * DAY])))
    with Run(b, place, agents, lines) as run:
        for k in range(agents):
            before = []
            if k < 2 and has_time_namespaces():
                before = ["unshare", "--time", "--fork", "--kill-child=TERM", "--monotonic", str(8640000 * (k + 1)), "--boottime",
                          str(8640000 * (k + 1))]
            run.start_agent(k, *before, env={"LD_PRELOAD": str(shim), "REEF_CLOCK": str(place / f"clock-{k}")})
        run.together(range(agents), 3)
        for _ in range(b.rng.randint(3, 8)):
            away = b.rng.random() < 0.5
            if away and run.server():
                os.kill(run.server(), signal.SIGKILL)
            time.sleep(b.rng.uniform(0, 2))
            for k in b.rng.sample(range(agents), b.rng.randint(1, agents)):
                size = b.rng.choice([1, 60, 3600, DAY, 3650 * DAY])
                set_clock(place, k, b.rng.choice([-1, 1]) * size * b.rng.uniform(0.5, 1))
            run.together(range(agents), 3)
        run.end()


def memory(pid):
    """Kilobytes of a process: resident, and of these its own."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return [int(re.search(rf"^{name}:\s+(\d+)", text, re.M)[1]) for name in ("Rss", "Anonymous")]


def fifths(values):
    """Medians over the second to the last fifth of the time, of (seconds, [resident, own])."""
    return [[statistics.median(kb[which] for at, kb in values if n * MEMORY_SECONDS / 5 <= at and (n == 4 or at < (n + 1) * MEMORY_SECONDS / 5))
             for n in range(1, 5)] for which in (0, 1)]


def net_memory(b, place):
    """Resident memory stays within 5 % over half an hour of rounds, with a malicious agent and another one that floods with frames of no use."""
    agents = 5
    lines = ["graph: complete", "rule: mref", 'strategy: "diffusion:mu=0.0002"', "malicious: 0.3", "deadline: 2s",
             'test: {problem: "lms:dimension=1000", attack: "additive:delta=10", malicious: "3"}']
    hostile = Path(b.reef).parent / "tests/hostile"
    with Run(b, place, agents, lines) as run:
        for k in range(agents - 1):  # the last one floods
            run.start_agent(k)
        run.until(lambda: all(run.combined(k) >= 3 for k in range(agents - 1)), "agents do not begin: " + run.logs())
        port = run.broker.rsplit(":", 1)[1]
        watched = {f"agent {k}": run.children[1 + k].pid for k in range(agents - 1)}
        watched["reef broker"] = run.children[0].pid
        server, samples, start = run.server(), {name: [] for name in [*watched, "nats-server"]}, time.monotonic()
        rounds = run.combined(0)
        while time.monotonic() - start < MEMORY_SECONDS:
            subprocess.run([hostile, "flood", port, "a4.key", "run.yaml", "2000"], cwd=place, capture_output=True, timeout=limit(), check=True)
            for name, pid in [*watched.items(), ("nats-server", server)]:
                samples[name].append((time.monotonic() - start, memory(pid)))
            need(all(child.poll() is None for child in run.children), "a process has ended: " + run.logs())
            time.sleep(min(5, MEMORY_SECONDS / 100))
        rounds = run.combined(0) - rounds
        run.end(blamed=["a4"])
    told = [f"{rounds:.0f} rounds in {MEMORY_SECONDS:.0f} s"]
    grown = []
    for name, values in samples.items():
        resident, own = fifths(values)
        told.append(f"{name} {' '.join(f'{kb:.0f}' for kb in resident)} kB (own {' '.join(f'{kb:.0f}' for kb in own)})")
        if name in watched and resident[-1] > 1.05 * resident[0]:
            grown.append(name)
    print("net_memory: " + "\n  ".join(told), flush=True)
    need(not grown, f"{', '.join(grown)} grow: {'; '.join(told)}")


PARTS = {"net_clock": net_clock, "net_memory": net_memory}
TELLS = {"net_clock": "the wall clocks of five agents are set by up to ten years, also while the broker is away, and monotonic clocks are a hundred days "
                      "apart",
         "net_memory": "resident memory over half an hour (`TORTURE_MEMORY_SECONDS`) of rounds and floods, within 5 %"}
