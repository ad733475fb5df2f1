"""Parses long messages piece by piece.

Protobuf's parser holds Python's lock from a message's first byte to its last, in whatever thread it runs: 16 MiB from a
peer would stop the master's loop for a tenth of a second, and for more if they are many small fields. But to parse two pieces
into one message is to parse both together, if they are cut between fields. So this cuts long messages there, and inside
of those of their fields that are long messages themselves.
"""

from collections.abc import Iterator
from itertools import count
from typing import Any, Final

from google.protobuf.message import DecodeError, Message

from fairlead_proto.fields import InvalidFieldError

PIECE_BYTES: Final = 64 * 1024
"""Of a piece, at least: 1 to 3 ms at worst. Only a single field that is not a message may be longer."""

FIELDS_MAX: Final = 500_000
"""Of a long message that are looked at one by one, 3 µs each: twice the tasks that fit into one message of ids."""

_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_VARINT_LENGTH_MAX: Final = 10


def parse(message: Message, raw: bytes) -> None:
    """Fill an empty message with what the bytes say.

    Raises:
        InvalidFieldError: they are no such message.
    """
    try:
        if len(raw) <= PIECE_BYTES:
            message.ParseFromString(raw)
            return
        for part, piece in pieces(message, memoryview(raw)):
            part.MergeFromString(piece.tobytes())
    except DecodeError:
        raise InvalidFieldError(
            f"message: expected a {message.DESCRIPTOR.full_name}, got something else"
        ) from None


def pieces(
    message: Message, raw: memoryview, counted: Iterator[int] | None = None
) -> Iterator[tuple[Message, memoryview]]:
    """The bytes in pieces, each with the part of the message that it is to be merged into before the next is asked for.

    Raises:
        DecodeError: they are no message.
        InvalidFieldError: they are too many fields.
    """
    fields = message.DESCRIPTOR.fields_by_number
    counted = counted or count()
    begun = place = 0
    while place < len(raw):
        if next(counted) >= FIELDS_MAX:
            raise InvalidFieldError(f"message: expected at most {FIELDS_MAX} fields in it, got more")
        tag, inner = _varint(raw, place)
        start, end = _extent(raw, inner, tag & 7)
        field = fields.get(tag >> 3)
        if tag & 7 == _BYTES and end - start > PIECE_BYTES and field is not None and _is_cut(field):
            yield message, raw[begun:place]
            part = getattr(message, field.name)
            if isinstance(part, Message):
                part.SetInParent()
            else:
                part = part.add()  # One more of a repeated field.
            yield from pieces(part, raw[start:end], counted)
            begun = end
        elif end - begun > PIECE_BYTES:
            yield message, raw[begun:end]
            begun = end
        place = end
    yield message, raw[begun:]


def _is_cut(field: Any) -> bool:
    return field.message_type is not None and not field.message_type.GetOptions().map_entry


def _extent(raw: memoryview, place: int, wire_type: int) -> tuple[int, int]:
    """Where the value that stands there begins and ends."""
    start = place
    if wire_type == _VARINT:
        _, end = _varint(raw, place)
    elif wire_type == _BYTES:
        length, start = _varint(raw, place)
        end = start + length
    elif wire_type in (_FIXED_64, _FIXED_32):
        end = place + (8 if wire_type == _FIXED_64 else 4)
    else:
        raise DecodeError("groups are not used")
    if end > len(raw):
        raise DecodeError("a field ends behind its message")
    return start, end


def _varint(raw: memoryview, place: int) -> tuple[int, int]:
    """The number that stands there, and where it ends."""
    value = 0
    for length in range(min(_VARINT_LENGTH_MAX, len(raw) - place)):
        byte = raw[place + length]
        value |= (byte & 127) << 7 * length
        if byte < 128:
            return value, place + length + 1
    raise DecodeError("a number that does not end")
