"""Tables 1 and 2 and figures 3 to 7 of paper 001."""

from typing import TYPE_CHECKING

import pytest

from fairlead_lab.papers import catalogue
from fairlead_lab.papers.drf import tables
from fairlead_lab.papers.experiment import Agreement, Result, RunOptions
from fairlead_lab.papers.statements import Statement, judge, number
from fairlead_lab.properties.search import Verdict as Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

QUICK = RunOptions(is_quick=True)


def run(figure: str) -> Result:
    return catalogue.find(f"drf-{figure}").run(QUICK)


def tasks(result: Result) -> dict[tuple[object, object, object], object]:
    """By case, policy and user."""
    return {(row[0], row[1], row[2]): row[3] for row in result.rows}


def test_table_1_is_that_of_the_text() -> None:
    result = run("table1")

    assert [row[1] for row in result.rows] == ["B", "A", "A", "B", "A"]
    assert result.rows[0][2:8] == [0.0, 0.0, 0.0, 3 / 9, 1 / 18, 1 / 3]
    assert result.rows[-1][2:] == pytest.approx([3 / 9, 12 / 18, 2 / 3, 6 / 9, 2 / 18, 2 / 3, 1, 14 / 18])
    assert result.verdict.agreement is Agreement.AGREES


def test_table_2_differs_in_one_entry_alone() -> None:
    """Asset fairness has population monotonicity for positive demands only, as the proof of the paper assumes."""
    result = run("table2")

    assert len(result.rows) == 8 * 3
    unlike = [(row[0], row[1]) for row in result.rows if row[2] != row[4]]
    assert unlike == [("population monotonicity", "asset"), ("population monotonicity", "drf")]
    assert result.verdict.agreement is Agreement.DIFFERS
    assert "the other 23 of 24 entries agree" in result.verdict.detail


def test_table_2_tells_what_it_would_have_found_against_a_tick() -> None:
    holds = Finding("drf", "envy-freeness", 10, None, needs_zero_demand=False)
    claimed_violated = Finding("ceei", "strategy-proofness", 10, None, needs_zero_demand=False)

    assert tables.verdict([holds]).agreement is Agreement.AGREES
    assert (
        str(tables.verdict([holds, claimed_violated]))
        == "differs: ceei, strategy-proofness: no violation found, printed as violated; the other 1 of 2 entries agree"
    )


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        ("fig3", {("", "drf", "A"): 3, ("", "drf", "B"): 2}),
        (
            "fig4",
            {
                ("", "drf", "A"): 3, ("", "drf", "B"): 2, ("", "asset", "A"): 63 / 25, ("", "asset", "B"): 54 / 25,
                ("", "ceei", "A"): 45 / 11, ("", "ceei", "B"): 18 / 11,
            },
        ),
        ("fig5", {("", "asset", "1"): 6, ("", "asset", "2"): 12}),
        (
            "fig6",
            {
                ("user 1 is honest", "ceei", "1"): 100 / 31, ("user 1 is honest", "ceei", "2"): 1500 / 31,
                ("user 1 claims <16, 8>", "ceei", "1"): 25 / 6, ("user 1 claims <16, 8>", "ceei", "2"): 100 / 3,
            },
        ),
    ],
)  # fmt: skip
def test_examples_give_the_exact_tasks(figure: str, expected: "dict[tuple[str, str, str], float]") -> None:
    assert tasks(run(figure)) == pytest.approx(expected, rel=1e-9)


def test_only_the_misprint_of_theorem_4_differs() -> None:
    verdicts = {figure: run(figure).verdict for figure in ("fig3", "fig4", "fig5", "fig6", "fig7")}

    assert [name for name, each in verdicts.items() if each.agreement is not Agreement.AGREES] == ["fig6"]
    assert "48.4 (printed: about 48.8" in verdicts["fig6"].detail
    assert verdicts["fig6"].detail.count("printed: about") == 1


@pytest.mark.parametrize("figure", ["fig3", "fig4", "fig5", "fig6", "fig7"])
def test_amounts_and_shares_go_with_the_tasks(figure: str) -> None:
    rows: Sequence[Sequence[object]] = run(figure).rows

    used: dict[tuple[object, object, object], float] = {}
    for case, policy, _, _, resource, _, share in rows:
        assert isinstance(share, float)
        used[case, policy, resource] = used.get((case, policy, resource), 0.0) + share
    assert all(total <= 1 + 1e-9 for total in used.values())
    assert max(used.values()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("found", "printed", "holds"),
    [(48.387, "48.4", True), (48.387, "48.8", False), (4.05, "4.1", True), (4.04, "4.1", False), (3.0, "3", True)],
)  # fmt: skip
def test_a_number_holds_within_half_of_the_last_printed_place(
    found: float, printed: str, holds: bool
) -> None:
    assert number("tasks", found, printed).holds is holds


def test_a_verdict_names_what_differs_first() -> None:
    verdict = judge([Statement("one", True), Statement("two", False, "printed: three")])

    assert str(verdict) == "differs: two (printed: three); as printed: one"
    assert str(judge([Statement("one", True)], within="2 %")) == "agrees within 2 %: one"
