"""Problems written in Python: named in experiment files, run like the library's own, their exceptions errors of the run."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import reef
from reef._problem import split_parameters

YAML = """
name: points
agents: 6
malicious: 2
rounds: 30
repetitions: 3
seed: 5
every: 10
problem: {kind: points, dimension: 4, spread: [0.5, 1]}
graph: complete
strategy: {kind: diffusion, mu: 0.2, batch: 4}
rule: [mean, ref]
attack: ['additive:delta=30', label_flip]
oracle: true
"""


class Points:
    """agents pull to points around the ones"""

    def __init__(self, agents: int, seed: int, dimension: int = 3, spread: float = 1.0) -> None:
        self.dimension, self.seed, self.spread = dimension, seed, spread
        self.centres = 1 + spread * np.random.default_rng(seed).normal(size=(agents, dimension))
        self.flips = 0

    def start(self):
        return np.zeros(self.dimension)

    def gradient(self, models, agents, step):
        assert models.shape == (len(agents), self.dimension) and step.size == 4 and list(step.agents) == list(agents)
        draws = [step.generator(self.seed, k).normal(size=(step.size, self.dimension)).mean(0) for k in agents]
        signs = 1 if step.flipped is None else np.where(step.flipped, -1, 1)[:, None]
        return signs * (models - self.centres[agents] + np.array(draws))

    def evaluate(self, models):
        return {"loss": ((models - self.centres.mean(0)) ** 2).sum(1)}


@pytest.fixture
def yaml(tmp_path):
    path = tmp_path / "points.yaml"
    path.write_text(YAML)
    return path


def cells(folder):
    """Every byte of the results, but for times."""
    return {path.name: path.read_bytes() for path in sorted(Path(folder).glob("*.csv"))}


def test_grid_oracle_and_bits(yaml, tmp_path):
    """Threads, and a run anew, do not change a bit; the attack that only honest rules withstand is one."""
    made = []

    def make(**given):
        made.append(given)
        return Points(**given)

    first = reef.run(yaml, problems={"points": make}, folder=tmp_path / "one", threads=1, progress=False)
    assert {tuple(sorted(given.items())) for given in made} == {
        (("agents", 6), ("dimension", 4), ("seed", 5), ("spread", spread)) for spread in (0.5, 1)}
    reef.run(yaml, problems={"points": Points}, folder=tmp_path / "two", threads=3, progress=False)
    assert cells(tmp_path / "one") == cells(tmp_path / "two")
    rows = {(row["problem.spread"], row["rule"], row["attack"]): row for row in first.rows}
    assert len(rows) == 8 and first.axes == ["problem.spread", "rule", "attack"]
    for spread in (0.5, 1):
        lied = "additive:delta=30"
        assert rows[spread, "mean", lied]["loss"] > 50 > rows[spread, "ref", lied]["loss"]
        assert rows[spread, "mean", lied]["oracle"] < 10
    assert "nan" in str(rows[1, "mean", "label_flip"]["accuracy"])  # it does not classify


def test_resume_computes_only_what_is_missing(yaml, tmp_path):
    reef.run(yaml, problems={"points": Points}, folder=tmp_path / "out", threads=1, progress=False)
    before = cells(tmp_path / "out")
    removed = sorted((tmp_path / "out" / "cells").iterdir())[0]
    removed.unlink()
    calls = []

    class Counted(Points):
        def gradient(self, models, agents, step):
            calls.append(step.round)
            return super().gradient(models, agents, step)

    reef.run(yaml, problems={"points": Counted}, folder=tmp_path / "out", resume=True, threads=1, progress=False)
    assert len(calls) == 30 * 3 and removed.exists()  # rounds and repetitions of one cell or oracle
    assert cells(tmp_path / "out") == before


class Broken(Points):
    def __init__(self, agents, seed, what="gradient", **more):
        if what == "make":
            raise RuntimeError("no such data")
        super().__init__(agents, seed, **more)
        self.what = what

    def start(self):
        return np.zeros(2) if self.what == "start" else super().start()

    def gradient(self, models, agents, step):
        if self.what == "gradient" and step.round == 29 and step.repetition == 2:
            raise KeyError("the last\nstep of all")
        return models[:1] if self.what == "shape" else super().gradient(models, agents, step)

    def evaluate(self, models):
        return {"make": 0, "score": {"acc": 1}, "number": {"loss": "much"}}.get(self.what) or super().evaluate(models)


@pytest.mark.parametrize("what, sentence", [
    ("make", r"RuntimeError: no such data"), ("start", r"start: ValueError: start returned the shape \(2,\); \(4,\) was wanted"),
    ("gradient", "gradient: KeyError: 'the last"), ("shape", r"gradient returned the shape \(1, 4\)"),
    ("score", "evaluate returned acc; loss, accuracy"), ("number", "evaluate")])
@pytest.mark.parametrize("threads", [1, 3])
def test_exceptions_end_the_run(yaml, tmp_path, what, sentence, threads):
    """With their text and cause, and no results of the cell; even one in the very last step of a repetition."""
    with pytest.raises(reef.ReefError, match=sentence) as caught:
        reef.run(yaml, problems={"points": Broken}, problem={"kind": "points", "dimension": 4, "what": what},
                 folder=tmp_path / "out", threads=threads, progress=False, rule="ref", oracle=False, attack="none")
    assert caught.value.__cause__ is not None
    assert not (tmp_path / "out" / "summary.csv").exists()
    assert not list((tmp_path / "out").glob("cells/*"))


def test_ctrl_c_in_a_callback_stays_one(yaml):
    class Interrupted(Points):
        def gradient(self, models, agents, step):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reef.run(yaml, problems={"points": Interrupted}, progress=False)


def test_what_is_no_problem_is_refused(yaml, tmp_path):
    class Half:
        def __init__(self, **_):
            self.dimension = 3

    class Odd(Points):
        samples = [1, 2]

    for make, sentence in ((Half, "Half has no start, gradient, evaluate"), (Odd, r"samples have the shape \(2,\); there are 6 agents"),
                           (lambda agents, seed: None, "unexpected keyword argument 'dimension'")):
        with pytest.raises(reef.ReefError, match=sentence):
            reef.run(yaml, problems={"points": make}, progress=False)
    with pytest.raises(reef.ReefError, match="a problem named 'lms' exists already"):
        reef.run(yaml, problems={"lms": Points}, progress=False)
    with pytest.raises(reef.ReefError, match="there is no problem 'points'"):
        reef.run(yaml, progress=False)


def test_parameters_come_as_values():
    assert split_parameters("a=1,b=2.5,c=true,d=x y,e=(1,2),f=(g:h=1,i=(2,3)),j=1e3") == {
        "a": 1, "b": 2.5, "c": True, "d": "x y", "e": "1,2", "f": "g:h=1,i=(2,3)", "j": 1000.0}
    assert split_parameters("") == {}
    with pytest.raises(ValueError, match="a is given twice"):
        split_parameters("a=1,a=2")


def shell(root, folder, *arguments):
    path = {} if os.environ.get("REEF_INSTALLED") == "1" else {"PYTHONPATH": str(root / "python")}
    return subprocess.run([sys.executable, *arguments], cwd=folder, env={**os.environ, **path}, capture_output=True, text=True)


def test_code_runs_only_when_allowed(root, tmp_path):
    (tmp_path / "mine.py").write_text(f"import numpy as np\nopen('ran', 'a').write('x')\n{_source(root)}")
    (tmp_path / "exp.yaml").write_text(YAML.replace("kind: points,", "kind: python, module: mine.py, class: Points,"))
    run = ("-m", "reef", "run", "exp.yaml", "--set", "rounds=4", "--set", "every=2", "--set", "repetitions=1")
    refused = shell(root, tmp_path, *run)
    assert refused.returncode != 0 and "runs code that the file names" in refused.stderr and not (tmp_path / "ran").exists()
    done = shell(root, tmp_path, *run, "--allow-code", "--no-figures")
    assert done.returncode == 0, done.stderr
    assert "results/points" in done.stdout and (tmp_path / "results" / "points" / "report.html").exists()
    assert " loss " in done.stdout and "accuracy" not in done.stdout  # it does not classify: no column and no figure of nothing but NaN
    script = (tmp_path / "results" / "points" / "figures" / "curves.gp").read_text()
    assert "set ylabel 'test loss'" in script and "accuracy" not in script
    again = shell(root, tmp_path, *run, "--allow-code", "--no-figures", "--resume", "-q")
    assert again.returncode == 0 and again.stdout == ""
    wrong = shell(root, tmp_path, *run, "--allow-code", "--set", "problem.class=Nothing", "-o", "other")
    assert wrong.returncode == 1 and "mine.py has no class 'Nothing'" in wrong.stderr
    with pytest.raises(reef.ReefError, match="allow_code=True"):
        reef.run(tmp_path / "exp.yaml", progress=False)


def test_the_report_compares_losses_where_there_are_no_accuracies(yaml, tmp_path):
    browser = shutil.which("chromium") or pytest.skip("no chromium here")
    folder = reef.run(yaml, problems={"points": Points}, folder=tmp_path / "out", progress=False).folder
    reef._library.call(reef._library.lib.reef_ffi_experiment_report, os.fsencode(folder))
    page = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom",
                           f"file://{folder}/report.html"], capture_output=True, text=True, timeout=120).stdout
    headline = page[page.index('id="headline"'):].split("</table>")[0]
    assert "Test loss" in headline and "accuracy" not in headline and " \u00b1 " in headline


def _source(root: Path) -> str:
    text = (root / "tests" / "python" / "test_problem.py").read_text()
    return text[text.index("class Points:"):text.index("@pytest.fixture")]


def test_what_is_no_class_is_not_registered():
    with pytest.raises(TypeError, match="make is 3, not a function"):
        reef.register_problem("three", 3)


def test_registered_by_name(root, tmp_path, yaml):
    """In an interpreter of its own, since what is registered stays."""
    program = f"""
import numpy as np, reef
{_source(root)}
reef.register_problem("points", Points)
kind = reef.kinds("problem")["points"]
assert kind.summary == "agents pull to points around the ones" and [field.type for field in kind.fields] == ["rest"]
assert kind(dimension=4, spread=0.5) == "points:dimension=4,spread=0.5"
reef.set_threads(2)  # a context made afterwards has it too
assert len(reef.run({str(yaml)!r}, progress=False, rounds=4, every=2, repetitions=1).rows) == 8
for name in ("points", "softmax", "no good"):
    try:
        reef.register_problem(name, Points)
    except reef.ReefError as error:
        print(error)
"""
    done = shell(root, tmp_path, "-c", program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("already") == 2 and "letters, digits" in done.stdout
