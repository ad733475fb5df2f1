"""``pf`` and ``ceei``: proportional fairness on fluid tasks, exactly.

Maximises sum_i w_i log x_i over the tasks x_i under capacity and limits: equations (2) to (5) of T. Bonald and J. Roberts,
Enhanced Cluster Computing Performance through Proportional Fairness, 2014. Competitive equilibrium from equal incomes
(A. Ghodsi et al., Dominant Resource Fairness, 2011, section 5.2) is the Nash bargaining solution, the largest product of
dominant shares. A dominant share is a constant times the tasks, so that this is the same allocation; the equilibrium's
incomes are the weights and its prices the multipliers.
"""

from fairlead_master.solvers.alpha_fair import maximise
from fairlead_master.solvers.problem import Problem, Solution


def solve(problem: Problem, policy: str = "pf") -> Solution:
    """The fluid allocation under ``pf`` or ``ceei``, to a certified relative error of 1e-9, with its multipliers.

    Raises:
        SolverError: the answer cannot be certified: weights or demands are further apart than floats can hold.
    """
    return maximise(problem, policy, 1.0, by_tasks=False)
