"""Presents the results of a search: a table like the papers', counterexamples to check by hand, and JSON."""

from collections.abc import Sequence
from math import inf
from typing import Any, Final

from fairlead_lab.properties.changes import Change, Departure, Growth, Misreport, Rescaling, changed
from fairlead_lab.properties.claims import REASONS, claim_about, differs, kind_of
from fairlead_lab.properties.definitions import PROPERTIES
from fairlead_lab.properties.model import MARGIN, Violation, held, shown, tasks_shown, vector
from fairlead_lab.properties.search import Verdict
from fairlead_master.solvers.problem import Problem

HOLDS: Final = "✓"
HOLDS_IF_POSITIVE: Final = "(✓)"
VIOLATED: Final = "✗"
NOT_ASKED: Final = "-"
AS_CLAIMED: Final = "="
NOT_AS_CLAIMED: Final = "!"

LEGEND: Final = (
    f"{HOLDS} no violation found, which is no proof; {HOLDS_IF_POSITIVE} violated, but only where somebody needs nothing of "
    f"some resource; {VIOLATED} violated: see the counterexample; {NOT_ASKED} the policy cannot be asked.\n"
    f"{AS_CLAIMED} a paper says the same; {NOT_AS_CLAIMED} a paper says otherwise: see below; neither: no paper says anything.\n"
    "Papers are cited by number: 000 Bonald and Roberts, 001 Ghodsi et al., 002 their talk, 003 Liu, 004 Zeldes and Feitelson "
    "(titles: docs/errata.md)."
)


def mark(verdict: Verdict) -> str:
    """The sign of a verdict in the table."""
    if not verdict.trials:
        return NOT_ASKED
    if verdict.holds:
        return HOLDS
    return HOLDS_IF_POSITIVE if verdict.needs_zero_demand else VIOLATED


def cell(verdict: Verdict) -> str:
    """The sign of a verdict, and whether a paper says the same."""
    claim = claim_about(verdict.policy, verdict.property_name)
    if claim is None or not verdict.trials:
        return mark(verdict)
    return f"{mark(verdict)} {NOT_AS_CLAIMED if differs(verdict, claim) else AS_CLAIMED}"


def table_rows(verdicts: Sequence[Verdict]) -> list[dict[str, str]]:
    """A row for each property, from policy to cell; ``property`` has its name."""
    cells = {(verdict.policy, verdict.property_name): cell(verdict) for verdict in verdicts}
    policies = dict.fromkeys(verdict.policy for verdict in verdicts)
    return [
        {"property": each.name} | {policy: cells[policy, each.name] for policy in policies}
        for each in PROPERTIES
    ]


def notes(verdicts: Sequence[Verdict]) -> list[str]:
    """A line for each verdict that contradicts a paper, with the reason."""
    lines = []
    for verdict in verdicts:
        claim = claim_about(verdict.policy, verdict.property_name)
        if claim is None or not differs(verdict, claim):
            continue
        says = "holds" if claim.holds else "is violated"
        found = "no violation was found" if verdict.holds else "there is a counterexample"
        reason = REASONS.get((kind_of(verdict.policy), verdict.property_name), "not explained yet")
        lines.append(
            f"{verdict.policy}, {verdict.property_name}: {says} by {claim.source}; {found}: {reason}"
        )
    return lines


def counterexample(verdict: Verdict) -> list[str]:
    """The lines by which a reader can check a violation, with pencil and paper or ``fairlead allocate``."""
    violation = verdict.violation
    assert violation is not None, "expected a violation"
    claim = claim_about(verdict.policy, verdict.property_name)
    source = f" ({claim.source})" if claim and not claim.holds else ""
    problem, change = violation.case.problem, violation.case.change
    lines = [f"{verdict.policy} violates {verdict.property_name}{source}: {violation.finding}"]
    lines.append(
        f"  {' and '.join(problem.resources)}: {vector(problem.capacity)}; tasks of {_demands(problem)}"
    )
    lines.append(f"  {verdict.policy} gives {_allocation(problem, violation.before)}")
    if change is not None:
        assert violation.after is not None, "a change has an allocation after it"
        lines.append(f"  {_event(problem, change)}: {_allocation(changed(problem, change), violation.after)}")
    return lines


def _demands(problem: Problem) -> str:
    parts = []
    for user in problem.users:
        weight = "" if user.weight == 1 else f" weight {shown(user.weight)}"
        cap = "" if user.max_tasks == inf else f" at most {shown(user.max_tasks)}"
        parts.append(f"{user.name} {vector(user.demand)}{weight}{cap}")
    return ", ".join(parts)


def _allocation(problem: Problem, tasks: Sequence[float]) -> str:
    given = ", ".join(
        f"{user.name} {tasks_shown(count)} {vector(held(user, count))}"
        for user, count in zip(problem.users, tasks, strict=True)
    )
    is_overcommitted = any(
        used > total * (1 + MARGIN) for used, total in zip(problem.used(tasks), problem.capacity, strict=True)
    )
    return f"{given}; more than there is" if is_overcommitted else given


def _event(problem: Problem, change: Change) -> str:
    match change:
        case Misreport(who, claim):
            return f"{problem.users[who].name} claims {vector(claim)}"
        case Departure(who):
            return f"{problem.users[who].name} leaves"
        case Growth(where, capacity):
            return f"{problem.resources[where]} grows to {shown(capacity)}"
        case Rescaling(who, factor):
            return f"{problem.users[who].name} counts in tasks {shown(factor)} times as large"


def as_json(verdict: Verdict) -> dict[str, Any]:
    """A verdict for programs. ``holds`` means that nothing was found in ``trials`` problems."""
    claim = claim_about(verdict.policy, verdict.property_name)
    return {
        "policy": verdict.policy,
        "property": verdict.property_name,
        "holds": verdict.holds,
        "needs_zero_demand": verdict.needs_zero_demand,
        "trials": verdict.trials,
        "counterexample": None if verdict.violation is None else _violation_as_json(verdict.violation),
        "source": None if claim is None else claim.source,
        "claimed": None if claim is None else claim.holds,
        "differs": differs(verdict, claim),
    }


def _violation_as_json(violation: Violation) -> dict[str, Any]:
    problem, change = violation.case.problem, violation.case.change
    after = None
    if change is not None and violation.after is not None:
        then = changed(problem, change)
        after = {"problem": problem_as_json(then), "tasks": _by_name(then, violation.after)}
    return {
        "problem": problem_as_json(problem),
        "tasks": _by_name(problem, violation.before),
        "change": None if change is None else _event(problem, change),
        "after": after,
        "user": problem.users[violation.user].name,
        "excess": violation.excess,
        "finding": violation.finding,
    }


def problem_as_json(problem: Problem) -> dict[str, Any]:
    """A problem as ``fairlead allocate`` reads it."""
    names = problem.resources
    return {
        "capacity": dict(zip(names, problem.capacity, strict=True)),
        "users": [
            {
                "name": user.name,
                "demand": dict(zip(names, user.demand, strict=True)),
                "weight": user.weight,
                "max_tasks": None if user.max_tasks == inf else user.max_tasks,
            }
            for user in problem.users
        ],
    }


def _by_name(problem: Problem, tasks: Sequence[float]) -> dict[str, float]:
    return {user.name: count for user, count in zip(problem.users, tasks, strict=True)}
