from itertools import pairwise, product

import pytest

from fairlead_lab.properties.changes import Departure, Growth, Misreport, Rescaling
from fairlead_lab.properties.definitions import PROPERTIES
from fairlead_lab.properties.enumeration import smaller_cases, smallest
from fairlead_lab.properties.instances import Shape, make_problem
from fairlead_lab.properties.minimising import is_sound, size
from fairlead_lab.properties.model import Case, Violation
from fairlead_lab.properties.paper_examples import EXAMPLES
from fairlead_lab.properties.search import policy_by_name

BY_NAME = {each.name: each for each in PROPERTIES}
POSITIVE = Shape(is_positive=True)


def smallest_of(place: str, policy: str) -> Violation:
    """The smallest violation like that of an example, in which everybody needs something of everything."""
    (example,) = [each for each in EXAMPLES if each.place == place]
    (name,) = example.properties
    find, allocate = BY_NAME[name].find_violation, policy_by_name(policy)
    began = find(example.case, allocate)
    assert began is not None
    return smallest(began, lambda case: find(case, allocate), POSITIVE)


@pytest.mark.parametrize(
    "like",
    [
        Case(make_problem((2, 1), (1, 1), (1, 1)), Misreport(1, (1, 2))),
        Case(make_problem((2, 2), (1, 2), (2, 1)), Growth(1, 4)),
        Case(make_problem((2,), (1,), (2,), (2,)), Departure(1)),
        Case(make_problem((2,), (2,), (1,)), Rescaling(1, 3)),
        Case(make_problem((2, 2), (1, 2), (2, 1))),
    ],
)
def test_cases_are_sound_and_smaller_and_come_by_size(like: Case) -> None:
    cases = list(smaller_cases(like, Shape()))

    assert cases
    assert all(is_sound(case) and size(case) < size(like) for case in cases)
    assert all(size(first) <= size(second) for first, second in pairwise(cases))
    assert all(type(case.change) is type(like.change) for case in cases)
    assert len(set(cases)) == len(cases)


def test_no_smaller_case_is_left_out_but_for_the_order_of_users() -> None:
    like = Case(make_problem((3, 2), (2, 1), (1, 2)))

    numbers = product(range(1, 5), range(1, 5), *[range(5)] * 4)
    all_cases = {Case(make_problem((a, b), *sorted([(c, d), (e, f)]))) for a, b, c, d, e, f in numbers}
    # No number of a smaller case can be above 5, as six of them sum to less than 11 and two are at least 1.
    expected = {
        case
        for case in all_cases
        if is_sound(case) and size(case) < size(like) and max(case.problem.capacity) < 5
    }

    found = {
        case
        for case in smaller_cases(like, Shape())
        if max(*case.problem.capacity, *(need for user in case.problem.users for need in user.demand)) < 5
    }
    assert found == expected


def test_shape_is_kept() -> None:
    like = Case(make_problem((3, 3), (1, 2), (2, 1)), Growth(1, 4))

    assert all(POSITIVE.admits(case.problem) for case in smaller_cases(like, POSITIVE))
    assert not all(POSITIVE.admits(case.problem) for case in smaller_cases(like, Shape()))


@pytest.mark.parametrize("policy", ["drf", "ceei"])
def test_theorem_6_of_001_needs_no_number_beyond_2(policy: str) -> None:
    violation = smallest_of("001 theorem 6", policy)

    assert violation.case == Case(make_problem((1, 1), (1, 2), (2, 1)), Growth(0, 2))
    assert violation.finding == "when cpus grows to 2 A goes from 1/3 tasks to 1/4"


def test_theorem_4_of_001_needs_no_number_beyond_3() -> None:
    violation = smallest_of("001 theorem 4", "ceei")

    assert violation.case == Case(make_problem((1, 1), (1, 3), (2, 1)), Misreport(0, (1, 2)))
    assert violation.before == pytest.approx((1 / 5, 2 / 5))
    assert violation.after == pytest.approx((1 / 3, 1 / 3))


def test_smallest_case_stays_as_it_is() -> None:
    began = smallest_of("001 theorem 6", "drf")
    find, allocate = BY_NAME["resource monotonicity"].find_violation, policy_by_name("drf")

    assert smallest(began, lambda case: find(case, allocate), POSITIVE) is began
