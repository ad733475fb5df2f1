"""Agents: sessions, loss and return, and what follows for their tasks."""

from fairlead_master.core import actions, events
from fairlead_master.core.machine import Remembered
from fairlead_master.core.state import AgentState
from fairlead_proto.codes import RefusalCode
from fairlead_proto.framework_events import AnnounceAgentGone, ForwardStatuses, RescindOffers
from fairlead_proto.ids import AgentId, FrameworkId, TaskId
from fairlead_proto.orders import ConfirmAgent, EndAgentSession, KillTask, PingAgent
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import TaskStatus
from tests.builders.master import Cluster, a_class, a_running, a_status, resources

A = AgentId("a1-1")
F = FrameworkId("f1-1")
S = TaskState
DAY_MS = 24 * 3600 * 1000


def stored(
    agent_id: str = "a1-1", *, cpus: float = 4, gib: float = 8, is_away: bool = False
) -> actions.StoreAgent:
    return actions.StoreAgent(
        agent_id=AgentId(agent_id),
        hostname="host",
        total=resources(cpus, gib),
        attributes=(),
        is_away=is_away,
    )


def confirmed(session: int, agent_id: str = "a1-1") -> ConfirmAgent:
    return ConfirmAgent(session=session, agent_id=AgentId(agent_id), heartbeat_interval_ms=5_000)


def refused(session: int, code: RefusalCode, detail: str) -> EndAgentSession:
    return EndAgentSession(session=session, code=code, detail=detail)


def killed(session: int, task_id: str, reason: Reason) -> KillTask:
    return KillTask(
        session=session, framework_id=F, task_id=TaskId(task_id), grace_period_ms=0, reason=reason
    )


def told(
    session: int, state: TaskState, reason: Reason, message: str, at_ms: int, task_id: str = "t1"
) -> ForwardStatuses:
    status = TaskStatus(
        framework_id=F,
        task_id=TaskId(task_id),
        agent_id=A,
        sequence=0,
        state=state,
        reason=reason,
        message=message,
        timestamp_ms=at_ms,
    )
    return ForwardStatuses(session=session, statuses=(status,))


def a_running_task() -> tuple[Cluster, int, int]:
    cluster = Cluster()
    agent = cluster.new_agent()
    framework, _ = cluster.new_framework()
    cluster.launch(framework, "t1")
    cluster.report(agent, a_status(F))
    return cluster, agent, framework


def charged(cluster: Cluster, agent_id: str = "a1-1") -> tuple[int, ...]:
    return cluster.master.allocator.agent_books(AgentId(agent_id)).charged


def test_a_new_agent_is_written_down_before_it_is_told_its_id() -> None:
    cluster = Cluster()

    assert cluster.agent() == [stored(), confirmed(1)]
    assert cluster.agent() == [stored("a1-2"), confirmed(2, "a1-2")]


def test_an_agent_that_comes_back_unchanged_is_not_written_down_again() -> None:
    cluster = Cluster()
    session = cluster.new_agent()
    cluster.agent_leaves(session)

    assert cluster.agent(agent_id="a1-1") == [confirmed(2)]


def test_an_agent_that_has_seen_a_newer_master_is_refused() -> None:
    cluster = Cluster(remembered=Remembered(epoch=3))

    assert cluster.agent(last_epoch=4) == [
        refused(1, RefusalCode.OLD_EPOCH, "this master has epoch 3, you have seen 4")
    ]


def test_an_agent_without_resources_is_refused() -> None:
    cluster = Cluster()

    assert cluster.agent(cpus=0, gib=0) == [
        refused(1, RefusalCode.INVALID, "total: expected at least one resource above zero, got none")
    ]


def test_an_older_process_of_a_connected_agent_is_refused() -> None:
    cluster = Cluster()
    cluster.new_agent(incarnation=5)

    assert cluster.agent(agent_id="a1-1", incarnation=4) == [
        refused(2, RefusalCode.SUPERSEDED, "a newer process (incarnation 5) of agent a1-1 is connected")
    ]
    assert cluster.master.agents[A].session == 1


def test_a_newer_process_takes_over_and_the_old_session_is_closed() -> None:
    cluster, agent, framework = a_running_task()
    cluster.demand(framework, a_class())
    (offer,) = cluster.offers()

    taken_over = cluster.agent(agent_id="a1-1", incarnation=2, tasks=[a_running(F)])

    assert taken_over == [
        RescindOffers(session=framework, offer_ids=(offer.offer_id,), reason="its agent left"),
        refused(agent, RefusalCode.SUPERSEDED, "a newer session took over"),
        confirmed(3),
    ]
    assert cluster.report(agent, a_status(F, state=S.FINISHED, sequence=2)) == []
    assert cluster.agent_leaves(agent) == []
    assert cluster.state(F) is S.RUNNING


def test_a_silent_session_counts_as_broken() -> None:
    cluster, agent, _ = a_running_task()
    cluster.wait(15_000)
    cluster.step(events.AgentBeat(session=agent, used=()))

    assert cluster.wait(19_999) == []
    assert cluster.wait(1) == [refused(agent, RefusalCode.TOO_SLOW, "nothing heard for 20000 ms")]
    assert cluster.master.agents[A].state is AgentState.DISCONNECTED


def test_an_agent_that_is_reported_gone_is_asked_at_once_and_given_up_without_an_answer() -> None:
    cluster = Cluster()
    agent = cluster.new_agent(answers_ping=True)

    assert cluster.step(events.AgentDoubted(agent_id=A)) == [PingAgent(session=agent)]
    assert cluster.step(events.AgentDoubted(agent_id=A)) == []
    assert cluster.machine.next_deadline_ms(cluster.now_ms) == cluster.now_ms + 3_000
    assert cluster.wait(2_999) == []
    detail = "reported gone, and no answer within 3000 ms"
    assert cluster.wait(1) == [refused(agent, RefusalCode.TOO_SLOW, detail)]
    assert cluster.master.agents[A].state is AgentState.DISCONNECTED
    assert cluster.master.agents_doubted == {}


def test_an_agent_that_answers_is_no_longer_doubted() -> None:
    cluster = Cluster()
    agent = cluster.new_agent(answers_ping=True)
    cluster.step(events.AgentDoubted(agent_id=A))

    cluster.step(events.AgentBeat(session=agent, used=()))

    assert cluster.wait(19_999) == []
    assert cluster.master.agents[A].state is AgentState.ACTIVE


def test_an_agent_that_leaves_while_it_is_doubted_is_forgotten_there() -> None:
    cluster = Cluster()
    agent = cluster.new_agent(answers_ping=True)
    cluster.step(events.AgentDoubted(agent_id=A))

    cluster.agent_leaves(agent)

    assert cluster.master.agents_doubted == {}
    assert cluster.wait(3_000) == []


def test_nobody_asks_an_agent_that_is_away_unknown_or_does_not_know_the_question() -> None:
    cluster = Cluster()
    cluster.new_agent()

    assert cluster.step(events.AgentDoubted(agent_id=A)) == []
    assert cluster.step(events.AgentDoubted(agent_id=AgentId("a1-9"))) == []


def test_nothing_is_offered_on_an_agent_that_is_away_and_its_tasks_stay_charged() -> None:
    cluster, agent, framework = a_running_task()
    cluster.agent_leaves(agent)
    cluster.demand(framework, a_class())

    assert cluster.offers() == []
    assert charged(cluster) == resources(1, 1)
    cluster.agent(agent_id="a1-1", tasks=[a_running(F)])
    assert [offer.units for offer in cluster.offers()] == [1]


def test_a_launch_that_went_down_with_the_session_is_dropped_when_the_agent_returns() -> None:
    cluster = Cluster()
    agent = cluster.new_agent()
    framework, _ = cluster.new_framework()
    cluster.launch(framework, "t1")
    cluster.agent_leaves(agent)

    back = cluster.agent(agent_id="a1-1")

    message = "the launch did not reach agent a1-1 before its session broke"
    assert back == [
        confirmed(3),
        told(framework, S.DROPPED, Reason.AGENT_DISCONNECTED, message, cluster.now_ms),
    ]


def test_a_staging_deadline_does_not_judge_an_agent_that_is_away() -> None:
    cluster = Cluster()
    agent = cluster.new_agent()
    framework, _ = cluster.new_framework()
    cluster.launch(framework, "t1")
    cluster.agent_leaves(agent)

    assert cluster.wait(60_000) == []
    assert cluster.state(F) is S.STAGING
    back = cluster.agent(agent_id="a1-1", tasks=[a_running(F)], unacknowledged=[a_status(F)])
    assert back == [confirmed(3), ForwardStatuses(session=framework, statuses=(a_status(F),))]


def test_a_task_the_agent_came_back_without_is_lost() -> None:
    cluster, agent, framework = a_running_task()
    cluster.agent_leaves(agent)

    assert cluster.agent(agent_id="a1-1", incarnation=2)[-1] == told(
        framework, S.LOST, Reason.AGENT_RESTARTED, "agent a1-1 is back without the task", cluster.now_ms
    )
    assert charged(cluster) == resources()


def test_an_end_that_could_not_be_delivered_comes_with_the_registration() -> None:
    cluster, agent, framework = a_running_task()
    cluster.agent_leaves(agent)
    over = a_status(F, state=S.FINISHED, sequence=2, exit_code=0)

    assert cluster.agent(agent_id="a1-1", unacknowledged=[over]) == [
        confirmed(3),
        ForwardStatuses(session=framework, statuses=(over,)),
    ]
    assert cluster.state(F) is S.FINISHED


def test_a_task_of_an_agent_that_stays_away_is_unreachable_and_its_resources_count_for_nobody() -> None:
    cluster, agent, framework = a_running_task()
    cluster.agent_leaves(agent)

    given_up = cluster.wait(75_000)

    message = "agent a1-1 has been away for 75000 ms"
    assert given_up == [
        stored(is_away=True),
        told(framework, S.UNREACHABLE, Reason.AGENT_DISCONNECTED, message, cluster.now_ms),
    ]
    assert charged(cluster) == resources()


def test_a_task_returns_from_unreachable_with_its_agent() -> None:
    cluster, agent, framework = a_running_task()
    cluster.acknowledge(framework, ("t1", 1, "a1-1"))
    cluster.agent_leaves(agent)
    cluster.wait(75_000)

    back = cluster.agent(agent_id="a1-1", tasks=[a_running(F)])

    assert back == [
        stored(),
        confirmed(3),
        told(framework, S.RUNNING, Reason.AGENT_RETURNED, "agent a1-1 is back with the task", cluster.now_ms),
    ]
    assert charged(cluster) == resources(1, 1)
    over = a_status(F, state=S.FINISHED, sequence=2)
    assert cluster.report(3, over) == [ForwardStatuses(session=framework, statuses=(over,))]


def test_the_end_of_an_unreachable_task_is_believed_when_its_agent_returns() -> None:
    cluster, agent, framework = a_running_task()
    cluster.agent_leaves(agent)
    cluster.wait(75_000)
    over = a_status(F, state=S.FINISHED, sequence=2)

    assert cluster.agent(agent_id="a1-1", unacknowledged=[over])[2:] == [
        ForwardStatuses(session=framework, statuses=(over,))
    ]
    assert charged(cluster) == resources()


def test_an_agent_that_never_returns_is_forgotten_and_its_tasks_are_gone() -> None:
    cluster, agent, framework = a_running_task()
    cluster.agent_leaves(agent)
    cluster.wait(75_000)

    forgotten = cluster.wait(DAY_MS)

    message = f"agent a1-1 was given up after {DAY_MS} ms"
    assert forgotten == [
        told(framework, S.GONE, Reason.AGENT_REMOVED, message, cluster.now_ms),
        AnnounceAgentGone(session=framework, agent_id=A, reason="away too long"),
        actions.ForgetAgent(agent_id=A),
    ]
    assert cluster.master.agents == {}


def test_tasks_of_an_agent_that_was_forgotten_do_not_come_back_to_life() -> None:
    cluster, agent, framework = a_running_task()
    cluster.agent_leaves(agent)
    cluster.wait(75_000 + DAY_MS)
    cluster.master.finished.clear()  # As after a restart of the master, or ten thousand other tasks.

    back = cluster.agent(agent_id="a1-1", tasks=[a_running(F)])

    assert back == [stored(), confirmed(3), killed(3, "t1", Reason.AGENT_REMOVED)]
    assert cluster.state(F) is None
    assert framework == cluster.master.frameworks[F].session


def test_a_killed_task_that_is_unreachable_is_ended_when_its_agent_returns() -> None:
    cluster, agent, framework = a_running_task()
    cluster.agent_leaves(agent)
    cluster.wait(75_000)
    cluster.kill(framework, "t1")

    assert cluster.agent(agent_id="a1-1", tasks=[a_running(F)])[-1] == killed(
        3, "t1", Reason.KILLED_BY_FRAMEWORK
    )


def test_a_running_task_of_a_framework_nobody_knows_is_killed() -> None:
    cluster = Cluster()
    session = cluster.new_agent()
    cluster.agent_leaves(session)

    back = cluster.agent(agent_id="a1-1", tasks=[a_running("f1-1")])

    assert back == [confirmed(2), killed(2, "t1", Reason.FRAMEWORK_REMOVED)]
    assert cluster.master.agents[A].tasks == {}


def test_a_task_that_was_given_up_is_killed_when_its_agent_brings_it_back() -> None:
    cluster = Cluster()
    agent = cluster.new_agent()
    framework, _ = cluster.new_framework()
    cluster.launch(framework, "t1")
    cluster.report(agent, a_status(F, state=S.LOST))

    back = cluster.agent(agent_id="a1-1", incarnation=2, tasks=[a_running(F)])

    assert back[-1] == killed(3, "t1", Reason.UNKNOWN_TASK)
    assert cluster.state(F) is S.LOST


def test_a_task_that_two_agents_report_stays_with_its_owner() -> None:
    cluster, _, _ = a_running_task()
    other = cluster.new_agent()
    cluster.agent_leaves(other)

    back = cluster.agent(agent_id="a1-2", tasks=[a_running(F)])

    assert back == [confirmed(4, "a1-2"), killed(4, "t1", Reason.UNKNOWN_TASK)]
    assert cluster.master.frameworks[F].tasks[TaskId("t1")].agent_id == A


def test_an_agent_that_shrank_below_its_tasks_gets_no_more_until_they_end() -> None:
    cluster, agent, framework = a_running_task()
    cluster.agent_leaves(agent)
    cluster.demand(framework, a_class(units=2, unit=resources(cpus=0.1)))

    back = cluster.agent(agent_id="a1-1", cpus=0.5, incarnation=2, tasks=[a_running(F)])

    assert back == [stored(cpus=0.5), confirmed(3)]
    assert cluster.master.agents[A].state is AgentState.OVERCOMMITTED
    assert cluster.offers() == []
    cluster.report(3, a_status(F, state=S.FINISHED, sequence=2))
    cluster.step(events.AgentBeat(session=3, used=()))
    assert cluster.master.agents[A].state is AgentState.ACTIVE
    assert [offer.units for offer in cluster.offers()] == [2]


def test_an_agent_that_shrank_and_still_covers_its_tasks_goes_on() -> None:
    cluster, agent, _ = a_running_task()
    cluster.agent_leaves(agent)

    cluster.agent(agent_id="a1-1", cpus=1, incarnation=2, tasks=[a_running(F)])

    assert cluster.master.agents[A].state is AgentState.ACTIVE
    assert cluster.master.allocator.free(A) == resources(0, 7)


def test_a_clock_that_is_off_by_an_hour_is_noted_and_nothing_else() -> None:
    cluster = Cluster()
    hour_ms = 3600 * 1000

    session = cluster.new_agent(agent_time_ms=cluster.now_ms + hour_ms)

    assert cluster.master.agents[A].clock_skew_ms == hour_ms
    framework, _ = cluster.new_framework()
    cluster.launch(framework, "t1")
    early = a_status(F)
    assert cluster.report(session, early) == [ForwardStatuses(session=framework, statuses=(early,))]


def test_attributes_of_an_agent_that_comes_back_count_from_then_on() -> None:
    cluster = Cluster()
    session = cluster.new_agent(attributes={"rack": "a"})
    cluster.agent_leaves(session)

    cluster.agent(agent_id="a1-1", attributes={"rack": "b"})

    assert cluster.master.agents[A].attributes["rack"] == "b"
    assert cluster.master.agents[A].attributes["hostname"] == "host"


def test_a_task_that_was_being_killed_is_killed_again_when_its_agent_returns_from_unreachable() -> None:
    cluster, agent, framework = a_running_task()
    cluster.kill(framework, "t1")
    cluster.agent_leaves(agent)
    cluster.wait(75_000)

    back = cluster.agent(agent_id="a1-1", tasks=[a_running(F, state=S.KILLING, sequence=2)])

    assert back[-1] == killed(3, "t1", Reason.KILLED_BY_FRAMEWORK)
    assert cluster.state(F) is S.KILLING
