"""What tasks use, from heartbeats: rates, sums per framework, and samples of whole lives."""

import pytest

from fairlead_master.core import events
from fairlead_master.core import settings as bounds
from fairlead_proto.ids import AgentId, FrameworkId, TaskId
from fairlead_proto.resources import Vector
from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import TaskStatus, TaskUsage
from tests.builders.master import GIB, UNIT, Cluster, a_running, a_status

F = FrameworkId("f1-1")


def running(cluster: Cluster, *task_ids: str) -> int:
    """Tasks that run since now, on one agent; gives its session."""
    agent = cluster.new_agent()
    session, _ = cluster.new_framework()
    cluster.launch(session, *task_ids)
    cluster.report(agent, *(a_status(F, task_id) for task_id in task_ids))
    return agent


def beat(cluster: Cluster, agent: int, **usages: TaskUsage) -> None:
    tasks = tuple(((F, TaskId(task_id)), usage) for task_id, usage in usages.items())
    cluster.step(events.AgentBeat(session=agent, used=(), tasks=tasks))


def used(cluster: Cluster) -> Vector:
    return cluster.master.frameworks[F].used


def ended(usage: TaskUsage | None) -> TaskStatus:
    return TaskStatus(
        framework_id=F,
        task_id=TaskId("t1"),
        agent_id=AgentId("a1-1"),
        sequence=2,
        state=TaskState.FINISHED,
        exit_code=0,
        usage=usage,
    )


def samples(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[int | None, ...]]]:
    """Every sample the allocator is told of from now on."""
    told: list[tuple[str, tuple[int | None, ...]]] = []

    def note(
        _framework: FrameworkId, task: TaskId, _declared: Vector, use: tuple[int | None, ...], _ms: int
    ) -> None:
        told.append((task, use))

    monkeypatch.setattr(cluster.master.allocator, "sample", note)
    return told


def test_the_rate_is_the_time_spent_between_two_reports() -> None:
    cluster = Cluster()
    agent = running(cluster, "t1")
    cluster.now_ms += 5_000
    beat(cluster, agent, t1=TaskUsage(cpu_time_ms=5_000, mem_bytes=GIB))
    first = used(cluster)
    cluster.now_ms += 5_000

    beat(cluster, agent, t1=TaskUsage(cpu_time_ms=6_000, mem_bytes=3))

    assert first == (1_000, GIB, 0, 0)
    assert used(cluster) == (200, 3, 0, 0)


def test_rates_of_many_tasks_are_taken_in_parts_for_the_time_of_their_heartbeat() -> None:
    cluster = Cluster()
    agent = cluster.new_agent(cpus=1_000, gib=1_000)
    session, _ = cluster.new_framework()
    count = 2 * bounds.TASKS_PER_STEP_MAX - 7
    names = [f"t{number}" for number in range(count)]
    cluster.launch(session, *names)
    cluster.report(agent, *(a_status(F, name) for name in names))
    cluster.now_ms += 5_000
    usages = [((F, TaskId(name)), TaskUsage(cpu_time_ms=5_000)) for name in names]

    cluster.step(events.AgentBeat(session=agent, used=(), tasks=tuple(usages[:900]), is_last=False))
    before = used(cluster)
    cluster.step(events.AgentBeat(session=agent, used=(), tasks=tuple(usages[900:])))
    at_first = used(cluster)
    cluster.now_ms += 2_500
    cluster.tick()

    assert before == ()
    assert at_first[0] == bounds.TASKS_PER_STEP_MAX * 1_000
    assert used(cluster)[0] == count * 1_000
    assert not cluster.master.measuring


def test_what_an_agent_measured_goes_with_its_session() -> None:
    cluster = Cluster()
    agent = cluster.new_agent(cpus=1_000, gib=1_000)
    session, _ = cluster.new_framework()
    names = [f"t{number}" for number in range(bounds.TASKS_PER_STEP_MAX + 1)]
    cluster.launch(session, *names)
    cluster.report(agent, *(a_status(F, name) for name in names))
    cluster.now_ms += 5_000
    usages = tuple([((F, TaskId(name)), TaskUsage(cpu_time_ms=5_000)) for name in names])
    cluster.step(events.AgentBeat(session=agent, used=(), tasks=usages))

    cluster.agent_leaves(agent)
    cluster.tick()

    assert used(cluster)[0] == bounds.TASKS_PER_STEP_MAX * 1_000


def test_a_framework_uses_what_its_tasks_use_together() -> None:
    cluster = Cluster()
    agent = running(cluster, "t1", "t2")
    cluster.now_ms += 5_000

    beat(
        cluster,
        agent,
        t1=TaskUsage(cpu_time_ms=500, mem_bytes=5),
        t2=TaskUsage(cpu_time_ms=1_000, mem_bytes=6),
    )

    assert used(cluster) == (300, 11, 0, 0)


def test_a_task_whose_figures_did_not_change_spent_nothing_since() -> None:
    cluster = Cluster()
    agent = running(cluster, "t1")
    cluster.now_ms += 5_000
    beat(cluster, agent, t1=TaskUsage(cpu_time_ms=5_000, mem_bytes=9))
    cluster.now_ms += 5_000

    beat(cluster, agent)

    assert used(cluster) == (0, 9, 0, 0)


def test_a_task_that_is_over_uses_nothing() -> None:
    cluster = Cluster()
    agent = running(cluster, "t1")
    cluster.now_ms += 5_000
    beat(cluster, agent, t1=TaskUsage(cpu_time_ms=5_000, mem_bytes=9))

    cluster.report(agent, ended(None))

    assert used(cluster) == (0, 0, 0, 0)


def test_a_task_on_an_agent_that_is_gone_uses_nothing() -> None:
    cluster = Cluster()
    agent = running(cluster, "t1")
    cluster.now_ms += 5_000
    beat(cluster, agent, t1=TaskUsage(cpu_time_ms=5_000, mem_bytes=9))

    cluster.agent_leaves(agent)
    cluster.wait(cluster.master.settings.agent_timeout_ms + cluster.master.settings.agent_forget_ms)

    assert cluster.state(F) is TaskState.GONE
    assert used(cluster) == (0, 0, 0, 0)


def test_a_sample_is_the_mean_of_a_life_and_its_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    agent = running(cluster, "t1")
    told = samples(cluster, monkeypatch)
    cluster.now_ms += 5_000
    beat(cluster, agent, t1=TaskUsage(cpu_time_ms=5_000, mem_bytes=9, mem_peak_bytes=20))
    cluster.now_ms += 5_000

    cluster.report(
        agent, ended(TaskUsage(cpu_time_ms=6_000, mem_bytes=0, mem_peak_bytes=30, sandbox_bytes=4))
    )

    assert told == [("t1", (1_000, 20, 0, None)), ("t1", (600, 30, 4, None))]


def test_a_task_that_was_never_reported_is_measured_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    agent = running(cluster, "t1")
    told = samples(cluster, monkeypatch)
    cluster.now_ms += 2_000

    cluster.report(agent, ended(TaskUsage(cpu_time_ms=500, mem_peak_bytes=30)))

    assert told == [("t1", (250, 30, 0, None))]


def test_the_start_of_a_short_task_is_no_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    agent = running(cluster, "t1")
    told = samples(cluster, monkeypatch)
    cluster.now_ms += 999

    cluster.report(agent, ended(TaskUsage(cpu_time_ms=900)))

    assert told == []


def test_what_an_adopted_task_spent_before_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    cluster.new_framework()
    cluster.agent_leaves(cluster.new_agent())
    agent = cluster.new_agent(agent_id="a1-1", tasks=[a_running(F)])
    told = samples(cluster, monkeypatch)
    cluster.now_ms += 5_000
    beat(cluster, agent, t1=TaskUsage(cpu_time_ms=900_000, mem_bytes=9))
    cluster.now_ms += 5_000

    beat(cluster, agent, t1=TaskUsage(cpu_time_ms=901_000, mem_bytes=9))

    assert used(cluster) == (200, 9, 0, 0)
    assert told == [("t1", (200, 9, 0, None))]


def test_the_allocator_is_told_what_measured_tasks_use_and_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    agent = running(cluster, "t1", "unmeasured")
    told: list[tuple[FrameworkId, Vector, Vector]] = []
    monkeypatch.setattr(cluster.master.allocator, "observe", lambda *fact: told.append(fact))
    cluster.now_ms += 5_000

    beat(cluster, agent, t1=TaskUsage(cpu_time_ms=5_000, mem_bytes=9))
    cluster.report(agent, ended(None))

    nothing = (0, 0, 0, 0)
    assert told == [(F, (1_000, 9, 0, 0), UNIT), (F, nothing, nothing)]


def test_an_adopted_task_counts_as_held_until_there_is_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its first report nobody knows how long it took: no rate, so not measured yet."""
    cluster = Cluster()
    cluster.new_framework()
    cluster.agent_leaves(cluster.new_agent())
    agent = cluster.new_agent(agent_id="a1-1", tasks=[a_running(F)])
    told: list[tuple[FrameworkId, Vector, Vector]] = []
    monkeypatch.setattr(cluster.master.allocator, "observe", lambda *fact: told.append(fact))

    for cpu_time_ms in (900_000, 901_000):
        beat(cluster, agent, t1=TaskUsage(cpu_time_ms=cpu_time_ms, mem_bytes=9))
        cluster.now_ms += 5_000
    cluster.report(agent, ended(None))

    nothing = (0, 0, 0, 0)
    assert told == [(F, nothing, nothing), (F, (200, 9, 0, 0), UNIT), (F, nothing, nothing)]
