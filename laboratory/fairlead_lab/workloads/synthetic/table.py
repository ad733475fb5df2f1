"""A table of a scenario file, read key by key; whatever is wrong with it is said with the path of the place.

Each key is asked for once, and ``done`` refuses what was never asked for: a misspelt key would otherwise be a default.
"""

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from fairlead_sdk.amounts import parse_duration
from fairlead_sim.workload import WorkloadError

T = TypeVar("T")

_MISSING: Final = object()


class Table:
    """A mapping of keys to plain values, with the path that leads to it."""

    def __init__(self, values: Any, path: str) -> None:
        """``path`` is such as ``classes[1].demand``, empty for the file as a whole.

        Raises:
            WorkloadError: not a table.
        """
        self.path = path
        if not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
            raise WorkloadError(f"{path or 'scenario'}: expected a table of keys, got {_shown(values)}")
        self._values = values
        self._known: list[str] = []

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def at(self, key: str) -> str:
        """The path of a key."""
        return f"{self.path}.{key}" if self.path else key

    def bad(self, key: str, expected: str) -> WorkloadError:
        """The error for the value of a key."""
        return WorkloadError(
            f"{self.at(key)}: expected {expected}, got {_shown(self._values.get(key, _MISSING))}"
        )

    def raw(self, key: str) -> Any:
        """The value of a key as it stands; None if it is not there."""
        self._known.append(key)
        return self._values.get(key)

    def require(self, key: str, expected: str) -> None:
        """Refuse a table without this key."""
        if key not in self._values:
            raise self.bad(key, expected)

    def text(self, key: str, default: str) -> str:
        """A text that is not empty."""
        value = self.raw(key)
        if value is None and key not in self:
            return default
        if not isinstance(value, str) or not value.strip():
            raise self.bad(key, "a text that is not empty")
        return value

    def one_of(self, key: str, names: Sequence[str], default: str | None) -> str:
        """One of these words; without a default it must be there."""
        value = self.raw(key)
        if key not in self and default is not None:
            return default
        if value not in names:
            raise self.bad(key, f"one of {', '.join(names)}")
        return str(value)

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        value = self.raw(key)
        if key not in self:
            return default
        if not isinstance(value, bool):
            raise self.bad(key, "true or false")
        return value

    def number(self, key: str, *, least: float, most: float, default: float, is_open: bool = False) -> float:
        """A number from ``least`` to ``most``; ``is_open`` leaves ``least`` itself out."""
        value = self.raw(key)
        if key not in self:
            return default
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not is_number or not least <= value <= most or (is_open and value == least):
            raise self.bad(
                key, f"a number {'above' if is_open else 'from'} {least:g} {_up_to(most, is_open)}"
            )
        return float(value)

    def whole(self, key: str, *, least: int, most: int, default: int | None) -> int | None:
        """A whole number from ``least`` to ``most``."""
        value = self.raw(key)
        if key not in self:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.bad(key, f"a whole number from {least} to {most}")
        return value

    def duration_ms(self, key: str, default: int | None) -> int | None:
        """A time in seconds, or a text such as ``5m``, in milliseconds."""
        value = self.raw(key)
        return default if key not in self else duration_ms(value, self.at(key))

    def table(self, key: str) -> "Table | None":
        """The table below a key, if it is there."""
        value = self.raw(key)
        return Table(value, self.at(key)) if key in self else None

    def items(self, key: str, expected: str, read: Callable[[Any, str], T]) -> list[T]:
        """Each item of a list, read with its path; empty if the key is not there. ``expected`` says what the list is of."""
        values = self.raw(key)
        if key not in self:
            return []
        if not isinstance(values, list) or not values:
            raise self.bad(key, f"a list of {expected}, not empty")
        return [read(value, f"{self.at(key)}[{number}]") for number, value in enumerate(values)]

    def done(self) -> None:
        """Refuse the keys that nobody asked for, with the nearest that somebody did."""
        for key in self._values:
            if key not in self._known:
                near = difflib.get_close_matches(key, self._known, n=1)
                hint = f" (did you mean {near[0]}?)" if near else ""
                raise WorkloadError(
                    f"{self.at(key)}: expected one of the keys {', '.join(sorted(self._known))}, "
                    f"got {key!r}{hint}"
                )


def duration_ms(value: Any, path: str) -> int:
    """A time in seconds, or a text such as ``500ms``, ``30s``, ``5m``, ``2h``, in milliseconds.

    Raises:
        WorkloadError: not of that form, negative, or longer than about a year.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise WorkloadError(
            f"{path}: expected seconds, or a time such as 500ms, 5s, 5m, 2h, got {_shown(value)}"
        )
    try:
        return parse_duration(path, value)
    except ValueError as error:
        raise WorkloadError(str(error)) from None


def text_item(value: Any, path: str) -> str:
    """An item of a list that is to be a text, not empty."""
    if not isinstance(value, str) or not value.strip():
        raise WorkloadError(f"{path}: expected a text that is not empty, got {_shown(value)}")
    return value


def _up_to(most: float, is_open: bool) -> str:  # noqa: FBT001 - says which words to use
    return f"and up to {most:g}" if is_open else f"to {most:g}"


def _shown(value: Any) -> str:
    if value is _MISSING:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
