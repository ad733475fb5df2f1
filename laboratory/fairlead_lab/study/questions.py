"""What an operator asks of a policy, and every policy's answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fairlead_lab.metrics.measures import Measure, measure, unit_of
from fairlead_lab.study.comparison import rank
from fairlead_lab.study.study import Outcome


def nothing_more(_: Outcome) -> str:
    """Of a question whose meaning is the same for every study."""
    return ""


@dataclass(frozen=True, slots=True)
class Question:
    """What an operator asks."""

    text: str
    subject: str
    """What it is about, in a few words."""
    meaning: str
    """What the number is, for somebody who has never heard of it."""
    measure: Measure
    more: Callable[[Outcome], str] = nothing_more
    """What else is to be known of it in a study."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One question and every policy's number."""

    question: Question
    meaning: str
    """In this study."""
    numbers: list[str]
    """By policy, written out."""
    best: frozenset[int]
    """Places of the best policy and of those that cannot be told from it; empty if all are alike."""
    left_out: frozenset[int]
    """Places of the policies that are not compared here."""
    has_interval: bool
    """Whether chance was looked at."""
    finest: str
    """How large a difference the seeds could tell, see ``Ranking``; empty if that is not known."""


def answers(outcome: Outcome) -> list[Answer]:
    """The questions that this study's numbers answer."""
    found = []
    for question in QUESTIONS:
        asked = question.measure
        estimates = [asked.judged(runs) for runs in outcome.results.values()]
        if any(each is not None for each in estimates):
            ranking = rank(asked, outcome.results)
            unit_ms = unit_of([each.mean for each in estimates if each is not None])
            found.append(
                Answer(
                    question=question,
                    meaning=question.meaning + question.more(outcome),
                    numbers=asked.write_all(estimates),
                    best=ranking.best,
                    left_out=ranking.left_out,
                    has_interval=ranking.has_interval,
                    finest=asked.write(ranking.finest, unit_ms) if ranking.finest else "",
                )
            )
    return found


def _how_large(outcome: Outcome) -> str:
    """Which tasks the largest are, under the first policy and seed."""
    classes = next(iter(outcome.results.values()))[0].waits_by_size
    if len(classes) < 2:
        return ", which are all alike."
    part = classes[-1].wait.count / sum(each.wait.count for each in classes)
    return (
        f": more than {100 * classes[-2].largest_size:.3g} % of the largest, {100 * part:.0f} % of all tasks."
    )


def _who_is_asked(outcome: Outcome) -> str:
    """Users with a task that no slice could run have no time of their own to be compared with."""
    users = next(iter(outcome.results.values()))[0].users
    never = sum(user.alone_completion_ms is None for user in users)
    if not never:
        return ""
    return (
        f" {never} of the {len(users)} are left out: they have tasks that such a slice could not run at all."
    )


QUESTIONS: Final = (
    Question(
        "Under which are jobs done soonest, on average?",
        "the mean completion",
        "Mean time from submission to the end of a job's last task. A few very long jobs weigh much.",
        measure("completion_ms.mean"),
    ),
    Question(
        "Under which is a typical job done soonest?",
        "the typical job",
        "Half of the jobs take at most so long.",
        measure("completion_ms.p50"),
    ),
    Question(
        "Under which are the unlucky jobs slowed down least?",
        "the unlucky job",
        (
            "Slowdown is how many times as long a job took as it would have with nothing to wait for, where less than 10 s counts "
            "as 10 s; of 95 % of jobs it is at most this."
        ),
        measure("bounded_slowdown.p95"),
    ),
    Question(
        "Under which do the largest tasks wait least?",
        "the largest tasks",
        "Mean wait of the tasks that want the largest part of a node",
        measure("largest_wait_ms"),
        _how_large,
    ),
    Question(
        "Under which are fewest people clearly worse off than with machines of their own?",
        "how few are worse off than alone",
        (
            "Users whose jobs take longer on average, by more than a tenth, than if each of the n users had 1/n of the cluster "
            "to himself."
        ),
        measure("clear_violations"),
        _who_is_asked,
    ),
    Question(
        "Under which do those who want more have the most equal shares?",
        "equal shares",
        (
            "Jain's index of dominant shares, a dominant share being the largest part that somebody holds of any one resource: "
            "1 if all are equal, 1/n if one of n has everything."
        ),
        measure("jain"),
    ),
    Question(
        "Under which is most of the cluster in use while work arrives?",
        "the use of the cluster",
        "What running tasks hold of the resource that is held most, until the last job arrives, without what is promised twice.",
        measure("used_until_last_arrival"),
    ),
)  # fmt: skip
