"""What a test may look at: the tasks that were launched, how each goes, and what they wrote."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fairlead_agent.core import actions as agent_actions
from fairlead_agent.core import events as to_agent
from fairlead_agent.core.records import StatusMade
from fairlead_master.core import actions, events
from fairlead_master.core.machine import Machine
from fairlead_proto.ids import FrameworkId, TaskId, TaskKey
from fairlead_proto.orders import LaunchTasks
from fairlead_proto.resources import Vector
from fairlead_proto.task_state import TaskState, is_terminal
from fairlead_proto.tasks import TaskSpec, TaskStatus
from fairlead_sim.testing.outcomes import Outcome, Script
from fairlead_sim.testing.virtual_clock import VirtualClock
from fairlead_sim.virtual_cluster.agent import SimulatedAgent
from fairlead_sim.virtual_cluster.processes import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualAgent:
    """A host with resources and attributes."""

    agent_id: str
    total: Vector
    attributes: Mapping[str, str]
    """With its ``hostname`` and its ``agent_id``."""
    host: SimulatedAgent
    """The live agent's core, over processes that do as scripted."""


@dataclass(slots=True, kw_only=True, eq=False)
class VirtualTask:
    """A task that was launched."""

    framework_id: str
    spec: TaskSpec
    agent: VirtualAgent
    outcome: Outcome
    launched_ms: int
    """On the virtual clock, as ``ended_ms``."""
    state: TaskState = TaskState.STAGING
    """As its agent last wrote down, whoever has heard of it."""
    ended_ms: int | None = None
    _waiting: list["asyncio.Future[None]"] = field(default_factory=list)

    @property
    def task_id(self) -> str:
        """The id its framework gave it."""
        return self.spec.task_id

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return is_terminal(self.state)

    @property
    def unacknowledged(self) -> list[TaskStatus]:
        """What its agent reports until it is acknowledged."""
        machine = self.agent.host.machine
        outbox = machine.state.outboxes.get(self.key) if machine is not None else None
        return list(outbox or ())

    @property
    def key(self) -> TaskKey:
        """Its name in the whole cluster."""
        return FrameworkId(self.framework_id), TaskId(self.spec.task_id)

    def when_over(self) -> "asyncio.Future[None]":
        """Done when it has ended."""
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(over)
        return over

    def move(self, state: TaskState, now_ms: int) -> None:
        """Its agent wrote down that it is in this state."""
        self.state = state
        if is_terminal(state):
            self.ended_ms = now_ms
            for over in self._waiting:
                if not over.done():
                    over.set_result(None)

    def read(self, path: str) -> bytes:
        """What it has written by now."""
        text = self.outcome.stdout if path == "stdout" else self.outcome.stderr
        return text.encode() if self.is_over or self.state is TaskState.RUNNING else b""


class TaskBook:
    """Every task ever launched, in order; kept up to date by watching the cores' steps."""

    def __init__(self, clock: VirtualClock, script: Script, agents: Mapping[str, VirtualAgent]) -> None:
        self.by_key: dict[TaskKey, VirtualTask] = {}
        self._clock = clock
        self._script = script
        self._agents = agents

    def saw_master(self, machine: Machine, _event: events.Event, decided: Sequence[actions.Action]) -> None:
        """Note the launches among what a master decided."""
        for action in decided:
            if isinstance(action, LaunchTasks):
                agent = self._agents[machine.master.agent_by_session[action.session].agent_id]
                for spec in action.tasks:
                    self.by_key[action.framework_id, spec.task_id] = VirtualTask(
                        framework_id=action.framework_id,
                        spec=spec,
                        agent=agent,
                        outcome=self._script.next(spec),
                        launched_ms=self._clock.now_ms(),
                    )

    def saw_agent(
        self, _agent: SimulatedAgent, _events: list[to_agent.Event], decided: list[agent_actions.Action]
    ) -> None:
        """Note what an agent wrote down about its tasks."""
        for action in decided:
            if isinstance(action, agent_actions.Checkpoint):
                for record in action.records:
                    if isinstance(record, StatusMade):
                        self.by_key[record.status.key].move(
                            self.retold(record.status).state, self._clock.now_ms()
                        )

    def program_of(self, key: TaskKey, _spec: TaskSpec) -> Program:
        """What the process of a task does."""
        return self.by_key[key].outcome.program()

    def retold(self, status: TaskStatus) -> TaskStatus:
        """An agent's word on a task, as scripted."""
        return self.by_key[status.key].outcome.retold(status)

    def lose_all_on(self, agent: VirtualAgent) -> None:
        """The agent will not return, nor will its tasks."""
        for task in self.by_key.values():
            if task.agent is agent and not task.is_over:
                task.move(TaskState.GONE, self._clock.now_ms())
