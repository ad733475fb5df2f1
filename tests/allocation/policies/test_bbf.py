"""Bottleneck-based fairness, live: what "On-line fair allocations ..." (Zeldes and Feitelson) says of it.

Its experiments are rebuilt in spirit: tasks on a host in place of quanta on a device.
"""

import pytest

from fairlead_master.allocation.api import AllocationError
from fairlead_master.allocation.policies import bbf, names
from fairlead_master.allocation.policies.bbf import BottleneckFairness
from fairlead_master.allocation.policies.sliding_window import Meter
from fairlead_master.allocation.weights import Weight
from fairlead_proto.ids import FrameworkId
from fairlead_proto.resources import ResourceKinds, Vector
from tests.allocation.builders import add_agent, add_framework, an_allocator, cpus_and_mem, want
from tests.allocation.timeline import Timeline

CPU: Vector = (1, 0, 0, 0)
NET: Vector = (0, 1, 0, 0)
DISK: Vector = (0, 0, 1, 0)
HOST: Vector = (60, 60, 60, 0)


LENGTHS_MS = [(100, 0.0), (500, 0.5), (3_000, 0.0), (3_000, 0.5), (20_000, 0.5)]
"""Of tasks, far below the window and far above it, and whether they end together."""


def on(place: int, consumed: dict[str, list[float]]) -> dict[str, float]:
    return {name: shares[place] for name, shares in consumed.items()}


@pytest.mark.parametrize(("length_ms", "jitter"), LENGTHS_MS)
def test_who_comes_later_shares_by_entitlement_at_once(length_ms: int, jitter: float) -> None:
    """Figure 2: 33 % alone gets everything, and 33 to 67 when the other comes, whether or not tasks end together."""
    timeline = Timeline("bbf", HOST, jitter=jitter)
    timeline.join("red", CPU, weight=33, length_ms=length_ms)
    assert on(0, timeline.run_until(5_000)) == {"red": pytest.approx(1.0)}

    timeline.join("blue", CPU, weight=67, length_ms=length_ms)
    timeline.run_until(5_000 + 5 * length_ms)

    shares = on(0, timeline.run_until(15_000 + 25 * length_ms))
    assert shares == pytest.approx({"red": 0.33, "blue": 0.67}, abs=0.02)

    timeline.suspend("blue")
    timeline.run_until(20_000 + 30 * length_ms)
    assert on(0, timeline.run_until(25_000 + 30 * length_ms))["red"] == pytest.approx(1.0)


def test_four_clients_share_by_their_entitlements() -> None:
    """Figure 3: 10, 20, 30 and 40 %; when one is done, the others share what it had."""
    timeline = Timeline("bbf", HOST, jitter=0.3)
    for weight in (10, 20, 30, 40):
        timeline.join(f"{weight}", CPU, weight=weight)
    timeline.run_until(5_000)
    shares = on(0, timeline.run_until(25_000))
    assert shares == pytest.approx({"10": 0.1, "20": 0.2, "30": 0.3, "40": 0.4}, abs=0.02)

    timeline.suspend("40")
    timeline.run_until(30_000)
    shares = on(0, timeline.run_until(50_000))
    assert shares == pytest.approx({"10": 1 / 6, "20": 2 / 6, "30": 3 / 6, "40": 0.0}, abs=0.02)


def test_few_slots_are_taken_in_turns() -> None:
    """One CPU, as in the paper: shares come about over time, where a policy without memory would always pick the same."""
    timeline = Timeline("bbf", CPU)
    for weight in (10, 20, 30, 40):
        timeline.join(f"{weight}", CPU, weight=weight, length_ms=100)
    timeline.run_until(10_000)

    shares = on(0, timeline.run_until(40_000))

    assert shares == pytest.approx({"10": 0.1, "20": 0.2, "30": 0.3, "40": 0.4}, abs=0.02)


def test_a_resource_nobody_else_wants_is_got_in_full() -> None:
    """Figure 4: 70 % for the network gets nearly all of it; 20 and 10 % for the disk get two thirds and one third."""
    timeline = Timeline("bbf", HOST, jitter=0.3)
    timeline.join("blue", NET, weight=70)
    timeline.join("green", DISK, weight=20)
    timeline.join("red", DISK, weight=10)
    timeline.run_until(5_000)

    consumed = timeline.run_until(25_000)

    assert consumed["blue"][1] == pytest.approx(1.0, abs=0.01)
    assert consumed["green"][2] == pytest.approx(0.67, abs=0.02)
    assert consumed["red"][2] == pytest.approx(0.33, abs=0.02)


def test_who_uses_two_bottlenecks_is_not_held_back_for_it() -> None:
    """Figure 8, first plot: equal entitlements, equal shares on each bottleneck, twice the sum for who uses both."""
    timeline = Timeline("bbf", HOST, jitter=0.3)
    timeline.join("red", CPU)
    timeline.join("blue", DISK)
    timeline.join("green", (1, 0, 1, 0))
    timeline.run_until(5_000)

    consumed = timeline.run_until(25_000)

    assert on(0, consumed) == pytest.approx({"red": 0.5, "blue": 0.0, "green": 0.5}, abs=0.02)
    assert on(2, consumed) == pytest.approx({"red": 0.0, "blue": 0.5, "green": 0.5}, abs=0.02)


@pytest.mark.parametrize(("length_ms", "jitter"), LENGTHS_MS)
def test_a_newcomer_makes_a_resource_the_bottleneck(length_ms: int, jitter: float) -> None:
    """Figure 12: 33 and 67 use a third of the CPU each; then 100 comes: 17, 33 and 50 %, and half the disk is idle."""
    timeline = Timeline("bbf", HOST, jitter=jitter)
    timeline.join("red", (1, 0, 2, 0), weight=33, length_ms=length_ms, parallel_max=20)
    timeline.join("green", (1, 2, 0, 0), weight=67, length_ms=length_ms, parallel_max=20)
    before = timeline.run_until(5_000)
    assert on(0, before) == pytest.approx({"red": 1 / 3, "green": 1 / 3}, abs=0.01)

    timeline.join("blue", CPU, weight=100, length_ms=length_ms)
    timeline.run_until(10_000 + 10 * length_ms)
    after = timeline.run_until(30_000 + 40 * length_ms)

    assert on(0, after) == pytest.approx({"red": 0.17, "green": 0.33, "blue": 0.5}, abs=0.02)
    assert after["red"][2] == pytest.approx(1 / 3, abs=0.03)


def test_a_shift_from_one_bottleneck_to_another_is_followed() -> None:
    """Figure 13: entitlements 50, 25, 12.5 and 12.5; the CPU is the bottleneck until three of them turn to the network."""
    timeline = Timeline("bbf", (300, 300, 300, 0), jitter=0.3)
    weights = {"first": 50.0, "second": 25.0, "third": 12.5, "fourth": 12.5}
    for name, weight in weights.items():
        timeline.join(name, (8, 1, 1, 0) if name == "first" else (5, 0, 5, 0), weight=weight)
    timeline.run_until(10_000)
    shares = on(0, timeline.run_until(40_000))
    assert {name: 100 * share for name, share in shares.items()} == pytest.approx(weights, abs=8)

    for name in ("second", "third", "fourth"):
        timeline.reshape(name, (1, 7, 1, 0))
    timeline.run_until(50_000)
    consumed = timeline.run_until(80_000)

    network = on(1, consumed)
    assert sum(network.values()) > 0.9
    # The first needs little of its half of the network. What it leaves is shared in equal parts: all gaps are equal.
    surplus = {name: network[name] - weights[name] / 100 for name in ("second", "third", "fourth")}
    assert surplus["second"] > 0.1
    assert surplus == pytest.approx(dict.fromkeys(surplus, surplus["second"]), abs=0.02)
    assert consumed["first"][0] > 0.5


def test_complementary_clients_do_not_starve_one_that_wants_both() -> None:
    """Figure 14: the third client gets its entitlement on a bottleneck, whatever Ghodsi et al. feared."""
    timeline = Timeline("bbf", (600, 600, 0, 0), jitter=0.3)
    timeline.join("1", (100, 14, 0, 0), length_ms=500)
    timeline.join("2", (17, 100, 0, 0), length_ms=500)
    timeline.join("3", (50, 50, 0, 0), length_ms=500)
    timeline.run_until(5_000)

    consumed = timeline.run_until(45_000)

    assert max(consumed["3"]) > 0.9 / 3


def test_a_light_client_gets_all_it_wants() -> None:
    timeline = Timeline("bbf", HOST, jitter=0.3)
    timeline.join("greedy", CPU, weight=1)
    timeline.join("light", CPU, weight=1, parallel_max=9)
    timeline.run_until(5_000)

    assert on(0, timeline.run_until(25_000)) == pytest.approx({"greedy": 0.85, "light": 0.15}, abs=0.01)


def a_policy(capacity: Vector = (10, 10)) -> BottleneckFairness:
    policy = BottleneckFairness()
    policy.set_capacity(capacity, 0)
    return policy


def present(policy: BottleneckFairness, *accounts: str) -> None:
    for account in accounts:
        policy.add(account, Weight(), (0, 0), 0)
        policy.set_wish(account, (1, 1))
        policy.activate(account)


def test_without_a_bottleneck_the_sum_over_resources_counts() -> None:
    """Section 3: "we revert to asset fairness"; here 0.5 - (0.4 + 0.4) against 0.5 - 0.5."""
    policy = a_policy()
    present(policy, "both", "one")

    policy.charge("both", (4, 4), 1)
    policy.charge("one", (4, 1), 1)

    # The window is three seconds long, of which none has passed; then come one second and the time units are held, 6 s.
    assert policy.key("both") == pytest.approx((0.8 - 0.5) * 7 / 10)
    assert policy.key("one") == pytest.approx(0.0)
    assert policy.bottlenecks == ()


def test_the_priority_is_the_smallest_gap_over_the_bottlenecks() -> None:
    policy = a_policy()
    present(policy, "both", "one")
    policy.charge("both", (4, 4), 1)
    policy.charge("one", (6, 1), 1)

    assert policy.key("both") == pytest.approx((0.4 - 0.5) * 7 / 10)
    assert list(policy.bottlenecks) == [0]
    policy.charge("both", (0, 5), 1)
    assert policy.key("both") == pytest.approx((0.9 - 0.5) * 7 / 10)
    assert list(policy.bottlenecks) == [0, 1]
    assert policy.first() == "one"


def test_in_the_steady_state_the_key_is_held_minus_entitled() -> None:
    policy = a_policy()
    present(policy, "a", "b")
    policy.charge("a", (7, 0), 1)
    policy.charge("b", (3, 0), 1)

    policy.advance(10_000)

    assert policy.key("a") == pytest.approx(0.2)
    assert policy.key("b") == pytest.approx(-0.2)


def test_a_short_pause_costs_no_entitlement_and_a_long_one_starts_anew() -> None:
    """Figures 5 and 6: within the grace period of 1 s the allocation grows on; after 4 s one shares again from zero."""
    lags = {}
    for pause_ms in (500, 4_000):
        policy = a_policy()
        present(policy, "user", "background")
        policy.charge("background", (10, 0), 1)
        policy.advance(3_000)
        policy.set_wish("user", (0, 0))
        policy.advance(3_000 + pause_ms)
        policy.set_wish("user", (1, 0))
        lags[pause_ms] = policy.key("user") - policy.key("background")

    # Of 3.5 s that passed and 7 s to come each is entitled to half.
    assert lags[500] == pytest.approx(-2 * 0.5)
    # Then windows of 10 s, of which the past 3 s were the background's alone.
    assert lags[4_000] == pytest.approx(-2 * 0.5 * 7 / 10)


def test_who_left_is_not_entitled_and_the_others_are_to_more() -> None:
    """Section 3: e_i' = e_i / sum over the active; three seconds later only the new entitlements count."""
    policy = a_policy()
    present(policy, "a", "b", "c")
    policy.charge("a", (10, 0), 1)
    policy.advance(10_000)
    assert policy.key("b") == pytest.approx(-1 / 3)

    policy.set_wish("c", (0, 0))
    policy.advance(20_000)

    assert policy.key("b") == pytest.approx(-1 / 2)


def test_an_entitlement_may_differ_by_resource() -> None:
    policy = a_policy()
    policy.add("a", Weight(1.0, {0: 3.0}), (0, 0), 0)
    policy.add("b", Weight(), (0, 0), 0)
    policy.set_wish("a", (1, 1))
    policy.set_wish("b", (1, 1))
    policy.charge("a", (10, 0), 1)

    policy.advance(10_000)

    assert policy.key("a") == pytest.approx(1.0 - 0.75)
    assert policy.key("b") == pytest.approx(0.0 - 0.25)
    assert policy.bottlenecks == (0,)


def test_measured_use_counts_in_place_of_what_was_charged() -> None:
    """Section 3: the algorithm knows no demands, and "just tracks the cumulative usage"."""
    policy = a_policy()
    present(policy, "idle", "busy")
    policy.charge("idle", (5, 0), 1)
    policy.charge("busy", (5, 0), 1)
    policy.observe("idle", (-4, 0))

    policy.advance(10_000)
    assert policy.key("idle") == pytest.approx(0.1 - 0.5)
    assert policy.bottlenecks == (), "six tenths are used, though everything is held"
    policy.charge("idle", (2, 0), 1)
    policy.advance(20_000)
    assert policy.key("idle") == pytest.approx(0.3 - 0.5), "what is not measured yet counts as held"

    policy.observe("idle", (0, 0))
    policy.release("idle", (5, 0), 1)
    policy.advance(30_000)
    assert policy.key("idle") == pytest.approx(0.2 - 0.5)


def test_an_end_is_not_taken_for_a_burst_of_use() -> None:
    """Of a task that is over the measurement is taken back first; the books are looked at when both are told."""
    policy = a_policy()
    present(policy, "idle", "busy")
    policy.charge("idle", (5, 0), 1)
    policy.charge("busy", (5, 0), 1)
    policy.observe("idle", (-4, 0))
    policy.advance(10_000)
    policy.first()
    before = policy.rekeyed

    policy.observe("idle", (0, 0))
    policy.release("idle", (5, 0), 1)
    policy.first()

    assert (policy.bottlenecks, policy.rekeyed) == ((), before)


@pytest.mark.parametrize(("per_cent", "bottlenecks"), [(80, (0,)), (81, ())])
def test_the_threshold_says_when_a_resource_is_a_bottleneck(per_cent: int, bottlenecks: Vector) -> None:
    """Section 4.1: "more than 90% of the time in the last 3 seconds (these are all configurable parameters)"."""
    policy = bbf.parse(f"{per_cent}%")
    policy.set_capacity((10, 10), 0)
    present(policy, "a")
    policy.charge("a", (8, 1), 1)

    policy.advance(10_000)
    policy.first()

    assert policy.bottlenecks == bottlenecks


def test_a_bottleneck_is_one_until_the_interval_ends() -> None:
    """So that keys are not made anew with each task that ends and the next that begins."""
    policy = a_policy()
    present(policy, "a", "b")
    policy.charge("a", (10, 1), 1)
    assert policy.find_bottlenecks() == (0,)

    policy.advance(100)
    policy.release("a", (10, 1), 1)
    policy.advance(999)
    present(policy, "c")  # A look at all keys, in the middle of the interval.
    assert policy.find_bottlenecks() == (0,)

    policy.advance(1_000)
    assert policy.find_bottlenecks() == ()


def test_frameworks_of_a_role_are_ranked_by_the_clusters_bottlenecks() -> None:
    """Alone they saturate nothing; the CPU is the bottleneck, so memory does not count among them either."""
    allocator = an_allocator(policy="bbf")
    host = add_agent(allocator, "host", cpus_and_mem(100, 1000))
    for name, unit, role in (
        ("other", cpus_and_mem(1, 1), "other"),
        ("cpus", cpus_and_mem(1, 1), "role"),
        ("both", cpus_and_mem(1, 9), "role"),
    ):
        add_framework(allocator, name, unit, units=0, role=role)
        held = {"other": 60, "cpus": 20, "both": 19}[name]
        for _ in range(held):
            allocator.charge(FrameworkId(name), host, unit)
    for name, unit in (("cpus", cpus_and_mem(1, 1)), ("both", cpus_and_mem(1, 9))):
        want(allocator, FrameworkId(name), unit, 1)

    (grant,) = allocator.cycle(0)

    assert grant.framework_id == "both"


def test_between_intervals_only_accounts_that_change_are_rekeyed() -> None:
    """Growth: a decision costs no look at others, whatever their number; an interval costs one look at each."""
    for count in (10, 1_000):
        policy = a_policy((10_000_000, 10_000_000))
        present(policy, *(f"a{number}" for number in range(count)))
        policy.advance(1_000)
        policy.first()
        before = policy.rekeyed

        for _ in range(2_000):
            first = policy.first()
            assert first is not None
            policy.charge(first, (1, 1), 1)
            policy.release(first, (1, 1), 1)
        assert policy.rekeyed == before

        policy.advance(2_000)
        policy.first()
        assert policy.rekeyed == before + count


def test_accounts_that_come_and_go_cost_a_look_at_all_only_now_and_then() -> None:
    policy = a_policy((10_000, 10_000))
    present(policy, *(f"a{number}" for number in range(1_000)))
    policy.first()
    before = policy.rekeyed

    for number in range(1_000):
        present(policy, f"b{number}")
        policy.first()

    # Twice per newcomer itself; all others each time there is an eighth more of them: six times.
    assert policy.rekeyed - before < 2 * 1_000 + 6 * 2_000


def test_accounts_without_a_recent_past_cost_nothing() -> None:
    policy = a_policy()
    present(policy, *(f"a{number}" for number in range(100)))
    for number in range(100):
        policy.set_wish(f"a{number}", (0, 0))
    policy.advance(10_000)
    policy.first()
    before = policy.rekeyed

    policy.advance(20_000)
    policy.first()

    assert policy.rekeyed == before
    assert policy.key("a7") == 0.0


def test_time_may_leap() -> None:
    """A master that slept for a day looks at as many intervals as a window has."""
    policy = a_policy()
    present(policy, "a", "b")
    policy.charge("a", (10, 0), 1)

    policy.advance(86_400_000)

    assert policy.key("b") == pytest.approx(-0.5)


def test_a_meter_counts_what_falls_within_its_window() -> None:
    meter = Meter((2,), 0, intervals=3)
    meter.mark(1_000)
    meter.set_rate((5,), 1_500)
    meter.mark(2_000)
    assert meter.within(2_000) == (2 * 1_500 + 5 * 500,)
    meter.mark(3_000)
    meter.mark(4_000)

    assert meter.within(4_500) == (2 * 500 + 5 * 3_000,)
    assert meter.span_ms(4_500) == 3_500


@pytest.mark.parametrize("name", ["bbf", "bbf:60", "bbf:95%", "bbf:60,50%", "bbf:1,100%", "bbf:60,57%"])
def test_names_with_and_without_options_are_known(name: str) -> None:
    policy = names.parse(name, ResourceKinds().names)

    assert policy.name == name
    assert policy.interval_ms == 1_000
    assert policy.follows_use


def test_a_long_window_is_looked_at_less_often() -> None:
    assert names.parse("bbf:3600", ResourceKinds().names).interval_ms == 60_000


@pytest.mark.parametrize(
    "name",
    [
        "bbf:",
        "bbf:0",
        "bbf:3601",
        "bbf:x",
        "bbf:3,",
        "bbf:,90%",
        "bbf:3,x",
        "bbf:-1",
        "bbf:0%",
        "bbf:101%",
        "bbf:3,90",
    ],
)
def test_other_options_are_refused(name: str) -> None:
    with pytest.raises(AllocationError, match=r"policy: expected bbf:SECONDS .* got '" + name):
        names.parse(name, ResourceKinds().names)
