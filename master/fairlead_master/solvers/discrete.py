"""Whole tasks, by the allocator that runs on a live cluster: the same policy, the same placement, one task at a time.

Each user is a role with one framework, told in the order of the problem, which is the order in which ties are decided.
Each machine is an agent; where there are none, the pool is one agent as large as everything. Amounts are scaled to
integers without loss: every resource is counted in the largest unit of which all amounts, as decimals, are multiples.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, inf, lcm
from typing import Final

from fairlead_master.allocation.allocator import Allocator
from fairlead_master.allocation.api import AllocationError, AllocationSettings
from fairlead_master.allocation.policies import names
from fairlead_master.allocation.weights import Weight, exact
from fairlead_master.solvers.problem import Nodes, Problem, Solution, SolverError, User
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, Role
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_proto.tasks import DemandClass

TASKS_MAX: Final = 1_000_000
"""Of all users together: some ten seconds of work, and a list of steps that nobody reads any more."""

MACHINES_MAX: Final = 20_000
"""The largest published clusters have some ten thousand."""

_CLASS: Final = ClassId("tasks")


@dataclass(frozen=True, slots=True)
class _ProblemKinds(ResourceKinds):
    """Resource kinds of a problem: its own resources under any name, without the standard ones."""

    resources: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names in the problem's order."""
        return self.resources

    @property
    def zero(self) -> Vector:
        """The vector of nothing."""
        return (0,) * len(self.resources)


def solve_live(problem: Problem, policy: str) -> Solution:
    """Serve whole tasks by the live policy of that name until nothing more fits.

    Raises:
        SolverError: the policy does not run live or its argument is wrong, or there are more than ``TASKS_MAX`` tasks or
            ``MACHINES_MAX`` machines.
    """
    machines = sum(nodes.count for nodes in problem.nodes)
    if machines > MACHINES_MAX:
        raise SolverError(
            f"nodes: expected at most {MACHINES_MAX} machines where tasks are whole, got {machines}"
        )
    try:
        allocator = _allocator(problem, policy)
    except AllocationError as error:
        raise SolverError(str(error)) from None
    served: list[int] = []
    while allocator.needs_cycle:
        allocator.cycle(0)
        served.extend(int(framework_id) for framework_id, _, _ in allocator.last_steps())
        if len(served) > TASKS_MAX:
            raise too_many_tasks()
    count = Counter(served)
    users = problem.users
    return Solution(
        tasks=tuple(count[place] for place in range(len(users))),
        steps=tuple([users[place].name for place in served]),
    )


def too_many_tasks() -> SolverError:
    """The error where there would be more than ``TASKS_MAX`` tasks."""
    return SolverError(
        f"users: expected at most {TASKS_MAX} tasks in all where tasks are whole, got more; fluid tasks have no limit"
    )


def _allocator(problem: Problem, policy: str) -> Allocator:
    """An allocator with the problem's machines and users, before the first cycle."""
    allocator = Allocator(_ProblemKinds(resources=problem.resources), AllocationSettings(policy=policy))
    if allocator.watches_time:
        allocator.advance(0)
    totals, units = _integers(problem)
    slots = names.slots_per_agent(policy)
    count = 0
    for nodes, total in zip(problem.nodes or (Nodes(1, problem.capacity),), totals, strict=True):
        for _ in range(nodes.count):
            agent_id = AgentId(str(count))
            allocator.add_agent(agent_id, total, {})
            allocator.set_agent_active(agent_id, active=True)
            count += 1
    for place, (user, unit) in enumerate(zip(problem.users, units, strict=True)):
        # Numbers and not names, which could mean something where roles do, as slashes may.
        framework_id, role = FrameworkId(str(place)), Role(str(place))
        if set(user.weights) != {1.0}:
            allocator.set_weight(role, _weight(user))
        allocator.add_framework(framework_id, role)
        # One more than fits: who wants just what fits wants no more, and policies with prices take it for satisfied.
        room = slots * count if slots is not None else _room(problem.nodes, totals, unit) + 1
        wanted = room if user.max_tasks == inf else min(room, int(user.max_tasks))
        if wanted:
            allocator.set_demand(framework_id, [DemandClass(class_id=_CLASS, unit=unit, units=wanted)], 0)
    return allocator


def _integers(problem: Problem) -> tuple[list[Vector], list[Vector]]:
    """The totals of each kind of machine, or of the pool, and the units of the users."""
    totals = [nodes.capacity for nodes in problem.nodes] or [problem.capacity]
    columns = [
        _in_largest_unit(map(exact, column))
        for column in zip(*totals, *(user.demand for user in problem.users), strict=True)
    ]
    rows: list[Vector] = list(zip(*columns, strict=True))
    return rows[: len(totals)], rows[len(totals) :]


def _in_largest_unit(amounts: Iterable[Fraction]) -> Sequence[int]:
    """The amounts as multiples of the largest unit there is for all of them."""
    fractions = list(amounts)
    finest = lcm(*(amount.denominator for amount in fractions))
    scaled = [int(amount * finest) for amount in fractions]
    largest = gcd(*scaled) or 1
    return [amount // largest for amount in scaled]


def _weight(user: User) -> Weight:
    if len(set(user.weights)) == 1:
        return Weight(user.weights[0])
    return Weight(user.weight, dict(enumerate(user.weights)))


def _room(nodes: Sequence[Nodes], totals: Sequence[Vector], unit: Vector) -> int:
    """Units that fit on empty machines."""
    counts = [kind.count for kind in nodes] or [1]
    return sum(
        count * min(total // need for total, need in zip(totals_of_kind, unit, strict=True) if need)
        for count, totals_of_kind in zip(counts, totals, strict=True)
    )
