"""What the text of a paper says of a figure, compared with what was found.

The papers' charts are pictures without tables, so the numbers and words of their text are all that can be compared. A
statement is made by one of ``number``, ``near``, ``about`` and ``between``, or directly; ``judge`` and ``judge_by_count`` sum a
figure's statements up as its verdict.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from fairlead_lab.papers.experiment import Agreement, Verdict

ROUNDING: Final = 0.005
"""Half a per cent: paper 004 gives shares in whole per cents, so a smaller difference is none."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of the text and whether it holds."""

    found: str
    """What was found, in words and numbers."""
    holds: bool
    """Whether that is what the paper says."""
    why_not: str = ""
    """If not: what the paper says, and why it is otherwise."""
    distance: float | None = None
    """From the number that the text gives, where the verdict is to report it; None for words."""

    def __str__(self) -> str:
        return f"{self.found} ({self.why_not})" if self.why_not else self.found


def number(what: str, found: float, printed: str, why_not: str = "") -> Statement:
    """A printed number: holds if ``found`` rounds to it, within half of its last place."""
    places = len(printed.partition(".")[2])
    holds = abs(found - float(printed)) <= 0.5 * 10**-places + 1e-9
    shown = f"{found:.{max(places, 1)}f}".removesuffix(".0")
    return Statement(f"{what} {shown}", holds, why_not or f"printed: {printed}")


def near(what: str, found: float, stated: float, within: float, why_not: str) -> Statement:
    """A number that the text gives roughly: holds if it is at most ``within`` away from it; ``what`` shows the number."""
    distance = abs(found - stated)
    return Statement(what, distance <= within, why_not, distance)


def about(what: str, found: float, stated: float, within: float, *, text: str = "") -> Statement:
    """A share of time that the text gives, in these words or in per cent: holds if it is at most ``within`` away from it."""
    holds = stated - within <= found <= stated + within
    said = text or f"{stated * 100:.0f} %"
    return Statement(f"{what} {found:.3g} (text: {said})", holds, distance=abs(found - stated))


def between(what: str, text: str, found: float, *, low: float = -inf, high: float = inf) -> Statement:
    """Words of the text that mean a number from ``low`` to ``high``, both included."""
    return Statement(f"{what} {found:.3g} (text: {text})", low <= found <= high)


def judge(statements: Sequence[Statement], *, within: str = "", besides: str = "as printed: ") -> Verdict:
    """The verdict on a figure that lists its statements: AGREES if all hold, else DIFFERS with the failures first.

    Args:
        statements: At least one.
        within: How far off what holds may be; empty if it is exact.
        besides: Introduces what holds where something else does not.
    """
    wrong = [str(each) for each in statements if not each.holds]
    right = "; ".join(each.found for each in statements if each.holds)
    if wrong:
        return Verdict(Agreement.DIFFERS, "; ".join(wrong) + (f"; {besides}{right}" if right else ""))
    if within:
        return Verdict(Agreement.WITHIN, f"{within}: {right}")
    return Verdict(Agreement.AGREES, right)


def judge_by_count(statements: Sequence[Statement]) -> Verdict:
    """The verdict on a figure that names the failures or, if all hold, counts them and names the number furthest off."""
    broken = [str(each) for each in statements if not each.holds]
    if broken:
        return Verdict(Agreement.DIFFERS, "; ".join(broken))
    distances = [(each.distance, each.found) for each in statements if each.distance is not None]
    counts = ((len(distances), "number"), (len(statements) - len(distances), "statement"))
    counted = " and ".join(f"{count} {noun}{'s' * (count != 1)}" for count, noun in counts if count)
    off, furthest = max(distances, key=lambda pair: pair[0], default=(0.0, ""))
    if off <= ROUNDING:
        return Verdict(Agreement.AGREES, f"{counted} of the text")
    return Verdict(Agreement.WITHIN, f"{100 * off:.1f} percentage points ({counted}): {furthest}")
