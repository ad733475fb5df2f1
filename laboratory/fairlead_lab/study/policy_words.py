"""What each policy does, in a line for somebody who has read none of the papers."""

from collections.abc import Mapping
from typing import Final


def in_words(policy: str) -> str:
    """A policy as an operator writes it, in words; empty for one that is not known here."""
    kind, colon, argument = policy.partition(":")
    words = _WORDS.get(kind + colon) or _WORDS.get(kind, "")
    return words.replace("ARGUMENT", argument)


_WORDS: Final[Mapping[str, str]] = {
    "drf": (
        "dominant resource fairness: next is who has least of the resource of which he has most, so that these dominant "
        "shares become equal"
    ),
    "asset": "asset fairness: next is who has least of all resources added up",
    "max-min": "equal numbers of tasks, whatever they need",
    "max-min:": "equal shares of ARGUMENT, whatever else tasks need",
    "slots:": (
        "every host has ARGUMENT places, and a task takes one whatever it needs, so that hosts may be promised more than they "
        "have; equal numbers of places"
    ),
    "fifo": (
        "first come, first served: who began to want something first is next until he wants nothing more, and then who came after "
        "him; no regard to shares"
    ),
    "pf": (
        "proportional fairness: resources that are short have a price, and next is who has least for it; who takes little of "
        "what is short gets more tasks"
    ),
    "ceei": "competitive equilibrium from equal incomes: another name of pf",
    "alpha:": (
        "alpha fairness of dominant shares, with alpha = ARGUMENT: the larger, the closer to equal shares; the smaller, the "
        "more to who needs little"
    ),
    "alpha-tasks:": (
        "alpha fairness of numbers of tasks, with alpha = ARGUMENT: the larger, the closer to equal numbers; the smaller, the "
        "more to who needs little"
    ),
    "bbf": (
        "bottleneck-based fairness: everybody is entitled to an equal part of a resource that is used up; next is who lags "
        "furthest behind over the last seconds, together with what he holds now, for about as long as tasks run"
    ),
    "baa": (
        "bottleneck-aware allocation: equal shares among those who want most of the same resource; between such groups, what "
        "puts more of the cluster to use"
    ),
    "utilization": "whoever fills the cluster most evenly, a yardstick with no regard to fairness",
}
"""By kind; with a colon, of a policy that has an argument."""
