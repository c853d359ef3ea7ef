"""Agents on a network: real processes and a real nats-server."""
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, need

import reef

net = pytest.importorskip("reef._agent")
try:
    net._library()
except ImportError as missing:
    pytest.skip(str(missing), allow_module_level=True)
if not (os.environ.get("REEF_NATS_SERVER") or shutil.which("nats-server") or os.path.exists("/usr/sbin/nats-server")):
    pytest.skip("nats-server is not there", allow_module_level=True)


def test_everybody_agrees_on_the_mean():
    """With the mean and everybody there all agents have the same model after one round, in every kind of model."""
    kinds = {
        "array": lambda k: np.full(6, k, np.float32),
        "list": lambda k: [np.full(2, k, np.float32), np.arange(3), np.full((2, 2), -k, np.float32)],
        "dict": lambda k: {"b": np.full(2, k, np.float32), "a": np.full((2, 2), k, np.float64), "steps": 7},
    }
    for name, make in kinds.items():
        def play(agent, k, make=make):
            model = agent.join(make(k))
            model, report = agent.exchange(model)
            assert report.combined and report.round == 0 and len(report.present) == 3 and not report.missing
            assert report.weight == pytest.approx(1)
            assert set(report.trust.values()) == {1.0}
            if isinstance(model, dict):
                assert model["steps"] == 7 and model["a"].dtype == np.float64 and model["a"].shape == (2, 2)
                return [float(model["a"][0, 0]), float(model["b"][1])]
            if isinstance(model, list):
                assert model[1].dtype.kind == "i" and (model[1] == np.arange(3)).all()
                return [float(model[0][0]), -float(model[2][1, 1])]
            return [float(model[0]), float(model[5])]

        assert reef.swarm(play, agents=4, count=6, rule="mean", malicious=0.2) == [[1.5, 1.5]] * 4, name


def test_malicious_agents_are_down_weighted():
    """Five processes, two of them malicious: mref gives these no weight; all honest ones find the optimum, which the mean does not."""
    def play(agent, k):
        rng = np.random.default_rng(k)
        truth = np.linspace(-1, 1, 10)
        model = agent.join(np.zeros(10, np.float32))
        report = None
        for _ in agent.rounds(60):
            x = rng.standard_normal((16, 10))
            d = x @ truth + 0.1 * rng.standard_normal(16)
            model = model + 0.1 * (x.T @ (d - x @ model) / 16).astype(np.float32)
            model, report = agent.exchange(model + 5 if k >= 3 else model, loss=float(((d - x @ model) ** 2).mean()))
        error = float(((model - truth) ** 2).sum())
        return {"error": error, "suspects": report.suspects(), "round": report.round, "why": report.why}

    honest = reef.swarm(play, agents=5, count=10, rule="mref", malicious=0.45, step=0.1)[:3]
    fooled = reef.swarm(play, agents=5, count=10, rule="mean", malicious=0.45, step=0.1)[:3]
    for k in range(3):
        assert honest[k]["error"] < 0.05 < 1 < fooled[k]["error"]
        assert sorted(honest[k]["suspects"]) == ["agent-3", "agent-4"]
        assert honest[k]["round"] == 59
        assert honest[k]["why"]["agent-4"]


def test_the_next_epoch_goes_on_without_who_was_removed():
    """While it runs, agent 0 lays the file of epoch 2 in place of the first: agent 3 is removed, and the others go on with each other."""
    command = Path(os.environ.get("REEF_LIBRARY") or "").parent / "reef"
    if not command.exists():
        pytest.skip("the command reef is not there")

    def sign_next(folder, current):
        draft = re.sub(r"  agent-3: .*", "  agent-3: removed", (folder / "draft.yaml").read_text())
        (folder / "next.draft").write_text(draft + f"epoch: 2\nfrom: {current + 25}\n")
        subprocess.run([command, "keys", "sign", folder / "next.draft", "--key", folder / "coordinator.key", "--after", folder / "run.yaml",
                        "--round", str(current), "-o", folder / "next.yaml"], check=True, capture_output=True)
        os.replace(folder / "next.yaml", folder / "run.yaml")

    def play(agent, k):
        model, last = agent.join(np.full(4, k, np.float32)), None
        try:
            while agent.round < 60:
                if k == 0 and agent.round == 10:
                    sign_next(Path(agent.run).parent, 10)
                time.sleep(0.1)
                model, last = agent.exchange(model)
        except reef.Left as left:
            return {"left": str(left), "round": last.round}
        return {"present": sorted(last.present), "missing": last.missing, "combined": last.combined}

    answers = reef.swarm(play, agents=5, count=4, rule="median", malicious=0.2, deadline=5)
    assert "agent-3 was removed from run swarm in epoch 2" in answers[3]["left"] and 33 <= answers[3]["round"] <= 35
    for k in (0, 1, 2, 4):
        assert answers[k]["combined"] and "agent-3" not in answers[k]["present"] + answers[k]["missing"]
    assert answers[0]["present"] == ["agent-1", "agent-2", "agent-4"]


def test_overlap_restart_and_misuse():
    def play(agent, k):
        model = np.full(3, k, np.float32)
        pending = agent.begin(model)
        time.sleep(0.3 * (k % 2))  # whether or not the round is over by then
        with pytest.raises(reef.ReefError, match="under way"):
            agent.begin(model)
        model, report = pending.result()
        assert report.combined
        with pytest.raises(TypeError, match="4 numbers"):
            agent.exchange(np.zeros(4, np.float32))
        with pytest.raises(TypeError, match="names, shapes or types differ"):
            agent.exchange([np.zeros(3, np.float32)])
        with pytest.raises(ValueError, match="NaN"):
            agent.exchange(np.full(3, np.nan, np.float32))
        with pytest.raises(TypeError, match="floating-point"):
            agent.exchange("model")
        with pytest.raises(reef.ReefError, match="notes are finite numbers"):
            agent.exchange(model, Loss=1)
        child = os.fork()
        if child == 0:  # a forked worker must not use the agent
            try:
                agent.exchange(model)
            except RuntimeError:
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        second = reef.Agent(agent.run, agent.key)  # the same key, while the first is at work
        with pytest.raises(reef.ReefError, match="another process"):
            second.exchange(model)
        again = agent.round
        agent.close()
        with reef.Agent(agent.run, agent.key) as later:  # a new start goes on behind what was signed
            model, report = later.exchange(model)
            return [again, report.round >= again]

    assert reef.swarm(play, agents=4, count=3, rule="median", malicious=0.2) == [[1, True]] * 4


def test_who_comes_late_takes_the_model_of_the_others():
    """An agent that begins when the others are far ahead gets what they have, and goes on in their round."""
    def play(agent, k):
        begun, done = (Path(agent.run).parent / name for name in ("begun", "done"))
        if k == 3:
            while not begun.exists():
                time.sleep(0.02)
            model = agent.join(np.zeros(4, np.float32))
            found = model.tolist()
            model, report = agent.exchange(model)
            done.touch()
            return [found, report.round > 2]
        while not done.exists():
            time.sleep(0.2)  # as long as training takes
            _, report = agent.exchange(np.full(4, 7, np.float32))
            if report.round >= 5:
                begun.touch()
        return "there before"

    late = [[7.0] * 4, True]
    assert reef.swarm(play, agents=4, count=4, rule="median", malicious=0.3, deadline=2) == ["there before"] * 3 + [late]


def test_ctrl_c_ends_a_wait():
    """A signal gets through to an agent that waits for neighbours who do not come."""
    def play(agent, k):
        over = Path(agent.run).parent / "over"
        if k == 0:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background may have taken it away
            signal.alarm(60)  # a test that hangs fails
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            with pytest.raises(KeyboardInterrupt):
                agent.exchange(np.zeros(3, np.float32))
            over.touch()
            return "interrupted"
        while not over.exists():
            time.sleep(0.02)
        return "silent"

    assert reef.swarm(play, agents=3, count=3, rule="mean", malicious=0.2) == ["interrupted", "silent", "silent"]


def test_exchange_after_ctrl_c():
    """Who interrupts an exchange, in a notebook for instance, can go on with the next one."""
    def play(agent, k):
        over = Path(agent.run).parent / "over"
        signal.alarm(100)  # a test that hangs fails
        if k == 0:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            with pytest.raises(KeyboardInterrupt):
                agent.exchange(np.zeros(2, np.float32))  # nobody else is there yet
            over.touch()
        else:
            while not over.exists():
                time.sleep(0.02)
            agent.exchange(np.full(2, k, np.float32))
        model, report = agent.exchange(np.full(2, 10 + k, np.float32))
        return [report.round, report.combined, float(model[0])]

    assert reef.swarm(play, agents=3, count=2, rule="mean", malicious=0.2) == [[1, True, 11.0]] * 3


def test_a_swarm_leaves_other_children_alone():
    """The exit code of another child of the program is still there for who has started it."""
    other = subprocess.Popen(["sh", "-c", "exit 7"])
    time.sleep(0.5)
    assert reef.swarm(lambda agent, k: k, agents=3, count=2) == [0, 1, 2]
    assert other.wait() == 7


def test_what_cannot_be_returned_is_told():
    for value, kind in (({1, 2}, "set"), (np.array([{}]), "ndarray")):
        with pytest.raises(RuntimeError, match=f"agent 0: it returns a {kind} that JSON cannot hold"):
            reef.swarm(lambda agent, k, value=value: value if k == 0 else time.sleep(60), agents=3, count=2)


@pytest.mark.parametrize("arguments, error", [
    ({"agents": 0}, "agents is 0"), ({"count": 2.5}, "count is 2.5"), ({"malicious": 0.5}, "malicious is 0.5"), ({"malicious": "1/3"}, "malicious"),
    ({"rule": "refx"}, "did you mean 'ref'"), ({"function": None}, "not a function")])
def test_arguments_of_a_swarm(arguments, error):
    with pytest.raises((ValueError, TypeError), match=error):
        reef.swarm(**{"function": lambda agent, k: None, "agents": 3, "count": 3, **arguments})


def test_failures_are_told(tmp_path):
    with pytest.raises(RuntimeError, match="agent 2: ZeroDivisionError"):
        reef.swarm(lambda agent, k: 1 / (k - 2), agents=3, count=3, rule="mean", malicious=0.2)
    with pytest.raises(FileNotFoundError):
        reef.Agent(tmp_path / "nowhere.yaml", tmp_path / "no.key")
    (tmp_path / "run.yaml").write_text("reef: 1\n")
    (tmp_path / "a.key").write_text("no key\n")
    with pytest.raises(reef.ReefError, match="not a signed run file"):
        reef.Agent(tmp_path / "run.yaml", tmp_path / "a.key").exchange(np.zeros(3))


def wait_in_vain(folder, run, broker):
    """What an agent says that has no broker, then one but no neighbours; and what forked processes are told from then on."""
    caught = []
    handler = logging.Handler()
    handler.emit = caught.append
    logging.getLogger("reef").addHandler(handler)
    with reef.Agent(run, folder / "agent-0.key") as agent:
        with pytest.raises(TimeoutError, match=r"^no connection to nats://127\.0\.0\.1:\d+: No server available for connection$"):
            agent.join(np.zeros(3, np.float32), timeout=4)
        assert [record.levelname for record in caught] == ["WARNING"]
        assert caught[0].getMessage().startswith("the agent waits: no connection to nats://")
        (folder / "begin").touch()
        net._await_broker(folder, broker)
        with pytest.raises(TimeoutError, match="too few neighbours are heard from: weight 0.25, of more than 0.4"):
            agent.join(np.zeros(3, np.float32), timeout=2)
    with pytest.raises(RuntimeError, match="call it in a new process"):
        reef.swarm(lambda agent, k: k, agents=3, count=3)
    assert exit_code(lambda: join_forked(folder, run)) == 0
    return 0


def join_forked(folder, run):
    with pytest.raises(RuntimeError, match="was forked from one"):
        reef.Agent(run, folder / "agent-1.key").join(np.zeros(3, np.float32), timeout=4)
    return 0


def exit_code(body):
    return os.waitstatus_to_exitcode(os.waitpid(net._child(body), 0)[1])


def serve_later(folder, run):
    while not (folder / "begin").exists():
        time.sleep(0.05)
    return net._serve(run, folder)


def with_broker(folder, run):
    """The broker is a child of the process that waits for it, and forked before that has an agent."""
    broker = net._child(lambda: serve_later(folder, run))
    try:
        return wait_in_vain(folder, run, broker)
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        net._end({}, broker)


def test_an_agent_that_waits_says_for_what(tmp_path):
    """In a process of its own: this one could start no swarm any more."""
    run = net._write_run(tmp_path, 4, 3, net._free_port(), {"graph": "complete", "rule": "mean", "malicious": 0.2})
    assert exit_code(lambda: with_broker(tmp_path, run)) == 0
    reef.Agent.__new__(reef.Agent).close()  # as Python does with one whose arguments were wrong


def test_no_objects_are_unpacked():
    """Bytes of others become numbers, never objects."""
    source = Path(net.__file__).read_text()
    assert not re.search(r"pickle|marshal|\beval\(|\bexec\(", source)


def test_torch_modules_are_loaded_in_place():
    torch = pytest.importorskip("torch")

    def play(agent, k):
        module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))  # which counts its batches in integers
        for number in module.parameters():
            number.data.fill_(float(k))
        same, report = agent.exchange(module)
        assert same is module and report.combined
        return [float(module[0].weight.detach()[0, 0]), float(module[1].bias.detach()[1]), int(module[1].num_batches_tracked)]

    assert reef.swarm(play, agents=3, count=14, rule="mean", malicious=0.2) == [[1.0, 1.0, 0]] * 3


def test_digits_in_eight_processes_of_which_two_are_malicious(monkeypatch):
    """examples/network/digits_torch.py: with mref everybody honest reads digits, with the mean nobody does."""
    need("torch")
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "network"))
    import digits_torch as example

    honest = [k for k in range(example.AGENTS) if k not in example.MALICIOUS]
    learned = reef.swarm(example.play, example.AGENTS, count=2410, rule="mref", step=0.1)
    assert min(learned[k]["accuracy"] for k in honest) >= 0.9
    assert all({f"agent-{k}" for k in example.MALICIOUS} <= set(learned[k]["suspects"]) for k in honest)
    fooled = reef.swarm(example.play, example.AGENTS, count=2410, rule="mean", step=0.1)
    assert max(fooled[k]["accuracy"] for k in honest) < 0.5


def test_notebook():
    """docs/five_agents.ipynb runs, and shows what it says."""
    need("matplotlib")
    sys.path.insert(0, str(ROOT / "scripts"))
    from run_notebook import run

    names = run(ROOT / "docs" / "five_agents.ipynb")
    errors = {rule: names["results"][rule][0]["errors"][-1] for rule in ("mean", "median", "mref")}
    assert errors["mref"] < 0.05 and errors["median"] < 1 < errors["mean"]
    assert names["results"]["mref"][0]["suspects"] == ["agent-1", "agent-3"]
