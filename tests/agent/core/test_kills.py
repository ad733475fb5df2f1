"""SIGTERM, a grace period, SIGKILL to everything."""

import pytest

from fairlead_agent.core import limits
from fairlead_agent.core.actions import (
    ForgetProcess,
    KillProcess,
    SendStatuses,
    StartExecutor,
    TerminateProcess,
)
from fairlead_agent.core.events import (
    ExecutorConnected,
    ExecutorLost,
    ProcessExited,
    ProcessStartFailed,
    Tick,
)
from fairlead_proto.task_state import Reason, TaskState
from tests.agent.builders import (
    a_key,
    a_kill,
    a_launch,
    a_registered_agent,
    a_running_agent,
    a_spec,
    a_start,
    a_status,
    an_ack,
    an_exit,
)


def test_kill_asks_first_and_forces_when_the_grace_period_is_over() -> None:
    agent = a_running_agent("t1")

    actions = agent.step(a_kill())

    killing = a_status(sequence=2, state=TaskState.KILLING, reason=Reason.KILLED_BY_FRAMEWORK)
    assert actions == [TerminateProcess(key=a_key()), SendStatuses(statuses=(killing,))]
    agent.step(an_ack(sequence=2))
    assert agent.step(Tick(), after_ms=limits.KILL_GRACE_PERIOD_MS - 1) == []
    assert agent.step(Tick(), after_ms=1) == [KillProcess(key=a_key())]


def test_grace_period_is_that_of_the_kill_then_of_the_task() -> None:
    agent = a_running_agent(a_spec("t1", kill_grace_period_ms=3_000))
    agent.step(a_kill(), an_ack(sequence=2))
    assert agent.machine.next_deadline_ms() == agent.now_ms + 3_000

    other = a_running_agent(a_spec("t1", kill_grace_period_ms=3_000))
    other.step(a_kill(grace_ms=1_000), an_ack(sequence=2))
    assert other.machine.next_deadline_ms() == other.now_ms + 1_000


def test_repeated_kill_can_shorten_the_grace_period_and_not_prolong_it() -> None:
    agent = a_running_agent("t1")
    agent.step(a_kill(grace_ms=4_000), an_ack(sequence=2))

    assert agent.step(a_kill(grace_ms=60_000)) == []
    assert agent.machine.next_deadline_ms() == agent.now_ms + 4_000
    assert agent.step(a_kill(grace_ms=1_000)) == []
    assert agent.machine.next_deadline_ms() == agent.now_ms + 1_000


def test_repeated_kill_of_a_forced_task_forces_again() -> None:
    agent = a_running_agent("t1")
    agent.step(a_kill(), an_ack(sequence=2))
    agent.step(Tick(), after_ms=limits.KILL_GRACE_PERIOD_MS)

    assert agent.step(a_kill()) == [KillProcess(key=a_key())]


def test_kill_of_a_task_that_never_came_is_dropped_and_its_late_launch_is_not_run() -> None:
    agent = a_registered_agent()

    actions = agent.step(a_kill("t9"))

    dropped = a_status(
        "t9",
        state=TaskState.DROPPED,
        reason=Reason.UNKNOWN_TASK,
        message="the agent was asked to end a task that had never reached it",
    )
    assert actions == [SendStatuses(statuses=(dropped,))]
    assert agent.step(a_launch("t9")) == [SendStatuses(statuses=(dropped,))]


def test_kill_of_a_task_that_is_over_repeats_its_end() -> None:
    agent = a_running_agent("t1")
    agent.step(an_exit(), an_ack(sequence=2))

    end = a_status(sequence=2, state=TaskState.FINISHED, exit_code=0)
    assert agent.step(a_kill()) == [SendStatuses(statuses=(end,))]


def test_kill_before_the_process_runs_does_not_wait_for_it() -> None:
    agent = a_registered_agent()
    agent.step(a_launch())

    actions = agent.step(a_kill())

    killing = a_status(state=TaskState.KILLING, reason=Reason.KILLED_BY_FRAMEWORK)
    assert actions == [TerminateProcess(key=a_key()), SendStatuses(statuses=(killing,))]
    assert agent.step(a_start()) == []
    agent.step(an_exit(code=None, signal=15))
    assert agent.machine.state.over[a_key()].state is TaskState.KILLED


def test_kill_of_a_task_that_waits_for_an_executor_ends_it_at_once() -> None:
    agent = a_registered_agent()
    agent.step(ExecutorLost(), a_launch())

    agent.step(a_kill())

    assert agent.machine.state.over[a_key()].state is TaskState.KILLED
    assert agent.step(ExecutorConnected(isolation="none")) == []


def test_kill_lost_with_an_executor_connection_is_given_again() -> None:
    agent = a_running_agent("t1", "t2")
    assert agent.step(ExecutorLost()) == [StartExecutor()]
    agent.step(a_kill("t1", grace_ms=1_000), a_kill("t2", grace_ms=60_000))
    agent.step(Tick(), after_ms=1_000)

    actions = agent.step(ExecutorConnected(isolation="none", running=(a_key("t1"), a_key("t2"))))

    assert actions == [KillProcess(key=a_key("t1")), TerminateProcess(key=a_key("t2"))]


def test_longest_runtime_ends_the_task_like_a_kill() -> None:
    agent = a_running_agent(a_spec("t1", max_runtime_ms=60_000))

    assert agent.machine.state.deadlines.next_ms() is not None
    actions = agent.step(Tick(), after_ms=60_000)

    assert TerminateProcess(key=a_key()) in actions
    task = agent.machine.state.live[a_key()]
    assert task.latest is not None
    assert (task.state, task.latest.reason) == (TaskState.KILLING, Reason.MAX_RUNTIME)
    assert KillProcess(key=a_key()) in agent.step(Tick(), after_ms=limits.KILL_GRACE_PERIOD_MS)


def test_process_of_a_task_that_is_over_is_ended() -> None:
    agent = a_running_agent("t1")
    agent.step(an_exit())

    assert agent.step(a_start()) == [KillProcess(key=a_key())]
    assert agent.step(an_exit()) == [ForgetProcess(key=a_key())]


@pytest.mark.parametrize(
    "end",
    [
        an_exit(code=None, signal=15),
        an_exit(code=0),
        ProcessStartFailed(key=a_key(), reason=Reason.SANDBOX_FAILED, message=""),
    ],
)
def test_launch_that_its_master_gave_up_ends_as_the_master_has_said(
    end: ProcessExited | ProcessStartFailed,
) -> None:
    """The next master knows only what the agent says, and a framework repeats what was DROPPED."""
    agent = a_running_agent("t1")
    agent.step(a_kill(reason=Reason.STAGING_TIMEOUT))

    actions = agent.step(end)

    (over,) = [status for action in actions if isinstance(action, SendStatuses) for status in action.statuses]
    assert (over.state, over.reason) == (TaskState.DROPPED, Reason.STAGING_TIMEOUT)


@pytest.mark.parametrize("reason", [Reason.UNKNOWN_TASK, Reason.AGENT_REMOVED])
@pytest.mark.parametrize("is_running", [True, False])
def test_task_that_its_master_gave_up_while_the_agent_was_away_is_lost(
    reason: Reason, is_running: bool
) -> None:
    """If that master dies before anybody heard it, a framework runs again what is LOST, and not what was KILLED."""
    agent = a_running_agent("t1") if is_running else a_registered_agent()
    if not is_running:
        agent.step(ExecutorLost())
        agent.step(a_launch("t1"))

    said = agent.step(a_kill(reason=reason))
    if is_running:
        said += agent.step(an_exit(code=None, signal=15))

    statuses = [status for action in said if isinstance(action, SendStatuses) for status in action.statuses]
    assert statuses[-1].state is TaskState.LOST
    # Not for UNKNOWN_TASK, by which an SDK knows what was never launched.
    assert {status.reason for status in statuses} == {Reason.AGENT_DISCONNECTED}


def test_launch_that_its_master_gave_up_before_its_process_was_ordered_is_dropped() -> None:
    agent = a_registered_agent()
    agent.step(ExecutorLost())
    agent.step(a_launch("t1"))

    actions = agent.step(a_kill(reason=Reason.STAGING_TIMEOUT))

    (over,) = [status for action in actions if isinstance(action, SendStatuses) for status in action.statuses]
    assert (over.state, over.reason) == (TaskState.DROPPED, Reason.STAGING_TIMEOUT)
