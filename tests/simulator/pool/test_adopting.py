"""A simulation may begin in the middle: tasks run already, some hosts take nothing new, roles have several frameworks."""

from random import Random

import pytest

from fairlead_master.allocation.api import AllocationSettings
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.tasks import Constraint, Operator
from fairlead_sim.engine import Engine
from fairlead_sim.node import Node
from fairlead_sim.pool.simulation import Pool, PoolOptions, Running
from fairlead_sim.workload import Bundle
from tests.laboratory.workloads.workload_builders import GIB
from tests.simulator.diary import Diary, a_job, some_tasks
from tests.simulator.pool.test_feasibility import Reasons
from tests.simulator.pool.test_pool import NODE


def a_pool(
    diary: Diary,
    *names: str,
    policy: str = "drf",
    options: PoolOptions | None = None,
    drained: tuple[str, ...] = (),
) -> Pool:
    return Pool(
        Engine(Random(1), now_ms=0),
        [Node(name=name, total=NODE) for name in names or ("n",)],
        diary,
        settings=AllocationSettings(policy=policy),
        options=options,
        drained=drained,
    )


def some_running(
    bundle: Bundle, units: int = 1, *, host: str = "n", ran_ms: int = 0, left_ms: int = 500
) -> Running:
    return Running(bundle=bundle, units=units, host=host, ran_ms=ran_ms, left_ms=left_ms)


@pytest.mark.parametrize("policy", ["drf", "pf", "bbf", "slots:1"])
def test_what_is_adopted_holds_its_place_until_its_time_is_over(policy: str) -> None:
    diary = Diary()
    pool = a_pool(diary, policy=policy)
    bundle = some_tasks(1, 6, 1)

    pool.adopt(a_job("old", bundle), [some_running(bundle, ran_ms=300, left_ms=700)])
    pool.feed([a_job("new", some_tasks(1, 6, 1))])
    pool.run()

    assert diary.lines == [
        "0 old arrives", "-300 old starts 1 on n", "0 new arrives", "700 old ends 1", "700 old is done",
        "700 new starts 1 on n", "1700 new ends 1", "1700 new is done",
    ]  # fmt: skip
    pool.allocator.check()


def test_what_is_adopted_counts_as_a_share() -> None:
    """Of two that want the same, the one that holds nothing yet is served until it holds as much."""
    diary = Diary()
    pool = a_pool(diary)
    held = some_tasks(1, 5, 1)

    pool.adopt(a_job("old", held, user="A"), [some_running(held)])
    pool.feed([a_job("a", some_tasks(3, 1, 1), user="A"), a_job("b", some_tasks(9, 1, 1), user="B")])
    pool.run()

    assert [line for line in diary.of("starts") if line.startswith("0 ")][1:] == ["0 b starts 4 on n"]


def test_a_job_adopted_on_several_hosts_is_done_with_its_last_task() -> None:
    diary = Diary()
    pool = a_pool(diary, "m", "n")
    bundle = some_tasks(3, 1, 1)

    pool.adopt(
        a_job("J", bundle),
        [some_running(bundle, 2, host="m", left_ms=100), some_running(bundle, host="n", left_ms=200)],
    )
    assert pool.unfinished == 1
    pool.run()

    assert diary.lines[-3:] == ["100 J ends 2", "200 J ends 1", "200 J is done"]
    assert pool.unfinished == 0


def test_a_host_may_hold_more_than_it_has_to_begin_with() -> None:
    """As a live agent may that came back smaller: nothing is started there until it fits again."""
    diary = Diary()
    pool = a_pool(diary)
    bundle = some_tasks(3, 5, 1)

    pool.adopt(a_job("old", bundle), [some_running(bundle, left_ms=left_ms) for left_ms in (100, 200, 300)])
    pool.feed([a_job("new", some_tasks(1, 5, 1))])
    pool.run()

    assert diary.of("new")[1] == "300 new starts 1 on n"
    pool.allocator.check()


def test_nothing_is_started_on_a_drained_host_and_what_runs_there_ends() -> None:
    diary = Diary()
    pool = a_pool(diary, "m", "n", drained=("m",))
    bundle = some_tasks(1, 1, 1)

    pool.adopt(a_job("old", bundle), [some_running(bundle, host="m")])
    pool.feed([a_job("new", some_tasks(2, 9, 1))])
    pool.run()

    assert diary.of("new")[1:3] == ["0 new starts 1 on n", "1000 new ends 1"]
    assert "500 old is done" in diary.lines
    assert pool.allocator.capacity == NODE


def test_what_only_a_drained_host_could_hold_is_refused() -> None:
    reasons = Reasons()
    nodes = [
        Node(name="small", total=(1000, GIB, 0, 0)),
        Node(name="large", total=NODE, attributes={"model": "T4"}),
    ]
    pool = Pool(Engine(Random(1), now_ms=0), nodes, reasons, drained=["large"])
    model = (Constraint("model", Operator.EQUALS, ("T4",)),)

    pool.feed(
        [
            a_job("wide", some_tasks(1, 2, 1)),
            a_job("picky", some_tasks(1, 1, 1, constraints=model)),
            a_job("small", some_tasks(1, 1, 1)),
            a_job("huge", some_tasks(1, 10, 1)),
        ]
    )
    pool.run()

    wide, picky, huge = reasons.whys
    assert wide == picky == "no host but drained ones could hold it"
    assert huge.endswith("the nearest, large, lacks cpus=1")
    assert reasons.done == 1


def test_frameworks_of_one_role_share_what_it_is_due() -> None:
    """Nine cores, three frameworks that want nine each; two of them are of one role, which is served first of equals."""
    diary = Diary()
    options = PoolOptions(role_of=lambda job: job.user, framework_of=lambda job: job.job_id)
    pool = a_pool(diary, options=options)

    jobs = [
        a_job(name, some_tasks(9, 1, 1), user=role) for name, role in [("a", "R"), ("b", "R"), ("c", "S")]
    ]
    pool.feed(jobs)
    pool.run()

    first = sorted(line for line in diary.of("starts") if line.startswith("0 "))
    assert first == ["0 a starts 3 on n", "0 b starts 2 on n", "0 c starts 4 on n"]


def test_a_cluster_may_have_resources_of_its_own() -> None:
    diary = Diary()
    kinds = ResourceKinds(("licenses",))
    node = Node(name="n", total=(*NODE, 2000))
    pool = Pool(Engine(Random(1), now_ms=0), [node], diary, kinds=kinds)
    bundle = Bundle(
        job_id="J", user="J", stage=0, tasks=3, unit=(1000, GIB, 0, 0, 1000), submit_ms=0, duration_ms=100
    )

    pool.feed([a_job("J", bundle)])
    pool.run()

    assert diary.of("starts") == ["0 J starts 2 on n", "100 J starts 1 on n"]
