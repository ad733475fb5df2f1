"""Both levels simulate one cluster: what they tell of the same work differs by the delays of one of them, and by nothing else."""

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_master.allocation.api import AllocationSettings
from fairlead_sim.engine import Engine
from fairlead_sim.node import Node
from fairlead_sim.pool.simulation import Pool, PoolOptions
from fairlead_sim.virtual_cluster.delays import INSTANT, Delays
from fairlead_sim.virtual_cluster.trace_cluster import TraceCluster
from fairlead_sim.workload import Bundle, Job
from tests.laboratory.workloads.workload_builders import GIB
from tests.simulator.diary import Diary, a_job, some_tasks

POLICIES = ("drf", "pf", "bbf", "asset", "max-min:cpus", "slots:3", "fifo")


def told_by_pool(
    jobs: Sequence[Job], nodes: Sequence[Node], policy: str, options: PoolOptions | None = None
) -> Diary:
    diary = Diary()
    pool = Pool(
        Engine(Random(1), now_ms=0),
        nodes,
        diary,
        settings=AllocationSettings(policy=policy),
        options=options,
    )
    pool.feed(jobs)
    pool.run()
    assert not pool.unfinished
    return diary


def told_by_cluster(
    jobs: Sequence[Job],
    nodes: Sequence[Node],
    policy: str,
    delays: Delays,
    options: PoolOptions | None = None,
) -> Diary:
    diary = Diary()
    cluster = TraceCluster(
        Engine(Random(1), now_ms=0),
        nodes,
        diary,
        settings=AllocationSettings(policy=policy),
        options=options,
        delays=delays,
    )
    cluster.feed(jobs)
    cluster.run()
    assert not cluster.unfinished
    cluster.core.allocator.check()
    return diary


def some_nodes(count: int, *, cpus_milli: int = 9000) -> list[Node]:
    return [Node(name=f"n{number}", total=(cpus_milli, 18 * GIB, 0, 0)) for number in range(count)]


ROOMY = some_nodes(60, cpus_milli=12_000)
"""Places for all tasks of a workload at once; a host that is full has what its tasks want, under ``slots:3`` as well."""


def some_bundles(stage: int) -> st.SearchStrategy[Bundle]:
    return st.builds(
        some_tasks,
        st.integers(1, 6),
        st.integers(1, 4),
        st.integers(1, 6),
        st.integers(1, 3000),
        stage=st.just(stage),
    )


@st.composite
def workloads(draw: st.DrawFn, *, stages_max: int = 1, users: int = 4) -> list[Job]:
    arrivals = draw(st.lists(st.integers(0, 4000), min_size=1, max_size=12))
    jobs = []
    for number, submit_ms in enumerate(sorted(arrivals)):
        stages = draw(st.integers(1, stages_max))
        bundles = [
            bundle
            for stage in range(stages)
            for bundle in draw(st.lists(some_bundles(stage), min_size=1, max_size=2))
        ]
        user = f"u{draw(st.integers(0, users - 1))}"
        jobs.append(a_job(f"j{number}", *bundles, user=user, submit_ms=submit_ms))
    return jobs


def times(diary: Diary, event: str) -> dict[str, int]:
    """When it happened, of each job the last time."""
    return {line.split()[1]: int(line.split()[0]) for line in diary.of(event)}


def tasks_by_time(diary: Diary) -> Counter[str]:
    """How many tasks of which job began or ended when, wherever that was."""
    counted: Counter[str] = Counter()
    for time, job, event, units, *_ in map(str.split, diary.of("starts") + diary.of("ends")):
        counted[f"{time} {job} {event}"] += int(units)
    return counted


@given(workloads(), st.integers(1, 3), st.sampled_from(POLICIES))
@settings(max_examples=25)
def test_without_delays_all_tasks_start_at_the_same_times_on_the_same_hosts(
    jobs: list[Job], count: int, policy: str
) -> None:
    nodes = some_nodes(count)

    pool = told_by_pool(jobs, nodes, policy)
    cluster = told_by_cluster(jobs, nodes, policy, INSTANT)

    assert sorted(cluster.lines) == sorted(pool.lines)


@given(workloads(stages_max=3), st.sampled_from(POLICIES))
@settings(max_examples=10)
def test_without_delays_stages_begin_at_the_same_times_where_there_is_room(
    jobs: list[Job], policy: str
) -> None:
    """Where there is none, a host that a last task of a stage leaves is given to others before its framework can ask for
    the next: by the time it has heard of the end, the master has decided. So the hosts of a later stage may differ, which
    changes no time unless a host has less than its tasks want."""
    pool = told_by_pool(jobs, ROOMY, policy)
    cluster = told_by_cluster(jobs, ROOMY, policy, INSTANT)

    assert tasks_by_time(cluster) == tasks_by_time(pool)
    assert times(cluster, "is done") == times(pool, "is done")


def next_to_a_large_task(*, submit_ms: int) -> list[Job]:
    """A job whose second stage is wanted at 10 ms, another that arrives, and a large task next to which one of them runs."""
    return [
        a_job("large", some_tasks(1, 8, 1, 100), user="ann"),
        a_job("staged", some_tasks(1, 1, 1, 10), some_tasks(1, 4, 1, 10, stage=1), user="bob"),
        a_job("late", some_tasks(1, 1, 1, 10), user="ann", submit_ms=submit_ms),
    ]


def test_order_within_a_millisecond_decides_who_crowds_a_host() -> None:
    """The pool serves Bob's stage first, as he has nothing. In the cluster Ann's job has its host before Bob's framework
    has heard that his first stage is over. All start at the same times, but Bob's 4 CPUs crowd the host of Ann's 8."""
    jobs = next_to_a_large_task(submit_ms=10)

    pool = told_by_pool(jobs, some_nodes(2), "slots:2")
    cluster = told_by_cluster(jobs, some_nodes(2), "slots:2", INSTANT)

    assert sorted(pool.of("starts")) == [
        "0 large starts 1 on n1",
        "0 staged starts 1 on n0",
        "10 late starts 1 on n1",
        "10 staged starts 1 on n0",
    ]
    assert sorted(cluster.of("starts")) == [
        "0 large starts 1 on n1",
        "0 staged starts 1 on n0",
        "10 late starts 1 on n0",
        "10 staged starts 1 on n1",
    ]
    assert times(pool, "is done") == {"late": 20, "staged": 20, "large": 100}
    # 12 CPUs are wanted of 9: the 10 ms of Bob's task take 14, and the large one loses 4.
    assert times(cluster, "is done") == {"late": 20, "staged": 24, "large": 104}


@pytest.mark.parametrize("submit_ms", [9, 11])
def test_what_is_wanted_a_millisecond_apart_gets_the_same_hosts(submit_ms: int) -> None:
    jobs = next_to_a_large_task(submit_ms=submit_ms)

    pool = told_by_pool(jobs, some_nodes(2), "slots:2")
    cluster = told_by_cluster(jobs, some_nodes(2), "slots:2", INSTANT)

    assert sorted(cluster.lines) == sorted(pool.lines)


@given(workloads(stages_max=3))
@settings(max_examples=10)
def test_where_there_is_room_a_stage_takes_longer_by_no_more_than_the_delays(jobs: list[Job]) -> None:
    delays = Delays()

    in_pool = times(told_by_pool(jobs, some_nodes(60), "drf"), "is done")
    in_cluster = times(told_by_cluster(jobs, some_nodes(60), "drf", delays), "is done")

    for job in jobs:
        later_ms = in_cluster[job.job_id] - in_pool[job.job_id]
        # A message each for the wish, the offer, its acceptance, the launch; the end, and word of it.
        least_ms = 6 * delays.network_ms + delays.start_ms
        assert least_ms * len(job.stages()) <= later_ms <= delays.most_ms() * len(job.stages())


@pytest.mark.parametrize("policy", ["drf", "fifo"])
def test_tasks_that_wait_for_each_other_start_in_the_same_order(policy: str) -> None:
    """One after the other on one host, each waits for the delays of all before it."""
    dice = Random(5)
    jobs = [
        a_job(f"j{number}", some_tasks(1, 9, 1, dice.randint(1000, 3000)), user=f"u{dice.randint(0, 3)}")
        for number in range(30)
    ]

    pool = told_by_pool(jobs, some_nodes(1), policy)
    cluster = told_by_cluster(jobs, some_nodes(1), policy, Delays())

    assert list(times(cluster, "starts")) == list(times(pool, "starts"))
    for number, (job, at_ms) in enumerate(times(pool, "is done").items(), start=1):
        assert 0 < times(cluster, "is done")[job] - at_ms <= number * Delays().most_ms()


@pytest.mark.parametrize("policy", POLICIES)
def test_under_contention_jobs_take_as_long_but_for_the_delays(policy: str) -> None:
    """A millisecond's delay changes who is next, and with that everything after; over many jobs most of it evens out."""
    dice = Random(11)
    jobs = [
        a_job(
            f"j{number}",
            some_tasks(dice.randint(1, 9), dice.randint(1, 3), dice.randint(1, 6), dice.randint(1000, 9000)),
            some_tasks(dice.randint(1, 3), 1, 1, 2000, stage=1),
            user=f"u{dice.randint(0, 4)}",
            submit_ms=number * 1500,
        )
        for number in range(100)
    ]

    def mean_ms(diary: Diary) -> float:
        return sum(times(diary, "is done")[job.job_id] - job.submit_ms for job in jobs) / len(jobs)

    in_pool = mean_ms(told_by_pool(jobs, some_nodes(3), policy))
    in_cluster = mean_ms(told_by_cluster(jobs, some_nodes(3), policy, Delays()))

    assert in_cluster == pytest.approx(in_pool, rel=0.1)


def test_a_run_repeats_itself() -> None:
    jobs = [
        a_job(f"j{n}", some_tasks(5, 2, 3, 777 + n), user=f"u{n % 3}", submit_ms=n * 90) for n in range(20)
    ]

    first = told_by_cluster(jobs, some_nodes(2), "drf", Delays())

    assert told_by_cluster(jobs, some_nodes(2), "drf", Delays()).lines == first.lines


@pytest.mark.parametrize("is_reserved", [True, False])
def test_both_levels_keep_a_host_for_what_has_waited_too_long(*, is_reserved: bool) -> None:
    """Small tasks of another user that come all the time would keep a large one from its host for as long as they come."""
    small = [a_job(f"s{n}", some_tasks(1, 3, 1, 900), user="small", submit_ms=300 * n) for n in range(200)]
    jobs = sorted(
        [*small, a_job("large", some_tasks(1, 9, 1), submit_ms=1000)], key=lambda job: job.submit_ms
    )
    after_ms = 10_000 if is_reserved else 10**9
    allocation = AllocationSettings(reservation_after_ms=after_ms)
    began = []
    for level in (Pool, TraceCluster):
        diary = Diary()
        simulation = level(Engine(Random(1), now_ms=0), some_nodes(1), diary, settings=allocation)
        simulation.feed(jobs)
        simulation.run()
        began.append(times(diary, "starts")["large"])

    if is_reserved:
        assert all(11_000 <= at_ms <= 13_000 for at_ms in began)
    else:
        assert all(at_ms >= 60_000 for at_ms in began)
