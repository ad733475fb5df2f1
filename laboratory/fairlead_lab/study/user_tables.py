"""Who fares how under which policy: the tables of users on the page of a study."""

from collections.abc import Mapping, Sequence
from typing import Final

from fairlead_lab.metrics.intervals import estimate
from fairlead_lab.metrics.measures import span, unit_of
from fairlead_lab.metrics.result import UserReport
from fairlead_lab.study.comparison import NOTICEABLE, changes_by_user
from fairlead_lab.study.study import Outcome

USERS_SHOWN_MAX: Final = 40
"""Those with the most work, beside those who are clearly worse off than alone; the CSV has them all."""
NOTICEABLE_OF_USER: Final = 0.01
"""A difference of less is none to a person, however sure."""

_Runs = Sequence[Mapping[str, UserReport]]
"""Users by name, a mapping for each seed."""


Table = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Columns and rows."""


def gains(outcome: Outcome) -> Table:
    """How many users are done sooner and later than under the first policy, and who most of all."""
    policies = outcome.study.policies
    first = outcome.results[policies[0]]
    rows = []
    for policy in policies[1:]:
        changes = changes_by_user(outcome.results[policy], first)
        better = [change for change in changes if change.reduction > NOTICEABLE]
        worse = [change for change in changes if change.reduction < -NOTICEABLE]
        rows.append(
            (
                policy, str(len(better)), _named([change.user for change in better]),
                str(len(worse)), _named([change.user for change in reversed(worse)]),
            )
        )  # fmt: skip
    columns = (f"Beside {policies[0]}", "users done sooner", "most of all", "users done later", "most of all")
    return columns, rows


def _named(users: Sequence[str]) -> str:
    return ", ".join(users[:3]) if users else "-"


def users(outcome: Outcome) -> Table:
    """Each user's mean completion under each policy, means over the seeds; what seeds tell from the first policy is marked."""
    by_policy = {
        policy: [{user.user: user for user in run.users} for run in runs]
        for policy, runs in outcome.results.items()
    }
    order = outcome.workloads[0].yardstick.survey.users
    shown = [
        name
        for place, name in enumerate(order)
        if place < USERS_SHOWN_MAX or any(_times_worse(name, runs) for runs in by_policy.values())
    ]
    found = [_row(name, list(by_policy.values())) for name in shown]
    rows = [row for row in found if row is not None]
    return ("User", "Jobs", "Tasks", "Alone", *outcome.study.policies), rows


def _row(name: str, policies: Sequence[_Runs]) -> tuple[str, ...] | None:
    """One user; None if some seed has nothing of him under any policy."""
    known = [_of_all_seeds(name, runs) for runs in policies]
    first = next((found for found in known if found), None)
    if first is None:
        return None
    means = [_mean_completion_ms(found) for found in known]
    unit_ms = unit_of([mean for mean in means if mean is not None])
    alone = [user.alone_completion_ms for user in first]
    finite = [value for value in alone if value is not None]
    cells = [
        "-" if mean is None else span(mean, unit_ms) + _flag(name, runs) + _beside(each, known[0])
        for mean, runs, each in zip(means, policies, known, strict=True)
    ]
    return (
        name,
        _count([user.jobs for user in first]),
        _count([user.tasks for user in first]),
        span(sum(finite) / len(finite)) if len(finite) == len(alone) else "never",
        *cells,
    )


def _of_all_seeds(name: str, runs: _Runs) -> list[UserReport]:
    """The user in each run, with a job that finished in each; empty otherwise."""
    found = [users[name] for users in runs if name in users and users[name].finished_jobs]
    return found if len(found) == len(runs) else []


def _mean_completion_ms(found: Sequence[UserReport]) -> float | None:
    return sum(user.mean_completion_ms for user in found) / len(found) if found else None


def _count(values: Sequence[int]) -> str:
    return f"{sum(values) / len(values):,.0f}"


def _times_worse(name: str, runs: _Runs) -> int:
    return sum(name in users and users[name].is_clearly_worse_than_alone for users in runs)


def _flag(name: str, runs: _Runs) -> str:
    times = _times_worse(name, runs)
    if not times:
        return ""
    return " !" if times == len(runs) else f" ! {times}/{len(runs)}"


def _beside(found: Sequence[UserReport], first: Sequence[UserReport]) -> str:
    """An arrow down where the user is done sooner than under the first policy, up where later, if seeds tell."""
    if len(found) < 2 or len(first) != len(found):
        return ""
    difference = estimate(
        [mine.mean_completion_ms - other.mean_completion_ms for mine, other in zip(found, first, strict=True)]
    )
    least_ms = NOTICEABLE_OF_USER * (_mean_completion_ms(first) or 0.0)
    if abs(difference.mean) <= max(difference.half_width or 0.0, least_ms):
        return ""
    return " ↓" if difference.mean < 0 else " ↑"
