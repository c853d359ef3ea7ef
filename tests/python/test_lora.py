"""LoRA adapters through the command: products against definitions in double precision, other names and shapes, what is refused; and differences
from a base model."""
from __future__ import annotations

import json

import numpy as np
import pytest
from test_differences import merge, numbers, write
from test_merging import command, load, save  # noqa: F401 (a fixture)

RANK, ROWS, COLUMNS = 3, 20, 35


def make_pairs(count, kind="f4", malicious=1):
    """Factors of nearly the same product in quite different bases; the last ones are malicious."""
    rng = np.random.default_rng(8)
    up, down = rng.normal(size=(ROWS, RANK)), rng.normal(size=(RANK, COLUMNS))
    pairs = []
    for number in range(count):
        turn = rng.normal(size=(RANK, RANK)) + 2 * np.eye(RANK)
        b = (up + 0.02 * rng.normal(size=up.shape)) @ turn * (-9 if number >= count - malicious else 1)
        a = np.linalg.solve(turn, down + 0.02 * rng.normal(size=down.shape))
        pairs.append((b.astype(kind), a.astype(kind)))
    return pairs, up @ down


def name_pairs(pairs, up="q.lora_B.weight", down="q.lora_A.weight"):
    return [{down: a, up: b, "norm": np.ones(3, "f4")} for b, a in pairs]


def product(model, up="q.lora_B.weight", down="q.lora_A.weight"):
    b, a = numbers(model[up]).astype(float), numbers(model[down]).astype(float)
    return b.reshape(b.shape[0], -1) @ a.reshape(a.shape[0], -1)


def truncate(matrix, rank):
    u, s, v = np.linalg.svd(matrix)
    return u[:, :rank] * s[:rank] @ v[:rank]


def far(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


@pytest.mark.parametrize("rule, define", [("mean", lambda p: p.mean(0)), ("median", lambda p: np.median(p, 0)),
                                          ("trimmed:f=1", lambda p: np.sort(p, 0)[1:-1].mean(0))])
def test_products(command, tmp_path, rule, define):
    """The rule on the products, then the best approximation of that rank."""
    pairs, _ = make_pairs(7)
    paths = write(tmp_path, name_pairs(pairs))
    want = define(np.stack([b.astype(float) @ a for b, a in pairs]))
    done = merge(command, "--json", "-r", rule, *paths, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    told, out = json.loads(done.stdout)["lora"], load(tmp_path / "out")
    assert far(product(out), truncate(want, RANK)) < 1e-4
    assert told["pairs"] == 1 and abs(told["error"] - far(product(out), want)) < 1e-5 and abs(told["worst"] - told["error"]) < 1e-15
    assert told["error"] < far(truncate(want, RANK), want) * 1.001 + 1e-6
    assert (tmp_path / "out").read_bytes()[:100] == paths[0].read_bytes()[:100]  # layout and header of the first
    assert {name: entry[:2] for name, entry in out.items()} == {name: entry[:2] for name, entry in load(paths[0]).items()}


def spectra():
    """Singular values of 24 directions; 6 of them are kept."""
    falling = 0.5 ** np.arange(24.0)
    return {"falling": falling, "flat": np.ones(24), "repeated at the end of what is kept": np.r_[3.0, 3, 2, 1, 1, 1, 1, 1, 1, 0.5 ** np.arange(15)],
            "nearly repeated there": np.r_[1 + 1e-3 * np.arange(9)[::-1], 0.1 * np.ones(15)], "tiny": np.r_[1, 1e-3, 1e-6, 1e-9, 1e-11, 1e-13, np.full(18, 1e-14)],
            "of rank 3": np.r_[2.0, 1, 1e-5, np.zeros(21)], "of full rank, then nothing": np.r_[np.ones(6), np.zeros(18)], "large": 1e140 * falling,
            "small": 1e-140 * falling, "steps": np.repeat([1, 1e-4, 1e-8, 1e-12], 6)}


@pytest.mark.parametrize("name", spectra())
@pytest.mark.parametrize("rows, columns", [(60, 90), (90, 60), (20, 300)])
def test_against_lapack(command, tmp_path, name, rows, columns):
    """What is kept of a float64 matrix is as good as what LAPACK would keep, to a few units of its precision."""
    rng = np.random.default_rng(5)
    values = spectra()[name][:min(24, rows)]
    left, right = np.linalg.qr(rng.normal(size=(rows, len(values))))[0], np.linalg.qr(rng.normal(size=(columns, len(values))))[0]
    root = np.sqrt(values)
    models = []
    for part in np.array_split(np.arange(len(values)), 4):  # the mean of their products has all directions
        b, a = np.zeros((rows, 6)), np.zeros((6, columns))
        b[:, :len(part)], a[:len(part)] = 4 * left[:, part] * root[part], (right[:, part] * root[part]).T
        models.append({"q.lora_A.weight": a, "q.lora_B.weight": b})
    matrix = np.mean([m["q.lora_B.weight"] @ m["q.lora_A.weight"] for m in models], 0)
    done = merge(command, "--json", "-r", "mean", *write(tmp_path, models), "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    ours = product(load(tmp_path / "out"))
    unit = values[0]  # squares of large and small ones leave the range
    theirs = np.linalg.svd(matrix / unit, compute_uv=False)
    found = np.linalg.svd(ours / unit, compute_uv=False)
    assert np.abs(found[:6] - theirs[:6]).max() < 2e-14 and found[6:].max() < 2e-14
    best, reached = np.linalg.norm(theirs[6:]), np.linalg.norm((ours - matrix) / unit)
    assert reached <= best * (1 + 1e-13) + 3e-14
    told = json.loads(done.stdout)["lora"]["error"]
    assert abs(told - reached / np.linalg.norm(theirs)) < 3e-14


def test_what_is_gained(command, tmp_path):
    """Factors in different bases average to nothing; their products do not."""
    pairs, truth = make_pairs(7, malicious=2)
    paths = write(tmp_path, name_pairs(pairs))
    for rule in ["ref", "vref", "nnm:f=2 | ref", "mref"]:
        assert merge(command, "-q", "-r", rule, *paths, "-o", tmp_path / "out").returncode == 0
        assert far(product(load(tmp_path / "out")), truth) < 0.05
        done = merge(command, "-q", "-r", rule, "--factors", *paths, "-o", tmp_path / "out")
        assert done.returncode == 0 and "the factors of 1 LoRA pair are merged separately" in done.stderr
        assert far(product(load(tmp_path / "out")), truth) > 0.2


@pytest.mark.parametrize("rule", ["ref", "vref", "median"])
def test_same_bits_by_any_blocks_and_threads(command, tmp_path, rule):
    rng = np.random.default_rng(4)
    models = [{f"l{i}.lora_A.weight": rng.normal(size=(2, 300 + i)).astype("f4") for i in range(4)} |
              {f"l{i}.lora_B.weight": rng.normal(size=(150, 2)).astype("f4") for i in range(4)} for _ in range(5)]
    paths = write(tmp_path, models)
    for number, options in enumerate([("--threads", 1), ("--threads", 3), ("--threads", 2, "--memory", 1)]):
        assert merge(command, "-q", "-r", rule, *options, *paths, "-o", tmp_path / f"out{number}").returncode == 0
        assert (tmp_path / f"out{number}").read_bytes() == (tmp_path / "out0").read_bytes()


@pytest.mark.parametrize("up, down", [("m.lora_B.default.weight", "m.lora_A.default.weight"), ("m.lora_embedding_B", "m.lora_embedding_A"),
                                      ("m.lora_up.weight", "m.lora_down.weight"), ("m.to_q_lora.up.weight", "m.to_q_lora.down.weight"),
                                      ("m.lora_linear_layer.up.weight", "m.lora_linear_layer.down.weight")])
def test_names(command, tmp_path, up, down):
    pairs, truth = make_pairs(5)
    paths = write(tmp_path, name_pairs(pairs, up, down))
    done = merge(command, *paths, "-o", tmp_path / "out", "--trust-tensors", tmp_path / "trust.csv")
    assert done.returncode == 0 and "1 LoRA pair: products aggregated" in done.stdout, done.stderr
    assert far(product(load(tmp_path / "out"), up, down), truth) < 0.05
    named = [line.split(",")[0] for line in (tmp_path / "trust.csv").read_text().splitlines()[1:]]
    assert sorted(named) == sorted(['"m.to_q"' if "to_q" in up else '"m"', '"norm"'])


def test_convolutions_and_halves(command, tmp_path):
    """Further axes of A are columns; results are rounded to the type of the files, or to that of --cast."""
    pairs, truth = make_pairs(5, "f2")
    models = [{"c.lora_down.weight": a.reshape(RANK, 7, 5, 1), "c.lora_up.weight": b.reshape(ROWS, RANK, 1, 1), "c.alpha": np.array(4, "f4")}
              for b, a in pairs]
    paths = write(tmp_path, models)
    assert merge(command, "-q", *paths, "-o", tmp_path / "out").returncode == 0
    out = load(tmp_path / "out")
    assert far(product(out, "c.lora_up.weight", "c.lora_down.weight"), truth) < 0.05
    assert out["c.lora_down.weight"][:2] == ("F16", (RANK, 7, 5, 1)) and numbers(out["c.alpha"]) == 4
    assert merge(command, "-q", "--cast", "f32", *paths, "-o", tmp_path / "out").returncode == 0
    assert far(product(load(tmp_path / "out"), "c.lora_up.weight", "c.lora_down.weight"), truth) < 0.05


def test_untrained_pairs_can_still_be_trained(command, tmp_path):
    """B = 0 everywhere, as adapters begin: the product is 0, and A is not."""
    rng = np.random.default_rng(1)
    models = [{"q.lora_A.weight": rng.normal(size=(RANK, COLUMNS)).astype("f4"), "q.lora_B.weight": np.zeros((ROWS, RANK), "f4")} for _ in range(3)]
    assert merge(command, "-q", *write(tmp_path, models), "-o", tmp_path / "out").returncode == 0
    out = load(tmp_path / "out")
    assert not numbers(out["q.lora_B.weight"]).any() and (np.linalg.norm(numbers(out["q.lora_A.weight"]), axis=1) > 0.3).all()


def test_nan_and_overflow(command, tmp_path):
    """A file with NaN, and one whose product overflows, are left out."""
    pairs, truth = make_pairs(7, malicious=0)
    pairs[5][0][3, 1] = np.nan
    pairs[6][0][:] = 1e30
    pairs[6][1][:] = 1e30
    done = merge(command, *write(tmp_path, name_pairs(pairs)), "-o", tmp_path / "out")
    assert done.returncode == 0 and done.stdout.count("NaN or Inf\n") == done.stdout.count("holds NaN or Inf in 'q'\n") == 2, done.stdout
    assert far(product(load(tmp_path / "out")), truth) < 0.05


def test_what_is_refused(command, tmp_path):
    pairs, _ = make_pairs(3)

    def refuse(models, says, *options, code=3):
        done = merge(command, *options, *write(tmp_path, models), "-o", tmp_path / "out")
        assert done.returncode == code and says in done.stderr, done.stderr
        assert not (tmp_path / "out").exists()

    for gone in ["q.lora_A.weight", "q.lora_B.weight"]:
        refuse([{name: value for name, value in model.items() if name != gone} for model in name_pairs(pairs)], "the other factor is missing")
    refuse([{"q.lora_A.weight": a, "q.lora_B.weight": b[:, :2].copy()} for b, a in pairs], "its shape does not match")
    refuse([{"q.lora_A.weight": a.ravel(), "q.lora_B.weight": b} for b, a in pairs], "its shape does not match")
    refuse([{"q.lora_A.weight": a, "q.lora_B.weight": np.zeros((0, RANK), "f4")} for _, a in pairs], "its shape does not match")
    for rows in (0, 2):
        models = name_pairs(pairs)
        models[1] |= {"q.lora_A.weight": pairs[1][1][rows:], "q.lora_B.weight": pairs[1][0][:, rows:].copy() if rows else pairs[1][0][1:]}
        advice = "; adapters of different ranks cannot be merged\n"
        done = merge(command, *write(tmp_path, models), "-o", tmp_path / "out")
        assert done.returncode == 3 and "has shape" in done.stderr and done.stderr.endswith(advice) == (rows > 0), done.stderr
    square = np.eye(2, dtype="f4")
    refuse([{f"q.lora_{x}.lora_{y}": square for x in "AB" for y in "AB"}] * 3, "belongs to a third factor")
    models = name_pairs(pairs)
    save(tmp_path / "base", models[0])
    refuse(models, "differences already", "--base", tmp_path / "base", code=2)
    uneven = name_pairs(make_pairs(5)[0])
    del uneven[3]["q.lora_A.weight"]
    refuse(uneven, "a file has only one of the two", "--ignore-missing")
    lone = [{"q.lora_A.weight": a} for _, a in pairs]
    assert merge(command, "-q", "--factors", *write(tmp_path, lone), "-o", tmp_path / "out").returncode == 0


# ---- differences from a base ----

@pytest.mark.parametrize("kind", ["f4", "f8", "f2"])
def test_base(command, tmp_path, kind):
    rng = np.random.default_rng(2)
    base = {"w": rng.normal(size=(30, 40)), "steps": np.array([3])}
    models = [{"w": (base["w"] + 0.1 * rng.normal(size=(30, 40)) * (50 if i == 4 else 1)).astype(kind), "steps": np.array([4])} for i in range(5)]
    base["w"] = base["w"].astype("f4")
    base["more"] = np.ones(2, "f4")
    save(tmp_path / "base", base)
    paths = write(tmp_path, models)

    def run(*options):
        done = merge(command, "-q", *options, *paths, "-o", tmp_path / "out")
        assert done.returncode == 0, done.stderr
        return numbers(load(tmp_path / "out")["w"]).astype(float)

    ends = 2e-3 if kind == "f2" else 1e-5
    for rule in ["mean", "median", "ref", "vref"]:  # no origin: the same up to rounding
        assert np.abs(run("-r", rule) - run("-r", rule, "--base", tmp_path / "base")).max() < ends
    deltas = np.stack([model["w"].astype(float) - base["w"] for model in models])
    lengths = np.sqrt((deltas ** 2).sum((1, 2)))
    clipped = (deltas * np.minimum(1, 2 / lengths)[:, None, None]).mean(0)
    assert np.abs(run("-r", "clip:c=2 | mean", "--base", tmp_path / "base") - (base["w"] + clipped)).max() < ends
    assert np.abs(run("-r", "clip:c=2 | mean") - (base["w"] + clipped)).max() > 0.1
    assert load(tmp_path / "out")["steps"] == load(paths[0])["steps"]


def test_base_that_is_refused(command, tmp_path):
    paths = write(tmp_path, [{"w": np.ones(4, "f4")}] * 3)
    for base, says in [({"v": np.ones(4, "f4")}, "lacks the tensor 'w', so it cannot be the base"), ({"w": np.ones(5, "f4")}, "has shape [5]"),
                       ({"w": np.array([1, np.nan, 1, 1], "f4")}, "holds NaN or Inf, so it cannot be the base"), ({"w": np.ones(4, "i4")}, "has type I32")]:
        save(tmp_path / "base", base)
        done = merge(command, "--base", tmp_path / "base", *paths, "-o", tmp_path / "out")
        assert done.returncode in (1, 3) and says in done.stderr, done.stderr
    before = (tmp_path / "base").read_bytes()
    done = merge(command, "--base", tmp_path / "base", *paths, "-o", tmp_path / "base")
    assert done.returncode == 2 and "is the base" in done.stderr and (tmp_path / "base").read_bytes() == before
    done = merge(command, "--base", tmp_path / "nowhere", *paths, "-o", tmp_path / "out")
    assert done.returncode == 3 and "nowhere" in done.stderr


@pytest.mark.parametrize("up, down", [("q.lora_b.weight", "q.lora_a.weight"), ("q.lora_b", "q.lora_a")])
def test_names_of_torchtune(command, tmp_path, up, down):
    """Small letters; a scale that is called lora_alpha is no factor."""
    pairs, _ = make_pairs(5)
    models = [{**model, "q.lora_alpha": np.ones(1, "f4")} for model in name_pairs(pairs, up, down)]
    done = merge(command, "--json", "-r", "median", *write(tmp_path, models), "-o", tmp_path / "out")
    assert done.returncode == 0 and json.loads(done.stdout)["lora"]["pairs"] == 1, done.stderr
    want = np.median(np.stack([b.astype(float) @ a for b, a in pairs]), 0)
    assert far(product(load(tmp_path / "out"), up, down), truncate(want, RANK)) < 1e-4


def test_what_a_person_should_know(command, tmp_path):
    """Scales that differ, and factors of other kinds."""
    pairs, _ = make_pairs(3)
    models = [{**model, "q.alpha": np.float32(8), "v.alpha": np.float32(8)} for model in name_pairs(pairs)]
    assert merge(command, *write(tmp_path, models), "-o", tmp_path / "out").stderr == ""
    models[2]["q.alpha"] = np.float32(9)
    said = merge(command, *write(tmp_path, models), "-o", tmp_path / "out").stderr
    assert said.startswith("reef aggregate: warning: the files differ in 'q.alpha': products are aggregated as if all had the same scale")
    assert merge(command, "-w", "1,1,0", *write(tmp_path, models), "-o", tmp_path / "out").stderr == ""
    rng = np.random.default_rng(3)  # products that have nothing in common
    strangers = [(rng.normal(size=(ROWS, RANK)).astype("f4"), rng.normal(size=(RANK, COLUMNS)).astype("f4")) for _ in range(5)]
    done = merge(command, "--json", "-r", "mean", *write(tmp_path, name_pairs(strangers)), "-o", tmp_path / "out")
    wrong = json.loads(done.stdout)["lora"]["error"]
    mean = np.mean([b.astype(float) @ a for b, a in strangers], 0)
    assert wrong > 0.5 and abs(wrong - far(product(load(tmp_path / "out")), mean)) < 1e-3
    assert done.stderr == (f"reef aggregate: warning: the new factors miss {100 * wrong:.0f} % of the aggregated products, which need a higher rank; merge "
                           "each adapter into its base (merge_and_unload) and merge the full models instead\n")
    models = [{"q.hada_w1_a": np.ones((2, 2), "f4") * number} for number in range(3)]
    assert "factors of LoHa or LoKr" in merge(command, *write(tmp_path, models), "-o", tmp_path / "out").stderr
