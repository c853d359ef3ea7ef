"""reef.simulate: learning with gradients written in Python."""
from __future__ import annotations

import time

import numpy as np
import pytest
import reef
from conftest import need

TARGET = np.array([1.0, 2.0, 3.0])


def pull(models, step):
    return models - TARGET


def test_diffusion_with_liars():
    robust = reef.simulate(pull, 10, 3, attack="additive:delta=100", malicious=2, trust=True)
    mean = reef.simulate(pull, 10, 3, attack="additive:delta=100", malicious=2, rule="mean")
    assert robust.models.shape == (10, 3) and robust.models.dtype == np.float32
    assert robust.malicious.tolist() == [False] * 8 + [True] * 2
    assert np.abs(robust.honest - TARGET).max() < 1e-3 < 10 < np.abs(mean.honest - TARGET).max()
    assert robust.trust.shape == (10, 10) and (robust.trust[:8, 8:] == 0).all()
    assert robust.counts["rounds"] == 100 and robust.counts["gradients"] == 1000


def test_one_call_per_step():
    calls = []

    def grad(models, step):
        calls.append((len(models), step.round, step.step, step.agents.tolist()))
        return models - TARGET

    reef.simulate(grad, 100, 3, rounds=5)
    assert calls == [(100, i, 0, list(range(100))) for i in range(5)]
    calls.clear()
    reef.simulate(grad, 100, 3, rounds=3, strategy="federated:mu=0.1,steps=4,fraction=0.25")
    assert [call[:3] for call in calls] == [(25, i, j) for i in range(3) for j in range(4)]


def test_federated_learns():
    result = reef.simulate(pull, 20, [5.0, 5.0, 5.0], rounds=40, strategy="federated:mu=0.1,steps=3", rule="vref",
                           attack="sign_flip", malicious=[0, 3, 7], trust=True)
    assert np.abs(result.models[0] - TARGET).max() < 0.05
    assert result.trust.shape == (1, 20) and result.trust[0, [0, 3, 7]].max() < result.trust[0, 1]


def test_history():
    result = reef.simulate(pull, 5, 3, rounds=10, every=4, metric=lambda models: float(np.abs(models - TARGET).max()))
    assert result.history["round"] == [0, 4, 8, 10]
    assert result.history["metric"] == sorted(result.history["metric"], reverse=True)


def test_flipped_labels():
    seen = []

    def grad(models, step):
        seen.append(None if step.flipped is None else step.flipped.tolist())
        return models - TARGET

    reef.simulate(grad, 4, 3, rounds=1, attack="label_flip", malicious=[1])
    assert seen == [[False, True, False, False]]


def test_errors_come_out():
    def broken(models, step):
        raise RuntimeError("no data")

    with pytest.raises(RuntimeError, match="no data"):
        reef.simulate(broken, 4, 3)
    with pytest.raises(ValueError, match="one row per agent"):
        reef.simulate(lambda models, step: np.zeros(3), 4, 3)
    with pytest.raises(ReferenceError):
        reef.simulate(pull, 4, 3, metric=lambda models: (_ for _ in ()).throw(ReferenceError()))


@pytest.mark.parametrize("arguments, error", [
    ({"agents": 0}, "at least 1"), ({"rounds": -1}, "at least 0"), ({"start": 0}, "at least one number"),
    ({"strategy": "difusion"}, "did you mean 'diffusion'"), ({"graph": "rin"}, "did you mean 'ring'"),
    ({"attack": "additve"}, "did you mean 'additive'"), ({"malicious": 4}, "all 4 agents are malicious"), ({"samples": [1, 2]}, "samples"),
    ({"rule": None}, "needs a rule"), ({"weights": "none"}, "none")])
def test_wrong_setups(arguments, error):
    with pytest.raises((ValueError, reef.ReefError), match=error):
        reef.simulate(pull, **{"agents": 4, "start": 3, **arguments})


@pytest.mark.parametrize("arguments, error", [
    ({"agents": 2.5}, "agents is 2.5"), ({"agents": "six"}, "agents is 'six'"), ({"rounds": 1.5}, "rounds is 1.5"),
    ({"malicious": 0.3}, "malicious is 0.3"), ({"malicious": "30%"}, "malicious is '30%'"), ({"malicious": 5}, "from 0 to 4"),
    ({"malicious": -1}, "from 0 to 4"), ({"malicious": [4]}, "from 0 to 3"), ({"malicious": [-1]}, "from 0 to 3"),
    ({"seed": -1}, "seed is -1"), ({"seed": "a"}, "seed is 'a'"), ({"start": [1, np.nan]}, "NaN"), ({"start": [1e300]}, "float32"),
    ({"metric": "msd"}, "metric is 'msd', not a function")])
def test_arguments_that_are_none(arguments, error):
    with pytest.raises((ValueError, TypeError), match=error):
        reef.simulate(pull, **{"agents": 4, "start": 3, **arguments})


def test_malicious_agents_in_every_form():
    for malicious in (2, np.int64(2), [2, 3], np.array([2, 3]), [False, False, True, True], np.array([0, 0, 1, 1], bool)):
        assert reef.simulate(pull, 4, 3, rounds=1, malicious=malicious, attack="zero").malicious.tolist() == [False, False, True, True]


def test_graph_and_links():
    result = reef.simulate(pull, 12, 3, rounds=150, graph="ring:k=2", weights="metropolis", links="failing:p=0.2", rule="mean")
    assert np.abs(result.models - TARGET).max() < 0.01


def test_torch_gradients():
    torch = need("torch")
    target = torch.tensor([1.0, 2.0, 3.0])

    def grad(models, step):
        w = torch.from_numpy(models).requires_grad_()
        loss = ((w - target) ** 2).sum() / 2
        return torch.autograd.grad(loss, w)[0]

    result = reef.simulate(grad, 8, torch.zeros(3), rounds=100)
    assert np.abs(result.models - TARGET).max() < 1e-3


def test_python_is_not_the_bottleneck():
    """A round of 1000 agents with a trivial gradient takes far less than a thousand calls of Python would."""
    start = time.process_time()
    reef.simulate(pull, 1000, 3, rounds=20, rule="mean", graph="ring")
    assert (time.process_time() - start) / 20 < 0.05
