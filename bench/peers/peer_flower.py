"""Flower: the functions behind its strategies FedAvg, FedMedian, FedTrimmedAvg and Krum."""
from __future__ import annotations

import importlib.metadata
from typing import Any

from case import Array, Case, Peer


def prepare(x: Array) -> list[tuple[list[Array], int]]:
    """What a strategy gets: per client a list of layers (here one) and its number of examples."""
    return [([row], 1) for row in x]


def first_layer(layers: list[Array]) -> Array:
    return layers[0]


def load(k: int, f: int, threads: int) -> Peer:
    import numpy
    from flwr.server.strategy import aggregate as flower

    del threads
    share = (f + 0.5) / k  # Flower cuts int(share * k) values on each side

    def case(rule: str, spec: str, name: str, run: Any) -> Case:
        return Case(rule, spec, name, run, prepare, first_layer)

    cases = [
        case("mean", "mean", "aggregate", flower.aggregate),
        case("median", "median", "aggregate_median", flower.aggregate_median),
        case("trimmed", f"trimmed:f={f}", "aggregate_trimmed_avg", lambda r: flower.aggregate_trimmed_avg(r, share)),
        case("krum", f"krum:f={f}", "aggregate_krum", lambda r: flower.aggregate_krum(r, f, 0)),
        case("multikrum", f"multikrum:f={f}", "aggregate_krum, to_keep", lambda r: flower.aggregate_krum(r, f, k - f)),
    ]
    return Peer("flower", f"{importlib.metadata.version('flwr')} (numpy {numpy.__version__})", cases)
