"""Experiments of this paper."""

from typing import Final

from fairlead_sim.reproduce.experiment import Experiment

EXPERIMENTS: Final[tuple[Experiment, ...]] = ()
