"""Experiments of paper 001, Ghodsi et al., "Dominant Resource Fairness: Fair Allocation of Multiple Resource Types".

``tables`` and ``examples`` are exact answers to small problems.
"""

from typing import Final

from fairlead_sim.reproduce.drf import dynamic, examples, tables
from fairlead_sim.reproduce.experiment import Experiment

EXPERIMENTS: Final[tuple[Experiment, ...]] = (
    *tables.EXPERIMENTS,
    *examples.EXPERIMENTS,
    *dynamic.EXPERIMENTS,
)
