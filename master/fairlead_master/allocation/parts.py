"""Long reading in parts: a generator that yields wherever others may have a turn, and returns what it found.

Whatever it reads may have changed at each ``yield``: it goes over copies of what it lists, and looks up again what it tells of.
"""

from collections.abc import Generator
from typing import TypeVar

Result = TypeVar("Result")

Parts = Generator[None, None, Result]


def at_once(parts: Parts[Result]) -> Result:
    """The result, with nobody's turn between."""
    while True:
        try:
            next(parts)
        except StopIteration as end:
            result: Result = end.value
            return result
