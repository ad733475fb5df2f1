"""Zeldes and Feitelson, "On-Line Fair Allocations Based on Bottlenecks and Global Priorities" (paper 004).

Its figures are runs of processes that take turns on resources. What the text says of them in numbers is a steady state,
which is an allocation of tasks: a task is a second in which the process uses its resources for the given times. Each is
judged by the verifier of justified complaints, and compared with the solver where only one is fair.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import pytest

from fairlead_master.solvers import registry
from fairlead_master.solvers.complaints import Verdict, verify
from fairlead_master.solvers.problem import Problem
from tests.papers.problems import Number, a_problem, tasks

F = Fraction


def processes(
    uses: Mapping[str, Sequence[Number]],
    entitled: Mapping[str, float],
    *,
    resources: Sequence[str],
    at_most: Mapping[str, Number] | None = None,
) -> Problem:
    """Resources of one second a second each; entitlements as weights, which the paper renormalises as e_i / sum of e_i."""
    ones = (1,) * len(resources)
    return a_problem(ones, uses, weights=entitled, max_tasks=at_most, resources=resources)


def judged(problem: Problem, given: Mapping[str, Number]) -> Verdict:
    return verify(problem, [float(given[user.name]) for user in problem.users])


@pytest.mark.parametrize(
    ("other", "expected", "bottleneck"), [((0, 1), F(3, 7), "network"), ((1, 0), F(1), "cpu")]
)
def test_section_1_entitled_to_30_percent(
    other: tuple[int, int], expected: Fraction, bottleneck: str
) -> None:
    """It would like 10 % of the CPU and 70 % of the network. If the network is the bottleneck it gets 30 % of that, 3/7 of
    what it wants; if the CPU is, all it wants.
    """
    problem = processes(
        {"client": (F(1, 10), F(7, 10)), "others": other},
        {"client": 30, "others": 70},
        resources=("cpu", "network"),
        at_most={"client": 1},
    )

    given = tasks(problem, "bbf")

    assert given["client"] == pytest.approx(float(expected), rel=1e-6)
    verdict = judged(problem, given)
    assert verdict.is_fair
    assert verdict.bottlenecks == (bottleneck,)
    network = {"network": 0.3, "cpu": 0.7}[bottleneck]
    assert problem.used([given["client"], 0])[1] == pytest.approx(network, rel=1e-6)


def test_section_2_resources_come_in_the_proportion_of_the_profile() -> None:
    """Twice as much disk as CPU: 30 % of the CPU goes with 60 % of the disk, 20 % of the disk with 10 % of the CPU."""
    problem = a_problem((1, 1), {"client": (1, 2)})

    assert problem.used([0.3]) == pytest.approx((0.3, 0.6))
    assert problem.used([0.1]) == pytest.approx((0.1, 0.2))


def test_section_2_dominant_resource_fairness_wastes_nothing_and_yet_leaves_complaints() -> None:
    """The paper says that under DRF resources may be kept from a client that could be given at nobody's cost.

    Not under DRF as Ghodsi et al. define it, which is Pareto-efficient: in the example of remark 2 of paper 000 the only
    bottleneck is resource 1, and nobody can be given more. But job 2 has 1/3 of it and has a justified complaint.
    """
    problem = a_problem((1, 1), {"1": (1, F(1, 3)), "2": (F(1, 2), 1)})

    verdict = judged(problem, tasks(problem, "drf"))

    assert verdict.improvable == ()
    assert verdict.bottlenecks == ("cpus",)
    assert [complaint.user for complaint in verdict.complaints] == ["2"]
    assert verdict.complaints[0].standings[0].has_share == pytest.approx(1 / 3)


def test_section_2_a_resource_that_one_client_uses_up_is_a_bottleneck() -> None:
    """Footnote 2: "in that case this client is fully utilizing the resource, so there is no more to allocate"."""
    problem = processes({"one": (1, 0), "other": (0, 1)}, {"one": 1, "other": 3}, resources=("cpu", "disk"))

    verdict = judged(problem, {"one": 1, "other": 1})

    assert verdict.is_fair
    assert verdict.bottlenecks == ("cpu", "disk")


@pytest.mark.parametrize("policy", ["bbf", "drf", "asset"])
def test_section_2_fruit_salad(policy: str) -> None:
    """ "Ten people like cherries, but only one each like apples, oranges, and bananas": under ``bbf`` these three "take
    everything that is there", and the ten share what ran out. So they do here under the other two, which fill progressively.
    """
    bowls = ("cherries", "apples", "oranges", "bananas")
    diners = [f"cherries {n}" for n in range(10)] + list(bowls[1:])
    tastes = {diner: tuple([int(diner.startswith(bowl)) for bowl in bowls]) for diner in diners}
    problem = a_problem((1, 1, 1, 1), tastes, resources=bowls)

    given = tasks(problem, policy)

    expected = {name: 0.1 if name.startswith("cherries") else 1.0 for name in tastes}
    assert given == pytest.approx(expected, rel=1e-6)
    assert judged(problem, expected).is_fair


def test_figure_4_processes_that_use_different_resources() -> None:
    """Blue (70 %) alone on the network, green (20 %) and red (10 %) on the disk: nearly 100 %, 67 % and 33 %."""
    problem = processes(
        {"blue": (1, 0), "green": (0, 1), "red": (0, 1)},
        {"blue": 70, "green": 20, "red": 10},
        resources=("network", "disk"),
    )

    expected = {"blue": F(1), "green": F(2, 3), "red": F(1, 3)}
    assert judged(problem, expected).is_fair
    assert tasks(problem, "bbf") == pytest.approx({n: float(x) for n, x in expected.items()}, rel=1e-6)


FIGURE_7 = {"red": (1, 0), "blue": (0, 1), "green": (1, 1)}
"""Red uses the CPU, blue the disk, green a second of each in turn: never more than half of the time of each."""


def figure_7(entitled: Mapping[str, float]) -> Problem:
    return processes(FIGURE_7, entitled, resources=("cpu", "disk"), at_most={"green": F(1, 2)})


def test_figure_7_red_and_blue_get_67_percent_green_33_of_each() -> None:
    """Relative entitlements 40 : 20 on each resource. Green makes 67 % in all, as fast as the others."""
    problem = figure_7({"red": 40, "blue": 40, "green": 20})

    expected = {"red": F(2, 3), "blue": F(2, 3), "green": F(1, 3)}
    assert judged(problem, expected).is_fair
    assert sum(problem.used([0, 0, 1 / 3])) == pytest.approx(2 / 3)


def test_figure_8_equal_priorities_double_greens_progress() -> None:
    """A third each: green gets the same as the other on each resource, half, and so twice their progress in all."""
    problem = figure_7(dict.fromkeys(FIGURE_7, 1))

    expected = {"red": F(1, 2), "blue": F(1, 2), "green": F(1, 2)}
    assert judged(problem, expected).is_fair
    assert sum(problem.used([0, 0, 0.5])) == 2 * sum(problem.used([0.5, 0, 0]))


def test_figure_8_half_of_the_priority_changes_nothing() -> None:
    """25, 25, 50: one would expect 1/3, 1/3, 2/3, four times the progress, but green cannot hold two resources at once.

    It leaves each of them idle half of the time, and the others pick it up: 1/2 each as with equal priorities.
    """
    problem = figure_7({"red": 25, "blue": 25, "green": 50})

    naive = {"red": F(1, 3), "blue": F(1, 3), "green": F(2, 3)}
    assert judged(problem, naive).overserved == ("green",)
    parallel = replace(
        problem, users=tuple([replace(user, max_tasks=float("inf")) for user in problem.users])
    )
    assert judged(parallel, naive).is_fair
    expected = {"red": 0.5, "blue": 0.5, "green": 0.5}
    assert judged(problem, expected).is_fair
    assert tasks(problem, "bbf") == pytest.approx(expected, rel=1e-6)


RING = ("r1", "r2", "r3", "r4")
PAIRS = {
    f"{pair}{which}": tuple([int(pair != place) for place in range(4)]) for pair in range(4) for which in "ab"
}
"""Figure 11: eight processes in pairs, each pair on three of four resources."""


def test_figure_11_all_equal_is_fair() -> None:
    """1/6 of the time each on three resources: every resource has six of them and is used up; entitlements are 1/8."""
    problem = processes(PAIRS, dict.fromkeys(PAIRS, 1), resources=RING)

    verdict = judged(problem, dict.fromkeys(PAIRS, F(1, 6)))

    assert verdict.is_fair
    assert verdict.bottlenecks == RING
    assert not judged(problem, dict.fromkeys(PAIRS, F(1, 9))).is_fair


@pytest.mark.parametrize("slow", list(combinations(range(4), 2)))
def test_figure_11_two_pairs_at_25_percent_and_two_at_37_5_is_fair(slow: tuple[int, int]) -> None:
    """Six such solutions: two bottlenecks, which are those the slow pairs do not both use; the others at 87.5 %.

    In pairs, because one process would have to be on three resources for 112.5 % of the time.
    """
    problem = processes(PAIRS, dict.fromkeys(PAIRS, 1), resources=RING)
    given = {name: F(1, 8) if int(name[0]) in slow else F(3, 16) for name in PAIRS}

    verdict = judged(problem, given)

    assert verdict.is_fair
    assert verdict.bottlenecks == tuple([RING[pair] for pair in slow])
    used = problem.used([float(given[user.name]) for user in problem.users])
    assert sorted(used) == [0.875, 0.875, 1, 1]
    assert 3 * F(3, 8) == F(1125, 1000)
    assert 3 * F(3, 16) < 1


FIGURE_12 = {
    "red": (F(1, 3), F(2, 3), F(0)),
    "green": (F(1, 3), F(0), F(2, 3)),
    "blue": (F(1), F(0), F(0)),
}
"""Shares of the time of a process that runs all the time: CPU, disk, network."""


def test_figure_12_before_the_third_process_nothing_is_a_bottleneck() -> None:
    """1 second of CPU to 2 of disk or network: all three resources are 67 % used, whatever the entitlements."""
    two = {name: FIGURE_12[name] for name in ("red", "green")}
    problem = processes(
        two, {"red": 33, "green": 67}, resources=("cpu", "disk", "network"), at_most={"red": 1, "green": 1}
    )

    given = tasks(problem, "bbf")

    assert given == {"red": 1, "green": 1}
    assert problem.used(list(given.values())) == pytest.approx((2 / 3,) * 3)
    assert judged(problem, given).bottlenecks == ()


def test_figure_12_a_bottleneck_appears() -> None:
    """Entitlements 33, 67, 100: of the CPU 16.5, 33.5 and 50 %, printed 17, 33 and 50. Green can use 1/3 at most, running
    all the time, which it did before; red falls to half of its CPU and of its disk.

    What green leaves of its entitlement, 1/6 of a percentage point, is between red and blue.
    """
    problem = processes(
        FIGURE_12,
        {"red": 33, "green": 67, "blue": 100},
        resources=("cpu", "disk", "network"),
        at_most=dict.fromkeys(FIGURE_12, 1),
    )
    expected = {"red": F(1, 2), "green": F(1), "blue": F(1, 2)}
    assert judged(problem, expected).is_fair
    assert judged(problem, expected).bottlenecks == ("cpu",)

    given = tasks(problem, "bbf")

    cpu = {name: count * float(FIGURE_12[name][0]) for name, count in given.items()}
    assert cpu == pytest.approx({"red": 0.17, "green": 0.33, "blue": 0.50}, abs=0.005)
    assert given["green"] == pytest.approx(1)
    assert problem.used([given["red"], 0, 0])[1] == pytest.approx((2 / 3) / 2, abs=0.005)


def test_figure_14_complementary_requirements_have_a_fair_allocation() -> None:
    """0.1 s of CPU with 0.014 of network, 0.017 of CPU with 0.1 of network, and equal parts of both; a third each.

    With 1/3 of both for the third, x_1 + 0.17 x_2 = 2/3 and 0.14 x_1 + x_2 = 2/3: x_1 = 0.567, x_2 = 0.587. Everybody has a
    third of a bottleneck, and CPU and network both are bottlenecks: the concerns the paper answers were unfounded.
    """
    uses = {"1": (F(1), F(14, 100)), "2": (F(17, 100), F(1)), "3": (F(1), F(1))}
    problem = processes(uses, dict.fromkeys(uses, 1), resources=("cpu", "network"))
    both = 1 - F(17, 100) * F(14, 100)
    expected = {"1": F(2, 3) * F(83, 100) / both, "2": F(2, 3) * F(86, 100) / both, "3": F(1, 3)}

    verdict = judged(problem, expected)

    assert verdict.is_fair
    assert verdict.bottlenecks == ("cpu", "network")
    assert (round(float(expected["1"]), 3), round(float(expected["2"]), 3)) == (0.567, 0.587)
    assert verify(problem, registry.solve(problem, "bbf").tasks).is_fair


@pytest.mark.parametrize(
    "problem",
    [
        figure_7({"red": 40, "blue": 40, "green": 20}),
        figure_7(dict.fromkeys(FIGURE_7, 1)),
        processes(PAIRS, dict.fromkeys(PAIRS, 1), resources=RING),
    ],
    ids=["figure 7", "figure 8", "figure 11"],
)
def test_where_several_allocations_are_fair_the_solver_finds_one(problem: Problem) -> None:
    assert verify(problem, registry.solve(problem, "bbf").tasks).is_fair
