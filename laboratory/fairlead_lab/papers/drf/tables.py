"""Table 1: DRF step by step. Table 2: which policy has which property."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fairlead_lab.papers.drf.examples import CPUS_AND_MEM, SECTION_4_1, a_problem
from fairlead_lab.papers.experiment import Agreement, Cell, Experiment, Result, RunOptions, Verdict, numbers
from fairlead_lab.papers.statements import Statement, judge, number
from fairlead_lab.properties.claims import claim_about
from fairlead_lab.properties.claims import differs as contradicts
from fairlead_lab.properties.definitions import PROPERTIES
from fairlead_lab.properties.instances import Shape
from fairlead_lab.properties.model import Property
from fairlead_lab.properties.search import Verdict as Finding
from fairlead_lab.properties.search import policy_by_name, search
from fairlead_master.solvers.registry import solve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TABLE_1_COLUMNS: Final = (
    "step", "served", "a_cpu_share", "a_mem_share", "a_dominant_share", "b_cpu_share", "b_mem_share",
    "b_dominant_share", "cpu_allocated", "mem_allocated",
)  # fmt: skip
"""As the paper's, with shares as fractions of 9 CPUs and 18 GB, after the step."""

_TABLE_2_COLUMNS: Final = ("property", "policy", "holds", "needs_zero_demand", "printed", "trials")

POLICIES: Final = ("asset", "ceei", "drf")
"""Of table 2, in its order."""

PROPERTIES_OF_TABLE_2: Final[tuple[Property, ...]] = PROPERTIES[:8]
"""The remaining properties are those of paper 000."""

_TRIALS: Final = 1_000
"""Random problems of each kind for each entry; violations are found among the first dozens."""
_TRIALS_QUICK: Final = 60


def _table_1(_: RunOptions) -> Result:
    # Both shares are zero at first and the paper takes B; our ties go to who was added first.
    problem = a_problem(CPUS_AND_MEM, (9, 18), {name: SECTION_4_1[name] for name in ("B", "A")})
    steps = solve(problem, "drf", discrete=True).steps or ()
    part_of = {user.name: problem.share(user) for user in problem.users}
    tasks = {"A": 0, "B": 0}
    rows: list[list[Cell]] = []
    for step, served in enumerate(steps, start=1):
        tasks[served] += 1
        row: list[Cell] = [step, served]
        for name, count in tasks.items():
            shares = [count * part for part in part_of[name]]
            row += [*shares, max(shares)]
        rows.append([*row, float(row[2] or 0) + float(row[5] or 0), float(row[3] or 0) + float(row[6] or 0)])
    return Result(rows=rows, verdict=judge(_table_1_statements(steps, tasks, rows)), notes=_TIE)


_TIE: Final = (
    "The first choice is between two shares of zero: the paper takes B, so B is listed first here. "
    "Our copy has lost the table; its text says how it begins and ends."
)


def _table_1_statements(
    steps: tuple[str, ...], tasks: dict[str, int], rows: list[list[Cell]]
) -> list[Statement]:
    first, last = rows[0], rows[-1]
    return [
        Statement(f"served: {', '.join(steps)}", steps[:2] == ("B", "A"), "the text: B, then A"),
        Statement(
            "B begins with 3/9 and 1/18",
            (first[5], first[6], first[7]) == (3 / 9, 1 / 18, 1 / 3),
        ),
        number("tasks of A at the end", tasks["A"], "3"),
        number("of B", tasks["B"], "2"),
        Statement("both have 2/3", last[4] == last[7] == 2 / 3),
        Statement("it ends when the CPUs are used up", last[8] == 1.0),
    ]


def _table_2(options: RunOptions) -> Result:
    shape = Shape()
    trials = _TRIALS_QUICK if options.is_quick else _TRIALS
    findings = [
        search(policy, policy_by_name(policy), each, trials=trials, seed=options.seed, shape=shape)
        for each in PROPERTIES_OF_TABLE_2
        for policy in POLICIES
    ]
    rows = [_table_2_row(finding) for finding in findings]
    return Result(rows=rows, verdict=verdict(findings), notes=_SEARCHED)


_SEARCHED: Final = (
    "Found by search: `holds` means that no violation was found in so many random problems (trials), which is no proof; "
    "what does not hold has a counterexample, which `fairlead properties` prints. `printed` is the table of the talk "
    "(002), as our copy of the paper has lost its own. needs_zero_demand: violated, but only where somebody needs nothing of "
    "some resource."
)


def _table_2_row(finding: Finding) -> list[Cell]:
    claim = claim_about(finding.policy, finding.property_name)
    assert claim is not None, f"table 2 says nothing of {finding.property_name} under {finding.policy}"
    return [
        finding.property_name, finding.policy, finding.holds, finding.needs_zero_demand, claim.holds, finding.trials,
    ]  # fmt: skip


def verdict(findings: Sequence[Finding]) -> Verdict:
    """Compare the results of the search with the printed table."""
    wrong = [each for each in findings if contradicts(each, claim_about(each.policy, each.property_name))]
    counted = f"{len(findings) - len(wrong)} of {len(findings)} entries"
    if not wrong:
        return Verdict(Agreement.AGREES, counted)
    named = "; ".join(f"{each.policy}, {each.property_name}: {_why(each)}" for each in wrong)
    return Verdict(Agreement.DIFFERS, f"{named}; the other {counted} agree")


def _why(finding: Finding) -> str:
    if finding.needs_zero_demand:
        return (
            "violated where somebody needs nothing of a resource, and only there; "
            "ticked in the table (docs/errata.md, 001, table 2)"
        )
    return "no violation found, printed as violated" if finding.holds else "violated, ticked in the table"


def _draw_table_1(figure: "Figure", result: Result) -> None:
    """Draw both dominant shares after each step."""
    axes = figure.add_subplot()
    steps = [0, *(int(row[0] or 0) for row in result.rows)]
    for name, place in (("A", 4), ("B", 7)):
        shares = [0.0, *numbers(result.rows, place)]
        axes.step(steps, shares, where="post", marker="o", label=f"user {name}")
    axes.set_xticks(steps, ["", *(str(row[1]) for row in result.rows)])
    axes.set_xlabel("served")
    axes.set_ylabel("dominant share")
    axes.set_ylim(0.0, 1.0)
    axes.legend()


def _draw_table_2(figure: "Figure", result: Result) -> None:
    """Draw the table, with a tick where no violation of a property was found."""
    axes = figure.add_subplot()
    axes.set_axis_off()
    signs = {(row[0], row[1]): _sign(holds=bool(row[2]), needs_zero=bool(row[3])) for row in result.rows}
    properties = list(dict.fromkeys(str(row[0]) for row in result.rows))
    cells = [[signs[name, policy] for policy in POLICIES] for name in properties]
    table = axes.table(cells, rowLabels=properties, colLabels=POLICIES, loc="center", cellLoc="center")
    table.scale(0.6, 1.8)


def _sign(*, holds: bool, needs_zero: bool) -> str:
    return "✓" if holds else "(✓)" if needs_zero else ""


EXPERIMENTS: Final = (
    Experiment(
        "drf-table1",
        "DRF step by step on the example of section 4.1",
        _TABLE_1_COLUMNS,
        _table_1,
        _draw_table_1,
    ),
    Experiment(
        "drf-table2", "properties of asset fairness, CEEI and DRF", _TABLE_2_COLUMNS, _table_2, _draw_table_2
    ),
)
