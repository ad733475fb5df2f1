"""The agent's state machine: one verb, ``turn``."""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, unique
from typing import Any, Final, assert_never

from fairlead_agent.core.actions import Action
from fairlead_agent.core.deadlines import Due
from fairlead_agent.core.events import (
    AgentStarted,
    DiskMeasured,
    Event,
    ExecutorConnected,
    ExecutorLost,
    LeaveRequested,
    Ordered,
    ProcessExited,
    ProcessStarted,
    ProcessStartFailed,
    SandboxesFound,
    SessionClosed,
    SessionOpened,
    Tick,
    UsageMeasured,
)
from fairlead_agent.core.records import Record
from fairlead_agent.core.restore import snapshot
from fairlead_agent.core.sandboxes import find_sandboxes, measure_disk, remove_expired
from fairlead_agent.core.session import (
    answer_ping,
    beat,
    begin_leave,
    close_session,
    finish_leave,
    obeys,
    open_session,
    refuse,
    register,
    send_heartbeat,
    take_usage,
)
from fairlead_agent.core.state import AgentSettings, AgentState, Step
from fairlead_agent.core.statuses import acknowledge, repeat_due
from fairlead_agent.core.tasks import (
    confirm_slow_start,
    connect_executor,
    end_all_lost,
    end_process,
    end_runtime,
    escalate,
    kill,
    launch,
    lose_executor,
    refuse_unreadable,
    start_process,
)
from fairlead_proto.ids import TaskKey
from fairlead_proto.orders import (
    AcknowledgeStatuses,
    ConfirmAgent,
    EndAgentSession,
    KillTask,
    LaunchTasks,
    PingAgent,
    UnreadableLaunch,
)


@unique
class SandboxState(Enum):
    """Where the sandbox of a task is."""

    GROWING = "GROWING"
    """Its task is not over."""
    COMPLETE = "COMPLETE"
    """Its task is over; nothing will be added."""
    COLLECTED = "COLLECTED"
    NONE = "NONE"
    """Its task was launched without files."""
    UNKNOWN = "UNKNOWN"
    """Never here, or forgotten long ago."""


class AgentMachine:
    """All decisions of one agent. Not safe for use from several threads; the shell's one loop owns it."""

    def __init__(self, settings: AgentSettings, state: AgentState) -> None:
        """Begin with a new state or a restored one; ``state`` belongs to the machine from here on."""
        self._state = state
        self._step = Step(settings=settings, state=state)

    @property
    def state(self) -> AgentState:
        """What the agent knows. To be read, by tests and for listings; only ``turn`` changes it."""
        return self._state

    def turn(self, happened: Iterable[Event], now_ms: int) -> list[Action]:
        """Take all that has happened since the last turn and give what to do, in order.

        As if each event were alone, except that what neighbours report of tasks is put together: one checkpoint before
        all that follows from them, and one message of statuses behind.

        Args:
            happened: what has happened, in order.
            now_ms: milliseconds since 1970, never smaller than in an earlier turn.
        """
        step, state = self._step, self._state
        step.now_ms = now_ms
        decided: list[Action] = []
        for event in happened:
            kind = type(event.order) if type(event) is Ordered else type(event)
            if kind not in _OF_TASKS or state.leave is not None:
                decided += step.finish()
                decided += self._take_alone(event)
            else:
                _TAKERS[type(event)](step, event)
        return decided + step.finish() if decided else step.finish()

    def _take_alone(self, event: Event) -> list[Action]:
        step, state = self._step, self._state
        _TAKERS[type(event)](step, event)
        if state.leave is not None and not state.live:
            finish_leave(step)
        return step.finish()

    def next_deadline_ms(self) -> int | None:
        """When the next ``Tick`` is wanted; None if only an event can change anything."""
        return self._state.deadlines.next_ms()

    def may_be_due_before(self, at_ms: int) -> bool:
        """Whether the next ``Tick`` may be wanted earlier than that; cheaper than ``next_deadline_ms``, and sure if false."""
        return self._state.deadlines.may_come_before(at_ms)

    def snapshot(self) -> list[Record]:
        """Give the records that stand for everything written so far."""
        return snapshot(self._state)

    def sandbox_state(self, key: TaskKey) -> SandboxState:
        """Where the sandbox of ``key`` is."""
        state = self._state
        if (task := state.live.get(key)) is not None:
            return SandboxState.NONE if task.spec.no_files else SandboxState.GROWING
        if key in state.fileless:
            return SandboxState.NONE
        if key in state.sandboxes:
            return SandboxState.COMPLETE
        return SandboxState.COLLECTED if key in state.over else SandboxState.UNKNOWN


def _take_order(step: Step, event: Ordered) -> None:
    """Carry out an order of a master, if it is one to obey."""
    order = event.order
    if type(order) is EndAgentSession:
        # Not subject to the epoch: a master that knows itself to be old says so by this.
        refuse(step, order, event.epoch)
    elif event.epoch == step.state.epoch or obeys(step, event.epoch):
        _OBEYERS[type(order)](step, order)


def _leave(step: Step, event: LeaveRequested) -> None:
    begin_leave(step, is_stopping_tasks=event.is_stopping_tasks, reason=event.reason)


def _start(step: Step, event: AgentStarted) -> None:
    state = step.state
    has_rebooted = event.boot_id != state.boot_id
    state.boot_id = event.boot_id
    state.incarnation += 1
    step.write_identity()
    if has_rebooted:
        end_all_lost(step)


def _take_deadlines(step: Step, _event: Tick) -> None:
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


_Take = Callable[[Step, Any], None]

_OBEYERS: Final[Mapping[type, _Take]] = {
    ConfirmAgent: register,
    LaunchTasks: launch,
    UnreadableLaunch: refuse_unreadable,
    KillTask: kill,
    AcknowledgeStatuses: acknowledge,
    PingAgent: answer_ping,
}
"""Orders of a master, which are taken from one of the newest epoch only."""

_TAKERS: Final[Mapping[type, _Take]] = {
    Tick: _take_deadlines,
    ProcessStarted: start_process,
    ProcessExited: end_process,
    ProcessStartFailed: end_process,
    SessionOpened: open_session,
    SessionClosed: close_session,
    Ordered: _take_order,
    ExecutorConnected: connect_executor,
    ExecutorLost: lose_executor,
    UsageMeasured: take_usage,
    AgentStarted: _start,
    SandboxesFound: find_sandboxes,
    DiskMeasured: measure_disk,
    LeaveRequested: _leave,
}
"""By event."""

_OF_TASKS: Final = frozenset(
    {ProcessStarted, ProcessExited, ProcessStartFailed, LaunchTasks, AcknowledgeStatuses}
)
"""Events and orders of a busy agent, which neither begin nor end anything that carries its statuses."""
