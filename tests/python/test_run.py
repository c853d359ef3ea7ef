"""reef.run: experiments from YAML, results as tables, frames and figures."""
from __future__ import annotations

import os
import signal
import threading
import time

import pytest
import reef
from conftest import need

YAML = """
agents: 6
graph: complete
problem: {kind: lms, dimension: 4}
strategy: {kind: diffusion, mu: 0.05}
rule: [mean, ref]
malicious: 1
attack: {kind: additive, delta: [0, 1, 1000]}
rounds: 60
repetitions: 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(YAML)
    return path


def test_results(file):
    results = reef.run(file, progress=False)
    assert results.name == "small" and results.axes == ["rule", "attack.delta"] and not results.stopped
    assert len(results.rows) == 6
    by = {(row["rule"], row["attack.delta"]): row["msd_db"] for row in results.rows}
    assert by["mean", 1000] > 20 and by["ref", 1000] < 0
    assert results.metrics == ["msd_db"] and results.points[0]["round"] == 0
    assert "6 configurations over rule, attack.delta" in repr(results)
    assert results.manifest


def test_overrides(file):
    results = reef.run(file, {"attack.delta": 5}, rule="median", repetitions=2, strategy__mu=0.01, progress=False)
    assert len(results.rows) == 1 and results.rows[0]["repetitions"] == 2 and results.axes == []
    with pytest.raises(reef.ReefError, match="did you mean 'mu'"):
        reef.run(file, strategy__muu=0.01, progress=False)


def test_mistakes_name_the_place(file, tmp_path):
    file.write_text(YAML.replace("mean, ref", "mean, reff"))
    with pytest.raises(reef.ReefError, match=r"small.yaml:6:\d+: .*did you mean 'ref'"):
        reef.run(file)
    with pytest.raises(reef.ReefError, match="nowhere.yaml"):
        reef.run(tmp_path / "nowhere.yaml")


def test_folder_is_kept_and_resumed(file, tmp_path):
    folder = tmp_path / "kept"
    first = reef.run(file, folder=folder, progress=False)
    again = reef.run(file, folder=folder, resume=True, progress=False, threads=1)
    assert repr(first.rows) == repr(again.rows) == repr(reef.Results(folder).rows)
    assert reef.Results(folder).axes == first.axes


def test_temporary_folder_goes_with_the_results(file):
    results = reef.run(file, progress=False)
    folder = results.folder
    assert folder.exists()
    del results
    assert not folder.exists()


def test_interrupt_ends_the_run(file):
    """Ctrl-C while a run is under way: KeyboardInterrupt before it is over. Processes in the background are started with the signal
    ignored, hence the handler."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt():
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    try:
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            reef.run(file, rounds=200000, repetitions=32, progress=False)
    finally:
        signal.signal(signal.SIGINT, before)


def test_frames(file):
    need("pandas")
    results = reef.run(file, progress=False)
    frame = results.summary.set_index(["rule", "attack.delta"])
    assert frame.loc[("ref", 1000), "msd_db"] < frame.loc[("mean", 1000), "msd_db"]
    assert len(results.curves.groupby("cell")) == 6


def test_figures(file, tmp_path):
    matplotlib = need("matplotlib")
    matplotlib.use("Agg")
    results = reef.run(file, progress=False)
    axes = results.plot()
    assert len(axes.lines) == 6 and axes.get_xlabel() == "round"
    final = results.plot(kind="final")
    assert len(final.lines) == 2 and final.get_xlabel() == "attack.delta"
    final.figure.savefig(tmp_path / "final.png")
    with pytest.raises(ValueError, match="unknown metric 'accuracy'"):
        results.plot("accuracy")
    with pytest.raises(ValueError, match="kind='pie'"):
        results.plot(kind="pie")


def test_progress_is_shown(file, capsys):
    need("tqdm")
    reef.run(file)
    assert "small" in capsys.readouterr().err
