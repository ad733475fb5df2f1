"""Which policy is best by a measure, and which cannot be told from it.

Policies of one seed run the same jobs, so they are compared pair by pair, which says far more than two intervals side by
side: of several seeds by Student's interval of the differences, of one run by drawing its jobs again (``resampling``). By a
measure that has neither only those within a hundredth are taken as alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fairlead_lab.metrics.intervals import Estimate, estimate
from fairlead_lab.metrics.measures import Best, Measure
from fairlead_lab.metrics.resampling import Ratio, plain_ratio, ratio_of_means
from fairlead_lab.metrics.result import PolicyResult

CROWDED_MAX: Final = 0.01
"""Of all task time on hosts promised twice: beyond, tasks start at once and then crawl, and what counts starts means little."""
_ALIKE: Final = 0.01
"""Policies that differ by less than a hundredth are the same to an operator."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """What a measure says of the policies of a study."""

    best: frozenset[int]
    """Places of the best policy and of those that cannot be told from it; empty if all are alike or nobody asks."""
    has_interval: bool
    """Whether chance was looked at; if not, those within a hundredth of the best are taken as alike."""
    left_out: frozenset[int] = frozenset()
    """Places of those that are not compared by this measure, since they promise hosts twice."""
    finest: float | None = None
    """How large a difference from the best the seeds could tell: the half width of its interval, the widest of those that are
    not told from the best, or of all if each is. None of one seed, or of a single policy."""


def rank(measure: Measure, results: Mapping[str, Sequence[PolicyResult]]) -> Ranking:
    """Rank the policies of a study; those that promise hosts twice are left out where starts are counted."""
    left_out = frozenset(
        place for place, runs in enumerate(results.values()) if measure.is_of_starts and is_crowded(runs)
    )
    found = {
        place: (value.mean, runs)
        for place, runs in enumerate(results.values())
        if (value := measure.of(runs)) is not None and place not in left_out
    }
    has_interval = measure.ratio is not None or any(len(runs) > 1 for _, runs in found.values())
    if measure.best is Best.NEITHER or len(found) < 2:
        return Ranking(frozenset(), has_interval, left_out)
    choose = min if measure.best is Best.LOW else max
    top = choose(found, key=lambda place: found[place][0])
    best = frozenset(
        place for place in found if place == top or _are_alike(measure, *found[place], *found[top])
    )
    half_widths = {
        place: _difference(measure, runs, found[top][1]).half_width
        for place, (_, runs) in found.items()
        if place != top
    }
    known = {place: width for place, width in half_widths.items() if width is not None}
    finest = max((width for place, width in known.items() if place in best), default=None)
    return Ranking(
        frozenset() if len(best) == len(found) else best,
        has_interval,
        left_out,
        max(known.values(), default=None) if finest is None else finest,
    )


def is_crowded(runs: Sequence[PolicyResult]) -> bool:
    """Whether hosts were promised more than they have for more than a little of the time."""
    return max(run.crowded_fraction for run in runs) > CROWDED_MAX


def completion_ratio(runs: Sequence[PolicyResult], first: Sequence[PolicyResult]) -> Ratio | None:
    """Mean completion over that of another policy under the same seeds; None if nothing can be compared.

    Of one run the interval is from its jobs; of several, Student's, of the seeds' own ratios.
    """
    if len(runs) == 1:
        return ratio_of_means(runs[0].completions_ms, first[0].completions_ms)
    ratios = [
        plain_ratio(run.completions_ms, other.completions_ms) for run, other in zip(runs, first, strict=True)
    ]
    known = [ratio for ratio in ratios if ratio is not None]
    if not known or len(known) < len(ratios):
        return None
    mean = estimate(known)
    half_width = mean.half_width or 0.0
    return Ratio(mean.mean, mean.mean - half_width, mean.mean + half_width)


def _are_alike(
    measure: Measure,
    value: float,
    runs: Sequence[PolicyResult],
    best: float,
    best_runs: Sequence[PolicyResult],
) -> bool:
    if abs(value - best) <= _ALIKE * max(abs(value), abs(best)):
        return True
    if len(runs) > 1:
        difference = _difference(measure, runs, best_runs)
        return abs(difference.mean) <= (difference.half_width or 0.0)
    ratio = measure.ratio(runs[0], best_runs[0]) if measure.ratio is not None else None
    return (
        ratio is not None
        and ratio.low is not None
        and ratio.high is not None
        and ratio.low <= 1 <= ratio.high
    )


def _difference(measure: Measure, runs: Sequence[PolicyResult], others: Sequence[PolicyResult]) -> Estimate:
    """Seed by seed."""
    pairs = zip(runs, others, strict=True)
    return estimate([_pick(measure, run) - _pick(measure, other) for run, other in pairs])


def _pick(measure: Measure, run: PolicyResult) -> float:
    value = measure.pick(run)
    assert value is not None, "a measure that one run lacks has no mean"
    return value
