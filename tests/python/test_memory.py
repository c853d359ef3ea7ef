"""Memory of senders from Python: ids, absence, saving, reasons."""
from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reef

N, LENGTH, COLLUDERS = 12, 40, 3


def rows_of(round: int, agents: list[int], bias: float = 0.8) -> list[Any]:
    """One row per agent; the first three pull the same way."""
    made = []
    for agent in agents:
        noise = np.random.default_rng([round, agent]).normal(size=LENGTH)
        made.append(noise + bias * (agent < COLLUDERS))
    return made


def heard(round: int) -> list[int]:
    """Some agents, in an order that changes."""
    return [int(a) for a in np.random.default_rng(round).permutation(N)[: 9 + round % 4]]


def play(rounds: int, state: reef.State, name: Any, start: int = 0) -> Any:
    told = None
    for round in range(start, rounds):
        agents = heard(round)
        _, told = reef.aggregate(rows_of(round, agents), "mref", ids=[name(a) for a in agents], step=0.02, state=state,
                                 report=True)
    return told


@pytest.mark.parametrize("name", [lambda a: a, lambda a: f"node {a}", lambda a: np.int64(7 - 1000 * a)])
def test_colluders_are_found_by_id_whoever_is_present(name: Any) -> None:
    state = reef.State()
    told = play(200, state, name)
    assert state.senders == N
    for row, sender in enumerate(told.ids):
        lies = sender in [name(a) for a in range(COLLUDERS)]
        assert (told.trust[row] < 0.3) == lies, sender
        assert bool(told.explain(sender)) >= lies
    expected = sum(0 in heard(round) for round in range(200))
    assert state.age(name(0)) == expected
    assert state.age("nobody") == 0


def test_ids_change_no_number() -> None:
    """The same senders by number, by name, in another order: the same memory."""
    states = reef.State(), reef.State(), reef.State()
    for round in range(40):
        agents = heard(round)
        rows = rows_of(round, agents)
        a = reef.aggregate(rows, "mref", ids=agents, state=states[0])
        b = reef.aggregate(rows, "mref", ids=[f"n{i}" for i in agents], state=states[1])
        c = reef.aggregate(rows[::-1], "mref", ids=agents[::-1], state=states[2])
        assert np.array_equal(a, b)
        assert np.allclose(a, c, rtol=0, atol=1e-12)


def test_the_report_says_why() -> None:
    state = reef.State()
    told = play(200, state, lambda a: f"node {a}")
    assert list(told.why)[:3] == ["sender", "trust", "gate"]
    assert all(len(column) == len(told.ids) for column in told.why.values())
    assert told.numbers["short window: rounds"] == 8
    assert told.numbers["long window: rounds"] == 512
    assert set(told.numbers) | set(told.why) - {"sender", "trust"} == set(told.meanings)
    with pytest.raises(KeyError):
        told.explain("node 99")
    _, plain = reef.aggregate(rows_of(0, [0, 4, 5]), "ref", report=True)
    assert plain.why == {} and plain.numbers == {} and plain.explain(0) == ""


def test_saved_and_loaded(tmp_path: Path) -> None:
    state = reef.State()
    play(30, state, lambda a: f"node {a}")
    path = tmp_path / "memory.reef"
    state.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["memory.reef"]
    twins = [reef.State.load(path), copy.deepcopy(state), pickle.loads(pickle.dumps(state))]
    told = play(35, state, lambda a: f"node {a}", start=30)
    for twin in twins:
        other = play(35, twin, lambda a: f"node {a}", start=30)
        assert np.array_equal(told.trust, other.trust) and told.ids == other.ids
        assert twin.age("node 3") == state.age("node 3")
    state.save(path)  # over the old one
    assert reef.State.load(path).age("node 3") == state.age("node 3")


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    state = reef.State()
    reef.aggregate(rows_of(0, [4, 5, 6])[:3], "mref", ids=[4, 5, 6], state=state)
    path = tmp_path / "memory.reef"
    state.save(path)
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
        with pytest.raises(ValueError):
            reef.State.load(path)
        path.write_bytes(whole[:at])
        with pytest.raises(ValueError):
            reef.State.load(path)
    path.write_bytes(whole.replace(b"reef.State 1", b"reef.State 2"))
    with pytest.raises(ValueError, match="another version"):
        reef.State.load(path)
    with pytest.raises(ValueError, match="nothing to save"):
        reef.State().save(path)


def test_what_is_refused() -> None:
    rows = rows_of(0, [3, 4, 5, 6])
    state = reef.State()
    reef.aggregate(rows, "mref", state=state)
    with pytest.raises(ValueError, match="pass ids"):  # the fourth would be another sender
        reef.aggregate(rows[1:], "mref", state=state)
    with pytest.raises(TypeError, match="by positions"):
        reef.aggregate(rows, "mref", ids=[3, 4, 5, 6], state=state)
    with pytest.raises(ValueError, match="3 ids for 4 rows"):
        reef.aggregate(rows, "mref", ids=[3, 4, 5])
    with pytest.raises(TypeError, match="all integers or all strings"):
        reef.aggregate(rows, "mref", ids=[3, "4", 5, 6])
    with pytest.raises(TypeError):
        reef.aggregate(rows, "mref", ids=[True, 4, 5, 6])
    with pytest.raises(OverflowError, match="as strings"):
        reef.aggregate(rows, "mref", ids=[2**63, 4, 5, 6])
    with pytest.raises(ValueError, match="belongs to mref, not to cclip"):
        reef.aggregate(rows, "cclip", state=state)
    with pytest.raises(KeyError):
        reef.aggregate(rows, "mref", report=True)[1].explain(4)
    with pytest.raises(ValueError, match="two rows have the id 'a'"):
        reef.aggregate(rows, "mref", ids=["a", "a", "b", "c"], state=reef.State())
    with pytest.raises(reef.ReefError, match="step"):
        reef.aggregate(rows, "mref", ids=[3, 4, 5, 6], step=-1)
    for wrong in ({"step": "0.1"}, {"step": None}, {"round": "1"}, {"self_row": 1.5}):
        with pytest.raises(TypeError):
            reef.aggregate(rows, "mref", **wrong)  # type: ignore[arg-type]
    named = reef.State()
    reef.aggregate(rows, "mref", ids=list("abcd"), state=named)
    with pytest.raises(TypeError, match="by strings"):
        reef.aggregate(rows, "mref", ids=[1, 2, 3, 4], state=named)
    reef.aggregate(rows[:2], "mref", ids=["d", "x"], state=named)
    assert named.senders == 5 and named.age("d") == 2 and named.age("x") == 1


@pytest.mark.parametrize("wrong", [{"ids": [3, 4, 5, 6], "weights": [-1, 1, 1, 1]}, {"weights": [1, 1, 1, np.nan]}, {"step": -1},
                                   {"ids": list("abcd"), "step": -1}])
def test_a_first_call_that_fails_leaves_nothing(wrong: Any) -> None:
    """The next may have other ids, another number of rows and another shape, with the result that it would have had without."""
    rows = [row[:7] for row in rows_of(0, [3, 4, 5])]
    state = reef.State()
    with pytest.raises(reef.ReefError):
        reef.aggregate(rows_of(0, [3, 4, 5, 6]), "mref:seed=1", state=state, **wrong)
    result = reef.aggregate(rows, "mref:seed=1", state=state)
    np.testing.assert_array_equal(result, reef.aggregate(rows, "mref:seed=1", state=reef.State()))
    state.reset()  # after which there may be other rows, too
    reef.aggregate(rows[1:], "mref:seed=1", state=state)


def test_a_call_that_fails_later_takes_nothing_away() -> None:
    rows = rows_of(0, [3, 4, 5, 6])
    state = reef.State()
    reef.aggregate(rows, "mref", ids=list("abcd"), state=state)
    with pytest.raises(reef.ReefError):
        reef.aggregate(rows, "mref", ids=list("abcd"), state=state, step=-1)
    assert state.senders == 4 and state.age("a") == 1


@pytest.mark.parametrize("centre", [np.zeros(LENGTH - 1), np.full(LENGTH, np.nan), {"w": np.zeros(LENGTH)}])
def test_a_centre_that_does_not_fit_is_refused_every_time(centre: Any) -> None:
    rows = rows_of(0, [3, 4, 5, 6])
    state = reef.State(centre)
    for _ in range(2):
        with pytest.raises((TypeError, ValueError), match="centre"):
            reef.aggregate(rows, "cclip:tau=1", state=state)
    with pytest.raises(ValueError, match="nothing for the tensor 'v'"):
        reef.aggregate([{"v": row} for row in rows], "cclip:tau=1", state=reef.State({"w": rows[0]}))
    with pytest.raises(ValueError, match="nothing for the tensor 1"):
        reef.aggregate([[row, row] for row in rows], "cclip:tau=1", state=reef.State([rows[0]]))


def test_names_of_forgotten_senders_are_forgotten(tmp_path: Path) -> None:
    """However many senders come and go, a state keeps a bounded number of names, and knows by them who is whom."""
    state = reef.State()
    honest = [f"node {i}" for i in range(3)]
    size, most = 20000, 2 * 65536
    for number in range(9):
        names = honest + [f"{number} {i}" for i in range(size)]
        values = np.random.default_rng(number).normal(size=(len(names), 1)).astype(np.float32)
        reef.aggregate(values, "mref", ids=names, state=state)
        assert state.senders <= len(state._names) <= most + size
    assert len(state._names) < most and [state.age(name) for name in honest] == [9, 9, 9]
    assert len({*state._names.values()}) == len(state._names)
    state.save(tmp_path / "memory")
    loaded = reef.State.load(tmp_path / "memory")
    assert loaded._names == state._names and loaded.age("node 2") == 9 and loaded.age("8 7") == 1 and loaded.age("0 7") == 0


def test_in_the_manner_of_byzfl() -> None:
    from reef.compat.byzfl import MREF

    rule = MREF(step=0.02)
    for round in range(150):
        out = rule(np.array(rows_of(round, list(range(N)))))
    assert out.shape == (LENGTH,)
    assert (rule.report.trust[:COLLUDERS] < 0.3).all() and (rule.report.trust[COLLUDERS:] > 0.5).all()
    assert rule.state.age(0) == 150
    with pytest.raises(ValueError, match="pass ids"):
        rule(np.array(rows_of(0, [1, 2, 3])))
    with pytest.raises(ValueError):
        MREF(step=-1)
    assert np.allclose(MREF()(np.eye(4)), MREF(step=1)(np.eye(4)))  # by default the step is unknown; it may be a whole number


def replies_of(round: int, nodes: list[int]) -> list[Any]:
    from reef._federation import Reply

    rows = rows_of(round, nodes)
    return [Reply(2**63 + node, {"w": row[:30], "b": row[30:].astype(np.float32)}, weight=1.0) for node, row in zip(nodes, rows)]


def test_a_server_remembers_its_nodes_over_restarts(tmp_path: Path) -> None:
    """Nodes with the large ids that Flower has, nine to twelve of twelve per round, a server that starts anew in between."""
    from reef._federation import combine, memory_for

    rule = reef.Rule("mref")
    path = tmp_path / "memory.reef"
    memory = memory_for(rule, False, 0.02, path)
    assert memory is not None
    for round in range(200):
        if round % 50 == 49:
            memory = memory_for(rule, False, 0.02, path)
            assert memory is not None and memory.state.senders == N
        replies = replies_of(round, heard(round))
        assert combine(replies, rule, False, round, memory) is not None
        memory.keep()
    for reply in replies:
        lies = reply.node - 2**63 < COLLUDERS
        assert (reply.trust < 0.3) == lies
        assert bool(reply.why) >= lies


def test_what_a_server_refuses(tmp_path: Path) -> None:
    from reef._federation import memory_for

    with pytest.raises(ValueError, match="per array"):
        memory_for(reef.Rule("mref"), True, 0, None)
    with pytest.raises(ValueError, match="does not remember nodes"):
        memory_for(reef.Rule("ref"), False, 0, tmp_path / "x")
    assert memory_for(reef.Rule("ref"), True, 0, None) is None
    (tmp_path / "y").write_bytes(b"something else")
    with pytest.raises(ValueError, match="is not a state"):
        memory_for(reef.Rule("mref"), False, 0, tmp_path / "y")
