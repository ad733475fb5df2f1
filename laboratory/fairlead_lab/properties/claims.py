"""What the papers say about which policy has which property, and why we say otherwise where the search does.

The check marks of paper 002 ("Properties of Policies") are table 2 of paper 001, of which our copy has the title only.
"""

from dataclasses import dataclass
from math import inf
from typing import Final

from fairlead_lab.properties.search import Verdict


@dataclass(frozen=True, slots=True)
class Claim:
    """What a paper says of one property of one policy."""

    holds: bool
    source: str
    assumes_positive: bool = False
    """Whether the paper says so for users who need something of every resource only."""


_TABLE: Final = "002 'Properties of Policies' (001 table 2)"
_NOT_LOCAL: Final = "000 remark 1, since not locally fair"

CLAIMS: Final[dict[tuple[str, str], Claim]] = {
    ("drf", "sharing incentive"): Claim(True, f"000 proposition 1; {_TABLE}"),
    ("drf", "strategy-proofness"): Claim(True, f"000 proposition 2; {_TABLE}"),
    ("drf", "envy-freeness"): Claim(True, _TABLE),
    ("drf", "Pareto efficiency"): Claim(True, f"000 section 2.3; {_TABLE}"),
    ("drf", "single-resource fairness"): Claim(True, _TABLE),
    ("drf", "bottleneck fairness"): Claim(True, _TABLE),
    ("drf", "population monotonicity"): Claim(
        True, f"{_TABLE}; 002 appendix C, 'assuming positive demands'", assumes_positive=True
    ),
    ("drf", "resource monotonicity"): Claim(False, f"001 theorem 6; {_TABLE}"),
    ("drf", "scale invariance"): Claim(True, "000 proposition 3"),
    ("drf", "local fairness"): Claim(True, "000 section 2.3"),
    ("asset", "sharing incentive"): Claim(False, f"001 theorem 1; {_TABLE}"),
    ("asset", "strategy-proofness"): Claim(True, _TABLE),
    ("asset", "envy-freeness"): Claim(True, _TABLE),
    ("asset", "Pareto efficiency"): Claim(True, _TABLE),
    ("asset", "single-resource fairness"): Claim(True, _TABLE),
    ("asset", "bottleneck fairness"): Claim(False, f"001 theorem 2; {_TABLE}"),
    ("asset", "population monotonicity"): Claim(True, _TABLE),
    ("asset", "resource monotonicity"): Claim(False, f"001 theorem 3; {_TABLE}"),
    ("ceei", "sharing incentive"): Claim(True, _TABLE),
    ("ceei", "strategy-proofness"): Claim(False, f"001 theorem 4; {_TABLE}"),
    ("ceei", "envy-freeness"): Claim(True, f"001 section 5.2; {_TABLE}"),
    ("ceei", "Pareto efficiency"): Claim(True, f"001 section 5.2; {_TABLE}"),
    ("ceei", "single-resource fairness"): Claim(True, _TABLE),
    ("ceei", "bottleneck fairness"): Claim(True, _TABLE),
    ("ceei", "population monotonicity"): Claim(False, f"001 theorem 5; {_TABLE}"),
    ("ceei", "resource monotonicity"): Claim(False, f"001 theorem 6; {_TABLE}"),
    ("pf", "sharing incentive"): Claim(True, "000 proposition 4"),
    ("pf", "strategy-proofness"): Claim(False, "000 proposition 5"),
    ("pf", "Pareto efficiency"): Claim(True, "000 section 2.4"),
    ("pf", "scale invariance"): Claim(True, "000 proposition 6"),
    ("pf", "local fairness"): Claim(True, "000 section 2.4"),
    ("max-min", "sharing incentive"): Claim(False, f"000 section 2.3: {_NOT_LOCAL}"),
    ("max-min", "strategy-proofness"): Claim(False, f"000 section 2.3: {_NOT_LOCAL}"),
    ("max-min", "Pareto efficiency"): Claim(True, "000 section 2.3"),
    ("max-min", "scale invariance"): Claim(False, f"000 section 2.3: {_NOT_LOCAL}"),
    ("max-min", "local fairness"): Claim(False, "000 section 2.3"),
    ("alpha-tasks:", "sharing incentive"): Claim(False, f"000 section 2.5: {_NOT_LOCAL}"),
    ("alpha-tasks:", "strategy-proofness"): Claim(False, f"000 section 2.5: {_NOT_LOCAL}"),
    ("alpha-tasks:", "Pareto efficiency"): Claim(True, "000 section 2.5"),
    ("alpha-tasks:", "scale invariance"): Claim(False, f"000 section 2.5: {_NOT_LOCAL}"),
    ("alpha-tasks:", "local fairness"): Claim(False, "000 proposition 7"),
    ("utilization", "strategy-proofness"): Claim(False, "002 'Gaming Utilization-Optimal Schedulers'"),
    ("baa", "sharing incentive"): Claim(True, "003 theorem 1", assumes_positive=True),
    ("baa", "envy-freeness"): Claim(True, "003 theorem 2", assumes_positive=True),
    ("baa", "Pareto efficiency"): Claim(True, "003 theorem 3", assumes_positive=True),
    ("bbf", "sharing incentive"): Claim(True, "004 section 1: its entitlement on at least one bottleneck"),
    ("fifo", "strategy-proofness"): Claim(False, _NOT_LOCAL),
    ("fifo", "scale invariance"): Claim(False, _NOT_LOCAL),
}
"""By kind of policy (the word before an argument, with its colon) and name of property."""

_NEEDS_ZERO: Final = "the paper's argument needs all users to stop together, hence positive demands"

REASONS: Final[dict[tuple[str, str], str]] = {
    ("drf", "population monotonicity"): "as the appendix says: false once somebody does without a resource",
    ("asset", "population monotonicity"): _NEEDS_ZERO,
    ("fifo", "strategy-proofness"): "remark 1 needs equal users to be treated equally, which it does not say",
    ("fifo", "scale invariance"): "remark 1 needs equal users to be treated equally, which it does not say",
}
"""Why the search is right where it differs; docs/properties.md has the proofs."""


_SAME_AS: Final[dict[tuple[str, float], str]] = {
    ("alpha:", 1.0): "pf",
    ("alpha:", inf): "drf",
    ("alpha-tasks:", 1.0): "pf",
    ("alpha-tasks:", inf): "max-min",
}
"""Members of a family that the papers speak of by another name; what they say of the family is not about these."""


def kind_of(policy: str) -> str:
    """The word of a policy's name, with its colon if an argument follows; the better known name if it has two."""
    word, colon, argument = policy.partition(":")
    if word.startswith("alpha"):
        return _SAME_AS.get((word + colon, float(argument)), word + colon)
    return "baa" if word == "baa" else word + colon


def claim_about(policy: str, property_name: str) -> Claim | None:
    """What the papers say; None if nothing."""
    return CLAIMS.get((kind_of(policy), property_name))


def differs(verdict: Verdict, claim: Claim | None) -> bool:
    """Whether the search contradicts the paper: a violation within what it assumes, or none where it has one."""
    if claim is None or not verdict.trials:
        return False
    if verdict.holds:
        return not claim.holds
    return claim.holds and not (claim.assumes_positive and verdict.needs_zero_demand)
