"""What an operator asks of a policy, and which policy of a study answers best."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from fairlead_sim.simulating.measures import FIXED, Best, Kind, Measure
from fairlead_sim.simulating.policy_words import in_words
from fairlead_sim.simulating.resampling import Ratio
from fairlead_sim.simulating.result import PolicyResult
from fairlead_sim.simulating.study import Outcome
from fairlead_sim.simulating.telling_apart import completion_ratio, is_crowded, rank


@dataclass(frozen=True, slots=True)
class Question:
    """What an operator asks."""

    text: str
    subject: str
    """What it is about, in a few words."""
    meaning: str
    """What the number is, for somebody who has never heard of it."""
    measure: Measure


@dataclass(frozen=True, slots=True)
class Answer:
    """One question and every policy's number."""

    question: Question
    numbers: list[str]
    """By policy, written out."""
    best: frozenset[int]
    """Places of the best policy and of those that cannot be told from it; empty if all are alike."""
    has_interval: bool
    """Whether chance was looked at."""


def answers(outcome: Outcome) -> list[Answer]:
    """The questions that this study's numbers answer."""
    found = []
    for question in _QUESTIONS:
        estimates = [question.measure.of(runs) for runs in outcome.results.values()]
        if any(each is not None for each in estimates):
            ranking = rank(question.measure, outcome.results)
            numbers = question.measure.write_all(estimates)
            found.append(Answer(question, numbers, ranking.best, ranking.has_interval))
    return found


def summary(outcome: Outcome, known: Sequence[Answer]) -> list[str]:
    """The answers in sentences: who is best at most, by how much, who is best at what, and what is not to be compared.

    Args:
        outcome: Of the study.
        known: Its answers.
    """
    policies = outcome.study.policies
    if len(policies) < 2:
        return ["One policy was run, so there is nothing to choose from: name several to compare them."]
    differing = [answer for answer in known if answer.best]
    if not differing:
        alike = "The policies hardly differ on this workload: is the cluster ever short of anything?"
        return [alike, _beside_first(outcome)]
    lines = [_leaders(policies, differing), _beside_first(outcome)]
    for place, policy in enumerate(policies):
        strong = [answer.question.subject for answer in differing if place in answer.best]
        best_in = "all of them" if len(strong) == len(differing) else _listed(strong)
        words = in_words(policy)
        lines.append(
            f"{policy}{f' ({words})' if words else ''}: "
            + (f"among the best in {best_in}." if strong else "among the best in none of them.")
        )
    return [*lines[:2], *doubts(outcome), *lines[2:], *_caveats(outcome)]


def doubts(outcome: Outcome) -> list[str]:
    """Why a difference between policies may be less certain than its interval says."""
    gangs = outcome.workloads[0].yardstick.survey.gangs
    if not gangs or len(outcome.study.seeds) > 1 or len(outcome.study.policies) < 2:
        return []
    return [
        (
            f"{gangs:,} jobs are gangs, whose tasks start together. Which of two gangs that compete gives way is a matter of lots, "
            "and on a full cluster much of what comes after hangs on it. One run does not show that, and its intervals leave it out: "
            "say --seeds 5 or more before you trust a difference."
        )
    ]


def _leaders(policies: Sequence[str], differing: Sequence[Answer]) -> str:
    wins = {place: sum(place in answer.best for answer in differing) for place in range(len(policies))}
    most = max(wins.values())
    leaders = [policies[place] for place, count in wins.items() if count == most]
    return (
        f"{_listed(leaders)} {'is' if len(leaders) == 1 else 'are each'} among the best in {most} of the {len(differing)} "
        "questions below in which the policies differ. Which question matters is for you to say."
    )


def _beside_first(outcome: Outcome) -> str:
    """Mean completions beside the first policy's, certain differences apart from those that may be chance."""
    first, *others = outcome.study.policies
    ratios = {policy: completion_ratio(outcome.results[policy], outcome.results[first]) for policy in others}
    known = {policy: ratio for policy, ratio in ratios.items() if ratio is not None}
    parts = [
        f"{policy} {_change(ratio)}"
        for policy, ratio in sorted(known.items(), key=lambda each: each[1].value)
        if not _may_be_chance(ratio)
    ]
    rest = [policy for policy, ratio in known.items() if _may_be_chance(ratio)]
    if rest:
        parts.append(f"{_listed(rest)} no difference that could not be chance")
    return (
        f"Mean time from submission to the end of a job, beside {first}: {'; '.join(parts) or 'not known'}."
    )


def _may_be_chance(ratio: Ratio) -> bool:
    return ratio.low is not None and ratio.high is not None and ratio.low <= 1 <= ratio.high


def _change(ratio: Ratio) -> str:
    by = f"{abs(100 * (ratio.value - 1)):.0f} % {'shorter' if ratio.value < 1 else 'longer'}"
    if ratio.low is None or ratio.high is None:
        return f"{by} (too few jobs to say how certain that is)"
    ends = sorted(abs(100 * (end - 1)) for end in (ratio.low, ratio.high))
    return f"{by} ({ends[0]:.0f} to {ends[1]:.0f} %)"


def _caveats(outcome: Outcome) -> list[str]:
    lines = []
    for policy, runs in outcome.results.items():
        if is_crowded(runs):
            crowded = max(run.crowded_fraction for run in runs)
            lines.append(
                f"Under {policy} {100 * crowded:.1f} % of all task time ran on hosts that were promised more than they "
                "have. How much that slows tasks down is a model, so its times hang on the --slowdown that was set. Tasks "
                "start sooner there and run longer, so it is not compared in waits, shares and use."
            )
        if not all(run.is_complete for run in runs):
            lines.append(
                f"Under {policy} jobs were left undone; its times are of those that finished, and look too good."
            )
    lines += _about_slices(next(iter(outcome.results.values()))[0])
    return lines


def _about_slices(run: PolicyResult) -> Iterable[str]:
    never = sum(user.alone_completion_ms is None for user in run.users)
    if never:
        count = len(run.users)
        yield (
            f"{never} of {count} users have tasks that 1/{count} of the cluster could not run at all; nobody of them is counted "
            "as worse off than with machines of their own, so that question is about the others."
        )


def _largest_wait(run: PolicyResult) -> float | None:
    return run.waits_by_size[-1].wait.mean if run.waits_by_size else None


def _in_use(run: PolicyResult) -> float | None:
    """Of the resource that is used most."""
    return max((use.held_until_last_arrival - use.over for use in run.resources.values()), default=None)


def _fixed(name: str) -> Measure:
    return next(measure for measure in FIXED if measure.name == name)


_QUESTIONS: Final = (
    Question(
        "Under which are jobs done soonest, on average?",
        "the mean completion",
        "Mean time from submission to the end of a job's last task. A few very long jobs weigh much.",
        _fixed("completion_ms.mean"),
    ),
    Question(
        "Under which is a typical job done soonest?",
        "the typical job",
        "Half of the jobs take at most so long.",
        _fixed("completion_ms.p50"),
    ),
    Question(
        "Under which are the unlucky jobs slowed down least?",
        "the unlucky job",
        "Slowdown is how many times as long a job took as it would have with nothing to wait for; of 95 % of jobs it is at most this.",
        _fixed("slowdown.p95"),
    ),
    Question(
        "Under which do the largest tasks wait least?",
        "the largest tasks",
        "Mean wait of the quarter of tasks that want the largest part of a node.",
        Measure(
            "",
            "mean wait of the largest quarter of tasks",
            Kind.TIME,
            Best.LOW,
            _largest_wait,
            is_of_starts=True,
        ),
    ),
    Question(
        "Under which are fewest people worse off than with machines of their own?",
        "nobody being worse off than alone",
        "Of n users, those whose jobs take longer on average than if each had 1/n of the cluster for themselves.",
        _fixed("violations"),
    ),
    Question(
        "Under which do those who want more have the most equal shares?",
        "equal shares",
        (
            "Jain's index of dominant shares, a dominant share being the largest part that somebody holds of any one resource: "
            "1 if all are equal, 1/n if one of n has everything."
        ),
        _fixed("jain"),
    ),
    Question(
        "Under which is most of the cluster in use while work arrives?",
        "the use of the cluster",
        "What running tasks hold of the resource that is used most, until the last job arrives.",
        Measure(
            "",
            "use of the busiest resource until the last arrival",
            Kind.FRACTION,
            Best.HIGH,
            _in_use,
            is_of_starts=True,
        ),
    ),
)


def _listed(words: Sequence[str]) -> str:
    return (
        " and ".join(([", ".join(words[:-1])] if len(words) > 1 else []) + [words[-1]])
        if words
        else "nothing"
    )
