"""The table is the papers', but for what is proven in docs/properties.md."""

import json
from functools import cache

import pytest

from fairlead_master.solvers.registry import NAMES, solve
from fairlead_sim.properties import report
from fairlead_sim.properties.catalogue import PROPERTIES
from fairlead_sim.properties.changes import Growth
from fairlead_sim.properties.claims import CLAIMS, REASONS, claim_about, differs
from fairlead_sim.properties.definitions.two_allocations import resource_monotonicity
from fairlead_sim.properties.examination import examine
from fairlead_sim.properties.instances import Shape, make_problem
from fairlead_sim.properties.model import Case
from fairlead_sim.properties.search import Verdict, policy_by_name

TABLE_2 = {
    # Paper 002, "Properties of Policies"; with positive demands, which population monotonicity needs.
    "asset": (False, True, True, True, True, False, True, False),
    "ceei": (True, False, True, True, True, True, False, False),
    "drf": (True, True, True, True, True, True, True, False),
}


@cache
def verdicts_of(policy: str, *, positive: bool = False) -> list[Verdict]:
    return list(examine([policy], trials=60, seed=1, shape=Shape(is_positive=positive)))


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
    growth = Case(make_problem((77, 77), (4, 2), (1, 1)), Growth(1, 154))
    violation = resource_monotonicity(growth, policy_by_name("asset"))
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
            capacity, users = said["problem"]["capacity"], said["problem"]["users"]
            problem = make_problem(
                tuple(capacity.values()), *(tuple(user["demand"].values()) for user in users)
            )
            assert list(said["tasks"].values()) == pytest.approx(solve(problem, "asset").tasks)
