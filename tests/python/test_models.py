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


def test_mixed_types_need_copy(rng):
    rows = [{"a": rng.normal(size=4), "b": rng.normal(size=2).astype(np.float32)} for _ in range(4)]
    with pytest.raises(TypeError, match="different types"):
        reef.aggregate(rows, "mean")
    assert reef.aggregate(rows, "mean", copy=True)["b"].dtype == np.float64


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
    with pytest.raises(TypeError, match="row 1"):
        reef.aggregate([x[0], x[1].numpy()], "mean")


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
