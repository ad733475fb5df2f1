"""Proportional fairness: the account that holds least at the market's prices, for its weight, is served next.

    key_i = sum_j (U_ij / C_j) nu_j / w_i

U_ij is what account i holds or is offered of resource j, C_j the total of the active agents, w_i ``Weight.default``, nu the
multipliers of max sum_i w_i log phi_i under sum_i phi_i a_ij <= 1. Where i holds phi_i tasks of a_ij = A_ij / C_j each this is
phi_i sum_j a_ij nu_j / w_i: the order of Bonald and Roberts, "Enhanced Cluster Computing Performance through Proportional
Fairness" (paper 000), section 4.1, with the multipliers of equations (2) to (5). What nu is made of on a live cluster, where
we depart from the paper, ties and costs: ``alpha``, of which this is the case alpha = 1.

Competitive equilibrium from equal incomes (Ghodsi et al., "Dominant Resource Fairness", section 5.2) maximises the product
of dominant shares. log of a dominant share is log phi_i plus a constant, so with equal weights it is the same optimum: the
policy ``ceei`` is this one under another name.
"""

from typing import Final

from fairlead_master.allocation.multipliers.classes import AlphaRule
from fairlead_master.allocation.policies.alpha import AlphaFairness

_LOGARITHMIC: Final = AlphaRule(1.0)


def proportional_fairness(name: str = "pf") -> AlphaFairness:
    """The policy ``pf``, or ``ceei``: one policy with two names."""
    return AlphaFairness(name, _LOGARITHMIC)
