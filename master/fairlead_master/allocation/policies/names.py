"""The policies there are, by the name an operator writes.

A name is a word, or a word, a colon and an argument: ``drf``, ``slots:4``. Each name makes a fresh policy; the allocator
makes one for each group of accounts it ranks. Those with prices, windows or linear programs are imported when they are named: a master
that serves others starts without them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fairlead_master.allocation.api import AllocationError, Policy
from fairlead_master.allocation.policies.asset import AssetFairness
from fairlead_master.allocation.policies.drf import DominantResourceFairness
from fairlead_master.allocation.policies.fifo import FirstComeFirstServed
from fairlead_master.allocation.policies.max_min import UnitFairness
from fairlead_master.allocation.policies.max_min_resource import ResourceFairness
from fairlead_master.allocation.policies.slots import SLOTS_MAX, SlotFairness
from fairlead_master.allocation.policies.utilization import UtilizationFirst


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of policy: what an operator writes, and how it is made."""

    shown: str
    """The name with its argument as a letter or word: ``slots:K``."""
    example: str
    make: Callable[[str, Sequence[str]], Policy]
    """From the argument as written and the names of resources; raises AllocationError for a bad argument."""
    also_shown: tuple[str, ...] = ()
    """With other forms of the argument."""


def _slots(argument: str, _resources: Sequence[str], /) -> Policy:
    if not (argument.isascii() and argument.isdigit() and 1 <= len(argument) <= 9):
        raise _unknown(f"slots:{argument}")
    if not 1 <= int(argument) <= SLOTS_MAX:
        raise AllocationError(
            f"policy: expected slots:K with K from 1 to {SLOTS_MAX}, got 'slots:{argument}'"
        )
    return SlotFairness(int(argument))


def _max_min_of_resource(argument: str, resources: Sequence[str], /) -> Policy:
    if argument not in resources:
        raise AllocationError(
            f"policy: expected max-min:RES with RES one of {', '.join(resources)}, got {'max-min:' + argument!r}"
        )
    return ResourceFairness(argument, resources.index(argument))


def _proportional(name: str, /) -> Policy:
    from fairlead_master.allocation.policies.pf import proportional_fairness

    return proportional_fairness(name)


def _alpha(word: str, argument: str, /) -> Policy:
    from fairlead_master.allocation.policies import alpha

    return alpha.parse(word, argument)


def _bottleneck(argument: str | None, /) -> Policy:
    from fairlead_master.allocation.policies import bbf

    return bbf.BottleneckFairness() if argument is None else bbf.parse(argument)


def _aware(name: str, /) -> Policy:
    from fairlead_master.allocation.policies import baa

    return baa.parse(name)


_KINDS: Final[Mapping[str, _Kind]] = {
    "".join(kind.shown.partition(":")[:2]): kind
    for kind in (
        _Kind("drf", "drf", lambda *_: DominantResourceFairness()),
        _Kind("asset", "asset", lambda *_: AssetFairness()),
        _Kind("max-min", "max-min", lambda *_: UnitFairness()),
        _Kind("max-min:RES", "max-min:cpus", _max_min_of_resource),
        _Kind("slots:K", "slots:4", _slots),
        _Kind("fifo", "fifo", lambda *_: FirstComeFirstServed()),
        _Kind("pf", "pf", lambda *_: _proportional("pf")),
        _Kind("ceei", "ceei", lambda *_: _proportional("ceei")),
        _Kind("alpha:A", "alpha:2", lambda argument, _: _alpha("alpha", argument)),
        _Kind("alpha-tasks:A", "alpha-tasks:2", lambda argument, _: _alpha("alpha-tasks", argument)),
        _Kind("bbf", "bbf", lambda *_: _bottleneck(None)),
        _Kind(
            "bbf:SECONDS",
            "bbf:60,95%",
            lambda argument, _: _bottleneck(argument),
            also_shown=("bbf:PERCENT%", "bbf:SECONDS,PERCENT%"),
        ),
        _Kind("baa", "baa", lambda *_: _aware("baa")),
        _Kind("baa:OBJECTIVE", "baa:tasks", lambda argument, _: _aware(f"baa:{argument}")),
        _Kind("utilization", "utilization", lambda *_: UtilizationFirst()),
    )
}
"""Word, with a colon if an argument follows, to kind."""

NAMES: Final = tuple(name for kind in _KINDS.values() for name in (kind.shown, *kind.also_shown))
"""As shown to people; K, A, SECONDS and PERCENT stand for numbers, RES for a resource, OBJECTIVE for ``tasks``, ``min`` or ``utilization``."""

EXAMPLES: Final = tuple(kind.example for kind in _KINDS.values())
"""A name of each kind that can be parsed wherever CPUs are counted."""


def parse(text: str, resources: Sequence[str]) -> Policy:
    """A new policy, knowing no account, from its name; ``resources`` are the names of the places of vectors.

    Raises:
        AllocationError: ``text`` names no policy.
    """
    word, colon, argument = text.partition(":")
    kind = _KINDS.get(word + colon)
    if kind is None:
        raise _unknown(text)
    return kind.make(argument, resources)


def slots_per_agent(text: str) -> int | None:
    """K of ``slots:K``; None for a policy without slots.

    Raises:
        AllocationError: K is no number, or out of range.
    """
    word, colon, argument = text.partition(":")
    if word + colon != "slots:":
        return None
    _slots(argument, ())
    return int(argument)


def _unknown(text: str) -> AllocationError:
    return AllocationError(f"policy: expected one of {', '.join(NAMES)} (such as slots:4), got {text!r}")
