"""Agents on a network: `reef.Agent` exchanges models with its neighbours, `reef.swarm` runs several on this machine.

libreef_net, a library of its own, does the work; models go to it as one row of numbers. Bytes of other agents are never unpacked into
objects here: what comes back are numbers and texts that the library has checked.
"""
from __future__ import annotations

import contextlib
import ctypes as c
import ctypes.util
import hashlib
import json
import logging
import math
import numbers
import os
import secrets
import signal
import socket
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

import numpy as np

from ._checks import check_callable, whole
from ._library import ReefError
from ._rule import Rule

Array = np.ndarray[Any, Any]
_MISSING, _FRESH, _OLD = range(3)
_E_FILE, _E_ORDER = 13, 12


class Left(ReefError):
    """The coordinator has removed this agent from the run: the epoch that has begun goes on without it."""


class _Error(c.Structure):
    _fields_ = [("status", c.c_int), ("text", c.c_char * 320)]


_TELL = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p)


class _Broker(c.Structure):  # reef_broker_options
    _fields_ = [("size", c.c_size_t), ("run_file", c.c_char_p), ("listen", c.c_char_p), ("store", c.c_char_p),
                ("certificate", c.c_char_p), ("private_key", c.c_char_p), ("authority", c.c_char_p),
                ("only_print", c.c_bool), ("tell", _TELL), ("user", c.c_void_p), ("stop", c.c_void_p),
                ("log", c.c_int), ("level", c.c_int), ("leaves", c.c_char_p), ("hub", c.c_char_p), ("key", c.c_char_p)]


_lib: Optional[c.CDLL] = None
_p, _s, _d, _n, _i, _e = c.c_void_p, c.c_char_p, c.c_double, c.c_ssize_t, c.c_int, c.POINTER(_Error)
_PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "reef_net_key_make": (_i, [_s, _s, _e]),
    "reef_net_sign": (_i, [_s, _s, _s, _e]),
    "reef_net_broker": (_i, [c.POINTER(_Broker), _e]),
    "reef_agent_create": (_i, [c.POINTER(_p), _s, _s, _s, _s, _s, _e]),
    "reef_agent_destroy": (None, [c.POINTER(_p)]),
    "reef_agent_dimension": (c.c_int64, [_p]),
    "reef_agent_double": (_i, [_p]),
    "reef_agent_round": (c.c_int64, [_p]),
    "reef_agent_join": (_i, [_p, _d, _p, c.POINTER(_i), c.POINTER(_i), _e]),
    "reef_agent_waits_for": (None, [_p, c.c_char_p, c.c_size_t]),
    "reef_agent_begin": (_i, [_p, _p, _e]),
    "reef_agent_wait": (_i, [_p, _d, _p, c.POINTER(_i), _e]),
    "reef_agent_note": (_i, [_p, _s, _d, _e]),
    "reef_agent_combined": (_i, [_p]),
    "reef_agent_weight": (_d, [_p]),
    "reef_agent_neighbours": (_n, [_p]),
    "reef_agent_name": (_s, [_p, _n]),
    "reef_agent_trust": (_d, [_p, _n]),
    "reef_agent_presence": (_i, [_p, _n]),
    "reef_agent_refused": (_s, [_p, _n]),
    "reef_agent_explain": (_s, [_p, _n]),
}


def _library() -> c.CDLL:
    """libreef_net: $REEF_NET, beside libreef, in a source tree's build, or where the system has it."""
    global _lib
    if _lib is None:
        beside = Path(os.environ.get("REEF_LIBRARY") or __file__).parent / "libreef_net.so"
        built = Path(__file__).resolve().parents[2] / "build" / "release" / "libreef_net.so"
        found = [str(path) for path in (beside, built) if path.exists()]
        path = os.environ.get("REEF_NET") or (found[0] if found else ctypes.util.find_library("reef_net"))
        if not path:
            raise ImportError("agents on a network need libreef_net (build Reef with libsodium-dev and libnats-dev), "
                              "or its path in REEF_NET")
        library = c.CDLL(path)
        for name, (result, arguments) in _PROTOTYPES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        _lib = library
    return _lib


def _check(status: int, error: _Error) -> None:
    if status == 0:
        return
    text = error.text.decode(errors="replace")
    if status == _E_FILE:
        raise OSError(text)
    if status == _E_ORDER and "forked" in text:
        raise RuntimeError(text)
    if status == _E_ORDER and "was removed from run" in text:
        raise Left(text, status, "network")
    raise ReefError(text, status, "network")


def _call(name: str, *arguments: Any) -> None:
    error = _Error()
    _check(getattr(_library(), name)(*arguments, c.byref(error)), error)


# ---- models as rows ----

def _is_tensor(value: Any) -> bool:
    return hasattr(value, "detach") and hasattr(value, "is_floating_point")


def _as_array(value: Any) -> Array:
    if _is_tensor(value):
        value = value.detach().cpu()
        value = value.float() if value.element_size() < 4 and value.is_floating_point() else value
        return np.asarray(value.numpy())
    return np.asarray(value)


class _Layout:
    """Which numbers of a model are exchanged, and how the same kind of model is made of them again."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.module = hasattr(model, "state_dict") and hasattr(model, "load_state_dict")
        parts = model.state_dict() if self.module else model
        if isinstance(parts, dict):
            pairs = sorted(parts.items())
        elif isinstance(parts, (list, tuple)):
            pairs = [(str(i), value) for i, value in enumerate(parts)]
        else:
            pairs = [("", parts)]
        arrays = [(str(name), value, _as_array(value)) for name, value in pairs]
        self.parts = [(name, value, array) for name, value, array in arrays if array.dtype.kind == "f"]
        if not self.parts:
            raise TypeError(f"{type(model).__name__} has no floating-point numbers to exchange; arrays, tensors, lists or "
                            "dicts of them, and modules with state_dict() are models")
        self.count = sum(array.size for _, _, array in self.parts)
        plain = len(self.parts) == 1 and self.parts[0][0] == ""
        text = "".join(f"{name}\0{list(array.shape)}\0{array.dtype.name}\n" for name, _, array in self.parts)
        self.hash = bytes(32) if plain else hashlib.blake2b(text.encode(), digest_size=32).digest()

    def row(self, dtype: Any) -> Array:
        joined: Array = np.concatenate([array.ravel() for _, _, array in self.parts]).astype(dtype, copy=False)
        return joined

    def back(self, row: Array) -> Any:
        """The same kind of model with these numbers; modules are loaded in place."""
        new: dict[str, Any] = {}
        at = 0
        for name, value, array in self.parts:
            part = row[at:at + array.size].reshape(array.shape).astype(array.dtype)
            at += array.size
            if _is_tensor(value):
                import torch
                new[name] = torch.from_numpy(part.copy()).to(dtype=value.dtype, device=value.device)
            else:
                new[name] = part
        if self.module:
            self.model.load_state_dict({**self.model.state_dict(), **new})
            return self.model
        if isinstance(self.model, dict):
            return {key: new.get(str(key), value) for key, value in self.model.items()}
        if isinstance(self.model, (list, tuple)):
            return type(self.model)(new.get(str(i), value) for i, value in enumerate(self.model))
        return new[""]


# ---- the agent ----

@dataclass
class Exchange:
    """What became of a round."""

    round: int
    combined: bool  #: False: there was no quorum, the model is the own one
    weight: float  #: of the models that were combined, the own one included
    trust: dict[str, float]  #: effective weight over fair share, by neighbour
    present: list[str] = field(default_factory=list)  #: neighbours whose model of this round was used
    stale: list[str] = field(default_factory=list)  #: whose model of another round was used
    missing: list[str] = field(default_factory=list)
    why: dict[str, str] = field(default_factory=dict)  #: why the rule gave a neighbour its weight
    refused: dict[str, str] = field(default_factory=dict)  #: why frames of a neighbour were refused
    seconds: float = 0.0

    def suspects(self, below: float = 0.5) -> list[str]:
        """Neighbours with less than this share of a fair weight."""
        return [name for name, trust in self.trust.items() if trust < below]


class Pending:
    """An exchange under way."""

    def __init__(self, agent: "Agent", layout: _Layout) -> None:
        self._agent, self._layout, self._began = agent, layout, time.monotonic()

    def result(self) -> tuple[Any, Exchange]:
        """Waits for the round to end: the combined model, of the kind that was given, and what became of it."""
        row = self._agent._wait()
        return self._layout.back(row), self._agent._report(time.monotonic() - self._began)


_connected: Optional[int] = None  # the process, this one or one before it, in which an agent was at work


def _check_fork() -> None:
    """The threads of the network's library are not in a forked process, which would wait for them for ever."""
    if _connected not in (None, os.getpid()):
        raise RuntimeError("this process was forked from one in which a reef.Agent was at work; start it as a new one "
                           "(multiprocessing: the method spawn)")


class Agent:
    """One agent of a run on a network.

        with reef.Agent("run.yaml", key="alice.key") as agent:
            model = agent.join(model)                       # the network's model, if the run is under way
            for _ in agent.rounds(100):
                train(model)                                # your code, your data
                model, report = agent.exchange(model)       # robust combination with the neighbours

    run: the signed run file. key: the key file of this agent. coordinator: the identity R... that must have signed the run file; needed
    at the first start, unless all brokers are on this machine. state: folder for what must outlive the process (default: KEY.state).
    Network failures never raise, they are in the report; wrong models, keys, files and full disks do. While the agent cannot begin, the
    logger "reef" warns of the reason: after 3 s, and then once a minute.
    """

    _handle: Optional[c.c_void_p] = None
    _warns = True

    def __init__(self, run: Any, key: Any, coordinator: Optional[str] = None, state: Any = None) -> None:
        self.run, self.key = os.fspath(run), os.fspath(key)
        self.state = os.fspath(state) if state is not None else self.key + ".state"
        self._coordinator = coordinator
        self._left_alone = False  # a round may be under way whose result nobody will ask for
        self._process = os.getpid()
        for path in (self.run, self.key):
            if not os.path.exists(path):
                raise FileNotFoundError(path)
        _library()

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Saves, says good-bye, and ends."""
        if self._handle is not None and self._process == os.getpid():
            handle, self._handle = self._handle, None
            _library().reef_agent_destroy(c.byref(handle))

    def _open(self, model: Any) -> _Layout:
        global _connected
        if self._process != os.getpid():
            raise RuntimeError("an agent belongs to the process that made it, not to its forked children")
        layout = _Layout(model)
        if self._handle is None:
            _check_fork()
            handle = c.c_void_p()
            coordinator = self._coordinator.encode() if self._coordinator else None
            _call("reef_agent_create", c.byref(handle), self.run.encode(), self.key.encode(), coordinator,
                  self.state.encode(), layout.hash)
            self._handle, self._hash, _connected = handle, layout.hash, os.getpid()
            self.dimension = int(_library().reef_agent_dimension(handle))
            self.dtype = np.float64 if _library().reef_agent_double(handle) else np.float32
        if layout.count != self.dimension:
            raise TypeError(f"the model has {layout.count} numbers, but models of this run have {self.dimension}")
        if layout.hash != self._hash:
            raise TypeError("the model's names, shapes or types differ from those of the previous model")
        return layout

    @property
    def round(self) -> int:
        """The next round."""
        return int(_library().reef_agent_round(self._handle)) if self._handle is not None else 0

    def join(self, model: Any, timeout: Optional[float] = None) -> Any:
        """Waits until enough neighbours are present. Returns the model to begin with: the network's, if the run is under way, or the
        one given. TimeoutError after `timeout` seconds."""
        layout = self._open(model)
        row = layout.row(self.dtype).copy()
        ready, joined = c.c_int(), c.c_int()
        end = math.inf if timeout is None else time.monotonic() + timeout
        warn = self._warnings()
        while not ready.value:
            if time.monotonic() >= end:
                raise TimeoutError(self._waits_for() or "the agent cannot begin")
            next(warn)
            _call("reef_agent_join", self._handle, 0.2, row.ctypes.data, c.byref(ready), c.byref(joined))
        return layout.back(row) if joined.value else model

    def _waits_for(self) -> str:
        """Why the agent has not begun; "" if it has."""
        text = c.create_string_buffer(400)
        _library().reef_agent_waits_for(self._handle, text, len(text))
        return text.value.decode(errors="replace")

    def _warnings(self) -> Iterator[None]:
        """Each step warns, now and then, of what keeps the agent from beginning."""
        at = time.monotonic() + 3
        while True:
            if self._warns and time.monotonic() >= at:
                at = time.monotonic() + 60
                why = self._waits_for()
                if why:
                    logging.getLogger("reef").warning("the agent waits: %s", why)
            yield

    def begin(self, model: Any, **metrics: float) -> Pending:
        """Starts a round with this model; `result()` of the object returned waits for the round to end. metrics: up to four numbers that observers and
        Prometheus see, under names of at most 16 characters a-z, 0-9 and _."""
        layout = self._open(model)
        row = np.ascontiguousarray(layout.row(self.dtype))
        if not np.isfinite(row).all():
            raise ValueError("the model has NaN or infinite numbers")
        for name, value in metrics.items():
            _call("reef_agent_note", self._handle, name.encode(), float(value))
        if self._left_alone:
            self._left_alone = False
            with contextlib.suppress(ReefError):  # Ctrl-C came before the round began, or what is wrong is told below
                self._wait()
        _call("reef_agent_begin", self._handle, row.ctypes.data)
        return Pending(self, layout)

    def exchange(self, model: Any, **metrics: float) -> tuple[Any, Exchange]:
        """One round: sends the model to the neighbours and combines theirs with it by the rule of the run. metrics: as for begin.
        After Ctrl-C the round ends without the caller, and the next exchange waits for that first."""
        try:
            return self.begin(model, **metrics).result()
        except KeyboardInterrupt:
            self._left_alone = True
            raise

    def rounds(self, count: int) -> Iterator[int]:
        """Yields round numbers until `count` rounds of this agent are done; after a crash it resumes where the journal ends."""
        for _ in range(count):
            yield self.round

    def _wait(self) -> Array:
        row = np.empty(self.dimension, self.dtype)
        done = c.c_int()
        warn = self._warnings()
        while not done.value:  # in steps, so that Ctrl-C gets through
            next(warn)
            _call("reef_agent_wait", self._handle, 0.2, row.ctypes.data, c.byref(done))
        return row

    def _report(self, seconds: float) -> Exchange:
        lib, h = _library(), self._handle
        report = Exchange(self.round - 1, bool(lib.reef_agent_combined(h)), float(lib.reef_agent_weight(h)), {},
                          seconds=seconds)
        lists = {_MISSING: report.missing, _FRESH: report.present, _OLD: report.stale}
        for i in range(lib.reef_agent_neighbours(h)):
            name = lib.reef_agent_name(h, i).decode()
            presence = lib.reef_agent_presence(h, i)
            lists[presence].append(name)
            if report.combined and presence != _MISSING:
                report.trust[name] = float(lib.reef_agent_trust(h, i))
            for texts, text in ((report.why, lib.reef_agent_explain(h, i)), (report.refused, lib.reef_agent_refused(h, i))):
                if text:
                    texts[name] = text.decode(errors="replace")
        return report


# ---- several on this machine ----

def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _write_run(folder: Path, agents: int, count: int, port: int, terms: dict[str, Any]) -> str:
    keys = []
    for name in ["coordinator", *(f"agent-{k}" for k in range(agents))]:
        text = c.create_string_buffer(128)
        _call("reef_net_key_make", str(folder / f"{name}.key").encode(), text)
        keys.append(text.value.decode())
    lines = ["reef: 1", "run: swarm", f"id: {secrets.token_hex(16)}", f"coordinator: {keys[0].split()[0]}",
             f'brokers: ["nats://127.0.0.1:{port}"]', f"model: {{count: {count}}}", "agents:"]
    lines += [f'  agent-{k}: "{keys[k + 1]}"' for k in range(agents)]
    lines += [f"{key}: {json.dumps(value)}" for key, value in terms.items()]
    (folder / "draft.yaml").write_text("\n".join(lines) + "\n")
    run = str(folder / "run.yaml")
    _call("reef_net_sign", str(folder / "draft.yaml").encode(), str(folder / "coordinator.key").encode(), run.encode())
    return run


def _child(body: Callable[[], int]) -> int:
    """A forked process that runs body and nothing else."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        code = body()
    finally:
        os._exit(code)


def _serve(run: str, folder: Path) -> int:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # nats-server ends with this process

    def tell(_: Any, line: bytes) -> None:
        with open(folder / "broker.log", "ab") as log:
            log.write(line + b"\n")

    told = _TELL(tell)
    options = _Broker(size=c.sizeof(_Broker), run_file=run.encode(), store=str(folder / "store").encode(), tell=told)
    try:
        _call("reef_net_broker", c.byref(options))
    except (OSError, ReefError) as error:
        tell(None, str(error).encode())
    return 1


def _await_broker(folder: Path, process: int) -> None:
    log = folder / "broker.log"
    for _ in range(1200):
        if log.exists() and b"ready: " in log.read_bytes():
            return
        if os.waitpid(process, os.WNOHANG)[0]:
            break
        time.sleep(0.05)
    raise OSError("the broker does not start: " + (log.read_text().strip() if log.exists() else "is nats-server installed?"))


def _play(function: Callable[..., Any], k: int, run: str, folder: Path) -> int:
    answer: dict[str, Any]
    try:
        with Agent(run, folder / f"agent-{k}.key") as agent:
            agent._warns = False  # all of them are only about to start
            answer = {"value": function(agent, k)}
    except BaseException as error:  # noqa: BLE001 - told to the parent, whatever it is
        answer = {"error": f"{type(error).__name__}: {error}"}
    value = answer.get("value")
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        np.save(folder / f"result-{k}.npy", value)
        answer = {"array": True}
    try:
        text = json.dumps(answer, default=float)
    except (TypeError, ValueError):
        answer = {"error": f"it returns a {type(value).__name__} that JSON cannot hold; return numbers, texts, lists or an array"}
        text = json.dumps(answer)
    (folder / f"result-{k}.json").write_text(text)
    return 1 if "error" in answer else 0


def _ended(processes: list[int]) -> int:
    """Waits until one of these processes ends. The program's other children are not asked for: they are for somebody else to wait for."""
    while True:
        for process in processes:
            if os.waitpid(process, os.WNOHANG)[0]:
                return process
        time.sleep(0.02)


def _end(processes: dict[int, int], broker: int) -> None:
    for process in [*processes, broker]:
        try:
            os.kill(process, signal.SIGTERM)
            os.waitpid(process, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


def swarm(function: Callable[..., Any], agents: int = 8, *, count: int, graph: str = "complete", rule: str = "mref",
          malicious: float = 1 / 3, deadline: float = 30.0, step: float = 0.01) -> list[Any]:
    """Runs `function(agent, k)` once per agent, each in a process of its own (forked), with a broker on this machine.

    count: numbers in a model (float32). malicious: F, the most weight that may be malicious. step: the step size of the agents' learning,
    which sets mref's horizon. Returns what the functions return: arrays, or what JSON can hold. For notebooks and tests.
    """
    check_callable(function, "function")
    whole(agents, "agents", 1, 4096)
    whole(count, "count", 1, (1 << 31) - 1)
    if not isinstance(malicious, numbers.Real) or not 0 <= malicious < 0.5:
        raise ValueError(f"malicious is {malicious!r:.40}; it is a share of the weight, at least 0 and below 0.5")
    Rule(rule)  # raises what is wrong with it, before anything is started
    if _connected is not None:
        raise RuntimeError("reef.swarm forks, which a process in which a reef.Agent was at work cannot do; call it in a new process")
    terms = {"graph": graph, "rule": rule, "malicious": min(malicious, 0.4999), "deadline": f"{deadline}s",
             "strategy": f"diffusion:mu={step}", "largest": 1e30}
    with tempfile.TemporaryDirectory(prefix="reef-swarm-") as name:
        folder = Path(name)
        run = _write_run(folder, agents, count, _free_port(), terms)
        broker = _child(lambda: _serve(run, folder))
        left: dict[int, int] = {}
        try:
            _await_broker(folder, broker)
            left = {_child(lambda k=k: _play(function, k, run, folder)): k for k in range(agents)}
            failed = ""
            while left and not failed:
                process = _ended([broker, *left])
                if process == broker:
                    failed = "the broker has ended"
                k = left.pop(process, None)
                if k is not None and "error" in (answer := _answer(folder, k)):
                    failed = f"agent {k}: {answer['error']}"
            if failed:
                raise RuntimeError(failed)
            return [_result(folder, k) for k in range(agents)]
        finally:
            _end(left, broker)


def _answer(folder: Path, k: int) -> dict[str, Any]:
    path = folder / f"result-{k}.json"
    answer: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"error": "its process has ended"}
    return answer


def _result(folder: Path, k: int) -> Any:
    answer = _answer(folder, k)
    return np.load(folder / f"result-{k}.npy") if answer.get("array") else answer.get("value")
