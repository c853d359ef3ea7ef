"""Rounds of a server among liars, without Flower: reading, checking, weighing, combining, remembering."""
from __future__ import annotations

import io

import numpy as np
import pytest
from reef._federation import (Reply, Standing, check_layouts, combine, layout_of, middle_metrics, npy_array, weigh,
                              write_csv)


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


@pytest.mark.parametrize("array", [np.arange(6.0).reshape(2, 3), np.ones((3, 2), np.float32, order="F"), np.array(3),
                                   np.empty((0, 4)), np.arange(3, dtype=">i2")])
def test_arrays_are_read(array):
    found = npy_array(npy(array))
    assert np.array_equal(found, array) and found.dtype == array.dtype and found.shape == array.shape


def test_arrays_are_not_copied():
    data = npy(np.arange(6.0))
    assert not npy_array(data).flags.owndata and not npy_array(data).flags.writeable


@pytest.mark.parametrize("data", [
    b"", b"\x93NUMPY", b"nonsense" * 10, npy(np.arange(6.0))[:-1], npy(np.arange(6.0)) + b"x", npy(np.array([{}, 3], object)),
    npy(np.arange(6.0)).replace(b"(6,)", b"(9,)"), npy(np.arange(6.0)).replace(b"(6,)", b"-6  "),
    npy(np.arange(6.0)).replace(b"<f8", b"|O8"), npy(np.arange(6.0)).replace(b"\x01\x00", b"\x07\x00", 1)])
def test_what_is_no_array_is_refused(data):
    with pytest.raises(ValueError):
        npy_array(data)


def test_any_broken_byte_is_refused_or_read(rng):
    """Whatever the bytes, an array or a ValueError; never a crash or something else."""
    good = npy(np.arange(64.0).astype(np.float32))
    for _ in range(500):
        data = bytearray(good)
        for place in rng.integers(0, 140, size=3):
            data[place] = rng.integers(0, 256)
        try:
            npy_array(bytes(data))
        except ValueError:
            pass


def replies(rng, count=9, **changes):
    made = [Reply(100 + i, {"w": rng.normal(size=(3, 2)).astype(np.float32), "b": rng.normal(size=2).astype(np.float32)}, 10)
            for i in range(count)]
    for place, change in changes.items():
        change(made[int(place[1:])])
    return made


def run(made, rule="ref", sent=None, per_array=False, weighted=True, cap=2.0):
    check_layouts(made, sent)
    weigh(made, weighted, cap)
    return combine(made, rule, per_array, 1)


def set_array(name, value):
    return lambda reply: reply.arrays.update({name: value})


@pytest.mark.parametrize("change, says", [
    (lambda r: r.arrays.pop("b"), "'b'"),
    (set_array("extra", np.ones(2, np.float32)), "'extra'"),
    (set_array("w", np.ones((2, 3), np.float32)), "shape"),
    (set_array("w", np.ones((3, 2))), "type"),
    (set_array("w", np.full((3, 2), np.nan, np.float32)), "NaN"),
    (set_array("b", np.array([np.inf, 1], np.float32)), "NaN or Inf"),
    (lambda r: setattr(r, "count", None), "how many samples"),
    (lambda r: setattr(r, "count", "many"), "how many samples"),
    (lambda r: setattr(r, "count", [10]), "how many samples"),
    (lambda r: setattr(r, "count", True), "how many samples"),
    (lambda r: setattr(r, "count", -5), "claims -5"),
    (lambda r: setattr(r, "count", float("nan")), "claims nan"),
    (lambda r: setattr(r, "count", 10**30), "claims 1000"),
    (lambda r: setattr(r, "count", 10**400), "claims 1000"),
    (lambda r: setattr(r, "count", 0), "no samples"),
    (lambda r: r.leave_out("error 7"), "error 7")])
@pytest.mark.parametrize("place", ["_0", "_5"])
def test_one_bad_reply_is_left_out_and_named(rng, change, says, place):
    made = replies(rng, **{place: change})
    result = run(made)
    bad = made[int(place[1:])]
    assert says in bad.reason and bad.trust == 0 and not bad.used
    assert sum(reply.used for reply in made) == 8
    assert np.isfinite(result["w"]).all() and result["w"].dtype == np.float32 and set(result) == {"w", "b"}


def test_all_bad_is_nothing(rng):
    made = replies(rng, 3)
    for reply in made:
        reply.leave_out("error")
    assert run(made) is None
    assert run([]) is None


def test_the_layout_that_was_sent_counts(rng):
    """A majority of strange replies does not win over the one model that fits what was sent."""
    made = replies(rng, 3)
    sent = layout_of(made[0].arrays)
    for reply in made[1:]:
        reply.arrays["w"] = np.ones(1, np.float32)
    assert run(made, "mean", sent) is not None
    assert [reply.used for reply in made] == [True, False, False]


def test_weights_are_capped(rng):
    made = replies(rng, _3=lambda r: setattr(r, "count", 10**9))
    weigh(made, True, 2.0)
    assert [reply.weight for reply in made] == [10, 10, 10, 20, 10, 10, 10, 10, 10]
    weigh(made, False, 2.0)
    assert {reply.weight for reply in made} == {1.0}


def test_rules_without_weights_get_equal_ones(rng):
    made = replies(rng, _3=lambda r: setattr(r, "count", 15))
    assert run(made, "krum:f=1") is not None


def test_liars_lose_trust(rng):
    made = replies(rng, _2=set_array("w", np.full((3, 2), 1e4, np.float32)))
    result = run(made, "vref")
    assert np.abs(result["w"]).max() < 5 and made[2].trust < 0.3 < made[0].trust


def test_per_array(rng):
    made = replies(rng, _2=set_array("w", np.full((3, 2), 1e4, np.float32)))
    run(made, "vref", per_array=True)
    assert 0.1 < made[2].trust < 0.9  # its b is believed: 2 of 8 numbers, and more than the others' fair share of w


def test_integers_and_mixed_types(rng):
    made = [Reply(i, {"w": rng.normal(size=4), "h": rng.normal(size=4).astype(np.float16), "n": np.array([5, 6 + (i == 0)])}, 1)
            for i in range(5)]
    for per_array in (False, True):
        result = run(made, "median", per_array=per_array)
        assert result["w"].dtype == np.float64 and result["h"].dtype == np.float16 and result["n"].tolist() == [5, 6]


@pytest.mark.parametrize("per_array", [False, True])
def test_arrays_of_every_kind(rng, per_array):
    """What models hold beside weights: every array comes back as an array of its shape and type."""
    kinds = {"steps": np.array(5), "flag": np.array(True), "mask": np.array([True, False]), "codes": np.ones((2, 2), np.int8),
             "scale": np.array(1.5, np.float32), "none": np.empty((0, 3), np.float32), "nothing": np.empty(0, np.int64),
             "buffer": np.ones(3), "half": np.ones(2, np.float16), "w": np.ones((3, 2), np.float32), "big": np.ones(2, ">i4")}
    made = [Reply(i, {name: array if array.dtype.kind in "biu" else (array * (1 + i / 10)).astype(array.dtype)
                      for name, array in kinds.items()}, 1) for i in range(5)]
    made[3].arrays["steps"], made[3].arrays["flag"] = np.array(6), np.array(False)
    result = run(made, "median", per_array=per_array)
    assert list(result) == list(kinds)
    for name, array in kinds.items():
        assert isinstance(result[name], np.ndarray) and result[name].shape == array.shape and result[name].dtype == array.dtype
        if array.dtype.kind in "biu":
            assert np.array_equal(result[name], array)
    assert np.allclose(result["buffer"], 1.2)


@pytest.mark.parametrize("per_array", [False, True])
def test_nan_in_one_array_takes_all_of_a_reply_out(rng, per_array):
    """Its other arrays are not used either, and it has no vote."""
    made = [Reply(i, {"w": np.full(2, float(i)), "b": np.full(2, float(i)), "n": np.array([i > 2])}, 1) for i in range(5)]
    made[3].arrays["w"] = np.array([np.nan, 1])
    made[4].arrays["b"] = np.array([np.inf, 1])
    result = run(made, "mean", per_array=per_array)
    assert [reply.used for reply in made] == [True] * 3 + [False] * 2
    assert result["w"].tolist() == [1, 1] and result["b"].tolist() == [1, 1] and result["n"].tolist() == [False]
    assert made[3].trust == 0 and made[3].rejected == 1 and made[0].trust == pytest.approx(5 / 3)


def test_a_model_without_numbers_is_an_error():
    for per_array in (False, True):
        with pytest.raises(ValueError, match="no floating-point"):
            run([Reply(i, {"n": np.array([1])}, 1) for i in range(3)], per_array=per_array)


def test_reasons_are_harmless():
    reply = Reply(1)
    reply.leave_out("a\nb\x1b[31m" + "x" * 1000)
    assert "\n" not in reply.reason and "\x1b" not in reply.reason and len(reply.reason) == 200
    reply.leave_out("")
    assert not reply.used


def test_low_trust_for_long_means_out():
    standing = Standing(below=0.3, rounds=2)
    def round_of(**trust):
        made = [Reply(int(node[1:]), {}, 1, trust=value) for node, value in trust.items()]
        return standing.note(made)

    assert round_of(_1=0.1, _2=1, _3=1, _4=1, _5=0.1) == []
    assert round_of(_1=0.1, _2=1, _3=1, _4=1, _5=1) == [1]
    assert standing.allowed([1, 2, 3, 4, 5], 2) == [2, 3, 4, 5]
    assert standing.allowed([1, 2, 3, 4, 5], 5) == [2, 3, 4, 5, 1]  # so many are needed
    standing.banned.update({2, 3})
    assert len(standing.allowed([1, 2, 3, 4, 5], 1)) == 3  # more than half stay
    assert Standing().note([Reply(1, {}, 1)] * 9) == []


def test_csv(tmp_path, rng):
    path = tmp_path / "trust.csv"
    made = replies(rng, 3, _1=lambda r: r.leave_out("it said \"x,y\""))
    for number in (1, 2):
        write_csv(path, number, made)
    lines = path.read_text().splitlines()
    assert lines[0] == "round,node,trust,rejected,weight,left_out,why" and len(lines) == 7
    assert lines[2].endswith('"it said ""x,y""",')
    write_csv(path, 1, made)  # a new run begins anew
    assert len(path.read_text().splitlines()) == 4


def test_metrics_are_medians():
    records = [{"loss": 1.0, "n": 5}, {"loss": 2.0, "n": 5}, {"loss": 1e9, "n": 5, "odd": 1}, {"loss": float("nan")},
               {"loss": [1.0]}, {"loss": 10**400}, {"loss": 2}]
    assert middle_metrics(records, "n") == {"loss": 2.0}
