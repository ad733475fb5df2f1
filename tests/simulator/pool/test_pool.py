"""Cases small enough to be followed with a pencil."""

from dataclasses import replace
from random import Random

import pytest

from fairlead_master.allocation.api import AllocationError, AllocationSettings
from fairlead_proto.ids import FrameworkId, Role
from fairlead_proto.tasks import Constraint, Operator
from fairlead_sim.engine import Engine
from fairlead_sim.node import Node
from fairlead_sim.pool.framework import ActiveJob, PoolFramework
from fairlead_sim.pool.hosts import Slowdown
from fairlead_sim.pool.simulation import Pool, PoolOptions
from fairlead_sim.workload import Job
from tests.laboratory.workloads.workload_builders import GIB
from tests.simulator.diary import Diary, a_job, some_tasks

NODE = (9000, 18 * GIB, 0, 0)


def simulate(
    jobs: list[Job],
    nodes: list[Node] | None = None,
    policy: str = "drf",
    options: PoolOptions | None = None,
) -> Diary:
    diary = Diary()
    pool = Pool(
        Engine(Random(1), now_ms=0),
        nodes or [Node(name="n", total=NODE)],
        diary,
        settings=AllocationSettings(policy=policy),
        options=options,
    )
    pool.feed(jobs)
    pool.run()
    pool.allocator.check()
    return diary


def test_the_example_of_drf_is_served_three_and_two_tasks_at_once() -> None:
    """Paper 001, section 4.1: A's tasks <1 CPU, 4 GB>, B's <3 CPU, 1 GB>."""
    diary = simulate([a_job("A", some_tasks(5, 1, 4)), a_job("B", some_tasks(5, 3, 1))])

    assert [line for line in diary.of("starts") if line.startswith("0 ")] == [
        "0 A starts 3 on n",
        "0 B starts 2 on n",
    ]
    assert diary.lines[-1] == "3000 B is done"


def test_jobs_of_one_millisecond_have_all_arrived_before_anything_is_decided() -> None:
    diary = simulate([a_job(name, some_tasks(9, 1, 1), submit_ms=5) for name in "ABC"])

    assert [line for line in diary.of("starts") if line.startswith("5 ")] == [
        f"5 {name} starts 3 on n" for name in "ABC"
    ]


def test_jobs_arrive_as_long_after_they_are_fed_as_after_their_origin() -> None:
    """A trace that begins at second 5 begins at once, and one fed to a pool under way begins then."""
    diary = Diary()
    pool = Pool(
        Engine(Random(1), now_ms=0), [Node(name="n", total=NODE)], diary, settings=AllocationSettings()
    )
    jobs = [a_job(name, some_tasks(1, 1, 1), submit_ms=at) for name, at in (("A", 5_000), ("B", 5_700))]

    pool.feed(jobs, origin_ms=5_000)
    pool.run()
    pool.feed([a_job("C", some_tasks(1, 1, 1), submit_ms=90)], origin_ms=40)
    pool.run()

    # B ends at 1700, when C is fed.
    assert diary.of("arrives") == ["0 A arrives", "700 B arrives", "1750 C arrives"]


def test_a_stage_begins_when_the_one_before_is_over() -> None:
    diary = simulate([a_job("J", some_tasks(2, 1, 1, 500), some_tasks(1, 1, 1, 700, stage=3))])

    assert diary.lines == [
        "0 J arrives", "0 J starts 2 on n", "500 J ends 2", "500 J starts 1 on n", "1200 J ends 1", "1200 J is done",
    ]  # fmt: skip


def test_tasks_that_fit_no_node_are_refused_with_their_job_and_hold_up_nobody() -> None:
    diary = simulate(
        [a_job("big", some_tasks(1, 1, 1), some_tasks(1, 10, 1)), a_job("small", some_tasks(1, 9, 1))]
    )

    assert diary.lines == ["0 big is refused", "0 small arrives", "0 small starts 1 on n", "1000 small ends 1", "1000 small is done"]  # fmt: skip


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
    jobs = [a_job("a", some_tasks(2, 5, 1, is_gang=True)), a_job("b", some_tasks(2, 5, 1, is_gang=True))]
    nodes = [Node(name="n", total=NODE), Node(name="m", total=NODE)]

    diary = simulate(jobs, nodes, options=PoolOptions(gang_patience_ms=100))

    assert len([line for line in diary.lines if line.endswith("is done")]) == 2
    assert not [line for line in diary.of("starts") if line.startswith("0 ")], "both wait at first"


def test_slots_crowd_a_host_and_crowded_tasks_are_slow() -> None:
    """Two tasks of 9 GiB where 12 are: thrice the normal time at 1 / (1 + 4 x 0.5), until one is alone."""
    node = Node(name="n", total=(8000, 12 * GIB, 0, 0))
    jobs = [a_job("a", some_tasks(1, 1, 9, 1000)), a_job("b", some_tasks(1, 1, 9, 2000))]

    diary = simulate(jobs, [node], "slots:2", PoolOptions(slowdown=Slowdown(memory=4.0)))

    assert [line for line in diary.lines if line.endswith("is done")] == ["3000 a is done", "4000 b is done"]


def test_cpus_promised_twice_are_shared() -> None:
    node = Node(name="n", total=(4000, 12 * GIB, 0, 0))

    diary = simulate([a_job("a", some_tasks(2, 4, 1, 1000))], [node], "slots:2")

    assert diary.lines[-1] == "2000 a is done"


def test_a_host_that_was_said_to_have_more_than_it_has_is_slow_under_any_policy() -> None:
    """4 GiB wanted of 2 for a second of work: at 1 / (1 + 4 * 1) of the speed."""
    told, real = (4000, 64 * GIB, 0, 0), (4000, 2 * GIB, 0, 0)
    options = PoolOptions(slowdown=Slowdown(memory=4.0), real_total=lambda _: real)

    diary = simulate([a_job("a", some_tasks(2, 1, 2, 1000))], [Node(name="n", total=told)], options=options)

    assert diary.of("starts") == ["0 a starts 2 on n"]
    assert diary.lines[-1] == "5000 a is done"


def test_gpus_promised_twice_are_shared_by_those_who_use_them() -> None:
    """Two tasks of a GPU each where one is run at half speed; beside them one without is not slowed down."""
    node = Node(name="n", total=(8000, 12 * GIB, 0, 1000))
    with_gpu = replace(some_tasks(2, 1, 1, 1000), unit=(1000, GIB, 0, 1000))
    jobs = [a_job("a", with_gpu), a_job("b", some_tasks(1, 1, 1, 1500))]

    diary = simulate(jobs, [node], "slots:3")

    assert [line for line in diary.lines if line.endswith("is done")] == ["1500 b is done", "2000 a is done"]


@pytest.mark.parametrize("memory", [0.0, 1.0, 50.0])
def test_nothing_is_slow_that_is_not_promised_twice(memory: float) -> None:
    slowdown = Slowdown(memory=memory)

    assert slowdown.speed((4000, 12, 0, 0), (4000, 12, 0, 0)) == 1.0
    assert 0 < slowdown.speed((8000, 24, 0, 0), (4000, 12, 0, 0)) <= 0.5
    assert 0 < slowdown.speed((0, 24, 0, 0), (4000, 0, 0, 0)) <= 1


def test_frameworks_of_one_job_each_leave_when_it_is_done() -> None:
    jobs = [a_job(str(number), some_tasks(1, 9, 1), user="all", submit_ms=number) for number in range(5)]
    diary = Diary()
    pool = Pool(
        Engine(Random(1), now_ms=0),
        [Node(name="n", total=NODE)],
        diary,
        options=PoolOptions(role_of=lambda job: job.job_id, forgets_idle=True),
    )

    pool.feed(jobs)
    pool.run()

    assert [line for line in diary.lines if line.endswith("is done")] == [
        f"{(number + 1) * 1000} {number} is done" for number in range(5)
    ]
    assert not pool.unfinished
    assert not pool.allocator.role_report()


@pytest.mark.parametrize("policy", ["drf", "pf", "asset", "slots:2", "fifo", "max-min:cpus", "bbf", "baa"])
def test_whatever_the_policy_all_work_is_done_and_a_run_repeats_itself(policy: str) -> None:
    dice = Random(7)
    jobs = [
        a_job(
            f"j{number}",
            some_tasks(dice.randint(1, 9), dice.randint(1, 4), dice.randint(1, 9), dice.randint(1, 3000)),
            some_tasks(dice.randint(1, 3), 1, 1, 100, stage=1),
            user=f"u{dice.randint(0, 4)}",
            submit_ms=number * 100,
        )
        for number in range(60)
    ]
    nodes = [Node(name=f"n{number}", total=NODE) for number in range(3)]

    diary = simulate(jobs, nodes, policy)

    assert len([line for line in diary.lines if line.endswith("is done")]) == len(jobs)
    assert simulate(jobs, nodes, policy).lines == diary.lines


def test_a_cluster_without_nodes_or_with_two_of_one_name_is_refused() -> None:
    with pytest.raises(AllocationError, match="nodes: expected at least one, got none"):
        Pool(Engine(Random(1)), [], Diary())
    with pytest.raises(AllocationError, match="nodes: expected each name once, got 'n' twice"):
        Pool(Engine(Random(1)), [Node(name="n", total=NODE)] * 2, Diary())


def test_what_is_over_is_forgotten() -> None:
    """A trace of millions of tasks, each with a demand of its own, is simulated in bounded memory."""
    framework = PoolFramework(FrameworkId("f"), "f", Role("f"))

    for cpus in range(1, 200):
        job = a_job(f"j{cpus}", some_tasks(2, cpus, 1), some_tasks(3, cpus, 1, is_gang=True))
        for bundle in job.bundles:
            framework.enqueue(ActiveJob(job, job.stages()), bundle)
        for wanted in framework.demand():
            assert [units for _, units in framework.take(wanted.class_id, wanted.units)] == [wanted.units]

    assert not framework.demand()
    kept = [value for value in vars(framework).values() if isinstance(value, dict)]
    assert kept == [{}, {}]
