"""What agents report about tasks, what frameworks acknowledge, and how tasks are ended."""

from dataclasses import replace

import pytest

from fairlead_master import views
from fairlead_master.core import events
from fairlead_master.core.tasks import kept_labels, shortened
from fairlead_proto.codes import CallCode
from fairlead_proto.framework_events import AnswerCall, FinishReconciliation, ForwardStatuses
from fairlead_proto.ids import AgentId, FrameworkId, TaskId
from fairlead_proto.orders import AcknowledgeStatuses, ConfirmAgent, KillTask
from fairlead_proto.resources import Vector
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import TaskStatus, TaskUsage
from tests.builders.master import Cluster, a_class, a_running, a_spec, a_status

F = FrameworkId("f1-1")
S = TaskState


def a_running_task(*task_ids: str) -> tuple[Cluster, int, int]:
    """A cluster whose one framework has these tasks running on its one agent: agent's session, framework's session."""
    cluster = Cluster()
    agent = cluster.new_agent()
    framework, _ = cluster.new_framework()
    names = task_ids or ("t1",)
    cluster.launch(framework, *names)
    cluster.report(agent, *(a_status(F, name) for name in names))
    return cluster, agent, framework


def forwarded(session: int, *statuses: TaskStatus) -> ForwardStatuses:
    return ForwardStatuses(session=session, statuses=statuses)


def acknowledged(session: int, *items: tuple[str, int]) -> AcknowledgeStatuses:
    return AcknowledgeStatuses(
        session=session, items=tuple(((F, TaskId(task_id)), sequence) for task_id, sequence in items)
    )


def killed(
    session: int, task_id: str = "t1", reason: Reason = Reason.KILLED_BY_FRAMEWORK, grace_ms: int = 0
) -> KillTask:
    return KillTask(
        session=session, framework_id=F, task_id=TaskId(task_id), grace_period_ms=grace_ms, reason=reason
    )


def master_status(
    state: TaskState, reason: Reason, message: str, at_ms: int, task_id: str = "t1"
) -> TaskStatus:
    return TaskStatus(
        framework_id=F,
        task_id=TaskId(task_id),
        agent_id=AgentId("a1-1"),
        sequence=0,
        state=state,
        reason=reason,
        message=message,
        timestamp_ms=at_ms,
    )


def test_reports_move_a_task_and_are_forwarded_in_order() -> None:
    cluster = Cluster()
    agent = cluster.new_agent()
    framework, _ = cluster.new_framework()
    cluster.launch(framework, "t1", "t2")
    statuses = (a_status(F, "t1", S.STARTING), a_status(F, "t1", S.RUNNING, 2), a_status(F, "t2", S.RUNNING))

    assert cluster.report(agent, *statuses) == [forwarded(framework, *statuses)]
    assert cluster.state(F) is S.RUNNING


@pytest.mark.parametrize("end", [S.FINISHED, S.FAILED, S.KILLED, S.ERROR, S.DROPPED, S.LOST])
def test_an_end_frees_what_the_task_held_and_stands_for_good(end: TaskState) -> None:
    cluster, agent, framework = a_running_task()

    over = a_status(F, "t1", end, 2, exit_code=0)
    assert cluster.report(agent, over) == [forwarded(framework, over)]
    assert cluster.master.allocator.agent_books(AgentId("a1-1")).tasks == 0
    assert (F, TaskId("t1")) in cluster.master.finished

    again = a_status(F, "t1", S.FAILED, 3)
    assert cluster.report(agent, again) == [acknowledged(agent, ("t1", 3))]
    assert cluster.state(F) is end


def test_a_repeated_report_is_forwarded_until_it_is_acknowledged() -> None:
    cluster, agent, framework = a_running_task()
    status = a_status(F)

    assert cluster.report(agent, status) == [forwarded(framework, status)], "its first forward may be lost"
    assert cluster.acknowledge(framework, ("t1", 1, "a1-1")) == [acknowledged(agent, ("t1", 1))]
    assert cluster.report(agent, status) == [acknowledged(agent, ("t1", 1))]


def test_a_report_that_was_overtaken_changes_nothing() -> None:
    cluster, agent, _ = a_running_task()
    cluster.report(agent, a_status(F, "t1", S.KILLING, 2))

    assert cluster.report(agent, a_status(F, "t1", S.RUNNING, 1)) == []
    assert cluster.state(F) is S.KILLING
    later = cluster.report(agent, a_status(F, "t1", S.RUNNING, 3))
    assert later == [acknowledged(agent, ("t1", 3))], "a move the table does not allow is no news"
    assert cluster.state(F) is S.KILLING


def test_a_report_of_a_running_task_nobody_knows_ends_the_task() -> None:
    cluster = Cluster()
    agent = cluster.new_agent()
    cluster.new_framework()

    assert cluster.report(agent, a_status(F)) == [killed(agent, reason=Reason.UNKNOWN_TASK)]
    assert cluster.state(F) is None


def test_the_end_of_a_task_nobody_knows_is_still_told_to_its_framework() -> None:
    cluster = Cluster()
    agent = cluster.new_agent()
    framework, _ = cluster.new_framework()
    over = a_status(F, state=S.FINISHED, sequence=3, exit_code=0)

    assert cluster.report(agent, over) == [forwarded(framework, over)]
    assert cluster.report(agent, over) == [forwarded(framework, over)]
    assert cluster.acknowledge(framework, ("t1", 3, "a1-1")) == [acknowledged(agent, ("t1", 3))]
    assert cluster.report(agent, over) == [acknowledged(agent, ("t1", 3))]


def test_a_report_of_an_agent_that_does_not_have_the_task_is_not_believed() -> None:
    cluster, _, framework = a_running_task()
    other = cluster.new_agent()

    running = cluster.report(other, a_status(F, "t1", S.RUNNING, 2, agent_id="a1-2"))
    over = cluster.report(other, a_status(F, "t1", S.FINISHED, 3, agent_id="a1-2"))

    assert running == [killed(other, reason=Reason.UNKNOWN_TASK), acknowledged(other, ("t1", 2))]
    assert over == [acknowledged(other, ("t1", 3))]
    assert cluster.state(F) is S.RUNNING
    told, _ = cluster.reconcile(framework, "t1")
    assert isinstance(told, ForwardStatuses)
    assert [(status.agent_id, status.sequence) for status in told.statuses] == [("a1-1", 1)]


def test_reports_to_a_framework_that_is_away_wait_for_its_return() -> None:
    cluster, agent, framework = a_running_task()
    cluster.framework_leaves(framework)
    over = a_status(F, state=S.FINISHED, sequence=2)

    assert cluster.report(agent, over) == []
    cluster.framework(framework_id=F)
    assert cluster.report(agent, over) == [forwarded(cluster.session, over)]


def test_acknowledgements_go_to_the_agents_that_wait_for_them() -> None:
    cluster = Cluster()
    agents = [cluster.new_agent(cpus=1), cluster.new_agent(cpus=1)]
    framework, _ = cluster.new_framework()
    cluster.launch(framework, "t1", "t2")
    hosts = {task.task_id: task.agent_id for task in cluster.master.frameworks[F].tasks.values()}
    by_host = {"a1-1": agents[0], "a1-2": agents[1]}
    for task_id, host in hosts.items():
        cluster.report(by_host[host], a_status(F, task_id, agent_id=host))

    sent = cluster.acknowledge(framework, ("t1", 1, ""), ("t2", 1, ""), ("t9", 1, ""), ("t1", 0, "a1-1"))

    assert sent == [
        acknowledged(by_host[hosts[TaskId("t1")]], ("t1", 1)),
        acknowledged(by_host[hosts[TaskId("t2")]], ("t2", 1)),
    ]


def test_an_acknowledgement_of_a_task_that_history_forgot_goes_by_the_agent_it_names() -> None:
    cluster, agent, framework = a_running_task()
    cluster.report(agent, a_status(F, state=S.FINISHED, sequence=2))
    cluster.master.finished.clear()

    assert cluster.acknowledge(framework, ("t1", 2, "a1-1")) == [acknowledged(agent, ("t1", 2))]
    assert cluster.acknowledge(framework, ("t1", 2, "a9-9")) == []


def test_a_framework_cannot_acknowledge_what_was_never_reported() -> None:
    cluster, agent, framework = a_running_task()

    cluster.acknowledge(framework, ("t1", 99, "a1-1"))

    over = a_status(F, state=S.FINISHED, sequence=2)
    assert cluster.report(agent, over) == [forwarded(framework, over)]


def test_an_acknowledgement_while_the_agent_is_away_is_made_good_when_it_returns() -> None:
    cluster, agent, framework = a_running_task()
    cluster.agent_leaves(agent)
    assert cluster.acknowledge(framework, ("t1", 1, "a1-1")) == []

    back = cluster.agent(agent_id="a1-1", tasks=[a_running(F)], unacknowledged=[a_status(F)])

    assert back == [
        ConfirmAgent(session=cluster.session, agent_id=AgentId("a1-1"), heartbeat_interval_ms=5_000),
        acknowledged(cluster.session, ("t1", 1)),
    ]


def test_a_launch_the_agent_never_speaks_of_is_dropped_and_taken_back() -> None:
    cluster = Cluster()
    agent = cluster.new_agent()
    framework, _ = cluster.new_framework()
    cluster.launch(framework, "t1")
    for _ in range(2):
        cluster.now_ms += 15_000 - 1
        cluster.step(events.AgentBeat(session=agent, used=()))
    assert cluster.tick() == []
    cluster.now_ms += 2

    dropped = cluster.tick()

    message = "agent a1-1 did not confirm the launch within 30000 ms"
    assert dropped == [
        killed(agent, reason=Reason.STAGING_TIMEOUT),
        forwarded(framework, master_status(S.DROPPED, Reason.STAGING_TIMEOUT, message, cluster.now_ms)),
    ]
    assert cluster.report(agent, a_status(F, "t1", S.RUNNING)) == [
        killed(agent, reason=Reason.UNKNOWN_TASK),
        acknowledged(agent, ("t1", 1)),
    ], "a task that was given up may not live on"
    assert cluster.state(F) is S.DROPPED


def test_a_kill_goes_to_the_agent_and_is_repeated_until_the_task_ends() -> None:
    cluster, agent, framework = a_running_task()

    answer = cluster.kill(framework, "t1", grace_ms=700)

    kill = killed(agent, grace_ms=700)
    assert answer == [
        kill,
        AnswerCall(session=framework, request_id=cluster.request, code=CallCode.OK),
    ]
    assert cluster.wait(9_999) == []
    assert cluster.wait(1) == [kill]
    over = a_status(F, state=S.KILLED, sequence=2)
    assert cluster.report(agent, over) == [forwarded(framework, over)]
    cluster.step(events.AgentBeat(session=agent, used=()))
    assert cluster.wait(15_000) == []


def test_a_task_can_be_killed_before_its_agent_has_spoken_of_it() -> None:
    cluster = Cluster()
    agent = cluster.new_agent()
    framework, _ = cluster.new_framework()
    cluster.launch(framework, "t1")

    assert cluster.kill(framework, "t1")[0] == killed(agent)
    over = a_status(F, state=S.KILLED, reason=Reason.KILLED_BY_FRAMEWORK)
    assert cluster.report(agent, over) == [forwarded(framework, over)]


def test_a_kill_of_a_task_on_an_agent_that_is_away_is_sent_when_it_returns() -> None:
    cluster, agent, framework = a_running_task()
    cluster.agent_leaves(agent)

    assert cluster.kill(framework, "t1") == [
        AnswerCall(session=framework, request_id=cluster.request, code=CallCode.OK)
    ]
    assert cluster.agent(agent_id="a1-1", tasks=[a_running(F)]) == [
        ConfirmAgent(session=cluster.session, agent_id=AgentId("a1-1"), heartbeat_interval_ms=5_000),
        killed(cluster.session),
    ]


def test_a_kill_names_the_tasks_it_does_not_know_and_ends_the_others() -> None:
    cluster, agent, framework = a_running_task("t1", "t2")
    cluster.report(agent, a_status(F, "t2", S.FINISHED, 2))

    assert cluster.kill(framework, "t9", "t1", "t2") == [
        killed(agent),
        AnswerCall(
            session=framework, request_id=cluster.request, code=CallCode.UNKNOWN, detail="tasks not known: t9"
        ),
    ]


def test_a_framework_cannot_kill_the_tasks_of_another() -> None:
    cluster, _, _ = a_running_task()
    other, _ = cluster.new_framework()

    (answer,) = cluster.kill(other, "t1")

    assert isinstance(answer, AnswerCall)
    assert answer.code is CallCode.UNKNOWN


def test_usage_is_kept_from_beats_and_from_the_end() -> None:
    cluster, agent, _ = a_running_task()
    beat = events.AgentBeat(
        session=agent,
        used=(500, 2**20, 0, 0),
        tasks=(((F, TaskId("t1")), TaskUsage(mem_bytes=7)), ((F, TaskId("t9")), TaskUsage(mem_bytes=8))),
    )

    assert cluster.step(beat) == []

    task = cluster.master.find_task((F, TaskId("t1")))
    assert task is not None
    assert task.usage == TaskUsage(mem_bytes=7)
    assert cluster.master.agents[AgentId("a1-1")].used == (500, 2**20, 0, 0)


def test_messages_of_a_session_that_is_over_are_ignored() -> None:
    cluster, agent, _ = a_running_task()
    cluster.agent_leaves(agent)

    assert cluster.report(agent, a_status(F, state=S.FINISHED, sequence=2)) == []
    assert cluster.step(events.AgentBeat(session=agent, used=())) == []
    assert cluster.agent_leaves(agent) == []
    assert cluster.state(F) is S.RUNNING


def test_all_live_tasks_are_reconciled_and_the_end_is_marked() -> None:
    cluster, agent, framework = a_running_task("t1", "t2")
    cluster.report(agent, a_status(F, "t2", S.FINISHED, 2))

    answer = cluster.reconcile(framework)

    running, end = answer
    assert isinstance(running, ForwardStatuses)
    assert [(status.task_id, status.state, status.sequence) for status in running.statuses] == [
        ("t1", S.RUNNING, 1)
    ]
    assert end == FinishReconciliation(session=framework, request_id=cluster.request, recovering_agent_ids=())


def test_each_task_asked_for_is_reconciled_over_and_unknown_ones_included() -> None:
    cluster, agent, framework = a_running_task("t1", "t2")
    cluster.report(agent, a_status(F, "t2", S.FAILED, 2, exit_code=3))

    told, _ = cluster.reconcile(framework, "t1", "t2", "t9")

    assert isinstance(told, ForwardStatuses)
    assert [(status.task_id, status.state, status.exit_code) for status in told.statuses] == [
        ("t1", S.RUNNING, None),
        ("t2", S.FAILED, 3),
        ("t9", S.LOST, None),
    ]
    assert told.statuses[2].reason is Reason.UNKNOWN_TASK


def test_reconciliation_repeats_an_agents_word_under_its_number_and_the_masters_own_under_none() -> None:
    """A framework that has seen RUNNING under 1 takes anything else under 1 for a repeat."""
    cluster, agent, framework = a_running_task()
    cluster.agent_leaves(agent)
    cluster.wait(75_000)

    away, _ = cluster.reconcile(framework, "t1")
    cluster.agent(agent_id="a1-1", tasks=[a_running(F)])
    back, _ = cluster.reconcile(framework, "t1")
    cluster.agent(agent_id="a1-1", incarnation=2)
    lost, _ = cluster.reconcile(framework, "t1")

    assert [
        (status.state, status.sequence)
        for told in (away, back, lost)
        if isinstance(told, ForwardStatuses)
        for status in told.statuses
    ] == [(S.UNREACHABLE, 0), (S.RUNNING, 1), (S.LOST, 0)]


def test_a_long_command_is_kept_in_part_only() -> None:
    assert shortened(("echo", "hi")) == ("echo", "hi")
    kept = shortened(("x" * 1_000,) * 100)
    assert len(kept) == 16
    assert all(len(word) == 256 for word in kept)


def test_labels_are_kept_for_listings() -> None:
    cluster = Cluster()
    cluster.new_agent()
    framework, _ = cluster.new_framework()
    cluster.demand(framework, a_class(units=1))
    (offer,) = cluster.offers()

    cluster.accept(framework, offer.offer_id, replace(a_spec("t1"), labels={"stage": "train"}))

    task = cluster.master.frameworks[F].tasks[TaskId("t1")]
    assert views.task_info(cluster.master, task).labels == {"stage": "train"}


def test_of_many_labels_a_kib_is_kept() -> None:
    labels = {f"n{number}": "x" * 256 for number in range(64)}

    kept = kept_labels(labels)

    assert kept == {f"n{number}": "x" * 256 for number in range(3)}
    assert kept_labels(kept) is kept


def test_the_books_are_opened_once_for_all_tasks_that_end_in_one_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, agent, _ = a_running_task("t1", "t2", "t3")
    allocator = cluster.master.allocator
    releases: list[int] = []
    release = allocator.release

    def counted(framework_id: FrameworkId, agent_id: AgentId, vector: Vector, tasks: int = 1) -> None:
        releases.append(tasks)
        release(framework_id, agent_id, vector, tasks)

    monkeypatch.setattr(allocator, "release", counted)
    ends = [a_status(F, name, S.FINISHED, sequence=2) for name in ("t1", "t2", "t3")]
    cluster.report(agent, *ends)

    assert releases == [3]
    allocator.check()
