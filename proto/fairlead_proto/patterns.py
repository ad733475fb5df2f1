"""Regular expressions that strangers may have a master match: those that cannot run away.

Python's matcher tries every way to share a text out among repetitions. Repetitions of groups can make that exponential
in the text's length, and each further repetition adds a power. So groups may not be repeated, and few repetitions are
allowed: with two of them a value of 256 characters costs at most some ten thousand steps.
"""

import re
from typing import Final

REPETITIONS_MAX: Final = 2
"""Of ``*``, ``+`` and ``{m,n}`` in one pattern: enough for ``.*-gpu-.*``."""

_REPEATS: Final = "*+{"


def fault_in(pattern: str) -> str:
    """What is wrong with a pattern, empty if nothing is: it must compile and must not be able to run away."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"a regular expression ({error})"
    repetitions = 0
    before = ""
    for character in _outside_classes(pattern):
        if character in _REPEATS:
            repetitions += 1
            if before == ")":
                return "no repetition of a group"
        if before == "\\" and character.isdigit():
            return "no reference to a group"
        before = character
    if repetitions > REPETITIONS_MAX:
        return f"at most {REPETITIONS_MAX} repetitions (* + or {{}})"
    return ""


def _outside_classes(pattern: str) -> list[str]:
    """The pattern's characters, an escaped one as a backslash and itself if a digit, a class ``[...]`` as one dot."""
    characters = []
    place = 0
    while place < len(pattern):
        character = pattern[place]
        if character == "\\":
            escaped = pattern[place + 1]
            characters += ["\\", escaped] if escaped.isdigit() else ["."]
            place += 2
        elif character == "[":
            characters.append(".")
            place = _end_of_class(pattern, place) + 1
        else:
            characters.append(character)
            place += 1
    return characters


def _end_of_class(pattern: str, start: int) -> int:
    """Where the class that begins at ``start`` ends. A closing bracket that comes first in it is one of its members."""
    place = start + 1
    if pattern[place] == "^":
        place += 1
    if pattern[place] == "]":
        place += 1
    while pattern[place] != "]":
        place += 2 if pattern[place] == "\\" else 1
    return place
