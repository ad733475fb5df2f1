"""Each property finds the papers' counterexamples, and finds nothing in allocations that have it.

The allocations are the papers' own numbers, not our solvers': what is tested here is who gets blamed for what.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_lab.properties.changes import Departure, Growth, Misreport, Rescaling, changed
from fairlead_lab.properties.definitions import PROPERTIES, common_dominant, max_min_shares
from fairlead_lab.properties.instances import make_problem
from fairlead_lab.properties.model import MARGIN, Allocate, Case, shown
from fairlead_master.solvers.problem import Problem, User

(
    sharing_incentive,
    strategy_proofness,
    envy_freeness,
    pareto_efficiency,
    single_resource_fairness,
    bottleneck_fairness,
    population_monotonicity,
    resource_monotonicity,
    scale_invariance,
    local_fairness,
) = [each.find_violation for each in PROPERTIES]

SECTION_4_1 = make_problem((9, 18), (1, 4), (3, 1))
DRF, ASSET, CEEI = (3.0, 2.0), (2.52, 2.16), (45 / 11, 18 / 11)
"""What paper 001 gives for section 4.1: figure 3, section 5.1 and section 5.2."""


def always(*tasks: float) -> Allocate:
    return lambda _problem: tasks


def by_problem(answers: Mapping[Problem, tuple[float, ...]]) -> Allocate:
    return lambda problem: answers[problem]


def with_users(problem: Problem, **fields: object) -> Problem:
    return replace(problem, users=tuple([replace(user, **fields) for user in problem.users]))  # type: ignore[arg-type]


def test_theorem_1_of_001_asset_fairness_gives_less_than_half_of_everything() -> None:
    violation = sharing_incentive(Case(make_problem((30, 30), (1, 3), (1, 1))), always(6, 12))

    assert violation is not None
    assert violation.user == 1
    assert violation.excess == pytest.approx(3 / 30)
    assert violation.finding == "B runs 12 tasks; with 1/2 of every resource for itself it would run 15"


def test_asset_fairness_of_002_gives_less_than_half_of_both() -> None:
    violation = sharing_incentive(Case(make_problem((70, 70), (2, 2), (1, 2))), always(15, 20))

    assert violation is not None
    assert violation.finding == "A runs 15 tasks; with 1/2 of every resource for itself it would run 35/2"


@pytest.mark.parametrize("tasks", [DRF, CEEI])
def test_drf_and_ceei_give_an_incentive_to_share_in_section_4_1_of_001(tasks: tuple[float, float]) -> None:
    assert sharing_incentive(Case(SECTION_4_1), always(*tasks)) is None


def test_who_wants_less_than_its_part_has_no_claim_to_more() -> None:
    problem = with_users(make_problem((10,), (1,), (1,)), max_tasks=2.0)

    assert sharing_incentive(Case(problem), always(2, 2)) is None
    assert sharing_incentive(Case(problem), always(2, 1.5)) is not None


def test_part_of_everything_goes_by_weight() -> None:
    heavy, light = make_problem((12,), (1,), (1,)).users
    problem = replace(make_problem((12,), (1,), (1,)), users=(replace(heavy, weights=(3.0,)), light))

    assert sharing_incentive(Case(problem), always(9, 3)) is None
    assert sharing_incentive(Case(problem), always(8, 4)) is not None


def test_who_could_run_more_with_what_another_holds_is_envious() -> None:
    violation = envy_freeness(Case(make_problem((10,), (2,), (1,))), always(3, 3))

    assert violation is not None
    assert violation.finding == "B runs 3 tasks; with what A holds, <6>, it would run 6"


@pytest.mark.parametrize("tasks", [DRF, ASSET, CEEI])
def test_nobody_is_envious_in_section_4_1_of_001(tasks: tuple[float, float]) -> None:
    assert envy_freeness(Case(SECTION_4_1), always(*tasks)) is None


def test_envy_of_a_heavier_user_counts_what_it_holds_per_weight() -> None:
    light, heavy = make_problem((9,), (1,), (1,)).users
    problem = replace(make_problem((9,), (1,), (1,)), users=(light, replace(heavy, weights=(2.0,))))

    assert envy_freeness(Case(problem), always(3, 6)) is None
    assert envy_freeness(Case(problem), always(2, 7)) is not None


def test_what_is_left_over_and_could_be_used_is_inefficient() -> None:
    violation = pareto_efficiency(Case(SECTION_4_1), always(3, 1.5))

    assert violation is not None
    assert violation.finding.startswith("<3/2, 9/2> is left over, with which A could run 9/8 tasks more")


@pytest.mark.parametrize("tasks", [DRF, CEEI])
def test_drf_and_ceei_are_efficient_in_section_4_1_of_001(tasks: tuple[float, float]) -> None:
    assert pareto_efficiency(Case(SECTION_4_1), always(*tasks)) is None


def test_what_is_left_over_but_wanted_by_nobody_is_efficient() -> None:
    assert pareto_efficiency(Case(with_users(SECTION_4_1, max_tasks=1.0)), always(1, 1)) is None


def test_max_min_of_tasks_is_not_max_min_of_the_resource_as_proposition_7_of_000_has_it() -> None:
    problem = make_problem((4,), (2,), (1,))

    for fairness in (single_resource_fairness, local_fairness):
        assert fairness(Case(problem), always(4 / 3, 4 / 3)) is not None
        assert fairness(Case(problem), always(1, 2)) is None


def test_local_fairness_knows_no_caps_where_single_resource_fairness_does() -> None:
    first, second = make_problem((10,), (1,), (1,)).users
    problem = replace(make_problem((10,), (1,), (1,)), users=(replace(first, max_tasks=2.0), second))

    assert single_resource_fairness(Case(problem), always(2, 8)) is None
    assert single_resource_fairness(Case(problem), always(2, 5)) is not None
    assert local_fairness(Case(problem), always(2, 8)) is None


def test_theorem_2_of_001_asset_fairness_gives_three_sevenths_of_the_bottleneck() -> None:
    violation = bottleneck_fairness(Case(make_problem((21, 21), (3, 2), (4, 1))), always(3, 3))

    assert violation is not None
    assert violation.finding == "A has 3/7 of cpus; max-min fairness gives it 1/2"
    assert bottleneck_fairness(Case(violation.case.problem), always(3.5, 21 / 8)) is None


def test_bottleneck_fairness_says_nothing_where_dominant_resources_differ() -> None:
    assert common_dominant(SECTION_4_1) is None
    assert bottleneck_fairness(Case(SECTION_4_1), always(0, 0)) is None


def test_theorem_4_of_001_ceei_rewards_a_lie() -> None:
    problem, lie = make_problem((100, 100), (16, 1), (1, 2)), Misreport(0, (16, 8))
    ceei = by_problem({problem: (100 / 31, 1500 / 31), changed(problem, lie): (25 / 6, 100 / 3)})

    violation = strategy_proofness(Case(problem, lie), ceei)

    assert violation is not None
    assert violation.finding == (
        "A needs <16, 1> and runs 100/31 tasks; claiming <16, 8> it is given <200/3, 100/3> and runs 25/6"
    )


def test_proposition_5_of_000_pf_rewards_a_lie() -> None:
    problem, lie = make_problem((6, 6), (3, 6), (6, 3)), Misreport(0, (4, 6))
    pf = by_problem({problem: (2 / 3, 2 / 3), changed(problem, lie): (3 / 4, 1 / 2)})

    violation = strategy_proofness(Case(problem, lie), pf)

    assert violation is not None
    assert violation.excess == pytest.approx(3 / 4 - 2 / 3)


def test_remark_3_of_000_a_larger_lie_does_not_pay() -> None:
    problem, lie = make_problem((6, 6), (3, 6), (6, 3)), Misreport(0, (6, 6))
    pf = by_problem({problem: (2 / 3, 2 / 3), changed(problem, lie): (1 / 2, 1 / 2)})

    assert strategy_proofness(Case(problem, lie), pf) is None


def test_being_given_more_of_what_is_of_no_use_is_no_gain() -> None:
    problem, lie = make_problem((6, 6), (3, 0), (3, 0)), Misreport(0, (3, 6))

    assert strategy_proofness(Case(problem, lie), always(1, 1)) is None


def test_theorem_5_of_001_ceei_takes_from_a_user_when_another_leaves() -> None:
    problem = make_problem((100, 100), (4, 1), (1, 16), (16, 1))
    ceei = by_problem(
        {problem: (11.3, 5.4, 3.1), changed(problem, Departure(2)): (23.8, 4.8)}  # as rounded in the paper
    )

    violation = population_monotonicity(Case(problem, Departure(2)), ceei)

    assert violation is not None
    assert violation.finding == "when C leaves B goes from 27/5 tasks to 24/5"
    assert population_monotonicity(Case(problem, Departure(0)), lambda p: (3.0,) * len(p.users)) is None


def test_theorem_3_of_001_asset_fairness_takes_from_a_user_when_a_resource_doubles() -> None:
    problem, growth = make_problem((77, 77), (4, 2), (1, 1)), Growth(1, 154)
    asset = by_problem({problem: (11, 33), changed(problem, growth): (10.5, 35)})

    violation = resource_monotonicity(Case(problem, growth), asset)

    assert violation is not None
    assert violation.finding == "when mem grows to 154 A goes from 11 tasks to 21/2"


def test_theorem_6_of_001_sharing_and_efficiency_forbid_monotonicity() -> None:
    problem, growth = make_problem((12, 12), (2, 1), (1, 2)), Growth(1, 48)
    drf = by_problem({problem: (4, 4), changed(problem, growth): (3, 6)})

    violation = resource_monotonicity(Case(problem, growth), drf)

    assert violation is not None
    assert violation.user == 0
    assert resource_monotonicity(Case(problem, growth), always(4, 4)) is None


def test_scale_invariance_compares_what_is_held_and_not_how_it_is_counted() -> None:
    problem, twice = make_problem((12,), (2,), (3,)), Rescaling(0, 2)

    def equal_shares(problem: Problem) -> tuple[float, ...]:
        return tuple([6 / user.demand[0] for user in problem.users])

    def equal_tasks(problem: Problem) -> tuple[float, ...]:
        return (12 / sum(user.demand[0] for user in problem.users),) * 2

    assert scale_invariance(Case(problem, twice), equal_shares) is None
    assert scale_invariance(Case(problem, twice), equal_tasks) is not None


def test_what_is_within_the_margin_is_no_violation() -> None:
    problem = make_problem((2,), (1,), (1,))

    assert sharing_incentive(Case(problem), always(1 - MARGIN, 1)) is None
    assert sharing_incentive(Case(problem), always(1 - 3 * MARGIN, 1)) is not None


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5)), min_size=1, max_size=6),
)
def test_max_min_shares_cannot_be_raised_for_one_without_taking_from_one_with_less(
    users: list[tuple[int, int]],
) -> None:
    wants, weights = [want / 10 for want, _ in users], [float(weight) for _, weight in users]

    shares = max_min_shares(wants=wants, weights=weights)

    assert sum(shares) == pytest.approx(min(1, sum(wants)))
    level = max(share / weight for share, weight in zip(shares, weights, strict=True))
    for share, want, weight in zip(shares, wants, weights, strict=True):
        assert share == pytest.approx(want) or share / weight == pytest.approx(level)


def test_numbers_are_shown_as_small_fractions_where_they_are_some() -> None:
    assert [shown(value) for value in (45 / 11, 2.0, 0.0, 2**0.5, 1e-7)] == [
        "45/11",
        "2",
        "0",
        "1.41421",
        "1e-07",
    ]


def test_users_without_a_cap_are_those_of_the_papers() -> None:
    assert make_problem((1,), (2,)).users == (User(name="A", demand=(2,), weights=(1.0,), max_tasks=inf),)
