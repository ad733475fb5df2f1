"""What an operator asks of a policy, and which policy of a study answers best."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fairlead_sim.simulating.measures import FIXED, Best, Kind, Measure, best_of
from fairlead_sim.simulating.result import PolicyResult
from fairlead_sim.simulating.study import Outcome

CROWDED_MAX: Final = 0.01
"""Of all task time on hosts promised twice: beyond, tasks start at once and then crawl, and what counts starts means little."""


@dataclass(frozen=True, slots=True)
class Question:
    """What an operator asks."""

    text: str
    subject: str
    """What it is about, in a few words."""
    measure: Measure
    is_of_starts: bool = False
    """Whether it is answered by when tasks start and what they hold, and not by when they are over."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One question and every policy's number."""

    question: Question
    numbers: list[str]
    """By policy, written out."""
    best: frozenset[int]
    """Places of the policies within a hundredth of the best; empty if all are alike."""


def answers(outcome: Outcome) -> list[Answer]:
    """The questions that this study's numbers answer."""
    crowded = {
        place
        for place, runs in enumerate(outcome.results.values())
        if max(run.crowded_fraction for run in runs) > CROWDED_MAX
    }
    found = []
    for question in _QUESTIONS:
        estimates = [question.measure.of(runs) for runs in outcome.results.values()]
        if any(each is not None for each in estimates):
            compared = [
                None if question.is_of_starts and place in crowded else each
                for place, each in enumerate(estimates)
            ]
            best = best_of(question.measure, compared)
            found.append(Answer(question, question.measure.write_all(estimates), best))
    return found


def summary(outcome: Outcome) -> list[str]:
    """The answers in sentences: who is best at most, who is best at what, and which numbers are not to be compared."""
    policies = outcome.study.policies
    if len(policies) < 2:
        return ["One policy was run, so there is nothing to choose from: name several to compare them."]
    known = answers(outcome)
    differing = [answer for answer in known if answer.best]
    if not differing:
        return ["The policies hardly differ on this workload: is the cluster ever short of anything?"]
    lines = []
    wins = {place: sum(place in answer.best for answer in differing) for place in range(len(policies))}
    most = max(wins.values())
    leaders = [policies[place] for place, count in wins.items() if count == most]
    lines.append(
        f"{_listed(leaders)} {'is' if len(leaders) == 1 else 'are each'} best, or within a hundredth of it, in {most} of the "
        f"{len(differing)} questions below in which the policies differ. Which question matters is for you to say."
    )
    for place, policy in enumerate(policies):
        strong = [answer.question.subject for answer in differing if place in answer.best]
        lines.append(
            f"{policy}: best in {_listed(strong)}." if strong else f"{policy}: best in none of them."
        )
    return [*lines, *_caveats(outcome)]


def _caveats(outcome: Outcome) -> list[str]:
    lines = []
    for policy, runs in outcome.results.items():
        crowded = max(run.crowded_fraction for run in runs)
        if crowded > CROWDED_MAX:
            lines.append(
                f"Under {policy} {100 * crowded:.1f} % of all task time ran on hosts that were promised more than they "
                "have. How much that slows tasks down is a model, so its times hang on the --slowdown that was set. Tasks "
                "start sooner there and run longer, so it is not compared in waits, shares and use."
            )
        if not all(run.is_complete for run in runs):
            lines.append(
                f"Under {policy} jobs were left undone; its times are of those that finished, and look too good."
            )
    return lines


def _largest_wait(run: PolicyResult) -> float | None:
    return run.waits_by_size[-1].wait.mean if run.waits_by_size else None


def _in_use(run: PolicyResult) -> float | None:
    """Of the resource that is used most."""
    return max((use.held_until_last_arrival - use.over for use in run.resources.values()), default=None)


def _fixed(name: str) -> Measure:
    return next(measure for measure in FIXED if measure.name == name)


_QUESTIONS: Final = (
    Question(
        "Under which are jobs done soonest, on average?", "the mean completion", _fixed("completion_ms.mean")
    ),
    Question("Under which is a typical job done soonest?", "the typical job", _fixed("completion_ms.p50")),
    Question(
        "Under which are the unlucky jobs slowed down least?", "the unlucky job", _fixed("slowdown.p95")
    ),
    Question(
        "Under which do the largest tasks wait least?",
        "the largest tasks",
        Measure("", "mean wait of the largest quarter of tasks", Kind.TIME, Best.LOW, _largest_wait),
        is_of_starts=True,
    ),
    Question(
        "Under which are fewest people worse off than with machines of their own?",
        "nobody being worse off than alone",
        _fixed("violations"),
    ),
    Question(
        "Under which do those who want more have the most equal shares?",
        "equal shares",
        _fixed("jain"),
        is_of_starts=True,
    ),
    Question(
        "Under which is most of the cluster in use while work arrives?",
        "the use of the cluster",
        Measure("", "use of the busiest resource until the last arrival", Kind.FRACTION, Best.HIGH, _in_use),
        is_of_starts=True,
    ),
)


def _listed(words: Sequence[str]) -> str:
    return (
        " and ".join(([", ".join(words[:-1])] if len(words) > 1 else []) + [words[-1]])
        if words
        else "nothing"
    )
