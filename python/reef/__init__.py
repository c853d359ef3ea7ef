"""Reef: robust and efficient aggregation for learning over networks.

    import numpy as np, reef
    result, report = reef.aggregate(models, "vref", report=True)     # K arrays, tensors or state_dicts
    print(report.trust)                                              # who was believed

reef.aggregate, reef.Rule       aggregation of arrays, tensors and models
reef.rules, reef.attacks        what there is, with parameters from the library's own tables
reef.run                        experiments from YAML files
reef.simulate                   learning over a network with your own gradients
reef.compat.byzfl               the interface of ByzFL
reef.flower                     strategies for Flower
"""
from ._experiment import Results, run
from ._kinds import Field, Kind, attacks, kinds, rules
from ._library import ReefError, get_threads, set_threads
from ._library import version as __version__
from ._rule import Report, Rule, State, aggregate
from ._simulate import Simulation, Step, simulate

__all__ = ["Field", "Kind", "ReefError", "Report", "Results", "Rule", "Simulation", "State", "Step", "__version__",
           "aggregate", "attacks", "get_threads", "kinds", "rules", "run", "set_threads", "simulate"]
