"""Slot scheduling, the baseline of clusters without resource vectors: every agent is K equal slots.

    key_i = s_i / w_i

A task takes one slot whatever it needs; s_i is the number of slots account i holds or is offered, w_i its weight. This is
the fair sharing of slots that Ghodsi et al., "Dominant Resource Fairness", compare with in sections 2 and 7.2 (Hadoop's
fair scheduler). Per-resource weights mean nothing here: only the weight's default counts. Equal keys go to the
account that was added earlier.
"""

from typing import Final

from fairlead_master.allocation.api import Policy, Weight
from fairlead_master.allocation.policies.ranking import Ranked, Ranking
from fairlead_proto.resources import Vector

SLOTS_MAX: Final = 1_000
"""Slots of one agent. More tasks than that on one host is a mistyped number, not a cluster."""


class _Account(Ranked):
    __slots__ = ("slots", "weight")

    def __init__(self, name: str, weight: float, slots: int) -> None:
        super().__init__(name, slots / weight)
        self.weight = weight
        self.slots = slots


class SlotFairness(Policy):
    """The policy ``slots:K``. See the module's docstring for its key."""

    def __init__(self, slots_per_agent: int) -> None:
        self.name = f"slots:{slots_per_agent}"
        self.slots_per_agent = slots_per_agent
        self._ranking = Ranking()
        self.first = self._ranking.first
        self._accounts: dict[str, _Account] = {}

    def set_capacity(self, capacity: Vector, slots: int) -> None:
        """Without effect: all accounts' keys would change by the same factor."""

    def add(self, account: str, weight: Weight, charged: Vector, units: int) -> None:  # noqa: ARG002 - only units count
        """A new account, resting."""
        self._accounts[account] = state = _Account(account, weight.default, units)
        self._ranking.add(state)

    def remove(self, account: str) -> None:
        """Forget an account."""
        self._ranking.deactivate(self._accounts.pop(account))

    def set_weight(self, account: str, weight: Weight) -> None:
        """The account's weight from now on."""
        state = self._accounts[account]
        state.weight = weight.default
        self._ranking.rekey(state, state.slots / state.weight)

    def charge(self, account: str, unit: Vector, units: int) -> tuple[float, float]:  # noqa: ARG002 - a slot is a slot
        """The account got ``units`` more slots; gives its key before and after that."""
        state = self._accounts[account]
        state.slots += units
        key = state.slots / state.weight
        before = state.key
        self._ranking.rekey(state, key)
        return before, key

    def release(self, account: str, unit: Vector, units: int) -> None:
        """The account gave back ``units`` slots."""
        self.charge(account, unit, -units)

    def begin_waiting(self, account: str) -> None:
        """Without effect: slots held do not depend on who waited first."""

    def activate(self, account: str) -> None:
        """The account takes part in ``first``."""
        self._ranking.activate(self._accounts[account])

    def deactivate(self, account: str) -> None:
        """The account rests."""
        self._ranking.deactivate(self._accounts[account])

    def key(self, account: str) -> float:
        """Slots held over the weight."""
        return self._accounts[account].key
