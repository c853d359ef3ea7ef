"""reef.compat.byzfl against the real ByzFL, class by class, on random data; without it, what can be said of the classes alone."""
from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import types

import numpy as np
import pytest
import reef
from reef.compat import byzfl as ours

CASES = [
    ("Average", {}), ("Median", {}), ("TrMean", {"f": 3}), ("TrMean", {}), ("GeometricMedian", {}),
    ("GeometricMedian", {"nu": 0.5, "T": 6}), ("GeometricMedian", {"T": 0}), ("Krum", {"f": 3}), ("Krum", {}),
    ("MultiKrum", {"f": 3}), ("MultiKrum", {}), ("CenteredClipping", {}), ("CenteredClipping", {"L": 3, "tau": 5.0}),
    ("CenteredClipping", {"L": 0}), ("MDA", {"f": 2}), ("MDA", {}), ("MoNNA", {"f": 3, "idx": 4}), ("MoNNA", {}),
    ("Meamed", {"f": 3}), ("Meamed", {}), ("CAF", {"f": 3}), ("SMEA", {"f": 2}), ("SMEA", {}),
    ("NNM", {"f": 3}), ("NNM", {}), ("Bucketing", {"s": 3}), ("Bucketing", {}), ("Clipping", {}), ("Clipping", {"c": 9.0}),
    ("ARC", {"f": 3}), ("ARC", {}),
    ("SignFlipping", {}), ("InnerProductManipulation", {}), ("InnerProductManipulation", {"tau": 0.7}),
    ("ALittleIsEnough", {}), ("ALittleIsEnough", {"tau": -1.0}), ("Mimic", {"epsilon": 2}), ("Mimic", {}), ("Inf", {}),
    ("Gaussian", {"mu": 3.0, "sigma": 0.5}), ("Gaussian", {}), ("LabelFlipping", {}),
]
FORMS = ["array", "list", "float32", "tensor", "tensors"]


def theirs():
    """byzfl's classes, without the top of the package, which also loads its training framework."""
    if "byzfl" not in os.environ.get("REEF_REQUIRE", "").split():
        pytest.importorskip("torch")
        pytest.importorskip("scipy")
        if importlib.util.find_spec("byzfl") is None:
            pytest.skip("could not import 'byzfl'")
    if not hasattr(sys.modules.get("byzfl"), "reef_loaded"):
        spec = importlib.util.find_spec("byzfl")
        package = types.ModuleType("byzfl")
        package.__path__ = list(spec.submodule_search_locations)
        package.reef_loaded = True
        sys.modules["byzfl"] = package
        for part in ("aggregators", "attacks"):
            for name, value in vars(importlib.import_module(f"byzfl.{part}")).items():
                if isinstance(value, type):
                    setattr(package, name, value)
    return sys.modules["byzfl"]


def data(form, rng):
    x = rng.normal(size=(11, 40)) + np.linspace(0, 2, 40)
    x[9:] += 4
    if form == "array":
        return x
    if form == "list":
        return list(x)
    if form == "float32":
        return x.astype(np.float32)
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(x.astype(np.float32))
    return tensor if form == "tensor" else list(tensor)


def seeded(call):
    np.random.seed(5)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(5)
    return call()


def as_numpy(value):
    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name, arguments", CASES, ids=lambda value: str(value))
def test_numbers_of_byzfl(name, arguments, form, rng):
    byzfl = theirs()
    x = data(form, rng)
    mine, real = getattr(ours, name)(**arguments), getattr(byzfl, name)(**arguments)
    for repeat in range(2):  # twice, for those with memory
        copy = x.copy() if isinstance(x, np.ndarray) else [row + 0 for row in x] if isinstance(x, list) else x.clone()
        wanted, found = seeded(lambda: real(copy)), seeded(lambda: mine(x))
        assert type(found) is type(wanted), repeat
        assert found.dtype == wanted.dtype and tuple(found.shape) == tuple(wanted.shape)
        tolerance = 1e-10 if "float64" in str(found.dtype) and form in ("array", "list") else 2e-5
        assert np.allclose(as_numpy(found), as_numpy(wanted), rtol=tolerance, atol=tolerance)


def test_defaults_are_those_of_byzfl():
    import inspect

    byzfl = theirs()
    for name in ours.__all__:
        mine, real = (inspect.signature(getattr(module, name)) for module in (ours, byzfl))
        assert {k: p.default for k, p in mine.parameters.items()} == {
            k: p.default for k, p in real.parameters.items() if k not in ("args", "kwargs")}, name


@pytest.mark.parametrize("name, arguments", [
    ("TrMean", {"f": -1}), ("TrMean", {"f": 1.5}), ("Krum", {"f": "2"}), ("GeometricMedian", {"nu": 1}),
    ("GeometricMedian", {"T": -1}), ("CenteredClipping", {"L": -1}), ("CenteredClipping", {"tau": -1.0}),
    ("MoNNA", {"idx": -1}), ("Bucketing", {"s": 0}), ("Clipping", {"c": -1.0}), ("Clipping", {"c": 1}), ("ARC", {"f": -1}),
    ("InnerProductManipulation", {"tau": 2}), ("ALittleIsEnough", {"tau": 2}), ("Mimic", {"epsilon": -1}),
    ("Gaussian", {"mu": 1}), ("Gaussian", {"sigma": -1.0}), ("NNM", {"f": -2}), ("CAF", {"f": -1}), ("SMEA", {"f": -1})])
def test_arguments_are_refused_alike(name, arguments):
    with pytest.raises((ValueError, TypeError)) as mine:
        getattr(ours, name)(**arguments)
    with pytest.raises((ValueError, TypeError)) as real:
        getattr(theirs(), name)(**arguments)
    assert mine.type is real.type


@pytest.mark.parametrize("name", ["TrMean", "Krum", "MultiKrum", "MDA", "MoNNA", "Meamed", "CAF", "SMEA"])
def test_too_many_liars_are_refused(name, rng):
    with pytest.raises(ValueError, match="2f ≥ n"):
        getattr(ours, name)(f=5)(rng.normal(size=(10, 3)))


def test_wrong_vectors_are_refused():
    for wrong in ("abc", [], [[1.0, 2.0]], 3):
        with pytest.raises((TypeError, IndexError)):
            ours.Median()(wrong)


def test_it_is_reef_that_computes(rng):
    x = rng.normal(size=(11, 40))
    assert np.array_equal(ours.TrMean(2)(x), reef.aggregate(x, "trimmed:f=2"))
    spoilt = x.copy()
    spoilt[3, 2] = np.inf
    assert np.isfinite(ours.TrMean(2)(spoilt)).all()


def test_rows_of_the_caller_stay(rng):
    x = rng.normal(size=(11, 40)) * 10
    before = x.copy()
    for name in ("Clipping", "ARC", "NNM"):
        getattr(ours, name)()(x)
    assert np.array_equal(x, before)


def test_centre_of_the_caller(rng):
    x = rng.normal(size=(5, 4))
    clipping = ours.CenteredClipping(m=np.full(4, 100.0), tau=1.0)
    assert np.linalg.norm(clipping(x) - 100) <= 1.0 + 1e-9
