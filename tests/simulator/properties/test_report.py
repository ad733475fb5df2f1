"""The table is the papers', but for what is proven in docs/properties.md."""

import json

import pytest

from fairlead_master.solvers.registry import NAMES, solve
from fairlead_sim.properties import report
from fairlead_sim.properties.catalogue import PROPERTIES
from fairlead_sim.properties.claims import CLAIMS, REASONS, claim_about, differs
from fairlead_sim.properties.examination import examine
from fairlead_sim.properties.instances import Shape, make_problem
from fairlead_sim.properties.search import Verdict

TABLE_2 = {
    # Paper 002, "Properties of Policies"; with positive demands, which population monotonicity needs.
    "asset": (False, True, True, True, True, False, True, False),
    "ceei": (True, False, True, True, True, True, False, False),
    "drf": (True, True, True, True, True, True, True, False),
}


def verdicts_of(policy: str, trials: int = 60, *, positive: bool = False) -> list[Verdict]:
    return list(examine([policy], trials=trials, seed=1, shape=Shape(is_positive=positive)))


@pytest.mark.parametrize("policy", [policy for policy in TABLE_2 if policy in NAMES])
def test_table_2_of_001_comes_out_for_positive_demands(policy: str) -> None:
    marks = [verdict.holds for verdict in verdicts_of(policy, positive=True)]

    assert tuple(marks[:8]) == TABLE_2[policy]


@pytest.mark.parametrize("policy", [name for name in NAMES if ":" not in name])
def test_every_difference_from_the_papers_is_explained(policy: str) -> None:
    unexplained = [
        verdict.property_name
        for verdict in verdicts_of(policy)
        if differs(verdict, claim_about(policy, verdict.property_name))
        and (policy, verdict.property_name) not in REASONS
    ]

    assert unexplained == []


def test_claims_and_reasons_are_about_properties_there_are() -> None:
    names = {each.name for each in PROPERTIES}

    assert {name for _, name in CLAIMS} <= names
    assert set(REASONS) <= set(CLAIMS)


def test_marks_of_the_table() -> None:
    rows = {row["property"]: row for row in report.table_rows(verdicts_of("drf"))}

    assert rows["sharing incentive"]["drf"] == "✓"
    assert rows["population monotonicity"]["drf"] == "(✓)"
    assert rows["resource monotonicity"]["drf"] == "✗"
    assert list(rows) == [each.name for each in PROPERTIES]


def test_counterexample_can_be_followed_by_hand() -> None:
    (verdict,) = [each for each in verdicts_of("asset") if each.property_name == "sharing incentive"]

    assert report.counterexample(verdict) == [
        (
            "asset violates sharing incentive (001 theorem 1; 002 'Properties of Policies' (001 table 2)): "
            "B runs 3/7 tasks; with 1/2 of every resource for itself it would run 1/2"
        ),
        "  cpus and mem: <1, 1>; tasks of A <1, 2>, B <1, 1>",
        "  asset gives A 2/7 tasks <2/7, 4/7>, B 3/7 tasks <3/7, 3/7>",
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
            capacity, users = said["problem"]["capacity"], said["problem"]["users"]
            problem = make_problem(
                tuple(capacity.values()), *(tuple(user["demand"].values()) for user in users)
            )
            assert list(said["tasks"].values()) == pytest.approx(solve(problem, "asset").tasks)
