"""Messages as a hostile, broken or newer peer might send them: any of the schema's types, with numbers at every edge."""

from typing import Any, TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from hypothesis import strategies as st

M = TypeVar("M", bound=Message)

_F = FieldDescriptor
_SIGNED = (0, 1, -1, 7, 1000, 2**31 - 1, 2**31, 2**53, 2**53 + 1, 2**63 - 1, -(2**63))
_UNSIGNED = (0, 1, 2, 7, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1)
_NARROW = (0, 1, -1, 9, 255, 256, 2**31 - 1, -(2**31))
_ENUMS = (0, 1, 2, 3, 4, 5, 8, 12, 99, -1, 2**31 - 1)
_REALS = (0.0, 1.0, -1.0, 1e-300, 1e308, float("inf"), float("-inf"), float("nan"))
_TEXTS = (
    "", "t1", "f1-1", "a1-1", "o1-1", "c", "default", "eng/ml", "x", "true", "rack", "rack[0-9]+", "(?=a)",
    "\0", "a\0b", "\x1b[2J", "a\nb", "../..", "x" * 201, "x" * 257, "\N{LATIN SMALL LETTER E WITH ACUTE}" * 300,
)  # fmt: skip

_FIELD_500 = b"\xa2\x1f\x02\x08\x01"
"""Field 500, with two bytes in it."""

_INTEGERS = {
    _F.TYPE_INT64: _SIGNED,
    _F.TYPE_UINT64: _UNSIGNED,
    _F.TYPE_INT32: _NARROW,
    _F.TYPE_SINT64: _SIGNED,
    _F.TYPE_SINT32: _NARROW,
    _F.TYPE_ENUM: _ENUMS,
}


def from_a_newer_peer(message: M) -> M:
    """The message with a field that this version of the schema does not have; in a union, an arm that it does not have."""
    newer = type(message)()
    newer.ParseFromString(message.SerializeToString() + _FIELD_500)
    return newer


def any_message(kind: type[M]) -> st.SearchStrategy[M]:
    """Messages of a type, whatever the schema can carry."""
    return st.composite(lambda draw: _filled(draw, kind()))()


def spoiled(message: M) -> st.SearchStrategy[M]:
    """Copies of a message in which one to three fields, however deep, are of any value."""
    return st.composite(lambda draw: _spoiled(draw, message))()


def _spoiled(draw: Any, message: M) -> M:
    copy = type(message)()
    copy.CopyFrom(message)
    for _ in range(draw(st.integers(1, 3))):
        place: Any = copy
        while True:
            if not place.DESCRIPTOR.fields:
                return copy
            field = draw(st.sampled_from(list(place.DESCRIPTOR.fields)))
            inside = _inside(place, field)
            if not inside or draw(st.integers(0, 3)) == 0:
                break
            place = draw(st.sampled_from(inside))
        place.ClearField(field.name)
        _set(draw, place, field)
    return copy


def _inside(message: Message, field: FieldDescriptor) -> list[Message]:
    """The messages that the field holds and that may be gone into."""
    if field.message_type is None or _is_map(field):
        return []
    if field.is_repeated:
        return [part for part in getattr(message, field.name) if part.DESCRIPTOR.fields]
    return [getattr(message, field.name)] if message.HasField(field.name) else []


def _filled(draw: Any, message: Any) -> Any:
    descriptor: Descriptor = message.DESCRIPTOR
    for oneof in descriptor.oneofs:
        field = draw(st.sampled_from([None, *oneof.fields]))
        if field is not None:
            _set(draw, message, field)
    for field in descriptor.fields:
        if field.containing_oneof is None and draw(st.booleans()):
            _set(draw, message, field)
    return message


def _set(draw: Any, message: Any, field: FieldDescriptor) -> None:
    count = draw(st.integers(0, 2)) if field.is_repeated else 1
    if _is_map(field):
        assert field.message_type is not None
        key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
        for _ in range(count):
            getattr(message, field.name)[draw(_values(key))] = draw(_values(value))
    elif field.message_type is not None:
        for _ in range(count):
            part = getattr(message, field.name)
            _filled(draw, part.add() if field.is_repeated else part)
            if not field.is_repeated:
                part.SetInParent()
    elif field.is_repeated:
        getattr(message, field.name).extend(draw(_values(field)) for _ in range(count))
    else:
        setattr(message, field.name, draw(_values(field)))


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _values(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.type in _INTEGERS:
        return st.sampled_from(_INTEGERS[field.type])
    if field.type == _F.TYPE_DOUBLE:
        return st.sampled_from(_REALS)
    if field.type == _F.TYPE_BOOL:
        return st.booleans()
    if field.type == _F.TYPE_BYTES:
        return st.binary(max_size=4)
    assert field.type == _F.TYPE_STRING, field.full_name
    return st.sampled_from(_TEXTS) | st.text(max_size=4)
