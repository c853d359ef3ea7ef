"""Reef: Byzantine-robust aggregation for federated and decentralised learning.

    import numpy as np, reef
    result, report = reef.aggregate(models, "vref", report=True)     # K arrays, tensors or state_dicts
    print(report.trust)                                              # relative weight of each input

reef.aggregate, reef.Rule       aggregation of arrays, tensors and models
reef.rules, reef.attacks        all rules and attacks, with their parameters
reef.load_plugin                rules, attacks and problems of your own from a shared library
reef.run                        experiments from YAML files, with problems of the library or your own
reef.torch.Problem              a PyTorch model as such a problem
reef.data                       the shipped digits, MNIST's idx files, partitions over agents
reef.simulate                   learning over a network with your own gradients
reef.compat.byzfl               the interface of ByzFL
reef.flower                     strategies for Flower
reef.Agent, reef.swarm          agents on a network, around your own training loop
"""
from typing import Any

from ._agent import Agent, Exchange, Left, swarm
from ._experiment import Results, run
from ._kinds import Field, Kind, attacks, kinds, load_plugin, rules
from ._library import ReefError, get_threads, set_threads
from ._library import version as __version__
from ._problem import register_problem
from ._rule import Report, Rule, State, aggregate
from ._simulate import Simulation, Step, simulate

__all__ = ["Agent", "Exchange", "Field", "Kind", "Left", "ReefError", "Report", "Results", "Rule", "Simulation", "State", "Step", "__version__",
           "aggregate", "attacks", "get_threads", "kinds", "load_plugin", "register_problem", "rules",
           "run", "set_threads", "simulate", "swarm"]


def __getattr__(name: str) -> Any:
    """Modules that few need, some with more than numpy, are imported when they are first used: reef.data.digits() after `import reef`."""
    if name in ("data", "flower", "torch"):
        from importlib import import_module

        return import_module(f"reef.{name}")
    raise AttributeError(f"module 'reef' has no attribute {name!r}")
