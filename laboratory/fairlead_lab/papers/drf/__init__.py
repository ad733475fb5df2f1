"""Experiments of paper 001, Ghodsi et al., "Dominant Resource Fairness: Fair Allocation of Multiple Resource Types".

``tables`` and ``examples`` are exact answers to small problems; ``dynamic`` (figure 8) and ``slots`` (figures 9 to 12, an
experiment of ``closed_loop``) are simulations with the live allocator, as are ``utilisation`` and ``reduction`` (figures 13 and 14) on the work of ``facebook``.
"""

from typing import Final

from fairlead_lab.papers.drf import dynamic, examples, reduction, slots, tables, utilisation
from fairlead_lab.papers.experiment import Experiment

EXPERIMENTS: Final[tuple[Experiment, ...]] = (
    *tables.EXPERIMENTS,
    *examples.EXPERIMENTS,
    *dynamic.EXPERIMENTS,
    *slots.EXPERIMENTS,
    *utilisation.EXPERIMENTS,
    *reduction.EXPERIMENTS,
)
