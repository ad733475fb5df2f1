"""The verifier of justified complaints, on allocations by hand: section 2 of "On-line fair allocations ..." and around it."""

from math import inf, nan

import pytest

from fairlead_master.solvers.complaints import Standing, entitlements, verify
from fairlead_master.solvers.problem import Amounts, Problem, SolverError, User


def a_user(name: str, *demand: float, weight: float = 1.0, max_tasks: float = inf) -> User:
    return User(name, demand, (weight,) * len(demand), max_tasks)


def a_problem(
    *users: User, capacity: Amounts = (1.0, 1.0), entitled: tuple[Amounts, ...] | None = None
) -> Problem:
    return Problem(("cpu", "net", "disk")[: len(capacity)], capacity, users, entitlements=entitled)


def test_a_client_is_cut_back_to_its_entitlement_on_the_bottleneck_only() -> None:
    """Section 1: entitled to 30 %, it would use 70 % of the network and 10 % of the CPU."""
    client = a_user("client", 0.1, 0.7, weight=3, max_tasks=1)
    other = a_user("other", 0.1, 1.0, weight=7)
    problem = a_problem(client, other)

    network_is_the_bottleneck = verify(problem, [3 / 7, 0.7])
    assert network_is_the_bottleneck.bottlenecks == ("net",)
    assert network_is_the_bottleneck.is_fair

    too_little = verify(problem, [2 / 7, 0.8])
    assert [complaint.user for complaint in too_little.complaints] == ["client"]
    assert too_little.complaints[0].standings[0].resource == "net"
    assert too_little.complaints[0].standings[0].has_share == pytest.approx(0.2)
    assert too_little.complaints[0].standings[0].entitled_share == pytest.approx(0.3)


def test_a_client_that_needs_little_of_the_bottleneck_gets_all_it_wants() -> None:
    """Section 1: if the CPU turns out to be the bottleneck, the same client can get all it wants."""
    client = a_user("client", 0.1, 0.7, weight=3, max_tasks=1)
    other = a_user("other", 1.0, 0.1, weight=7)

    assert verify(a_problem(client, other), [1, 0.9]).is_fair


def test_who_has_its_entitlement_on_one_bottleneck_does_not_complain_about_another() -> None:
    both = a_user("both", 0.5, 1.0)
    rest = a_user("rest", 0.75, 0.5)
    verdict = verify(a_problem(both, rest), [0.5, 1.0])

    assert verdict.bottlenecks == ("cpu", "net")
    assert verdict.is_fair


def test_who_could_be_given_more_at_nobodys_cost_complains_and_is_improvable() -> None:
    """The fruit salad of section 2: cherries ran out, apples did not, and someone was refused apples."""
    verdict = verify(a_problem(a_user("cherries", 1, 0), a_user("apples", 0, 1)), [1, 0.5])

    assert verdict.improvable == ("apples",)
    assert [complaint.user for complaint in verdict.complaints] == ["apples"]
    assert verdict.complaints[0].standings == ()
    assert "nothing it needs is used up" in str(verdict.complaints[0])


def test_asset_and_dominant_resource_fairness_leave_justified_complaints() -> None:
    """Section 2: both may keep resources from a client that could have been given at nobody's cost.

    Two users need the CPU, one of them with half as much of the network; a third needs the network alone. Where dominant
    shares, or sums of shares, are just made equal, part of the network stays idle and the third is refused it.
    """
    problem = a_problem(a_user("1", 1, 0), a_user("2", 1, 0.5), a_user("3", 0, 1))

    equal_dominant_shares = verify(problem, [0.5, 0.5, 0.5])
    assert [complaint.user for complaint in equal_dominant_shares.complaints] == ["3"]
    equal_assets = verify(problem, [0.6, 0.4, 0.6])
    assert [complaint.user for complaint in equal_assets.complaints] == ["3"]
    assert verify(problem, [0.5, 0.5, 0.75]).is_fair


def test_water_filled_dominant_shares_still_leave_a_justified_complaint() -> None:
    """The example of the DRF paper, section 4.1: A has 33 % of the CPU, the only bottleneck, and is entitled to half."""
    problem = Problem(("cpu", "mem"), (9.0, 18.0), (a_user("A", 1, 4), a_user("B", 3, 1)))

    verdict = verify(problem, [3, 2])

    assert verdict.bottlenecks == ("cpu",)
    assert not verdict.improvable
    assert [complaint.user for complaint in verdict.complaints] == ["A"]
    assert verdict.complaints[0].standings == (Standing("cpu", 3 / 9, 0.5),)


def test_what_does_not_exist_is_not_fair() -> None:
    problem = a_problem(a_user("1", 1, 0), a_user("2", 0, 1, max_tasks=0.5))

    too_much = verify(problem, [1.1, 0.6])

    assert too_much.overdrawn == ("cpu",)
    assert too_much.overserved == ("2",)
    assert not too_much.is_feasible
    assert not too_much.is_fair


def test_whole_tasks_may_be_one_short() -> None:
    """Three CPUs, two equal users, one CPU a task: two and one is as even as it gets; three and none is not."""
    problem = a_problem(a_user("1", 1), a_user("2", 1), capacity=(3.0,))

    assert [c.user for c in verify(problem, [2, 1]).complaints] == ["2"]
    assert verify(problem, [2, 1], whole_tasks=True).is_fair
    assert [c.user for c in verify(problem, [3, 0], whole_tasks=True).complaints] == ["2"]


def test_in_whole_tasks_a_remainder_too_small_for_a_task_is_a_bottleneck() -> None:
    problem = a_problem(a_user("1", 2), a_user("2", 2), capacity=(9.0,))

    assert verify(problem, [2, 2], whole_tasks=True).is_fair
    assert verify(problem, [2, 2], whole_tasks=True).bottlenecks == ("cpu",)
    assert verify(problem, [2, 1], whole_tasks=True).improvable == ("1", "2")


def test_entitlements_follow_weights_resource_by_resource() -> None:
    """ "On-line fair allocations", section 3: e_i' = e_i / sum of e_i."""
    users = (User("1", (1, 1), (3, 1)), User("2", (1, 1), (1, 1)))

    assert entitlements(a_problem(*users)) == ((0.75, 0.5), (0.25, 0.5))


def test_entitlements_beyond_the_capacity_are_refused() -> None:
    problem = a_problem(a_user("1", 1), a_user("2", 1), capacity=(1.0,), entitled=((0.75,), (0.5,)))

    with pytest.raises(SolverError, match=r"at most 1 in all of each resource, got 1\.25 of cpu"):
        verify(problem, [0.5, 0.5])


@pytest.mark.parametrize("tasks", [[1.0], [1.0, nan], [1.0, -1.0], [inf, 1.0]])
def test_what_is_no_allocation_is_refused(tasks: list[float]) -> None:
    with pytest.raises(SolverError, match="expected"):
        verify(a_problem(a_user("1", 1), a_user("2", 1), capacity=(1.0,)), tasks)
