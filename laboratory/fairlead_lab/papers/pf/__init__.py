"""Experiments of paper 000: T. Bonald and J. Roberts, "Enhanced Cluster Computing Performance through Proportional Fairness".

``rates`` asks the solvers how fast jobs are served in a state; ``chain`` makes the stationary distribution of it, ``fluid`` a
simulation with intervals (``intervals``). ``dynamic`` has figures 1 to 3, ``claims`` 4 and 5, ``tasks`` 6, ``limits`` the
formulas of light and heavy traffic.
"""

from typing import Final

from fairlead_lab.papers.experiment import Experiment
from fairlead_lab.papers.pf import claims, dynamic, limits, tasks

EXPERIMENTS: Final[tuple[Experiment, ...]] = (
    *dynamic.EXPERIMENTS,
    *claims.EXPERIMENTS,
    *tasks.EXPERIMENTS,
    *limits.EXPERIMENTS,
)
