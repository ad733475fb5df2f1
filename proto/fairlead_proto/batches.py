"""Packs what is written to one peer: few messages, none much longer than a batch may be, none with a step too long to take."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Generic, TypeVar

from fairlead_proto.limits import BATCH_BYTES_MAX, RECORDS_PER_ACTION_MAX

Batch = TypeVar("Batch")
Order = TypeVar("Order")
Kind = TypeVar("Kind")


class Batches(Generic[Batch]):
    """Batches for one peer, in the order in which they are to be written.

    A batch is full when it holds ``BATCH_BYTES_MAX``; the message that fills it may take it beyond that.
    """

    def __init__(self, new: Callable[[], Batch], messages_of: Callable[[Batch], Any]) -> None:
        """``new`` makes an empty batch, ``messages_of`` gives the field of it that messages are added to."""
        self._new = new
        self._messages_of = messages_of
        self.made = [new()]
        self._messages = messages_of(self.made[0])
        self._bytes = 0

    def message(self) -> Any:
        """An empty message to fill."""
        if self._messages:
            self._bytes += self._messages[-1].ByteSize()
        if self._bytes >= BATCH_BYTES_MAX:
            self.made.append(self._new())
            self._messages = self._messages_of(self.made[-1])
            self._bytes = 0
        return self._messages.add()


def joined(orders: Iterable[Order], kind: type[Kind], records: str) -> list[Order]:
    """The orders, those of a kind that follow one another as one, as long as it has no more records than an order may.

    Args:
        orders: in order.
        kind: a value that differs from others of one session by its records alone.
        records: the field that has them, a tuple.
    """
    found: list[Order] = []
    for order in orders:
        last = found[-1] if found else None
        if type(order) is kind and type(last) is kind:
            both = (*getattr(last, records), *getattr(order, records))
            if len(both) <= RECORDS_PER_ACTION_MAX:
                found[-1] = replace(order, **{records: both})  # type: ignore[type-var]  # It is a dataclass.
                continue
        found.append(order)
    return found
