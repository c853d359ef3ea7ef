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
    ("Optimal_InnerProductManipulation", {}), ("Optimal_ALittleIsEnough", {"f": 3, "evals": 9, "start": 0.5, "delta": 3.0, "ratio": 0.7}),
]
AGGREGATORS = [case for case in CASES if case[0] in (
    "Average", "Median", "TrMean", "GeometricMedian", "Krum", "MultiKrum", "CenteredClipping", "MDA", "MoNNA", "Meamed", "CAF", "SMEA")]
MIXERS = [case for case in CASES if case[0] in ("NNM", "Bucketing", "Clipping", "ARC")]
FORMS = ["array", "list", "float32", "tensor", "tensors"]


def theirs():
    """byzfl's classes, without the top of the package, which also loads its training framework."""
    if "byzfl" not in os.environ.get("REEF_REQUIRE", "").split():
        pytest.importorskip("torch")
        pytest.importorskip("scipy")
        if importlib.util.find_spec("byzfl") is None:
            pytest.skip("could not import 'byzfl'")
    if not hasattr(sys.modules.get("byzfl"), "reef_loaded"):
        sys.modules.pop("byzfl", None)  # that of bench/byzfl, if its test came first
        spec = importlib.util.find_spec("byzfl")
        package = types.ModuleType("byzfl")
        package.__spec__ = spec
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


def close(found, wanted, tolerance):
    """Entry by entry, relative to the largest of its row."""
    found, wanted = np.atleast_2d(as_numpy(found)), np.atleast_2d(as_numpy(wanted))
    return np.all(np.abs(found - wanted) <= tolerance * (1 + np.abs(wanted).max(axis=1, keepdims=True)))


def with_lies(lie, rng, kind=np.float64):
    """Nine honest vectors and, at the places 2 and 5, a lie."""
    x = rng.normal(size=(11, 40)) + np.linspace(0, 2, 40)
    x[2], x[5] = lie, 1.5 * lie
    return x.astype(kind)


@pytest.mark.parametrize("size", [1e4, 1e20, 1e37])
@pytest.mark.parametrize("name, arguments", AGGREGATORS + MIXERS, ids=str)
def test_gross_lies_as_in_byzfl(name, arguments, size, rng):
    """Lies of any finite size: the numbers of ByzFL in float64, from float64 and from float32, of which it would make Inf itself."""
    byzfl = theirs()
    wide = with_lies(size, rng)
    if name == "CAF":  # ByzFL's loop takes for ever
        for kind in (np.float64, np.float32):
            assert np.abs(ours.CAF(**arguments)(wide.astype(kind))).max() < 5
            copies = np.concatenate([rng.normal(size=(10, 20)), np.full((4, 20), size)]).astype(kind)
            assert all(np.abs(ours.CAF(f=4)(copies)).max() < 5 for _ in range(20))  # what rounding leaves of a weight counts, too
        assert np.isfinite(ours.CAF(f=1)(np.ones((4, 3)))).all()
        return
    wanted = seeded(lambda: getattr(byzfl, name)(**arguments)(wide.copy()))
    assert close(seeded(lambda: getattr(ours, name)(**arguments)(wide)), wanted, 1e-9)
    short = wide.astype(np.float32)
    found = seeded(lambda: getattr(ours, name)(**arguments)(short))
    wanted = seeded(lambda: getattr(byzfl, name)(**arguments)(short.astype(np.float64)))
    assert found.dtype in (np.float32, np.float64) and close(found, wanted, 2e-5)


@pytest.mark.parametrize("kind", [np.float32, np.float64, "tensor"])
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("name, arguments", AGGREGATORS, ids=str)
def test_vectors_that_are_not_finite_are_left_out(name, arguments, bad, kind, rng):
    """The result is that of ByzFL on the others, with f less by their number. Its own is NaN more often than not."""
    byzfl = theirs()
    x = with_lies(bad, rng, np.float64 if kind == "tensor" else kind)
    fewer = {**arguments, **({"f": max(arguments["f"] - 2, 0)} if "f" in arguments else {})}
    if "idx" in arguments:
        fewer["idx"] = arguments["idx"] - 1  # vector 2 is gone
    others = np.delete(x, [2, 5], axis=0)
    wanted = seeded(lambda: getattr(byzfl, name)(**fewer)(others.astype(np.float64)))
    given = pytest.importorskip("torch").from_numpy(x) if kind == "tensor" else x
    found = as_numpy(seeded(lambda: getattr(ours, name)(**arguments)(given)))
    assert np.isfinite(found).all() and (name == "CAF" or close(found, wanted, 2e-5))


@pytest.mark.parametrize("bad", [np.inf, np.nan, 1e20])
@pytest.mark.parametrize("mixers", [["NNM"], ["Clipping", "NNM"], ["NNM", "ARC"], ["Bucketing"], ["ARC"]], ids="|".join)
@pytest.mark.parametrize("last", ["Average", "Median", "TrMean", "GeometricMedian", "Krum", "MultiKrum", "MDA", "Meamed", "MoNNA",
                                  "CenteredClipping"])
def test_pipelines_withstand(last, mixers, bad, rng):
    """Two malicious vectors of eleven, through every pipeline: the result stays among the honest vectors. Three rules promise nothing
    against finite attacks at this distance, and MoNNA trusts one index, where bucketing may put a malicious vector."""
    x = with_lies(bad, rng, np.float32)
    for name in mixers:
        x = getattr(ours, name)(**({} if name == "Clipping" else {"s": 2} if name == "Bucketing" else {"f": 2}))(x)
    arguments = {"f": 2} if last in ("TrMean", "Krum", "MultiKrum", "MDA", "Meamed", "MoNNA") else {}
    found = getattr(ours, last)(**arguments)(x)
    assert np.isfinite(found).all()
    promised = last not in ("Average", "CenteredClipping", "GeometricMedian") and not (last == "MoNNA" and mixers == ["Bucketing"])
    if promised or not np.isfinite(bad):
        assert np.abs(found).max() < 5


def test_neighbours_of_honest_vectors_are_exact(rng):
    """float32 vectors far from 0, close to each other, with lies: distances are measured from the median and not from a mean."""
    byzfl = theirs()
    x = (1e4 + 1e-2 * rng.normal(size=(11, 50))).astype(np.float32)
    x[9:] = -1e4
    wanted = byzfl.NNM(2)(x.astype(np.float64))
    assert np.abs(ours.NNM(2)(x) - wanted)[:9].max() < 2e-3  # two units of the last place at 1e4


def test_vectors_in_a_row():
    """Three vectors, the one in the middle of which is the mean: exactly that comes out, not 3.9999999999999996."""
    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    for name, arguments in [("Average", {}), ("Median", {}), ("TrMean", {"f": 1}), ("TrMean", {}),
                            ("CenteredClipping", {}), ("CenteredClipping", {"L": 3}), ("Meamed", {"f": 1}), ("SMEA", {})]:
        assert getattr(ours, name)(**arguments)(x).tolist() == [4.0, 5.0, 6.0], name
    assert ours.NNM(1)(x).tolist() == [[2.5, 3.5, 4.5], [2.5, 3.5, 4.5], [5.5, 6.5, 7.5]]  # of equals the first
    assert ours.SignFlipping()(x).tolist() == [-4.0, -5.0, -6.0]


def test_ties_of_meamed_are_shared():
    x = np.array([[1.0], [4.0], [7.0]])
    assert ours.Meamed(1)(x) == [4.0]  # ByzFL takes the first of two that are equally far: 2.5


@pytest.mark.parametrize("form", ["tensor", "tensors"])
@pytest.mark.parametrize("name, arguments", [case for case in CASES if case[0] not in ("Gaussian", "Inf")
                                             and not case[0].startswith("Optimal")], ids=str)
def test_gradients_as_in_byzfl(name, arguments, form, rng):
    """What comes of tensors that require a gradient carries the one that ByzFL's does."""
    torch = pytest.importorskip("torch")
    byzfl = theirs()
    gradients = []
    for module in (byzfl, ours):
        x = torch.from_numpy(np.random.default_rng(3).normal(size=(7, 5)).astype(np.float32)).requires_grad_()
        given = x if form == "tensor" else list(x)
        if name in ("Clipping", "ARC") and module is byzfl:
            given = (x if form == "tensor" else torch.stack(given)) + 0  # it writes into what it gets
        found = seeded(lambda: getattr(module, name)(**arguments)(given))
        if arguments in ({"T": 0}, {"L": 0}):
            assert not found.requires_grad  # it does not depend on the vectors
            return
        assert found.requires_grad
        try:
            (found * torch.arange(1.0, 6.0)).sum().backward()
        except RuntimeError:  # ByzFL writes into what it differentiates
            assert module is byzfl and name in ("GeometricMedian", "Clipping", "ARC")
        gradients.append(None if x.grad is None else x.grad.numpy())
    assert gradients[1] is not None
    assert name == "CAF" or gradients[0] is None or np.allclose(gradients[1], gradients[0], rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        assert not getattr(ours, name)(**arguments)(x.detach()).requires_grad
        assert name == "Mimic" or not getattr(ours, name)(**arguments)(x).requires_grad


def test_defaults_are_those_of_byzfl():
    import inspect

    byzfl = theirs()
    for name in sorted(set(ours.__all__) - {"MREF"}):  # which is Reef's own
        mine, real = (inspect.signature(getattr(module, name)) for module in (ours, byzfl))
        assert {k: p.default for k, p in mine.parameters.items() if k not in ("agg", "pre_agg_list")} == {
            k: p.default for k, p in real.parameters.items() if k not in ("args", "kwargs", "agg", "pre_agg_list")}, name


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
