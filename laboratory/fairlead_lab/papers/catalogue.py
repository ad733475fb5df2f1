"""All experiments by id. A paper's modules are imported when one of its experiments is asked for."""

from collections.abc import Sequence
from importlib import import_module
from typing import Final

from fairlead_lab.papers.experiment import PAPERS, Experiment

_PACKAGES: Final = tuple(PAPERS)
"""Each package of this name has an ``EXPERIMENTS``, in the order of the paper."""


class UnknownExperiment(ValueError):
    """No experiment has this id; the message names those that come close."""


def all_experiments() -> list[Experiment]:
    """Every experiment, by paper and in the paper's order."""
    return [experiment for package in _PACKAGES for experiment in _of(package)]


def find(experiment_id: str) -> Experiment:
    """The experiment of this id.

    Raises:
        UnknownExperiment: there is none.
    """
    package = experiment_id.partition("-")[0]
    if package not in _PACKAGES:
        raise UnknownExperiment(
            f"id: expected one that begins with {', '.join(f'{name}-' for name in _PACKAGES)}, got {experiment_id!r}"
        )
    experiments = {experiment.id: experiment for experiment in _of(package)}
    if experiment_id not in experiments:
        raise UnknownExperiment(f"id: expected one of {', '.join(experiments)}, got {experiment_id!r}")
    return experiments[experiment_id]


def _of(package: str) -> Sequence[Experiment]:
    module = import_module(f"fairlead_lab.papers.{package}")
    experiments: Sequence[Experiment] = module.EXPERIMENTS
    return experiments
