"""Strategies for Flower that tolerate malicious and faulty clients.

    from reef.flower import RobustFedAvg
    strategy = RobustFedAvg()                        # instead of FedAvg, FedMedian, Krum, ...
    strategy.start(grid=grid, initial_arrays=arrays, num_rounds=10)

RobustFedAvg, FedREF, FedVREF, FedMREF   on the message API (flwr.serverapp)
LegacyRobust                             around any strategy of flwr.server.strategy
"""
from ._strategy import FedMREF, FedREF, FedVREF, RobustFedAvg

__all__ = ["FedMREF", "FedREF", "FedVREF", "LegacyRobust", "RobustFedAvg"]


def __getattr__(name: str) -> object:
    """The legacy adapter is loaded when it is asked for: Flower may drop what it stands on."""
    if name == "LegacyRobust":
        from ._legacy import LegacyRobust

        return LegacyRobust
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
