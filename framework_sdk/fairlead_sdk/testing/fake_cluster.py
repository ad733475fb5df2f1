"""The fake's agents and the tasks on them: what they hold, and how scripted tasks go.

Knows nothing of sessions or messages: it reports statuses to whoever owns it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from fairlead_proto.ids import AgentId, FrameworkId
from fairlead_proto.resources import ResourceKinds, Vector, add, fits, subtract
from fairlead_proto.task_state import Reason, TaskState, can_move, is_terminal
from fairlead_proto.tasks import TaskSpec, TaskStatus
from fairlead_sdk.testing.outcomes import Outcome
from fairlead_sdk.testing.virtual_clock import VirtualClock

GRACE_PERIOD_MS: Final = 5_000
"""The agents' default, as the schema states it."""


@dataclass(slots=True, kw_only=True)
class FakeAgent:
    """A host with resources and attributes; ``free`` is what neither tasks nor offers hold."""

    agent_id: str
    attributes: Mapping[str, str]
    total: Vector
    free: Vector
    is_present: bool = True
    """Not lost, not cut off, not still on its way back after a restart of the master."""
    is_recovering: bool = False


@dataclass(slots=True, kw_only=True)
class FakeTask:
    """A task that was launched, and everything that was reported of it."""

    framework_id: str
    spec: TaskSpec
    agent: FakeAgent
    outcome: Outcome
    state: TaskState = TaskState.STAGING
    launched_ms: int
    ended_ms: int | None = None
    sequence: int = 0
    last: TaskStatus | None = None
    """What its agent reported last."""
    unacknowledged: list[TaskStatus] = field(default_factory=list)
    kill_requested_ms: int | None = None

    @property
    def task_id(self) -> str:
        """The id its framework gave it."""
        return self.spec.task_id

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return is_terminal(self.state)


class FakeCluster:
    """Agents, and tasks going their scripted ways on the virtual clock.

    Args:
        clock: whose time tasks take.
        kinds: the resources of this cluster.
        report: is given each status, with its task.
        freed: is called when resources became free.
    """

    def __init__(
        self,
        clock: VirtualClock,
        kinds: ResourceKinds,
        report: Callable[[FakeTask, TaskStatus], None],
        freed: Callable[[], None],
    ) -> None:
        self.kinds = kinds
        self.agents: dict[str, FakeAgent] = {}
        self.tasks: dict[tuple[str, str], FakeTask] = {}
        """Every task ever launched, by framework id and task id."""
        self._clock = clock
        self._report = report
        self._freed = freed

    def add_agent(self, agent_id: str, total: Vector, attributes: Mapping[str, str]) -> FakeAgent:
        """Let a host join."""
        if agent_id in self.agents:
            raise ValueError(f"agent_id: expected a new one, got {agent_id!r}")
        named = {"hostname": agent_id, "agent_id": agent_id, **attributes}
        agent = FakeAgent(agent_id=agent_id, attributes=named, total=total, free=total)
        self.agents[agent_id] = agent
        self._freed()
        return agent

    def launch(self, framework_id: str, spec: TaskSpec, agent: FakeAgent, outcome: Outcome) -> FakeTask:
        """Start a task whose resources are already taken from ``agent.free``."""
        task = FakeTask(
            framework_id=framework_id,
            spec=spec,
            agent=agent,
            outcome=outcome,
            launched_ms=self._clock.now_ms(),
        )
        self.tasks[framework_id, spec.task_id] = task
        return task

    def start(self, task: FakeTask) -> None:
        """Have a launched task run."""
        if task.outcome.state in (TaskState.DROPPED, TaskState.ERROR):
            self.end(task, task.outcome.final_state, task.outcome.final_reason, task.outcome.message)
            return
        self._move(task, TaskState.RUNNING)
        if task.outcome.duration_ms is not None:
            self._clock.call_later(task.outcome.duration_ms, lambda: self._end_by_itself(task))

    def kill(self, task: FakeTask, grace_ms: int) -> None:
        """Ask a task to stop; a repeat changes nothing."""
        if task.is_over or task.kill_requested_ms is not None:
            return
        task.kill_requested_ms = self._clock.now_ms()
        if not task.agent.is_present:
            return
        self._stop(task, grace_ms)

    def _stop(self, task: FakeTask, grace_ms: int) -> None:
        self._move(task, TaskState.KILLING)
        delay_ms = grace_ms or task.spec.kill_grace_period_ms or GRACE_PERIOD_MS
        self._clock.call_later(
            delay_ms if task.outcome.ignores_sigterm else 0,
            lambda: self.end(task, TaskState.KILLED, Reason.KILLED_BY_FRAMEWORK, "killed on request"),
        )

    def cut_off(self, agent: FakeAgent) -> None:
        """The agent is away, its tasks run on."""
        agent.is_present = False
        for task in self.tasks_on(agent):
            self._tell(task, TaskState.UNREACHABLE, Reason.AGENT_DISCONNECTED, f"{agent.agent_id} is away")

    def come_back(self, agent: FakeAgent) -> None:
        """The agent is there again, with the tasks that still run, the ends of those that do not, and old kills."""
        agent.is_present = True
        agent.is_recovering = False
        for task in [task for task in self.tasks.values() if task.agent is agent]:
            if task.unacknowledged:
                for status in list(task.unacknowledged):
                    self._report(task, status)
            if not task.is_over:
                if task.state is TaskState.UNREACHABLE:
                    self._tell(task, TaskState.RUNNING, Reason.AGENT_RETURNED, f"{agent.agent_id} is back")
                if task.kill_requested_ms is not None:
                    self._stop(task, 0)
        self._freed()

    def lose(self, agent: FakeAgent) -> None:
        """The agent will not return, nor will its tasks."""
        agent.is_present = False
        agent.free = agent.total = self.kinds.zero
        del self.agents[agent.agent_id]
        for task in self.tasks_on(agent):
            task.ended_ms = self._clock.now_ms()
            self._tell(task, TaskState.GONE, Reason.AGENT_REMOVED, f"{agent.agent_id} will not return")

    def tasks_on(self, agent: FakeAgent) -> list[FakeTask]:
        """The agent's tasks that are not over."""
        return [task for task in self.tasks.values() if task.agent is agent and not task.is_over]

    def release(self, agent: FakeAgent, amount: Vector) -> None:
        """Give back what an offer or a task held."""
        agent.free = add(agent.free, amount)
        assert fits(agent.free, agent.total), f"{agent.agent_id} has more free than it has"
        self._freed()

    def reserve(self, agent: FakeAgent, amount: Vector) -> None:
        """Take what an offer will hold."""
        assert fits(amount, agent.free), f"{agent.agent_id} was asked for more than it has free"
        agent.free = subtract(agent.free, amount)

    def _end_by_itself(self, task: FakeTask) -> None:
        if not task.is_over:
            self.end(task, task.outcome.final_state, task.outcome.final_reason, task.outcome.message)

    def end(self, task: FakeTask, state: TaskState, reason: Reason, message: str) -> None:
        """A task is over: its resources are free, its last status is reported until acknowledged."""
        if task.is_over:
            return
        task.ended_ms = self._clock.now_ms()
        exited = state in (TaskState.FINISHED, TaskState.FAILED)
        self._move(
            task,
            state,
            reason=reason,
            message=message,
            exit_code=task.outcome.exit_code if exited and task.outcome.signal is None else None,
            signal=task.outcome.signal if exited else None,
        )
        if task.agent.agent_id in self.agents:
            self.release(task.agent, task.spec.resources)

    def _move(
        self,
        task: FakeTask,
        state: TaskState,
        *,
        reason: Reason = Reason.NONE,
        message: str = "",
        exit_code: int | None = None,
        signal: int | None = None,
    ) -> None:
        """A move the agent makes and reports, until it is acknowledged."""
        assert can_move(task.state, state), f"{task.task_id}: {task.state.value} to {state.value}"
        task.state = state
        task.sequence += 1
        status = self.status(
            task, reason, message, sequence=task.sequence, exit_code=exit_code, signal=signal
        )
        task.last = status
        task.unacknowledged.append(status)
        if task.agent.is_present:
            self._report(task, status)

    def _tell(self, task: FakeTask, state: TaskState, reason: Reason, message: str) -> None:
        """A move the master makes by itself: no sequence, no acknowledgement."""
        assert can_move(task.state, state), f"{task.task_id}: {task.state.value} to {state.value}"
        task.state = state
        self._report(task, self.status(task, reason, message))

    def status(
        self,
        task: FakeTask,
        reason: Reason,
        message: str,
        *,
        sequence: int = 0,
        exit_code: int | None = None,
        signal: int | None = None,
    ) -> TaskStatus:
        """What there is to say of a task now."""
        return TaskStatus(
            framework_id=FrameworkId(task.framework_id),
            task_id=task.spec.task_id,
            agent_id=AgentId(task.agent.agent_id),
            sequence=sequence,
            state=task.state,
            reason=reason,
            message=message,
            timestamp_ms=self._clock.unix_ms(),
            exit_code=exit_code,
            signal=signal,
            usage=task.outcome.usage if task.is_over else None,
        )
