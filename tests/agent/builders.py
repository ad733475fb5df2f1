"""Builders of agent tests: everything the test is not about has a default."""

from collections.abc import Sequence
from typing import Any

from fairlead_agent.core.actions import Action, Checkpoint
from fairlead_agent.core.events import (
    AgentStarted,
    Event,
    ExecutorConnected,
    Ordered,
    ProcessExited,
    ProcessStarted,
    SandboxesFound,
    SessionOpened,
)
from fairlead_agent.core.machine import AgentMachine
from fairlead_agent.core.records import Record
from fairlead_agent.core.restore import restore
from fairlead_agent.core.state import AgentSettings
from fairlead_proto.ids import AgentId, FrameworkId, TaskId, TaskKey
from fairlead_proto.orders import AcknowledgeStatuses, ConfirmAgent, KillTask, LaunchTasks
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import TaskSpec, TaskStatus

GIB = 1024**3
AGENT = AgentId("a1-1")
BOOT = "boot-1"
START_MS = 1_000_000


def a_key(task: str = "t1", framework: str = "f1") -> TaskKey:
    return FrameworkId(framework), TaskId(task)


def a_spec(task: str = "t1", **fields: Any) -> TaskSpec:
    given = {"resources": (1000, GIB, 0, 0), "command": ("true",), "name": task, **fields}
    return TaskSpec(task_id=TaskId(task), **given)


def a_launch(*tasks: TaskSpec | str, framework: str = "f1", epoch: int = 1) -> Ordered:
    specs = tuple(a_spec(task) if isinstance(task, str) else task for task in tasks or ("t1",))
    return Ordered(epoch, LaunchTasks(framework_id=FrameworkId(framework), tasks=specs))


def a_kill(
    task: str = "t1",
    *,
    grace_ms: int = 0,
    reason: Reason = Reason.KILLED_BY_FRAMEWORK,
    framework: str = "f1",
    epoch: int = 1,
) -> Ordered:
    framework_id, task_id = a_key(task, framework)
    return Ordered(
        epoch,
        KillTask(framework_id=framework_id, task_id=task_id, grace_period_ms=grace_ms, reason=reason),
    )


def an_ack(task: str = "t1", sequence: int = 1, *, epoch: int = 1) -> Ordered:
    return Ordered(epoch, AcknowledgeStatuses(items=((a_key(task), sequence),)))


def an_exit(task: str = "t1", code: int | None = 0, **fields: Any) -> ProcessExited:
    return ProcessExited(key=a_key(task), exit_code=code, signal=fields.pop("signal", None), **fields)


def a_start(task: str = "t1") -> ProcessStarted:
    return ProcessStarted(key=a_key(task))


def a_registration(epoch: int = 1, agent_id: AgentId = AGENT, heartbeat_ms: int = 10**9) -> Ordered:
    # Heartbeats are far away unless the test is about them.
    return Ordered(epoch, ConfirmAgent(agent_id=agent_id, heartbeat_interval_ms=heartbeat_ms))


def a_status(
    task: str = "t1", sequence: int = 1, state: TaskState = TaskState.RUNNING, **fields: Any
) -> TaskStatus:
    given = {"agent_id": AGENT, "timestamp_ms": START_MS, **fields}
    framework_id, task_id = a_key(task, given.pop("framework", "f1"))
    return TaskStatus(framework_id=framework_id, task_id=task_id, sequence=sequence, state=state, **given)


def settings(**fields: Any) -> AgentSettings:
    return AgentSettings(**{"hostname": "host-1", "total": (4000, 8 * GIB, 0, 0), **fields})


class Driver:
    """A machine, its clock and its journal; ``restart`` is what a crash and a new process are."""

    def __init__(self, **fields: Any) -> None:
        self.settings = settings(**fields)
        self.now_ms = START_MS
        self.journal: list[Record] = []
        self.history: list[Action] = []
        self.machine = AgentMachine(self.settings, restore([], self.settings))

    def step(self, *events: Event, after_ms: int = 0) -> list[Action]:
        """Step the events and give the actions of all of them, checkpoints apart (they are in ``journal``)."""
        self.now_ms += after_ms
        done: list[Action] = []
        for event in events:
            actions = self.machine.turn([event], self.now_ms)
            for action in actions:
                if isinstance(action, Checkpoint):
                    self.journal += action.records
            done += actions
        self.history += done
        return [action for action in done if not isinstance(action, Checkpoint)]

    def restart(self) -> None:
        """Forget everything but the journal."""
        self.machine = AgentMachine(self.settings, restore(self.journal, self.settings))

    def start(
        self,
        *,
        running: Sequence[TaskKey] = (),
        ended: Sequence[ProcessExited] = (),
        boot_id: str = BOOT,
        sandboxes: Sequence[TaskKey] = (),
    ) -> list[Action]:
        """What a new process goes through before it dials."""
        return self.step(
            AgentStarted(boot_id=boot_id),
            ExecutorConnected(isolation="none", running=tuple(running), ended=tuple(ended)),
            SandboxesFound(keys=tuple(sandboxes)),
        )


def a_started_agent(**fields: Any) -> Driver:
    """One with an executor and no session."""
    driver = Driver(**fields)
    driver.start()
    return driver


def a_registered_agent(**fields: Any) -> Driver:
    """One that a master of epoch 1 has accepted."""
    driver = a_started_agent(**fields)
    driver.step(SessionOpened(), a_registration())
    return driver


def a_running_agent(*tasks: TaskSpec | str, **fields: Any) -> Driver:
    """A registered one whose tasks run, each RUNNING acknowledged."""
    driver = a_registered_agent(**fields)
    driver.step(a_launch(*tasks))
    for task in tasks or ("t1",):
        name = task if isinstance(task, str) else task.task_id
        driver.step(a_start(name), an_ack(name, 1))
    return driver


KINDS = ResourceKinds()
