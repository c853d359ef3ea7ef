"""Rules by name and keyword, described by the library's field tables."""
from __future__ import annotations

import gc
import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import reef


def test_every_rule_is_described():
    rules = reef.rules()
    assert {"mean", "median", "ref", "vref", "nnm"} <= set(rules)
    for name, rule in rules.items():
        assert rule.name == name and rule.summary and rule.summary[:5].lower() in rule.__doc__.lower()
        for field in rule.fields:
            assert field.name in rule.__doc__ and field.default in rule.__doc__
    assert rules["nnm"].is_mixer and not rules["ref"].is_mixer
    assert "robust" in rules["ref"].traits


def test_signature_has_the_defaults():
    signature = inspect.signature(reef.rules()["ref"])
    assert signature.parameters["efficiency"].default == 0.95
    assert signature.parameters["max_iter"].default == 100
    assert signature.parameters["scale"].default == "mad"


@pytest.mark.parametrize("family", ["rule", "attack", "graph", "weights", "links", "problem", "strategy"])
def test_every_family_is_described(family):
    found = reef.kinds(family)
    assert found and all(kind.__doc__ for kind in found.values())


def test_unknown_family():
    with pytest.raises(ValueError, match="no family"):
        reef.kinds("nothing")


def test_defaults_of_all_rules_are_accepted():
    for name, rule in reef.rules().items():
        parameters = {field.name: field.value for field in rule.fields}
        spec = rule(**parameters).spec if not rule.is_mixer else reef.Rule(
            f"{name}:{','.join(f'{f.name}={f.default}' for f in rule.fields)} | mean").spec
        assert spec.startswith(name)


def test_keywords_go_to_the_last_rule():
    rule = reef.Rule("nnm:f=4 | ref", efficiency=0.9, n="auto")
    assert rule.spec.startswith("nnm:f=4 | ref:c=auto,efficiency=0.9,n=auto")
    assert reef.Rule("trimmed:f=2", keep_self=False).spec.startswith("trimmed:f=2")
    assert rule.tolerates(20) == 4 and reef.Rule("median").tolerates(5) is None
    assert "elementwise" in reef.Rule("ref").traits and "elementwise" not in reef.Rule("krum").traits


def test_aggregate_takes_keywords(rng):
    x = rng.normal(size=(9, 30))
    assert np.array_equal(reef.aggregate(x, "trimmed", f=2), reef.aggregate(x, "trimmed:f=2"))
    assert not np.array_equal(reef.aggregate(x, "ref", efficiency=0.7), reef.aggregate(x, "ref"))
    with pytest.raises(reef.ReefError, match="did you mean 'efficiency'"):
        reef.aggregate(x, "ref", efficency=0.9)
    with pytest.raises(TypeError, match="go with a rule's name"):
        reef.aggregate(x, reef.Rule("ref"), efficiency=0.9)


def test_attacks_make_specs():
    assert reef.attacks()["additive"](delta=1000) == "additive:delta=1000"
    assert reef.attacks()["alie"]() == "alie"
    assert reef.attacks()["zero"](from_=5, off=2) == "zero:from=5,off=2"


def test_handles_end_in_order():
    """Cycles are collected in any order; what others need must still end last."""
    for _ in range(3):
        ring = [reef.Rule("cclip", threads=1), reef.State()]
        ring[0](np.ones((3, 2)), state=ring[1])
        ring.append(ring)
        del ring
        gc.collect()


def test_the_end_of_the_process_is_silent():
    program = "import numpy, reef; rule = reef.Rule('cclip'); state = reef.State(); rule(numpy.ones((3, 2)), state=state)"
    done = subprocess.run([sys.executable, "-c", program], env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
                          capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "" and done.stdout == ""


def test_a_wrong_library_is_named():
    environment = dict(os.environ, REEF_LIBRARY="/nowhere/libreef.so", PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run([sys.executable, "-c", "import reef"], env=environment, capture_output=True, text=True)
    assert done.returncode != 0 and "/nowhere/libreef.so" in done.stderr
    library = __import__("ctypes.util").util.find_library("c")
    done = subprocess.run([sys.executable, "-c", "import reef"], env=dict(environment, REEF_LIBRARY=library),
                          capture_output=True, text=True)
    assert "lacks the functions that this package needs" in done.stderr


def test_version_is_that_of_the_library(root):
    text = (root / "CMakeLists.txt").read_text()
    assert f"project(reef VERSION {reef.__version__} " in text


def test_the_command(root):
    """What messages of the library send people to is there: as python -m reef from the tree, as reef where the package is installed."""
    ways = [[sys.executable, "-m", "reef"]]
    if os.environ.get("REEF_INSTALLED") == "1":
        ways.append([str(Path(sys.executable).parent / "reef")])
    elif not (root / "build" / "release" / "reef").exists():
        pytest.skip("the command is not built")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    for way in ways:
        done = subprocess.run([*way, "list", "krum"], capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0 and "dialect" in done.stdout, done.stderr
        assert subprocess.run([*way, "nonsense"], capture_output=True, env=environment, check=False).returncode == 2


@pytest.mark.parametrize("rule", ["nnm:f=3 | ref", "arc:f=3 | ref", "clip | huber", "nnm:f=2 | arc:f=2 | tukey"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("rows", ["plain", "ties", "lies"])
def test_reports_of_pipelines_with_weights(rng, rule, kind, rows):
    """By kernels; number by number where every share is kept: the same trust, and the same result as without a report, to the bit."""
    x = rng.normal(size=(14, 3000)).astype(kind)
    if rows == "ties":
        x[:, :1000], x[:10, 1000:2000] = np.round(x[:, :1000]), 1.5
    if rows == "lies":
        x[:3] = 1e4
    weights = rng.uniform(0.5, 4, size=14)
    result = reef.aggregate(x, rule, weights)
    fast, report = reef.aggregate(x, rule, weights, report=True)
    slow, full = reef.aggregate(x, rule, weights, shares=True)
    assert np.array_equal(fast, result) and np.array_equal(slow, result)
    assert np.allclose(report.trust, full.trust, atol=1e-6) and np.allclose(report.rejected, full.rejected, atol=1e-3)
