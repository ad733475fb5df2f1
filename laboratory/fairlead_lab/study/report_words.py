"""What the page of a study says of its settings, its charts and its words, for somebody who has read none of the papers."""

from typing import Final

from fairlead_lab.metrics.result import SHORT_MS
from fairlead_lab.study.comparison import NOTICEABLE
from fairlead_lab.study.plot_data import are_waits_of_all_seeds
from fairlead_lab.study.policy_words import in_words
from fairlead_lab.study.study import Outcome
from fairlead_lab.study.telling_apart import is_crowded
from fairlead_master.allocation import placement

CHARTS: Final[dict[str, tuple[str, str]]] = {
    "completion-ratio": (
        "Mean completion beside FIRST",
        "Left of the line jobs are done sooner on average than under FIRST. A bar across the line may be chance.",
    ),
    "utilization": (
        "The cluster over time",
        (
            "What running tasks hold of each resource, as a part of all there is. More is better while tasks wait. Slots may promise "
            "twice what a host has, and what is promised twice is in this chart. A policy under which the end comes later has its tail "
            "further right."
        ),
    ),
    "queue": (
        "Tasks that wait",
        (
            "Tasks that could start if there were room, on a logarithmic scale above 1. Where all lines lie at zero the cluster was short "
            "of nothing and no policy can do better than another."
        ),
    ),
    "dominant-shares": (
        "What the largest users hold",
        (
            "Of the users with the most work (dominant share times run time), a panel each: the largest part that they held of any one "
            "resource. Where the lines of a panel lie apart, the policies, or chance, give this user more or less."
        ),
    ),
    "completion": (
        "How long jobs take",
        "The part of all jobs that was done within a time, from submission to the end of the last task. Further left is better.",
    ),
    "bounded-slowdown": (
        "How much jobs are slowed down",
        (
            "Completion over what the job would take with nothing to wait for, where less than 10 s counts as 10 s: 1 is the best there "
            "is. Long jobs weigh as much as short ones here, so this shows best who has to wait long for little. The part of all jobs that "
            "is slowed down more than so much: lower is better."
        ),
    ),
    "reduction-by-job-size": (
        "Jobs of many tasks and of few",
        (
            "Mean completion of jobs of so many tasks as a multiple of that under FIRST, with 95 % intervals over the seeds: below 1 "
            "they are done sooner. Figure 14 of the paper on dominant resource fairness compares so. A class of fewer than 10 jobs is in the "
            "table only."
        ),
    ),
    "wait-by-demand-size": (
        "Waits of large tasks and of small ones",
        (
            "Tasks in classes by the largest part of the largest node that they want of any resource, cut so that about as many tasks "
            "are in each where sizes allow. The bar is the mean wait, and 0 stands where nobody waited at all; the dash is what 95 % of "
            "the tasks wait at most. Where a bar has no dash above it, at least 95 % did not wait, and a few waited for long. Large tasks need luck to "
            "find room: a policy that serves whatever fits can let them wait for very long."
        ),
    ),
    "better-and-worse": (
        "Who is better off, who is worse",
        (
            "Each user's mean completion as a multiple of that under FIRST, users sorted for each policy by itself: below 1 they are done sooner. "
            f"Counted below as sooner or later is who gains or loses more than {100 * NOTICEABLE:.0f} %, some of which may be chance."
        ),
    ),
}
"""By the name of the chart: title and what it shows."""

_OVER_TIME: Final = frozenset({"utilization", "queue", "dominant-shares"})
_OF_ALL_JOBS: Final = frozenset({"completion", "bounded-slowdown"})


def which_seeds(name: str, outcome: Outcome) -> str:
    """Which runs a chart shows, as a sentence; empty where there is one of each policy."""
    seeds = outcome.study.seeds
    if len(seeds) < 2:
        return ""
    if name in _OVER_TIME or (name == "wait-by-demand-size" and not are_waits_of_all_seeds(outcome)):
        return f" This is the run with seed {seeds[0]} alone."
    if name in _OF_ALL_JOBS:
        return f" Jobs of all {len(seeds)} seeds together."
    return f" Means over all {len(seeds)} seeds."


def policy_terms(outcome: Outcome) -> list[tuple[str, str]]:
    """What each policy does."""
    passes = "; as for every policy here, a later job that fits goes past one that does not"
    is_backfilled = outcome.study.options.when_head_does_not_fit == "skip"
    return [
        (policy, words + (passes if policy == "fifo" and is_backfilled else "") + ".")
        for policy in outcome.study.policies
        if (words := in_words(policy))
    ]


def setting_terms(outcome: Outcome) -> list[tuple[str, str]]:
    """What holds for every policy, with the flags that say so."""
    options = outcome.study.options
    found = [
        (f"--placement {options.placement}", _PLACEMENTS[placement.parse(options.placement).name]),
        (
            f"--when-head-does-not-fit {options.when_head_does_not_fit}",
            _WHEN_HEAD_DOES_NOT_FIT[options.when_head_does_not_fit],
        ),
        (f"--level {options.level}", _LEVELS[options.level]),
    ]
    if options.is_user_per_job:
        found.append(
            (
                "--per job",
                "Every job has a share of its own, and counts as a user wherever users are counted.",
            )
        )
    if options.horizon_ms is not None:
        found.append(
            ("--until", f"Each run ended {options.horizon_ms / 1000:,.0f} s after the first arrival.")
        )
    if any(is_crowded(runs) for runs in outcome.results.values()):
        found.append(
            (
                f"--slowdown {options.memory_slowdown:g}",
                (
                    "How steeply memory thrashes where slots promise more of it than a host has: where D is wanted of C, tasks run at "
                    f"1 / (1 + {options.memory_slowdown:g} (D/C - 1)) of their speed. A guess: try others where much time is spent so. Where "
                    "D cores are wanted of C, they run at C/D of their speed."
                ),
            )
        )
    return found


_PLACEMENTS: Final = {
    "align": (
        "Of the hosts with room, a task gets the one whose free resources look most like what it wants. In slots, which know no "
        "resources, it gets any of those with a free one, at random."
    ),
    "pack": "Of the hosts with room, a task gets the one with the least left over.",
    "spread": "Of the hosts with room, a task gets the emptiest.",
    "least-loaded": "Of the hosts with room, a task gets the one whose most used resource is used least.",
    "random": "Of the hosts with room, a task gets any, at random.",
    "heartbeat": "Hosts take turns in an order drawn once, one task a turn, as hosts of Hadoop got one with each heartbeat.",
}
_WHEN_HEAD_DOES_NOT_FIT: Final = {
    "skip": (
        "Where what is next has no room, the next that fits is served, so that nothing stands idle. Thus fifo too lets later and smaller "
        "jobs go first, as backfilling does. Whoever was passed over for long gets a host kept free for him."
    ),
    "freeze": "Where what is next has no room, nobody is served until it has.",
}
_LEVELS: Final = {
    "pool": "Decisions only: a task starts the moment it is given room, and messages take no time.",
    "cluster": "Whole masters and agents, with the messages between them.",
}

TERMS: Final = (
    (
        "job, task, gang",
        (
            "A job is what somebody hands in at once; it has one or more tasks, perhaps in stages. It completes when its last task is "
            "over. A gang is a job whose tasks start together or not at all."
        ),
    ),
    (
        "wait",
        "From when a task could have started, its job handed in and earlier stages over, to when it started.",
    ),
    (
        "slowdown: bounded, plain",
        (
            "A job's completion time over the one with nothing to wait for, which is the longest task of each stage, summed. In the "
            f"bounded slowdown both count as {SHORT_MS // 1000} s at least, as is customary: in the plain one a job of a second that waits for an hour counts as "
            "much as 3,600 jobs that do not wait. (--slowdown is another thing: how memory thrashes under slots.)"
        ),
    ),
    ("dominant share", "The largest part that somebody holds of any one resource of the cluster."),
    (
        "Jain's index",
        (
            "How equal the dominant shares are of those who want more, at moments at which at least two do: 1 is equal, 1/n is one who "
            "has everything. The mean over such time. Policies that equalise something else, as proportional fairness does, have a lower one without being "
            "unfair by their own lights."
        ),
    ),
    (
        "worse off than on an own 1/n",
        (
            "Whose mean completion is longer than it would be on an own static 1/n of the cluster, n being all users: the sharing "
            "incentive. The slice is one pool without hosts in it, in which nothing is lost to fragments, so a few per cent say little: clearly worse "
            "off is who loses more than a tenth. Who has a task that is larger than such a slice is not asked."
        ),
    ),
    (
        "contending time below 1/n",
        (
            "Of the time in which users wanted more while others did too, the part in which they had a dominant share under 1/n of those present. "
            "Much of it is normal under a fair policy too: who comes, or comes back after a pause, has nothing until others' tasks end, since nobody's "
            "tasks are stopped; a task that needs a whole node waits for one however small its user's share; and where one task is more than "
            "1/n, some must have less. It compares policies on one workload and is no share of injustice."
        ),
    ),
    (
        "held",
        "What running tasks have asked for of a resource, as a part of all there is, whether or not they use it.",
    ),
    (
        "promised twice",
        (
            "Under slots a task takes a slot, whatever it needs, so hosts may be promised more than they have. Tasks there run slower: "
            "by the CPU's overload, and by a modelled thrashing where memory is overfull."
        ),
    ),
)
"""Words of the page and what they mean."""
