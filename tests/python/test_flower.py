"""reef.flower against the real Flower: the strategies message by message, then a deployment of separate processes."""
from __future__ import annotations

import csv
import importlib.util
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

if "flwr" not in os.environ.get("REEF_REQUIRE", "").split():
    pytest.importorskip("flwr")

import reef  # noqa: E402
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict  # noqa: E402
from flwr.serverapp.strategy import FedAvg  # noqa: E402
from reef.flower import FedMREF, FedREF, FedVREF, LegacyRobust, RobustFedAvg  # noqa: E402

sys.path.insert(0, str(ROOT / "examples" / "flower"))

if importlib.util.find_spec("flwr.supercore.task_identity"):  # messages of newer versions ask who they are made by
    from flwr.supercore.task_identity import TaskIdentity

    TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1


class Grid:
    """Ten nodes that are always there. train(node, arrays, round): what a node answers, a dict of arrays."""

    def __init__(self, nodes=10, train=None):
        self.nodes, self.train = nodes, train

    def get_node_ids(self):
        return list(range(1, self.nodes + 1))

    def send_and_receive(self, messages, *, timeout=None):
        """What Flower's own grids do, in one process: messages cross it as bytes."""
        answers = []
        for place, message in enumerate(messages):
            message.metadata.__dict__["_message_id"] = str(place)
            message.metadata.__dict__["_run_id"] = 1
            sent = {name: array.numpy() for name, array in message.content["arrays"].items()}
            number = message.content["config"]["server-round"]
            answers.append(reply(message, self.train(message.metadata.dst_node_id, sent, number)))
        return answers


def model(rng):
    return {"w": rng.normal(size=(4, 3)).astype(np.float32), "b": rng.normal(size=3).astype(np.float32)}


def reply(message, arrays, metrics=None, **records):
    content = RecordDict({"arrays": ArrayRecord({k: Array(v) for k, v in arrays.items()}),
                          "metrics": MetricRecord({"num-examples": 20} if metrics is None else metrics), **records})
    return Message(content, reply_to=message)


def ask(strategy, rng, number=1):
    """The messages of a round, with the node they go to set as Flower's grid does."""
    arrays = ArrayRecord({name: Array(value) for name, value in model(rng).items()})
    messages = list(strategy.configure_train(number, arrays, ConfigRecord(), Grid()))
    for place, message in enumerate(messages):
        message.metadata.__dict__["_message_id"] = str(place)
        message.metadata.__dict__["_run_id"] = 1
    return messages


def answers(strategy, rng, number=1):
    return [reply(message, model(rng)) for message in ask(strategy, rng, number)]


def make(**options):
    return RobustFedAvg(**{"fraction_evaluate": 0.0, "min_train_nodes": 10, "min_available_nodes": 10, **options})


def test_it_is_a_fedavg_that_says_what_it_does(caplog):
    strategy = make(rule="nnm:f=2 | ref", leave_out_rounds=3)
    assert isinstance(strategy, FedAvg)
    strategy.summary()
    assert FedREF(efficiency=0.9).rule.spec.startswith("ref:c=auto,efficiency=0.9")
    assert FedVREF().rule.spec.startswith("vref")
    for wrong in ({"rule": "reff"}, {"weight_cap": 0.5}, {"leave_out_rounds": -1}, {"trust_csv": "/nowhere/x.csv"}):
        with pytest.raises(ValueError):
            make(**wrong)


def test_the_default_remembers_nodes_where_it_can(rng):
    """docs/howto/choose-a-rule.md says which rule is taken, and why. The app of examples/flower learns with it among three who attack."""
    from flwr.server.strategy import FedAvg as LegacyFedAvg
    from reef_digits import task

    assert make().rule.spec.startswith("mref:") and make().memory is not None
    assert make(per_array=True).rule.spec.startswith("ref:") and make(per_array=True).memory is None
    assert LegacyRobust(LegacyFedAvg()).rule.spec.startswith("mref:")

    def train(node, sent, number):
        learned = task.train(sent, *task.part(node - 1, 10), 20, 0.5)
        return learned if node > 3 else {name: sent[name] - 20 * (learned[name] - sent[name]) for name in learned}

    os.environ.setdefault("REEF_DATA", str(ROOT / "data"))
    strategy = make(step=0.5)
    arrays = ArrayRecord({name: Array(value) for name, value in task.start().items()})
    result = strategy.start(Grid(train=train), arrays, num_rounds=3)
    assert task.accuracy({name: array.numpy() for name, array in result.arrays.items()}) > clean_accuracy(3) - 0.01
    assert all((reply.trust < 0.1) == (reply.node <= 3) for reply in strategy.replies)


@pytest.mark.parametrize("rule", ["mean", "ref", "vref", "krum:f=2", "nnm:f=2 | ref"])
@pytest.mark.parametrize("per_array", [False, True])
def test_result_is_reefs(rng, rule, per_array):
    strategy = make(rule=rule, per_array=per_array, weighted=False)
    messages = answers(strategy, rng)
    arrays, metrics = strategy.aggregate_train(1, messages)
    rows = [{k: v.numpy() for k, v in m.content["arrays"].items()} for m in messages]
    if per_array:
        wanted = {name: reef.aggregate([row[name] for row in rows], rule, round=1) for name in ("w", "b")}
    else:
        wanted = reef.aggregate([{name: row[name] for name in ("b", "w")} for row in rows], rule, round=1)
    for name in ("w", "b"):
        assert np.array_equal(arrays[name].numpy(), wanted[name])
    assert metrics["reef/used"] == 10 and metrics["reef/left-out"] == 0
    assert sum(key.startswith("trust/") for key in metrics) == 10


def test_mean_is_that_of_fedavg(rng):
    ours = make(rule="mean", weighted=True, weight_cap=1e9)
    messages = answers(ours, rng)
    for place, message in enumerate(messages):
        message.content["metrics"]["num-examples"] = 10 + place
    theirs, _ = FedAvg().aggregate_train(1, messages)
    mine, _ = ours.aggregate_train(1, messages)
    for name in mine:
        assert np.allclose(mine[name].numpy(), theirs[name].numpy(), atol=1e-6)


def spoil_arrays(change):
    def spoil(message, good):
        arrays = {name: value.copy() for name, value in good.items()}
        change(arrays)
        return reply(message, arrays)

    return spoil


def raw(data, dtype="float32", shape=(4, 3), stype="numpy.ndarray"):
    def spoil(message, good):
        record = ArrayRecord({"w": Array(dtype, shape, stype, data), "b": Array(good["b"])})
        return Message(RecordDict({"arrays": record, "metrics": MetricRecord({"num-examples": 20})}), reply_to=message)

    return spoil


BAD = {
    "error": lambda message, good: Message(Error(7, "out of\nmemory"), reply_to=message),
    "missing array": spoil_arrays(lambda a: a.pop("b")),
    "extra array": spoil_arrays(lambda a: a.update(c=a["b"])),
    "other shape": spoil_arrays(lambda a: a.update(w=a["w"].T.copy())),
    "other type": spoil_arrays(lambda a: a.update(w=a["w"].astype(np.float64))),
    "NaN": spoil_arrays(lambda a: a["w"].__setitem__((0, 0), np.nan)),
    "Inf": spoil_arrays(lambda a: a["b"].__setitem__(0, np.inf)),
    "no arrays": lambda message, good: Message(RecordDict({"metrics": MetricRecord({"num-examples": 20})}), reply_to=message),
    "no metrics": lambda message, good: Message(RecordDict({"arrays": ArrayRecord({k: Array(v) for k, v in good.items()})}),
                                                reply_to=message),
    "two records": lambda message, good: reply(message, good, more=ArrayRecord({"x": Array(good["b"])})),
    "no count": lambda message, good: reply(message, good, {"loss": 1.0}),
    "list as count": lambda message, good: reply(message, good, {"num-examples": [1, 2]}),
    "negative count": lambda message, good: reply(message, good, {"num-examples": -20}),
    "NaN as count": lambda message, good: reply(message, good, {"num-examples": float("nan")}),
    "no bytes": raw(b""),
    "nonsense": raw(b"\x93NUMPY\x01\x00garbage"),
    "pickle": raw(b"\x80\x04\x95", stype="pickle"),
}


COUNTS = {"no metrics", "no count", "list as count", "negative count", "NaN as count"}  # bad if samples are counted


@pytest.mark.parametrize("name", BAD)
def test_one_bad_client_does_not_end_the_round(rng, name):
    strategy = make(rule="ref", weighted=name in COUNTS)
    messages = ask(strategy, rng)
    replies = [BAD[name](m, model(rng)) if i == 4 else reply(m, model(rng)) for i, m in enumerate(messages)]
    arrays, metrics = strategy.aggregate_train(1, replies)
    assert all(np.isfinite(array.numpy()).all() for array in arrays.values())
    assert metrics["reef/used"] == 9 and metrics["reef/left-out"] == 1
    bad = strategy.replies[4]
    assert bad.reason and metrics[f"trust/{bad.node}"] == 0


@pytest.mark.parametrize("name", ["missing array", "other shape", "no metrics", "no count", "NaN"])
def test_flowers_own_fedavg_does(rng, name):
    """What RobustFedAvg is for: FedAvg raises, or its model is spoilt."""
    strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=10, min_available_nodes=10)
    messages = ask(strategy, rng)
    replies = [BAD[name](m, model(rng)) if i == 4 else reply(m, model(rng)) for i, m in enumerate(messages)]
    try:
        arrays, _ = strategy.aggregate_train(1, replies)
    except Exception:
        return
    assert not all(np.isfinite(array.numpy()).all() for array in arrays.values())


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_who_does_not_count_samples_needs_none(rng, name):
    strategy = make(rule="ref")
    messages = ask(strategy, rng)
    _, metrics = strategy.aggregate_train(1, [BAD[name](message, model(rng)) for message in messages])
    assert metrics["reef/used"] == 10


def test_a_huge_count_buys_nothing(rng):
    for weighted, share in ((True, 2 / 11), (False, 1 / 10)):
        strategy = make(rule="mean", weighted=weighted)
        messages = ask(strategy, rng)
        good = model(rng)
        zero = {name: value * 0 for name, value in good.items()}
        replies = [reply(m, good, {"num-examples": 10**12}) if i == 0 else reply(m, zero) for i, m in enumerate(messages)]
        arrays, _ = strategy.aggregate_train(1, replies)
        assert np.allclose(arrays["w"].numpy(), good["w"] * share, atol=1e-6)


def test_by_default_claims_of_samples_buy_nothing(rng):
    """Four of ten who claim twice the samples of the others: more than half of the weight, no more than four votes of ten."""
    errors = {}
    for weighted in (False, True):
        strategy = make(rule="median", weighted=weighted)
        replies = []
        for place, message in enumerate(ask(strategy, rng)):
            lies = place < 4
            own = {name: (3 if lies else 0) + 0.1 * rng.normal(size=value.shape) for name, value in model(rng).items()}
            replies.append(reply(message, own, {"num-examples": 40 if lies else 20}))
        arrays, _ = strategy.aggregate_train(1, replies)
        errors[weighted] = np.abs(arrays["w"].numpy()).max()
    assert errors[False] < 0.4 and errors[True] > 2.5
    assert not RobustFedAvg().weighted and not LegacyRobust(None).weighted


def test_results_of_flowers_strategies(rng):
    """FedMedian, Krum and MultiKrum of Flower on the same replies, ours with their defaults."""
    from flwr.serverapp.strategy import FedMedian, Krum, MultiKrum

    pairs = [(FedMedian(), "median"), (Krum(num_malicious_nodes=1), "krum:f=1,dialect=flower"),
             (MultiKrum(num_malicious_nodes=1, num_nodes_to_select=2), "multikrum:f=1,m=2,dialect=flower")]
    for count in (3, 4, 7):
        rows = [rng.normal(size=4) + (9 if row == 1 and count > 3 else 0) for row in range(count)]
        for theirs, rule in pairs:
            messages = ask(make(rule="mean"), rng)[:count]
            replies = [reply(message, {"0": row}, {"num-examples": 5}) for message, row in zip(messages, rows)]
            found, _ = RobustFedAvg(rule).aggregate_train(1, replies)
            wanted, _ = theirs.aggregate_train(1, replies)  # the last to see them: FedMedian empties its messages
            assert np.allclose(found["0"].numpy(), wanted["0"].numpy(), rtol=1e-14, atol=1e-15), (rule, count)


def test_nothing_usable_leaves_the_model(rng, caplog):
    strategy = make(rule="ref")
    messages = ask(strategy, rng)
    arrays, metrics = strategy.aggregate_train(1, [BAD["error"](m, None) for m in messages])
    assert arrays is None and metrics["reef/used"] == 0 and metrics["reef/aggregated"] == 0
    arrays, metrics = strategy.aggregate_train(2, [])  # all were asked, nobody replied
    assert arrays is None and metrics["reef/aggregated"] == 0
    assert make().aggregate_train(1, []) == (None, None)  # nobody was asked
    few = make(rule="krum:f=3", leave_out_rounds=1)
    messages = ask(few, rng)
    caplog.clear()
    arrays, metrics = few.aggregate_train(1, [reply(m, model(rng)) for m in messages[:3]])
    assert arrays is None and metrics["reef/left-out"] == 0 and metrics["reef/aggregated"] == 0
    told = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(told) == 1 and "krum: f = 3 malicious inputs of n = 3" in told[0].getMessage()
    assert not few.standing.banned  # nobody was judged


def test_a_rule_for_which_there_are_too_few_nodes(rng, caplog):
    """An error before anybody trains; if nodes are gone later, a warning."""
    with pytest.raises(reef.ReefError, match="f = 4 malicious inputs of n = 10"):
        ask(make(rule="krum:f=4"), rng)
    strategy = make(rule="krum:f=3", min_train_nodes=2, min_available_nodes=2)
    arrays = ArrayRecord({name: Array(value) for name, value in model(rng).items()})
    assert len(list(strategy.configure_train(1, arrays, ConfigRecord(), Grid()))) == 10
    caplog.clear()
    assert len(list(strategy.configure_train(2, arrays, ConfigRecord(), Grid(5)))) == 5
    assert "cannot work with 5 nodes" in caplog.text
    with pytest.raises(reef.ReefError, match="n = 5"):
        fresh = make(rule="krum:f=3", min_train_nodes=2, min_available_nodes=2)
        fresh.start(Grid(5, lambda node, sent, number: sent), arrays, num_rounds=1)


def network(rng):
    """What the state_dict of a network holds: convolution, BatchNorm, LayerNorm, embedding, and buffers of all kinds."""
    return {"conv.weight": rng.normal(size=(4, 3, 3, 3)).astype(np.float32),
            "bn.weight": np.ones(4, np.float32), "bn.running_var": np.ones(4, np.float32),
            "bn.num_batches_tracked": np.array(0),
            "norm.weight": np.ones(6, np.float32), "embedding.weight": rng.normal(size=(9, 4)).astype(np.float16),
            "temperature": np.array(1.0, np.float32), "unused": np.empty((0, 4), np.float32), "none": np.empty(0, np.int64),
            "frozen": np.array(True), "mask": np.array([True, False, True]), "codes": np.arange(-3, 5, dtype=np.int8),
            "table": rng.normal(size=7), "big.weight": rng.normal(size=5000).astype(np.float32)}


@pytest.mark.parametrize("rule", ["mean", "ref", "vref", "krum:f=3", "nnm:f=3 | ref", "clip:c=1 | ref", "arc:f=3 | ref", "cclip:tau=0.1"])
@pytest.mark.parametrize("per_array", [False, True])
def test_networks_with_buffers(rng, rule, per_array):
    """Three rounds of Flower's own loop: every array keeps shape and type, counters count, masks stay, liars have no say."""
    start = network(rng)

    def train(node, sent, number):
        assert list(sent) == list(start), number
        own = {}
        for name, array in sent.items():
            assert array.shape == start[name].shape and array.dtype == start[name].dtype, name
            noise = 0.01 * rng.normal(size=array.shape) if array.dtype.kind == "f" else 0
            own[name] = np.asarray(array + noise if array.dtype.kind == "f" else array).astype(array.dtype)
        own["bn.num_batches_tracked"] = np.array(sent["bn.num_batches_tracked"] + 5)
        if node <= 3 and rule != "mean":
            own = {name: np.asarray(array + 50 if array.dtype.kind == "f" else ~array).astype(array.dtype)
                   for name, array in own.items()}
        return own

    arrays = ArrayRecord({name: Array(value) for name, value in start.items()})
    result = make(rule=rule, per_array=per_array).start(Grid(train=train), arrays, num_rounds=3)
    found = {name: array.numpy() for name, array in result.arrays.items()}
    assert found["bn.num_batches_tracked"] == 15 and found["bn.num_batches_tracked"].shape == ()
    for name in ("frozen", "mask", "codes", "none", "unused"):
        assert np.array_equal(found[name], start[name])
    for name in ("conv.weight", "temperature", "table", "embedding.weight"):
        assert np.abs(found[name] - start[name]).max() < 0.2


@pytest.mark.parametrize("per_array", [False, True])
def test_rules_that_measure_lengths_work_on_updates(rng, per_array):
    """Far from the origin: the clipped mean of models would be a model of length 2."""
    sent = {"w": 100 + rng.normal(size=(4, 3)).astype(np.float32), "n": np.array(7)}
    updates = [{"w": 0.1 * rng.normal(size=(4, 3)).astype(np.float32)} for _ in range(10)]
    updates[3]["w"] += 1000
    strategy = make(rule="clip:c=2 | mean", per_array=per_array)
    arrays = ArrayRecord({name: Array(value) for name, value in sent.items()})
    messages = list(strategy.configure_train(1, arrays, ConfigRecord(), Grid()))
    for place, message in enumerate(messages):
        message.metadata.__dict__.update(_message_id=str(place), _run_id=1)
    found, _ = strategy.aggregate_train(1, [reply(message, {**sent, "w": sent["w"] + update["w"]})
                                            for message, update in zip(messages, updates)])
    wanted = sent["w"] + reef.aggregate([update["w"] for update in updates], "clip:c=2 | mean")
    assert np.allclose(found["w"].numpy(), wanted, atol=1e-4) and found["n"].numpy() == 7
    assert found["w"].numpy().dtype == np.float32


def test_metrics(rng):
    strategy = make()
    messages = ask(strategy, rng)
    replies = [reply(m, model(rng), {"num-examples": 20, "loss": float(i), "odd": [1.0] * (i + 1)})
               for i, m in enumerate(messages)]
    _, metrics = strategy.aggregate_train(1, replies)
    assert metrics["loss"] == 4.5 and "odd" not in metrics
    for function in (lambda records, key: MetricRecord({"own": float(len(records))}), lambda records, key: 1 / 0):
        strategy = make(train_metrics_aggr_fn=function)
        messages = ask(strategy, rng)
        _, metrics = strategy.aggregate_train(1, [reply(m, model(rng)) for m in messages])
        assert metrics.get("own", 10.0) == 10.0 and metrics["reef/used"] == 10


def test_evaluation_survives_too(rng):
    strategy = make()
    messages = ask(strategy, rng)
    contents = [{"acc": 0.5, "num-examples": 5}] * 8 + [{"other": 1.0}]
    replies = [Message(RecordDict({"metrics": MetricRecord(c)}), reply_to=m) for c, m in zip(contents, messages)]
    replies.append(BAD["error"](messages[9], None))
    assert dict(strategy.aggregate_evaluate(1, replies)) == {"acc": 0.5}
    assert strategy.aggregate_evaluate(1, []) is None


def test_trust_file_and_leaving_out(rng, tmp_path, caplog):
    path = tmp_path / "trust.csv"
    strategy = make(rule="vref", trust_csv=path, leave_out_rounds=2, min_train_nodes=8, min_available_nodes=8)
    for number in (1, 2, 3):
        messages = ask(strategy, rng, number)
        nodes = [m.metadata.dst_node_id for m in messages]
        assert (3 in nodes) == (number < 3), "node 3 lies in two rounds and is not asked in the third"
        centre = model(rng)
        replies = []
        for message in messages:
            own = {k: v + 0.1 * rng.normal(size=v.shape).astype(np.float32) for k, v in centre.items()}
            lie = {k: v + 100 for k, v in centre.items()}
            replies.append(reply(message, lie if message.metadata.dst_node_id == 3 else own))
        _, metrics = strategy.aggregate_train(number, replies)
        assert number == 3 or metrics["trust/3"] < 0.1
    lines = list(csv.DictReader(open(path)))
    assert "node 3 is not asked any more: its trust stayed below 0.3 for 2 rounds" in caplog.text
    assert len(lines) == 29 and {line["round"] for line in lines} == {"1", "2", "3"}
    assert all(float(line["trust"]) < 0.1 for line in lines if line["node"] == "3")


def test_nodes_are_remembered_by_id_over_restarts(rng, tmp_path, caplog):
    """Eight of ten nodes per round; nodes 2 and 7 collude inside the spread of the others; the server starts anew in between."""
    def fresh():
        return FedMREF(step=0.1, memory=tmp_path / "memory", trust_csv=tmp_path / "trust.csv", fraction_train=0.8,
                       fraction_evaluate=0.0, min_train_nodes=8, min_available_nodes=10)

    strategy = fresh()
    centre = {"w": np.zeros((20, 10), np.float32), "b": np.zeros(10, np.float32)}
    for number in range(1, 101):
        if number == 60:
            strategy = fresh()
            assert strategy.memory.state.senders == 10
        replies = []
        for message in ask(strategy, rng, number):
            lies = message.metadata.dst_node_id in (2, 7)
            replies.append(reply(message, {k: (v + rng.normal(size=v.shape) + 0.5 * lies).astype(v.dtype)
                                           for k, v in centre.items()}))
        _, metrics = strategy.aggregate_train(number, replies)
        assert metrics["reef/used"] == 8
    trust = {reply.node: reply.trust for reply in strategy.replies}
    assert all((value < 0.3) == (node in (2, 7)) for node, value in trust.items())
    assert caplog.text.count("node 2 has a trust of") == 2  # once, and once after the restart
    lines = list(csv.DictReader(open(tmp_path / "trust.csv")))
    assert any("leaves" in line["why"] for line in lines if line["node"] == "7")
    with pytest.raises(ValueError, match="per array"):
        make(rule="mref", per_array=True)
    with pytest.raises(ValueError, match="does not remember nodes"):
        make(rule="ref", memory=tmp_path / "other")


def test_a_server_that_is_started_again(rng, tmp_path, caplog):
    """Flower counts rounds from 1 again: the table of trust goes on, the memory too. That of another model is an error of the round."""
    files = {"memory": tmp_path / "memory", "trust_csv": tmp_path / "trust.csv"}

    def train(node, sent, number):
        return {k: (v + 0.01 * rng.normal(size=v.shape)).astype(v.dtype) for k, v in sent.items()}

    def start(arrays, **more):
        strategy = make(rule="mref", **{**files, **more})
        result = strategy.start(Grid(train=train), ArrayRecord({k: Array(v) for k, v in arrays.items()}), num_rounds=2)
        return strategy, result

    start(model(rng))
    strategy, _ = start(model(rng))
    assert strategy.memory.state.age("1") == 4
    lines = list(csv.DictReader(open(files["trust_csv"])))
    assert [line["round"] for line in lines[::10]] == ["1", "2", "1", "2"]
    _, result = start({"w": np.ones(7, np.float32)})
    assert "this state belongs to rows of 15 numbers in 2 tensors, these are of 7 in 1" in caplog.text
    assert result.train_metrics_clientapp[1]["reef/aggregated"] == 0
    folder = tmp_path / "gone"
    folder.mkdir()
    strategy = make(rule="mref", memory=folder / "memory")
    folder.rmdir()  # a folder that is lost is an error in the log, not the end
    _, metrics = strategy.aggregate_train(1, answers(strategy, rng))
    assert metrics["reef/aggregated"] == 1 and "the memory could not be saved" in caplog.text


def test_what_can_be_foreseen_is_said_at_once(rng, tmp_path):
    """Instead of rounds of which each is an error in the log, and a model that stays as it is."""
    from flwr.server.strategy import FedAvg as LegacyFedAvg

    by_number, centre = reef.State(), reef.State()
    reef.aggregate([model(rng) for _ in range(4)], "mref", ids=[1, 2, 3, 4], state=by_number)
    reef.aggregate([model(rng) for _ in range(4)], "cclip", state=centre)
    by_number.save(tmp_path / "by_number")
    centre.save(tmp_path / "centre")
    for wrong, says in (({"step": -1.0}, "step=-1"), ({"step": float("nan")}, "step=nan"), ({"step": "0.1"}, "step is '0.1', not a number"),
                        ({"step": None}, "step is None"), ({"memory": tmp_path / "nowhere" / "memory"}, "the folder does not exist"),
                        ({"memory": tmp_path / "by_number"}, "identifies senders by integers, but now they have strings"),
                        ({"memory": tmp_path / "centre"}, "belongs to cclip, not to mref")):
        with pytest.raises((ValueError, TypeError), match=says):
            make(**wrong)
        with pytest.raises((ValueError, TypeError), match=says):
            LegacyRobust(LegacyFedAvg(), **wrong)


@pytest.mark.parametrize("config, step", [({"lr": 0.05}, 0.05), ({"learning-rate": 1}, 1.0), ({"lr": "fast", "learning_rate": 0.1}, 0.1),
                                          ({"lr": -1.0}, 0.0), ({"lr": float("nan")}, 0.0), ({"epochs": 3}, 0.0)])
def test_the_learning_rate_is_that_of_the_train_config(rng, config, step):
    """Once: what a schedule makes of it later does not count, and one that was given is not replaced."""
    arrays = ArrayRecord({name: Array(value) for name, value in model(rng).items()})
    for given, wanted in ((0.0, step), (0.3, 0.3)):
        strategy = make(rule="mref", step=given)
        for number, now in ((1, config), (2, {**config, **({"lr": 0.001} if step else {})})):
            list(strategy.configure_train(number, arrays, ConfigRecord(now), Grid()))
        assert strategy.memory.step == wanted


def test_who_must_stay_is_not_said_to_be_gone(rng, caplog):
    """Ten nodes are needed: whoever is not trusted is asked all the same, and nobody says otherwise."""
    strategy = make(rule="vref", leave_out_rounds=1)
    for number in (1, 2, 3):
        messages = ask(strategy, rng, number)
        assert len(messages) == 10
        centre = model(rng)
        strategy.aggregate_train(number, [
            reply(m, {k: (v + (100 if m.metadata.dst_node_id == 3 else 0.1 * rng.normal(size=v.shape))).astype(v.dtype)
                      for k, v in centre.items()}) for m in messages])
    assert strategy.standing.banned == {3} and "not asked" not in caplog.text
    strategy.min_train_nodes = strategy.min_available_nodes = 8
    assert 3 not in [message.metadata.dst_node_id for message in ask(strategy, rng, 4)]
    assert caplog.text.count("node 3 is not asked any more") == 1
    strategy.min_available_nodes = 10
    ask(strategy, rng, 5)
    assert "node 3 is asked again" in caplog.text


def test_legacy_strategies(rng, tmp_path):
    from flwr.common import Code, FitRes, Parameters, Status, ndarrays_to_parameters, parameters_to_ndarrays
    from flwr.server.strategy import FedAvg as LegacyFedAvg

    class Client:
        def __init__(self, cid):
            self.cid = cid

    def result(arrays, count=10):
        return FitRes(Status(Code.OK, ""), ndarrays_to_parameters(arrays), count, {})

    rows = [[rng.normal(size=(4, 3)), rng.normal(size=3)] for _ in range(9)]
    rows[2] = [row + 1e6 for row in rows[2]]
    results = [(Client(f"c{i}"), result(row)) for i, row in enumerate(rows)]
    strategy = LegacyRobust(LegacyFedAvg(), "vref", weighted=True, trust_csv=tmp_path / "trust.csv")
    combined, metrics = strategy.aggregate_fit(1, results, [RuntimeError("gone")])
    wanted = reef.aggregate(rows, "vref", round=1)
    assert all(np.array_equal(a, b) for a, b in zip(parameters_to_ndarrays(combined), wanted))
    assert metrics["trust/2"] < 0.01 and (tmp_path / "trust.csv").exists()
    results[0] = (Client("c0"), result(rows[0][:1]))
    results[1] = (Client("c1"), FitRes(Status(Code.OK, ""), Parameters([b"x", b"y"], "numpy.ndarray"), 10, {}))
    results[3] = (Client("c3"), result(rows[3], -1))
    combined, metrics = strategy.aggregate_fit(2, results, [])
    assert [reply.used for reply in strategy.replies[:4]] == [False, False, True, False]
    assert np.abs(parameters_to_ndarrays(combined)[0]).max() < 10
    assert strategy.aggregate_fit(3, [], []) == (None, {})

    class Inner(LegacyFedAvg):
        def configure_fit(self, server_round, parameters, client_manager):
            return results

    strategy = LegacyRobust(Inner(), "clip:c=1 | mean")  # lengths are those of updates
    sent = [100 + row for row in rows[4]]
    results = [(Client(f"c{i}"), result([100 + part for part in row])) for i, row in enumerate(rows)]
    strategy.configure_fit(1, ndarrays_to_parameters(sent), None)
    combined, metrics = strategy.aggregate_fit(1, results, [])
    assert metrics["reef/aggregated"] == 1
    assert all(np.abs(a - b).max() <= 1 for a, b in zip(parameters_to_ndarrays(combined), sent))
    assert strategy.evaluate(0, combined) is None and strategy.initialize_parameters(None) is None


def test_legacy_clients_are_remembered_by_name(rng, tmp_path, caplog):
    """In another order after a restart: who colluded is still known, and named with the reason, once."""
    from flwr.common import Code, FitRes, Status, ndarrays_to_parameters
    from flwr.server.strategy import FedAvg as LegacyFedAvg

    class Client:
        def __init__(self, cid):
            self.cid = cid

    def play(strategy, order, rounds):
        for number in range(1, rounds + 1):
            results = [(Client(f"clinic {i}"), FitRes(Status(Code.OK, ""), ndarrays_to_parameters(
                [(rng.normal(size=200) + 0.5 * (i < 2)).astype(np.float32)]), 10, {})) for i in order]
            strategy.aggregate_fit(number, results, [])

    play(LegacyRobust(LegacyFedAvg(), "mref", step=0.1, memory=tmp_path / "memory"), range(10), 80)
    assert caplog.text.count("client clinic 1 has a trust of") == 1
    strategy = LegacyRobust(LegacyFedAvg(), "mref", step=0.1, memory=tmp_path / "memory")
    play(strategy, range(9, -1, -1), 1)
    assert {reply.name for reply in strategy.replies if reply.trust < 0.3} == {"clinic 0", "clinic 1"}


def clean_accuracy(rounds, nodes=10):
    """What FedAvg reaches when nobody lies, computed here."""
    from reef_digits import task

    state = task.start()
    for _ in range(rounds):
        parts = [task.part(number, nodes) for number in range(nodes)]
        models = [task.train(state, x, y, 20, 0.5) for x, y in parts]
        state = reef.aggregate(models, "mean", [len(x) for x, _ in parts])
    return task.accuracy(state)


def needs_processes(name):
    if name not in os.environ.get("REEF_REQUIRE", "").split():
        pytest.skip("takes a minute or more; `make test-python-extras` runs it")


def share_of_a_processor():
    """How much of a processor a fresh process gets here: 1 on an idle machine."""
    import resource
    import subprocess
    import time

    wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "import flwr.clientapp"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used / (time.perf_counter() - wall)


def needs_processor(least):
    """Flower gives tasks up that do not report in time; where a process gets too little of a processor that says nothing of ours."""
    share = share_of_a_processor()
    if share < least:
        pytest.skip(f"the machine is too busy: a process gets {share:.0%} of a processor, {least:.0%} are needed")


def test_deployment(tmp_path):
    """A SuperLink and ten SuperNodes, TLS and node authentication on, three of them attacking: FedAvg fails, RobustFedAvg stays within
    one point of the clean accuracy, and the trust tells who lied."""
    needs_processes("flower-deployment")
    needs_processor(0.4)  # ten nodes start their tasks at the same time
    from deployment import Deployment

    os.environ.setdefault("REEF_DATA", str(ROOT / "data"))
    clean = clean_accuracy(2)
    with Deployment(tmp_path, ROOT / "examples" / "flower", 10, ROOT) as deployment:
        robust = deployment.run(rule="vref", malicious=3, rounds=2, trust_csv=str(tmp_path / "trust.csv"))
        spoilt = deployment.run(rule="fedavg", malicious=3, rounds=2)
    assert clean > 0.88
    assert spoilt["accuracy"][-1] < 0.5
    assert robust["accuracy"][-1] > clean - 0.01
    lines = [line for line in csv.DictReader(open(tmp_path / "trust.csv")) if line["round"] == "2"]
    trusts = sorted(float(line["trust"]) for line in lines)
    assert len(trusts) == 10 and trusts[2] < 0.3 < 0.7 < trusts[3]
    assert sum(key.startswith("trust/") for key in robust["train"][-1]) == 10


def free_port():
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def documented_commands():
    """The shell commands of the page, as they stand there."""
    text = (ROOT / "docs" / "tutorials" / "flower.md").read_text()
    return text.split("```sh\n")[1].split("```")[0]


def end_processes_of(folder):
    """flwr leaves a SuperLink running: the processes that were started with this folder as Flower's home."""
    import signal

    mark = f"FLWR_HOME={folder}\0".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes() + b"\0" and int(entry.name) != os.getpid():
                os.kill(int(entry.name), signal.SIGTERM)
        except OSError:  # gone, or somebody else's
            pass


def test_the_documented_commands(tmp_path):
    """On a fresh machine: a clone, an empty virtual environment, and the commands of the page, letter by letter."""
    needs_processes("flower-app")
    needs_processor(0.1)
    import re
    import shutil
    import subprocess

    clone = shutil.copytree(ROOT, tmp_path / "clone",
                            ignore=shutil.ignore_patterns("build", ".git", "results", "dist", "__pycache__", ".flwr"))
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("REEF_", "PYTHON", "VIRTUAL_ENV"))}
    environment.update(PATH=f"{tmp_path / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}", FLWR_HOME=str(tmp_path / "flwr"),
                       FLWR_TELEMETRY_ENABLED="0", FLWR_LOCAL_SUPERLINK_HTTP_API_PORT=str(free_port()),
                       FLWR_LOCAL_CONTROL_API_PORT=str(free_port()))
    # What costs most of the time and shows nothing: modules that nobody imports are not compiled, and known C sources not again.
    environment.update(PIP_NO_COMPILE="1", CMAKE_BUILD_PARALLEL_LEVEL=str(os.cpu_count() or 1))
    if shutil.which("ccache"):
        environment.setdefault("CMAKE_C_COMPILER_LAUNCHER", "ccache")
    try:
        for _ in range(3):  # Flower gives its own server 15 s to start; a busy machine may need more
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", documented_commands()], cwd=clone, env=environment,
                                  capture_output=True, text=True, timeout=1800, check=False)
            if "Failed to start local SuperLink" not in done.stdout + done.stderr:
                break
            end_processes_of(tmp_path / "flwr")
            shutil.rmtree(tmp_path / "flwr" / "local-superlink", ignore_errors=True)  # its data base may be half made
    finally:
        end_processes_of(tmp_path / "flwr")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    final = [float(number) for number in re.findall(r"\b3: \{'accuracy': '([0-9.e+-]+)'", done.stdout)]
    assert len(final) == 2, done.stdout[-3000:]
    assert final[0] > 0.85 and final[1] < 0.5


def test_simulation_engine(tmp_path):
    """Flower's own simulation, where Ray is there."""
    needs_processes("flower-simulation")
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    needs_processor(0.1)
    import subprocess

    script = f"""
import sys, json
import numpy as np
sys.path[:0] = [{str(ROOT / "examples" / "flower")!r}]
from flwr.simulation import run_simulation
from flwr.serverapp import ServerApp
from flwr.clientapp import ClientApp
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from reef_digits import task
from reef_digits.server_app import evaluate
from reef.flower import FedVREF
client, server = ClientApp(), ServerApp()
BUFFERS = {{"bn.num_batches_tracked": np.array(0), "frozen": np.array(True), "codes": np.arange(-3, 5, dtype=np.int8),
           "unused": np.empty((0, 4), np.float32), "temperature": np.array(1.0), "half": np.ones(3, np.float16)}}

@client.train()
def train(message, context):
    number = int(context.node_config["partition-id"])
    sent = {{k: a.numpy() for k, a in message.content["arrays"].items()}}
    x, y = task.part(number, 10)
    buffers = {{k: sent.pop(k) for k in BUFFERS}}
    buffers["bn.num_batches_tracked"] = np.array(buffers["bn.num_batches_tracked"] + 20)
    model = task.train(sent, x, y, 20, 0.5)
    if number < 3:
        model = {{k: sent[k] - 20 * (model[k] - sent[k]) for k in model}}
        buffers["bn.num_batches_tracked"] = np.array(-1)
    model.update(buffers)
    return Message(RecordDict({{"arrays": ArrayRecord({{k: Array(a) for k, a in model.items()}}),
                              "metrics": MetricRecord({{"num-examples": len(x)}})}}), reply_to=message)

@server.main()
def main(grid, context):
    strategy = FedVREF(fraction_evaluate=0.0, min_train_nodes=10, min_available_nodes=10)
    arrays = ArrayRecord({{k: Array(a) for k, a in {{**task.start(), **BUFFERS}}.items()}})
    result = strategy.start(grid, arrays, num_rounds=2, evaluate_fn=evaluate)
    found = {{k: a.numpy() for k, a in result.arrays.items()}}
    assert found["bn.num_batches_tracked"] == 40 and all(found[k].dtype == a.dtype and found[k].shape == a.shape
                                                         for k, a in BUFFERS.items())
    json.dump([dict(r)["accuracy"] for r in result.evaluate_metrics_serverapp.values()],
              open({str(tmp_path / "out.json")!r}, "w"))

run_simulation(server, client, num_supernodes=10, backend_config={{"client_resources": {{"num_cpus": 1}}}})
"""
    environment = dict(os.environ, REEF_DATA=str(ROOT / "data"), FLWR_TELEMETRY_ENABLED="0", FLWR_HOME=str(tmp_path),
                       PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=300,
                          check=False)
    assert (tmp_path / "out.json").exists(), done.stdout[-2000:] + done.stderr[-3000:]
    import json

    assert json.loads((tmp_path / "out.json").read_text())[-1] > clean_accuracy(2) - 0.01
