"""What the thorough level does with jobs, followed with a pencil; its delays are zero unless a test is about them."""

from random import Random

import pytest

from fairlead_master.allocation.api import AllocationError, AllocationSettings
from fairlead_proto.tasks import Constraint, Operator
from fairlead_sim.engine import Engine
from fairlead_sim.node import Node
from fairlead_sim.pool.hosts import Slowdown
from fairlead_sim.pool.simulation import PoolOptions
from fairlead_sim.virtual_cluster.delays import INSTANT, Delays
from fairlead_sim.virtual_cluster.trace_cluster import TraceCluster
from fairlead_sim.workload import Job
from tests.laboratory.workloads.workload_builders import GIB
from tests.simulator.diary import Diary, a_job, some_tasks

NODE = (9000, 18 * GIB, 0, 0)


def a_cluster(
    nodes: list[Node] | None = None,
    policy: str = "drf",
    options: PoolOptions | None = None,
    delays: Delays = INSTANT,
) -> tuple[TraceCluster, Diary]:
    diary = Diary()
    cluster = TraceCluster(
        Engine(Random(1), now_ms=0),
        nodes or [Node(name="n", total=NODE)],
        diary,
        settings=AllocationSettings(policy=policy),
        options=options,
        delays=delays,
    )
    return cluster, diary


def simulate(
    jobs: list[Job],
    nodes: list[Node] | None = None,
    policy: str = "drf",
    options: PoolOptions | None = None,
    delays: Delays = INSTANT,
) -> Diary:
    cluster, diary = a_cluster(nodes, policy, options, delays)
    cluster.feed(jobs)
    cluster.run()
    assert not cluster.unfinished
    return diary


def test_a_task_runs_after_the_delays_on_its_way_and_is_known_to_be_over_after_those_of_its_end() -> None:
    delays = Delays(network_ms=10, start_ms=5, allocation_window_ms=0, busy_window_ms=0, gather_ms=0)

    diary = simulate([a_job("J", some_tasks(1, 1, 1, 1000))], delays=delays)

    # Demand, offer, acceptance and launch are on their way for 10 ms each; the end is, twice.
    assert diary.lines == [
        "0 J arrives", "45 J starts 1 on n", "1045 J ends 1", "1065 J is done",
    ]  # fmt: skip


def test_a_stage_begins_when_the_one_before_is_over() -> None:
    diary = simulate([a_job("J", some_tasks(2, 1, 1, 500), some_tasks(1, 1, 1, 700, stage=3))])

    assert diary.lines == [
        "0 J arrives", "0 J starts 2 on n", "500 J ends 2", "500 J starts 1 on n", "1200 J ends 1", "1200 J is done",
    ]  # fmt: skip


def test_tasks_that_fit_no_node_are_refused_with_their_job() -> None:
    diary = simulate(
        [a_job("big", some_tasks(1, 1, 1), some_tasks(1, 10, 1)), a_job("small", some_tasks(1, 9, 1))]
    )

    assert diary.lines[0] == "0 big is refused"
    assert diary.lines[-1] == "1000 small is done"


def test_constraints_choose_the_node() -> None:
    nodes = [Node(name="a", total=NODE), Node(name="b", total=NODE, attributes={"model": "T4"})]
    wanted = (Constraint("model", Operator.EQUALS, ("T4", "P100")),)

    diary = simulate([a_job("J", some_tasks(2, 9, 1, constraints=wanted))], nodes)

    assert diary.of("starts") == ["0 J starts 1 on b", "1000 J starts 1 on b"]


def test_a_gang_starts_when_it_has_all_its_places() -> None:
    jobs = [a_job("first", some_tasks(1, 6, 1, 400)), a_job("gang", some_tasks(3, 3, 1, is_gang=True))]

    diary = simulate(jobs)

    assert diary.of("gang")[1:] == [
        "400 gang starts 1 on n", "400 gang starts 2 on n", "1400 gang ends 1", "1400 gang ends 2", "1400 gang is done",
    ]  # fmt: skip


def test_two_gangs_that_hold_half_of_the_cluster_each_do_not_wait_for_ever() -> None:
    """Nor does one that waits for longer than its offers are leased: it gives them back in time, and gets others."""
    jobs = [
        a_job("a", some_tasks(2, 5, 1, 20_000, is_gang=True)),
        a_job("b", some_tasks(2, 5, 1, is_gang=True)),
    ]
    nodes = [Node(name="n", total=NODE), Node(name="m", total=NODE)]

    diary = simulate(jobs, nodes)

    assert len([line for line in diary.lines if line.endswith("is done")]) == 2


def test_slots_crowd_a_host_and_crowded_tasks_are_slow() -> None:
    """Two tasks of 9 GiB where 12 are: thrice the normal time at 1 / (1 + 4 x 0.5), until one is alone."""
    node = Node(name="n", total=(8000, 12 * GIB, 0, 0))
    jobs = [a_job("a", some_tasks(1, 1, 9, 1000)), a_job("b", some_tasks(1, 1, 9, 2000))]

    diary = simulate(jobs, [node], "slots:2", PoolOptions(slowdown=Slowdown(memory=4.0)))

    assert [line for line in diary.lines if line.endswith("is done")] == ["3000 a is done", "4000 b is done"]


def test_frameworks_of_one_job_each_leave_when_it_is_done() -> None:
    jobs = [a_job(str(number), some_tasks(1, 9, 1), user="all", submit_ms=number) for number in range(5)]
    options = PoolOptions(role_of=lambda job: job.job_id, forgets_idle=True)
    cluster, diary = a_cluster(options=options)

    cluster.feed([*jobs, a_job("later", some_tasks(1, 1, 1), submit_ms=60_000)])
    cluster.run()

    assert times_done(diary) == [1000, 2000, 3000, 4000, 5000, 61_000]
    assert len(cluster.core.frameworks) <= 1, "the last one's farewell may be under way"


def times_done(diary: Diary) -> list[int]:
    return [int(line.split()[0]) for line in diary.lines if line.endswith("is done")]


def test_all_agents_stay_registered_through_a_quiet_day() -> None:
    cluster, diary = a_cluster(delays=Delays())

    cluster.feed([a_job("long", some_tasks(1, 1, 1, 24 * 3600 * 1000)), a_job("next", some_tasks(1, 9, 1))])
    cluster.run()

    assert len(times_done(diary)) == 2
    assert all(agent.is_connected for agent in cluster.core.agents.values())


def test_a_cluster_without_nodes_or_with_two_of_one_name_is_refused() -> None:
    with pytest.raises(AllocationError, match="nodes: expected at least one, got none"):
        TraceCluster(Engine(Random(1)), [], Diary())
    with pytest.raises(AllocationError, match="nodes: expected each name once, got 'n' twice"):
        TraceCluster(Engine(Random(1)), [Node(name="n", total=NODE)] * 2, Diary())
