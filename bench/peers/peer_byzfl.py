"""ByzFL: its aggregators on numpy arrays and on tensors."""
from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
import types
from typing import Any

from case import Array, Case, Peer

QUANTILE_MAX = 1 << 24


def aggregators() -> Any:
    """byzfl.aggregators without the top of the package, which also loads the training framework and what that needs
    (torchvision, matplotlib, seaborn)."""
    spec = importlib.util.find_spec("byzfl")
    if spec is None or spec.submodule_search_locations is None:
        raise ImportError("No module named 'byzfl'")
    package = types.ModuleType("byzfl")
    package.__path__ = list(spec.submodule_search_locations)
    sys.modules["byzfl"] = package
    return importlib.import_module("byzfl.aggregators.aggregators")


def load(k: int, f: int, threads: int) -> Peer:
    import numpy
    import torch

    del k
    byzfl = aggregators()
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)

    def centered(x: Any) -> Any:
        return byzfl.CenteredClipping()(x)  # a new one each time: it remembers its last result

    rules: list[tuple[str, str, str, Any]] = [
        ("mean", "mean", "Average", byzfl.Average()),
        ("median", "median", "Median", byzfl.Median()),
        ("trimmed", f"trimmed:f={f}", "TrMean", byzfl.TrMean(f)),
        ("meamed", f"meamed:f={f}", "Meamed", byzfl.Meamed(f)),
        ("geomed", "geomed:dialect=byzfl", "GeometricMedian", byzfl.GeometricMedian()),
        ("krum", f"krum:f={f},dialect=byzfl", "Krum", byzfl.Krum(f)),
        ("multikrum", f"multikrum:f={f},dialect=byzfl", "MultiKrum", byzfl.MultiKrum(f)),
        ("cclip", "cclip", "CenteredClipping", centered),
    ]

    def median_in_parts(x: Any) -> Any:
        """torch.quantile, which Median calls, refuses more numbers than this at once."""
        if x.numel() <= QUANTILE_MAX:
            return byzfl.Median()(x)
        return torch.cat([byzfl.Median()(part) for part in torch.split(x, QUANTILE_MAX // x.shape[0], dim=1)])

    ties = {"meamed": 1e-3}  # which of two values equally far from the median is left out
    norms = {"cclip": 1e-2, "geomed": 1e-3}  # long sums of squares in float32 move what is clipped or weighted by them

    def case(rule: str, spec: str, name: str, run: Any, *convert: Any) -> Case:
        return Case(rule, spec, name, run, *convert, tolerance=norms.get(rule, 1e-4), ties=ties.get(rule, 0))

    def to_array(tensor: Any) -> Array:
        return tensor.numpy()

    cases = [case(rule, spec, f"{name} [np]", run) for rule, spec, name, run in rules]
    for rule, spec, name, run in rules:
        run = median_in_parts if rule == "median" else run
        cases.append(case(rule, spec, f"{name} [torch]", run, torch.from_numpy, to_array))
    version = f"{importlib.metadata.version('byzfl')} (numpy {numpy.__version__}, torch {torch.__version__})"
    return Peer("byzfl", version, cases)
