"""Models that differ harmlessly through the command: types (--cast), missing tensors (--common, --ignore-missing), npz files; each against
the same merge of models that do not differ."""
from __future__ import annotations

import io
import json
import struct
import subprocess
import zipfile
import zlib

import numpy as np
import pytest
from test_merging import command, load, save  # noqa: F401 (a fixture)


def merge(command, *arguments):
    return subprocess.run([command, "aggregate", *map(str, arguments)], capture_output=True, text=True, check=False)


def numbers(entry):
    kind, shape, data = entry
    if kind == "BF16":
        return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4").reshape(shape)
    return np.frombuffer(data, {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8"}[kind]).reshape(shape)


@pytest.fixture
def models():
    """The last one is malicious."""
    rng = np.random.default_rng(3)
    return [{"b": rng.normal(size=5).astype("f4"), "w": (rng.normal(size=(4, 3)) + 30 * (i == 4)).astype("f4"), "steps": np.array([7])}
            for i in range(5)]


def write(folder, models):
    paths = [folder / f"{number}.safetensors" for number in range(len(models))]
    for path, model in zip(paths, models):
        save(path, model)
    return paths


@pytest.mark.parametrize("rule", ["ref", "vref", "nnm | median"])
def test_cast(command, tmp_path, models, rule):
    """Files in half and single precision are merged as the same numbers in single precision are."""
    mixed = [{name: value.astype("f2") if number % 2 and name != "steps" else value for name, value in model.items()}
             for number, model in enumerate(models)]
    plain = [{name: value.astype("f4") if name != "steps" else value for name, value in model.items()} for model in mixed]
    (tmp_path / "plain").mkdir()
    paths, same = write(tmp_path, mixed), write(tmp_path / "plain", plain)
    done = merge(command, "-r", rule, *paths, "-o", tmp_path / "out")
    assert done.returncode == 3 and "tensor 'b' has type F16; in" in done.stderr and "--cast" in done.stderr
    for kind in ["F32", "bf16", "F16", "f64"]:
        assert merge(command, "-q", "-r", rule, "--cast", kind, *paths, "-o", tmp_path / "out").returncode == 0
        assert merge(command, "-q", "-r", rule, "--cast", kind, *same, "-o", tmp_path / "want").returncode == 0
        assert load(tmp_path / "out") == load(tmp_path / "want")
        assert {entry[0] for entry in load(tmp_path / "out").values()} == {kind.upper(), "I64"}
    assert merge(command, "-q", "-r", rule, *same, "-o", tmp_path / "single").returncode == 0
    assert merge(command, "-q", "-r", rule, "--cast", "f32", *paths, "-o", tmp_path / "out").returncode == 0
    assert load(tmp_path / "out") == load(tmp_path / "single")
    assert merge(command, "-q", "-r", rule, "--cast", "bf16", *paths, "-o", tmp_path / "out").returncode == 0
    for name in ["b", "w"]:
        single, half = numbers(load(tmp_path / "single")[name]), numbers(load(tmp_path / "out")[name])
        assert np.abs(single - half).max() <= 2.0 ** -8 * np.abs(single).max()


def test_a_type_that_is_too_small(command, tmp_path):
    paths = write(tmp_path, [{"w": np.array([1, 7e4], "f4")}, {"w": np.array([2, 8e4], "f4")}])
    done = merge(command, "-r", "mean", "--cast", "f16", *paths, "-o", tmp_path / "out")
    assert done.returncode == 1 and "'w' of the result has numbers that are too large for F16 (75000); use --cast F32" in done.stderr
    wide = write(tmp_path, [{"w": np.array([1e300])}, {"w": np.array([1e300, ])}])
    done = merge(command, "-r", "mean", "--cast", "F32", *wide, "-o", tmp_path / "out")
    assert done.returncode == 1 and done.stderr.endswith("F32 (1e+300); use --cast F64\n")
    paths = write(tmp_path, [{"w": np.array([1, 7e4], "f4")}, {"w": np.array([2, 8e4], "f4")}])
    assert not (tmp_path / "out").exists()
    assert merge(command, "--cast", "I64", *paths, "-o", tmp_path / "out").returncode == 2
    paths = write(tmp_path, [{"w": np.array([464, -464, 448], "f4")}] * 2)  # a tie between 448 and 480, which float8 does not have
    assert merge(command, "-q", "--cast", "F8_E4M3", *paths, "-o", tmp_path / "out").returncode == 0
    assert load(tmp_path / "out")["w"] == ("F8_E4M3", (3,), b"\x7e\xfe\x7e")
    (tmp_path / "out").unlink()
    paths = write(tmp_path, [{"w": np.nextafter(np.array([464, 464], "f8"), [500, 400])}] * 2)
    done = merge(command, "-q", "--cast", "F8_E4M3", *paths, "-o", tmp_path / "out")
    assert done.returncode == 1 and "too large for F8_E4M3" in done.stderr and not (tmp_path / "out").exists()


def test_cast_of_npy(command, tmp_path):
    for number in range(3):
        np.save(tmp_path / f"{number}.npy", np.array([[number, 2]], "f4"))
    paths = sorted(tmp_path.glob("?.npy"))
    assert merge(command, "-q", "-r", "mean", "--cast", "f64", *paths, "-o", tmp_path / "out.npy").returncode == 0
    out = np.load(tmp_path / "out.npy")
    assert out.dtype == np.float64 and out.tolist() == [[1, 2]]
    done = merge(command, "--cast", "bf16", *paths, "-o", tmp_path / "out.npy")
    assert done.returncode == 2 and "npy files have no type BF16" in done.stderr


def test_common(command, tmp_path, models):
    whole = write(tmp_path, models)
    assert merge(command, "-q", "-r", "vref", *whole, "-o", tmp_path / "same", "--common").returncode == 0
    assert merge(command, "-q", "-r", "vref", *whole, "-o", tmp_path / "plain").returncode == 0
    assert (tmp_path / "same").read_bytes() == (tmp_path / "plain").read_bytes()
    less = [{name: value for name, value in model.items() if name != "b"} for model in models]
    (tmp_path / "less").mkdir()
    assert merge(command, "-q", "-r", "vref", *write(tmp_path / "less", less), "-o", tmp_path / "want").returncode == 0
    models[2].pop("b")
    models[4]["evil"] = np.ones(2, "f4")
    paths = write(tmp_path, models)
    done = merge(command, "-r", "vref", *paths, "-o", tmp_path / "out", "--common")
    assert done.returncode == 0 and "2 tensors were left out, because some files lack them: 'b', 'evil'" in done.stderr
    assert load(tmp_path / "out") == load(tmp_path / "want")
    done = merge(command, *paths, "-o", tmp_path / "out")
    assert done.returncode == 3 and "lacks the tensor 'b'" in done.stderr


def test_ignore_missing(command, tmp_path, models):
    """What all have is merged as a whole, and what most have from those, each tensor by itself; what few have is left out."""
    lone = [{"b": models[i]["b"]} for i in (1, 2, 3, 4)]
    (tmp_path / "lone").mkdir()
    assert merge(command, "-q", "-r", "vref", *write(tmp_path / "lone", lone), "-o", tmp_path / "lone.out").returncode == 0
    less = [{name: value for name, value in model.items() if name != "b"} for model in models]
    (tmp_path / "less").mkdir()
    assert merge(command, "-q", "-r", "vref", *write(tmp_path / "less", less), "-o", tmp_path / "less.out").returncode == 0
    models[0].pop("b")
    models[4]["evil"] = models[3]["evil"] = np.ones(2, "f4")
    paths = write(tmp_path, models)
    done = merge(command, "--json", "-r", "vref", *paths, "-o", tmp_path / "out", "--ignore-missing", "--trust-tensors", tmp_path / "t.csv")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["missing"] == 1 and told["partial"] == 1 and "'evil'" in told["notes"][0]
    assert load(tmp_path / "out") == {**load(tmp_path / "less.out"), **load(tmp_path / "lone.out")}
    trust = {tensor["name"]: tensor["trust"] for tensor in told["tensors"]}
    assert trust["b"][0] is None and trust["w"][0] > 1 and trust["w"][4] == 0
    done = merge(command, "--common", "--ignore-missing", *paths, "-o", tmp_path / "out")
    assert done.returncode == 2 and "exclude each other" in done.stderr
    done = merge(command, "-r", "mref", "--state", tmp_path / "state", "--ignore-missing", *paths, "-o", tmp_path / "out")
    assert done.returncode == 2 and "whole models" in done.stderr


def test_shapes_still_have_to_agree(command, tmp_path, models):
    models[3]["w"] = models[3]["w"].T.copy()
    paths = write(tmp_path, models)
    for option in ["--common", "--ignore-missing"]:
        done = merge(command, option, *paths, "-o", tmp_path / "out")
        assert done.returncode == 3 and "has shape [3, 4]" in done.stderr
        done = merge(command, option, "--drop-bad", *paths, "-o", tmp_path / "out")
        assert done.returncode == 0 and "left out: " in done.stdout


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5, 6], [6, 0, 1, 2, 3, 4, 5], [0, 6, 5, 4, 3, 2, 1]])
@pytest.mark.parametrize("option", ["--common", "--ignore-missing"])
def test_a_bad_shape_where_others_lack_the_tensor(command, tmp_path, order, option):
    """Whoever comes first, even a file that lacks the tensor in question or the malicious one, the shape is what most files say."""
    rng = np.random.default_rng(4)
    models = [{"b": rng.normal(size=5).astype("f4"), "w": rng.normal(size=(4, 3)).astype("f4")} for _ in range(7)]
    models[0].pop("b")
    good = write(tmp_path, models)[:6]
    models[6]["b"] = np.zeros(6, "f4")
    paths = write(tmp_path, models)
    assert merge(command, "-q", option, *good, "-o", tmp_path / "want").returncode == 0
    done = merge(command, option, "--json", "--drop-bad", *(paths[i] for i in order), "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    fates = {file["path"]: file["fate"] for file in json.loads(done.stdout)["files"]}
    if option == "--common":  # the tensor is in no result, so nobody can do harm with it; but most say what it is
        assert "b" not in load(tmp_path / "out")
    assert [fates[str(path)] for path in paths] == ["used"] * 6 + ["bad file"]
    assert {name: entry[:2] for name, entry in load(tmp_path / "out").items()} == {
        name: entry[:2] for name, entry in load(tmp_path / "want").items()}
    same = merge(command, "-q", option, *(paths[i] for i in order if i < 6), "-o", tmp_path / "want")
    assert same.returncode == 0 and load(tmp_path / "out") == load(tmp_path / "want")
    done = merge(command, option, *paths, "-o", tmp_path / "out")
    assert done.returncode == (3 if option == "--ignore-missing" else 0)


def test_a_shape_that_no_majority_has(command, tmp_path):
    """Three of seven files say one thing of a tensor, one another, and three lack it: it is left out, and no file is to blame."""
    models = [{"w": np.full(3, i, "f4")} for i in range(7)]
    for i in range(1, 5):
        models[i]["b"] = np.zeros(5 + (i == 1), "f4")
    for order in [[0, 1, 2, 3, 4, 5, 6], [1, 0, 2, 3, 4, 5, 6], [4, 3, 2, 1, 0, 6, 5]]:
        paths = write(tmp_path, [models[i] for i in order])
        for option in ["--common", "--ignore-missing"]:
            done = merge(command, option, "--drop-bad", *paths, "-o", tmp_path / "out")
            assert done.returncode == 0 and "1 tensor was left out, because" in done.stderr and "bad file" not in done.stdout
            assert ("lack it or differ in type or shape: 'b'" in done.stderr) == (option == "--ignore-missing")
            assert list(load(tmp_path / "out")) == ["w"]


def test_a_tensor_that_nobody_has_numbers_of_is_named(command, tmp_path):
    models = [{"w": np.full(3, i, "f4"), **({"b": np.full(2, np.nan, "f4")} if i < 3 else {})} for i in range(5)]
    for policy in ["drop-row", "drop-coordinate"]:
        done = merge(command, "--ignore-missing", "--nan", policy, *write(tmp_path, models), "-o", tmp_path / "out")
        assert done.returncode == 1 and done.stderr.startswith("reef aggregate: tensor 'b': no"), done.stderr
        assert not (tmp_path / "out").exists()


def test_nobody_is_right_about_everything(command, tmp_path):
    models = [{name: np.zeros(3 + (i == j), "f4") for j, name in enumerate("abc")} for i in range(3)]
    models[0]["d"] = np.zeros(1, "f4")
    done = merge(command, "--ignore-missing", "--drop-bad", *write(tmp_path, models), "-o", tmp_path / "out")
    assert done.returncode == 3 and "only 0 of 3 files belong together; the first that does not: " in done.stderr
    assert not (tmp_path / "out").exists()


def test_nothing_in_common(command, tmp_path):
    paths = write(tmp_path, [{"a": np.ones(2, "f4")}, {"b": np.ones(2, "f4")}])
    for option, where in [("--common", "all files"), ("--ignore-missing", "more than half of the files")]:
        done = merge(command, option, *paths, "-o", tmp_path / "out")
        assert done.returncode == 3 and f"no tensor can be merged: none is in {where}\n" in done.stderr


def test_shards_and_cast(command, tmp_path, models):
    """A folder keeps its shards; the index is made anew."""
    for number, model in enumerate(models):
        folder = tmp_path / f"site{number}"
        folder.mkdir()
        save(folder / "model-00001-of-00002.safetensors", {"w": model["w"]})
        save(folder / "model-00002-of-00002.safetensors", {"b": model["b"], "steps": model["steps"]})
        where = {"w": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors", "steps": "model-00002-of-00002.safetensors"}
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": where}))
    folders = [tmp_path / f"site{number}" for number in range(5)]
    assert merge(command, "-q", "--cast", "bf16", *folders, "-o", tmp_path / "out").returncode == 0
    index = json.loads((tmp_path / "out" / "model.safetensors.index.json").read_text())
    assert index["weight_map"] == where and index["metadata"]["total_size"] == 2 * 17 + 8
    assert merge(command, "-q", "--cast", "bf16", *write(tmp_path, models), "-o", tmp_path / "one").returncode == 0
    parts = {}
    for file in set(where.values()):
        parts.update(load(tmp_path / "out" / file))
    assert parts == load(tmp_path / "one")


# ---- npz ----

def test_npz(command, tmp_path, models):
    for number, model in enumerate(models):
        np.savez(tmp_path / f"{number}.npz", **model, scalar=np.float64(number), empty=np.zeros((0, 2), "f4"))
        model.update(scalar=np.array(float(number)), empty=np.zeros((0, 2), "f4"))
    archives = sorted(tmp_path.glob("*.npz"))
    for rule in ["ref", "vref"]:
        done = merge(command, "-q", "-r", rule, *archives, "-o", tmp_path / "out.safetensors")
        assert done.returncode == 0, done.stderr
        assert merge(command, "-q", "-r", rule, *write(tmp_path, models), "-o", tmp_path / "want").returncode == 0
        assert load(tmp_path / "out.safetensors") == load(tmp_path / "want")
    done = merge(command, "-q", *archives, "-o", tmp_path / "out.npz")
    assert done.returncode == 2 and "read, but not written" in done.stderr


def refuse(command, path, says):
    done = merge(command, path, path, "-o", path.parent / "out")
    assert done.returncode == 3 and says in done.stderr, done.stderr
    assert not (path.parent / "out").exists()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_npz_that_is_refused(command, tmp_path):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, w=np.ones(3))
    refuse(command, path, "'w.npy' in it is compressed (numpy.savez_compressed); save the arrays with numpy.savez")
    np.savez(path, w=np.asfortranarray(np.ones((2, 3))))
    refuse(command, path, "Fortran order")
    np.savez(path, w=np.ones(3, ">f4"))
    refuse(command, path, "other byte order")
    np.savez(path, w=np.array([None]), allow_pickle=True)
    refuse(command, path, "'w.npy' in it: elements of type '|O' are not supported")
    array = io.BytesIO()
    np.save(array, np.ones(4))
    for names, says in [(["a.npy", "b.txt"], "'b.txt' in it is not an npy array"), (["a.npy", "a.npy"], "has the tensor 'a' twice"),
                        (["__metadata__.npy"], "has the name that safetensors files keep for metadata")]:
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, array.getvalue())
        refuse(command, path, says)
    np.savez(path, w=np.ones(3), v=np.zeros(4))
    good = path.read_bytes()
    for length in range(0, len(good), 13):
        path.write_bytes(good[:length])
        assert merge(command, path, "-o", tmp_path / "out").returncode == 3, length
    start = good.index(b"PK\1\2")
    twin = bytearray(good)
    entry = good.index(b"PK\1\2", start + 4)
    twin[entry + 42:entry + 46] = struct.pack("<I", 0)  # both members are the first one
    path.write_bytes(twin)
    refuse(command, path, "'v.npy' in it")
    many = bytearray(good[:start] + 9 * good[start:entry] + good[good.index(b"PK\5\6"):])  # nine times the first one, the last not read
    many[start + 8 * (entry - start)] = 0
    many[-22 + 8:-22 + 20] = struct.pack("<HHII", 9, 9, 9 * (entry - start), start)
    path.write_bytes(many)
    refuse(command, path, "arrays that overlap")
    for place, value, says in [(8, 1, "encrypted"), (10, 99, "compressed"), (20, 5, "two sizes"), (42, 250, "within the file")]:
        broken = bytearray(good)
        broken[start + place] = value
        path.write_bytes(broken)
        refuse(command, path, says)


def test_npz_with_large_records(command, tmp_path):
    """zip64, as archives above 4 GB have it: sizes in the extra field, the directory through its locator."""
    array = io.BytesIO()
    np.save(array, np.arange(3.0))
    data, name, end = array.getvalue(), b"w.npy", 0xFFFFFFFF
    local = struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 45, 0, 0, 0, 0, zlib.crc32(data), end, end, len(name), 20) + name
    local += struct.pack("<HHQQ", 1, 16, len(data), len(data))
    entry = struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\1\2", 45, 45, 0, 0, 0, 0, zlib.crc32(data), end, end, len(name), 28, 0, 0, 0, 0, end) + name
    entry += struct.pack("<HHQQQ", 1, 24, len(data), len(data), 0)
    start = len(local) + len(data)
    end64 = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, len(entry), start)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, start + len(entry), 1)
    tail = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, end, end, 0)
    path = tmp_path / "x.npz"
    path.write_bytes(local + data + entry + end64 + locator + tail)
    assert np.load(path)["w"].tolist() == [0, 1, 2]  # NumPy agrees that this is such a file
    done = merge(command, "-q", path, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert numbers(load(tmp_path / "out")["w"]).tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["bfloat16", "BF16", "bf16"])
def test_types_by_the_names_that_pytorch_has_for_them(command, tmp_path, name):
    paths = write(tmp_path, [{"w": np.ones(3, "f4")}, {"w": np.ones(3, "f2")}])
    assert merge(command, "--cast", name, *paths, "-o", tmp_path / "out").returncode == 0
    assert load(tmp_path / "out")["w"][0] == "BF16"


@pytest.mark.parametrize("prefix, advice", [("module.", "save model.module"), ("_orig_mod.", "torch.compile does that: save model._orig_mod"),
                                            ("net.", "save all models in the same way")])
def test_a_wrapper_around_a_model(command, tmp_path, prefix, advice):
    model = {name: np.ones(3, "f4") for name in ["a.w", "b.w", "b.w2"]}
    wrapped = {prefix + name: value for name, value in model.items()}
    for models in ([model, wrapped], [wrapped, model]):
        done = merge(command, *write(tmp_path, models), "-o", tmp_path / "out")
        assert done.returncode == 3 and f": the names of its tensors begin with '{prefix}'" in done.stderr and advice in done.stderr
    wrapped["more"] = wrapped.pop(f"{prefix}b.w2")
    done = merge(command, *write(tmp_path, [model, wrapped]), "-o", tmp_path / "out")
    assert done.returncode == 3 and "save" not in done.stderr and "lacks" in done.stderr


def test_a_model_without_any_of_the_tensors(command, tmp_path):
    """It took no part, which is not the same as being excluded."""
    paths = write(tmp_path, [{"a": np.ones(3, "f4") * number} for number in range(3)] + [{"b": np.ones(3, "f4")}])
    done = merge(command, "--json", "--ignore-missing", *paths, "-o", tmp_path / "out")
    told = json.loads(done.stdout)["files"]
    assert told[3]["trust"] is None and told[3]["fate"] == "used" and told[0]["trust"] > 0.9
    done = merge(command, *write(tmp_path, [{}, {}]), "-o", tmp_path / "out")
    assert done.returncode == 0 and "warning: the models have no tensors" in done.stderr


def test_quantized_models(command, tmp_path):
    """Integers that stand for weights, and 8-bit numbers with scales, are merged with a warning."""
    rng = np.random.default_rng(4)
    def make(seed, size):
        return {"w.qweight": rng.integers(0, 99 if seed else 2, size=(2, size), dtype=np.int32), "w.scales": np.ones((2, 8), "f4")}

    done = merge(command, "-q", *write(tmp_path, [make(seed, 1 << 18) for seed in range(3)]), "-o", tmp_path / "out")
    assert done.returncode == 0 and "warning: most of the model is integers" in done.stderr
    assert merge(command, "-q", *write(tmp_path, [make(seed, 9) for seed in range(3)]), "-o", tmp_path / "out").stderr == ""
    alike = make(1, 1 << 18)
    models = [{**alike, "w.scales": np.full((2, 8), seed, "f4")} for seed in range(3)]
    assert merge(command, "-q", *write(tmp_path, models), "-o", tmp_path / "out").stderr == ""
    for name, says in [("w.weight_scale_inv", "'w.weight_scale_inv' is a scale of numbers of 8 bits"), ("w.bias", "")]:
        paths = []
        for number in range(3):
            head = {"w.weight": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]},
                    name: {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}
            text = json.dumps(head).encode()
            paths.append(tmp_path / f"{name}{number}")
            paths[-1].write_bytes(struct.pack("<Q", len(text)) + text + bytes([number, 1, 2, 3]) + np.float32(number + 1).tobytes())
        for options in [(), ("--cast", "F32")]:
            done = merge(command, "-q", *options, *paths, "-o", tmp_path / "out")
            assert done.returncode == 0 and (says in done.stderr if says else done.stderr == ""), done.stderr


def test_where_a_file_is_not_finite(command, tmp_path):
    """The first of its tensors, by any number of threads."""
    rng = np.random.default_rng(6)
    models = [{f"t{place}": rng.normal(size=70_000).astype("f4") for place in range(6)} for _ in range(7)]
    models[1]["t4"][5] = models[1]["t5"][0] = np.nan
    models[2]["t1"][69_999] = models[2]["t3"][0] = -np.inf
    for threads in "1", "2", "4":
        said = merge(command, "--threads", threads, "--memory", "1", *write(tmp_path, models), "-o", tmp_path / "out").stdout
        assert "1.safetensors: holds NaN or Inf in 't4'\n" in said and "2.safetensors: holds NaN or Inf in 't1'\n" in said, said
