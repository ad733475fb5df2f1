"""What a study says to somebody who has to choose a policy, in sentences: what to choose, what to doubt, and why."""

from collections.abc import Mapping, Sequence
from typing import Final

from fairlead_lab.metrics.measures import measure
from fairlead_lab.metrics.result import UNFINISHED, PolicyResult
from fairlead_lab.metrics.statistics import Ratio, mean
from fairlead_lab.study.comparison import completion_ratio, is_crowded
from fairlead_lab.study.questions import Answer
from fairlead_lab.study.study import Outcome
from fairlead_master.allocation import placement
from fairlead_master.allocation.policies.names import slots_per_agent

_NAMED_MAX: Final = 5
"""Users named in a sentence; the table of users and users.csv have all."""
_TIMES_FROM: Final = 2.0
"""Ratios from here on are told as multiples: nobody sees what 241 % longer is."""
_MOST: Final = 0.8
"""Of all waiting: a class of tasks that makes as much is where it comes from."""
_FULL: Final = 0.8
"""Of the resource held most, on average: a cluster that holds less has room, if not where a large task needs it."""


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
        return [
            alike,
            _beside_first(outcome),
            *where_waiting_comes_from(outcome),
            *_worse_off(outcome),
            *_caveats(outcome),
        ]
    return [
        _leaders(policies, known, differing),
        _beside_first(outcome),
        *doubts(outcome),
        *where_waiting_comes_from(outcome),
        *_best_at(policies, differing),
        *_worse_off(outcome),
        *_caveats(outcome),
    ]


def doubts(outcome: Outcome) -> list[str]:
    """Why a difference between policies may be less certain than its interval says."""
    gangs = outcome.workloads[0].yardstick.survey.gangs
    if len(outcome.study.seeds) > 1 or len(outcome.study.policies) < 2:
        return []
    lines = []
    if drawn := placed_by_chance(outcome):
        lines.append(
            f"Under {', '.join(drawn)} tasks are placed on hosts by chance. One run does not show how much hangs on that, and its "
            "intervals leave it out: say --seeds 5 or more before you trust a small difference."
        )
    if gangs:
        lines.append(
            f"{gangs:,} jobs are gangs, whose tasks start together. Which of two gangs that compete gives way is a matter of lots, "
            "and on a full cluster much of what comes after hangs on it. One run does not show that, and its intervals leave it out: "
            "say --seeds 5 or more before you trust a difference."
        )
    return lines


def _leaders(policies: Sequence[str], known: Sequence[Answer], differing: Sequence[Answer]) -> str:
    wins = {
        place: [number for number, answer in enumerate(differing) if place in answer.best]
        for place in range(len(policies))
    }
    most = max(map(len, wins.values()))
    leaders = [place for place, won in wins.items() if len(won) == most]
    names = [policies[place] for place in leaders]
    where = "all" if len(differing) == len(known) else f"{len(differing)} of the {len(known)}"
    won = (
        "that one" if len(differing) == 1 else f"{f'all {most}' if most == len(differing) else most} of those"
    )
    found = (
        f"The policies differ in {where} questions below. {listed(names)} {'is' if len(names) == 1 else 'are each'} "
        f"among the best in {won}."
    )
    if len(leaders) > 1 and len({tuple(wins[place]) for place in leaders}) == 1:
        simplest = ", which is drf" if "drf" in names and len(names) > 1 else ""
        return (
            f"{found} No question decides between {listed(names)}: keep the one you run if it is one of them, or take the one "
            f"that is simplest to explain to your users{simplest}."
        )
    return found if most == len(differing) else f"{found} Which question matters is for you to say."


def _best_at(policies: Sequence[str], differing: Sequence[Answer]) -> list[str]:
    """What each is among the best in; policies of which the same is true share a line."""
    said: dict[str, list[str]] = {}
    for place, policy in enumerate(policies):
        strong = [answer.question.subject for answer in differing if place in answer.best]
        compared = [answer for answer in differing if place not in answer.left_out]
        if len(strong) == len(differing):
            text = "all of them" if len(strong) > 1 else strong[0]
        elif len(compared) < len(differing):
            best = listed(strong) if strong else "none"
            text = f"{best} of the {len(compared)} in which it is compared" if compared else "none"
        else:
            text = listed(strong) if strong else "none of them"
        said.setdefault(text, []).append(policy)
    return [f"Among the best in {text}: {listed(names)}." for text, names in said.items()]


def _beside_first(outcome: Outcome) -> str:
    """Mean completions beside the first policy's, certain differences apart from those that may be chance."""
    first, *others = outcome.study.policies
    ratios = {policy: completion_ratio(outcome.results[policy], outcome.results[first]) for policy in others}
    known = {policy: ratio for policy, ratio in ratios.items() if ratio is not None}
    parts = [
        f"{policy} {_change(ratio)}"
        for policy, ratio in sorted(known.items(), key=lambda each: each[1].value)
        if not ratio.may_be_one
    ]
    rest = [policy for policy, ratio in known.items() if ratio.may_be_one]
    if rest:
        parts.append(f"{listed(rest)} no difference that could not be chance")
    return (
        f"Mean time from submission to the end of a job, beside {first}: {'; '.join(parts) or 'not known'}."
    )


def _change(ratio: Ratio) -> str:
    if ratio.value >= _TIMES_FROM:
        by = f"{ratio.value:.1f} times as long"
        ends = "" if ratio.low is None or ratio.high is None else f"{ratio.low:.1f} to {ratio.high:.1f}"
    else:
        by = f"{abs(100 * (ratio.value - 1)):.0f} % {'shorter' if ratio.value < 1 else 'longer'}"
        ends = ""
        if ratio.low is not None and ratio.high is not None:
            least, most = sorted(abs(100 * (end - 1)) for end in (ratio.low, ratio.high))
            ends = f"{least:.0f} to {most:.0f} %"
    return f"{by} ({ends or 'too few jobs to say how certain that is'})"


def _worse_off(outcome: Outcome) -> list[str]:
    """Who is clearly worse off than with machines of his own, by name."""
    seeds = len(outcome.study.seeds)
    who = "job" if outcome.study.options.is_user_per_job else "user"
    said: dict[str, list[str]] = {}
    for policy, runs in outcome.results.items():
        times: dict[str, int] = {}
        for run in runs:
            for user in run.clear_violations:
                times[user] = times.get(user, 0) + 1
        said.setdefault(_names(times, seeds), []).append(policy)
    if set(said) == {"nobody"}:
        return []
    parts = [f"{names} under {listed(policies)}" for names, policies in said.items()]
    return [
        f"Clearly worse off than with machines of their own, by {who}: {'; '.join(parts)}. The table of users has their times."
    ]


def _names(times: Mapping[str, int], seeds: int) -> str:
    """Those of whom it is so under most seeds first."""
    if not times:
        return "nobody"
    order = sorted(times, key=lambda user: (-times[user], user))
    named = [
        user if times[user] == seeds else f"{user} (with {times[user]} of {seeds} seeds)"
        for user in order[:_NAMED_MAX]
    ]
    more = len(order) - len(named)
    return listed([*named, f"{more} more"] if more else named)


def _caveats(outcome: Outcome) -> list[str]:
    crowded_fraction = measure("crowded_fraction")
    lines = []
    for policy, runs in outcome.results.items():
        if is_crowded(runs):
            (crowded,) = crowded_fraction.write_all([crowded_fraction.of(runs)])
            lines.append(
                f"Under {policy} {crowded} of all task time ran on hosts that were promised more than they have. "
                "How much that slows tasks down is a model, with "
                f"--slowdown {outcome.study.options.memory_slowdown:g} for hosts short of memory, and its times are worth as much as "
                "the model. It is not compared in waits, shares and use (†), whatever it shows there: a task that starts where "
                "there is no room has not got what a start is worth elsewhere."
            )
    undone = [policy for policy, runs in outcome.results.items() if not all(run.is_complete for run in runs)]
    if undone:
        lines.append(
            f"Jobs were left undone under {listed(undone)}; times there are of those that finished, and look too good."
        )
    return lines


def listed(words: Sequence[str]) -> str:
    """Words as a person lists them."""
    return (
        " and ".join(([", ".join(words[:-1])] if len(words) > 1 else []) + [words[-1]])
        if words
        else "nothing"
    )


def where_waiting_comes_from(outcome: Outcome) -> list[str]:
    """One line of the first policy's waits, means over its seeds; nothing if nobody waited."""
    policy = outcome.study.policies[0]
    runs = outcome.results[policy]
    never = [part for run in runs if (part := _never_wait(run)) is not None]
    largest = [parts for run in runs if (parts := _largest(run)) is not None]
    if not never or not largest:
        return []
    waits, tasks = mean([each[0] for each in largest]), mean([each[1] for each in largest])
    use = {
        name: mean([run.resources[name].held_until_last_arrival for run in runs])
        for name in runs[0].resources
        if all(name in run.resources for run in runs)
    }
    busiest = max(use, key=lambda name: use[name])
    classes = runs[0].waits_by_size
    above = f"more than {100 * classes[-2].largest_size:.3g} %" if len(classes) > 1 else "up to all"
    line = (
        f"Where waiting comes from, under {policy}: {_percent(mean(never))} of the jobs take no longer than with nothing to wait for. "
        f"{_percent(waits)} of all waiting is that of the {_percent(tasks)} of tasks that want {above} of the largest node, "
        f"while {busiest}, of which most is held, is held to {_percent(use[busiest])} on average until the last job arrives."
    )
    if waits >= _MOST and waits > 2 * tasks and use[busiest] < _FULL:
        line += " So what waits here is mostly large tasks that need much of one node, on a cluster that is not full on average."
    gangs = outcome.workloads[0].yardstick.survey.gangs
    if gangs:
        line += f" {gangs:,} jobs are gangs, which need room for all their tasks at once."
    return [line]


def _never_wait(run: PolicyResult) -> float | None:
    """The part of the finished jobs that are done as soon as they could be."""
    finished = [factor for factor in run.slowdowns if factor != UNFINISHED]
    return sum(factor <= 1 for factor in finished) / len(finished) if finished else None


def _largest(run: PolicyResult) -> tuple[float, float] | None:
    """Of the largest class of tasks: its parts of all waiting and of all tasks."""
    waited = [each.wait.mean * each.wait.count for each in run.waits_by_size]
    tasks = sum(each.wait.count for each in run.waits_by_size)
    if not sum(waited):
        return None
    return waited[-1] / sum(waited), run.waits_by_size[-1].wait.count / tasks


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


def placed_by_chance(outcome: Outcome) -> list[str]:
    """Policies of the study under which a seed decides which hosts tasks get."""
    asked = outcome.study.options.placement
    return [
        policy
        for policy in outcome.study.policies
        if placement.in_force(asked, slots_per_agent(policy)).goes_by_turns and ":" not in asked
    ]
