"""The table is the papers', but for what is proven in docs/properties.md."""

import json
from functools import cache

import pytest

from fairlead_lab.properties import report
from fairlead_lab.properties.changes import Growth
from fairlead_lab.properties.claims import CLAIMS, REASONS, claim_about, differs, kind_of
from fairlead_lab.properties.definitions import PROPERTIES
from fairlead_lab.properties.instances import Shape, make_problem
from fairlead_lab.properties.model import Case
from fairlead_lab.properties.search import Verdict, examine, one_of_each_kind, policy_by_name, search
from fairlead_master.solvers.problem_json import read_problem
from fairlead_master.solvers.registry import solve

TABLE_2 = {
    # Paper 002, "Properties of Policies"; with positive demands, which population monotonicity needs.
    "asset": (False, True, True, True, True, False, True, False),
    "ceei": (True, False, True, True, True, True, False, False),
    "drf": (True, True, True, True, True, True, True, False),
}


@cache
def verdicts_of(policy: str) -> list[Verdict]:
    return list(examine([policy], trials=40, seed=1, shape=Shape()))


def verdict_of(policy: str, name: str) -> Verdict:
    (verdict,) = [each for each in verdicts_of(policy) if each.property_name == name]
    return verdict


def held(policy: str, name: str, trials: int = 40) -> bool:
    """Whether a search for this property alone finds nothing."""
    (claim,) = [each for each in PROPERTIES if each.name == name]
    return search(policy, policy_by_name(policy), claim, trials=trials, seed=1, shape=Shape()).holds


@pytest.mark.parametrize("policy", TABLE_2)
def test_table_2_of_001_comes_out_for_positive_demands(policy: str) -> None:
    marks = [verdict.holds or verdict.needs_zero_demand for verdict in verdicts_of(policy)]

    assert tuple(marks[:8]) == TABLE_2[policy]


@pytest.mark.parametrize(
    ("number", "policy", "name", "holds"),
    [
        (1, "drf", "sharing incentive", True),
        (2, "drf", "strategy-proofness", True),
        (3, "drf", "scale invariance", True),
        (4, "pf", "sharing incentive", True),
        (5, "pf", "strategy-proofness", False),
        (6, "pf", "scale invariance", True),
    ],
)
def test_propositions_1_to_6_of_000_come_out(number: int, policy: str, name: str, holds: bool) -> None:
    verdict = verdict_of(policy, name)
    claim = claim_about(policy, name)

    assert verdict.holds is holds
    assert claim is not None
    assert f"000 proposition {number}" in claim.source
    assert claim.holds is holds


@pytest.mark.parametrize("alpha", ["0.5", "0.9", "1.1", "2", "4", "inf"])
def test_proposition_7_of_000_one_utility_of_tasks_is_locally_fair_for_pf_only(alpha: str) -> None:
    assert not held(f"alpha-tasks:{alpha}", "local fairness")
    assert held("alpha-tasks:1", "local fairness")


def test_remark_1_of_000_does_not_hold_of_first_come_first_served() -> None:
    has = {verdict.property_name: verdict.holds for verdict in verdicts_of("fifo")}

    assert has["Pareto efficiency"]
    assert has["strategy-proofness"]
    assert has["scale invariance"]
    assert not has["local fairness"]


@pytest.mark.parametrize(
    ("alpha", "holds"),
    [("0.5", False), ("0.9", False), ("1", True), ("1.5", True), ("4", True), ("inf", True)],
)
def test_alpha_fairness_of_dominant_shares_is_an_incentive_to_share_from_1_on(
    alpha: str, holds: bool
) -> None:
    assert held(f"alpha:{alpha}", "sharing incentive", trials=150) is holds


@pytest.mark.parametrize("policy", one_of_each_kind())
def test_every_difference_from_the_papers_is_explained(policy: str) -> None:
    unexplained = [
        verdict.property_name
        for verdict in verdicts_of(policy)
        if differs(verdict, claim_about(policy, verdict.property_name))
        and (kind_of(policy), verdict.property_name) not in REASONS
    ]

    assert unexplained == []


def test_policy_with_two_names_is_what_the_papers_say_of_the_better_known() -> None:
    assert claim_about("alpha-tasks:1", "local fairness") == claim_about("pf", "local fairness")
    assert claim_about("alpha-tasks:1.0", "local fairness") != claim_about("alpha-tasks:2", "local fairness")
    assert claim_about("alpha:inf", "strategy-proofness") == claim_about("drf", "strategy-proofness")
    assert claim_about("baa:min", "envy-freeness") == claim_about("baa", "envy-freeness")


def test_claims_and_reasons_are_about_properties_there_are() -> None:
    names = {each.name for each in PROPERTIES}

    assert {name for _, name in CLAIMS} <= names
    assert set(REASONS) <= set(CLAIMS)


def test_marks_of_the_table() -> None:
    rows = {row["property"]: row for row in report.table_rows(verdicts_of("drf"))}

    assert rows["sharing incentive"]["drf"] == "✓ ="
    assert rows["population monotonicity"]["drf"] == "(✓) ="
    assert rows["resource monotonicity"]["drf"] == "✗ ="
    assert list(rows) == [each.name for each in PROPERTIES]


def test_marks_tell_what_no_paper_says_from_what_one_says_otherwise() -> None:
    rows = {row["property"]: row for row in report.table_rows(verdicts_of("fifo"))}

    assert rows["strategy-proofness"]["fifo"] == "✓ !"
    assert rows["local fairness"]["fifo"] == "✗"


def test_counterexample_can_be_followed_by_hand() -> None:
    growth = Case(make_problem((77, 77), (4, 2), (1, 1)), Growth(1, 154))
    (monotonicity,) = [each for each in PROPERTIES if each.name == "resource monotonicity"]
    violation = monotonicity.find_violation(growth, policy_by_name("asset"))
    verdict = Verdict("asset", "resource monotonicity", 1, violation, needs_zero_demand=False)

    assert report.counterexample(verdict) == [
        (
            "asset violates resource monotonicity (001 theorem 3; 002 'Properties of Policies' (001 table 2)): "
            "when mem grows to 154 A goes from 11 tasks to 21/2"
        ),
        "  cpus and mem: <77, 77>; tasks of A <4, 2>, B <1, 1>",
        "  asset gives A 11 tasks <44, 22>, B 33 tasks <33, 33>",
        "  mem grows to 154: A 21/2 tasks <42, 21>, B 35 tasks <35, 35>",
    ]


def test_what_differs_from_a_paper_is_noted_with_the_reason() -> None:
    (note,) = report.notes(verdicts_of("asset"))

    assert note.startswith("asset, population monotonicity: holds by 002")
    assert note.endswith(REASONS["asset", "population monotonicity"])
    assert report.notes(verdicts_of("drf")) == []


def test_json_has_problems_and_answers_that_the_solver_repeats() -> None:
    rows = json.loads(json.dumps([report.as_json(each) for each in verdicts_of("asset")], allow_nan=False))

    assert [row["property"] for row in rows] == [each.name for each in PROPERTIES]
    violated = {row["property"]: row["counterexample"] for row in rows if not row["holds"]}
    assert set(violated) == {
        "sharing incentive",
        "bottleneck fairness",
        "population monotonicity",
        "resource monotonicity",
    }
    for example in violated.values():
        for said in filter(None, (example, example["after"])):
            problem = read_problem(json.dumps(said["problem"]).encode())
            assert list(said["tasks"].values()) == pytest.approx(solve(problem, "asset").tasks)
