#!/usr/bin/env python3
"""What rounds over the network cost:  bench_net.py REEF [AGENTSxNUMBERS...]

For each size (agents x numbers in a model; default: see SIZES; those that do not fit into memory are left out, with a line that says so) on a ring of degree 4 with the rule `median`: rounds per
second (with and without the start of all processes), processor time per agent and round, bytes over the loopback per agent and round, memory
of an agent (proportional share, largest mean while it ran) of `reef swarm`; beside it the messages alone through a plain nats-server (no signatures, no store, no
learning; clients are threads of this script), and `reef run`, the same rounds in one process. Reports and asserts nothing.
A network namespace of its own keeps other traffic out of the bytes; without one they are left out.
"""
import os, re, resource, shutil, socket, subprocess, sys, tempfile, threading, time
from pathlib import Path

SIZES = [(16, 1000), (128, 1000), (1000, 1000), (4, 1000000), (16, 1000000), (4, 25000000), (128, 1000000)]
AGENT_BYTES = 280  # of memory for each number of a model, measured with a million numbers


def rounds_of(agents, numbers):
    if numbers > 1000:
        return 6 if agents <= 16 else 3
    return 100 if agents < 1000 else 10


def available():
    text = Path("/proc/meminfo").read_text()
    return 1024 * int(text.split("MemAvailable:")[1].split()[0])


EXPERIMENT = """name: bench
agents: {agents}
graph: ring:k=2
rule: median
problem: {{kind: lms, dimension: {numbers}, noise: 0.01}}
strategy: {{kind: diffusion, mu: 1e-9}}
rounds: {rounds}
every: {rounds}
repetitions: 1
seed: 1
"""


def children(pid):
    below = [pid]
    for one in below:
        try:
            below += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
        except OSError:
            continue
    return below[1:]


def memory(pid):
    """Proportional shares of the agents' memory in kB, and how many agents there are."""
    total = count = 0
    for one in children(pid):
        try:
            if b"\0agent\0" in Path(f"/proc/{one}/cmdline").read_bytes():
                text = Path(f"/proc/{one}/smaps_rollup").read_text()
                total += int(text.split("Pss:")[1].split()[0])
                count += 1
        except (OSError, IndexError):
            continue
    return total, count


def loopback_bytes():
    return next(int(line.split()[1]) for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))


def measure(words):
    """Seconds, processor seconds, bytes over the loopback, largest memory per agent (kB), output and messages."""
    used, sent, start = resource.getrusage(resource.RUSAGE_CHILDREN), loopback_bytes(), time.monotonic()
    told = tempfile.TemporaryFile("w+")
    child = subprocess.Popen(words, stdout=told, stderr=told, text=True)
    most = 0.0
    while child.poll() is None:
        total, count = memory(child.pid)
        most = max(most, total / count if count else 0)
        time.sleep(0.3)
    took, now = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    told.seek(0)
    return took, busy, loopback_bytes() - sent, most, told.read()


def plain(agents, numbers, rounds):
    """Seconds for the same messages through a nats-server: everybody publishes, everybody hears four; one thread per agent."""
    server = shutil.which("nats-server") or "/usr/sbin/nats-server"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "conf").write_text(f'listen: "127.0.0.1:-1"\nports_file_dir: "{folder}"\nmax_payload: 8388608\n')
        child = subprocess.Popen([server, "-c", f"{folder}/conf"], stderr=subprocess.DEVNULL)
        ports = Path(folder, f"nats-server_{child.pid}.ports")
        while not ports.exists() or "nats://" not in ports.read_text():
            time.sleep(0.05)
        port = int(ports.read_text().split("nats://127.0.0.1:")[1].split('"')[0])
        barrier = threading.Barrier(agents + 1)

        def agent(k):
            payload = bytes(4 * numbers)
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                near = [(k + d) % agents for d in (-2, -1, 1, 2)] if agents > 4 else [l for l in range(agents) if l != k]
                connection.sendall(b"CONNECT {}\r\n" + b"".join(b"SUB s.%d %d\r\n" % (l, l) for l in near) + b"PING\r\n")
                stream = connection.makefile("rb")
                while stream.readline() != b"PONG\r\n":
                    pass
                barrier.wait()
                for _ in range(rounds):
                    connection.sendall(b"PUB s.%d %d\r\n" % (k, len(payload)) + payload + b"\r\n")
                    heard = 0
                    while heard < len(near):
                        line = stream.readline()
                        if line.startswith(b"MSG"):
                            stream.read(int(line.split()[-1]) + 2)
                            heard += 1
                        elif line == b"PING\r\n":
                            connection.sendall(b"PONG\r\n")

        threads = [threading.Thread(target=agent, args=(k,), daemon=True) for k in range(agents)]
        for one in threads:
            one.start()
        barrier.wait()
        start = time.monotonic()
        for one in threads:
            one.join()
        took = time.monotonic() - start
        child.terminate()
        child.wait()
        return took


def main():
    reef = str(Path(sys.argv[1]).resolve())
    if "REEF_BENCH_APART" not in os.environ and subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode == 0:
        os.environ["REEF_BENCH_APART"] = "1"
        script = 'ip link set lo up && exec "$0" "$@"'
        os.execvp("unshare", ["unshare", "-rn", "sh", "-c", script, sys.executable, *sys.argv])
    sizes = [tuple(map(int, text.split("x"))) for text in sys.argv[2:]] or SIZES
    print("| agents | numbers | rounds/s | without the start | CPU per agent and round | bytes per agent and round | memory of an agent | plain NATS, rounds/s "
          "| one process, rounds/s |")
    print("|---" * 9 + "|", flush=True)
    for agents, numbers in sizes:
        rounds = rounds_of(agents, numbers)
        if agents * numbers * AGENT_BYTES > 0.9 * available():
            print(f"| {agents} | {numbers} | left out: needs about {agents * numbers * AGENT_BYTES / 1e9:.0f} GB of memory |", flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "bench.yaml")
            file.write_text(EXPERIMENT.format(agents=agents, numbers=numbers, rounds=rounds))
            took, busy, sent, most, text = measure([reef, "swarm", file, "--no-figures", "-o", f"{folder}/swarm"])
            if " agents in " not in text:
                print(f"| {agents} | {numbers} | failed: {' '.join(text.split())[-200:]} |", flush=True)
                continue
            seconds = float(text.split(" agents in ")[1].split()[0])
            started = max([0.0, *map(float, re.findall(r"(\d+) s  \d+ of \d+ agents started", text))])
            alone = measure([reef, "run", file, "-q", "--no-figures", "-o", f"{folder}/run"])[0]
        apart = "REEF_BENCH_APART" in os.environ
        print(f"| {agents} | {numbers} | {rounds / seconds:.2f} | {rounds / (seconds - started):.2f} | {1e3 * busy / agents / rounds:.2f} ms | "
              f"{sent / agents / rounds / 1e3:.1f} kB{'' if apart else ' (with other traffic)'} | {most / 1e3:.1f} MB | "
              f"{rounds / plain(agents, numbers, rounds):.1f} | {rounds / alone:.1f} |", flush=True)


if __name__ == "__main__":
    main()
