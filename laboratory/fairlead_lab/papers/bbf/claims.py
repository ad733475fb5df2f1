"""What the text of paper 004 says of a figure, beside what was found."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from fairlead_lab.papers.experiment import Agreement, Verdict

ROUNDING = 0.005
"""Half a per cent: the text gives shares in whole ones."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A number or statement of the text and its counterpart."""

    what: str
    text: str
    """As printed, or shortly what is stated."""
    found: float
    low: float
    high: float
    stated: float | None = None
    """The number, if the text has one."""

    @property
    def holds(self) -> bool:
        """Whether what was found is between the bounds."""
        return self.low <= self.found <= self.high

    def __str__(self) -> str:
        return f"{self.what} {self.found:.3g} (text: {self.text})"


def number(what: str, text: str, found: float, stated: float, within: float) -> Claim:
    """A number of the text, all of which are shares of a resource's or a process's time."""
    return Claim(what, text, found, stated - within, stated + within, stated)


def statement(what: str, text: str, found: float, *, low: float = -inf, high: float = inf) -> Claim:
    """Something the text says in words, which means a number within bounds."""
    return Claim(what, text, found, low, high)


def judge(claims: Sequence[Claim]) -> Verdict:
    """All of them in one line."""
    broken = [claim for claim in claims if not claim.holds]
    if broken:
        return Verdict(Agreement.DIFFERS, "; ".join(map(str, broken)))
    numbers = [claim for claim in claims if claim.stated is not None]
    words = _counted(len(claims) - len(numbers), "statement")
    if not numbers:
        return Verdict(Agreement.AGREES, f"{words} of the text")
    furthest = max(numbers, key=_distance)
    parts = [_counted(len(numbers), "number"), *([words] if len(claims) > len(numbers) else [])]
    counted = " and ".join(parts)
    if _distance(furthest) <= ROUNDING:
        return Verdict(Agreement.AGREES, f"{counted} of the text")
    return Verdict(
        Agreement.WITHIN, f"{100 * _distance(furthest):.1f} percentage points ({counted}): {furthest}"
    )


def _distance(claim: Claim) -> float:
    return abs(claim.found - claim.stated) if claim.stated is not None else 0.0


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"
