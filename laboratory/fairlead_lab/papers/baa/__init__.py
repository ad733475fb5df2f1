"""The experiments of paper 003: users that join one by one, under bottleneck-aware allocation."""

from typing import Final

from fairlead_lab.papers.baa import joining
from fairlead_lab.papers.experiment import Experiment

EXPERIMENTS: Final[tuple[Experiment, ...]] = joining.EXPERIMENTS
"""Figures 2 to 5. Figure 1 shows the trace, and no result."""
