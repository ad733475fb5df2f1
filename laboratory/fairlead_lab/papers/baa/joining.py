"""Figures 2 to 5: how much of CPUs and memory is in use while users join one by one, under algorithm 2 (section 2.6).

After k of n users the system has k/n of each resource, and each user has as many whole tasks as the levels of its group allow
for the k; nobody gives a task back. The paper says that all utilisations are "close to 100 %", and draws them for 1,000 and for
2,000 users. It does not say how large the system is, nor in what proportion it has CPUs and memory, on which all depends:
resources in another proportion than their use cannot all be used up. Here each user brings the CPUs of the largest machine,
and memory in the proportion in which the users ask for it, as a cell is bought that fits its work; what as much of each
resource as the largest machine has would do is told in the notes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import inf
from typing import TYPE_CHECKING, Final

from fairlead_lab.papers.baa.demands import Demand, Demands, sample
from fairlead_lab.papers.experiment import Agreement, Cell, Experiment, Result, RunOptions, Verdict
from fairlead_master.allocation.policies.bottleneck_groups import bottleneck
from fairlead_master.solvers.bottleneck_aware import goals_of, solve_online
from fairlead_master.solvers.problem import Problem, User
from fairlead_master.solvers.registry import solve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS: Final = ("users", "resource", "utilization")
RESOURCES: Final = ("cpus", "mem")

_CLOSE: Final = 0.1
"""How far from 100 % is still close to it: two curves of a chart from 0 to 100 %, one of them at the top."""
_DIGITS: Final = 9
"""Of a utilisation: sums of floats in a fixed order, rounded well above their error."""

Utilizations = tuple[float, ...]
"""By resource, as fractions of what the system has at that time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Users that joined one by one."""

    demands: Demands
    problem: Problem
    by_users: Sequence[Utilizations]
    """After the first user, after the second, …"""


def fitting(vectors: Sequence[Demand]) -> Problem:
    """Users with these demands, each with the CPUs of the largest machine, and memory in the proportion of all demands."""
    cpus, mem = (sum(amounts) for amounts in zip(*vectors, strict=True))
    return _problem(vectors, (1.0, mem / cpus))


def machines(vectors: Sequence[Demand]) -> Problem:
    """Users with these demands, each with a largest machine."""
    return _problem(vectors, (1.0, 1.0))


def _problem(vectors: Sequence[Demand], each: Demand) -> Problem:
    return Problem(
        resources=RESOURCES,
        capacity=tuple(amount * len(vectors) for amount in each),
        users=tuple(User(f"u{number}", vector, (1.0, 1.0)) for number, vector in enumerate(vectors)),
    )


def join_all(problem: Problem) -> list[Utilizations]:
    """Let the users of a problem join in their order under ``baa``; return the utilisations after each of them."""
    used = [0.0] * len(problem.resources)
    found = []
    for joined, served in enumerate(solve_online(problem, goals_of("baa")), 1):
        for place, _ in served:
            used = [sum(pair) for pair in zip(used, problem.users[place].demand, strict=True)]
        part = joined / len(problem.users)
        found.append(
            tuple(amount / (total * part) for amount, total in zip(used, problem.capacity, strict=True))
        )
    return found


@lru_cache(maxsize=2)
def _run(users: int, seed: int) -> Run:
    """Run once for both figures of a number of users."""
    demands = sample(users, seed)
    problem = fitting(demands.vectors)
    return Run(demands=demands, problem=problem, by_users=join_all(problem))


def _reproduce(users: int, resource: str, options: RunOptions) -> Result:
    # A few seconds: --quick changes nothing.
    run = _run(users, options.seed)
    place = RESOURCES.index(resource)
    curve = [in_use[place] for in_use in run.by_users]
    rows: list[list[Cell]] = [
        [joined, resource, round(fraction, _DIGITS)] for joined, fraction in enumerate(curve, 1)
    ]
    return Result(rows=rows, verdict=judge(curve), notes=_notes(run))


def judge(curve: Sequence[float]) -> Verdict:
    """Compare the final utilisation with 100 %, and report its minimum since half of the users had joined."""
    half = len(curve) // 2
    found = f'"close to 100 %": {curve[-1]:.1%} in the end, and {min(curve[half:]):.1%} or more from {half + 1} users on'
    if curve[-1] < 1 - _CLOSE:
        return Verdict(Agreement.DIFFERS, f"it is not {found}")
    found += ", if the system has CPUs and memory in the proportion of demand, which the paper leaves open"
    missing = f"{100 * (1 - curve[-1]):.1f}"
    if missing == "0.0":
        return Verdict(Agreement.AGREES, found)
    return Verdict(Agreement.WITHIN, f"{missing} percentage points of {found}")


def _notes(run: Run) -> str:
    whole = machines(run.demands.vectors)
    return (
        f"{len(run.demands.vectors)} users with demands {run.demands.origin}, each joins with 1/n of the system. "
        f"All at once, in divisible tasks: {_in_words(run.problem, 'baa')}; drf: {_in_words(run.problem, 'drf')}. "
        f"With a largest machine each: {_in_words(whole, 'baa')}; drf: {_in_words(whole, 'drf')}; "
        f"the most that (2.1) to (2.6) allow: {_in_words(whole, 'baa:utilization')}. "
        "Both groups have users who need the resources nearly alike, and for them (2.3) and (2.4) let the levels of the groups "
        f"differ by at most {room(whole):.2%}: with so many users BAA comes to be DRF."
    )


def room(problem: Problem) -> float:
    """By how much the level of one group may exceed the other's: max over k of 1 / largest_kg, less 1.

    From y_g >= y_k largest_kg for both pairs, where largest_kg is the largest a_ig / a_ik of a user i of group k. Infinite
    if a group is empty.
    """
    found = 0.0
    shares = [problem.share(user) for user in problem.users]
    for own, other in ((0, 1), (1, 0)):
        ratios = [share[other] / share[own] for share in shares if bottleneck(share) == own]
        found = max(found, 1 / max(ratios) - 1 if ratios else inf)
    return found


def _in_words(problem: Problem, policy: str) -> str:
    used = problem.used(solve(problem, policy).tasks)
    return ", ".join(
        f"{name} {amount / total:.1%}"
        for name, amount, total in zip(RESOURCES, used, problem.capacity, strict=True)
    )


def _draw(figure: "Figure", result: Result) -> None:
    axes = figure.add_subplot()
    axes.plot([row[0] for row in result.rows], [row[2] for row in result.rows], linewidth=1)
    axes.set_xlabel("users that have joined")
    axes.set_ylabel(f"utilisation of {'the CPU' if result.rows[0][1] == 'cpus' else 'memory'}")
    axes.set_xlim(0, len(result.rows))
    axes.set_ylim(0, 1.05)
    axes.grid(alpha=0.3)


def _experiment(figure: int, users: int, resource: str) -> Experiment:
    called = "CPU" if resource == "cpus" else "memory"
    title = f"How much of the {called} is in use while {users} users join one by one."
    return Experiment(f"baa-fig{figure}", title, COLUMNS, partial(_reproduce, users, resource), _draw)


EXPERIMENTS: Final = (
    _experiment(2, 1000, "cpus"),
    _experiment(3, 1000, "mem"),
    _experiment(4, 2000, "cpus"),
    _experiment(5, 2000, "mem"),
)
