"""The decorator of values that are made by the ten thousand a second: frozen for the type checker, cheap to make.

``dataclass(frozen=True)`` sets each field through ``object.__setattr__``, which makes a status of eleven fields cost
2.7 us instead of 0.8, and a task's life makes a dozen such values. The type checker refuses to change a value either
way, and every line of the project passes it; so the check at run time is what can be done without.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

_T = TypeVar("_T")

_make: Callable[[type], type] = dataclass(slots=True, kw_only=True, unsafe_hash=True)
_make_short: Callable[[type], type] = dataclass(slots=True, unsafe_hash=True)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def value(cls: type[_T]) -> type[_T]:
    """A slotted, keyword-only dataclass, compared and hashed by its fields, which nobody changes."""
    return _make(cls)


@dataclass_transform(frozen_default=True)
def short_value(cls: type[_T]) -> type[_T]:
    """The same with fields that may be given by position: for two or three whose order is plain."""
    return _make_short(cls)
