"""Models of several tensors: dicts, state_dicts, lists; and PyTorch."""
from __future__ import annotations

import numpy as np
import pytest
import reef
from conftest import need


def models(rng, count=7):
    rows = [{"w": rng.normal(size=(4, 3)).astype(np.float32), "b": rng.normal(size=3).astype(np.float32),
             "steps": np.array(10 + (i == 2))} for i in range(count)]
    rows[2]["w"][:] = 1e6
    return rows


def test_dicts(rng):
    rows = models(rng)
    result, report = reef.aggregate(rows, "vref", report=True)
    assert list(result) == ["w", "b", "steps"]
    assert result["w"].shape == (4, 3) and np.abs(result["w"]).max() < 5
    assert result["steps"] == 10  # the value of the majority
    assert report.trust[2] < 0.1


def test_a_dict_is_one_model_not_many(rng):
    """Krum picks one row, the same for all tensors."""
    rows = models(rng)
    result = reef.aggregate(rows, "krum:f=1")
    assert any(all(np.array_equal(result[key], row[key]) for key in ("w", "b")) for row in rows)


def test_lists_of_arrays(rng):
    rows = [[row["w"], row["b"]] for row in models(rng)]
    result, report = reef.aggregate(rows, "median", shares=True)
    assert isinstance(result, list) and result[0].shape == (4, 3)
    assert np.array_equal(result[1], np.median([row[1] for row in rows], axis=0))
    assert report.shares[0].shape == (7, 4, 3)


def test_empty_tensors_stay_empty(rng):
    rows = [{"a": rng.normal(size=4), "none": np.empty((0, 3))} for _ in range(4)]
    result = reef.aggregate(rows, "mean")
    assert result["none"].shape == (0, 3) and result["a"].shape == (4,)


def test_each_tensor_keeps_its_type(rng):
    """float64 anywhere: everything is computed in float64, and rounded once to what each tensor is."""
    rows = [{"a": rng.normal(size=4), "b": rng.normal(size=2).astype(np.float32), "c": rng.normal(size=9).astype(np.float16)}
            for _ in range(5)]
    wide = [{name: array.astype(np.float64) for name, array in row.items()} for row in rows]
    for rule in ("mean", "ref", "krum:f=1", "vref"):
        result, wanted = reef.aggregate(rows, rule), reef.aggregate(wide, rule)
        for name in rows[0]:
            assert result[name].dtype == rows[0][name].dtype
            assert np.array_equal(result[name], wanted[name].astype(result[name].dtype))


def test_rows_left_out_have_no_vote(rng):
    """A vote of three good rows against two that hold NaN, which agree."""
    rows = [{"w": rng.normal(size=4), "n": np.array([value], np.int8)} for value in (1, 1, 2, 2, 2)]
    assert reef.aggregate(rows, "mean")["n"] == [2]
    rows[2]["w"][0] = rows[3]["w"][0] = np.nan
    assert reef.aggregate(rows, "mean")["n"] == [1]
    assert reef.aggregate(rows, "mean:nan=drop-coordinate")["n"] == [2]


def test_votes_go_by_weight(rng):
    rows = [{"w": rng.normal(size=4), "n": np.array(value)} for value in (1, 2, 2)]
    assert reef.aggregate(rows, "mean")["n"] == 2
    assert reef.aggregate(rows, "mean", weights=[3, 1, 1])["n"] == 1
    assert reef.aggregate(rows, "mean", weights=[0, 1, 1])["n"] == 2
    assert reef.aggregate(rows, "mean", weights=[1e308] * 3)["n"] == 2  # whose sum is no number


def test_without_a_majority_the_most_trusted_row_decides(rng):
    rows = [{"w": np.full(4, value), "n": np.array([place])} for place, value in enumerate((0.0, 0.1, -0.1, 50.0, -50.0))]
    result, report = reef.aggregate(rows, "vref", report=True)
    assert result["n"] == [np.argmax(report.trust)]
    assert reef.aggregate([{"n": row["n"]} for row in rows], "vref", weights=[1, 1, 1, 1, 2])["n"] == [4]


def test_models_of_integers_alone():
    rows = [{"n": np.array([1, value]), "b": np.array(value > 2), "none": np.empty((0, 2))} for value in (2, 3, 3)]
    result, report = reef.aggregate(rows, "ref", report=True)
    assert result["n"].tolist() == [1, 3] and result["b"] and result["b"].dtype == bool and result["none"].shape == (0, 2)
    assert np.isnan(report.trust).all()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", ">i4", "int64"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 2), (0,)])
def test_integers_of_any_kind(dtype, shape):
    rows = [{"w": np.ones(2), "n": np.full(shape, value).astype(dtype)} for value in (0, 1, 1)]
    found = reef.aggregate(rows, "mean")["n"]
    assert isinstance(found, np.ndarray) and found.shape == shape and np.array_equal(found, rows[1]["n"])
    assert found.dtype == np.dtype(dtype).newbyteorder("=")


def test_copy_makes_rows_alike(rng):
    """With copy=True rows may differ in type; what cannot be made a number is refused with or without it."""
    rows = [{"w": rng.normal(size=3).astype(kind), "n": np.array([1], whole)}
            for kind, whole in (("f4", "i4"), ("f8", "i8"), ("f2", "i4"))]
    with pytest.raises(TypeError, match="row 1, tensor 'w' is of type float64, but row 0 is float32"):
        reef.aggregate(rows, "mean")
    result = reef.aggregate(rows, "mean", copy=True)
    assert result["w"].dtype == np.float64 and result["n"].dtype == np.int64
    assert np.allclose(result["w"], np.mean([row["w"] for row in rows], axis=0))
    half = [{"n": np.array([1])}, {"n": np.array([2.0])}]
    assert reef.aggregate(half, "mean", copy=True)["n"] == [1.5]
    for wrong in (np.ma.masked_array([1.0, 2.0], [0, 1]), np.ones(2, complex), np.array(["a", "b"])):
        for copy in (False, True):
            with pytest.raises(TypeError) as told:
                reef.aggregate([wrong, wrong], "mean", copy=copy)
            assert "copy=True" not in str(told.value)


def test_wrong_shape_inside_a_model(rng):
    rows = models(rng)
    rows[4]["b"] = np.ones(4, np.float32)
    with pytest.raises(ValueError, match="row 4, tensor 'b' has the shape"):
        reef.aggregate(rows)


def test_tensors(rng):
    torch = need("torch")
    x = torch.from_numpy(rng.normal(size=(7, 50, 2)).astype(np.float32))
    result = reef.aggregate(x, "ref")
    assert torch.is_tensor(result) and result.dtype == torch.float32
    assert np.array_equal(result.numpy(), reef.aggregate(x.numpy(), "ref"))
    with pytest.raises(TypeError, match="not contiguous"):
        reef.aggregate([row.T for row in x])
    assert reef.aggregate([row.T for row in x], copy=True).shape == (2, 50)
    with pytest.raises(TypeError, match="layout"):
        reef.aggregate([row.to_sparse() for row in x], "mean")
    assert torch.allclose(reef.aggregate([row.to_sparse() for row in x], "mean", copy=True), x.mean(0))
    with pytest.raises(TypeError, match="torch.int64"):
        reef.aggregate(torch.ones((3, 2), dtype=torch.int64), "mean")
    with pytest.raises(TypeError, match="row 1 is of type ndarray float32"):
        reef.aggregate([x[0], x[1].numpy()], "mean")
    mixed = reef.aggregate([x[0], x[1].numpy().astype(np.float64)], "mean", copy=True)
    assert mixed.dtype == torch.float64 and torch.allclose(mixed.float(), x[:2].mean(0))
    back = reef.aggregate([x[1].numpy(), x[0].bfloat16()], "mean", copy=True)
    assert isinstance(back, np.ndarray) and np.allclose(back, x[:2].mean(0), atol=0.02)
    with pytest.raises(TypeError, match="not a real number type"):
        reef.aggregate(torch.ones((2, 2), dtype=torch.complex64), "mean", copy=True)


def test_tensors_whose_memory_is_not_what_they_are(rng):
    """Negative views have the other sign in memory; tensors on meta have no memory at all."""
    torch = need("torch")
    rows = [torch.ones(3, dtype=torch.complex64).conj().imag - row for row in range(3)]
    views = [torch._neg_view(row) for row in rows]
    assert all(view.is_contiguous() for view in views)
    with pytest.raises(TypeError, match="row 0: the tensor is a negative view; pass copy=True"):
        reef.aggregate(views, "mean")
    assert torch.equal(reef.aggregate(views, "mean", copy=True), torch.ones(3))
    with pytest.raises(TypeError, match="rows is of type Tensor; pass an array"):
        reef.aggregate(torch.tensor(3.0), "mean")
    for copy in (False, True):
        with pytest.raises(TypeError, match="row 0, tensor 'w' is on the device meta and has no numbers"):
            reef.aggregate([{"w": torch.empty(3, device="meta")}] * 3, copy=copy)


def test_checkpoints_are_not_models():
    """What torch.load gives is often a dict around the model."""
    made = [{"model": {"w": np.ones(3)}, "epoch": 3}] * 3
    for copy in (False, True):
        with pytest.raises(TypeError, match=r"row 0, tensor 'model' is itself a dict.*such as checkpoint\['model'\]"):
            reef.aggregate(made, copy=copy)
        for value in (None, "Adam"):
            with pytest.raises(TypeError, match=f"tensor 'x' is of type {type(value).__name__}, not an array or tensor$"):
                reef.aggregate([{"w": np.ones(3), "x": value}] * 3, copy=copy)


def test_bfloat16_with_float32_norms(rng):
    torch = need("torch")
    rows = [{"w": torch.from_numpy(rng.normal(size=40)).bfloat16(), "norm": torch.from_numpy(rng.normal(size=4)).float(),
             "steps": torch.tensor(7 + (i > 2))} for i in range(7)]
    result = reef.aggregate(rows, "vref")
    wide = reef.aggregate([{name: value.float() for name, value in row.items() if name != "steps"} for row in rows], "vref")
    assert {name: value.dtype for name, value in result.items()} == {name: value.dtype for name, value in rows[0].items()}
    assert torch.equal(result["w"], wide["w"].bfloat16()) and torch.equal(result["norm"], wide["norm"])
    assert result["steps"] == 8 and result["steps"].shape == ()


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_short_tensors(rng, name):
    torch = need("torch")
    x = torch.from_numpy(rng.normal(size=(7, 9000)).astype(np.float32)).to(getattr(torch, name))
    wanted = reef.aggregate(x.float(), "vref").to(x.dtype)
    assert torch.equal(reef.aggregate(x, "vref"), wanted)


def test_state_dicts(rng):
    torch = need("torch")
    nets = []
    for seed in range(6):
        torch.manual_seed(seed)
        nets.append(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)))
    with torch.no_grad():
        nets[5][0].weight += 1e4
    result, report = reef.aggregate([net.state_dict() for net in nets], "vref", report=True)
    nets[0].load_state_dict(result)
    assert report.suspects()[0] == 5
    assert result["1.num_batches_tracked"].dtype == torch.int64
    with_gradients = [list(net.parameters()) for net in nets]
    without = [[tensor.detach().numpy() for tensor in row] for row in with_gradients]
    assert np.array_equal(reef.aggregate(with_gradients, "ref")[0].numpy(), reef.aggregate(without, "ref")[0])
