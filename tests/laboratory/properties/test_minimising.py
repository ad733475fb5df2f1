import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_lab.properties.changes import Departure, Misreport
from fairlead_lab.properties.definitions import PROPERTIES
from fairlead_lab.properties.instances import Shape, make_problem
from fairlead_lab.properties.minimising import EXCESS_KEPT, is_sound, minimised, size, steps
from fairlead_lab.properties.model import Case, Violation
from fairlead_lab.properties.paper_examples import EXAMPLES
from fairlead_lab.properties.search import draw_cases, policy_by_name

BY_NAME = {each.name: each for each in PROPERTIES}
ASSET = policy_by_name("asset")


def violation_of(name: str, case: Case) -> Violation:
    violation = BY_NAME[name].find_violation(case, ASSET)
    assert violation is not None, f"asset fairness is expected to violate {name}"
    return violation


@pytest.mark.parametrize("place", ["001 theorem 1", "001 theorem 2", "001 theorem 3"])
def test_papers_counterexamples_get_smaller_and_stay_counterexamples(place: str) -> None:
    (example,) = [each for each in EXAMPLES if each.place == place]
    (name,) = example.properties
    began = violation_of(name, example.case)

    ended = minimised(began, lambda case: BY_NAME[name].find_violation(case, ASSET), Shape(), steps)

    assert size(ended.case) < size(began.case)
    assert violation_of(name, ended.case) == ended
    assert ended.excess >= min(began.excess, EXCESS_KEPT)


def test_no_step_from_a_minimised_case_keeps_the_violation() -> None:
    began = violation_of("sharing incentive", Case(make_problem((30, 30), (1, 3), (1, 1))))
    find = BY_NAME["sharing incentive"].find_violation

    ended = minimised(began, lambda case: find(case, ASSET), Shape(), steps)

    assert ended.case.problem == make_problem((1.0, 1.0), (0.0, 1.0), (1.0, 1.0))
    for case in steps(ended.case):
        smaller = find(case, ASSET) if is_sound(case) else None
        assert smaller is None or smaller.excess < EXCESS_KEPT


@given(seed=st.integers(0, 10_000), name=st.sampled_from([each.name for each in PROPERTIES]))
def test_every_step_leads_to_a_smaller_case(seed: int, name: str) -> None:
    shape = Shape(is_weighted=True, is_capped=True)
    for case in draw_cases(BY_NAME[name], trials=1, seed=seed, shape=shape, examples=()):
        for smaller in steps(case):
            assert size(smaller) < size(case)


def test_shape_is_kept() -> None:
    shape = Shape(is_positive=True)
    began = violation_of("sharing incentive", Case(make_problem((9, 9, 9), (1, 5, 1), (2, 2, 1))))

    ended = minimised(
        began, lambda case: BY_NAME["sharing incentive"].find_violation(case, ASSET), shape, steps
    )

    assert shape.admits(ended.case.problem)


def test_dropping_users_and_resources_moves_the_change_along() -> None:
    departing = Case(make_problem((5,), (1,), (2,), (3,)), Departure(2))
    lying = Case(make_problem((5, 7), (1, 2), (3, 4)), Misreport(1, (6, 8)))

    smaller = list(steps(departing))
    assert Case(make_problem((5,), (2,), (3,)), Departure(1)) in smaller
    assert all(len(case.problem.users) == 3 or case.change != Departure(2) for case in smaller)
    assert Case(make_problem((5,), (3,)), Misreport(0, (6,))) in [
        then for case in steps(lying) for then in steps(case)
    ]
