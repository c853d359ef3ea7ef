"""Small arrays go a shorter way through the package: same results, same refusals, whoever calls at the same time."""
from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest
import reef
from reef._rule import Ready

RULES = ["mean", "median", "trimmed:f=2", "ref", "krum:f=2", "vref", "mref", "cclip", "bucketing:s=2 | median", "nnm:f=2 | ref"]


def taken(rule):
    """How often the short way was gone to its end."""
    return sum(len(kept) for kept in rule._ready._kept.values())


@pytest.mark.parametrize("spec", RULES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(9, 1), (9, 4), (9, 16), (9, 5, 13), (9,)])
def test_the_short_way_gives_the_same_bits(rng, spec, dtype, shape):
    rule, usual = reef.Rule(spec), reef.Rule(spec)
    for round in range(3):
        x = rng.normal(size=shape).astype(dtype)
        rows = [np.array(row) for row in x]
        quick, wanted = rule(x, round=round), usual(rows, round=round)
        assert quick.shape == wanted.shape and quick.dtype == wanted.dtype and quick.tobytes() == wanted.tobytes()
    assert taken(rule) == 1 and taken(usual) == 0


@pytest.mark.parametrize("spec", ["mref", "cclip:tau=1"])
def test_memory_is_the_same(rng, spec):
    rule, usual = reef.Rule(spec), reef.Rule(spec)
    state, other = reef.State(), reef.State()
    for round in range(12):
        x = rng.normal(size=(9, 6)).astype(np.float32)
        x[:2] += 0.8
        if round == 6:
            state = pickle.loads(pickle.dumps(state))
        assert np.array_equal(rule(x, state=state), usual(list(x), state=other))
    assert taken(rule) == 1
    with pytest.raises(ValueError, match="belongs to"):
        rule(rng.normal(size=(9, 7)).astype(np.float32), state=state)
    with pytest.raises(ValueError, match="belongs to"):
        rule(rng.normal(size=(9, 6)), state=state)
    if spec == "mref":
        with pytest.raises(ValueError, match="position"):
            rule(x[:8], state=state)
        named = reef.State()
        rule(x, ids=list(range(9)), state=named)
        with pytest.raises(TypeError, match="positions"):
            rule(x, state=named)


def test_other_memory_is_refused(rng):
    x = rng.normal(size=(9, 6))
    state = reef.State()
    for _ in range(2):
        reef.aggregate(x, "mref", state=state)
    with pytest.raises(ValueError, match="not to cclip"):
        reef.aggregate(x, "cclip", state=state)


def test_what_is_wrong_is_told(rng):
    x = rng.normal(size=(5, 4))
    strict = reef.Rule("median", nan="error")
    strict(x)
    bad = x.copy()
    bad[2, 1] = np.nan
    with pytest.raises(reef.ReefError, match="nan=error"):
        strict(bad)
    assert np.array_equal(strict(x), np.median(x, axis=0))
    rule = reef.Rule("median")
    assert np.array_equal(rule(bad), np.median(bad[[0, 1, 3, 4]], axis=0))
    bad[:] = np.inf
    with pytest.raises(reef.ReefError, match="NaN or Inf"):
        rule(bad)
    with pytest.raises(reef.ReefError, match="too many"):
        reef.Rule("krum:f=2")(x)
    with pytest.raises(ValueError, match="nothing to aggregate|empty"):
        rule(np.empty((0, 3)))
    with pytest.raises(ValueError, match="no floating-point numbers"):
        rule(np.empty((3, 0)))
    with pytest.raises(ValueError, match="shares memory"):
        rule(x, out=x[1])


def test_many_shapes_keep_little():
    rule = reef.Rule("mean")
    for length in range(1, 5 * Ready.SHAPES):
        x = np.full((3, length), 0.5)
        assert np.array_equal(rule(x), x[0])
    assert len(rule._ready._kept) <= Ready.SHAPES
    rule(np.zeros((2, Ready.NUMBERS)))
    assert (2, Ready.NUMBERS) not in [shape for shape, _ in rule._ready._kept]


def test_threads_do_not_meet(rng):
    rule = reef.Rule("ref")
    inputs = [rng.normal(size=(9, 64)) for _ in range(4)]
    wanted = [rule(list(x)) for x in inputs]
    wrong = []

    def work(i):
        for _ in range(400):
            if not np.array_equal(rule(inputs[i]), wanted[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and 1 <= taken(rule) <= 4
