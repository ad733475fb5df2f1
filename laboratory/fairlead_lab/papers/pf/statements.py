"""What the text of paper 000 says of its figures, and whether it is so.

The curves themselves are pictures, and the paper has no tables of them: words are all that numbers can be compared with.
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
    """If not: what is printed, and where it is shown to be wrong."""


def judge(statements: Sequence[Statement]) -> Verdict:
    """Agrees if all hold, for what they say; else differs, in those that do not."""
    wrong = [
        f"{each.found} ({each.why_not})" if each.why_not else each.found
        for each in statements
        if not each.holds
    ]
    right = "; ".join(each.found for each in statements if each.holds)
    if wrong:
        return Verdict(Agreement.DIFFERS, "; ".join(wrong) + (f"; besides, {right}" if right else ""))
    return Verdict(Agreement.AGREES, right)
