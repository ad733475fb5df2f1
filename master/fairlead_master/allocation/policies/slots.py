"""Slot scheduling, the baseline of clusters without resource vectors: every agent is K equal slots.

    key_i = s_i / w_i

A task takes one slot whatever it needs; s_i is the number of slots account i holds or is offered, w_i its weight. This is
the fair sharing of slots that Ghodsi et al., "Dominant Resource Fairness", compare with in sections 2 and 7.2 (Hadoop's
fair scheduler). The key is that of ``max-min``, since a unit is a slot; what is different is that an agent has room for K
units and for no more, which the allocator sees to. Per-resource weights mean nothing here: only the weight's default
counts. Equal keys go to the account that was added earlier.
"""

from typing import Final

from fairlead_master.allocation.policies.max_min import UnitFairness

SLOTS_MAX: Final = 1_000
"""Slots of one agent. More tasks than that on one host is a mistyped number, not a cluster."""


class SlotFairness(UnitFairness):
    """The policy ``slots:K``. See the module's docstring for its key."""

    balances = False
    """Slots are one resource, of which every unit takes one: members of a group never complement each other."""

    def __init__(self, slots_per_agent: int) -> None:
        super().__init__()
        self.name = f"slots:{slots_per_agent}"
