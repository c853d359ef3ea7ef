"""reef.torch.Problem: its gradients are those of autograd, whichever way they are computed, and the example runs."""
from __future__ import annotations

import numpy as np
import pytest
from conftest import need

import reef
from reef._simulate import Step

torch = need("torch")
rt = pytest.importorskip("reef.torch")
F = torch.nn.functional


def plain():
    return torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3))


def normed():
    return torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 3))


def make(model=plain, **more):
    draw = np.random.default_rng(3)
    sets = [(draw.normal(size=(n, 5)).astype(np.float32), draw.integers(3, size=n)) for n in (6, 9, 7)]
    return rt.Problem(model, F.cross_entropy, sets, seed=4, **more)


def by_hand(problem, row, inputs, targets):
    model = problem.make_model().eval()
    torch.nn.utils.vector_to_parameters(torch.from_numpy(row), model.parameters())
    loss = F.cross_entropy(model(inputs), targets)
    return torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, list(model.parameters()))]).numpy()


@pytest.mark.parametrize("model", [plain, normed])
@pytest.mark.parametrize("size", [0, 1, 8])
def test_gradients_are_autograds(model, size, rng):
    problem = make(model)
    models = rng.normal(size=(2, problem.dimension)).astype(np.float32)
    agents = np.array([0, 2])
    step = Step(agents, 7, 1, size, np.array([False, True]), 2)
    found = problem.gradient(models, agents, step)
    for row, agent, lies, result in zip(models, agents, (False, True), found):
        inputs, targets = problem._batch(agent, step, lies)
        assert len(targets) == (size or problem.samples[agent])
        assert np.abs(by_hand(problem, row, inputs, targets) - result).max() < 1e-5
    inputs, targets = problem._batch(2, step, False)
    assert torch.equal(problem._batch(2, step, True)[1], 2 - targets)


class Tied(torch.nn.Module):
    """One matrix in two places, as in language models."""

    def __init__(self):
        super().__init__()
        self.read, self.write = torch.nn.Embedding(7, 4), torch.nn.Linear(4, 7, bias=False)
        self.write.weight = self.read.weight

    def forward(self, x):
        return self.write(self.read(x).mean(1))


@pytest.mark.parametrize("vectorize", [False, True])
def test_tied_weights(rng, vectorize):
    x, y = rng.integers(7, size=(6, 5)), rng.integers(7, size=6)
    problem = rt.Problem(Tied, F.cross_entropy, [(x, y)] * 2, vectorize=vectorize)
    models = rng.normal(size=(2, 28)).astype(np.float32)
    found = problem.gradient(models, np.arange(2), Step(np.arange(2), 0, 0, 0, None))
    model = Tied()
    for row, result in zip(models, found):
        torch.nn.utils.vector_to_parameters(torch.from_numpy(row), model.parameters())
        loss = F.cross_entropy(model(torch.from_numpy(x)), torch.from_numpy(y))
        assert np.abs(torch.autograd.grad(loss, model.read.weight)[0].numpy().ravel() - result).max() < 1e-5
        assert problem.evaluate(row[np.newaxis])["loss"][0] == pytest.approx(float(loss), abs=1e-5)


def test_targets_of_other_kinds(rng):
    """A class per token, classes to be ignored, truth values."""
    def problem_of(x, y, loss=F.cross_entropy, inputs=7):
        made = rt.Problem(lambda: torch.nn.Sequential(torch.nn.Embedding(inputs, 4), torch.nn.Linear(4, 3)), loss, [(x, y)] * 2)
        flipped = made._batch(0, Step(np.arange(2), 0, 0, 0, None), True)[1]
        gradients = made.gradient(np.stack([made.start()] * 2), np.arange(2), Step(np.arange(2), 0, 0, 0, np.array([True, False])))
        assert np.isfinite(gradients).all() and not np.array_equal(*gradients)
        return made, made.evaluate(made.start()[np.newaxis]), flipped

    x = rng.integers(7, size=(6, 5))
    made, scores, _ = problem_of(x, rng.integers(3, size=(6, 5)), lambda outputs, y: F.cross_entropy(outputs.transpose(1, 2), y))
    with torch.no_grad():
        right = made.model(torch.from_numpy(x)).argmax(2) == made.data[0][1]
    assert scores["accuracy"][0] == pytest.approx(float(right.float().mean()))
    some = np.array([-100, 0, 1, 2, 1, -100])
    made, scores, flipped = problem_of(x[:, 0], some)
    assert flipped.tolist() == [-100, 2, 1, 0, 1, -100]
    with torch.no_grad():
        right = (made.model(torch.from_numpy(x[:, 0])).argmax(1) == torch.from_numpy(some))[1:5]
    assert scores["accuracy"][0] == pytest.approx(float(right.float().mean()))
    assert problem_of(x[:, 0], some > 0)[2].tolist() == [1, 1, 0, 0, 0, 1]
    with pytest.raises(ValueError, match="do not fit targets"):
        rt.Problem(lambda: torch.nn.Linear(2, 1), F.mse_loss, [(np.ones((4, 2)), np.ones((4, 1), int))]).evaluate(np.zeros((1, 3), np.float32))
    with pytest.raises(ValueError, match="no parameters"):
        rt.Problem(torch.nn.Flatten, F.cross_entropy, [(x, some)])


def test_double_precision_is_converted(rng):
    """Arrays of numpy are float64 more often than not, and models may be; buffers too."""
    x, y = rng.normal(size=(9, 5)), rng.integers(3, size=9)
    for model in (plain, lambda: plain().double(), lambda: normed().double()):
        for data in ((x, y), (torch.from_numpy(x), torch.from_numpy(y))):
            problem = rt.Problem(model, F.cross_entropy, [data, data], seed=1)
            found = problem.gradient(np.stack([problem.start()] * 2), np.arange(2), Step(np.arange(2), 0, 0, 4, None))
            assert found.dtype == np.float32 and np.isfinite(found).all()
            assert 0 < problem.evaluate(problem.start()[np.newaxis])["loss"][0] < 3
    line = rt.Problem(lambda: torch.nn.Linear(5, 1), lambda out, wanted: ((out[:, 0] - wanted) ** 2).mean(), [(x, x.sum(1))] * 2)
    assert line.classes == 0 and line.evaluate(line.start()[np.newaxis])["loss"][0] > 0


def test_both_ways_agree(rng):
    fast, slow = make(), make(vectorize=False)
    assert fast.vectorized and not slow.vectorized
    models, agents = rng.normal(size=(3, fast.dimension)).astype(np.float32), np.arange(3)
    step = Step(agents, 0, 0, 8, None)
    assert np.abs(fast.gradient(models, agents, step) - slow.gradient(models, agents, step)).max() < 1e-6


def test_starts_do_not_depend_on_threads():
    """Two problems that draw their parameters at the same time, from the one generator that torch has."""
    import threading

    problem, wanted, wrong = make(), make().start(1), []

    def disturb(other):
        for repetition in range(100):
            if repetition % 2 and not np.array_equal(other.start(1), wanted):
                wrong.append(repetition)
            other.start(repetition)

    threads = [threading.Thread(target=disturb, args=(other,)) for other in (problem, make(), make())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_batches_and_starts_depend_on_what_they_should():
    problem, again = make(), make()
    assert np.array_equal(problem.start(1), again.start(1)) and not np.array_equal(problem.start(0), problem.start(1))
    before = torch.get_rng_state()
    problem.start(5)
    assert torch.equal(torch.get_rng_state(), before)
    def drawn(agent, *place):
        return problem._batch(agent, Step(np.arange(3), *place), False)[0]
    base = drawn(1, 3, 1, 8, None, 2)
    assert torch.equal(base, again._batch(1, Step(np.array([1]), 3, 1, 8, None, 2), False)[0])
    for other in (drawn(1, 4, 1, 8, None, 2), drawn(1, 3, 0, 8, None, 2), drawn(1, 3, 1, 8, None, 3)):
        assert not torch.equal(base, other)


def test_evaluation():
    problem = make()
    outputs = torch.tensor([[9.0, 0, 0]] * 22)
    targets = problem.test[1]
    zeros = np.zeros((1, problem.dimension), np.float32)
    zeros[0, -3] = 9  # the last bias of class 0: it is always chosen
    found = problem.evaluate(zeros)
    assert found["accuracy"][0] == pytest.approx(float((targets == 0).float().mean()))
    assert found["worst_accuracy"] == [0] and found["loss"][0] == pytest.approx(float(F.cross_entropy(outputs, targets)))
    regression = rt.Problem(lambda: torch.nn.Linear(2, 1), F.mse_loss, [(np.ones((4, 2), np.float32), np.ones((4, 1), np.float32))])
    assert set(regression.evaluate(np.zeros((2, 3), np.float32))) == {"loss"}
    with pytest.raises(ValueError, match="0 inputs and 0 targets"):
        rt.Problem(plain, F.cross_entropy, [(np.zeros((0, 5)), np.zeros(0))])


def test_data_sets_of_torch():
    pairs = torch.utils.data.TensorDataset(torch.ones(3, 5), torch.zeros(3, dtype=torch.long))
    for dataset in (pairs, torch.utils.data.Subset(pairs, [0, 1]), [torch.ones(3, 5), torch.zeros(3, dtype=torch.long)]):
        assert rt.Problem(plain, F.cross_entropy, [dataset]).samples[0] in (2, 3)


def test_the_example(root, tmp_path, monkeypatch):
    """Under 60 lines; the same bits with one thread of torch whatever Reef's threads; it learns, and mref withstands the attack."""
    assert len((root / "examples" / "torch" / "digits_cnn.py").read_text().splitlines()) < 60
    monkeypatch.chdir(root)
    before = torch.get_num_threads()
    try:
        runs = [reef.run("examples/torch/digits_cnn.yaml", allow_code=True, folder=tmp_path / str(threads), threads=threads,
                         progress=False, rule=["mean", "mref"], attack="additive:delta=1", rounds=15, every=15, steady=1)
                for threads in (1, 2)]
    finally:
        torch.set_num_threads(before)
    assert (tmp_path / "1" / "curves.csv").read_bytes() == (tmp_path / "2" / "curves.csv").read_bytes()
    accuracy = {row["rule"]: row["accuracy"] for row in runs[0].rows}
    assert accuracy["mref"] > 0.5 > 0.2 > accuracy["mean"]
