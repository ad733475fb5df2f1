"""Checks of single fields that come from outside: ids, names, roles, numbers, commands, environments, attributes.

Each gives the value back, or raises ``InvalidFieldError`` naming the field, what was expected and what came. None knows a
message: which fields those have is ``convert``'s business.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from fairlead_proto import limits
from fairlead_proto.ids import DEFAULT_ROLE, Role

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+=-]*")
is_id: Final = _ID.fullmatch
"""Truthy for what ``read_id`` takes, but for its length: where tens of thousands come a second."""
_ROLE: Final = re.compile(r"[a-z0-9][a-z0-9_.-]*(/[a-z0-9][a-z0-9_.-]*)*")
_VARIABLE: Final = re.compile(r"[^=\0]+")
_ATTRIBUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")
is_attribute: Final = _ATTRIBUTE.fullmatch
"""Truthy for the name of an attribute or a label."""


class InvalidFieldError(ValueError):
    """A message that cannot be used; the text names the field, what was expected and what came."""


class UnknownValueError(InvalidFieldError):
    """A value of a closed list that this version does not know; a newer one may. ``what`` names the list."""

    def __init__(self, what: str, text: str) -> None:
        super().__init__(text)
        self.what = what


def refusal(field: str, expected: str, got: object) -> InvalidFieldError:
    """The error to raise about a field."""
    text = repr(got)
    return InvalidFieldError(
        f"{field}: expected {expected}, got {text if len(text) <= 100 else text[:97] + '...'}"
    )


def read_id(field: str, text: str) -> str:
    """A non-empty id of letters, digits and ``. _ : @ + = -``, starting with a letter or digit."""
    if len(text) > limits.ID_LENGTH_MAX or _ID.fullmatch(text) is None:
        raise refusal(
            field,
            f"1 to {limits.ID_LENGTH_MAX} letters, digits or ._:@+=-, starting with one of the former",
            text,
        )
    return text


def read_name(field: str, text: str) -> str:
    """A name for people: bounded, printable."""
    if len(text) > limits.NAME_LENGTH_MAX or not text.isprintable():
        raise refusal(field, f"at most {limits.NAME_LENGTH_MAX} printable characters", text)
    return text


def read_role(field: str, text: str) -> Role:
    """A path of lower-case words such as ``eng/ml``; empty is the default role."""
    if not text:
        return DEFAULT_ROLE
    if (
        len(text) > limits.ID_LENGTH_MAX
        or _ROLE.fullmatch(text) is None
        or text.count("/") >= limits.ROLE_DEPTH_MAX
    ):
        raise refusal(
            field,
            f"lower-case words joined by / (at most {limits.ROLE_DEPTH_MAX}, {limits.ID_LENGTH_MAX} characters in all), like eng/ml",
            text,
        )
    return Role(text)


def read_duration(field: str, value: int) -> int:
    """Milliseconds, 0 to about a year."""
    if not 0 <= value <= limits.DURATION_MS_MAX:
        raise refusal(field, f"0 to {limits.DURATION_MS_MAX} ms", value)
    return value


def read_time(field: str, value: int) -> int:
    """Milliseconds since 1970, as far as dates go; 0 is no time."""
    if not 0 <= value <= limits.TIME_MS_MAX:
        raise refusal(field, f"0 to {limits.TIME_MS_MAX} ms since 1970", value)
    return value


def read_count(field: str, value: int) -> int:
    """A sequence, version, epoch or incarnation: 0 to 2^53."""
    if not 0 <= value <= limits.COUNT_MAX:
        raise refusal(field, f"0 to {limits.COUNT_MAX} (2^53)", value)
    return value


def read_weight(field: str, value: float) -> float:
    """A finite weight within the limits; NaN is none of them."""
    if not limits.WEIGHT_MIN <= value <= limits.WEIGHT_MAX:
        raise refusal(field, f"{limits.WEIGHT_MIN:g} to {limits.WEIGHT_MAX:g}", value)
    return value


def size_bytes(field: str, text: str) -> int:
    """How long a text is in UTF-8, in which it travels and is handed to the kernel."""
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        # What Python makes of bytes that are no UTF-8, as in its own environment.
        raise refusal(field, "text that can be written in UTF-8", text[error.start : error.end]) from None


def read_command(field: str, words: Sequence[str]) -> Sequence[str]:
    """The words of a command: at least one, bounded, without NUL."""
    if not words or not words[0]:
        raise InvalidFieldError(f"{field}: expected at least one word, got none")
    text = "".join(words)
    size = size_bytes(field, text)
    if "\0" in text:
        raise InvalidFieldError(f"{field}: expected no NUL byte")
    if size > limits.COMMAND_BYTES_MAX:
        raise refusal(field, f"at most {limits.COMMAND_BYTES_MAX} bytes", size)
    return words


def read_environment(field: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Variables of a process: bounded in bytes, names without ``=``, nothing with NUL."""
    size = 0
    for name, value in variables.items():
        size += size_bytes(field, name) + size_bytes(field, value)
        if _VARIABLE.fullmatch(name) is None or "\0" in value:
            raise refusal(field, "names without = or NUL, values without NUL", name)
    if size > limits.ENVIRONMENT_BYTES_MAX:
        raise refusal(field, f"at most {limits.ENVIRONMENT_BYTES_MAX} bytes", size)
    return dict(variables)


def read_path(field: str, text: str, *, is_absolute: bool = False) -> str:
    """A path, absolute or relative unless only an absolute one will do, which may be empty: bounded, without NUL."""
    if "\0" in text:
        raise refusal(field, "a path without NUL", text)
    if (size := size_bytes(field, text)) > limits.PATH_BYTES_MAX:
        raise refusal(field, f"a path of at most {limits.PATH_BYTES_MAX} bytes", size)
    if is_absolute and text and not text.startswith("/"):
        raise refusal(field, "an absolute path, since there is no sandbox without files", text)
    return text


def read_attributes(
    field: str, message: Mapping[str, str], *, count_max: int = limits.ATTRIBUTES_MAX
) -> dict[str, str]:
    """Attributes or labels: bounded in number, names are words, values printable."""
    if len(message) > count_max:
        raise refusal(field, f"at most {count_max}", len(message))
    for name, value in message.items():
        if is_attribute(name) is None:
            raise refusal(field, "names of letters, digits, _ . -", name)
        read_name(f"{field}.{name}", value)
    return dict(message)
