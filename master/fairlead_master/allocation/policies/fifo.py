"""First come, first served: the account that began to wait first keeps going until it wants nothing more.

    key_i = number of account i in the order in which accounts began to wait

A baseline without fairness, whose weights mean nothing. An account begins to wait when it wants something after having
wanted nothing; an offer that comes back does not send it to the end of the queue.
"""

from fairlead_master.allocation.api import Policy
from fairlead_master.allocation.ranking import Ranked, Ranking
from fairlead_master.allocation.weights import Weight
from fairlead_proto.resources import Vector


class FirstComeFirstServed(Policy):
    """The policy ``fifo``. See the module's docstring for its key."""

    name = "fifo"

    def __init__(self) -> None:
        self._ranking = Ranking()
        self.first = self._ranking.first
        self._accounts: dict[str, Ranked] = {}

    def set_capacity(self, capacity: Vector, slots: int) -> None:
        """Without effect."""

    def add(self, account: str, weight: Weight, charged: Vector, units: int) -> None:  # noqa: ARG002 - order is all
        """A new account, resting, at the front of the queue until it begins to wait."""
        self._accounts[account] = ranked = Ranked(account, 0.0)
        self._ranking.add(ranked)

    def remove(self, account: str) -> None:
        """Forget an account."""
        self._ranking.deactivate(self._accounts.pop(account))

    def set_weight(self, account: str, weight: Weight) -> None:
        """Without effect."""

    def charge(self, account: str, unit: Vector, units: int) -> tuple[float, float]:  # noqa: ARG002 - order is all
        """Without effect; gives the account's key twice."""
        key = self._accounts[account].key
        return key, key

    def release(self, account: str, unit: Vector, units: int) -> None:
        """Without effect."""

    def begin_waiting(self, account: str, number: int) -> None:
        """The account goes to the end of the queue."""
        self._ranking.rekey(self._accounts[account], float(number))

    def activate(self, account: str) -> None:
        """The account takes part in ``first``."""
        self._ranking.activate(self._accounts[account])

    def deactivate(self, account: str) -> None:
        """The account rests."""
        self._ranking.deactivate(self._accounts[account])

    def key(self, account: str) -> float:
        """The account's number in the queue."""
        return self._accounts[account].key
