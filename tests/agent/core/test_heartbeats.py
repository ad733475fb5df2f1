"""Heartbeats and leaving."""

from fairlead_agent.core import limits
from fairlead_agent.core.actions import (
    LeaveCluster,
    MeasureDisk,
    MeasureUsage,
    SendGoodbye,
    SendHeartbeat,
    SendStatuses,
    StopExecutor,
    TerminateProcess,
)
from fairlead_agent.core.events import (
    ExecutorLost,
    LeaveRequested,
    Ordered,
    SessionClosed,
    SessionOpened,
    Tick,
    UsageMeasured,
)
from fairlead_proto.orders import PingAgent
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import TaskUsage
from tests.agent.builders import (
    GIB,
    Driver,
    a_key,
    a_launch,
    a_registered_agent,
    a_registration,
    a_running_agent,
    a_spec,
    a_status,
    an_exit,
)


def a_beating_agent(*tasks: str) -> Driver:
    agent = a_running_agent(*tasks) if tasks else a_registered_agent()
    agent.step(SessionClosed(), SessionOpened(), a_registration(heartbeat_ms=5_000))
    return agent


def measured(cpu_time_ms: int, task: str = "t1", mem_bytes: int = GIB) -> UsageMeasured:
    usage = TaskUsage(cpu_time_ms=cpu_time_ms, mem_bytes=mem_bytes, sandbox_bytes=10)
    return UsageMeasured(measurements=((a_key(task), usage),))


def test_idle_agent_beats_without_measuring_tasks() -> None:
    agent = a_beating_agent()

    assert agent.machine.next_deadline_ms() == agent.now_ms + 5_000
    assert agent.step(Tick(), after_ms=5_000) == [MeasureDisk(), SendHeartbeat(used=(0, 0, 0, 0), tasks=())]
    assert agent.machine.next_deadline_ms() == agent.now_ms + 5_000


def test_a_ping_is_answered_at_once_with_the_latest_figures() -> None:
    agent = a_beating_agent()

    assert agent.step(Ordered(1, PingAgent())) == [SendHeartbeat(used=(0, 0, 0, 0), tasks=())]


def test_heartbeat_waits_for_the_measurement() -> None:
    agent = a_beating_agent("t1")

    assert agent.step(Tick(), after_ms=5_000) == [MeasureDisk(), MeasureUsage()]
    usage = TaskUsage(cpu_time_ms=100, mem_bytes=GIB, sandbox_bytes=10)
    assert agent.step(measured(100), after_ms=10) == [
        SendHeartbeat(used=(0, GIB, 10, 0), tasks=((a_key(), usage),))
    ]


def test_used_cpus_are_those_between_two_measurements() -> None:
    agent = a_beating_agent("t1")
    agent.step(Tick(), after_ms=5_000)
    agent.step(measured(60_000))

    agent.step(Tick(), after_ms=5_000)
    (heartbeat,) = agent.step(measured(67_500))

    assert isinstance(heartbeat, SendHeartbeat)
    assert heartbeat.used[0] == 1_500


def test_figures_that_did_not_change_are_not_repeated() -> None:
    agent = a_beating_agent("t1")
    agent.step(Tick(), after_ms=5_000)
    agent.step(measured(100))
    agent.step(Tick(), after_ms=5_000)

    assert agent.step(measured(100)) == [SendHeartbeat(used=(0, GIB, 10, 0), tasks=())]


def test_stuck_executor_does_not_stop_the_heart() -> None:
    agent = a_beating_agent("t1")
    agent.step(Tick(), after_ms=5_000)

    assert agent.step(Tick(), after_ms=limits.USAGE_WAIT_MS) == [SendHeartbeat(used=(0, 0, 0, 0), tasks=())]
    assert agent.step(measured(100)) == []  # late: it goes with the next one


def test_agent_without_executor_beats_at_once() -> None:
    agent = a_beating_agent("t1")
    agent.step(ExecutorLost())

    assert agent.step(Tick(), after_ms=5_000) == [MeasureDisk(), SendHeartbeat(used=(0, 0, 0, 0), tasks=())]


def test_measurement_of_an_ended_task_is_dropped() -> None:
    agent = a_beating_agent("t1")
    agent.step(an_exit())

    agent.step(measured(100))

    assert agent.machine.state.cpu_time_ms == {}


def test_no_heartbeat_without_a_session() -> None:
    agent = a_beating_agent()
    agent.step(SessionClosed())

    assert agent.machine.next_deadline_ms() is None


def test_leaving_lets_the_tasks_run_on() -> None:
    agent = a_running_agent("t1")

    actions = agent.step(LeaveRequested(is_stopping_tasks=False, reason="signal SIGTERM"))

    assert actions == [
        SendGoodbye(reason="signal SIGTERM"),
        LeaveCluster(is_refused=False, message="signal SIGTERM"),
    ]
    assert list(agent.machine.state.live) == [a_key()]


def test_leaving_without_a_session_says_no_goodbye() -> None:
    agent = a_registered_agent()
    agent.step(SessionClosed())

    assert agent.step(LeaveRequested(is_stopping_tasks=False, reason="bye")) == [
        LeaveCluster(is_refused=False, message="bye")
    ]


def test_stopping_ends_the_tasks_reports_them_and_ends_the_executor() -> None:
    agent = a_running_agent("t1")
    actions = agent.step(LeaveRequested(is_stopping_tasks=True, reason="bye"))
    assert actions[0] == TerminateProcess(key=a_key())

    actions = agent.step(an_exit(code=None, signal=15))

    killed = a_status(sequence=3, state=TaskState.KILLED, reason=Reason.AGENT_REMOVED, signal=15)
    assert actions[-4:] == [
        SendStatuses(statuses=(killed,)),
        SendGoodbye(reason="bye"),
        StopExecutor(),
        LeaveCluster(is_refused=False, message="bye"),
    ]


def test_stopping_waits_for_the_longest_grace_period_and_no_longer() -> None:
    agent = a_running_agent(a_spec("t1", kill_grace_period_ms=30_000), "t2")
    agent.step(LeaveRequested(is_stopping_tasks=True, reason="bye"))
    waited_ms = 30_000 + limits.LEAVE_PATIENCE_MS

    assert LeaveCluster(is_refused=False, message="bye") not in agent.step(Tick(), after_ms=waited_ms - 1)
    assert LeaveCluster(is_refused=False, message="bye") in agent.step(Tick(), after_ms=1)


def test_asked_twice_the_agent_does_not_wait() -> None:
    agent = a_running_agent("t1")
    agent.step(LeaveRequested(is_stopping_tasks=True, reason="bye"))

    actions = agent.step(LeaveRequested(is_stopping_tasks=True, reason="now"))

    assert actions[-1] == LeaveCluster(is_refused=False, message="bye")
    assert agent.step(LeaveRequested(is_stopping_tasks=True, reason="again")) == []


def test_launch_on_an_agent_that_leaves_is_dropped() -> None:
    agent = a_running_agent("t1")
    agent.step(LeaveRequested(is_stopping_tasks=True, reason="bye"))

    agent.step(a_launch("t2"))

    end = agent.machine.state.over[a_key("t2")]
    assert (end.state, end.reason) == (TaskState.DROPPED, Reason.AGENT_REMOVED)
