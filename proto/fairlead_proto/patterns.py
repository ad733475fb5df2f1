"""Regular expressions that strangers may have a master match: in time linear in the value, whatever the pattern.

They are RE2's, which follows all ways through a pattern at once where Python's matcher tries one after another. What that
cannot do, look-around and references to groups, is no part of its syntax. ``docs/adr`` has what it costs.
"""

from functools import lru_cache
from typing import Any, Final

PATTERNS_KEPT: Final = 1_000
"""Compiled patterns. Frameworks bring them, so there must be a bound; one costs a few KiB, at most ``_MEMORY_BYTES_MAX``."""

VERDICTS_KEPT: Final = 2**17
"""Values whose match with a pattern is remembered: the 32 patterns of a framework over 4,096 agents. A look at what is
remembered costs a twentieth of a match; full, they take some 20 MiB."""

_MEMORY_BYTES_MAX: Final = 64 * 1024
"""Of one pattern's automaton, states met while matching included; RE2 refuses what does not fit and forgets states when
it is full. Bounds the time to compile one: what is refused costs at most some ten milliseconds."""

_PROGRAM_SIZE_MAX: Final = 1_000
"""Steps that RE2 makes of a pattern, each of which a byte of the value may cost once. ``.*-gpu-.*`` has 25 and ``.{1,63}``
567; nested repetitions such as ``((a{1,10}){1,10}){1,10}`` have thousands, ``\\pL``, a letter of any script, 1,200."""


def fault_in(pattern: str) -> str:
    """What was expected of a pattern that cannot be used, empty if it can."""
    # Lazily, here and below: who matches no pattern, as an agent does not, need not load it.
    from re2 import error as PatternError  # noqa: N812 - it is a class

    try:
        program = _compiled(pattern)
    except PatternError as error:
        return f"a regular expression of RE2, without look-around and references to groups ({_words(error)})"
    except UnicodeEncodeError:
        return "a pattern that has an encoding in UTF-8"
    if program.programsize > _PROGRAM_SIZE_MAX:
        return f"a smaller pattern: at most {_PROGRAM_SIZE_MAX} steps, not {program.programsize}"
    return ""


@lru_cache(maxsize=VERDICTS_KEPT)
def steps(pattern: str) -> int:
    """Steps that RE2 makes of a pattern that has no fault, each of which a byte of a value may cost once."""
    size: int = _compiled(pattern).programsize
    return size


@lru_cache(maxsize=VERDICTS_KEPT)
def matches(pattern: str, value: str) -> bool:
    """Whether the whole value matches a pattern that has no fault."""
    return _compiled(pattern).fullmatch(value) is not None


@lru_cache(maxsize=PATTERNS_KEPT)
def _compiled(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.max_mem = _MEMORY_BYTES_MAX
    options.never_capture = True  # Nobody asks what a group matched, and finding out costs a second pass.
    options.log_errors = False  # They would go to standard error, past the log.
    return re2.compile(pattern, options)


def _words(error: Exception) -> str:
    """What RE2 says, which its binding gives as bytes."""
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)
