"""PyTorch on the processor."""
from __future__ import annotations

from typing import Any

from case import Case, Peer

QUANTILE_MAX = 1 << 24  # torch.quantile refuses more numbers than this


def load(k: int, f: int, threads: int) -> Peer:
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)

    def quantile(x: Any) -> Any:
        if x.numel() <= QUANTILE_MAX:
            return torch.quantile(x, 0.5, dim=0)
        return torch.cat([torch.quantile(part, 0.5, dim=0) for part in torch.split(x, QUANTILE_MAX // k, dim=1)])

    def trimmed(x: Any) -> Any:
        return torch.sort(x, dim=0).values[f:k - f].mean(dim=0)

    def case(rule: str, spec: str, name: str, run: Any) -> Case:
        return Case(rule, spec, name, run, torch.from_numpy, lambda tensor: tensor.numpy())

    cases = [
        case("mean", "mean", "torch.mean", lambda x: torch.mean(x, dim=0)),
        case("median", "median:even=lower", "torch.median (lower)", lambda x: torch.median(x, dim=0).values),
        case("median", "median", "torch.quantile 0.5", quantile),
        case("trimmed", f"trimmed:f={f}", "torch.sort, mean", trimmed),
    ]
    return Peer("torch", torch.__version__, cases)
