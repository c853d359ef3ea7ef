"""Folders in Hugging Face's layout through the command: shards in and out, small files, what is refused; loaded by safetensors and transformers."""
from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import need
from test_merging import command, load, save  # noqa: F401 (a fixture)

INDEX = "model.safetensors.index.json"


def make_model(seed):
    rng = np.random.default_rng(seed)
    return {"embed": rng.normal(size=(40, 8)).astype(np.float32), "layer.0.w": rng.normal(size=(8, 8)).astype(np.float16),
            "layer.1.w": rng.normal(size=(8, 8)).astype(np.float32), "steps": np.array(7, dtype=np.int64)}


def save_folder(folder, model, shards):
    """shards: lists of names, one per file."""
    folder.mkdir()
    if len(shards) == 1:
        save(folder / "model.safetensors", model)
    else:
        where = {}
        for number, names in enumerate(shards, 1):
            file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
            save(folder / file, {name: model[name] for name in names})
            where.update({name: file for name in names})
        (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": where}))
    (folder / "config.json").write_text('{"model_type": "toy"}')
    (folder / "tokenizer.json").write_text("{}")


def load_folder(folder):
    """As somebody reads it who knows nothing of ours."""
    index = folder / INDEX
    if not index.exists():
        return load(folder / "model.safetensors")
    where = json.loads(index.read_text())["weight_map"]
    model = {}
    for file in set(where.values()):
        part = load(folder / file)
        assert set(part) == {name for name, home in where.items() if home == file}
        model.update(part)
    assert set(model) == set(where)
    return model


def merge(command, *arguments):
    return subprocess.run([command, "aggregate", *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.fixture
def sites(tmp_path):
    """Three sites, each in other shards, and the same models as single files."""
    layouts = [[["embed"], ["layer.1.w", "steps", "layer.0.w"]], [["embed", "layer.0.w", "layer.1.w", "steps"]],
               [["steps"], ["layer.0.w"], ["layer.1.w", "embed"]]]
    for number, layout in enumerate(layouts):
        model = make_model(number)
        save_folder(tmp_path / f"site{number}", model, layout)
        save(tmp_path / f"{number}.safetensors", model)
    return tmp_path


@pytest.mark.parametrize("rule", ["ref", "vref", "krum:f=0", "median"])
def test_same_bits_as_single_files(command, sites, rule):
    files = [sites / f"{number}.safetensors" for number in range(3)]
    folders = [sites / f"site{number}" for number in range(3)]
    assert merge(command, "-q", "-r", rule, *files, "-o", sites / "one.safetensors").returncode == 0
    want = load(sites / "one.safetensors")
    assert merge(command, "-q", "-r", rule, *folders, "-o", sites / "out").returncode == 0
    assert load_folder(sites / "out") == want
    assert sorted(path.name for path in (sites / "out").iterdir()) == sorted(path.name for path in (sites / "site0").iterdir())
    assert (sites / "out" / INDEX).read_bytes() == (sites / "site0" / INDEX).read_bytes()
    # a folder into one file, files and folders together, files into shards
    assert merge(command, "-q", "-r", rule, *folders, "-o", sites / "flat.safetensors").returncode == 0
    assert load(sites / "flat.safetensors") == want
    assert merge(command, "-q", "-r", rule, files[0], *folders[1:], "-o", sites / "mixed.safetensors").returncode == 0
    assert load(sites / "mixed.safetensors") == want
    assert merge(command, "-q", "-r", rule, *files, "--shard-size", "300B", "-o", sites / "shards/").returncode == 0
    assert load_folder(sites / "shards") == want
    assert len(list((sites / "shards").glob("model-*-of-00003.safetensors"))) == 3
    assert not list(sites.glob("*.tmp"))


def test_small_files(command, sites):
    (sites / "site1" / "config.json").write_text('{"model_type": "other"}')
    (sites / "site2" / "tokenizer.json").unlink()
    for number in range(3):
        (sites / f"site{number}" / "LICENSE").write_text("free")
        (sites / f"site{number}" / ".hidden").write_text("x")
        (sites / f"site{number}" / "pytorch_model.bin").write_text("x")
    done = merge(command, "-q", *(sites / f"site{number}" for number in range(3)), "-o", sites / "out")
    assert done.returncode == 0
    assert "config.json is not the same everywhere" in done.stderr and "site1" in done.stderr
    assert "tokenizer.json is not the same everywhere" in done.stderr and "site2" in done.stderr
    assert {path.name for path in (sites / "out").iterdir() if "model" not in path.name} == {"LICENSE"}
    assert not (sites / "out" / "pytorch_model.bin").exists()


@pytest.mark.parametrize("mine, theirs, says", [
    ({"a": 1, "_name_or_path": "/home/x", "b": [1, {"c": 2}]}, {"a": 1, "_name_or_path": "/data/y", "b": [1, {"c": 2}]}, "differs in '_name_or_path')"),
    ({"target_modules": ["q", "v"], "r": 8}, {"r": 8, "target_modules": ["v", "q"], "new": None}, "differs in 'target_modules', 'new')"),
    ({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}, {}, "differs in 'a', 'b', 'c', ...)"),
    ({"a\x1b": 1}, {"a\x1b": 2}, "differs in 'a?u001b')"),
    ([1], [2], "has another)"), ("text", {"a": 1}, "has another)"), ({"a": "x" * 300000}, {"a": 1}, "has another)")])
def test_keys_that_differ_are_named(command, sites, mine, theirs, says):
    """A configuration as a rule differs in where it was trained, and the order of what was a set."""
    for number in range(3):
        (sites / f"site{number}" / "config.json").write_text(json.dumps(theirs if number == 1 else mine))
    done = merge(command, "-q", *(sites / f"site{number}" for number in range(3)), "-o", sites / "out")
    assert done.returncode == 0 and not (sites / "out" / "config.json").exists()
    assert f"site1 {says} and was not copied; copy the one that you trust\n" in done.stderr.replace("\\", "?"), done.stderr


def test_keys_without_end(command, sites):
    """What is no JSON, or has more keys than anybody looks at, takes no time."""
    for text in ['{"a": 1, "b', '{"a": }', "{" + ",".join(f'"k{i}": {i}' for i in range(20000)) + "}", "{" + "[" * 200000]:
        (sites / "site1" / "config.json").write_text(text)
        (sites / "site0" / "config.json").write_text(text.replace("1", "2"))
        done = subprocess.run([command, "aggregate", "-q", *(sites / f"site{number}" for number in range(3)), "-o", sites / f"out{len(text)}"],
                              capture_output=True, text=True, check=False, timeout=20)
        assert done.returncode == 0 and "config.json is not the same everywhere" in done.stderr, done.stderr


def test_scales_of_adapters(command, tmp_path):
    """PEFT has the scale of the products in the configuration."""
    rng = np.random.default_rng(1)
    for number in range(3):
        folder = tmp_path / f"site{number}"
        folder.mkdir()
        save(folder / "adapter_model.safetensors", {"q.lora_A.weight": rng.normal(size=(2, 5)).astype("f4"),
                                                    "q.lora_B.weight": rng.normal(size=(4, 2)).astype("f4")})
        (folder / "adapter_config.json").write_text(json.dumps({"r": 2, "lora_alpha": 32 if number == 2 else 16}))
    folders = sorted(tmp_path.glob("site?"))
    done = merge(command, "-q", *folders, "-o", tmp_path / "out")
    assert done.returncode == 0 and "warning: the sites differ in what adapter_config.json says of the scale" in done.stderr
    assert "site2 differs in 'lora_alpha')" in done.stderr
    assert "warning" not in merge(command, "-q", *folders[:2], "-o", tmp_path / "alike").stderr


def test_what_is_not_copied_is_told(command, sites):
    """Files that only other sites have, subfolders, pipes, and as many names as somebody likes."""
    (sites / "site0" / "config.json").unlink()
    (sites / "site0" / "tokenizer.json").unlink()
    os.mkfifo(sites / "site0" / "tokenizer.json")
    (sites / "site0" / "runs").mkdir()
    (sites / "site0" / "runs" / "events").write_text("0")
    (sites / "site0" / "linked").symlink_to("/etc")
    for number in range(60):
        (sites / "site2" / f"{number:02d}\x1b.txt").write_text("x")
    done = merge(command, "-q", *(sites / f"site{number}" for number in range(3)), "-o", sites / "out")
    assert done.returncode == 0
    said = done.stderr.splitlines()
    assert any(line.startswith("reef aggregate: runs is a subfolder that is not the same everywhere") for line in said)
    assert "reef aggregate: linked is a link to a folder and was not copied" in said
    assert "reef aggregate: tokenizer.json is not a regular file and was not copied" in said
    assert any("config.json is not the same everywhere" in line and "site0 has none) and was not copied" in line for line in said)
    assert said[-1] == "reef aggregate: 44 more files and folders were not copied" and len(said) == 21 and "\x1b" not in done.stderr
    assert not (sites / "out" / "config.json").exists() and not (sites / "out" / "runs").exists()


def test_subfolders(command, sites):
    """Copied as a whole if they are the same everywhere and hold nothing but small files, as 1_Pooling of sentence-transformers is; a merge that fails
    leaves none."""
    def pool(number):
        return sites / f"site{number}" / "1_Pooling"

    for number in range(3):
        pool(number).mkdir()
        (pool(number) / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
        (pool(number) / "..text").write_text("hidden")
    folders = [sites / f"site{number}" for number in range(3)]
    done = merge(command, "-q", *folders, "-o", sites / "out")
    assert done.returncode == 0 and done.stderr == ""
    assert [(path.name, path.read_text()) for path in (sites / "out" / "1_Pooling").iterdir()] == [("config.json", (pool(0) / "config.json").read_text())]
    for what, change in enumerate([lambda: (pool(1) / "more").write_text(""), lambda: (pool(2) / "config.json").write_text("{}"),
                                   lambda: (pool(0) / "deep").mkdir(), lambda: save(pool(0) / "model.safetensors", make_model(1))]):
        change()
        done = merge(command, "-q", *folders, "-o", sites / f"out{what}")
        assert done.returncode == 0 and "1_Pooling is a subfolder that is not the same everywhere" in done.stderr
        assert not (sites / f"out{what}" / "1_Pooling").exists()
    for number in range(3):
        for path in pool(number).iterdir():
            path.rmdir() if path.is_dir() else path.unlink()
        (pool(number) / "config.json").write_text("{}")
    # fails after the subfolder is there: the memory, which is written last, has no place
    refuse(command, sites, "nowhere/memory", "--rule", "mref", "--state", sites / "nowhere" / "memory", code=1, out="last")


def test_pipes_in_a_folder_are_the_sites_doing(command, sites):
    """They are not waited for, and --drop-bad goes on without that site."""
    for name in ["model-00002-of-00003.safetensors", INDEX]:
        (sites / "site2" / name).unlink()
        os.mkfifo(sites / "site2" / name)
        refuse(command, sites, f"{name}: is not a regular file")
        done = merge(command, *(sites / f"site{number}" for number in range(3)), "-o", sites / f"out{name}", "--drop-bad")
        assert done.returncode == 0 and "of 2 files by ref" in done.stdout, done.stderr


def test_a_folder_of_folders(command, sites):
    (sites / "pipeline" / "unet").mkdir(parents=True)
    save(sites / "pipeline" / "unet" / "model.safetensors", make_model(1))
    done = merge(command, sites / "site0", f"{sites / 'pipeline'}/", "-o", sites / "out")
    assert done.returncode == 3 and done.stderr.endswith("subfolders with one, such as unet; give one of those, or all of them as models\n")


def test_names_of_new_shards(command, tmp_path):
    """An adapter stays one where its files are cut anew: the names begin as before."""
    for number in range(3):
        (tmp_path / f"site{number}").mkdir()
        save(tmp_path / f"site{number}" / "adapter_model.safetensors", make_model(number))
    sites = [tmp_path / f"site{number}" for number in range(3)]
    assert merge(command, "-q", *sites, "-o", tmp_path / "one", "--shard-size", "1GB").returncode == 0
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["adapter_model.safetensors"]
    assert merge(command, "-q", *sites, "-o", tmp_path / "more", "--shard-size", "300B").returncode == 0
    assert sorted(path.name for path in (tmp_path / "more").iterdir()) == [
        *(f"adapter_model-0000{number}-of-00003.safetensors" for number in (1, 2, 3)), "adapter_model.safetensors.index.json"]
    again = merge(command, "-q", tmp_path / "more", "-o", tmp_path / "again.safetensors")
    assert again.returncode == 0 and load(tmp_path / "again.safetensors") == load(tmp_path / "one" / "adapter_model.safetensors")


def test_shards_that_are_given_as_models(command, sites):
    shards = sorted((sites / "site2").glob("*.safetensors"))
    done = merge(command, *shards, "-o", sites / "out")
    assert done.returncode == 3 and done.stderr.endswith("; for a model in shards give the folder that they are in\n")
    (sites / "site2" / INDEX).unlink()
    done = merge(command, sites / "site0", sites / "site2", "-o", sites / "out")
    assert done.returncode == 3 and "its index (model.safetensors.index.json) is missing" in done.stderr


def test_folders_into_a_stream_are_one_file(command, sites):
    folders = [sites / f"site{number}" for number in range(3)]
    assert merge(command, "-q", *folders, "-o", sites / "one.safetensors").returncode == 0
    with open(sites / "stream", "wb") as stream:
        subprocess.run([command, "aggregate", "-q", *folders, "-o", "-"], stdout=stream, check=True)
    assert (sites / "stream").read_bytes() == (sites / "one.safetensors").read_bytes()
    done = merge(command, "-q", *folders, "-o", "-", "--shard-size", "1KB")
    assert done.returncode == 2 and "--shard-size makes a folder" in done.stderr


def refuse(command, sites, says, *options, code=3, out="out"):
    before = sorted(map(str, sites.rglob("*")))
    done = merge(command, "-q", *(sites / f"site{number}" for number in range(3)), "-o", sites / out, *options)
    assert done.returncode == code and says in done.stderr, done.stderr
    assert sorted(map(str, sites.rglob("*"))) == before


def test_what_is_refused(command, sites):
    index = sites / "site2" / INDEX
    good = index.read_text()
    for change, says in [(lambda text: text.replace("00001-of-00003", "00002-of-00003"), "lack"),
                         (lambda text: text.replace('"steps"', '"stops"'), "steps"),
                         (lambda text: text.replace("model-00003", "../site0/model-00003"), "is not a file in this folder"),
                         (lambda text: text[:-2], "byte"), (lambda text: "[" + text, "byte 0")]:
        index.write_text(change(good))
        refuse(command, sites, says)
    where = json.loads(good)
    where["weight_map"]["steps"], where["weight_map"]["layer.0.w"] = where["weight_map"]["layer.0.w"], where["weight_map"]["steps"]
    index.write_text(json.dumps(where))
    refuse(command, sites, "is in another file than it says")
    index.write_text(good.replace("model-00003", "model-00009"))
    refuse(command, sites, "is not there, but the index names it")
    with open(index, "wb") as file:
        file.truncate(100_000_001)
    refuse(command, sites, "at most 100000000 are supported")
    index.write_text(good)
    shard = sites / "site2" / "model-00002-of-00003.safetensors"
    shard.rename(sites / "kept")
    for target in (shard.name, "nowhere"):
        shard.symlink_to(target)
        refuse(command, sites, f"{shard.name}: is a link that leads nowhere")
        done = merge(command, "-q", *(sites / f"site{number}" for number in range(3)), "-o", sites / f"without_{target}", "--drop-bad")
        assert done.returncode == 0, done.stderr  # one site cannot keep all others from being merged
        shard.unlink()
    (sites / "kept").rename(shard)
    (sites / "full").mkdir()
    (sites / "full" / "precious").write_text("x")
    refuse(command, sites, "that is not empty", code=1, out="full")
    refuse(command, sites, "is an input", code=2, out="site1/model.safetensors")
    save_folder(sites / "base", make_model(9), [["embed", "layer.0.w", "layer.1.w", "steps"]])
    refuse(command, sites, "is an input", "--base", sites / "base", code=2, out="base/model.safetensors")
    (sites / "empty").mkdir()
    done = merge(command, "-q", sites / "site0", sites / "empty", "-o", sites / "out")
    assert done.returncode == 3 and "is a folder without a .safetensors file" in done.stderr
    (sites / "empty" / "pytorch_model.bin").write_text("x")
    done = merge(command, "-q", sites / "site0", sites / "empty", "-o", sites / "out")
    assert done.returncode == 3 and "pickled files only" in done.stderr
    done = merge(command, "-q", sites / "site0", "-o", sites / "out", "--shard-size", "much")
    assert done.returncode == 2 and "--shard-size" in done.stderr


def test_a_link_stays_no_trap(command, sites):
    """An empty folder is taken, and so is one behind a link, whether it is there or not."""
    (sites / "place").mkdir()
    (sites / "link").symlink_to("place")
    done = merge(command, "-q", sites / "site0", sites / "site1", "-o", sites / "link")
    assert done.returncode == 0, done.stderr
    assert (sites / "link").is_symlink() and (sites / "place" / INDEX).exists()
    (sites / "early").symlink_to("later")
    done = merge(command, "-q", sites / "site0", sites / "site1", "-o", f"{sites / 'early'}/")
    assert done.returncode == 0, done.stderr
    assert (sites / "early").is_symlink() and (sites / "later" / INDEX).exists() and not list(sites.glob("*.tmp"))
    done = merge(command, "-q", sites / "site0", sites / "site1", "-o", f"{sites / 'later' / INDEX}/")
    assert done.returncode == 1 and "is a file; the result is a folder" in done.stderr


def test_an_empty_folder_keeps_its_mode(command, sites):
    """Whoever made it for this result has decided who may look into it."""
    for mode in [0o700, 0o2770, 0o755]:
        place = sites / f"place{mode:o}"
        place.mkdir()
        place.chmod(mode)
        done = merge(command, "-q", sites / "site0", sites / "site1", "-o", place)
        assert done.returncode == 0, done.stderr
        assert (place / INDEX).exists() and place.stat().st_mode & 0o7777 == mode


def test_safetensors_package_loads_it(command, sites):
    safe_open = need("safetensors").safe_open
    assert merge(command, "-q", *(sites / f"site{number}" for number in range(3)), "-o", sites / "out", "--shard-size", "1KB").returncode == 0
    names = set()
    for file in (sites / "out").glob("*.safetensors"):
        with safe_open(file, framework="numpy") as opened:
            names |= set(opened.keys())
            for name in opened.keys():
                assert opened.get_tensor(name).shape == make_model(0)[name].shape
    assert names == set(make_model(0))


def test_transformers_loads_it(command, tmp_path):
    """Five BERTs, one of them malicious: the merged folder is loaded by from_pretrained, and speaks like the honest ones."""
    transformers, torch = need("transformers"), need("torch")
    settings = transformers.BertConfig(vocab_size=60, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
    torch.manual_seed(1)
    honest = transformers.BertModel(settings)
    for number in range(5):
        model = transformers.BertModel(settings)
        model.load_state_dict({name: value + (0.001 * torch.randn(value.shape) if number < 4 else 50) if value.is_floating_point() else value
                               for name, value in honest.state_dict().items()})
        model.save_pretrained(tmp_path / f"site{number}", max_shard_size="8KB", safe_serialization=True)
    folders = sorted(Path(tmp_path).glob("site*"))
    done = merge(command, *folders, "-o", tmp_path / "merged")
    assert done.returncode == 0, done.stderr
    merged = transformers.AutoModel.from_pretrained(tmp_path / "merged").eval()
    words = torch.arange(5, 17).reshape(1, -1)
    with torch.no_grad():
        said, wanted = merged(words).last_hidden_state, honest.eval()(words).last_hidden_state
    assert torch.nn.functional.cosine_similarity(said.flatten(), wanted.flatten(), 0) > 0.99


def test_eight_bit_numbers(command, tmp_path):
    """float8 files whose numbers are whole multiples: the mean is known, and rounded to nearest, ties to even."""
    def write(path, kind, codes):
        text = json.dumps({"w": {"dtype": kind, "shape": [len(codes)], "data_offsets": [0, len(codes)]}}).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(codes))

    for kind, models, want in [("F8_E4M3", ([0x38, 0x7E, 0x01, 0xB8], [0x40, 0x7E, 0x02, 0xC0]), [0x3C, 0x7E, 0x02, 0xBC]),
                               ("F8_E5M2", ([0x3C, 0x7B, 0x01, 0xBC], [0x40, 0x7B, 0x02, 0xC0]), [0x3E, 0x7B, 0x02, 0xBE])]:
        paths = [tmp_path / f"{kind}{number}.safetensors" for number in range(2)]
        for path, codes in zip(paths, models):
            write(path, kind, codes)
        out = tmp_path / f"{kind}.out.safetensors"
        done = merge(command, "-q", "-r", "mean", *paths, "-o", out)
        assert done.returncode == 0, done.stderr
        assert out.read_bytes()[:-4] == paths[0].read_bytes()[:-4] and list(out.read_bytes()[-4:]) == want
    write(paths[0], "F8_E4M3", [0x38, 0x7F, 0, 0])  # NaN
    write(paths[1], "F8_E4M3", [0x38, 0x7E, 0, 0])
    done = merge(command, "-r", "mean", *paths, "-o", tmp_path / "nan.safetensors")
    assert done.returncode == 0 and "NaN or Inf" in done.stdout
