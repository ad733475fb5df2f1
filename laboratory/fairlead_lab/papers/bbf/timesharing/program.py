"""Programs of processes, in the text format of paper 004, figure 1.

    # Priority:
    34
    # Requests:
    loop 1
    CPU_CS 2 0 NORM
    loop 40
    DISK_CS 0.1 0.05 NORM
    CPU_CS 0.1 0.05 NORM

The entitlement, then loops, one after another and not within one another. A loop is repeated so many times and holds uses
of resources: name, mean and width of the service time in seconds, and its distribution. A name that ends in ``_CS`` can
be switched between processes at the end of each quantum; others serve a process until it is done. ``IDLE`` is no resource
but a pause. What the paper leaves open: other lines that begin with ``#`` are comments, and empty lines mean nothing.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, unique
from math import isfinite
from random import Random
from typing import Final, assert_never

IDLE: Final = "IDLE"
"""Takes the place of a resource: "we use the 'idle' resource to delay the blue process" (section 4.2). In any case."""

SWITCHED_SUFFIX: Final = "_CS"

PRIORITY_MIN: Final = 0.001
PRIORITY_MAX: Final = 1_000_000.0
"""The live policy counts entitlements in millionths; with three digits of the smallest one nothing is lost."""

SECONDS_MAX: Final = 1_000_000.0
"""Of one use, eleven days: beyond it a unit was mistaken."""

TIMES_MAX: Final = 1_000_000
"""Of one loop."""

BYTES_MAX: Final = 1 << 20
"""Of one program. The paper's have 80."""

_HEADER: Final = re.compile(r"#\s*(priority|requests)\s*:?", re.IGNORECASE)
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_PRIORITY, _REQUESTS = "# Priority:", "# Requests:"


class ProgramError(ValueError):
    """A program that cannot be run; the message names the line, what was expected and what came."""


@unique
class Distribution(Enum):
    """The distribution of a service time, by the name that programs use."""

    UNIF = "uniform"
    """Between the mean minus and plus the width."""
    EXP = "exponential"
    """The width means nothing."""
    NORM = "normal"
    """The width is the standard deviation. What would be below zero is zero."""


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a resource in a loop."""

    resource: str
    """Without the suffix; ``IDLE`` for a pause."""
    mean_s: float
    width_s: float = 0.0
    distribution: Distribution = Distribution.NORM
    is_switched: bool = True
    """Whether the resource may go to another process after each quantum."""

    @property
    def is_pause(self) -> bool:
        """Whether nothing is used."""
        return self.resource == IDLE

    def draw_ms(self, dice: Random) -> int:
        """A service time in whole milliseconds. Draws from ``dice`` even if the width is zero."""
        return max(0, round(self._draw_s(dice) * 1000))

    def _draw_s(self, dice: Random) -> float:
        match self.distribution:
            case Distribution.UNIF:
                return dice.uniform(self.mean_s - self.width_s, self.mean_s + self.width_s)
            case Distribution.EXP:
                return dice.expovariate(1 / self.mean_s)
            case Distribution.NORM:
                return dice.gauss(self.mean_s, self.width_s)
            case _:
                assert_never(self.distribution)


@dataclass(frozen=True, slots=True)
class Loop:
    """Uses, one after another, so many times."""

    times: int
    uses: tuple[Use, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """What one process does."""

    name: str
    priority: float
    """The entitlement, in any unit: what counts is its relation to those of others."""
    loops: tuple[Loop, ...]

    def __iter__(self) -> Iterator[Use]:
        """All uses in order, repetitions included."""
        for loop in self.loops:
            for _ in range(loop.times):
                yield from loop.uses

    def expected_s(self) -> float:
        """Mean run time without competition, apart from what truncation at zero adds."""
        return sum(loop.times * use.mean_s for loop in self.loops for use in loop.uses)

    def expected_turns(self, quantum_s: float) -> float:
        """Approximate mean number of turns; a pause counts as one."""
        return sum(
            loop.times * (max(1, use.mean_s / quantum_s) if use.is_switched else 1)
            for loop in self.loops
            for use in loop.uses
        )


def parse(text: str, name: str, source: str | None = None) -> Program:
    """Read a program; ``name`` is what the process is called, and in errors as well unless there is a ``source``.

    Raises:
        ProgramError: it is not of this format.
    """
    return _Reader(name, source or name).read(text)


def resources_of(programs: Iterable[Program]) -> dict[str, bool]:
    """All resources, in the order in which the programs name them, and whether each can be switched.

    Raises:
        ProgramError: one of them is both.
    """
    found: dict[str, tuple[bool, str]] = {}
    for program in programs:
        for use in (use for loop in program.loops for use in loop.uses if not use.is_pause):
            is_switched, first = found.setdefault(use.resource, (use.is_switched, program.name))
            if is_switched != use.is_switched:
                forms = [use.resource + SWITCHED_SUFFIX * each for each in (is_switched, use.is_switched)]
                raise ProgramError(
                    f"{program.name}: expected {forms[0]}, as in {first}, got {forms[1]}: a resource can be switched "
                    "between processes or it cannot"
                )
    return {resource: is_switched for resource, (is_switched, _) in found.items()}


class _Reader:
    """Reads one program, line by line."""

    def __init__(self, name: str, source: str) -> None:
        self._name = name
        self._source = source
        self._line = 0
        self._section = ""
        self._priority: float | None = None
        self._loops: list[tuple[int, int, list[Use]]] = []
        """Line, times, uses."""

    def read(self, text: str) -> Program:
        for self._line, raw in enumerate(text.splitlines(), 1):
            line = raw.strip()
            if line.startswith("#"):
                self._comment(line)
            elif line:
                self._content(line)
        self._line = 0
        if self._priority is None:
            raise self._error(f"expected a number below {_PRIORITY!r}, got none")
        for line_number, _, uses in self._loops:
            self._line = line_number
            if not uses:
                raise self._error("expected a use of a resource in the loop, got none")
        self._line = 0
        if not self._loops:
            raise self._error(f"expected loops below {_REQUESTS!r}, got none")
        loops = tuple([Loop(times, tuple(uses)) for _, times, uses in self._loops])
        return Program(self._name, self._priority, loops)

    def _error(self, message: str) -> ProgramError:
        place = f"{self._source}:{self._line}" if self._line else self._source
        return ProgramError(f"{place}: {message}")

    def _comment(self, line: str) -> None:
        header = _HEADER.fullmatch(line)
        if header is not None:
            self._section = _PRIORITY if header[1].lower() == "priority" else _REQUESTS

    def _content(self, line: str) -> None:
        if self._section == _REQUESTS:
            words = line.split()
            if words[0].lower() == "loop":
                self._begin_loop(words)
            else:
                self._add_use(words)
        elif self._section == _PRIORITY and self._priority is None:
            self._priority = self._number(line, "a priority", PRIORITY_MIN, PRIORITY_MAX)
        elif self._section == _PRIORITY:
            raise self._error(f"expected one priority, got a second: {line!r}")
        else:
            raise self._error(f"expected {_PRIORITY!r}, got {line!r}")

    def _begin_loop(self, words: list[str]) -> None:
        number = words[1] if len(words) == 2 else ""
        if not (number.isascii() and number.isdigit() and len(number) <= 7 and 1 <= int(number) <= TIMES_MAX):
            raise self._error(f"expected 'loop N' with N from 1 to {TIMES_MAX}, got {' '.join(words)!r}")
        self._loops.append((self._line, int(number), []))

    def _add_use(self, words: list[str]) -> None:
        if len(words) != 4:
            raise self._error(
                f"expected 'loop N' or 'RESOURCE MEAN WIDTH DISTRIBUTION', got {' '.join(words)!r}"
            )
        if not self._loops:
            raise self._error(f"expected 'loop N' before the first use, got {' '.join(words)!r}")
        name, mean, width, distribution = words
        if distribution not in Distribution.__members__:
            raise self._error(
                f"distribution: expected one of {', '.join(Distribution.__members__)}, got {distribution!r}"
            )
        resource, is_switched = self._resource(name)
        use = Use(
            resource,
            self._number(mean, "mean: a time in seconds", 0.001, SECONDS_MAX),
            self._number(width, "width: a time in seconds", 0, SECONDS_MAX),
            Distribution[distribution],
            is_switched,
        )
        if use.distribution is Distribution.UNIF and use.width_s > use.mean_s:
            raise self._error(f"width: expected at most the mean of {mean}, as half the range, got {width}")
        self._loops[-1][2].append(use)

    def _resource(self, name: str) -> tuple[str, bool]:
        resource = name.removesuffix(SWITCHED_SUFFIX)
        is_switched = resource != name
        if not _NAME.fullmatch(resource):
            raise self._error(
                f"resource: expected a letter and up to 63 letters, digits and underscores, got {name!r}"
            )
        if resource.upper() != IDLE:
            return resource, is_switched
        if is_switched:
            raise self._error(f"resource: expected {IDLE}, which nobody waits for, without {SWITCHED_SUFFIX}")
        return IDLE, False

    def _number(self, text: str, what: str, low: float, high: float) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not (isfinite(value) and low <= value <= high):
            raise self._error(f"expected {what} from {low:g} to {high:.0f}, got {text!r}")
        return value
