"""The agent's state machine: one verb, ``step``."""

from enum import Enum, unique
from typing import assert_never

from fairlead_agent.core.actions import Action
from fairlead_agent.core.deadlines import Due
from fairlead_agent.core.events import (
    AgentStarted,
    DiskMeasured,
    Event,
    ExecutorConnected,
    ExecutorLost,
    KillRequested,
    LaunchRequested,
    LaunchUnreadable,
    LeaveRequested,
    MasterOrder,
    ProcessExited,
    ProcessStarted,
    ProcessStartFailed,
    Registered,
    RegistrationRefused,
    SandboxesFound,
    SessionClosed,
    SessionOpened,
    ShutdownRequested,
    StatusesAcknowledged,
    Tick,
    UsageMeasured,
)
from fairlead_agent.core.heartbeats import beat, send_heartbeat, take_usage
from fairlead_agent.core.kills import end_runtime, escalate, kill
from fairlead_agent.core.launches import confirm_slow_start, launch, refuse_unreadable
from fairlead_agent.core.leaving import begin_leave, finish_leave
from fairlead_agent.core.processes import (
    connect_executor,
    end_all_lost,
    end_process,
    lose_executor,
    start_process,
)
from fairlead_agent.core.records import Record
from fairlead_agent.core.registration import close_session, obeys, open_session, refuse, register
from fairlead_agent.core.restore import snapshot
from fairlead_agent.core.sandboxes import find_sandboxes, measure_disk, remove_expired
from fairlead_agent.core.state import AgentSettings, AgentState
from fairlead_agent.core.statuses import acknowledge, repeat_due
from fairlead_agent.core.step import Step
from fairlead_proto.ids import TaskKey


@unique
class SandboxState(Enum):
    """Where the sandbox of a task is."""

    GROWING = "GROWING"
    """Its task is not over."""
    COMPLETE = "COMPLETE"
    """Its task is over; nothing will be added."""
    COLLECTED = "COLLECTED"
    UNKNOWN = "UNKNOWN"
    """Never here, or forgotten long ago."""


class AgentMachine:
    """All decisions of one agent. Not safe for use from several threads; the shell's one loop owns it."""

    def __init__(self, settings: AgentSettings, state: AgentState) -> None:
        """Begin with a new state or a restored one; ``state`` belongs to the machine from here on."""
        self._settings = settings
        self._state = state

    @property
    def state(self) -> AgentState:
        """What the agent knows. To be read, by tests and for listings; only ``step`` changes it."""
        return self._state

    def step(self, event: Event, now_ms: int) -> list[Action]:
        """Take one event and give what to do, in order.

        Args:
            event: what has happened.
            now_ms: milliseconds since 1970, never smaller than in an earlier step.
        """
        step = Step(settings=self._settings, state=self._state, now_ms=now_ms)
        _take(step, event)
        leave = self._state.leave
        if leave is not None and not self._state.live:
            finish_leave(step)
        return step.finish()

    def next_deadline_ms(self) -> int | None:
        """When the next ``Tick`` is wanted; None if only an event can change anything."""
        return self._state.deadlines.next_ms()

    def snapshot(self) -> list[Record]:
        """Give the records that stand for everything written so far."""
        return snapshot(self._state)

    def sandbox_state(self, key: TaskKey) -> SandboxState:
        """Where the sandbox of ``key`` is."""
        state = self._state
        if key in state.live:
            return SandboxState.GROWING
        if key in state.sandboxes:
            return SandboxState.COMPLETE
        return SandboxState.COLLECTED if key in state.over else SandboxState.UNKNOWN


def _take(step: Step, event: Event) -> None:
    match event:
        case Tick():
            _take_deadlines(step)
        # Those of every task come first, as cases are tried in their order.
        case ProcessStarted():
            start_process(step, event)
        case ProcessExited() | ProcessStartFailed():
            end_process(step, event)
        case (
            Registered()
            | LaunchRequested()
            | LaunchUnreadable()
            | KillRequested()
            | StatusesAcknowledged()
            | ShutdownRequested()
        ):
            if obeys(step, event.epoch):
                _take_order(step, event)
        case SessionOpened():
            open_session(step)
        case SessionClosed():
            close_session(step)
        case RegistrationRefused():
            # Not subject to the epoch: a master that knows itself to be old says so by this.
            refuse(step, event)
        case ExecutorConnected():
            connect_executor(step, event)
        case ExecutorLost():
            lose_executor(step)
        case UsageMeasured():
            take_usage(step, event)
        case AgentStarted():
            _start(step, event)
        case SandboxesFound():
            find_sandboxes(step, event)
        case DiskMeasured():
            measure_disk(step, event)
        case LeaveRequested():
            begin_leave(
                step, is_stopping_tasks=event.is_stopping_tasks, is_refused=False, reason=event.reason
            )
        case _:
            assert_never(event)


def _take_order(step: Step, event: MasterOrder) -> None:
    match event:
        case Registered():
            register(step, event)
        case LaunchRequested():
            launch(step, event)
        case LaunchUnreadable():
            refuse_unreadable(step, event)
        case KillRequested():
            kill(step, event)
        case StatusesAcknowledged():
            for key, sequence in event.items:
                acknowledge(step, key, sequence)
        case ShutdownRequested():
            begin_leave(step, is_stopping_tasks=True, is_refused=True, reason=event.reason)
        case _:
            assert_never(event)


def _start(step: Step, event: AgentStarted) -> None:
    state = step.state
    has_rebooted = event.boot_id != state.boot_id
    state.boot_id = event.boot_id
    state.incarnation += 1
    step.write_identity()
    if has_rebooted:
        end_all_lost(step)


def _take_deadlines(step: Step) -> None:
    state = step.state
    while (name := state.deadlines.pop_due(step.now_ms)) is not None:
        due, key = name
        match due:
            case Due.HEARTBEAT:
                beat(step)
            case Due.USAGE:
                send_heartbeat(step)
            case Due.SANDBOX:
                remove_expired(step)
            case Due.LEAVE:
                finish_leave(step)
            case Due.ESCALATE | Due.RUNTIME | Due.SLOW_START | Due.RESEND:
                assert key is not None, f"deadline {due} without a task"
                _take_task_deadline(step, due, key)
            case _:
                assert_never(due)


def _take_task_deadline(step: Step, due: Due, key: TaskKey) -> None:
    match due:
        case Due.ESCALATE:
            escalate(step, key)
        case Due.RUNTIME:
            end_runtime(step, key)
        case Due.SLOW_START:
            confirm_slow_start(step, step.state.live[key])
        case _:
            repeat_due(step, key)
