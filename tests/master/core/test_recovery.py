"""A master that takes over from one before it: what it remembers, what agents and frameworks bring back."""

from dataclasses import replace

from fairlead_master.allocation.weights import Weight
from fairlead_master.core import actions, events
from fairlead_master.core.machine import Remembered
from fairlead_master.core.state import AgentState
from fairlead_master.views import framework_info, task_info
from fairlead_proto.codes import Rejection
from fairlead_proto.framework_events import (
    AnswerAccept,
    FinishReconciliation,
    ForwardStatuses,
    SendOffers,
    WelcomeFramework,
)
from fairlead_proto.ids import DEFAULT_ROLE, AgentId, FrameworkId, Role, TaskId
from fairlead_proto.orders import ConfirmAgent, KillTask
from fairlead_proto.task_state import Reason, TaskState
from tests.builders.master import Cluster, a_class, a_running, a_spec, a_status, resources

A, B = AgentId("a1-1"), AgentId("a1-2")
F = FrameworkId("f1-1")
S = TaskState


def remembered(*agents: str, away: tuple[str, ...] = ()) -> Remembered:
    return Remembered(
        epoch=2,
        frameworks=(
            actions.StoreFramework(
                framework_id=F,
                name="test",
                role=DEFAULT_ROLE,
                principal="",
                failover_timeout_ms=3600 * 1000,
            ),
        ),
        agents=tuple(
            actions.StoreAgent(
                agent_id=AgentId(agent_id),
                hostname="host",
                total=resources(4, 8),
                attributes=(),
                is_away=agent_id in away,
            )
            for agent_id in agents
        ),
        weights=((Role("eng"), Weight(3.0)),),
    )


def states_told(found: list[actions.Action]) -> list[tuple[str, TaskState, Reason]]:
    return [
        (status.task_id, status.state, status.reason)
        for action in found
        if isinstance(action, ForwardStatuses)
        for status in action.statuses
    ]


def end_marker(found: list[actions.Action]) -> tuple[AgentId, ...]:
    (end,) = [action for action in found if isinstance(action, FinishReconciliation)]
    return end.recovering_agent_ids


def test_what_was_written_down_is_there_again() -> None:
    cluster = Cluster(remembered=remembered("a1-1"))

    assert cluster.master.agents[A].state is AgentState.RECOVERING
    assert cluster.master.weights == {Role("eng"): Weight(3.0)}
    assert cluster.framework(framework_id=F, last_epoch=1) == [
        WelcomeFramework(
            session=1,
            framework_id=F,
            role=DEFAULT_ROLE,
            failover_timeout_ms=3600 * 1000,
            heartbeat_interval_ms=5_000,
        )
    ]


def test_ids_of_a_new_epoch_differ_from_all_before() -> None:
    cluster = Cluster(remembered=remembered("a1-1"))

    _, framework_id = cluster.new_framework()
    cluster.agent()

    assert framework_id == "f2-1"
    assert AgentId("a2-1") in cluster.master.agents


def test_nothing_is_offered_until_every_known_agent_is_back() -> None:
    cluster = Cluster(remembered=remembered("a1-1", "a1-2"))
    session, _ = cluster.new_framework()
    cluster.demand(session, a_class())

    cluster.agent(agent_id=A)
    assert cluster.offers() == []
    assert cluster.machine.next_deadline_ms(cluster.now_ms) == 1_010_000
    cluster.agent(agent_id=B)
    assert len(cluster.offers()) == 1


def test_the_wait_for_known_agents_is_bounded() -> None:
    cluster = Cluster(remembered=remembered("a1-1", "a1-2"))
    session, _ = cluster.new_framework()
    cluster.demand(session, a_class())
    cluster.agent(agent_id=A)

    assert cluster.wait(9_999) == []
    (offers,) = cluster.wait(1)

    assert isinstance(offers, SendOffers)
    assert offers.offers[0].agent_id == A


def test_without_known_agents_there_is_nothing_to_wait_for() -> None:
    cluster = Cluster(remembered=remembered())
    session, _ = cluster.new_framework()
    cluster.demand(session, a_class())
    cluster.agent()

    assert len(cluster.offers()) == 1


def test_running_tasks_are_adopted_and_counted_before_anything_is_offered() -> None:
    cluster = Cluster(remembered=remembered("a1-1"))
    framework, _ = cluster.new_framework(framework_id=F)
    cluster.demand(framework, a_class(units=10))
    report = a_status(F)

    running = a_running(F)
    labelled = replace(running, spec=replace(running.spec, labels={"stage": "train"}))
    adopted = cluster.agent(agent_id=A, tasks=[labelled], unacknowledged=[report])

    assert adopted == [
        ConfirmAgent(session=2, agent_id=A, heartbeat_interval_ms=5_000),
        ForwardStatuses(session=framework, statuses=(report,)),
    ]
    assert cluster.state(F) is S.RUNNING
    assert cluster.master.frameworks[F].tasks[TaskId("t1")].labels == {"stage": "train"}
    assert [offer.units for offer in cluster.offers()] == [3]


def test_an_adopted_task_has_run_since_its_agent_started_it() -> None:
    cluster = Cluster(remembered=remembered("a1-1"))
    cluster.new_framework(framework_id=F)

    cluster.agent(
        agent_id=A,
        tasks=[
            a_running(F, "long", ran_ms=90_000),
            a_running(F, "ending", S.KILLING, ran_ms=60_000),
            a_running(F, "of an older agent"),
            a_running(F, "starting", S.STARTING, 0),
            a_running(F, "for ever", ran_ms=2**60),
        ],
    )

    tasks, now_ms = cluster.master.frameworks[F].tasks, cluster.now_ms
    assert {task.task_id: (task.submitted_ms, task.started_ms) for task in tasks.values()} == {
        "long": (now_ms - 90_000, now_ms - 90_000),
        "ending": (now_ms - 60_000, now_ms - 60_000),
        "of an older agent": (now_ms, now_ms),
        "starting": (now_ms, 0),
        "for ever": (1, 1),
    }


def test_a_task_that_began_while_its_agent_was_away_has_run_since_then() -> None:
    cluster = Cluster()
    agent = cluster.new_agent()
    framework, _ = cluster.new_framework()
    cluster.launch(framework, "t1")
    cluster.agent_leaves(agent)
    cluster.wait(20_000)

    cluster.agent(agent_id=A, tasks=[a_running(F, ran_ms=15_000)], unacknowledged=[a_status(F)])

    task = cluster.master.find_task((F, TaskId("t1")))
    assert task is not None
    assert (task.state, task.started_ms) == (S.RUNNING, cluster.now_ms - 15_000)


def test_an_accept_repeated_to_the_next_master_is_answered_by_what_became_of_the_task() -> None:
    cluster = Cluster(remembered=remembered("a1-1"))
    framework, _ = cluster.new_framework(framework_id=F)
    cluster.agent(agent_id=A, tasks=[a_running(F)], unacknowledged=[a_status(F, "t2", S.FINISHED, 2)])

    answer = cluster.accept(framework, "o1-7", a_spec("t1"), a_spec("t2"), a_spec("t3"))

    answered, told = answer
    assert isinstance(answered, AnswerAccept)
    assert [(entry.task_id, entry.rejection) for entry in answered.answers] == [
        ("t1", None),
        ("t2", None),
        ("t3", Rejection.EXPIRED),
    ]
    assert states_told([told]) == [("t1", S.RUNNING, Reason.NONE), ("t2", S.FINISHED, Reason.NONE)]


def test_reconciliation_says_nothing_of_tasks_an_agent_may_yet_bring_back() -> None:
    cluster = Cluster(remembered=remembered("a1-1", "a1-2"))
    framework, _ = cluster.new_framework(framework_id=F)
    cluster.agent(agent_id=B, tasks=[a_running(F, "t2")])

    during = cluster.reconcile(framework, "t1", "t2")
    cluster.agent(agent_id=A)
    after = cluster.reconcile(framework, "t1", "t2")

    assert states_told(during) == [("t2", S.RUNNING, Reason.NONE)]
    assert end_marker(during) == (A,)
    assert states_told(after) == [("t1", S.LOST, Reason.UNKNOWN_TASK), ("t2", S.RUNNING, Reason.NONE)]
    assert end_marker(after) == ()


def test_a_task_that_an_agent_given_up_may_yet_bring_back_is_unreachable_and_not_lost() -> None:
    """LOST is final, and the agent may return with the task running."""
    cluster = Cluster(remembered=remembered("a1-1"))
    framework, _ = cluster.new_framework(framework_id=F)
    cluster.wait(75_000)

    away = cluster.reconcile(framework, "t1")
    back = cluster.agent(agent_id=A, tasks=[a_running(F)])
    here = cluster.reconcile(framework, "t1")

    assert states_told(away) == [("t1", S.UNREACHABLE, Reason.AGENT_DISCONNECTED)]
    assert end_marker(away) == (A,)
    assert states_told(back) == [("t1", S.RUNNING, Reason.AGENT_RETURNED)]
    assert states_told(here) == [("t1", S.RUNNING, Reason.NONE)]


def test_an_agent_that_was_away_before_is_not_waited_for_and_may_bring_its_tasks() -> None:
    cluster = Cluster(remembered=remembered("a1-1", away=("a1-1",)))
    framework, _ = cluster.new_framework(framework_id=F)
    cluster.agent()
    cluster.demand(framework, a_class())

    assert len(cluster.offers()) == 1
    assert states_told(cluster.reconcile(framework, "t1")) == [
        ("t1", S.UNREACHABLE, Reason.AGENT_DISCONNECTED)
    ]
    cluster.agent(agent_id=A, tasks=[a_running(F)])
    assert cluster.state(F) is S.RUNNING


def test_a_task_is_lost_once_the_agents_that_might_have_it_are_forgotten() -> None:
    cluster = Cluster(remembered=remembered("a1-1", away=("a1-1",)))
    framework, _ = cluster.new_framework(framework_id=F)
    assert cluster.wait(24 * 3600 * 1000) == [actions.ForgetAgent(agent_id=A)]

    found = cluster.reconcile(framework, "t1")

    assert states_told(found) == [("t1", S.LOST, Reason.UNKNOWN_TASK)]
    assert end_marker(found) == ()


def test_tasks_of_a_framework_that_was_ended_before_are_killed() -> None:
    cluster = Cluster(remembered=Remembered(epoch=2, agents=remembered("a1-1").agents))

    back = cluster.agent(agent_id=A, tasks=[a_running(F)])

    assert back[-1] == KillTask(
        session=1, framework_id=F, task_id=TaskId("t1"), grace_period_ms=0, reason=Reason.FRAMEWORK_REMOVED
    )


def test_a_framework_that_does_not_come_back_is_given_up_with_its_adopted_tasks() -> None:
    cluster = Cluster(remembered=remembered("a1-1"), agent_silence_ms=10**9)
    agent = cluster.new_agent(agent_id=A, tasks=[a_running(F)])

    over = cluster.wait(3600 * 1000)

    assert over == [
        KillTask(
            session=agent,
            framework_id=F,
            task_id=TaskId("t1"),
            grace_period_ms=0,
            reason=Reason.FRAMEWORK_REMOVED,
        ),
        actions.ForgetFramework(framework_id=F),
    ]


def test_an_agent_that_comes_back_while_its_framework_is_ending_is_told_to_end_the_task() -> None:
    cluster = Cluster(remembered=remembered("a1-1", "a1-2"))
    framework, _ = cluster.new_framework(framework_id=F)
    cluster.agent(agent_id=B, tasks=[a_running(F, "t2")])
    cluster.teardown(framework)

    back = cluster.agent(agent_id=A, tasks=[a_running(F, "t1")])

    assert back[-1] == KillTask(
        session=3, framework_id=F, task_id=TaskId("t1"), grace_period_ms=0, reason=Reason.FRAMEWORK_REMOVED
    )


def test_a_task_that_ended_while_no_master_watched_is_counted_and_nothing_is_made_up_of_it() -> None:
    cluster = Cluster(remembered=remembered("a1-1"))
    cluster.new_framework(framework_id=F)
    ended = replace(a_status(F, state=S.FAILED, exit_code=3), timestamp_ms=cluster.now_ms - 7_000 + 50)
    untold = a_status(F, "t2", S.FINISHED)

    cluster.agent(agent_id=A, unacknowledged=[ended, untold], agent_time_ms=cluster.now_ms + 50)
    cluster.step(events.StatusesReported(session=cluster.session, statuses=(ended,)))

    master = cluster.master
    assert (framework_info(master, master.frameworks[F]).finished, master.tasks_ended) == (2, 2)
    shown = [task_info(master, task) for task in master.finished.values()]
    assert [(info.task_id, info.state, info.finished_ms) for info in shown] == [
        ("t1", "FAILED", cluster.now_ms - 7_000),
        ("t2", "FINISHED", cluster.now_ms),
    ]
    assert not any(info.HasField("resources") or info.submitted_ms or info.started_ms for info in shown)
