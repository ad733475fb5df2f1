"""What the text of paper 001 says of its figures, beside what was found.

Its charts are pictures without tables: the numbers and words of the text are all that can be compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fairlead_lab.papers.experiment import Agreement, Verdict


@dataclass(frozen=True, slots=True)
class Statement:
    """One of them."""

    found: str
    """What is the case, in words and numbers."""
    holds: bool
    """Whether that is what the paper says."""
    why_not: str = ""
    """If not: what it says, and why that is otherwise."""


def number(what: str, found: float, printed: str, why_not: str = "") -> Statement:
    """A number of the text: it holds if what was found is rounded to it, within half of its last place."""
    places = len(printed.partition(".")[2])
    holds = abs(found - float(printed)) <= 0.5 * 10**-places + 1e-9
    shown = f"{found:.{max(places, 1)}f}".removesuffix(".0")
    return Statement(f"{what} {shown}", holds, why_not or f"printed: {printed}")


def judge(statements: Sequence[Statement], *, within: str = "") -> Verdict:
    """Agrees if all hold, within what is said; else differs, in those that do not."""
    wrong = [
        f"{each.found} ({each.why_not})" if each.why_not else each.found
        for each in statements
        if not each.holds
    ]
    right = "; ".join(each.found for each in statements if each.holds)
    if wrong:
        return Verdict(Agreement.DIFFERS, "; ".join(wrong) + (f"; as printed: {right}" if right else ""))
    if within:
        return Verdict(Agreement.WITHIN, f"{within}: {right}")
    return Verdict(Agreement.AGREES, right)
