"""The examples by which the papers show that a policy lacks a property, tried before anything is drawn at random.

Shares of paper 000 (capacities of 1) are multiplied until all numbers are whole.
"""

from dataclasses import dataclass
from typing import Final

from fairlead_lab.properties.changes import Departure, Growth, Misreport
from fairlead_lab.properties.instances import make_problem
from fairlead_lab.properties.model import Case


@dataclass(frozen=True, slots=True)
class Example:
    """A case of a paper, and the properties it is about; none where it only compares policies."""

    place: str
    case: Case
    properties: tuple[str, ...] = ()


_GAMING = make_problem((100, 100), (16, 1), (1, 2))
_MIRRORED = make_problem((6, 6), (3, 6), (6, 3))

EXAMPLES: Final = (
    Example("001 section 4.1", Case(make_problem((9, 18), (1, 4), (3, 1)))),
    Example("001 theorem 1", Case(make_problem((30, 30), (1, 3), (1, 1))), ("sharing incentive",)),
    Example("001 theorem 2", Case(make_problem((21, 21), (3, 2), (4, 1))), ("bottleneck fairness",)),
    Example(
        "001 theorem 3",
        Case(make_problem((77, 77), (4, 2), (1, 1)), Growth(1, 154)),
        ("resource monotonicity",),
    ),
    Example("001 theorem 4", Case(_GAMING, Misreport(0, (16, 8))), ("strategy-proofness",)),
    Example(
        "001 theorem 5",
        Case(make_problem((100, 100), (4, 1), (1, 16), (16, 1)), Departure(2)),
        ("population monotonicity",),
    ),
    Example(
        "001 theorem 6",
        Case(make_problem((12, 12), (2, 1), (1, 2)), Growth(1, 48)),
        ("resource monotonicity",),
    ),
    Example("002 'A Natural Policy'", Case(make_problem((70, 70), (2, 2), (1, 2))), ("sharing incentive",)),
    Example(
        "002 'DRF vs CEEI'",
        Case(make_problem((9, 18), (1, 4), (3, 1)), Misreport(1, (3, 2))),
        ("strategy-proofness",),
    ),
    Example(
        "002 'Gaming Utilization-Optimal Schedulers'",
        Case(make_problem((100, 100), (1, 2), (1, 2)), Misreport(0, (2, 2))),
        ("strategy-proofness",),
    ),
    Example("002 'DRF vs Asset vs CEEI'", Case(make_problem((1000, 1000), (2, 3), (5, 1)))),
    Example("000 remark 2", Case(make_problem((6, 6), (6, 2), (3, 6)))),
    Example("000 proposition 5", Case(_MIRRORED, Misreport(0, (4, 6))), ("strategy-proofness",)),
    Example("000 remark 3", Case(_MIRRORED, Misreport(0, (6, 6)))),
    Example("000 remark 4", Case(make_problem((6, 6), (3, 6), (6, 2)), Misreport(0, (4, 6)))),
    Example(
        "000 proposition 7",
        Case(make_problem((4,), (2,), (1,))),
        ("single-resource fairness", "local fairness"),
    ),
)
