"""What peers of different versions tell one another of themselves, and what becomes of words that only one of them knows.

A cluster is upgraded host by host, so a newer peer says things that an older one has never heard of. Those are skipped where
nothing is lost by it, counted, and told once; a peer is never sent away for them. What must not be skipped, such as
a new condition on where a task may run, is refused with an answer and not by the end of a session.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from fairlead_proto.fields import UnknownValueError

Message = TypeVar("Message")
Value = TypeVar("Value")


COLUMNS: Final = "columns"
"""Reads statuses, acknowledgements and what was launched as lists of fields."""

ARRAYS: Final = "arrays"
"""Reads tasks of an array as a template and what each has for itself."""

FOLLOWS_OUTPUT: Final = "follows-output"
"""Sends what tasks write to who follows their framework (``FollowOutput``). Of tasks on an agent that does not, the output is
read when they are over."""

CAPABILITIES: Final = ("skips-unknown", COLUMNS, ARRAYS, FOLLOWS_OUTPUT)
"""What this version can do beyond the first of the protocol, as it says in the first message of every session: messages and
values that it does not know end no session, and what the words above say. What needs such a word is sent to peers that said it."""

Capabilities = tuple[str, ...]
"""What a peer said that it can do, as far as it matters here. In the order of ``CAPABILITIES``: they are written down, where the
order of a set would be another in each process."""

NONE: Final[Capabilities] = ()
"""Of a peer of the first version, or one that has said nothing yet."""


def read_capabilities(words: Iterable[str]) -> Capabilities:
    """The words that are known here; a newer peer may say more."""
    said = set(words)
    return tuple([word for word in CAPABILITIES if word in said])


class Unknowns:
    """Counts what peers said that this version does not know.

    Messages may be read in threads: a count that two of them raise at once may be one short.
    """

    def __init__(self, tell: Callable[[str, str], None] = lambda _what, _detail: None) -> None:
        """``tell`` is given the first of each kind: what it is, and a sentence about it."""
        self._tell = tell
        self.counts: Counter[str] = Counter()
        """By kind, of which there are as many as places in the schema where something can be new."""

    def note(self, what: str, detail: str) -> None:
        """Count one."""
        self.counts[what] += 1
        if self.counts[what] == 1:
            self._tell(what, detail)

    def known(
        self, field: str, messages: Iterable[Message], read: Callable[[str, Message], Value]
    ) -> list[Value]:
        """What ``read`` makes of each message, in order, without those that have a value this version does not know.

        Args:
            field: the name of the list.
            messages: the list.
            read: is given the name of an item and the item, and may raise ``UnknownValueError``.
        """
        found: list[Value] = []
        for index, message in enumerate(messages):
            try:
                found.append(read(f"{field}[{index}]", message))
            except UnknownValueError as error:
                self.note(error.what, str(error))
        return found
