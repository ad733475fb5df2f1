"""The simulations of paper 004: processes that use one resource at a time, under the live policy ``bbf``.

``timesharing`` is the machine, which `fairlead timeshare` runs too; ``study`` is one figure on it, and ``sharing``,
``entitlements`` and ``bottlenecks`` have the figures.
"""

from typing import Final

from fairlead_lab.papers.bbf import bottlenecks, entitlements, sharing
from fairlead_lab.papers.experiment import Experiment

EXPERIMENTS: Final[tuple[Experiment, ...]] = tuple(
    [study.experiment() for study in (*sharing.STUDIES, *entitlements.STUDIES, *bottlenecks.STUDIES)]
)
"""Figures 2 to 14. Figure 1 is an example of the format of programs."""
