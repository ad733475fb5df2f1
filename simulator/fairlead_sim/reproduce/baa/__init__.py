"""The experiments of paper 003: users that join one by one, under bottleneck-aware allocation."""

from typing import Final

from fairlead_sim.reproduce.baa import joining
from fairlead_sim.reproduce.experiment import Experiment

EXPERIMENTS: Final[tuple[Experiment, ...]] = joining.EXPERIMENTS
"""Figures 2 to 5. Figure 1 shows the trace, and no result."""
