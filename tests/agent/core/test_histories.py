"""Random histories: whatever happens, in whatever order, the promises of the agent hold after every step."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fairlead_agent.core.actions import (
    ForgetProcess,
    RemoveSandboxes,
    SendRegistration,
    SendStatuses,
    StartProcess,
)
from fairlead_agent.core.deadlines import Due
from fairlead_agent.core.events import (
    DiskMeasured,
    ExecutorConnected,
    ExecutorLost,
    ProcessStartFailed,
    SessionClosed,
    SessionOpened,
    Tick,
)
from fairlead_agent.core.records import StatusesAccepted, StatusMade
from fairlead_proto.ids import TaskKey
from fairlead_proto.task_state import TRANSITIONS, Reason, TaskState, is_terminal
from fairlead_proto.tasks import TaskStatus
from tests.agent.builders import (
    BOOT,
    GIB,
    Driver,
    a_key,
    a_kill,
    a_launch,
    a_registration,
    a_spec,
    an_ack,
    an_exit,
)

TASKS = st.sampled_from([f"t{number}" for number in range(4)])


class AgentHistories(RuleBasedStateMachine):
    """An agent between a master that repeats and forgets, and an executor that may die; crashes at any moment.

    The executor is modelled as what it is: it runs what it is told to, keeps ends until told to forget, and outlives
    the agent.
    """

    def __init__(self) -> None:
        super().__init__()
        self.agent = Driver(history_count_max=100)
        self.agent.start()
        self.agent.step(SessionOpened(), a_registration())
        self.processes: dict[TaskKey, None] = {}
        self.ends: dict[TaskKey, Any] = {}
        self.epoch = 1
        self.accepted: dict[TaskKey, int] = {}

    def do(self, *events: Any, after_ms: int = 0) -> None:
        for action in self.agent.step(*events, after_ms=after_ms):
            if isinstance(action, StartProcess):
                self.processes[action.framework_id, action.spec.task_id] = None
            elif isinstance(action, ForgetProcess):
                self.ends.pop(action.key, None)

    @rule(task=TASKS, runtime_ms=st.sampled_from([0, 5_000]))
    def launch(self, task: str, runtime_ms: int) -> None:
        self.do(a_launch(a_spec(task, max_runtime_ms=runtime_ms), epoch=self.epoch))

    @rule(task=TASKS, grace_ms=st.sampled_from([0, 100]))
    def kill(self, task: str, grace_ms: int) -> None:
        self.do(a_kill(task, grace_ms=grace_ms, epoch=self.epoch))

    @rule(task=TASKS, sequence=st.integers(0, 5))
    def acknowledge(self, task: str, sequence: int) -> None:
        self.do(an_ack(task, sequence, epoch=self.epoch))

    @rule(task=TASKS)
    def process_starts(self, task: str) -> None:
        if a_key(task) in self.processes and self.agent.machine.state.is_executor_connected:
            self.do(ExecutorConnected(isolation="none", running=tuple(self.processes)))

    @rule(task=TASKS, code=st.sampled_from([0, 1, None]), early_ms=st.sampled_from([0, 1_000]))
    def process_ends(self, task: str, code: int | None, early_ms: int) -> None:
        key = a_key(task)
        if key in self.processes:
            del self.processes[key]
            signal = None if code is not None else 15
            end = an_exit(task, code, signal=signal, ended_ms=self.agent.now_ms - early_ms)
            self.ends[key] = end
            if self.agent.machine.state.is_executor_connected:
                self.do(end)

    @rule(task=TASKS)
    def start_fails(self, task: str) -> None:
        key = a_key(task)
        live = self.agent.machine.state.live.get(key)
        if key in self.processes and live is not None and live.state is TaskState.STARTING:
            del self.processes[key]
            self.ends[key] = ProcessStartFailed(key=key, reason=Reason.COMMAND_NOT_FOUND, message="none")
            if self.agent.machine.state.is_executor_connected:
                self.do(self.ends[key])

    @rule()
    def session_breaks(self) -> None:
        self.do(SessionClosed())

    @rule(is_new_master=st.booleans())
    def session_begins(self, is_new_master: bool) -> None:
        self.epoch += is_new_master
        self.do(SessionClosed(), SessionOpened(), a_registration(epoch=self.epoch))

    @rule()
    def old_master_speaks(self) -> None:
        if self.agent.machine.state.epoch > 0:
            before = self.agent.machine.snapshot()
            self.do(a_launch("t0", epoch=self.agent.machine.state.epoch - 1))
            assert self.agent.machine.snapshot() == before

    @rule()
    def executor_dies(self) -> None:
        if self.agent.machine.state.is_executor_connected:
            self.do(ExecutorLost())
            self.processes.clear()

    @rule()
    def executor_comes(self) -> None:
        self.do(
            ExecutorConnected(
                isolation="none", running=tuple(self.processes), ended=tuple(self.ends.values())
            )
        )

    @rule(is_reboot=st.booleans())
    def agent_restarts(self, is_reboot: bool) -> None:
        self.agent.restart()
        if is_reboot:
            self.processes.clear()
        boot_id = f"boot-{self.agent.now_ms}" if is_reboot else self.agent.machine.state.boot_id or BOOT
        before = len(self.agent.history)
        self.agent.start(running=tuple(self.processes), ended=tuple(self.ends.values()), boot_id=boot_id)
        for action in self.agent.history[before:]:
            if isinstance(action, ForgetProcess):
                self.ends.pop(action.key, None)

    @rule(after_ms=st.sampled_from([1, 1_000, 10_000]))
    def time_passes(self, after_ms: int) -> None:
        self.do(Tick(), after_ms=after_ms)

    @rule()
    def disk_fills(self) -> None:
        self.do(DiskMeasured(total_bytes=100 * GIB, free_bytes=0))

    # What holds after every step.

    @invariant()
    def statuses_are_numbered_without_gaps_and_move_along_the_table(self) -> None:
        states: dict[TaskKey, TaskState] = {}
        sequences: dict[TaskKey, int] = {}
        for record in self.agent.journal:
            if isinstance(record, StatusMade):
                status = record.status
                assert status.sequence == sequences.get(status.key, 0) + 1
                before = states.get(status.key, TaskState.STAGING)
                assert status.state in TRANSITIONS[before]
                sequences[status.key], states[status.key] = status.sequence, status.state

    @invariant()
    def every_status_is_kept_until_acknowledged(self) -> None:
        made: dict[TaskKey, list[TaskStatus]] = {}
        accepted: dict[TaskKey, int] = {}
        for record in self.agent.journal:
            match record:
                case StatusMade():
                    made.setdefault(record.status.key, []).append(record.status)
                case StatusesAccepted():
                    accepted[record.key] = record.sequence
                case _:
                    pass
        outboxes = self.agent.machine.state.outboxes
        for key, statuses in made.items():
            outbox = outboxes.get(key, [])
            # The last ones, without a gap: all that are not acknowledged, and one more where a launch was repeated after
            # its status had been.
            assert outbox == statuses[len(statuses) - len(outbox) :]
            assert len(outbox) >= statuses[-1].sequence - accepted.get(key, 0)
        assert all(outboxes.values())

    @invariant()
    def no_process_is_ordered_twice(self) -> None:
        started = [
            (action.framework_id, action.spec.task_id)
            for action in self.agent.history
            if isinstance(action, StartProcess)
        ]
        assert len(started) == len(set(started))

    @invariant()
    def each_task_is_alive_or_over(self) -> None:
        state = self.agent.machine.state
        assert not state.live.keys() & state.over.keys()
        assert not any(is_terminal(task.state) for task in state.live.values())
        assert all(is_terminal(status.state) for status in state.over.values())
        assert state.history.keys() <= state.over.keys()
        assert state.unordered.keys() <= state.live.keys()
        assert all(task.is_ordered or key in state.unordered for key, task in state.live.items())

    @invariant()
    def running_tasks_keep_their_sandboxes(self) -> None:
        state = self.agent.machine.state
        assert not state.sandboxes.keys() & state.live.keys()
        assert state.sandbox_bytes == sum(sandbox.size_bytes for sandbox in state.sandboxes.values())
        for action in self.agent.history[-5:]:
            if isinstance(action, RemoveSandboxes):
                assert not set(action.keys) & state.live.keys()

    @invariant()
    def what_is_owed_has_a_time_to_be_sent_again(self) -> None:
        state = self.agent.machine.state
        if state.is_registered:
            assert all((Due.RESEND, key) in state.deadlines for key in state.outboxes)
        assert state.resend_delays_ms.keys() <= state.outboxes.keys()

    @invariant()
    def journal_and_snapshot_tell_the_same(self) -> None:
        other = Driver(history_count_max=100)
        other.journal = self.agent.machine.snapshot()
        other.restart()
        again = Driver(history_count_max=100)
        again.journal = self.agent.journal
        again.restart()
        state, replayed = other.machine.state, again.machine.state
        assert state.live == replayed.live
        assert state.over == replayed.over
        assert list(state.history) == list(replayed.history)
        assert replayed.outboxes.keys() <= state.outboxes.keys()

    def teardown(self) -> None:
        """When faults stop, every status gets through and every task ends."""
        self.do(SessionClosed())
        self.executor_comes()
        self.epoch += 1
        self.do(SessionOpened(), a_registration(epoch=self.epoch))
        for task in ("t0", "t1", "t2", "t3"):
            self.do(a_kill(task, epoch=self.epoch))
        for key in list(self.processes):
            del self.processes[key]
            self.do(an_exit(key[1], None, signal=15))
        heard = [
            status
            for action in self.agent.history
            if isinstance(action, SendStatuses | SendRegistration)
            for status in (
                action.statuses if isinstance(action, SendStatuses) else action.report.unacknowledged
            )
        ]
        for status in heard:
            self.do(an_ack(status.task_id, status.sequence, epoch=self.epoch))
        state = self.agent.machine.state
        assert state.live == {}
        assert state.outboxes == {}
        assert {a_key(f"t{number}") for number in range(4)} == state.over.keys()


AgentHistories.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestAgentHistories = AgentHistories.TestCase
