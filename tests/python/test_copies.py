"""Rules, states and reports in other hands: pickled, copied, sent to other processes; and texts that would end early in C."""
from __future__ import annotations

import concurrent.futures
import copy
import multiprocessing
import pickle

import numpy as np
import pytest
import reef


def both(value):
    return pickle.loads(pickle.dumps(value)), copy.deepcopy(value)


def test_rules(rng):
    x = rng.normal(size=(7, 20))
    rule = reef.Rule("nnm:f=2 | ref", efficiency=0.9, threads=1)
    for other in both(rule):
        assert other.spec == rule.spec and repr(other) == repr(rule)
        assert np.array_equal(other(x), rule(x))
    with pytest.raises(reef.ReefError):
        pickle.loads(pickle.dumps(rule).replace(b"nnm:f=2 |", b"nnm:f=2 !"))


def test_reports(rng):
    _, report = reef.aggregate(rng.normal(size=(7, 20)), "vref", shares=True)
    for other in both(report):
        assert np.array_equal(other.trust, report.trust) and np.array_equal(other.shares, report.shares)
        assert repr(other) == repr(report) and other.suspects() == report.suspects()


@pytest.mark.parametrize("rule", ["cclip:tau=0.5", "mref"])
def test_states_go_on_where_they_were(rng, rule):
    """A copy remembers what the original did, and from then on each goes its own way."""
    rows = [[rng.normal(size=(9, 6)), rng.normal(size=(9, 3)).astype(np.float32)] for _ in range(6)]
    models = [[{"a": a, "b": b} for a, b in zip(*step)] for step in rows]
    state = reef.State()
    for number in range(3):
        reef.aggregate(models[number], rule, state=state, round=number)
    copies = both(state)
    wanted = [reef.aggregate(models[number], rule, state=state, round=number) for number in (3, 4)]
    for other in copies:
        for number, result in zip((3, 4), wanted):
            found = reef.aggregate(models[number], rule, state=other, round=number)
            assert all(np.array_equal(found[key], result[key]) for key in result)
    afresh = reef.aggregate(models[3], rule, round=3)
    assert not np.array_equal(afresh["a"], wanted[0]["a"])


def test_states_that_have_seen_nothing(rng):
    x = rng.normal(size=(5, 4))
    for other in both(reef.State(centre=np.full(4, 100.0))):
        assert np.abs(reef.aggregate(x, "cclip:tau=1", state=other) - 100).max() <= 1
    for other in both(reef.State()):
        assert np.array_equal(reef.aggregate(x, "cclip", state=other), reef.aggregate(x, "cclip", state=reef.State()))


def apply(task):
    rule, rows, state = task
    result, report = rule(rows, report=True, state=state)
    return result, report, state


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_pools(rng, method):
    """Enough numbers for all threads: a child that was forked must not wait for threads that its parent has."""
    rows = [rng.normal(size=(9, 200_000)) for _ in range(2)]
    rule = reef.Rule("cclip:tau=1")
    wanted = [rule(x, state=reef.State()) for x in rows]
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map_async(apply, [(rule, x, reef.State()) for x in rows]).get(timeout=120)
    for (result, report, state), x, first in zip(found, rows, wanted):
        assert np.array_equal(result, first) and report.trust.shape == (9,)
        assert not np.array_equal(rule(x, state=state), first)  # it has come back with its memory


@pytest.mark.parametrize("ids", [list("abcdef"), None])
def test_threads_that_share_a_state(rng, ids):
    """The library is called without the GIL: no call may be lost, and none may see half of another."""
    rows = rng.normal(size=(6, 500)).astype(np.float32)
    first = 0 if ids is None else "a"
    state, rule = reef.State(), reef.Rule("mref:seed=1")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        copies = list(pool.map(lambda i: (rule(rows, state=state, ids=ids), copy.deepcopy(state))[1].age(first), range(200)))
    assert state.age(first) == 200 and state.senders == 6 and min(copies) >= 1


def test_mistakes_cross_processes():
    """An exception that cannot be unpickled would break the pool that it happened in."""
    with pytest.raises(reef.ReefError) as raised:
        reef.Rule("reff")
    for found in (pickle.loads(pickle.dumps(raised.value)), copy.deepcopy(raised.value)):
        assert type(found) is reef.ReefError and str(found) == str(raised.value)
        assert (found.status, found.kind) == (raised.value.status, raised.value.kind)


def test_texts_with_nul(tmp_path):
    with pytest.raises(ValueError, match="NUL"):
        reef.Rule("ref\0x")
    with pytest.raises(ValueError, match="NUL"):
        reef.aggregate(np.ones((3, 2)), "ref\0x")
    with pytest.raises(ValueError, match="NUL"):
        reef.run("a\0b.yaml")
    with pytest.raises(ValueError, match="NUL"):
        reef.simulate(lambda models, step: models, 3, 2, rounds=1, graph="ring\0x")


@pytest.mark.parametrize("out", [[0.0, 0.0], (1, 2), "ab", 3])
def test_out_must_be_an_array(out):
    with pytest.raises(TypeError, match="out is of type"):
        reef.aggregate(np.ones((3, 2)), "mean", out=out)


def test_out_of_short_numbers(rng):
    x = rng.normal(size=(5, 4)).astype(np.float16)
    out = np.empty(4, np.float16)
    assert reef.aggregate(x, "mean", out=out) is out and np.array_equal(out, reef.aggregate(x, "mean"))
    with pytest.raises(TypeError, match="float16"):
        reef.aggregate(x, "mean", out=np.empty(4, np.float32))
