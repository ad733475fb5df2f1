"""What `fairlead allocate` prints for people: who holds what, what is left, and what follows."""

from collections.abc import Callable, Sequence
from itertools import islice
from math import isfinite
from typing import Any, Final

from fairlead_cli.printing import print_table
from fairlead_cli.rows import Row
from fairlead_cli.tables import Column
from fairlead_master.solvers.complaints import Verdict, verify
from fairlead_master.solvers.problem import Problem, User
from fairlead_master.solvers.report import Report

AS_GIVEN: Final = "as given"
"""In the place of the policy, of an allocation that somebody else made."""

STEPS_SHOWN: Final = 40
"""Of whole tasks, in the order in which they were served: enough to see the pattern; `--json` has all."""

COMPLAINTS_SHOWN: Final = 20
"""Complaints printed; `--json` has all."""

_ROUNDING: Final = 1e-12
"""Relative: what is less than this is not worth a claim."""


def print_report(report: Report) -> None:
    """Print a line on what was solved, a table of the users and one of the resources."""
    problem = report.problem
    count = len(problem.users)
    mode = "whole tasks" if report.is_discrete else "tasks may be split"
    print(f"{report.policy}, {mode}, {_place(problem)}, {count} user{'s' * (count != 1)}\n")
    print_table(_user_rows(report), _user_columns(problem))
    print()
    print_table(_resource_rows(report), _RESOURCES)


def print_remarks(report: Report) -> None:
    """Print what there is to say beyond the tables: the order of serving, certificates, promises beyond capacity."""
    solution = report.solution
    if solution.steps:
        rest = len(solution.steps) - STEPS_SHOWN
        more = f" and {rest} more" if rest > 0 else ""
        print(f"\nServed in order: {' '.join(islice(solution.steps, STEPS_SHOWN))}{more}")
    if solution.relative_error is not None:
        print(
            f"\nCertified: nobody below its limit is off by more than {max(solution.relative_error, _ROUNDING):.0e} of its tasks."
        )
    over = [name for name, part in zip(report.problem.resources, report.utilization, strict=True) if part > 1]
    if report.policy.startswith("slots") and over:
        print(f"\nMore than there is of {', '.join(over)}: slots do not look at what a task needs.")
    if report.policy.startswith("bbf") and report.problem.is_one_pool:
        _print_complaints(verify(report.problem, solution.tasks, whole_tasks=report.is_discrete))


def print_verdict(verdict: Verdict, problem: Problem) -> None:
    """Print what can be said against an allocation."""
    if not problem.is_one_pool:
        print(
            "\nMachines of different kinds are taken as one pool here: that they hold the tasks is not checked."
        )
    if verdict.overdrawn:
        print(f"\nNot possible: more is given than there is of {', '.join(verdict.overdrawn)}.")
    if verdict.overserved:
        print(f"\nNot wanted: more tasks than they want are given to {_listed(verdict.overserved)}.")
    _print_complaints(verdict)
    if verdict.improvable:
        print(f"\nNot efficient: at nobody's cost more could be given to {_listed(verdict.improvable)}.")


def _print_complaints(verdict: Verdict) -> None:
    bottlenecks = ", ".join(verdict.bottlenecks) or "none"
    count = len(verdict.complaints)
    if not count:
        print(f"\nNo justified complaints (bottlenecks: {bottlenecks}).")
        return
    print(f"\n{count} justified complaint{'s' * (count != 1)} (bottlenecks: {bottlenecks}):")
    for complaint in verdict.complaints[:COMPLAINTS_SHOWN]:
        print(f"  {complaint}")
    if count > COMPLAINTS_SHOWN:
        print(f"  and {count - COMPLAINTS_SHOWN} more")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:COMPLAINTS_SHOWN])
    return shown if len(names) <= COMPLAINTS_SHOWN else f"{shown} and {len(names) - COMPLAINTS_SHOWN} more"


def _place(problem: Problem) -> str:
    if not problem.nodes:
        return "one pool"
    machines, kinds = sum(nodes.count for nodes in problem.nodes), len(problem.nodes)
    return f"{machines} machine{'s' * (machines != 1)}" + (f" of {kinds} kinds" if kinds > 1 else "")


def _user_rows(report: Report) -> list[Row]:
    return [
        {
            "user": user,
            "tasks": tasks,
            "allocated": allocated,
            "shares": [tasks * part for part in report.problem.share(user)],
            "dominant_share": share,
            "dominant_resource": resource,
            "held_back_by": _held_back_by(user, tasks, short, report),
        }
        for user, tasks, allocated, share, resource, short in zip(
            report.problem.users,
            report.solution.tasks,
            report.allocated,
            report.dominant_shares,
            report.dominant_resources,
            report.held_back_by,
            strict=True,
        )
    ]


def _held_back_by(user: User, tasks: float, short: Sequence[str], report: Report) -> str:
    """Why it has no more tasks, where that can be told from the whole."""
    has_all = tasks + 1 > user.max_tasks if report.is_discrete else tasks >= user.max_tasks * (1 - _ROUNDING)
    if has_all:
        return "wants no more"
    if report.policy.startswith("slots"):
        return "slots"
    is_placed = bool(report.problem.nodes) and report.policy != AS_GIVEN
    return ", ".join(short) or ("machines" if is_placed else "")


def _user_columns(problem: Problem) -> list[Column]:
    columns = [
        Column("USER", lambda row: row["user"].name),
        Column("WEIGHT", lambda row: _weight(row["user"]), right=True, is_shown=_any_weighted),
        Column("TASKS", lambda row: _number(row["tasks"]), right=True),
        Column("OF", lambda row: _limit(row["user"]), right=True, is_shown=_any_limited),
    ]
    columns += [
        Column(name.upper(), _holding(place), right=True) for place, name in enumerate(problem.resources)
    ]
    columns += [
        Column("DOMINANT SHARE", lambda row: f"{row['dominant_share']:.4f}", right=True),
        Column("RESOURCE", "dominant_resource"),
        Column("HELD BACK BY", "held_back_by"),
    ]
    return columns


def _holding(place: int) -> Callable[[Row], str]:
    """The cell of one resource: how much of it, and what part of the capacity that is."""
    return lambda row: f"{_number(row['allocated'][place])} ({row['shares'][place]:.1%})"


def _weight(user: User) -> str:
    if len(set(user.weights)) == 1:
        return f"{user.weight:g}"
    return "/".join(f"{weight:g}" for weight in user.weights)


def _any_weighted(rows: Sequence[Row]) -> bool:
    return any(set(row["user"].weights) != {1.0} for row in rows)


def _limit(user: User) -> str | None:
    return _number(user.max_tasks) if isfinite(user.max_tasks) else None


def _any_limited(rows: Sequence[Row]) -> bool:
    return any(isfinite(row["user"].max_tasks) for row in rows)


def _number(amount: float) -> str:
    """An amount in any unit, to six digits."""
    return f"{amount:.6g}"


def _resource_rows(report: Report) -> list[Row]:
    problem = report.problem
    prices: Sequence[float | None] = report.solution.multipliers or [None] * len(problem.resources)
    return [
        {"resource": name, "capacity": total, "held": part * total, "utilization": part, "price": price}
        for name, total, part, price in zip(
            problem.resources, problem.capacity, report.utilization, prices, strict=True
        )
    ]


def _any_price(rows: Sequence[Row]) -> bool:
    return any(row["price"] is not None for row in rows)


def _price(row: Row) -> Any:
    return None if row["price"] is None else _number(row["price"])


_RESOURCES: Final = (
    Column("RESOURCE", "resource"),
    Column("CAPACITY", lambda row: _number(row["capacity"]), right=True),
    Column("HELD", lambda row: _number(row["held"]), right=True),
    Column("UTILISATION", lambda row: f"{row['utilization']:.1%}", right=True),
    Column("PRICE", _price, right=True, is_shown=_any_price),
)
