"""Two ways to the same result: models in Python's memory and model files through the command agree to the bit, for every rule, type of
numbers, integers, NaN and weights."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import reef
from conftest import need

NAMES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
         "bool": "BOOL", "int8": "I8", "uint8": "U8", "int16": "I16", "uint16": "U16", "int32": "I32", "int64": "I64", "uint64": "U64"}
MIXERS = ["nnm | median", "bucketing | ref", "clip | mean", "arc | trimmed", "nnm | vref"]
RULES = [name for name, kind in reef.rules().items() if not kind.is_mixer] + MIXERS + ["vref:block=segment"]
TYPES = [("float32",), ("float64",), ("float16",), ("float32", "float16"), ("float64", "float32", "float16")]


@pytest.fixture
def command() -> Path:
    path = Path(os.environ.get("REEF_LIBRARY", "/nowhere")).parent / "reef"
    if not path.exists():
        pytest.skip("the command is not beside the library")
    return path


def raw(value):
    """Name of the type in safetensors, shape, bytes."""
    if hasattr(value, "data_ptr"):
        name = str(value.dtype).removeprefix("torch.")
        return NAMES[name], tuple(value.shape), value.reshape(-1).view(need("torch").uint8).numpy().tobytes()
    return NAMES[value.dtype.name], value.shape, value.tobytes()


def save(path, model):
    header, data = {}, b""
    for name, value in model.items():
        kind, shape, numbers = raw(value)
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [len(data), len(data) + len(numbers)]}
        data += numbers
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def load(path):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    numbers = data[8 + length:]
    return {name: (entry["dtype"], tuple(entry["shape"]), numbers[slice(*entry["data_offsets"])])
            for name, entry in header.items()}


def through_files(command, folder, models, rule, weights=None, *options):
    paths = [folder / f"{number:02d}.safetensors" for number in range(len(models))]
    for path, model in zip(paths, models):
        save(path, model)
    given = ["--weights", ",".join(map(repr, weights))] if weights is not None else []
    done = subprocess.run([command, "aggregate", "-q", "-r", rule, *given, *options, *paths, "-o", folder / "out.safetensors"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return load(folder / "out.safetensors")


def agree(command, folder, models, rule, weights=None):
    found = {name: raw(value) for name, value in reef.aggregate(models, rule, weights).items()}
    wanted = through_files(command, folder, models, rule, weights)
    assert list(found) == list(wanted)
    for name in wanted:
        assert found[name] == wanted[name], name


def models(rng, types=("float32",), count=9):
    """Layers of each type, one of them longer than a block; counters and masks on which rows disagree; two rows far away."""
    made = []
    for row in range(count):
        far = 30.0 if row in (2, 5) else 0.0
        model = {f"layer{place}.{kind}": (rng.normal(size=(5, 7)) + far).astype(kind) for place, kind in enumerate(types)}
        model["long"] = (rng.normal(size=9001) + far).astype(types[0])
        model["steps"] = np.array(100 + row % 2)
        model["mask"] = rng.random(11) < 0.5
        model["codes"] = rng.integers(-3, 3, size=(3, 4)).astype(np.int8)
        model["none"] = np.empty((0, 3), types[-1])
        made.append(model)
    return made


@pytest.mark.parametrize("types", TYPES, ids="+".join)
@pytest.mark.parametrize("rule", RULES)
def test_rules_and_types(command, tmp_path, rng, rule, types):
    agree(command, tmp_path, models(rng, types), rule)


@pytest.mark.parametrize("rule", RULES)
def test_rows_with_nan(command, tmp_path, rng, rule):
    """Left out: not in the numbers, and without a vote."""
    made = models(rng, ("float32", "float16"))
    made[1]["long"][8000] = np.nan
    made[4]["layer1.float16"][0, 0] = np.inf
    for row in (1, 4, 6):
        made[row]["steps"] = np.array(999)
    agree(command, tmp_path, made, rule)


@pytest.mark.parametrize("rule", ["mean:nan=drop-coordinate", "ref:nan=drop-coordinate"])
def test_entries_with_nan(command, tmp_path, rng, rule):
    made = models(rng)
    made[1]["long"][8000] = np.nan
    agree(command, tmp_path, made, rule)


@pytest.mark.parametrize("weights", [[3.0, 1, 1, 2, 1, 1, 0.5, 1, 1], [0.0, 1, 1, 1, 0, 1, 1, 1, 9]], ids=["positive", "with zeros"])
@pytest.mark.parametrize("rule", [rule for rule in RULES if "weights" in reef.Rule(rule).traits])
def test_weights(command, tmp_path, rng, rule, weights):
    made = models(rng, ("float32", "float64"))
    made[3]["long"][0] = np.nan
    agree(command, tmp_path, made, rule, weights)


def test_integers_alone(command, tmp_path, rng):
    made = [{name: model[name] for name in ("steps", "mask", "codes")} for model in models(rng)]
    agree(command, tmp_path, made, "ref")
    agree(command, tmp_path, made, "ref", [1.0, 2, 1, 5, 1, 1, 1, 1, 1])
    agree(command, tmp_path, made, "ref", [1e308] * 9)  # whose sum is no number
    assert through_files(command, tmp_path, made, "ref", [1e308] * 9) == through_files(command, tmp_path, made, "ref")


@pytest.mark.parametrize("rule", ["mean", "ref", "vref", "nnm | median", "krum"])
def test_state_dicts(command, tmp_path, rng, rule):
    """bfloat16 weights with float32 norms and counters, as PyTorch has them."""
    torch = need("torch")
    made = []
    for seed in range(9):
        torch.manual_seed(seed)
        net = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.LayerNorm(4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 3))
        state = {name: value.bfloat16() if name.startswith(("0", "3")) else value for name, value in net.state_dict().items()}
        state["2.num_batches_tracked"] += seed % 2
        made.append(state)
    made[4]["1.weight"] *= float("nan")
    agree(command, tmp_path, made, rule)


@pytest.mark.parametrize("rule", ["mean", "ref", "vref", "nnm | median", "krum"])
def test_short_types_of_pytorch(command, tmp_path, rule):
    """With float32 beside them, and NaN; by themselves, among float64, and with types that differ and are converted."""
    torch = need("torch")
    for kind in ["bfloat16"] + [name for name in ("float8_e4m3fn", "float8_e5m2") if hasattr(torch, name)]:  # 8 bits from 2.1 on
        made = []
        for seed in range(9):
            maker = torch.Generator().manual_seed(seed)
            made.append({name: torch.randn(size, generator=maker).to(getattr(torch, kind)) for name, size in [("w", (70, 3)), ("long", 9001), ("none", 0)]})
            made[-1]["norm"] = torch.randn(5, generator=maker)
        made[4]["w"][0, 0] = float("nan")
        agree(command, tmp_path, made, rule)
        agree(command, tmp_path, [{"w": model["w"]} for model in made], rule)
        agree(command, tmp_path, [{**model, "norm": model["norm"].double()} for model in made], rule)
        mixed = [{"w": model["w"].float() if place % 2 else model["w"]} for place, model in enumerate(made)]
        same = reef.aggregate([{"w": model["w"].float()} for model in mixed], rule)
        assert torch.equal(reef.aggregate(mixed, rule, copy=True)["w"], same["w"])


def test_bench(command, tmp_path):
    """make bench-merge without its peers, on small files: every rule is measured in both types."""
    path = tmp_path / "bench.jsonl"
    script = Path(__file__).parents[2] / "bench" / "merge" / "bench.py"
    done = subprocess.run([sys.executable, script, "--reef", command, "--files", "3", "--megabytes", "2", "--repeats", "1", "--torch", "/nowhere/python",
                           "--json", path, "--folder", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    measured = {(row["type"], row["what"]) for row in rows if row.get("processor", 0) > 0}
    assert {(kind, what) for kind in ("F32", "BF16") for what in ("cat", "reef mean", "reef ref", "reef mref", "reef vref")} <= measured
    assert "torch mean              failed: " in done.stdout
    assert list(tmp_path.iterdir()) == [path]
