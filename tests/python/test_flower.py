"""reef.flower against the real Flower: the strategies message by message, then a deployment of separate processes."""
from __future__ import annotations

import csv
import importlib.util
import os
import sys

import numpy as np
import pytest
from conftest import ROOT

if "flwr" not in os.environ.get("REEF_REQUIRE", "").split():
    pytest.importorskip("flwr")

import reef  # noqa: E402
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict  # noqa: E402
from flwr.serverapp.strategy import FedAvg  # noqa: E402
from reef.flower import FedREF, FedVREF, LegacyRobust, RobustFedAvg  # noqa: E402

sys.path.insert(0, str(ROOT / "examples" / "flower"))

if importlib.util.find_spec("flwr.supercore.task_identity"):  # messages of newer versions ask who they are made by
    from flwr.supercore.task_identity import TaskIdentity

    TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1


class Grid:
    """Ten nodes that are always there."""

    def get_node_ids(self):
        return list(range(1, 11))


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
    ours = make(rule="mean", weight_cap=1e9)
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


@pytest.mark.parametrize("name", BAD)
def test_one_bad_client_does_not_end_the_round(rng, name):
    strategy = make(rule="ref")
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


def test_a_huge_count_buys_nothing(rng):
    strategy = make(rule="mean")
    messages = ask(strategy, rng)
    good = model(rng)
    zero = {name: value * 0 for name, value in good.items()}
    replies = [reply(m, good, {"num-examples": 10**12}) if i == 0 else reply(m, zero) for i, m in enumerate(messages)]
    arrays, _ = strategy.aggregate_train(1, replies)
    assert np.allclose(arrays["w"].numpy(), good["w"] * 2 / 11, atol=1e-6)


def test_nothing_usable_leaves_the_model(rng):
    strategy = make(rule="ref")
    messages = ask(strategy, rng)
    arrays, metrics = strategy.aggregate_train(1, [BAD["error"](m, None) for m in messages])
    assert arrays is None and metrics["reef/used"] == 0
    assert strategy.aggregate_train(2, []) == (None, None)
    few = make(rule="krum:f=4")
    messages = ask(few, rng)
    arrays, metrics = few.aggregate_train(1, [reply(m, model(rng)) for m in messages[:3]])
    assert arrays is None and metrics["reef/left-out"] == 0


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


def test_trust_file_and_leaving_out(rng, tmp_path):
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
    assert len(lines) == 29 and {line["round"] for line in lines} == {"1", "2", "3"}
    assert all(float(line["trust"]) < 0.1 for line in lines if line["node"] == "3")


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
    strategy = LegacyRobust(LegacyFedAvg(), "vref", trust_csv=tmp_path / "trust.csv")
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
    assert strategy.evaluate(0, combined) is None and strategy.initialize_parameters(None) is None


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
        robust = deployment.run(rule="vref", liars=3, rounds=2, trust_csv=str(tmp_path / "trust.csv"))
        spoilt = deployment.run(rule="fedavg", liars=3, rounds=2)
    assert clean > 0.88
    assert spoilt["accuracy"][-1] < 0.5
    assert robust["accuracy"][-1] > clean - 0.01
    lines = [line for line in csv.DictReader(open(tmp_path / "trust.csv")) if line["round"] == "2"]
    trusts = sorted(float(line["trust"]) for line in lines)
    assert len(trusts) == 10 and trusts[2] < 0.3 < 0.7 < trusts[3]
    assert sum(key.startswith("trust/") for key in robust["train"][-1]) == 10


def test_simulation_engine(tmp_path):
    """Flower's own simulation, where Ray is there."""
    needs_processes("flower-simulation")
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    needs_processor(0.1)
    import subprocess

    script = f"""
import sys, json
sys.path[:0] = [{str(ROOT / "examples" / "flower")!r}]
from flwr.simulation import run_simulation
from flwr.serverapp import ServerApp
from flwr.clientapp import ClientApp
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from reef_digits import task
from reef_digits.server_app import evaluate
from reef.flower import FedVREF
client, server = ClientApp(), ServerApp()

@client.train()
def train(message, context):
    number = int(context.node_config["partition-id"])
    sent = {{k: a.numpy() for k, a in message.content["arrays"].items()}}
    x, y = task.part(number, 10)
    model = task.train(sent, x, y, 20, 0.5)
    if number < 3:
        model = {{k: sent[k] - 20 * (model[k] - sent[k]) for k in model}}
    return Message(RecordDict({{"arrays": ArrayRecord({{k: Array(a) for k, a in model.items()}}),
                              "metrics": MetricRecord({{"num-examples": len(x)}})}}), reply_to=message)

@server.main()
def main(grid, context):
    strategy = FedVREF(fraction_evaluate=0.0, min_train_nodes=10, min_available_nodes=10)
    arrays = ArrayRecord({{k: Array(a) for k, a in task.start().items()}})
    result = strategy.start(grid, arrays, num_rounds=2, evaluate_fn=evaluate)
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
