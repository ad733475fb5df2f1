"""Figures 3 to 7: what policies give to the users of the paper's small examples, tasks being divisible.

The answers are those of the exact solvers, as of `fairlead allocate`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from fairlead_lab.papers.experiment import Cell, Experiment, Result, RunOptions, numbers
from fairlead_lab.papers.statements import Statement, judge, number
from fairlead_master.solvers.problem import Problem, User
from fairlead_master.solvers.registry import solve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS: Final = ("case", "policy", "user", "tasks", "resource", "amount", "share")
"""A row for each user and resource; ``share`` is the fraction of the capacity."""

CPUS_AND_MEM: Final = ("cpus", "mem")
TWO_RESOURCES: Final = ("resource 1", "resource 2")
"""Names for resources that the paper does not name."""

SECTION_4_1: Final[Mapping[str, tuple[float, float]]] = {"A": (1, 4), "B": (3, 1)}
"""Demand of a task: CPUs and GB; there are 9 and 18."""

_HONEST: Final = "user 1 is honest"
_LYING: Final = "user 1 claims <16, 8>"
_THREE: Final = "three users"
_TWO: Final = "user 3 has left"


@dataclass(frozen=True, slots=True)
class Case:
    """A problem under a policy: one panel of a figure."""

    name: str
    policy: str
    problem: Problem


def a_problem(
    resources: tuple[str, ...], capacity: tuple[float, ...], demands: Mapping[str, tuple[float, ...]]
) -> Problem:
    """Make a problem of one pool and users of equal weight without a limit on their tasks."""
    users = tuple(User(name, demand, (1.0,) * len(demand)) for name, demand in demands.items())
    return Problem(resources, capacity, users)


Given = Mapping[str, Mapping[str, float]]
"""Tasks by user, by case and policy: keys as ``Case.name`` where it has one, else the policy."""


def _drf(given: Given) -> list[Statement]:
    tasks = given["drf"]
    return [
        number("tasks of A", tasks["A"], "3"),
        number("of B", tasks["B"], "2"),
        Statement(
            "both have 2/3 of their dominant resource",
            abs(tasks["A"] * 4 / 18 - 2 / 3) < 1e-9 and abs(tasks["B"] * 3 / 9 - 2 / 3) < 1e-9,
        ),
    ]


def _three_policies(given: Given) -> list[Statement]:
    asset, ceei = given["asset"], given["ceei"]
    return [
        *_drf(given),
        number("asset fairness: tasks of A", asset["A"], "2.52"),
        number("of B", asset["B"], "2.16"),
        number("CPUs of B", asset["B"] * 3, "6.5"),
        number("GB of A", asset["A"] * 4, "10.1"),
        number("CEEI: CPUs of A", ceei["A"], "4.1"),
        number("GB", ceei["A"] * 4, "16.4"),
        number("CPUs of B", ceei["B"] * 3, "4.9"),
        number("GB", ceei["B"], "1.6"),
    ]


def _asset(given: Given) -> list[Statement]:
    tasks = given["asset"]
    return [
        number("tasks of user 1", tasks["1"], "6"),
        number("of user 2", tasks["2"], "12"),
        Statement(f"user 2 has {tasks['2']:g} of either resource, less than half of 30", tasks["2"] < 15),
    ]


def _a_lie(given: Given) -> list[Statement]:
    honest, lying = given[_HONEST], given[_LYING]
    misprint = "printed: about 48.8 beside the exact 1500/31, which is 48.4: docs/errata.md, theorem 4"
    return [
        number("tasks of user 1", honest["1"], "3.2"),
        number("of user 2", honest["2"], "48.8", misprint),
        number("after the lie: of user 1", lying["1"], "4.2"),
        number("of user 2", lying["2"], "33.3"),
        Statement("the lie pays", lying["1"] > honest["1"]),
    ]


def _a_departure(given: Given) -> list[Statement]:
    before, after = given[_THREE], given[_TWO]
    return [
        *[number(f"tasks of user {name}", before[name], text) for name, text in (("1", "11.3"), ("2", "5.4"), ("3", "3.1"))],
        *[number(f"then of user {name}", after[name], text) for name, text in (("1", "23.8"), ("2", "4.8"))],
        Statement("user 2 loses though user 3 has left", after["2"] < before["2"]),
    ]  # fmt: skip


def _run(cases: Sequence[Case], compare: Callable[[Given], Sequence[Statement]], _: RunOptions) -> Result:
    rows: list[list[Cell]] = []
    given: dict[str, dict[str, float]] = {}
    for case in cases:
        problem, tasks = case.problem, solve(case.problem, case.policy).tasks
        given[case.name or case.policy] = {
            user.name: count for user, count in zip(problem.users, tasks, strict=True)
        }
        for user, count in zip(problem.users, tasks, strict=True):
            for name, need, share in zip(problem.resources, user.demand, problem.share(user), strict=True):
                rows.append([case.name, case.policy, user.name, count, name, count * need, count * share])
    return Result(rows=rows, verdict=judge(compare(given)))


def _draw(figure: "Figure", result: Result) -> None:
    """Draw a panel for each case, with a bar for each resource that is divided among the users."""
    panels = list(dict.fromkeys((str(row[0]), str(row[1])) for row in result.rows))
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for panel, each in zip(panels, axes, strict=True):
        _draw_panel(each, result, panel)
    axes[0].set_ylabel("share of the capacity")
    # All users are in the first panel.
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)


def _draw_panel(axes: "Axes", result: Result, panel: tuple[str, str]) -> None:
    case, policy = panel
    rows = [row for row in result.rows if (row[0], row[1]) == panel]
    resources = list(dict.fromkeys(str(row[4]) for row in rows))
    below = [0.0] * len(resources)
    for user in dict.fromkeys(str(row[2]) for row in rows):
        shares = numbers([row for row in rows if row[2] == user], 6)
        axes.bar(resources, shares, 0.6, bottom=below, label=f"user {user}", edgecolor="black")
        for place, (share, start) in enumerate(zip(shares, below, strict=True)):
            axes.text(place, start + share / 2, f"{share:.0%}", ha="center", va="center", fontsize=8)
        below = [start + share for start, share in zip(below, shares, strict=True)]
    axes.set_ylim(0.0, 1.0)
    axes.set_title(f"{policy}\n{case}" if case else policy, fontsize=10)


_SECTION_4_1: Final = a_problem(CPUS_AND_MEM, (9, 18), SECTION_4_1)
_HALVES: Final = a_problem(TWO_RESOURCES, (30, 30), {"1": (1, 3), "2": (1, 1)})
_TRUTH: Final = a_problem(TWO_RESOURCES, (100, 100), {"1": (16, 1), "2": (1, 2)})
_LIE: Final = a_problem(TWO_RESOURCES, (100, 100), {"1": (16, 8), "2": (1, 2)})
_BEFORE: Final = a_problem(TWO_RESOURCES, (100, 100), {"1": (4, 1), "2": (1, 16), "3": (16, 1)})
_AFTER: Final = a_problem(TWO_RESOURCES, (100, 100), {"1": (4, 1), "2": (1, 16)})


def _experiment(
    figure: str, title: str, compare: Callable[[Given], Sequence[Statement]], *cases: Case
) -> Experiment:
    return Experiment(f"drf-{figure}", title, COLUMNS, partial(_run, cases, compare), _draw)


EXPERIMENTS: Final = (
    _experiment("fig3", "DRF on the example of section 4.1", _drf, Case("", "drf", _SECTION_4_1)),
    _experiment(
        "fig4",
        "DRF, asset fairness and CEEI on the same example",
        _three_policies,
        *[Case("", policy, _SECTION_4_1) for policy in ("drf", "asset", "ceei")],
    ),
    _experiment("fig5", "asset fairness fails the sharing incentive", _asset, Case("", "asset", _HALVES)),
    _experiment(
        "fig6",
        "CEEI is not strategy-proof",
        _a_lie,
        Case(_HONEST, "ceei", _TRUTH),
        Case(_LYING, "ceei", _LIE),
    ),
    _experiment(
        "fig7",
        "CEEI is not population monotone",
        _a_departure,
        Case(_THREE, "ceei", _BEFORE),
        Case(_TWO, "ceei", _AFTER),
    ),
)
