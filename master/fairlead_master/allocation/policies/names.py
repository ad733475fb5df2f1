"""The policies there are, by the name an operator writes.

Each name makes a fresh policy; the allocator makes one for the roles and one for each role that has several frameworks.
"""

import re
from typing import Final

from fairlead_master.allocation.api import AllocationError, Policy
from fairlead_master.allocation.policies.drf import DominantResourceFairness
from fairlead_master.allocation.policies.fifo import FirstComeFirstServed
from fairlead_master.allocation.policies.slots import SLOTS_MAX, SlotFairness

NAMES: Final = ("drf", "slots:K", "fifo")
"""As shown to people; K stands for a number."""

_SLOTS: Final = re.compile(r"slots:([0-9]{1,9})")


def slots_per_agent(text: str) -> int | None:
    """K of ``slots:K``; None for a policy without slots.

    Raises:
        AllocationError: ``text`` names no policy.
    """
    match = _SLOTS.fullmatch(text)
    if match is None:
        if text not in NAMES or text == "slots:K":
            raise AllocationError(
                f"policy: expected one of {', '.join(NAMES)} (such as slots:4), got {text!r}"
            )
        return None
    slots = int(match.group(1))
    if not 1 <= slots <= SLOTS_MAX:
        raise AllocationError(f"policy: expected slots:K with K from 1 to {SLOTS_MAX}, got {text!r}")
    return slots


def parse(text: str) -> Policy:
    """A new policy, knowing no account, from its name.

    Raises:
        AllocationError: ``text`` names no policy.
    """
    slots = slots_per_agent(text)
    if slots is not None:
        return SlotFairness(slots)
    return DominantResourceFairness() if text == "drf" else FirstComeFirstServed()
