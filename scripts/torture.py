#!/usr/bin/env python3
"""An hour of what machines do to programs:  torture.py REEF [--seconds N] [--parts A,B] [--seed N] [--fresh]

Runs, aggregations and jobs over ranks are killed, stopped, starved of disk, memory and file descriptors, and find their files damaged, at
random places. What must hold, each time:

  nothing torn     a file under its final name is an old one or a new one, whole
  nothing lost     going on afterwards (--resume) reaches the bytes of a run that nobody disturbed
  nothing silent   a failure has an exit code and a sentence; damage that was found is told
  no hang, no crash

The state is in build/torture, so that it can be interrupted and goes on where it was; when the time is used up the table is printed, and
the next call begins anew. The folder of a trial that failed is kept. TORTURE (or --parts) chooses parts; `run` stands for all of them, `net` for those of the network.
"""
import argparse, filecmp, json, os, random, resource, shutil, signal, struct, subprocess, sys, time
from pathlib import Path

import torture_net, torture_netns
from torture_net import Bad, limit, need

ROOT = Path(__file__).resolve().parent.parent
HOME = Path(os.environ.get("TORTURE_FOLDER", ROOT / "build/torture"))

EXPERIMENT = """agents: 10
graph: ring:k=3
problem: {kind: lms, dimension: 8}
strategy: diffusion:mu=0.05
rule: [median, ref, mref]
attack: alie
%s: 2
trust: true
%s: 400
%s: 4
"""
CRASHES = {signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL}


class Bench:
    """The program under torture, a place for a trial, and what undisturbed runs give."""

    def __init__(self, reef, rng):
        self.reef, self.rng = str(reef), rng
        self.reference = HOME / "reference"
        self.ranks = str(ROOT / "scripts/ranks.sh")
        self.has_mpi = shutil.which("mpirun") is not None and (Path(reef).parent / "libreef_mpi.so").exists()
        has_server = any(map(shutil.which, ("nats-server", "/usr/sbin/nats-server", os.environ.get("REEF_NATS_SERVER", ""))))
        self.has_net = has_server and (Path(reef).parent / "tests/test_net_hostile").exists()
        self.has_tmpfs = subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode == 0

    def command(self, *words):
        return [self.reef, *map(str, words)]

    def run_words(self, folder, *more):
        return self.command("run", self.reference / "small.yaml", "-q", "--no-figures", "--save-models", "-o", folder, *more)

    def call(self, words, cwd, before=None, env=None):
        """Exit code and stderr; a hang or a crash is bad."""
        try:
            done = subprocess.run(words, cwd=cwd, capture_output=True, timeout=limit(), preexec_fn=before,
                                  env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired as hang:
            raise Bad(f"hangs: {' '.join(words)}") from hang
        text = done.stderr.decode(errors="replace")
        said = text.strip() or done.stdout.strip() or done.returncode < 0
        need(-done.returncode not in CRASHES, f"signal {-done.returncode}: {' '.join(words)}\n{text}")
        need(done.returncode == 0 or said, f"exit {done.returncode} without a sentence: {' '.join(words)}")
        return done.returncode, text

    def disturb(self, words, cwd, signals):
        """Starts a command and sends it (signal, seconds to wait before) one after the other; its exit code, or None if it ended early."""
        child = subprocess.Popen(words, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        try:
            for number, wait in signals:
                try:
                    child.wait(wait)
                    return None
                except subprocess.TimeoutExpired:
                    child.send_signal(number)
            return child.wait(limit())
        except subprocess.TimeoutExpired as hang:
            raise Bad("hangs after signals") from hang
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()

    def prepare(self):
        """The undisturbed results; the words of the file are those that this version knows."""
        shutil.rmtree(HOME / "reference", ignore_errors=True)
        self.reference.mkdir(parents=True)
        for words in (("malicious", "rounds", "repetitions"), ("malicious", "iterations", "runs"), ("liars", "iterations", "runs")):
            (self.reference / "small.yaml").write_text(EXPERIMENT % words)
            if self.call(self.command("check", "small.yaml"), self.reference)[0] == 0:
                break
        start = time.monotonic()
        code, text = self.call(self.run_words(self.reference / "whole"), self.reference)
        self.run_seconds = time.monotonic() - start
        need(code == 0, f"the undisturbed run fails: {text}")
        for i in range(4):
            write_model(self.reference / f"m{i}.safetensors", random.Random(i))
        start = time.monotonic()
        code, text = self.call(self.aggregate_words(self.reference / "merged.safetensors"), self.reference)
        self.aggregate_seconds = time.monotonic() - start
        need(code == 0, f"the undisturbed aggregation fails: {text}")

    def aggregate_words(self, out):
        return self.command("aggregate", "--rule", "ref", *(self.reference / f"m{i}.safetensors" for i in range(4)), "-o", out)

    def same_results(self, folder):
        for name in ("summary.csv", "curves.csv", "trust.csv", "check.txt", "config.yaml"):
            need((folder / name).exists(), f"{name} is missing")
            need(filecmp.cmp(folder / name, self.reference / "whole" / name, shallow=False), f"{name} differs")
        for model in (self.reference / "whole/models").iterdir():
            need(filecmp.cmp(folder / "models" / model.name, model, shallow=False), f"models/{model.name} differs")
        need((folder / "manifest.json").exists(), "no manifest.json")
        json.loads((folder / "manifest.json").read_text())

    def nothing_torn(self, folder):
        """Tables that are there are whole, and with a manifest they are the right ones."""
        for name in ("summary.csv", "curves.csv", "trust.csv"):
            path = folder / name
            need(not path.exists() or filecmp.cmp(path, self.reference / "whole" / name, shallow=False), f"{name} is torn")
        if (folder / "manifest.json").exists():
            self.same_results(folder)

    def go_on(self, folder, *more):
        code, text = self.call(self.run_words(folder, "--resume", *more), folder.parent)
        need(code == 0, f"cannot go on: {text}")
        self.same_results(folder)
        return text


def write_model(path, rng, tensors=6, length=60000):
    header, at, blocks = {}, 0, []
    for i in range(tensors):
        header[f"layer{i}.weight"] = {"dtype": "F32", "shape": [length], "data_offsets": [at, at + 4 * length]}
        at += 4 * length
        blocks.append(struct.pack(f"<{length}f", *(rng.uniform(-1, 1) for _ in range(length))))
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blocks))


def damage(path, rng):
    """A flipped bit, a cut, zeros, or bytes of another place; never the same content."""
    data = bytearray(path.read_bytes())
    kind = rng.randrange(4) if len(data) > 8 else 0
    before = bytes(data)
    while bytes(data) == before:
        place = rng.randrange(len(data)) if data else 0
        if kind == 0:
            data = data or bytearray(1)
            data[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[place:]
        elif kind == 2:
            data[place:place + 64] = bytes(len(data[place:place + 64]))
        else:
            other = rng.randrange(len(data))
            piece = bytes(data[other:other + 16])
            data[place:place + len(piece)] = piece
    path.unlink()  # it may have another name, which stays whole
    path.write_bytes(data)


# ---- the parts: each is one trial in a folder of its own ----

def kill_run(b, place):
    folder = place / "r"
    for _ in range(b.rng.randint(1, 3)):
        resume = ["--resume"] if folder.exists() else []
        threads = ["--threads", str(b.rng.choice([1, 2, 4]))]
        b.disturb(b.run_words(folder, *resume, *threads), place, [(signal.SIGKILL, b.rng.uniform(0, 1.2 * b.run_seconds))])
        if folder.exists():
            b.nothing_torn(folder)
    b.go_on(folder)


def stop_run(b, place):
    folder = place / "r"
    last = b.rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP, None])
    signals = []
    for _ in range(b.rng.randint(1, 4)):
        signals += [(signal.SIGSTOP, b.rng.uniform(0, 0.5 * b.run_seconds)), (signal.SIGCONT, b.rng.uniform(0.01, 0.3))]
    if last:
        signals.append((last, b.rng.uniform(0, b.run_seconds)))
    code = b.disturb(b.run_words(folder), place, signals)
    if folder.exists():
        b.nothing_torn(folder)
    if last is None:
        need(code in (0, None), f"exit {code} after being stopped and continued")
        b.same_results(folder)
    else:
        b.go_on(folder)


def kill_aggregate(b, place):
    out = place / "out.safetensors"
    old = b"an older file" if b.rng.random() < 0.5 else None
    if old:
        out.write_bytes(old)
    number = b.rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    b.disturb(b.aggregate_words(out), place, [(number, b.rng.uniform(0, 1.2 * b.aggregate_seconds))])
    if out.exists():
        data = out.read_bytes()
        need(data == old or data == (b.reference / "merged.safetensors").read_bytes(), "the output is torn")
    else:
        need(old is None, "the older file is gone")
    code, text = b.call(b.aggregate_words(out), place)
    need(code == 0, f"the next aggregation fails: {text}")
    need(filecmp.cmp(out, b.reference / "merged.safetensors", shallow=False), "the next aggregation differs")


def rank_pids(folder):
    """Ranks, not their launcher, of the job with this folder."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(folder) in (entry / "cmdline").read_text() and \
                    any(key in (entry / "environ").read_bytes() for key in (b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK=")):
                yield int(entry.name)
        except OSError:
            continue


def kill_ranks(b, place):
    folder = place / "r"
    what = b.rng.choice(["cells", "agents"])
    for _ in range(b.rng.randint(1, 2)):
        words = [b.ranks, str(b.rng.choice([2, 3])), *b.run_words(folder, "--resume", "--distribute", what, "--checkpoint", "40")]
        child = subprocess.Popen(words, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        time.sleep(b.rng.uniform(0.3, 2 + 3 * b.run_seconds))
        for pid in list(rank_pids(folder))[:1]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            child.wait(limit())
        except subprocess.TimeoutExpired as hang:
            child.kill()
            raise Bad("the launcher hangs after a rank has died") from hang
        if folder.exists():
            b.nothing_torn(folder)
    checkpoints = list((folder / "checkpoints").glob("*.safetensors")) if folder.exists() else []
    hurt = bool(checkpoints) and b.rng.random() < 0.6
    if hurt:
        damage(b.rng.choice(checkpoints), b.rng)
    words = [b.ranks, "2", *b.run_words(folder, "--resume", "--distribute", what, "--checkpoint", "40")]
    code, text = b.call(words, place)
    need(code == 0, f"cannot go on over ranks: {text}")
    b.same_results(folder)


def damaged_cells(b, place):
    folder = place / "r"
    shutil.copytree(b.reference / "whole", folder)
    files = sorted((folder / "cells").iterdir())
    hurt = b.rng.sample(files, b.rng.randint(1, min(3, len(files))))
    for path in hurt:
        damage(path, b.rng)
    text = b.go_on(folder)
    jobs = {path.stem for path in hurt}
    need("damaged file" in text, "damage is not told")
    need(f"{len(jobs)} damaged" in text, f"{len(jobs)} damaged, but: {text.strip()}")


def damaged_inputs(b, place):
    """Inputs of every kind: refused with a sentence, or aggregated as what they say."""
    paths = []
    for i in range(3):
        paths.append(place / f"m{i}.safetensors")
        shutil.copy(b.reference / f"m{i}.safetensors", paths[-1])
    damage(b.rng.choice(paths), b.rng)
    out = place / "out.safetensors"
    code, _ = b.call(b.command("aggregate", "--rule", "median", *paths, "-o", out), place)
    need(code == 0 or not out.exists(), "a failed aggregation has left an output")
    table = place / "r"
    shutil.copytree(b.reference / "whole", table)
    for name in ("summary.csv", "config.yaml", "manifest.json"):
        damage(table / name, b.rng)
    b.call(b.command("compare", table, b.reference / "whole"), place)
    b.call(b.command("check", table / "config.yaml"), place)


def limits(b, place):
    """Memory, file size, descriptors, processor time: fails with a sentence or gives the right bytes."""
    kind = b.rng.choice(["memory", "memory", "size", "files", "time"])
    amount = {"memory": b.rng.randrange(8, 400) << 20, "size": b.rng.randrange(1, 400000), "files": b.rng.randrange(3, 16),
              "time": 1}[kind]
    which = {"memory": resource.RLIMIT_AS, "size": resource.RLIMIT_FSIZE, "files": resource.RLIMIT_NOFILE,
             "time": resource.RLIMIT_CPU}[kind]

    def before():
        resource.setrlimit(which, (amount, amount))

    if b.rng.random() < 0.5:
        folder = place / "r"
        code, text = b.call(b.run_words(folder), place, before)
        if code == 0:
            b.same_results(folder)
        if folder.exists():
            b.nothing_torn(folder)
        b.go_on(folder)
        return
    out = place / "out.safetensors"
    code, text = b.call(b.aggregate_words(out), place, before)
    need(code != 0 or filecmp.cmp(out, b.reference / "merged.safetensors", shallow=False), f"{kind} {amount}: another output")
    need(code == 0 or not out.exists(), f"{kind} {amount}: a failed aggregation has left an output")


def full_disk(b, place):
    """A file system of a few kilobytes, in a mount of its own; then room is made, and the run goes on."""
    disk = place / "disk"
    disk.mkdir()
    size = b.rng.randrange(4, 1200)
    run = " ".join(f"'{word}'" for word in b.run_words(disk / "r"))
    merge = " ".join(f"'{word}'" for word in b.aggregate_words(disk / "out.safetensors"))
    script = f"""mount -t tmpfs -o size={size}k none '{disk}' || exit 99
{run} 2>'{place}/first'; echo $? >'{place}/code'
{merge} 2>'{place}/second'; echo $? >>'{place}/code'
cp -r '{disk}' '{place}/then'
mount -o remount,size=64m '{disk}' || exit 98
{run} --resume 2>'{place}/third'; echo $? >>'{place}/code'
cp -r '{disk}' '{place}/after'"""
    code, text = b.call(["unshare", "-rm", "sh", "-c", script], place)
    need(code == 0, f"the trial itself failed: {text}")
    first, second, third = (place / "code").read_text().split()
    for step, status in (("first", first), ("second", second), ("third", third)):
        need(int(status) < 128, f"{step} ended by signal {int(status) - 128}")
        need(status == "0" or (place / step).read_text().strip(), f"{step}: exit {status} without a sentence")
    merged = place / "then/out.safetensors"
    need((second == "0") == merged.exists(), "a failed aggregation has left an output, or a good one none")
    need(not merged.exists() or filecmp.cmp(merged, b.reference / "merged.safetensors", shallow=False), "the merged file differs")
    if (place / "then/r").exists():
        b.nothing_torn(place / "then/r")
    need(third == "0", f"cannot go on when there is room: {(place / 'third').read_text()}")
    b.same_results(place / "after/r")


def two_at_once(b, place):
    folder = place / "r"
    words = b.run_words(folder)
    children = [subprocess.Popen(words, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
                for _ in range(b.rng.randint(2, 3))]
    codes = []
    for child in children:
        try:
            _, text = child.communicate(timeout=limit())
        except subprocess.TimeoutExpired as hang:
            child.kill()
            raise Bad("two runs in one folder hang") from hang
        codes.append(child.returncode)
        need(child.returncode in (0, 1), f"exit {child.returncode}")
        need(child.returncode == 0 or b"is in use" in text, f"refused with: {text.decode(errors='replace')}")
    need(0 in codes, "nobody ran")
    b.same_results(folder)


PARTS = {"kill_run": kill_run, "stop_run": stop_run, "kill_aggregate": kill_aggregate, "kill_ranks": kill_ranks,
         "full_disk": full_disk, "limits": limits, "damaged_cells": damaged_cells, "damaged_inputs": damaged_inputs,
         "two_at_once": two_at_once, **torture_net.PARTS}
TELLS = {"kill_run": "SIGKILL at a random moment of `reef run`, up to three times, then `--resume`",
         "stop_run": "SIGSTOP and SIGCONT, then often SIGINT, SIGTERM or SIGHUP",
         "kill_aggregate": "SIGKILL, SIGTERM, SIGINT or SIGHUP at a random moment of `reef aggregate`",
         "kill_ranks": "a rank of two or three killed, often a checkpoint damaged, then `--resume`",
         "full_disk": "a file system of 4 kB to 1.2 MB, then more room and `--resume`",
         "limits": "memory, file size, descriptors or processor time limited",
         "damaged_cells": "flipped bits, cuts, zeros in cells and models, then `--resume`",
         "damaged_inputs": "the same in model files, tables and experiments that are read",
         "two_at_once": "two or three runs in one folder", **torture_net.TELLS}


# ---- the hour ----

# One trial each, of a duration of their own, which does not count.
ONCE = ["net_memory"]

def load_state(fresh, seed):
    path = HOME / "state.json"
    if not fresh and path.exists():
        return json.loads(path.read_text())
    return {"seed": seed, "seconds": 0.0, "parts": {}, "failures": []}


def save_state(state):
    path = HOME / "state.json"
    (HOME / "state.tmp").write_text(json.dumps(state, indent=1))
    os.replace(HOME / "state.tmp", path)


def trial(bench, name, state):
    """One trial of a part; counts it."""
    part = state["parts"].setdefault(name, {"trials": 0, "failures": 0, "seconds": 0.0})
    number = part["trials"]
    bench.rng = random.Random(f"{state['seed']} {name} {number}")
    place = HOME / f"{name}-{number}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    start = time.monotonic()
    try:
        PARTS[name](bench, place)
        shutil.rmtree(place, ignore_errors=True)
    except Bad as bad:
        part["failures"] += 1
        state["failures"].append(f"{name} {number}: {bad}")
        print(f"FAILED {name} {number} (kept in {place}): {bad}", flush=True)
    took = time.monotonic() - start
    part["trials"] += 1
    part["seconds"] += took
    state["seconds"] += 0 if name in ONCE else took
    save_state(state)


def table(state, parts):
    lines = ["| part | what | trials | failures | seconds |", "|---|---|---|---|---|"]
    for name in parts:
        part = state["parts"].get(name, {"trials": 0, "failures": 0, "seconds": 0})
        lines.append(f"| `{name}` | {TELLS[name]} | {part['trials']} | {part['failures']} | {part['seconds']:.0f} |")
    return "\n".join(lines)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("reef", type=Path)
    options.add_argument("--seconds", type=float, default=float(os.environ.get("TORTURE_SECONDS", 3600)))
    options.add_argument("--parts", default=os.environ.get("TORTURE") or "run")
    options.add_argument("--seed", type=int, default=int(time.time()))
    options.add_argument("--fresh", action="store_true", help="forget what an interrupted hour has done")
    wanted = options.parse_args()
    groups = {"run": PARTS, "all": PARTS, "net": torture_net.PARTS}
    parts = list(groups.get(wanted.parts) or wanted.parts.split(","))
    unknown = [name for name in parts if name not in PARTS]
    if unknown:
        sys.exit(f"torture: there is no part '{unknown[0]}'; there are run (all of them), net (those of the network), {', '.join(PARTS)}")
    HOME.mkdir(parents=True, exist_ok=True)
    state = load_state(wanted.fresh, wanted.seed)
    bench = Bench(wanted.reef.resolve(), random.Random(0))
    no_namespaces = torture_netns.namespaces_lack()
    absent = {**({} if bench.has_mpi else {"kill_ranks": "MPI"}),
              **({} if bench.has_tmpfs else dict.fromkeys(["full_disk", "net_full_disk"], "unshare -rm")),
              **(dict.fromkeys(["net_partition", "net_loss", "net_slow"], no_namespaces) if no_namespaces else {}),
              **({} if bench.has_net else dict.fromkeys(torture_net.PARTS, "nats-server, or Reef was built without its network"))}
    for name in [name for name in parts if name in absent]:
        print(f"torture: {name} is left out: this machine has no {absent[name]}")
    parts = [name for name in parts if name not in absent]
    if not parts:
        sys.exit("torture: nothing is left to do")
    bench.prepare()
    chosen = list(parts)
    try:
        for name in ONCE:
            if name in parts and name not in state["parts"]:
                trial(bench, name, state)
        parts = [name for name in parts if name not in ONCE]
        while parts and state["seconds"] < wanted.seconds:
            spent = {name: state["parts"].get(name, {}).get("seconds", 0.0) for name in parts}
            trial(bench, min(parts, key=lambda name: spent[name]), state)
    except KeyboardInterrupt:
        print(f"\ntorture: stopped after {state['seconds']:.0f} of {wanted.seconds:.0f} s; the same command goes on")
        sys.exit(1)
    print(f"Seed {state['seed']}, {state['seconds']:.0f} s.\n\n{table(state, chosen)}")
    for failure in state["failures"]:
        print(f"\n{failure}")
    (HOME / "state.json").unlink()
    sys.exit(1 if state["failures"] else 0)


if __name__ == "__main__":
    main()
