"""reef.aggregate on arrays and lists of arrays: results, what is refused, what is reported."""
from __future__ import annotations

import re
import threading
import time

import numpy as np
import pytest
import reef


def rows_with_a_liar(rng, dtype=np.float32, shape=(5, 4)):
    rows = [rng.normal(size=shape).astype(dtype) for _ in range(9)]
    rows[3] += 1000
    return rows


def test_list_and_array_give_the_same(rng):
    rows = rows_with_a_liar(rng)
    one, other = reef.aggregate(rows), reef.aggregate(np.stack(rows))
    assert one.shape == (5, 4) and one.dtype == np.float32
    assert np.array_equal(one, other)
    assert np.abs(one).max() < 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mean_and_median_are_numpys(rng, dtype):
    x = rng.normal(size=(8, 3, 100)).astype(dtype)
    weights = rng.uniform(1, 2, size=8)
    tolerance = 1e-6 if dtype == np.float32 else 1e-14
    assert np.allclose(reef.aggregate(x, "median"), np.median(x, axis=0), atol=tolerance)
    assert np.allclose(reef.aggregate(x, "mean", weights), np.average(x, axis=0, weights=weights), atol=tolerance)


def test_rows_are_not_copied(rng, monkeypatch):
    """The pointers handed to the library are those of the rows."""
    rows = rows_with_a_liar(rng)
    seen = []
    from reef import _rows

    monkeypatch.setattr(_rows, "pointer", lambda a, real=_rows.pointer: seen.append(real(a)) or real(a))
    reef.aggregate(rows, "mean")
    assert seen[:9] == [row.ctypes.data for row in rows]


def test_rows_of_a_slice_need_no_copy(rng):
    x = rng.normal(size=(12, 50))
    assert np.array_equal(reef.aggregate(x[::2], "median"), np.median(x[::2], axis=0))
    assert np.allclose(reef.aggregate(x[::-1], "mean"), x.mean(axis=0))


def test_float16_is_the_float32_result_rounded(rng):
    x = rng.normal(size=(9, 10000)).astype(np.float16)
    wide = reef.aggregate(x.astype(np.float32), "ref")
    result = reef.aggregate(x, "ref")
    assert result.dtype == np.float16 and np.array_equal(result, wide.astype(np.float16))


def test_out_is_written_and_returned(rng):
    x = rng.normal(size=(5, 7))
    out = np.empty(7)
    assert reef.aggregate(x, "median", out=out) is out
    assert np.array_equal(out, np.median(x, axis=0))
    for wrong in (np.empty(6), np.empty(7, np.float32), np.empty((7, 2))[:, 0]):
        with pytest.raises(TypeError, match="out must be"):
            reef.aggregate(x, "median", out=wrong)
    with pytest.raises(ValueError, match="shares memory"):
        reef.aggregate(x, "median", out=x[2])
    out.flags.writeable = False
    with pytest.raises(TypeError, match="read-only"):
        reef.aggregate(x, "median", out=out)


@pytest.mark.parametrize("rows, says", [
    (np.ones((4, 3), np.int32), "int32"),
    (np.ones((4, 3), np.complex64), "complex64"),
    (np.ones((4, 3)).astype(">f8"), "type"),
    (np.ones((4, 3, 2)).transpose(0, 2, 1), "not contiguous"),
    (np.ma.masked_array(np.ones((4, 3)), mask=np.eye(4, 3)), "mask"),
    ([[1.0, 2.0], [3.0, 4.0]], "list"),
    ([1.0, 2.0], "float"),
    (["a", "b"], "str"),
])
def test_what_cannot_be_read_as_it_is(rows, says):
    with pytest.raises(TypeError, match=says):
        reef.aggregate(rows, "mean")


def test_copy_converts(rng):
    x = rng.normal(size=(4, 3, 2))
    assert np.allclose(reef.aggregate(x.transpose(0, 2, 1), "mean", copy=True), x.transpose(0, 2, 1).mean(axis=0))
    assert np.allclose(reef.aggregate(x.astype(">f8"), "mean", copy=True), x.mean(axis=0))
    assert reef.aggregate(np.array([[1, 2], [3, 4]]), "mean", copy=True).tolist() == [2, 3]
    assert reef.aggregate([[1.0, 2.0], [3.0, 4.0]], "mean", copy=True).tolist() == [2, 3]
    assert reef.aggregate([1.0, 2.0, 30.0], "median", copy=True) == 2
    for hopeless in (["a", "b"], np.ones((4, 3), np.complex64), [None, None], np.ma.ones((4, 3))):
        with pytest.raises(TypeError):
            reef.aggregate(hopeless, "mean", copy=True)


def test_numbers_as_rows():
    assert reef.aggregate(np.array([1.0, 2.0, 30.0]), "median") == 2
    assert reef.aggregate(np.array([1.0, 2.0, 30.0])[::2], "mean") == 15.5


@pytest.mark.parametrize("rows, says", [
    ([], "nothing to aggregate"),
    (np.empty((0, 3)), "nothing to aggregate"),
    (np.float64(3), "rows is of type float64"),
    (np.empty((3, 0)), "no floating-point numbers"),
    ([np.ones(3), np.ones(4)], "row 1 has the shape"),
    ([{"a": np.ones(3)}, {"b": np.ones(3)}], "row 1 does not have the same tensors as row 0: it lacks 'a', and it also has 'b'"),
    ([{"a": np.ones(3)}, None], "row 1 is of type NoneType"),
    ([[np.ones(3)], None], "row 1 is of type NoneType"),
    ({"ann": np.ones(3), "bob": np.ones(3)}, "rows is one dict"),
    (None, "rows is of type NoneType"), (3, "rows is of type int"),
    ([{}, {}], "no tensors"),
    ([[np.ones(3)], [np.ones(3), np.ones(2)]], "row 1 has 2 tensors"),
    ([(np.ones(3) for _ in range(2)), (np.ones(3) for _ in range(2))], r"row 0 is a generator; pass a list of its arrays"),
])
def test_rows_that_do_not_fit(rows, says):
    with pytest.raises((ValueError, TypeError), match=says):
        reef.aggregate(rows, "mean")


def test_rows_of_different_types():
    with pytest.raises(TypeError, match="row 1 is of type float32"):
        reef.aggregate([np.ones(3), np.ones(3, np.float32)], "mean")


def test_report_names_the_liar(rng):
    rows = rows_with_a_liar(rng)
    rows[5][0, 0] = np.nan
    result, report = reef.aggregate(rows, "ref", report=True)
    assert np.isfinite(result).all()
    assert report.trust.shape == (9,) and report.trust[3] == 0 and report.rejected[3] == 1
    assert report.dropped == {5: "non-finite"}
    assert set(report.suspects()) == {3, 5}
    assert report.iterations >= 1 and report.max_iterations >= report.iterations
    assert "dropped={5: 'non-finite'}" in repr(report)


def test_zero_weights_are_reported(rng):
    _, report = reef.aggregate(rng.normal(size=(4, 10)), "mean", [1, 0, 1, 1], report=True)
    assert report.dropped == {1: "zero weight"}


def test_shares_give_the_result(rng):
    x = rng.normal(size=(6, 3, 5))
    result, report = reef.aggregate(x, "ref", shares=True)
    assert report.shares.shape == x.shape
    assert np.allclose((report.shares * x).sum(axis=0), result)


@pytest.mark.parametrize("weights, error", [([1, 2], ValueError), ([-1, 1, 1, 1], reef.ReefError),
                                            ([np.nan, 1, 1, 1], reef.ReefError), ([0, 0, 0, 0], reef.ReefError)])
def test_bad_weights(rng, weights, error):
    with pytest.raises(error):
        reef.aggregate(rng.normal(size=(4, 3)), "mean", weights)


@pytest.mark.parametrize("weights", ["abc", {0: 1}, ["1"] * 4, [None] * 4, [[1], [2, 3], 4, 5]])
def test_what_are_no_weights(rng, weights):
    with pytest.raises(TypeError, match="pass one number per row"):
        reef.aggregate(rng.normal(size=(4, 3)), "mean", weights)


@pytest.mark.parametrize("arguments, says", [
    ({"efficiency": None}, "efficiency is None; parameters are numbers"), ({"wieghts": [1] * 4}, "wieghts is .1, 1"),
    ({"state": {}}, "pass a reef.State"), ({"state": reef.State}, "pass a reef.State"), ({"state": "memory.reef"}, "pass a reef.State"),
    ({"ids": "abcd"}, "one integer or string per row"), ({"ids": 4}, "one integer or string per row"), ({"ids": [[1]] * 4}, "is .1."),
    ({"round": 1.5}, "round is 1.5"), ({"self_row": None}, "self_row is None"), ({"step": "a"}, "step is 'a'")])
def test_arguments_of_wrong_types(rng, arguments, says):
    with pytest.raises(TypeError, match=says):
        reef.aggregate(rng.normal(size=(4, 3)), "ref", **arguments)


@pytest.mark.parametrize("arguments", [{"round": -1}, {"round": 2**63}, {"round": -2**64}, {"self_row": -2}, {"self_row": 2**64}])
def test_whole_numbers_do_not_wrap(rng, arguments):
    with pytest.raises(ValueError, match="it must be"):
        reef.aggregate(rng.normal(size=(4, 3)), "ref", **arguments)


def test_numbers_of_numpy_are_parameters(rng):
    x = rng.normal(size=(7, 3))
    assert np.array_equal(reef.aggregate(x, "trimmed", f=np.int64(2)), reef.aggregate(x, "trimmed:f=2"))
    assert np.array_equal(reef.aggregate(x, "ref", efficiency=np.float32(0.5)), reef.aggregate(x, "ref:efficiency=0.5"))
    assert np.array_equal(reef.aggregate(x, "trimmed:f=2", keep_self=np.bool_(False)), reef.aggregate(x, "trimmed:f=2,keep_self=false"))


def test_names_are_suggested_whatever_their_case(rng):
    with pytest.raises(reef.ReefError, match="did you mean 'ref'"):
        reef.aggregate(rng.normal(size=(4, 3)), "REF")


@pytest.mark.parametrize("threads", ["two", 1.5, None])
def test_what_is_no_number_of_threads(threads):
    with pytest.raises(TypeError, match="not a whole number"):
        reef.set_threads(threads)


def test_errors_say_what_is_wrong(rng):
    with pytest.raises(reef.ReefError, match="did you mean 'ref'") as caught:
        reef.aggregate(rng.normal(size=(4, 3)), "reff")
    assert caught.value.kind == "unknown name"
    with pytest.raises(reef.ReefError, match="n >= 2 f"):
        reef.aggregate(rng.normal(size=(4, 3)), "krum", f=3)


@pytest.mark.parametrize("rule", [None, 3, b"ref", ["ref"]])
def test_what_is_no_rule(rng, rule):
    with pytest.raises(TypeError, match=re.escape(f"the rule is {rule!r}; pass a rule string")):
        reef.aggregate(rng.normal(size=(4, 3)), rule)


def test_state_remembers(rng):
    x = rng.normal(size=(5, 20)).astype(np.float32)
    state, rule = reef.State(), reef.Rule("cclip:tau=0.1")
    first = rule(x, state=state)
    second = rule(x, state=state)
    assert not np.array_equal(first, second)
    assert np.array_equal(rule(x, state=reef.State(centre=first)), second)
    state.reset()
    assert np.array_equal(rule(x, state=state), first)
    with pytest.raises(ValueError, match="another shape"):
        rule(x[:, :3], state=state)
    with pytest.raises(ValueError, match="3 numbers"):
        rule(x, state=reef.State(centre=np.ones(3)))


def test_threads_change_no_bit(rng):
    x = rng.normal(size=(16, 200000)).astype(np.float32)
    assert np.array_equal(reef.Rule("vref", threads=1)(x), reef.Rule("vref", threads=3)(x))
    reef.set_threads(1)
    try:
        assert reef.get_threads() == 1
        reef.aggregate(x[:, :10], "mean")
    finally:
        reef.set_threads(0)


def test_interpreter_runs_meanwhile(rng):
    """The lock of the interpreter is not held: a thread counts on while a long aggregation is under way."""
    x = rng.normal(size=(64, 8000))
    rule = reef.Rule("ref:scale=qn", threads=1)  # a slow one
    rule(x[:, :100].copy())
    ticks, done = [], threading.Event()

    def tick():
        while not done.wait(0.002):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    rule(x)
    end = time.perf_counter()
    done.set()
    thread.join()
    inside = [t for t in ticks if start < t < end]
    assert end - start < 0.05 or len(inside) >= 3


def test_many_threads_at_once(rng):
    x = rng.normal(size=(9, 100000)).astype(np.float32)
    wanted = reef.aggregate(x, "ref")
    results = [None] * 8

    def work(i):
        results[i] = reef.aggregate(x, "ref")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(result, wanted) for result in results)


def test_little_is_added_to_the_call_of_the_library(rng):
    """Short rows: nearly all of the time is Python's. At most a millisecond of the processor's for 32 rows, as promised."""
    rows = list(rng.normal(size=(32, 8)).astype(np.float32))
    least = 1.0
    for _ in range(20):
        start = time.process_time()
        reef.aggregate(rows, "mean")
        least = min(least, time.process_time() - start)
    assert least < 1e-3
