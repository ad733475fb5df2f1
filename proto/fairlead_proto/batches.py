"""Packs what is written to one peer: few messages, none much longer than a batch may be, none with a step too long to take."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from fairlead_proto.limits import BATCH_BYTES_MAX, RECORDS_PER_ACTION_MAX

Batch = TypeVar("Batch")


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
        self._record_room = 0

    def message(self, record_count: int = 0) -> Any:
        """An empty message to fill, or the last one, if that has room for so many records more.

        Args:
            record_count: records of a kind that may share a message with those before them; 0 for a message of its own.
        """
        if 0 < record_count <= self._record_room:
            self._record_room -= record_count
            return self._messages[-1]
        if self._messages:
            self._bytes += self._messages[-1].ByteSize()
        if self._bytes >= BATCH_BYTES_MAX:
            self.made.append(self._new())
            self._messages = self._messages_of(self.made[-1])
            self._bytes = 0
        self._record_room = RECORDS_PER_ACTION_MAX - record_count if record_count else 0
        return self._messages.add()
