"""The parts of torture_net.py that need more than signals: a broker and agents in two network namespaces (root, iproute2, nftables) whose link
is cut, slow or loses packets, and an agent whose state folder is on a full disk (unshare -rm)."""
import os, re, shutil, signal, socket, subprocess, time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 300  # seconds
HOST = "10.99.0.1"  # inside the namespaces only


def limit():
    """Seconds after which a command hangs: more where processes share a processor, twice so since torture gives way to others (nice)."""
    return LIMIT * max(1, 2 * os.getloadavg()[0] / (os.cpu_count() or 1))


class Bad(Exception):
    """What must not happen, in a sentence."""


def need(condition, sentence):
    if not condition:
        raise Bad(sentence)


def call(*words, cwd=None, check=True, **more):
    done = subprocess.run(list(map(str, words)), cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL, **more)
    need(done.returncode == 0 or not check, f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done


def namespaces_lack():
    """What the parts with namespaces lack on this machine; None: nothing."""
    name = f"reef-{os.getpid()}-try"
    for tool in ("ip", "nft", "tc", "openssl"):
        if not shutil.which(tool) and not shutil.which(f"/usr/sbin/{tool}"):
            return f"{tool}"
    if call("ip", "netns", "add", name, check=False).returncode != 0:
        return "right to make network namespaces (root)"
    worked = call("ip", "netns", "exec", name, "nft", "add table ip t", check=False).returncode == 0
    call("ip", "netns", "del", name, check=False)
    return None if worked else "nftables in its kernel"


def make_run(b, place, agents, broker, lines):
    """Keys a0, a1, ..., boss, and a signed run.yaml."""
    def keys(name):
        call(b.reef, "keys", "new", name, cwd=place)
        return call(b.reef, "keys", "show", f"{name}.key", cwd=place).stdout.strip()
    boss = keys("boss").split()[0]
    text = ["reef: 1", "run: t", f"id: {b.rng.randrange(16**32):032x}", f"coordinator: {boss}", f'brokers: ["{broker}"]', *lines,
            "agents:", *(f'  a{k}: "{keys(f"a{k}")}"' for k in range(agents))]
    (place / "draft.yaml").write_text("\n".join(text) + "\n")
    (place / "coordinator").write_text(boss + "\n")
    call(b.reef, "keys", "sign", "draft.yaml", "--key", "boss.key", "-o", "run.yaml", cwd=place)


def nobody_blamed(place, guilty=()):
    lines = [line for path in place.glob("**/audit.log") for line in path.read_text().splitlines()
             if not any(f"neighbour={name} " in line for name in guilty)]
    bad = [line for line in lines if "two_faced" in line or "event=refused" in line]
    need(not bad, "somebody was blamed:\n" + "\n".join(bad[-3:]))


class Apart:
    """A broker in one namespace; agents there and in another one, with a link in between."""

    def __init__(self, b, place, agents, count, lines):
        self.b, self.place, self.agents, self.count, self.lines = b, place, agents, count, lines
        self.one, self.two = (f"reef-{os.getpid()}-{side}" for side in "ab")
        self.children = []

    def start(self, name, space, *words):
        folder = Path(self.b.reef).parent
        env = {**os.environ, "SSL_CERT_FILE": str(self.place / "ca.pem"), "REEF_LIBRARY": str(folder / "libreef.so"),
               "REEF_NET": str(folder / "libreef_net.so"), "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1",
               "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "REEF_COUNT": str(self.count)}
        with open(self.place / name, "w") as log:
            self.children.append(subprocess.Popen(["ip", "netns", "exec", space, *map(str, words)], cwd=self.place, env=env, stdout=log,
                                                  stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL))

    def __enter__(self):
        try:
            self.make_link()
            self.make_certificates()
            make_run(self.b, self.place, self.agents, f"tls://{HOST}:4222",
                     ["graph: complete", "rule: median", f"model: {{count: {self.count}, type: f32}}", *self.lines])
            self.start("broker.log", self.one, self.b.reef, "broker", "run.yaml", "--store", "store", "--cert", "broker.pem", "--private-key",
                       "broker.key", "--authority", "ca.pem")
            self.until(lambda: "ready" in (self.place / "broker.log").read_text(), "the broker is not ready")
        except BaseException:
            self.__exit__()
            raise
        return self

    def make_link(self):
        for space in (self.one, self.two):
            call("ip", "netns", "add", space)
        call("ip", "-n", self.one, "link", "add", "here", "type", "veth", "peer", "name", "there", "netns", self.two)
        call("ip", "-n", self.one, "addr", "add", f"{HOST}/24", "dev", "here")
        call("ip", "-n", self.two, "addr", "add", "10.99.0.2/24", "dev", "there")
        for space, device in ((self.one, "lo"), (self.one, "here"), (self.two, "lo"), (self.two, "there")):
            call("ip", "-n", space, "link", "set", device, "up")
        call("ip", "netns", "exec", self.two, "nft", "add table ip t")

    def make_certificates(self):
        def openssl(*words):
            call("openssl", *words, cwd=self.place)
        openssl("req", "-x509", "-newkey", "ed25519", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=ca")
        openssl("req", "-newkey", "ed25519", "-nodes", "-keyout", "broker.key", "-out", "broker.csr", "-subj", "/CN=broker")
        (self.place / "ext").write_text(f"subjectAltName=IP:{HOST}\n")
        openssl("x509", "-req", "-in", "broker.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "ext",
                "-out", "broker.pem")

    def __exit__(self, *_):
        (self.place / "stop").touch()
        for child in reversed(self.children):  # agents end by themselves, the broker is told to
            try:
                if child is self.children[0]:
                    child.terminate()
                child.wait(60)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        for space in (self.one, self.two):
            call("ip", "netns", "del", space, check=False)

    def start_agents(self, space, rounds, numbers):
        if numbers:
            self.start(f"agents-{space[-1]}.log", space, "/usr/bin/python3", ROOT / "tests/net/netns_agents.py", self.place, rounds, *numbers)

    def loss(self, percent, hooks=("input", "output")):
        """Packets that are lost at the far side, by direction; 0: none any more."""
        call("ip", "netns", "exec", self.two, "nft", "flush table ip t")
        for hook in hooks if percent else ():
            call("ip", "netns", "exec", self.two, "nft", f"add chain ip t {hook} {{ type filter hook {hook} priority 0; }}")
            which = f"numgen random mod 1000 < {10 * percent:.0f} " if percent < 100 else ""
            call("ip", "netns", "exec", self.two, "nft", f"add rule ip t {hook} {which}counter drop")

    def link(self, state):
        call("ip", "-n", self.one, "link", "set", "here", state)

    def lines_of(self, n):
        path = self.place / f"rounds-{n}"
        return path.read_text().splitlines() if path.exists() else []

    def until(self, condition, sentence):
        end = time.monotonic() + limit()
        while not condition():
            need(time.monotonic() < end, sentence)
            need(all(child.poll() in (None, 0) for child in self.children), "a process has ended: " + self.logs())
            time.sleep(0.2)

    def logs(self):
        return "".join(path.read_text()[-500:] for path in self.place.glob("*.log"))

    def together(self):
        """From now on everybody combines with everybody at least once."""
        since = [len(self.lines_of(n)) for n in range(self.agents)]
        for n in range(self.agents):
            self.until(lambda n=n: any(line.split()[1:] == ["1", str(self.agents - 1)] for line in self.lines_of(n)[since[n]:]),
                       f"agent {n} does not find the others again: {self.lines_of(n)[-5:]}")

    def quorum_held(self, least):
        for n in range(self.agents):
            bad = [line for line in self.lines_of(n) if line.split()[1:2] == ["1"] and (int(line.split()[2]) + 1) / self.agents <= least]
            need(not bad, f"agent {n} has combined without a quorum: {bad[:3]}")


def net_partition(b, place):
    """The link is cut in one of five ways; nobody combines without a quorum, and all find together again."""
    agents = 12
    shape = b.rng.choice(["few", "half", "most", "flapping", "one-way"])
    far = {"few": b.rng.randint(1, 4), "half": 6, "most": 9}.get(shape, b.rng.randint(1, 8))
    with Apart(b, place, agents, 10, ["malicious: 0.3", "deadline: 1s"]) as net:
        net.start_agents(net.one, 10**6, range(agents - far))
        net.start_agents(net.two, 10**6, range(agents - far, agents))
        net.together()
        for _ in range(b.rng.randint(3, 8) if shape == "flapping" else 1):
            pause = b.rng.uniform(0.2, 1.5) if shape == "flapping" else b.rng.uniform(2, 25)
            if shape == "one-way":
                net.loss(100, [b.rng.choice(["input", "output"])])
            else:
                net.link("down")
            time.sleep(pause)
            net.loss(0)
            net.link("up")
            time.sleep(b.rng.uniform(0, 1))
        net.together()
        (place / "stop").touch()
        for child in net.children[1:]:
            need(child.wait(limit()) == 0, f"{shape}: agents have failed: {net.logs()}")
        net.quorum_held(0.6)
    nobody_blamed(place)


def net_loss(b, place):
    """Packets are lost, with small models and with models of 4 MB; everybody combines all the same."""
    large = b.rng.random() < 0.5
    agents, rounds = (4, 3) if large else (12, 40)
    with Apart(b, place, agents, 10**6 if large else 100, ["malicious: 0.2", "deadline: 20s"]) as net:
        net.loss(b.rng.uniform(1, 5))
        net.start_agents(net.one, 10**6, range(agents // 2))
        net.start_agents(net.two, 10**6, range(agents // 2, agents))
        for n in range(agents):
            net.until(lambda n=n: sum(line.split()[1:2] == ["1"] for line in net.lines_of(n)) >= rounds,
                      f"agent {n} does not combine {rounds} times: {net.lines_of(n)[-5:]}")
        (place / "stop").touch()
        for child in net.children[1:]:
            need(child.wait(LIMIT) == 0, f"agents have failed: {net.logs()}")
        net.quorum_held(0.4)
        lost = call("ip", "netns", "exec", net.two, "nft", "list table ip t").stdout
        need("counter packets 0 " not in lost, "no packet was lost")
    nobody_blamed(place)


def net_slow(b, place):
    """A link of 20 Mbit/s in either direction, models of 4 MB: rounds take long, but everybody combines with everybody, and nobody is cut off."""
    agents, rounds = 4, 3
    with Apart(b, place, agents, 10**6, ["malicious: 0.2", "deadline: 120s"]) as net:
        for space, device in ((net.one, "here"), (net.two, "there")):
            call("ip", "netns", "exec", space, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", "20mbit", "burst", "32kbit", "latency",
                 "400ms")
        far = b.rng.randint(1, 3)
        net.start_agents(net.one, 10**6, range(agents - far))
        net.start_agents(net.two, 10**6, range(agents - far, agents))
        for n in range(agents):
            net.until(lambda n=n: sum(line.split()[1:] == ["1", str(agents - 1)] for line in net.lines_of(n)) >= rounds,
                      f"agent {n} does not combine {rounds} times with everybody: {net.lines_of(n)[-5:]}")
        (place / "stop").touch()
        for child in net.children[1:]:
            need(child.wait(limit()) == 0, f"agents have failed: {net.logs()}")
        net.quorum_held(0.4)
        log = (place / "store/server.log").read_text()
        need("Slow Consumer" not in log and "Write Deadline" not in log, f"somebody was cut off: {log[-500:]}")
        sent = re.findall(r"Sent (\d+) bytes", call("ip", "netns", "exec", net.one, "tc", "-s", "qdisc", "show", "dev", "here").stdout)
        need(sent and int(sent[0]) > rounds * far * (agents - far) * 4 * 10**6, f"the models have gone another way: {sent}")
    nobody_blamed(place)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def net_full_disk(b, place):
    """The state folder of one agent is on a disk of 4 to 120 kB; then room is made, and it is started again."""
    lines = ["graph: complete", "rule: mref", 'strategy: "diffusion:mu=0.01"', "malicious: 0.2", "deadline: 2s",
             'test: {problem: "lms:dimension=1000"}']
    make_run(b, place, 5, f"nats://127.0.0.1:{free_port()}", lines)
    size, seconds = 4 * b.rng.randint(1, 30), b.rng.uniform(2, 14)
    disk = place / "disk"
    disk.mkdir()
    agent = f"timeout --foreground --preserve-status -s TERM %s '{b.reef}' agent run.yaml --key a4.key --state '{disk}/state' --log logfmt"
    script = f"""mount -t tmpfs -o size={size}k none '{disk}' || exit 99
{agent % f'{seconds:.1f}'} 2>first; echo $? >code
mount -o remount,size=64m '{disk}' || exit 98
{agent % 12} 2>second; echo $? >>code
cp -r '{disk}/state' state-4"""
    children = []
    def start(name, *words):
        with open(place / name, "w") as log:
            children.append(subprocess.Popen([*map(str, words)], cwd=place, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL))
    try:
        start("broker.log", b.reef, "broker", "run.yaml", "--store", "store")
        for k in range(4):
            start(f"agent-{k}.log", b.reef, "agent", "run.yaml", "--key", f"a{k}.key", "--log", "logfmt")
        code, text = b.call(["unshare", "-rm", "sh", "-c", script], place)
        need(code == 0, f"the trial itself failed: {text}")
        need(all(child.poll() is None for child in children), "another agent, or the broker, has ended")
    finally:
        for child in reversed(children):
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(60)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
    first, second = (place / "code").read_text().split()
    told, later = (place / "first").read_text(), (place / "second").read_text()
    need(first in "05", f"{size} kB: exit {first}: {told[-300:]}")
    need(first == "0" or "event=failed" in told, f"{size} kB: exit 5 without a sentence: {told[-300:]}")
    need(second == "0" and "event=end" in later, f"cannot go on when there is room: exit {second}: {later[-300:]}")
    combined = later.split("event=end")[1].split("combined=")[1].split()[0]
    need(int(combined) > 0, f"never combines again: {later[-300:]}")
    nobody_blamed(place)


PARTS = {"net_partition": net_partition, "net_loss": net_loss, "net_slow": net_slow, "net_full_disk": net_full_disk}
TELLS = {"net_partition": "twelve agents in two network namespaces; the link is cut so that 1 to 9 are apart for up to 25 s, in one direction only, or "
                          "3 to 8 times in a row",
         "net_loss": "1 to 5 % of the packets lost, with small models and with models of 4 MB",
         "net_slow": "models of 4 MB over a link of 20 Mbit/s (tbf)",
         "net_full_disk": "an agent whose state folder has 4 to 120 kB, then more room and a restart"}
