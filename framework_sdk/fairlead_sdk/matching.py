"""Which tasks go on an offer: plain arithmetic, shared by the simple path and by schedulers of one's own."""

from collections.abc import Iterable, Sequence
from typing import Final

from fairlead_proto.limits import MESSAGE_BYTES_MAX, TASKS_PER_ACCEPT_MAX
from fairlead_sdk.amounts import Amounts
from fairlead_sdk.events import Offer
from fairlead_sdk.task import Task

ACCEPT_BYTES_MAX: Final = MESSAGE_BYTES_MAX // 4
"""Task descriptions in one accept. An accept cannot be split, so what does not fit waits for the next offer."""


def offer_total(offer: Offer) -> dict[str, int]:
    """Resource name to whole amount of the entire offer."""
    return {name: amount * offer.units for name, amount in offer.unit.as_dict().items()}


def fits(demand: Amounts, room: dict[str, int]) -> bool:
    """Whether ``room`` holds ``demand``."""
    return all(amount <= room.get(name, 0) for name, amount in demand.as_dict().items())


def fitting_tasks(offer: Offer, tasks: Iterable[Task]) -> list[Task]:
    """The tasks that fit into the offer and whose constraints its agent meets, taken greedily in their order.

    At most as many as the offer has units: the master counts fairness in units of the class it offered.
    """
    room = offer_total(offer)
    chosen: list[Task] = []
    for task in tasks:
        if len(chosen) == offer.units:
            break
        if fits(task.demand, room) and all(c.holds(offer.attributes) for c in task.conditions):
            chosen.append(task)
            for name, amount in task.demand.as_dict().items():
                room[name] -= amount
    return chosen


def launchable_count(sizes_bytes: Sequence[int], *, units: int) -> int:
    """How many of the waiting tasks, with these description sizes, go into one accept of ``units`` units.

    At least one if there is one: a single description is always below what a message may hold.
    """
    count, total = 0, 0
    for size in sizes_bytes[: min(units, TASKS_PER_ACCEPT_MAX)]:
        total += size
        if count and total > ACCEPT_BYTES_MAX:
            break
        count += 1
    return count
