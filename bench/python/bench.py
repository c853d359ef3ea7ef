#!/usr/bin/env python3
"""What users wait for: the same list of K arrays through reef.aggregate, numpy, ByzFL and Flower, whichever this interpreter has.

    bench.py ENVIRONMENT [--k K] [--length M] [--repeats N]

Everything counts: collecting pointers or stacking the list, the aggregation, memory for the result. In every repeat each function of a
rule runs once, in random order; the least of the repeats, in milliseconds, all threads allowed. Then: what the Python side adds to the bare
call of the library; rows of 16 bits, over the time of as many float32 numbers; and calls with few numbers beside np.mean."""
from __future__ import annotations

import argparse
import ctypes
import sys
from pathlib import Path
from typing import Any, Callable

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench" / "peers"), str(ROOT / "tests" / "python")]

import numpy as np  # noqa: E402
import reef  # noqa: E402
from reef import _library, _rows  # noqa: E402
from timing import interleave  # noqa: E402

Task = Callable[[], Any]


def numpy_tasks(rows: list[np.ndarray], f: int) -> dict[str, dict[str, Task]]:
    k = len(rows)
    return {
        "mean": {"np.mean": lambda: np.mean(rows, axis=0), "np.add, in place": lambda: sum(rows[1:], rows[0]) / k},
        "median": {"np.median": lambda: np.median(rows, axis=0)},
        "trimmed": {"np.sort, mean": lambda: np.sort(rows, axis=0)[f:k - f].mean(axis=0)},
    }


def byzfl_tasks(rows: list[np.ndarray], f: int) -> dict[str, dict[str, Task]]:
    """ByzFL and reef.compat.byzfl, class by class."""
    import peer_byzfl
    from reef.compat import byzfl as ours

    theirs = peer_byzfl.aggregators()
    classes = {"mean": ("Average", ()), "median": ("Median", ()), "trimmed": ("TrMean", (f,)), "meamed": ("Meamed", (f,)),
               "krum": ("Krum", (f,)), "multikrum": ("MultiKrum", (f,)), "geomed": ("GeometricMedian", ()),
               "cclip": ("CenteredClipping", ())}
    tasks: dict[str, dict[str, Task]] = {}
    for rule, (name, arguments) in classes.items():
        for label, module in (("byzfl", theirs), ("reef.compat.byzfl", ours)):
            made = getattr(module, name)
            tasks.setdefault(rule, {})[f"{label} {name}"] = lambda made=made, arguments=arguments: made(*arguments)(rows)
    return tasks


def flower_tasks(rows: list[np.ndarray], f: int) -> dict[str, dict[str, Task]]:
    """Flower's own functions of its strategies, and RobustFedAvg's inside, on the same lists."""
    from flwr.server.strategy import aggregate as flower
    from reef._federation import Reply, check_layouts, combine, weigh

    k = len(rows)
    results = [([row], 10) for row in rows]

    def robust(rule: str) -> Task:
        def run() -> Any:
            replies = [Reply(i, {"w": row}, 10) for i, row in enumerate(rows)]
            check_layouts(replies, None)
            weigh(replies, True, 2.0)
            return combine(replies, rule, False, 1)

        return run

    return {
        "mean": {"flower FedAvg": lambda: flower.aggregate(results), "reef.flower, mean": robust("mean")},
        "median": {"flower FedMedian": lambda: flower.aggregate_median(results), "reef.flower, median": robust("median")},
        "trimmed": {"flower FedTrimmedAvg": lambda: flower.aggregate_trimmed_avg(results, (f + 0.5) / k)},
        "krum": {"flower Krum": lambda: flower.aggregate_krum(results, f, 0)},
        "ref": {"reef.flower, ref": robust("ref")},
    }


def reef_tasks(rows: list[np.ndarray], f: int) -> dict[str, dict[str, Task]]:
    specs = {"mean": "mean", "median": "median", "trimmed": f"trimmed:f={f}", "meamed": f"meamed:f={f}",
             "krum": f"krum:f={f}", "multikrum": f"multikrum:f={f}", "geomed": "geomed", "cclip": "cclip", "ref": "ref",
             "vref": "vref"}
    return {rule: {"reef.aggregate": lambda spec=spec: reef.aggregate(rows, spec)} for rule, spec in specs.items()}


def collect(rows: list[np.ndarray], f: int) -> dict[str, dict[str, Task]]:
    tasks = reef_tasks(rows, f)
    for name, make in (("numpy", numpy_tasks), ("byzfl", byzfl_tasks), ("flwr", flower_tasks)):
        try:
            for rule, more in make(rows, f).items():
                tasks[rule].update(more)
        except ImportError as error:
            print(f"{name}: not in this environment ({error})")
    return tasks


def bare_call(rows: list[np.ndarray], out: np.ndarray, spec: str) -> Task:
    """The call of the library with everything made ready."""
    rule = reef.Rule(spec)
    batch, _ = _rows.split(rows, False)
    pointers, lengths, types = batch.pointers([None]), batch.lengths([None]), batch.types([None])
    outs = (ctypes.c_void_p * 1)(out.ctypes.data)
    arguments = (len(rows), 1, lengths, types, pointers, outs, None, -1, 0, None, None, None, 0)

    def run() -> None:
        if _library.lib.reef_ffi_apply(rule.handle.pointer, *arguments) != 0:
            raise RuntimeError("the bare call failed")

    run.batch = batch  # type: ignore[attr-defined] # keeps what the pointers point to
    return run


def overhead(rows: list[np.ndarray], repeats: int) -> None:
    out = np.empty_like(rows[0])
    for spec in ("mean", "median", "ref"):
        tasks = [bare_call(rows, out, spec), lambda spec=spec: reef.aggregate(rows, spec, out=out),
                 lambda spec=spec: reef.aggregate(rows, spec)]
        bare, prepared, fresh = (1e3 * min(times.wall) for times in interleave(tasks, max(repeats, 15)))
        print(f"{spec:10} bare call {bare:8.2f} ms   reef.aggregate into out {prepared - bare:+6.2f} ms   "
              f"with a new result {fresh - bare:+6.2f} ms")


def halves(rows: list[np.ndarray], repeats: int) -> None:
    """Rows of 16 bits over float32; the goal is 0.8."""
    narrow = [row.astype(np.float16) for row in rows]
    kinds = {"float32": rows, "float16": narrow}
    try:
        import torch

        kinds["bfloat16"] = [torch.from_numpy(row).bfloat16() for row in rows]
    except ImportError as error:
        print(f"bfloat16: not in this environment ({error})")
    for spec in ("mean", "median", "ref"):
        tasks = [lambda spec=spec, given=given: reef.aggregate(given, spec) for given in kinds.values()]
        best = [1e3 * min(times.wall) for times in interleave(tasks, max(repeats, 7))]
        print(f"{spec:10} " + "   ".join(f"{name} {time:8.2f} ms, {time / best[0]:5.2f} x" for name, time in zip(kinds, best))
              + "   (goal 0.80 x)")


def short(repeats: int, calls: int = 500) -> None:
    """Calls with few numbers, 8 rows of M, through a reef.Rule; the goal is the time of np.mean."""
    rng = np.random.default_rng(2)
    for length in (4, 16, 64):
        x = rng.standard_normal((8, length), dtype=np.float32)
        specs = ["mean", "median", "trimmed:f=1", "ref", "krum:f=1", "vref", "mref"]
        rules = [reef.Rule(spec) for spec in specs]
        state = reef.State()

        def many(call: Task) -> Task:
            return lambda: [call() for _ in range(calls)]

        tasks = [many(lambda: np.mean(x, axis=0))]
        tasks += [many(lambda rule=rule: rule(x, state=state if rule.name == "mref" else None)) for rule in rules]
        best = [1e6 * min(times.wall) / calls for times in interleave(tasks, max(repeats, 15))]
        for name, time in zip(["np.mean", *specs], best):
            print(f"8 x {length:<4} {name:14} {time:8.2f} us per call   {time / best[0]:6.2f} x np.mean   (goal 1.00 x)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment")
    parser.add_argument("--k", type=int, default=32)
    parser.add_argument("--length", type=int, default=1000000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    base = rng.normal(size=options.length).astype(np.float32)
    rows = [base + 0.1 * rng.standard_normal(options.length, dtype=np.float32) for _ in range(options.k)]
    print(f"{options.environment}: Python {sys.version.split()[0]}, numpy {np.__version__}, reef {reef.__version__}; "
          f"{options.k} arrays of {options.length} float32")
    for rule, tasks in collect(rows, options.k // 5).items():
        times = interleave(list(tasks.values()), options.repeats)
        best = {name: 1e3 * min(found.wall) for name, found in zip(tasks, times)}
        for name, milliseconds in best.items():
            print(f"{rule:10} {name:32} {milliseconds:10.2f} ms   {milliseconds / best['reef.aggregate']:7.1f} x reef.aggregate")
    overhead(rows, options.repeats)
    halves(rows, options.repeats)
    short(options.repeats)


if __name__ == "__main__":
    main()
