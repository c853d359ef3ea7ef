"""Merging models by Reef, PyTorch and mergekit, as multiples of `cat` of the same files, in one run:  bench.py --reef COMMAND [OPTION...]

The models are folders in Hugging Face's layout with random weights of the Llama architecture, of about so many megabytes each, once in float32 and
once in bfloat16. Every merge, and every cat, is a process of its own, timed from start to end; they take turns, and the best of some repeats
counts. `seconds` is the clock, `processor` the time of all threads (on a busy machine the better measure), `peak` the largest resident set (a process counts at least what this
one takes, of which it is made). The page cache is warm: everything is read once before. With --torch and --mergekit, interpreters that have these, they take their turns too."""
from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

RULES = ["mean", "median", "ref", "mref", "vref", "krum:f=20%"]
LAYERS, HEADS = 4, 8


def shapes(megabytes: float) -> dict[str, tuple[int, ...]]:
    """Tensors of a small Llama; the vocabulary makes up for what is lacking."""
    hidden = 512 if megabytes >= 60 else 64
    inner = hidden * 43 // 16
    layers: dict[str, tuple[int, ...]] = {}
    for layer in range(LAYERS):
        name = f"model.layers.{layer}."
        layers |= {f"{name}self_attn.{part}_proj.weight": (hidden, hidden) for part in "qkvo"}
        layers |= {f"{name}mlp.{part}_proj.weight": (inner, hidden) for part in ("gate", "up")}
        layers[f"{name}mlp.down_proj.weight"] = (hidden, inner)
        layers |= {f"{name}{part}_layernorm.weight": (hidden,) for part in ("input", "post_attention")}
    numbers = megabytes * 1e6 / 4 - sum(int(np.prod(shape)) for shape in layers.values())
    vocabulary = max(64, int(numbers / 2 / hidden))
    return {"model.embed_tokens.weight": (vocabulary, hidden), **layers, "model.norm.weight": (hidden,), "lm_head.weight": (vocabulary, hidden)}


def write_model(folder: Path, sizes: dict[str, tuple[int, ...]], kind: str, seed: int) -> None:
    folder.mkdir(parents=True)
    width = {"F32": 4, "BF16": 2}[kind]
    rng = np.random.default_rng(seed)
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in sizes.items():
        end = at + width * int(np.prod(shape))
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for shape in sizes.values():
            numbers = rng.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
            file.write((numbers if kind == "F32" else (numbers.view(np.uint32) >> 16).astype(np.uint16)).tobytes())
    vocabulary, hidden = sizes["lm_head.weight"]
    inner = sizes["model.layers.0.mlp.up_proj.weight"][0]
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": vocabulary, "hidden_size": hidden, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "intermediate_size": inner, "torch_dtype": "float32" if kind == "F32" else "bfloat16"}))


def run(command: list[str]) -> tuple[float, float, float]:
    """Seconds, processor seconds, megabytes of the largest resident set."""
    start = time.monotonic()
    with open(os.devnull, "wb") as nowhere:
        process = subprocess.Popen(command, stdout=nowhere, stderr=subprocess.PIPE)
        complaint = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(complaint.decode(errors="replace").strip().splitlines()[-1] if complaint.strip() else f"exit {process.returncode}")
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def list_jobs(given, folder: Path, kind: str) -> dict[str, list[str]]:
    folders = sorted((folder / kind).glob("site*"))
    files = [str(path / "model.safetensors") for path in folders]
    threads = ["--threads", str(given.threads)] if given.threads else []
    jobs = {"cat": ["cat", *files]}
    for rule in RULES:
        jobs[f"reef {rule}"] = [given.reef, "aggregate", "-q", *threads, "-r", rule, *files, "-o", str(folder / "out.safetensors")]
    here = Path(__file__).parent
    if given.torch:
        for rule in ("mean", "median"):
            jobs[f"torch {rule}"] = [given.torch, str(here / "peer_torch.py"), rule, str(folder / "torch.safetensors"), str(given.threads), *files]
    if given.mergekit:
        config = folder / f"{kind}.yml"
        lines = ["merge_method: linear", "dtype: " + {"F32": "float32", "BF16": "bfloat16"}[kind], "models:"]
        lines += [f"  - model: {path}\n    parameters: {{weight: 1.0}}" for path in folders]
        config.write_text("\n".join(lines) + "\n")
        jobs["mergekit linear (mean)"] = [str(Path(given.mergekit).with_name("mergekit-yaml")), str(config), str(folder / "mergekit")]
    return jobs


def measure(given, folder: Path, kind: str) -> list[dict]:
    jobs = list_jobs(given, folder, kind)
    best: dict[str, dict] = {}
    for repeat in range(given.repeats + 1):  # the first one warms up
        for name, command in list(jobs.items()):
            print(f"{kind} {name}, {repeat} of {given.repeats} ...".ljust(70), end="\r", file=sys.stderr, flush=True)
            shutil.rmtree(folder / "mergekit", ignore_errors=True)
            try:
                seconds, processor, peak = run(command)
            except (RuntimeError, OSError) as error:
                best[name] = {"absent": str(error)}
                del jobs[name]
                continue
            known = best.get(name)
            if repeat > 0:
                best[name] = {"seconds": min(seconds, known["seconds"]), "processor": min(processor, known["processor"]),
                              "peak": max(peak, known["peak"])} if known else {"seconds": seconds, "processor": processor, "peak": peak}
    return [{"type": kind, "files": given.files, "megabytes": given.megabytes, "what": name, **entry} for name, entry in best.items()]


def show(rows: list[dict]) -> None:
    cat = next(row for row in rows if row["what"] == "cat")
    print(f"\n{rows[0]['files']} files of {rows[0]['megabytes']:g} MB as float32, here {rows[0]['type']}")
    print(f"{'':24}{'seconds':>9}{'x cat':>8}{'processor':>11}{'x cat':>8}{'peak MB':>9}")
    for row in rows:
        if "absent" in row:
            print(f"{row['what']:24}failed: {row['absent'][:90]}")
        else:
            print(f"{row['what']:24}{row['seconds']:9.2f}{row['seconds'] / cat['seconds']:8.2f}{row['processor']:11.2f}"
                  f"{row['processor'] / cat['processor']:8.2f}{row['peak']:9.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reef", required=True, help="the command")
    parser.add_argument("--torch", help="an interpreter that has torch and safetensors")
    parser.add_argument("--mergekit", help="an interpreter beside which mergekit-yaml is")
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--megabytes", type=float, default=100, help="of a model in float32")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0, help="of Reef and PyTorch; 0: all processors")
    parser.add_argument("--types", default="F32,BF16")
    parser.add_argument("--folder", default="/dev/shm" if os.access("/dev/shm", os.W_OK) else None, help="where the models are made for a while")
    parser.add_argument("--json", type=Path, help="lines of JSON are added to this file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="reef-bench-merge-", dir=given.folder) as name:
        folder, sizes = Path(name), shapes(given.megabytes)
        for kind in given.types.split(","):
            for site in range(given.files):
                write_model(folder / kind / f"site{site:02d}", sizes, kind, site)
            rows = measure(given, folder, kind)
            show(rows)
            if given.json:
                with open(given.json, "a") as file:
                    file.writelines(json.dumps(row) + "\n" for row in rows)
            shutil.rmtree(folder / kind)


if __name__ == "__main__":
    main()
