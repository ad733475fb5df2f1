"""A new process with the journal of the old one: nothing is lost, nothing is started twice."""

from fairlead_agent.core import limits
from fairlead_agent.core.actions import (
    ForgetProcess,
    KillProcess,
    SendRegistration,
    StartProcess,
    TerminateProcess,
)
from fairlead_agent.core.events import SessionOpened, Tick
from fairlead_proto.task_state import Reason, TaskState
from tests.agent.builders import (
    AGENT,
    BOOT,
    Driver,
    a_key,
    a_kill,
    a_launch,
    a_registered_agent,
    a_registration,
    a_running_agent,
    a_spec,
    an_ack,
    an_exit,
)


def the_end(agent: Driver, task: str = "t1") -> tuple[TaskState, Reason]:
    status = agent.machine.state.over[a_key(task)]
    return status.state, status.reason


def test_running_task_is_adopted_and_said_to_run() -> None:
    agent = a_running_agent("t1")

    agent.restart()
    actions = agent.start(running=[a_key()])
    (registration,) = agent.step(SessionOpened())

    assert actions == []
    assert isinstance(registration, SendRegistration)
    assert (
        registration.report.agent_id,
        registration.report.incarnation,
        registration.report.last_epoch,
    ) == (AGENT, 2, 1)
    assert [(task.key, task.state, task.sequence) for task in registration.report.tasks] == [
        (a_key(), TaskState.RUNNING, 1)
    ]


def test_how_long_a_task_has_run_survives_the_agent_and_what_it_no_longer_owes() -> None:
    agent = a_running_agent("t1")
    agent.step(an_ack())
    agent.step(a_kill(), after_ms=7_000)
    agent.step(an_ack("t1", 2))

    agent.journal = agent.machine.snapshot()
    agent.restart()
    agent.start(running=[a_key()])
    (registration,) = agent.step(SessionOpened(), after_ms=5_000)

    assert isinstance(registration, SendRegistration)
    assert [(task.state, task.ran_ms) for task in registration.report.tasks] == [(TaskState.KILLING, 12_000)]


def test_exit_while_the_agent_was_away_is_reported() -> None:
    agent = a_running_agent("t1")

    agent.restart()
    actions = agent.start(ended=[an_exit(code=3)])
    (registration,) = agent.step(SessionOpened())

    assert actions == [ForgetProcess(key=a_key())]
    assert isinstance(registration, SendRegistration)
    assert [(s.state, s.sequence, s.exit_code) for s in registration.report.unacknowledged] == [
        (TaskState.FAILED, 2, 3)
    ]


def test_start_not_yet_reported_is_reported_after_the_restart() -> None:
    agent = a_registered_agent()
    agent.step(a_launch())

    agent.restart()
    agent.start(running=[a_key()])

    assert agent.machine.state.live[a_key()].state is TaskState.RUNNING
    assert [status.sequence for status in agent.machine.state.outboxes[a_key()]] == [1]


def test_task_the_executor_does_not_know_is_lost_and_never_started_again() -> None:
    agent = a_registered_agent()
    agent.step(a_launch())

    agent.restart()
    agent.start()
    agent.step(SessionOpened(), a_registration(), a_launch())

    assert the_end(agent) == (TaskState.LOST, Reason.AGENT_RESTARTED)
    assert [action for action in agent.history if isinstance(action, StartProcess)] == [
        StartProcess(framework_id=a_key()[0], spec=a_spec())
    ]


def test_reboot_ends_every_task() -> None:
    agent = a_running_agent("t1", "t2")

    agent.restart()
    agent.start(boot_id="boot-2")

    assert the_end(agent, "t1") == the_end(agent, "t2") == (TaskState.LOST, Reason.AGENT_RESTARTED)
    assert agent.machine.state.live == {}


def test_unacknowledged_statuses_survive() -> None:
    agent = a_running_agent("t1")
    agent.step(an_exit())

    agent.restart()
    agent.start()
    (registration,) = agent.step(SessionOpened())

    assert isinstance(registration, SendRegistration)
    assert [status.state for status in registration.report.unacknowledged] == [TaskState.FINISHED]


def test_history_survives_so_that_a_late_launch_is_not_run() -> None:
    agent = a_running_agent("t1")
    agent.step(an_exit(), an_ack(sequence=2))

    agent.restart()
    agent.start()
    agent.step(SessionOpened(), a_registration())

    assert not [action for action in agent.step(a_launch()) if isinstance(action, StartProcess)]


def test_end_repeated_and_acknowledged_twice_is_remembered_once() -> None:
    agent = a_running_agent("t1")
    agent.step(an_exit(), an_ack(sequence=2), a_launch(), an_ack(sequence=2))

    agent.restart()

    assert list(agent.machine.state.history) == [a_key()]
    assert agent.machine.state.outboxes == {}


def test_kill_is_carried_on_with_its_reason() -> None:
    agent = a_running_agent("t1")
    agent.step(a_kill(reason=Reason.KILLED_BY_OPERATOR))

    agent.restart()
    assert agent.start(running=[a_key()]) == [TerminateProcess(key=a_key())]
    assert agent.step(Tick(), after_ms=limits.KILL_GRACE_PERIOD_MS) == [KillProcess(key=a_key())]
    agent.step(an_exit(code=None, signal=9))

    assert the_end(agent) == (TaskState.KILLED, Reason.KILLED_BY_OPERATOR)


def test_longest_runtime_counts_from_the_start_of_the_process() -> None:
    agent = a_running_agent(a_spec("t1", max_runtime_ms=60_000))
    agent.step(after_ms=50_000)

    agent.restart()
    agent.start(running=[a_key()])

    assert TerminateProcess(key=a_key()) in agent.step(Tick(), after_ms=10_000)


def test_process_nobody_knows_is_ended() -> None:
    agent = Driver()

    actions = agent.start(running=[a_key("t9")], ended=[an_exit("t8")])

    assert actions == [ForgetProcess(key=a_key("t8")), KillProcess(key=a_key("t9"))]


def test_environment_is_not_written_down() -> None:
    agent = a_registered_agent()

    agent.step(a_launch(a_spec(environment={"PASSWORD": "hunter2"})))

    assert "hunter2" not in repr(agent.journal)
    assert "hunter2" not in repr(agent.machine.state.live)


def test_snapshot_stands_for_the_whole_journal() -> None:
    agent = a_running_agent("t1", "t2", "t3", "t4")
    agent.step(a_launch("t5"), an_exit("t1"), an_exit("t2"), an_ack("t2", 2), a_kill("t3"), a_kill("t9"))
    agent.restart()

    snapshot = agent.machine.snapshot()
    other = Driver()
    other.journal = snapshot
    other.restart()

    assert other.machine.snapshot() == snapshot
    for field in ("live", "over", "history", "outboxes", "sandboxes", "agent_id", "epoch", "incarnation"):
        assert getattr(other.machine.state, field) == getattr(agent.machine.state, field), field


def test_same_boot_is_no_reboot() -> None:
    agent = a_running_agent("t1")

    agent.restart()
    agent.start(running=[a_key()], boot_id=BOOT)

    assert list(agent.machine.state.live) == [a_key()]
