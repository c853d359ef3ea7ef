"""Merges week after week with a memory: colluding sites that one merge cannot see lose their weight, and the file survives what is done to it."""
from __future__ import annotations

import csv
import fcntl
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from test_merging import command, load, save  # noqa: F401 (a fixture)

HONEST = [f"site{number}" for number in range(7)]
COLLUDING = ["east", "north", "south"]
WEEKS = 10


def run(command, *arguments):
    return subprocess.run([command, "aggregate", "-q", *map(str, arguments)], capture_output=True, text=True, check=False)


def deliver(inbox, week, absent=()):
    """Honest sites have their own noise every week, the colluding ones share a small shift within it."""
    rng = np.random.default_rng(week)
    shift = 0.4 * np.sign(np.random.default_rng(99).normal(size=400))
    inbox.mkdir(exist_ok=True)
    for path in inbox.iterdir():
        path.unlink()
    for name in HONEST + COLLUDING:
        model = {"w": (rng.normal(size=400) + (shift if name in COLLUDING else 0)).astype(np.float32)}
        if name not in absent:
            save(inbox / f"{name}.safetensors", model)


def merge(command, folder, *options):
    done = run(command, "--rule", "mref:seed=5", *options, *sorted((folder / "inbox").iterdir()), "-o", folder / "merged.safetensors",
               "--trust", folder / "trust.csv")
    assert done.returncode == 0, done.stderr
    with open(folder / "trust.csv", encoding="utf-8") as file:
        return {row["file"].rsplit("/", 1)[1].split(".")[0]: float(row["trust"]) for row in csv.DictReader(file)}


def test_colluding_sites_are_found_in_time(command, tmp_path):
    memory = tmp_path / "memory.bin"
    first, last = {}, {}
    for week in range(WEEKS):
        deliver(tmp_path / "inbox", week, absent=[HONEST[week % 7]] if week % 3 == 1 else [])
        last = merge(command, tmp_path, "--state", memory)
        first = first or last
    assert min(first[name] for name in COLLUDING) > 0.5  # one merge does not see them
    assert max(last[name] for name in COLLUDING) < 0.45 and min(last[name] for name in HONEST) > 0.8
    without = merge(command, tmp_path)  # nor does the last one without the memory
    assert min(without[name] for name in COLLUDING) > 0.5
    said = run(command, "--rule", "mref", "-q", *sorted((tmp_path / "inbox").iterdir()), "-o", tmp_path / "merged.safetensors").stderr
    assert "--state" in said  # forgetting is not silent
    assert 0 < memory.stat().st_size < 1 << 20 and not list(tmp_path.glob("*.tmp"))
    assert memory.stat().st_mode & 0o777 == 0o600  # the seed in it is nobody else's business


def test_ids_are_the_names(command, tmp_path):
    """The same sites by --ids in another order and under other paths: the same memory, to the bit."""
    names = HONEST + COLLUDING
    for week in range(4):
        deliver(tmp_path / "inbox", week)
        merge(command, tmp_path, "--state", tmp_path / "by_path.bin")
        paths = [tmp_path / "inbox" / f"{name}.safetensors" for name in sorted(names)]
        done = run(command, "--rule", "mref:seed=5", "--state", tmp_path / "by_id.bin", "--ids", ",".join(sorted(names)), *paths, "-o",
                   tmp_path / "again.safetensors")
        assert done.returncode == 0, done.stderr
        assert load(tmp_path / "again.safetensors") == load(tmp_path / "merged.safetensors")
    assert (tmp_path / "by_id.bin").read_bytes() == (tmp_path / "by_path.bin").read_bytes()


def test_what_is_refused_leaves_everything_as_it_was(command, tmp_path):
    memory, out = tmp_path / "memory.bin", tmp_path / "merged.safetensors"
    deliver(tmp_path / "inbox", 1)
    merge(command, tmp_path, "--state", memory)
    paths = sorted((tmp_path / "inbox").iterdir())
    good = memory.read_bytes()
    damaged = [b"", b"junk", good[:-1], good + b"x", *(bytes([*good[:at], good[at] ^ 1, *good[at + 1:]]) for at in range(0, len(good), len(good) // 12))]
    out.write_text("precious")
    for content in damaged:
        memory.write_bytes(content)
        done = run(command, "--rule", "mref:seed=5", "--state", memory, *paths, "-o", out)
        assert done.returncode == 3 and "memory.bin" in done.stderr and done.stderr.count("\n") == 1, (len(content), done.stderr)
        assert memory.read_bytes() == content and out.read_text() == "precious"
    memory.write_bytes(good)
    for options, code, says in [(["--rule", "ref"], 2, "remembers no senders"), (["--per-tensor"], 2, "whole models"), (["--ids", "a,b"], 2, "--ids"),
                                (["--ids", ",".join(["a"] * len(paths))], 2, "two models have the id 'a'")]:
        done = run(command, "--rule", "mref:seed=5", "--state", memory, *options, *paths, "-o", out)
        assert done.returncode == code and says in done.stderr, done.stderr
        assert memory.read_bytes() == good and out.read_text() == "precious"
    for wrong in (paths[0], out):
        assert run(command, "--rule", "mref", "--state", wrong, *paths, "-o", out).returncode == 2
    other = tmp_path / "other.safetensors"
    save(other, {"w": np.zeros(5, np.float32)})
    done = run(command, "--rule", "mref:seed=5", "--state", memory, other, "-o", tmp_path / "o.safetensors")
    assert done.returncode == 3 and "the memory of this rule and model" in done.stderr


def test_the_script_of_the_page(command, root, tmp_path):
    """docs/weekly.md: each week once, whatever fails, and what arrives meanwhile is left for the next."""
    page = (root / "docs" / "weekly.md").read_text(encoding="utf-8")
    script = page.split("```sh\n", 1)[1].split("```", 1)[0]
    assert "cd /srv/merge\n" in script and "$(date +%G-W%V)" in script
    script = script.replace("/srv/merge", str(tmp_path)).replace("$(date +%G-W%V)", '"$1"')
    inbox, memory, current = tmp_path / "inbox", tmp_path / "memory.bin", tmp_path / "merged" / "current.safetensors"

    def week(name):
        return subprocess.run(["sh", "-c", script, "sh", name], capture_output=True, text=True, check=False,
                              env={**os.environ, "PATH": f"{Path(command).parent}:{os.environ['PATH']}"})

    deliver(inbox, 1)
    (inbox / "late.safetensors.part").write_text("half of it")
    assert week("W1").returncode == 0 and [path.name for path in inbox.iterdir()] == ["late.safetensors.part"]
    first, merged = memory.read_bytes(), current.read_bytes()
    deliver(inbox, 2)
    done = week("W1")  # a second time: nothing is merged, and the models stay
    assert done.returncode == 0 and "already" in done.stdout and memory.read_bytes() == first and len(list(inbox.iterdir())) == 10
    (tmp_path / "trust" / "W2.csv").write_text("notes")  # in the way of the table: refused before the merge
    assert week("W2").returncode == 2 and memory.read_bytes() == first and current.read_bytes() == merged
    (tmp_path / "trust" / "W2.csv").unlink()
    assert week("W2").returncode == 0 and memory.read_bytes() != first and current.read_bytes() != merged
    assert len(list((tmp_path / "weeks" / "W2").iterdir())) == 10
    assert week("W3").returncode == 3 and not (tmp_path / "merged" / "W3.safetensors").exists()


def begin(command, folder, out, until):
    """A merge of large models, stopped in the middle: `until` its process and the size of what it writes say so."""
    paths = [folder / f"large{number}.safetensors" for number in range(6)]
    for path in paths:
        text = json.dumps({"w": {"dtype": "F32", "shape": [20_000_000], "data_offsets": [0, 80_000_000]}}).encode()
        with open(path, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            file.truncate(8 + len(text) + 80_000_000)
    before = (folder / "memory.bin").read_bytes() if (folder / "memory.bin").exists() else None
    for _ in range(5):  # on a busy machine one may be over before we look
        process = subprocess.Popen([command, "aggregate", "-q", "--threads", "1", "--rule", "mref", "--state", folder / "memory.bin", *paths, "-o", out],
                                   stderr=subprocess.PIPE, text=True)
        while process.poll() is None and not until(process):
            time.sleep(0.001)
        process.send_signal(signal.SIGSTOP)
        if process.poll() is None and until(process):
            break
        process.communicate()
        out.unlink()
        (folder / "memory.bin").unlink()
        if before:
            (folder / "memory.bin").write_bytes(before)
    return process, paths


def test_models_of_integers_leave_no_memory(command, tmp_path):
    paths = [tmp_path / f"{name}.safetensors" for name in HONEST[:3]]
    for path in paths:
        save(path, {"steps": np.array([7])})
    done = run(command, "--rule", "mref", "--state", tmp_path / "memory.bin", *paths, "-o", tmp_path / "merged.safetensors")
    assert done.returncode == 0 and "no memory is written" in done.stderr and not (tmp_path / "memory.bin").exists()


def test_one_merge_at_a_time_has_a_memory(command, tmp_path):
    memory, out = tmp_path / "memory.bin", tmp_path / "out"

    def writes(_):
        return any(path.stat().st_size > 1 << 20 for path in tmp_path.glob("out.*.tmp"))

    def has_read(process):
        try:
            return any(os.path.realpath(path) == str(memory) for path in Path(f"/proc/{process.pid}/fd").iterdir())
        except OSError:  # it has ended
            return False

    def other(paths, name):
        return run(command, "--threads", "1", "--rule", "mref", "--state", memory, *paths, "-o", tmp_path / name)

    # the first merge of all: another one is done before it
    process, paths = begin(command, tmp_path, out, writes)
    assert other(paths, "a").returncode == 0
    made, node = memory.read_bytes(), memory.stat().st_ino
    process.send_signal(signal.SIGCONT)
    _, said = process.communicate()
    assert process.returncode == 1 and "memory.bin: this memory was made by another merge while the models were merged" in said
    assert memory.read_bytes() == made and not out.exists()
    # with a memory: the second is refused while the first is under way, and after that goes on from what the first has left
    process, paths = begin(command, tmp_path, out, has_read)
    done = other(paths, "b")
    assert done.returncode == 1 and "memory.bin: another merge is working with this memory" in done.stderr
    assert memory.read_bytes() == made and not (tmp_path / "b").exists()
    process.send_signal(signal.SIGCONT)
    process.communicate()
    assert process.returncode == 0 and memory.stat().st_ino != node
    assert other(paths, "b").returncode == 0
    # removed in the middle: what is remembered would be of no use to anybody, or somebody starts over
    process, paths = begin(command, tmp_path, tmp_path / "c", has_read)
    memory.unlink()
    process.send_signal(signal.SIGCONT)
    _, said = process.communicate()
    assert process.returncode == 1 and "was replaced or removed" in said and not memory.exists() and not (tmp_path / "c").exists()
    assert not list(tmp_path.glob("*.tmp"))


def end_of_first_merge(command, folder, out, then, *options):
    """A first merge that is held at its end, by the lock that another first merge would have, until `then` has been done: its exit code and message."""
    paths = [folder / f"{name}.safetensors" for name in ("a", "b", "c")]
    for path in paths:
        save(path, {"w": np.arange(4, dtype=np.float32)})
    lock = os.open(folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    process = subprocess.Popen([command, "aggregate", "-q", "--rule", "mref", "--state", folder / "memory.bin", *options, *paths, "-o", out],
                               stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not list(folder.glob("memory.bin.*.tmp")):
        time.sleep(0.001)
    time.sleep(0.3)
    assert process.poll() is None and not (folder / "memory.bin").exists()
    then()
    os.close(lock)
    _, said = process.communicate()
    assert not list(folder.glob("*.tmp"))
    return process.returncode, said


def test_first_merges_that_end_at_once_take_turns(command, tmp_path):
    """Nobody's result is put in place before it is sure that the memory can be, too."""
    memory, out = tmp_path / "memory.bin", tmp_path / "out"

    def other():
        assert not out.exists()
        memory.write_text("the other's")

    code, said = end_of_first_merge(command, tmp_path, out, other)
    assert code == 1 and "this memory was made by another merge" in said
    assert not out.exists() and memory.read_text() == "the other's"


def test_a_result_that_finds_no_place_is_not_remembered(command, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    code, said = end_of_first_merge(command, tmp_path, out, lambda: (out / "notes").write_text("x"), "--shard-size", "1KB")
    assert code == 1 and "cannot put the folder in its place" in said
    assert not (tmp_path / "memory.bin").exists() and [path.name for path in out.iterdir()] == ["notes"]



@pytest.mark.parametrize("rule", ["ref", "vref:block=segment", "median", "nnm:f=2 | trimmed"])
def test_trust_by_tensor(command, tmp_path, rule):
    """A site that is bad in one layer only; the same numbers in Python, and means over tensors are the trust of the whole."""
    import reef
    rng = np.random.default_rng(3)
    names = ["embed", "encoder.layer.0.k", "encoder.layer.0.q", "encoder.layer.1.k", "encoder.layer.1.q"]
    models = [{name: rng.normal(size=70).astype(np.float32) for name in names} for _ in range(7)]
    for name in names[1:3]:
        models[4][name] += 50
    paths = [tmp_path / f"{number}.safetensors" for number in range(7)]
    for path, model in zip(paths, models):
        save(path, model)
    table = tmp_path / "by_tensor.csv"
    done = subprocess.run([command, "aggregate", "-r", rule, *paths, "-o", tmp_path / "out.safetensors", "--trust-tensors", table],
                          capture_output=True, text=True, check=True)
    where = "all 5 tensors" if "nnm" in rule else "encoder.layer.0.* (2 of 5 tensors)"  # nnm compares whole models
    assert f"4.safetensors: down-weighted in {where}" in done.stdout
    with open(table, encoding="utf-8") as file:
        rows = {row["tensor"]: np.array([float(row[str(path)]) for path in paths]) for row in csv.DictReader(file)}
    _, report = reef.aggregate(models, rule, report=True)
    assert list(report.tensors) == names == list(rows)
    for name in names:
        np.testing.assert_allclose(rows[name], report.tensors[name], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.mean(list(report.tensors.values()), axis=0), report.trust, rtol=1e-9)
    precious = tmp_path / "precious"
    precious.write_text("x")
    refused = run(command, "-r", rule, *paths, "-o", tmp_path / "o2.safetensors", "--trust-tensors", precious)
    assert refused.returncode == 2 and precious.read_text() == "x"


def test_names_are_exact_for_programs_and_harmless_for_people(command, tmp_path):
    names = ["line\nfeed", "\x1b[2Jgone", 'a"b', "\u00e9\u202e"]
    paths = [tmp_path / f"{number}.safetensors" for number in range(5)]
    for number, path in enumerate(paths):
        save(path, {name: np.full(4, 100 if number == 4 and name < "a" else 0.01 * number, np.float32) for name in names})
    options = [*paths, "-o", tmp_path / "out.safetensors", "--trust-tensors", tmp_path / "t.csv"]
    told = json.loads(subprocess.run([command, "aggregate", "--json", *options], capture_output=True, text=True, check=True).stdout)
    assert [tensor["name"] for tensor in told["tensors"]] == names
    done = subprocess.run([command, "aggregate", *options], capture_output=True, check=True)
    assert done.stdout.endswith(b"4.safetensors: down-weighted in ?[2Jgone (1 of 4 tensors)\n")
    assert (tmp_path / "t.csv").read_bytes().count(b"\n") == 5 and b"\x1b" not in (tmp_path / "t.csv").read_bytes()


def test_names_that_are_meant_to_take_forever(command, tmp_path):
    """Which tensors are summed up together takes time by the length of their names, not by its square; few of them are printed, and not whole."""
    names = ["a." * 4000 + f"{number:05d}" for number in range(6000)]
    paths = [tmp_path / f"{number}.safetensors" for number in range(5)]
    for number, path in enumerate(paths):
        save(path, {name: np.full(1, 0.01 * number if number < 4 or place % 2 else 100, np.float32) for place, name in enumerate(names)})
    done = subprocess.run([command, "aggregate", *paths, "-o", tmp_path / "out.safetensors", "--trust-tensors", tmp_path / "t.csv"],
                          capture_output=True, text=True, check=True, timeout=120)
    last = done.stdout.splitlines()[-1]
    assert "4.safetensors: down-weighted in a.a." in last and last.endswith("... and 2995 more places (3000 of 6000 tensors)") and len(last) < 800
