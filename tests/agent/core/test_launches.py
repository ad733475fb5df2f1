"""A task is started at most once, and the master always learns where it is."""

import pytest

from fairlead_agent.core import limits
from fairlead_agent.core.actions import Checkpoint, SendStatuses, StartProcess
from fairlead_agent.core.events import (
    ExecutorLost,
    Ordered,
    ProcessStartFailed,
    SessionClosed,
    SessionOpened,
    Tick,
)
from fairlead_agent.core.records import StatusMade, TaskLaunched
from fairlead_proto.ids import FrameworkId, TaskId
from fairlead_proto.orders import UnreadableLaunch
from fairlead_proto.task_state import Reason, TaskState
from tests.agent.builders import (
    START_MS,
    a_key,
    a_launch,
    a_registered_agent,
    a_registration,
    a_running_agent,
    a_spec,
    a_start,
    a_status,
    an_ack,
    an_exit,
)


def test_launch_is_written_down_before_the_process_is_ordered() -> None:
    agent = a_registered_agent()
    spec = a_spec(environment={"PASSWORD": "secret"})

    actions = agent.machine.turn([a_launch(a_spec(environment={"PASSWORD": "secret"}))], START_MS)

    launched = TaskLaunched(framework_id=FrameworkId("f1"), spec=a_spec(environment={}), launched_ms=START_MS)
    assert actions == [
        Checkpoint(records=(launched,)),
        StartProcess(framework_id=FrameworkId("f1"), spec=spec),
    ]


def test_running_is_reported_with_sequence_one_after_its_record() -> None:
    agent = a_registered_agent()
    agent.step(a_launch())

    actions = agent.machine.turn([a_start()], START_MS)

    assert actions == [
        Checkpoint(records=(StatusMade(status=a_status()),), is_durable=True),
        SendStatuses(statuses=(a_status(),)),
    ]


def test_start_said_twice_is_reported_once() -> None:
    agent = a_registered_agent()
    agent.step(a_launch(), a_start())

    assert agent.step(a_start()) == []


def test_duplicate_launch_of_a_running_task_repeats_its_status_and_starts_nothing() -> None:
    agent = a_running_agent("t1")

    assert agent.step(a_launch("t1")) == [SendStatuses(statuses=(a_status(),))]


def test_duplicate_launch_in_one_batch_starts_one_process() -> None:
    agent = a_registered_agent()

    actions = agent.step(a_launch("t1", "t1"))

    assert [action for action in actions if isinstance(action, StartProcess)] == [
        StartProcess(framework_id=FrameworkId("f1"), spec=a_spec())
    ]


def test_duplicate_launch_before_the_start_is_confirmed_as_starting() -> None:
    agent = a_registered_agent()
    agent.step(a_launch())

    assert agent.step(a_launch()) == [SendStatuses(statuses=(a_status(state=TaskState.STARTING),))]


def test_duplicate_launch_of_an_ended_and_acknowledged_task_repeats_its_end() -> None:
    agent = a_running_agent("t1")
    agent.step(an_exit(), an_ack(sequence=2))

    end = a_status(sequence=2, state=TaskState.FINISHED, exit_code=0)
    assert agent.step(a_launch()) == [SendStatuses(statuses=(end,))]
    # The repeat is kept until acknowledged, as any status is.
    agent.step(an_ack(sequence=2))
    assert agent.machine.state.outboxes == {}


def test_ended_tasks_are_remembered_up_to_a_bound() -> None:
    agent = a_running_agent("t1", "t2", "t3", history_count_max=2)

    for task in ("t1", "t2", "t3"):
        agent.step(an_exit(task), an_ack(task, 2))

    assert list(agent.machine.state.over) == [a_key("t2"), a_key("t3")]


def test_unacknowledged_end_is_remembered_whatever_the_bound() -> None:
    agent = a_running_agent("t1", "t2", "t3", history_count_max=1)

    agent.step(an_exit("t1"))
    for task in ("t2", "t3"):
        agent.step(an_exit(task), an_ack(task, 2))

    assert list(agent.machine.state.over) == [a_key("t1"), a_key("t3")]


def test_slow_start_is_confirmed_before_the_masters_patience_ends() -> None:
    agent = a_registered_agent()
    agent.step(a_launch())

    assert agent.machine.next_deadline_ms() == START_MS + limits.SLOW_START_MS
    actions = agent.step(Tick(), after_ms=limits.SLOW_START_MS)
    starting = a_status(state=TaskState.STARTING, timestamp_ms=agent.now_ms)
    assert actions == [SendStatuses(statuses=(starting,))]
    assert agent.step(a_start()) == [
        SendStatuses(statuses=(a_status(sequence=2, timestamp_ms=agent.now_ms),))
    ]


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (Reason.COMMAND_NOT_FOUND, 127),
        (Reason.COMMAND_NOT_EXECUTABLE, 126),
        (Reason.SANDBOX_FAILED, None),
    ],
)
def test_failed_start_is_a_failure_with_its_reason_and_the_exit_code_of_a_shell(
    reason: Reason, code: int | None
) -> None:
    agent = a_registered_agent()
    agent.step(a_launch())

    agent.step(ProcessStartFailed(key=a_key(), reason=reason, message="no nonsuch in PATH"))

    assert agent.machine.state.over[a_key()] == a_status(
        state=TaskState.FAILED, reason=reason, message="no nonsuch in PATH", exit_code=code
    )


UNREADABLE = UnreadableLaunch(
    framework_id=FrameworkId("f1"), task_id=TaskId("t1"), detail="task.command: expected a word"
)


def test_unreadable_launch_is_an_error_and_stays_one() -> None:
    agent = a_registered_agent()
    error = a_status(
        state=TaskState.ERROR, reason=Reason.INVALID_TASK, message="task.command: expected a word"
    )

    assert agent.step(Ordered(1, UNREADABLE)) == [SendStatuses(statuses=(error,))]
    assert agent.step(a_launch()) == [SendStatuses(statuses=(error,))]


def test_unreadable_launch_of_a_known_task_repeats_its_status() -> None:
    agent = a_running_agent("t1")

    assert agent.step(Ordered(1, UNREADABLE)) == [SendStatuses(statuses=(a_status(),))]


def test_launch_waits_for_an_executor_that_is_being_replaced() -> None:
    agent = a_registered_agent()
    agent.step(ExecutorLost())

    assert agent.step(a_launch(a_spec(environment={"A": "1"}))) == []
    actions = agent.start()  # a second AgentStarted does no harm; what counts is the executor

    assert StartProcess(framework_id=FrameworkId("f1"), spec=a_spec(environment={"A": "1"})) in actions
    assert agent.machine.state.unordered == {}


def test_launches_of_two_frameworks_with_one_task_id_are_two_tasks() -> None:
    agent = a_registered_agent()

    actions = agent.step(a_launch("t1", framework="f1"), a_launch("t1", framework="f2"))

    assert [action.framework_id for action in actions if isinstance(action, StartProcess)] == ["f1", "f2"]


def test_launch_repeated_over_a_new_session_starts_nothing() -> None:
    agent = a_running_agent("t1")
    agent.step(SessionClosed(), SessionOpened(), a_registration())

    actions = agent.step(a_launch())

    assert not [action for action in actions if isinstance(action, StartProcess)]
