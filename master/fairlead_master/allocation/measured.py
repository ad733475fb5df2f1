"""How much of what it declares a framework uses: the estimate that policies count where demand is measured.

A policy that follows use itself (``api.Policy.follows_use``) is told what tasks use now instead (``excess``).

A *sample* is one task: what it used in the mean of its life (CPU) or at its peak (memory, disk), over what was declared
for it, resource by resource. The estimate of a framework is the mean of its last samples without the smallest and
largest tenth, at least one at either end. It is robust in the sense that matters here: one task that runs away, or one
that hangs, moves nobody's share; and it is close to the mean, so that the sum over many tasks is right.

Before there are enough samples a framework is taken at its word. Resources nobody measures (GPUs, the operator's own) are
always taken at their word. Estimates are looked at again at intervals and followed only when they moved noticeably:
each change moves the framework's key and, under policies with prices, everybody's.
"""

from collections import OrderedDict
from math import fsum
from typing import Final

from fairlead_proto.ids import TaskId
from fairlead_proto.resources import Vector

SAMPLES_KEPT: Final = 64
"""Per framework: enough for a stable mean; a framework that changes what it runs is followed within as many tasks."""

SAMPLES_MIN: Final = 3
"""The least number of samples of which one can be dropped at either end."""

TRIMMED: Final = 0.1

RATIO_MIN: Final = 0.05
"""An idle task still keeps others from what it holds: nobody holds a cluster for nothing."""

RATIO_MAX: Final = 4.0
"""Where limits are not enforced tasks use more than they declared; beyond this a measurement is more likely wrong."""

INTERVAL_MS: Final = 5_000
"""As often as agents measure."""

FINENESS: Final = 1000
"""Policies that count what is measured count in this fraction of a resource's unit, so that all they are told is whole."""

CHANGE_MIN: Final = 0.05
"""Relative: what a single sample moves a full estimate by at most is below it."""

Factors = tuple[int, ...]
"""Used over declared in ``FINENESS``, by place in the vector; ``FINENESS`` where nothing is known."""


def taken_at_its_word(places: int) -> Factors:
    """Of a framework of which nothing is known."""
    return (FINENESS,) * places


def excess(used: Vector, held: Vector) -> Vector:
    """What tasks use beyond what they hold, place by place: below zero where they use less, though never all of it less.

    Both count the same tasks, those that were measured, so whatever else their framework has counts as it is held.
    """
    return tuple(
        [max(amount, round(RATIO_MIN * claim)) - claim for amount, claim in zip(used, held, strict=True)]
    )


class UseEstimate:
    """The estimate of one framework."""

    def __init__(self, places: int) -> None:
        self.factors: Factors = taken_at_its_word(places)
        """What is followed now."""
        self._samples: OrderedDict[TaskId, tuple[float | None, ...]] = OrderedDict()
        self._looked_ms: int | None = None

    @property
    def ratios(self) -> tuple[float, ...]:
        """The factors as numbers: 0.5 of a framework whose tasks use half of what is declared."""
        return tuple([factor / FINENESS for factor in self.factors])

    def sample(self, task_id: TaskId, declared: Vector, used: tuple[int | None, ...]) -> None:
        """A task has so far used ``used`` of what was declared for it; None where nobody measures.

        A later sample of a task replaces the earlier one.
        """
        self._samples[task_id] = tuple(
            [
                amount / claim if claim and amount is not None else None
                for claim, amount in zip(declared, used, strict=True)
            ]
        )
        self._samples.move_to_end(task_id)
        if len(self._samples) > SAMPLES_KEPT:
            self._samples.popitem(last=False)

    def look(self, now_ms: int) -> bool:
        """Follow the samples if it is time to and they have moved noticeably; whether ``factors`` changed."""
        if self._looked_ms is not None and now_ms - self._looked_ms < INTERVAL_MS:
            return False
        self._looked_ms = now_ms
        factors = tuple(
            [round(FINENESS * _estimate(column)) for column in zip(*self._samples.values(), strict=True)]
        )
        if not any(
            abs(new - old) > CHANGE_MIN * old for new, old in zip(factors, self.factors, strict=False)
        ):
            return False
        self.factors = factors
        return True


def _estimate(column: tuple[float | None, ...]) -> float:
    ratios = sorted(ratio for ratio in column if ratio is not None)
    if len(ratios) < SAMPLES_MIN:
        return 1.0
    dropped = max(1, int(TRIMMED * len(ratios)))
    middle = ratios[dropped:-dropped]
    return min(max(fsum(middle) / len(middle), RATIO_MIN), RATIO_MAX)
