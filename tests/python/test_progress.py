"""The line of progress of `reef aggregate` on a terminal, which here is a pseudo-terminal of a stated width. The merge is stopped for more than the two
seconds in which nothing is shown, so that however fast the machine is, there is something to show afterwards."""
from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from test_merging import command  # noqa: F401 (a fixture)

LINE = r"\r *\d+ %  (\d+ MB|\d+\.\d\d GB)/s  \d+ (s|min) left *"


@pytest.fixture
def models(tmp_path) -> list[str]:
    """Eight models of zeros, as holes in their files, but for a number in the middle, where copies are looked for: the last two are the same. Large enough to be
    merged for some tenths of a second."""
    numbers = 25_000_000
    header = json.dumps({"w": {"dtype": "F32", "shape": [numbers], "data_offsets": [0, 4 * numbers]}}).encode()
    for i in range(8):
        with open(tmp_path / f"{i}.safetensors", "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            file.truncate(8 + len(header) + 4 * numbers)
            file.seek(8 + len(header) + 2 * numbers)
            file.write(struct.pack("<f", min(i, 6)))
    return [f"{i}.safetensors" for i in range(8)]


def pause(start: Callable[[], subprocess.Popen], folder: Path) -> subprocess.Popen:
    """A merge that was stopped in the middle of its work for as long as progress is not shown. On a busy machine one may be over before we look."""
    for _ in range(5):
        process = start()
        while process.poll() is None and not list(folder.glob("out.*.tmp")):
            time.sleep(0.001)
        process.send_signal(signal.SIGSTOP)
        if process.poll() is None and list(folder.glob("out.*.tmp")):
            break
    time.sleep(2.2)
    process.send_signal(signal.SIGCONT)
    return process


def listen(descriptor: int) -> str:
    heard = b""
    while True:
        try:
            part = os.read(descriptor, 4096)
        except OSError:  # the other side is closed
            return heard.decode()
        if not part:
            return heard.decode()
        heard += part


def on_terminal(command, folder, models, columns, *options) -> tuple[str, str]:
    """What is seen on standard error, a terminal, and standard output, a pipe."""
    terminals = []

    def start() -> subprocess.Popen:
        terminals.append(pty.openpty())
        _, theirs = terminals[-1]
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen([command, "aggregate", "--threads", "1", *options, *models, "-o", "out"], cwd=folder, stderr=theirs,
                                   stdout=subprocess.PIPE, text=True)
        os.close(theirs)
        return process

    process = pause(start, folder)
    seen = listen(terminals[-1][0])
    for ours, _ in terminals:
        os.close(ours)
    said, _ = process.communicate()
    assert process.returncode == 0, seen
    return seen, said


def screen(seen: str, columns: int) -> str:
    """What stands in the line of progress in the end; one that is too long would go on in the next line, where nothing removes it."""
    row, at = "", 0
    for letter in seen:
        if letter == "\r":
            at = 0
        else:
            assert letter != "\n" and at < columns, "wider than the terminal"
            row = row[:at] + letter + row[at + 1:]
            at += 1
    return row.rstrip()


def test_rate_and_time_left_and_nothing_stays(command, models, tmp_path):
    seen, said = on_terminal(command, tmp_path, models, 80)
    lines = [line for line in re.findall(r"\r[^\r\n]*", seen) if "%" in line]
    assert lines and all(re.fullmatch(LINE, line) for line in lines), seen
    before, warning = seen.split("reef aggregate: ")
    assert screen(before, 80) == "" and warning.startswith("warning: 6.safetensors, 7.safetensors have the same")
    assert said.startswith("file ")


def test_it_fits_a_narrow_terminal(command, models, tmp_path):
    seen, _ = on_terminal(command, tmp_path, models, 15, "--no-trust")
    before = seen[:seen.index("reef aggregate")]
    assert "%" in before and screen(before, 15) == ""


def test_quiet_shows_none(command, models, tmp_path):
    seen, said = on_terminal(command, tmp_path, models, 80, "-q")
    assert "%" not in seen and seen.count("\n") == 1 and not said  # the warning


def test_a_pipe_gets_none(command, models, tmp_path):
    process = pause(lambda: subprocess.Popen([command, "aggregate", "--threads", "1", *models, "-o", "out"], cwd=tmp_path, stderr=subprocess.PIPE,
                                             stdout=subprocess.PIPE, text=True), tmp_path)
    said, warned = process.communicate()
    assert process.returncode == 0 and "\r" not in warned + said and "left" not in warned and said.startswith("file ")
