"""Proportional and alpha-fairness as live policies: orders served, prices, and what decisions and events cost, counted."""

import math
import random
from collections import Counter
from collections.abc import Mapping

import pytest

from fairlead_master.allocation.api import AllocationError, Policy
from fairlead_master.allocation.policies import names
from fairlead_master.allocation.policies.alpha import QUIET_MS, AlphaFairness
from fairlead_master.allocation.weights import Weight
from fairlead_master.solvers import registry
from fairlead_master.solvers.problem import Problem, User
from fairlead_proto.resources import Vector, add, scale
from tests.allocation.builders import add_agent, add_framework, an_allocator, served, want
from tests.allocation.test_policies import CountedKey

RESOURCES = ("cpus", "mem", "disk", "gpus")
ENDLESS = 10**6


def a_policy(name: str, capacity: Vector) -> AlphaFairness:
    policy = names.parse(name, RESOURCES)
    assert isinstance(policy, AlphaFairness)
    policy.set_capacity(capacity, 0)
    return policy


def present(policy: Policy, name: str, unit: Vector, *, wants: int = ENDLESS, weight: float = 1.0) -> None:
    """An account that holds nothing and wants so many units."""
    policy.add(name, Weight(weight), scale(unit, 0), 0)
    wish(policy, name, unit, wants)
    policy.activate(name)


def wish(policy: Policy, name: str, unit: Vector, units: int) -> None:
    policy.set_wish_units(name, units)
    policy.set_wish(name, scale(unit, units))


def serve(policy: Policy, units: Mapping[str, Vector], capacity: Vector) -> Counter[str]:
    """Serve who is first until its unit does not fit."""
    held: Counter[str] = Counter()
    used: Vector = (0,) * len(capacity)
    while (name := policy.first()) is not None:
        after = add(used, units[name])
        if any(amount > total for amount, total in zip(after, capacity, strict=True)):
            break
        used = after
        policy.charge(name, units[name], 1)
        held[name] += 1
    return held


# --- what is served ------------------------------------------------------------------------------------------------


def test_prices_and_shares_of_remark_1_of_the_paper() -> None:
    """Paper 000, remark 1: C = (1, 1), demands (1, 1/10) and (1/2, 1), one job each: phi = (10/19, 18/19)."""
    units = {"1": (100, 10), "2": (50, 100)}
    policy = a_policy("pf", (19_000, 19_000))
    for name, unit in units.items():
        present(policy, name, unit)

    held = serve(policy, units, (19_000, 19_000))

    assert held == {"1": 100, "2": 180}
    assert policy.prices().error < 1e-3


@pytest.mark.parametrize("name", ["pf", "alpha:0.5", "alpha:2", "alpha:8", "alpha-tasks:3"])
def test_an_account_of_weight_two_gets_what_two_of_weight_one_get(name: str) -> None:
    capacity, unit, others = (12_000, 9_000), (10, 3), (1, 8)
    whole = a_policy(name, capacity)
    present(whole, "heavy", unit, weight=2.0)
    present(whole, "other", others)
    split = a_policy(name, capacity)
    for half in ("left", "right"):
        present(split, half, unit)
    present(split, "other", others)

    held = serve(whole, {"heavy": unit, "other": others}, capacity)
    halves = serve(split, {"left": unit, "right": unit, "other": others}, capacity)

    assert abs(held["heavy"] - halves["left"] - halves["right"]) <= 1
    assert abs(held["other"] - halves["other"]) <= 1


@pytest.mark.parametrize(
    "name", ["pf", "alpha:0.25", "alpha:2", "alpha:8", "alpha-tasks:0.5", "alpha-tasks:2"]
)
def test_whole_tasks_by_weight_are_within_one_task_of_the_exact_fluid_optimum(name: str) -> None:
    capacity = (90_000, 180_000)
    units, weights = {"a": (10, 40), "b": (30, 10), "c": (20, 20)}, {"a": 3.0, "b": 1.0, "c": 0.5}
    policy = a_policy(name, capacity)
    for account, unit in units.items():
        present(policy, account, unit, weight=weights[account])
    users = tuple(User(n, units[n], (weights[n], weights[n])) for n in units)

    held = serve(policy, units, capacity)
    exact = registry.solve(Problem(RESOURCES[:2], capacity, users), name).tasks

    # Theorem 7 of paper 001 for any such keys: within one task of who has the fewest, in parts of the optimum.
    one_task = 1 / min(exact)
    assert [held[account] for account in units] == pytest.approx(exact, rel=one_task + 1e-3)


def test_a_whole_class_of_small_wishes_leaves_the_rest_to_others() -> None:
    """Two of five roles want a tenth together; three share the rest evenly, whoever asked first."""
    allocator = an_allocator(policy="pf")
    add_agent(allocator, "host", (10_000, 1_000, 0, 0))
    for name, units in (("small 1", 5), ("a", ENDLESS), ("small 2", 5), ("b", ENDLESS), ("c", ENDLESS)):
        add_framework(allocator, name, (100, 1, 0, 0), units)

    allocator.cycle(0)

    assert Counter(served(allocator)) == {"small 1": 5, "small 2": 5, "a": 30, "b": 30, "c": 30}
    prices = allocator.prices()
    assert prices is not None
    # One of those who want more pays 1 for 30 of 100 parts of the CPUs; nobody pays for memory.
    assert prices.of_whole[:2] == pytest.approx((1 / 0.3, 0), rel=1e-3)


def test_who_was_sated_competes_again_when_it_wants_more() -> None:
    allocator = an_allocator(policy="pf")
    add_agent(allocator, "host", (1_000, 0, 0, 0))
    small = add_framework(allocator, "small", (10, 0, 0, 0), 10)
    add_framework(allocator, "large", (10, 0, 0, 0), 40)
    allocator.cycle(0)
    assert Counter(served(allocator)) == {"small": 10, "large": 40}
    add_framework(allocator, "late", (10, 0, 0, 0), ENDLESS)

    want(allocator, small, (10, 0, 0, 0), ENDLESS)
    allocator.cycle(1)

    # A third each is fair, and large has more already: of the 50 that are left, small has 10 before it begins.
    assert Counter(served(allocator)) == {"small": 20, "late": 30}


def test_alpha_is_refused_outside_of_its_range() -> None:
    for argument in ("0.01", "9", "nan", "x", ""):
        with pytest.raises(AllocationError, match=r"expected alpha:A with A from 0\.1 to 8, got 'alpha:"):
            names.parse(f"alpha:{argument}", RESOURCES)


# --- how exact prices are ------------------------------------------------------------------------------------------


def test_prices_are_near_under_churn_and_exact_after_a_quiet_second() -> None:
    rng = random.Random(3)
    policy = a_policy("pf", (1_000_000, 800_000, 900_000, 700_000))
    alive: list[str] = []
    for event in range(400):
        policy.advance(event)
        if event < 60 or rng.random() < 0.5:
            unit = (*(rng.choice((0, 1, 3, 10, 30)) for _ in range(3)), rng.choice((1, 20)))
            present(
                policy, f"u{event}", unit, wants=rng.choice((50, ENDLESS)), weight=rng.choice((0.5, 1.0, 4.0))
            )
            alive.append(f"u{event}")
        else:
            policy.remove(alive.pop(rng.randrange(len(alive))))
        policy.first()
        assert policy.prices().error <= 1e-3
    before = policy.prices().error

    policy.advance(399 + QUIET_MS)

    assert before > 1e-9
    assert policy.prices().error <= 1e-9


def test_tasks_that_come_and_go_neither_move_prices_nor_keep_them_from_becoming_exact() -> None:
    policy = a_policy("pf", (10_000, 10_000))
    units = {"a": (10, 1), "b": (3, 7), "c": (1, 9)}
    for name, unit in units.items():
        present(policy, name, unit)
        policy.first()
    scanned = policy.market.tracker.classes_scanned

    for now_ms in range(2 * QUIET_MS):
        policy.advance(now_ms)
        first = policy.first()
        assert first is not None
        policy.charge(first, units[first], 1)
        # A task ends and is not wanted any more: one unit less in all.
        policy.release(first, units[first], 1)
        wish(policy, first, units[first], ENDLESS - now_ms)

    assert policy.prices().error <= 1e-9
    polishing = 6 * len(units)
    assert policy.market.tracker.classes_scanned <= scanned + polishing


def test_prices_nobody_looked_at_are_made_exact_as_well() -> None:
    policy = a_policy("pf", (1_000, 1_000))
    present(policy, "a", (10, 1))
    present(policy, "b", (1, 10))

    policy.advance(QUIET_MS)

    assert policy.market.tracker.cold_starts == 1
    assert policy.prices().of_whole == pytest.approx((1, 1))


def test_a_question_between_two_facts_changes_no_answer_after_them() -> None:
    def history(*, asks: bool) -> tuple[float, ...]:
        policy = a_policy("pf", (1_000, 900))
        for number in range(30):
            present(policy, f"u{number}", (1 + number % 7, 1 + number % 5))
            if asks:
                policy.key(f"u{number}")
                policy.prices()
            if number % 4 == 0:
                policy.first()
        policy.first()
        return policy.prices().of_whole

    assert history(asks=True) == history(asks=False)


# --- what it costs -------------------------------------------------------------------------------------------------


class CountedWeight(float):
    """A weight whose accounts have keys that count how often they are compared."""

    def __rtruediv__(self, multiples: float) -> CountedKey:
        return CountedKey(multiples / float(self))


@pytest.mark.parametrize(("accounts", "classes"), [(10, 2), (1_000, 10), (10_000, 100)])
def test_a_decision_compares_at_most_two_log_n_and_a_few_keys(accounts: int, classes: int) -> None:
    """The served head sinks in the heap of its direction, which plays its way up the tournament; no price is looked at."""
    rng = random.Random(accounts)
    kinds = [(rng.randint(1, 40), rng.randint(1, 40), rng.randint(1, 40), 1 + n) for n in range(classes)]
    policy = a_policy("pf", (100 * accounts,) * 4)
    units = {}
    for number in range(accounts):
        name, unit = f"u{number}", kinds[number % classes]
        units[name] = unit
        present(policy, name, unit, weight=CountedWeight(rng.choice((0.5, 1.0, 2.0))))
        policy.charge(name, unit, rng.randint(1, 3))
    policy.first()
    scanned, matches = policy.market.tracker.classes_scanned, policy.tournament.matches

    most = 0
    for _ in range(500):
        CountedKey.count()
        first = policy.first()
        assert first is not None
        policy.charge(first, units[first], 1)
        played, matches = policy.tournament.matches - matches, policy.tournament.matches
        most = max(most, CountedKey.count() + played)

    assert 0 < most <= 2 * math.log2(accounts) + math.log2(classes) + 4
    assert policy.market.tracker.classes_scanned == scanned


@pytest.mark.parametrize("population", [1_000, 10_000])
def test_an_event_looks_at_each_class_about_once_whatever_the_population(population: int) -> None:
    rng = random.Random(population)
    kinds = [tuple(rng.randint(1, 40) for _ in range(4)) for _ in range(100)]
    policy = a_policy("pf", (100 * population,) * 4)
    for number in range(population):
        present(policy, f"u{number}", kinds[number % 100])
    policy.first()
    tracker = policy.market.tracker
    before = tracker.classes_scanned, tracker.relinearisations

    for event in range(500):
        if event % 2:
            policy.remove(f"v{event - 1}")
        else:
            present(policy, f"v{event}", rng.choice(kinds))
        policy.first()

    assert tracker.cold_starts == 1
    assert tracker.classes_scanned - before[0] <= 1.1 * 500 * 100
    assert tracker.relinearisations - before[1] <= 20_000 / population


def test_events_between_two_decisions_are_answered_by_one_look_at_prices() -> None:
    policy = a_policy("pf", (100_000, 100_000))
    for number in range(1_000):
        present(policy, f"u{number}", (1 + number % 9, 1 + number % 11))
    policy.first()
    before = policy.market.tracker.classes_scanned

    for number in range(200):
        present(policy, f"v{number}", (1 + number % 9, 1 + number % 11))
    policy.first()

    assert policy.market.tracker.classes_scanned - before <= 3 * 99


def test_what_the_tracker_does_is_as_much_as_the_change_is_large() -> None:
    """One of a thousand: the model. One in ten: its sums are made again. Ten times as many: solved from cold."""
    policy = a_policy("pf", (1_000_000, 1_000_000))
    tracker = policy.market.tracker
    for number in range(1_000):
        present(policy, f"u{number}", (10, 1) if number % 2 else (1, 10))
    policy.first()
    done = [(tracker.relinearisations, tracker.cold_starts)]

    for number, count in enumerate((1, 100, 10_000)):
        for newcomer in range(count):
            present(policy, f"n{number} {newcomer}", (10, 1))
        policy.first()
        assert policy.prices().error <= 1e-3
        done.append((tracker.relinearisations, tracker.cold_starts))

    (_, start), model, linearised, cold = done
    assert start == model[1] == linearised[1] == 1
    assert model[0] == done[0][0] < linearised[0]
    assert cold[1] == 2


def test_a_resource_that_was_free_and_becomes_scarce_is_found_from_cold() -> None:
    """At the old prices its newcomer pays nothing: no model knows how much it takes."""
    policy = a_policy("pf", (10_000, 10_000))
    present(policy, "a", (10, 0))
    policy.first()
    assert policy.prices().of_whole == pytest.approx((1, 0))

    present(policy, "b", (0, 10))
    policy.first()

    assert policy.prices().of_whole == pytest.approx((1, 1))
    assert policy.market.tracker.cold_starts == 2


def test_what_is_held_in_other_proportions_than_wished_for_counts_at_its_price() -> None:
    policy = a_policy("pf", (1_000, 1_000))
    present(policy, "a", (10, 0))
    present(policy, "b", (0, 10))
    present(policy, "c", (10, 0))
    policy.charge("a", (0, 400), 1)
    policy.charge("b", (0, 250), 1)
    policy.charge("c", (300, 0), 1)

    order = sorted("abc", key=policy.key)

    # Two want CPUs, one wants memory: the whole costs 2 and 1.
    assert [policy.key(name) for name in "abc"] == [
        pytest.approx(0.4),
        pytest.approx(0.25),
        pytest.approx(0.6),
    ]
    assert order == ["b", "a", "c"]
    assert policy.first() == "b"


def test_frameworks_of_a_role_are_ranked_at_the_prices_of_the_whole_cluster() -> None:
    """What the two want together would fit on an empty cluster, so that nothing would have a price among them alone.

    But CPUs are scarce and memory is not, so that tasks of equal CPUs cost the same.
    """
    allocator = an_allocator(policy="pf")
    add_agent(allocator, "host", (1_000, 10_000, 0, 0))
    add_framework(allocator, "others", (10, 0, 0, 0), ENDLESS)
    add_framework(allocator, "much memory", (10, 90, 0, 0), 40, role="eng")
    add_framework(allocator, "no memory", (10, 0, 0, 0), 40, role="eng")

    allocator.cycle(0)

    assert Counter(served(allocator)) == {"others": 50, "much memory": 25, "no memory": 25}
    allocator.check()


def test_levels_below_take_over_prices_when_they_move() -> None:
    above, below = a_policy("pf", (1_000, 1_000)), a_policy("pf", (1_000, 1_000))
    below.follow(above)
    present(above, "role", (10, 1))
    present(below, "cpus", (10, 0))
    present(below, "mem", (0, 10))
    below.charge("cpus", (10, 0), 1)
    below.charge("mem", (0, 10), 2)
    assert (above.first(), below.first()) == ("role", "mem")

    present(above, "a hundred others", (0, 10), weight=100.0)

    assert below.key("cpus") < below.key("mem")
    assert (above.first(), below.first()) == ("role", "cpus")
    assert below.prices() == above.prices()
