import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_lab.workloads.scaling import (
    LEAST,
    ScalingCounts,
    ScalingRule,
    reference_node,
    scale_bundle,
    scale_demand,
    scale_duration_ms,
)
from fairlead_proto.resources import Vector, fits
from fairlead_sim.workload import WorkloadError
from tests.laboratory.workloads.workload_builders import GIB, a_bundle

AGENT = (4000, 8 * GIB, 0, 2000)
NODE = (80_000, 400 * GIB, 0, 8000)


def a_rule(
    reference: Vector = NODE,
    agents: tuple[Vector, ...] = (AGENT,),
    speedup: float = 1000,
    duration_floor_ms: int = 20,
) -> ScalingRule:
    return ScalingRule(
        reference=reference, agents=agents, speedup=speedup, duration_floor_ms=duration_floor_ms
    )


def test_share_of_a_node_becomes_the_same_share_of_an_agent() -> None:
    scaled = scale_demand((40_000, 100 * GIB, 0, 1000), a_rule())

    assert scaled.unit == (2000, 2 * GIB, 0, 250)
    assert not scaled.is_shrunken
    assert not scaled.is_raised


def test_demand_beyond_the_reference_takes_a_whole_agent_and_is_counted() -> None:
    scaled = scale_demand((160_000, 100 * GIB, 0, 0), a_rule())

    assert scaled.unit == (4000, 2 * GIB, 0, 0)
    assert scaled.is_shrunken


def test_tiny_demand_is_raised_to_the_least_amount_and_counted() -> None:
    scaled = scale_demand((1, 1, 0, 1), a_rule())

    assert scaled.unit == (LEAST[0], LEAST[1], 0, LEAST[3])
    assert scaled.is_raised


amounts = st.integers(0, 2**40)
vectors = st.tuples(amounts, amounts, amounts, amounts)


@given(unit=vectors, reference=vectors, agents=st.lists(vectors, min_size=1, max_size=3).map(tuple))
def test_scaled_demand_keeps_zeros_and_never_exceeds_the_largest_agent(
    unit: Vector, reference: Vector, agents: tuple[Vector, ...]
) -> None:
    rule = a_rule(reference, agents)

    scaled = scale_demand(unit, rule).unit

    for wanted, amount, target in zip(unit, scaled, rule.target, strict=True):
        assert (amount > 0) == (wanted > 0)
        assert amount <= target or not target


@given(unit=vectors, reference=st.tuples(*[st.integers(1, 2**40)] * 4), agent=vectors)
def test_untouched_demand_keeps_its_share_to_half_a_unit(
    unit: Vector, reference: Vector, agent: Vector
) -> None:
    scaled = scale_demand(unit, a_rule(reference, (agent,)))

    if scaled.is_shrunken or scaled.is_raised:
        return
    for wanted, whole, amount, target in zip(unit, reference, scaled.unit, agent, strict=True):
        assert abs(2 * (amount * whole - wanted * target)) <= whole or not wanted


@given(small=vectors, extra=vectors, reference=vectors, agent=vectors)
def test_larger_demand_never_scales_to_a_smaller_one(
    small: Vector, extra: Vector, reference: Vector, agent: Vector
) -> None:
    rule = a_rule(reference, (agent,))
    large = tuple(a + b for a, b in zip(small, extra, strict=True))

    assert fits(scale_demand(small, rule).unit, scale_demand(large, rule).unit)


def test_work_for_a_resource_the_cluster_lacks_is_left_out_and_counted() -> None:
    counts = ScalingCounts()
    rule = a_rule(agents=((4000, 8 * GIB, 0, 0),))

    bundle = scale_bundle(a_bundle("gpu-job", tasks=3, unit=(1000, GIB, 0, 500)), rule, counts)

    assert bundle is None
    assert (counts.left_out, counts.left_out_jobs, counts.tasks) == (3, ["gpu-job"], 0)


def test_work_that_needs_the_best_of_two_unlike_agents_fits_on_neither() -> None:
    counts = ScalingCounts()
    rule = a_rule(agents=((4000, GIB, 0, 0), (1000, 8 * GIB, 0, 0)))

    assert scale_bundle(a_bundle(unit=(*NODE[:2], 0, 0)), rule, counts) is None
    assert counts.left_out == 1


def test_counts_add_up_in_tasks() -> None:
    counts = ScalingCounts()
    rule = a_rule()

    kept = scale_bundle(a_bundle(tasks=3, unit=(160_000, GIB, 0, 0), duration_ms=5000), rule, counts)
    scale_bundle(a_bundle(tasks=1, unit=(1, GIB, 0, 0), duration_ms=100_000), rule, counts)

    assert kept is not None
    assert (counts.tasks, counts.shrunken, counts.raised, counts.gang_tasks) == (4, 3, 1, 3)
    assert (counts.floored, counts.floor_added_ms, counts.duration_ms) == (3, 45, 160)


def test_time_is_divided_by_the_speedup_and_kept_above_the_floor() -> None:
    rule = a_rule(speedup=100)

    assert scale_duration_ms(60_000, rule) == 600
    assert scale_duration_ms(100, rule) == 20
    assert scale_duration_ms(0, rule) == 20


def test_reference_is_the_largest_node_resource_by_resource() -> None:
    demands = [a_bundle(unit=(500, GIB, 0, 3)), a_bundle(unit=(100, 2 * GIB, 0, 0))]

    assert reference_node(demands) == (500, 2 * GIB, 0, 3)
    assert reference_node(demands, [(80_000, GIB, 0, 0), (16_000, 9 * GIB, 0, 0)]) == (80_000, 9 * GIB, 0, 3)


@pytest.mark.parametrize(
    ("speedup", "floor_ms", "expected"),
    [
        (0.0, 20, "speedup: expected a number above 0"),
        (float("nan"), 20, "speedup: expected a number above 0"),
        (1.0, -1, "duration floor: expected 0 ms or more, got -1"),
    ],
)
def test_rule_that_cannot_be_used_is_refused(speedup: float, floor_ms: int, expected: str) -> None:
    with pytest.raises(WorkloadError, match=expected):
        a_rule(speedup=speedup, duration_floor_ms=floor_ms)


def test_rule_without_agents_is_refused() -> None:
    with pytest.raises(WorkloadError, match="expected at least one agent"):
        a_rule(agents=())
