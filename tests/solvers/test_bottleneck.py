"""The static solver of bottleneck-based fairness: no justified complaints, whatever the demands and entitlements."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from fairlead_master.allocation.multipliers.satiation import Wish
from fairlead_master.solvers.alpha_fair import solve_proportional
from fairlead_master.solvers.bottleneck import solve, solve_discrete
from fairlead_master.solvers.complaints import verify
from fairlead_master.solvers.machine_market import share_machines
from fairlead_master.solvers.problem import Amounts, Nodes, Problem, SolverError, User
from tests.solvers.test_complaints import a_problem, a_user


def test_two_thirds_and_a_third_of_what_two_contend_for() -> None:
    """ "On-line fair allocations", figure 4: 70 % takes all of the network; 20 and 10 % share the disk two to one."""
    problem = a_problem(
        a_user("blue", 0, 1, weight=70), a_user("green", 1, 0, weight=20), a_user("red", 1, 0, weight=10)
    )

    assert solve(problem).tasks == pytest.approx([1, 2 / 3, 1 / 3])


def test_a_client_with_enough_of_one_bottleneck_may_have_less_than_its_part_of_others() -> None:
    """The clients of figure 7: red the CPU, blue the disk, 40 % each; green, 20 %, both. It gets its 20 %, on either."""
    problem = a_problem(
        a_user("red", 1, 0, weight=40), a_user("blue", 0, 1, weight=40), a_user("green", 1, 1, weight=20)
    )

    assert solve(problem).tasks == pytest.approx([0.8, 0.8, 0.2])


def test_entitlements_by_resource_decide_between_fair_allocations() -> None:
    """Figure 7 itself: the entitlements of those who use a resource are 67 and 33 % there, and so it came out."""
    problem = a_problem(
        a_user("red", 1, 0),
        a_user("blue", 0, 1),
        a_user("green", 1, 1),
        entitled=((2 / 3, 0), (0, 2 / 3), (1 / 3, 1 / 3)),
    )

    assert solve(problem).tasks == pytest.approx([2 / 3, 2 / 3, 1 / 3])


def test_a_newcomer_takes_its_half_and_only_who_has_too_much_gives() -> None:
    """Figure 12: of the CPU 17, 33 and 50 %; the disk is used half as much as it could be, the network two thirds."""
    problem = a_problem(
        a_user("red", 1, 0, 2, weight=33, max_tasks=1 / 3),
        a_user("green", 1, 2, 0, weight=67, max_tasks=1 / 3),
        a_user("blue", 1, 0, 0, weight=100),
        capacity=(1, 1, 1),
    )

    tasks = solve(problem).tasks

    # Green wants a third and is entitled to 33.5 %: the rest of it is shared 33 to 100.
    assert tasks == pytest.approx([2 / 3 * 33 / 133, 1 / 3, 2 / 3 * 100 / 133])
    assert tasks == pytest.approx([0.17, 0.33, 0.5], abs=0.005)


def test_all_eight_of_the_circle_run_at_one_sixth() -> None:
    """Section 4.4, figure 11: four resources, pairs that use three of them; of several solutions the symmetric one."""
    users = [
        a_user(f"{pair}{twin}", *[float(resource != pair) for resource in range(4)])
        for pair in range(4)
        for twin in "ab"
    ]
    problem = Problem(("1", "2", "3", "4"), (1.0,) * 4, tuple(users))

    assert solve(problem).tasks == pytest.approx([1 / 6] * 8)
    assert verify(problem, [1 / 6] * 8).is_fair
    # The other kind of solution the paper names: two pairs at 37.5 %, that is 3/16 each, two at 25 %, 1/8 each.
    other = verify(problem, [3 / 16] * 4 + [1 / 8] * 4)
    assert other.is_fair
    assert other.bottlenecks == ("3", "4")


def test_with_one_entitlement_a_user_it_is_proportional_fairness() -> None:
    problem = Problem(("cpu", "mem"), (9.0, 18.0), (a_user("A", 1, 4), a_user("B", 3, 1)))

    assert solve(problem).tasks == pytest.approx(solve_proportional(problem).tasks)


def test_users_that_own_what_others_need_find_prices() -> None:
    """The market of Scarf's example, where prices may go around in circles: each owns one good and needs two others' too."""
    problem = Problem(
        ("a", "b", "c"),
        (1.0, 2.0, 3.0),
        (a_user("1", 0.5, 1, 0), a_user("2", 0, 0.5, 1), a_user("3", 1, 0, 0.5)),
        entitlements=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    )

    solution = solve(problem)

    # Each spends what its good is worth: p = (4, 8, 3) / 15, found by hand from x = (2, 8, 2) / 3.
    assert solution.tasks == pytest.approx([2 / 3, 8 / 3, 2 / 3])
    assert verify(problem, solution.tasks).is_fair


def test_who_wants_nothing_gets_nothing_and_costs_nothing() -> None:
    nobody = a_user("nobody", 1, 1, max_tasks=0)

    assert solve(a_problem(nobody)).tasks == (0,)
    assert solve(a_problem(nobody, a_user("one", 1, 2))).tasks == pytest.approx([0, 0.5])


def test_where_all_fits_everyone_has_all_it_wants() -> None:
    problem = a_problem(a_user("1", 1, 1, max_tasks=0.3), a_user("2", 1, 1, max_tasks=0.4))

    assert solve(problem).tasks == (0.3, 0.4)


def test_machines_of_one_proportion_are_one_pool() -> None:
    users = (a_user("A", 1, 4), a_user("B", 3, 1))
    pool = solve(Problem(("cpu", "mem"), (9.0, 18.0), users)).tasks
    alike = Problem(("cpu", "mem"), (9.0, 18.0), users, (Nodes(1, (6.0, 12.0)), Nodes(3, (1.0, 2.0))))

    assert solve(alike).tasks == pytest.approx(pool)


def test_whole_tasks_follow_the_fluid_ones() -> None:
    """In the example of the DRF paper bottleneck fairness gives A four tasks where DRF gives three."""
    problem = Problem(("cpu", "mem"), (9.0, 18.0), (a_user("A", 1, 4), a_user("B", 3, 1)))

    solution = solve_discrete(problem)

    assert list(solution.tasks) == [4, 1]
    assert solution.steps == ("A", "A", "B", "A", "A")
    assert verify(problem, solution.tasks, whole_tasks=True).is_fair


def test_whole_tasks_of_large_pools_leave_nobody_more_than_a_task_short() -> None:
    problem = Problem(
        ("cpu", "mem"),
        (900.0, 1800.0),
        (a_user("A", 1, 4), a_user("B", 3, 1, weight=2), a_user("C", 1, 1, max_tasks=50)),
    )

    assert verify(problem, solve_discrete(problem).tasks, whole_tasks=True).is_fair


amount = st.sampled_from([0.0, 0.0, 0.01, 0.3, 1.0, 2.0, 5.0])
weight = st.sampled_from([0.01, 0.5, 1.0, 1.0, 3.0, 20.0])
limit = st.sampled_from([inf, inf, inf, 0.1, 1.0, 30.0])


@st.composite
def problems(draw: st.DrawFn, *, by_resource: bool) -> Problem:
    width = draw(st.integers(1, 4))
    users = []
    for number in range(draw(st.integers(1, 7))):
        demand: Amounts = tuple(draw(amount) for _ in range(width))
        if not any(demand):
            demand = (1.0,) * width
        weights = [draw(weight) for _ in range(width)] if by_resource else [draw(weight)] * width
        users.append(User(str(number), demand, tuple(weights), draw(limit)))
    capacity = tuple(draw(st.sampled_from([1.0, 7.0, 10.0])) for _ in range(width))
    return Problem(tuple("abcd"[:width]), capacity, tuple(users))


@given(problems(by_resource=False))
def test_nobody_complains_with_justice(problem: Problem) -> None:
    verdict = verify(problem, solve(problem).tasks)

    assert verdict.is_fair
    assert not verdict.improvable


@hypothesis_settings(max_examples=100)
@given(problems(by_resource=True))
def test_nobody_complains_with_justice_under_entitlements_by_resource(problem: Problem) -> None:
    verdict = verify(problem, solve(problem).tasks)

    assert verdict.is_fair
    assert not verdict.improvable


def machines(users: list[User], *nodes: Nodes, entitled: tuple[Amounts, ...] | None = None) -> Problem:
    total = [sum(kind.count * kind.capacity[place] for kind in nodes) for place in range(2)]
    return Problem(("cpus", "mem"), tuple(total), tuple(users), nodes, entitled)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([(1, 4), (3, 1), (1, 1), (2, 0), (0, 3)]),
            st.floats(0.1, 10),
            st.one_of(st.just(inf), st.floats(0.5, 20)),
        ),
        min_size=2,
        max_size=6,
    )
)
@hypothesis_settings(max_examples=40)
def test_on_unlike_machines_nobody_complains_of_a_resource_of_a_kind(
    wants: list[tuple[Amounts, float, float]],
) -> None:
    """Who gets less than it wants has its entitlement of something that is used up, where it is: see the docstring."""
    users = [a_user(str(n), *need, weight=w, max_tasks=most) for n, (need, w, most) in enumerate(wants)]
    kinds = (Nodes(3, (12.0, 6.0)), Nodes(2, (2.0, 20.0)))

    tasks = solve(machines(users, *kinds)).tasks

    for own, (need, weight, most) in zip(tasks, wants, strict=True):
        if own < most * (1 - 1e-6):
            assert can_complain_of_nothing(tasks, wants, kinds, own, need, weight)


def can_complain_of_nothing(
    tasks: Amounts,
    wants: list[tuple[Amounts, float, float]],
    kinds: tuple[Nodes, ...],
    own: float,
    need: Amounts,
    weight: float,
) -> bool:
    """Whether equal money would buy it no more: at the market's prices, from the wishes alone, it spends its part of all."""
    wishes = [Wish(row, money, most) for row, money, most in wants]
    capacities = [[kind.count * amount for amount in kind.capacity] for kind in kinds]
    market = share_machines(wishes, capacities)
    assert market.units == pytest.approx(tasks, rel=1e-6)
    # Prices are of all there is of a resource on a kind. A task costs most where it may not run: so the cheapest.
    cost = min(
        sum(part * price / total for part, price, total in zip(need, prices, capacity, strict=True))
        for prices, capacity in zip(market.prices, capacities, strict=True)
    )
    spent, all_money = own * cost, sum(map(sum, market.prices))
    return spent >= all_money * weight / sum(money for _, money, _ in wants) * (1 - 1e-6)


def test_entitlements_by_resource_are_refused_on_unlike_machines() -> None:
    users = [a_user("a", 1, 1), a_user("b", 1, 2)]

    with pytest.raises(
        SolverError, match=r"^nodes: expected one pool, .* where entitlements differ by resource"
    ):
        solve(machines(users, Nodes(1, (4, 1)), Nodes(1, (1, 4)), entitled=((0.5, 0.2), (0.5, 0.8))))


def test_who_is_entitled_to_nothing_has_what_nobody_else_can_use_on_machines_too() -> None:
    users = [a_user("a", 1, 0), a_user("b", 0, 1), a_user("c", 1, 1)]
    problem = machines(users, Nodes(1, (4, 1)), Nodes(1, (1, 4)), entitled=((0.5, 0.5), (0, 0), (0.5, 0.5)))

    a, b, c = solve(problem).tasks

    assert a == pytest.approx(3)
    assert c == pytest.approx(2)
    assert b == pytest.approx(3)
