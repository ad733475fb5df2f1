"""Which final state follows from how a process ended and what was asked of it."""

import pytest

from fairlead_agent.core.actions import ForgetProcess, SendStatuses
from fairlead_agent.core.events import ExecutorConnected, ExecutorLost, ProcessStartFailed, Tick
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import TaskStatus, TaskUsage
from tests.agent.builders import (
    Driver,
    a_key,
    a_kill,
    a_launch,
    a_registered_agent,
    a_running_agent,
    a_spec,
    a_start,
    a_status,
    an_exit,
)


def the_end(agent: Driver, task: str = "t1") -> TaskStatus:
    return agent.machine.state.over[a_key(task)]


def test_exit_code_zero_is_finished_and_the_executor_may_forget() -> None:
    agent = a_running_agent("t1")
    usage = TaskUsage(cpu_time_ms=7, sandbox_bytes=10)

    actions = agent.step(an_exit(usage=usage))

    end = a_status(sequence=2, state=TaskState.FINISHED, exit_code=0, usage=usage)
    assert actions == [ForgetProcess(key=a_key()), SendStatuses(statuses=(end,))]


def test_exit_code_other_than_zero_is_failed() -> None:
    agent = a_running_agent("t1")

    agent.step(an_exit(code=3))

    assert the_end(agent) == a_status(
        sequence=2, state=TaskState.FAILED, reason=Reason.EXITED, message="exit code 3", exit_code=3
    )


def test_signal_nobody_here_sent_is_failed() -> None:
    agent = a_running_agent("t1")

    agent.step(an_exit(code=None, signal=11))

    assert the_end(agent) == a_status(
        sequence=2, state=TaskState.FAILED, reason=Reason.SIGNALED, message="ended by signal 11", signal=11
    )


def test_out_of_memory_names_limit_and_peak() -> None:
    agent = a_running_agent("t1")
    usage = TaskUsage(mem_limit_bytes=512 * 1024**2, mem_peak_bytes=512 * 1024**2)

    agent.step(an_exit(code=None, signal=9, is_out_of_memory=True, usage=usage))

    end = the_end(agent)
    assert (end.state, end.reason) == (TaskState.FAILED, Reason.OUT_OF_MEMORY)
    assert end.message == "out of memory: limit 512MiB, peak 512MiB"


def test_out_of_memory_without_figures_repeats_what_the_executor_says() -> None:
    agent = a_running_agent("t1")

    agent.step(an_exit(code=None, signal=9, is_out_of_memory=True, message="killed by the kernel"))

    assert the_end(agent).message == "killed by the kernel"


def test_out_of_memory_stands_although_a_kill_was_on_its_way() -> None:
    agent = a_running_agent("t1")
    agent.step(a_kill())

    agent.step(an_exit(code=None, signal=9, is_out_of_memory=True))

    assert the_end(agent).reason is Reason.OUT_OF_MEMORY


@pytest.mark.parametrize(("code", "signal"), [(None, 15), (None, 9), (0, None), (143, None)])
def test_end_after_a_kill_is_killed_with_the_reason_given(code: int | None, signal: int | None) -> None:
    agent = a_running_agent("t1")
    agent.step(a_kill(reason=Reason.KILLED_BY_OPERATOR))

    agent.step(an_exit(code=code, signal=signal))

    end = the_end(agent)
    assert (end.state, end.reason) == (TaskState.KILLED, Reason.KILLED_BY_OPERATOR)
    assert (end.exit_code, end.signal) == (code, signal)


def test_end_that_crossed_the_kill_is_what_it_was() -> None:
    agent = a_running_agent("t1")
    agent.step(a_kill(), after_ms=100)

    agent.step(an_exit(code=0, ended_ms=agent.now_ms - 50))

    assert the_end(agent).state is TaskState.FINISHED


def test_longest_runtime_is_a_failure_whatever_the_exit_code() -> None:
    agent = a_running_agent(a_spec("t1", max_runtime_ms=10_000))
    agent.step(Tick(), after_ms=10_000)

    agent.step(an_exit(code=0))

    end = the_end(agent)
    assert (end.state, end.reason) == (TaskState.FAILED, Reason.MAX_RUNTIME)
    assert end.message == "ran longer than its 10 s"


def test_repeated_end_is_forgotten_and_not_reported() -> None:
    agent = a_running_agent("t1")
    agent.step(an_exit())

    assert agent.step(an_exit()) == [ForgetProcess(key=a_key())]
    failed = ProcessStartFailed(key=a_key(), reason=Reason.SANDBOX_FAILED, message="full")
    assert agent.step(failed) == [ForgetProcess(key=a_key())]


def test_kill_before_a_start_that_fails_is_killed() -> None:
    agent = a_registered_agent()
    agent.step(a_launch(), a_kill())

    agent.step(ProcessStartFailed(key=a_key(), reason=Reason.COMMAND_NOT_FOUND, message="no nonsuch in PATH"))

    end = the_end(agent)
    assert (end.state, end.reason) == (TaskState.KILLED, Reason.KILLED_BY_FRAMEWORK)
    assert end.exit_code is None


def test_tasks_of_a_dead_executor_fail_unless_their_exit_is_known() -> None:
    agent = a_running_agent("t1", "t2", "t3")
    agent.step(ExecutorLost())
    assert set(agent.machine.state.live) == {a_key("t1"), a_key("t2"), a_key("t3")}

    agent.step(ExecutorConnected(isolation="none", running=(a_key("t3"),), ended=(an_exit("t1", code=0),)))

    assert the_end(agent, "t1").state is TaskState.FINISHED
    assert (the_end(agent, "t2").state, the_end(agent, "t2").reason) == (
        TaskState.LOST,
        Reason.EXECUTOR_FAILED,
    )
    assert list(agent.machine.state.live) == [a_key("t3")]


def test_end_that_nobody_saw_is_the_executors_failure() -> None:
    agent = a_running_agent("t1")

    agent.step(an_exit(code=None, message="the executor that ran it died"))

    end = the_end(agent)
    assert (end.state, end.reason) == (TaskState.LOST, Reason.EXECUTOR_FAILED)


def test_end_without_a_start_ever_seen_goes_straight_to_its_state() -> None:
    agent = a_running_agent()
    agent.step(a_start("t1"), an_exit("t1"))

    assert the_end(agent, "t1").state is TaskState.FINISHED
