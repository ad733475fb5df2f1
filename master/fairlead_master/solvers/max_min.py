"""The max-min family and ``fifo`` on fluid tasks: ``drf``, ``asset``, ``max-min``, ``max-min:RES``, ``slots:K``, ``fifo``.

Tasks may be split at will, over machines as well, so that machines of one kind, or in one proportion, are one pool.
"""

from fairlead_master.solvers.machine_filling import fill_machines
from fairlead_master.solvers.problem import Problem, Solution, SolverError
from fairlead_master.solvers.rises import converter, shares, tiers_of
from fairlead_master.solvers.water_filling import fill

SLOTS_MAX = 1_000
"""Of one machine, as on a live cluster."""


def solve(problem: Problem, policy: str) -> Solution:
    """The fluid allocation under ``drf``, ``asset``, ``max-min``, ``max-min:RES`` or ``fifo``.

    Raises:
        SolverError: no such policy, its resource is not of the problem, or there are too many users times kinds of nodes.
    """
    tiers = tiers_of(problem, policy)
    if problem.is_one_pool:
        return Solution(tasks=tuple(fill(shares(problem), problem.users, tiers)))
    return Solution(tasks=tuple(fill_machines(problem, tiers)))


def solve_slots(problem: Problem, policy: str) -> Solution:
    """The fluid allocation under ``slots:K``: each machine is K slots, and a task takes one whatever it needs.

    What is one pool is one machine. Slots are all that is looked at, so that more may be promised than there is.

    Raises:
        SolverError: K is no number from 1 to ``SLOTS_MAX``.
    """
    argument = policy.partition(":")[2]
    if not (argument.isascii() and argument.isdigit() and 1 <= int(argument[:9]) <= SLOTS_MAX):
        raise SolverError(f"policy: expected slots:K with K from 1 to {SLOTS_MAX}, got {policy!r}")
    machines = sum(nodes.count for nodes in problem.nodes) or 1
    number = converter(problem)
    slot = [[1 / number(machines * int(argument))] for _ in problem.users]
    return Solution(tasks=tuple(fill(slot, problem.users, tiers_of(problem, "max-min"))))
