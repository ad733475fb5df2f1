"""What is said about tasks, as plain values: descriptions, statuses, usage, demand classes, constraints.

The border (``convert``) makes them from messages after checking every field, so code that holds one may rely on the
bounds in ``limits``. Amounts are vectors in the order of the cluster's ``ResourceKinds``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import Final

from fairlead_proto.ids import AgentId, ClassId, FrameworkId, TaskId, TaskKey
from fairlead_proto.patterns import matches
from fairlead_proto.resources import Vector
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.value import value

TASK_MEM_DEFAULT: Final = "512MiB"
"""Memory of a task that does not say, be it the shell's or a program's. An interpreter with its numeric libraries fits;
with an eighth of that the import of such a library can end the task."""


@unique
class Operator(Enum):
    """How a constraint compares an attribute with its values."""

    EQUALS = "EQUALS"
    NOT_EQUALS = "NOT_EQUALS"
    EXISTS = "EXISTS"
    NOT_EXISTS = "NOT_EXISTS"
    MATCHES = "MATCHES"


@dataclass(frozen=True, slots=True)
class Constraint:
    """One condition on an agent's attributes; those of a class must all hold."""

    attribute: str
    operator: Operator
    values: tuple[str, ...] = ()

    def holds(self, attributes: Mapping[str, str]) -> bool:
        """Whether an agent with these attributes (``hostname`` and ``agent_id`` among them) meets it."""
        value = attributes.get(self.attribute)
        match self.operator:
            case Operator.EQUALS:
                return value in self.values
            case Operator.NOT_EQUALS:
                return value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.NOT_EXISTS:
                return value is None
            case Operator.MATCHES:
                return value is not None and matches(self.values[0], value)

    def __str__(self) -> str:
        words = {Operator.EQUALS: "=", Operator.NOT_EQUALS: "!=", Operator.MATCHES: "~"}
        if self.operator is Operator.EXISTS:
            return self.attribute
        if self.operator is Operator.NOT_EXISTS:
            return f"!{self.attribute}"
        return f"{self.attribute}{words[self.operator]}{'|'.join(self.values)}"


@value
class DemandClass:
    """A kind of task a framework wants to run: one task's demand, how many, and where it may run."""

    class_id: ClassId
    unit: Vector
    """All zeros on its way to the core if no demand is declared; the core puts the quantum in its place."""
    units: int
    """Wanted beyond every accept sent before; 0 or more."""
    constraints: tuple[Constraint, ...] = ()
    waiting_task_ids: tuple[TaskId, ...] = ()
    """Some of the tasks behind it, for listings and explain only."""
    is_declared: bool = True
    """Whether the framework said what a task of it needs; else it is offered quanta of what is free."""


@value
class TaskSpec:
    """A process to run, as its framework described it."""

    task_id: TaskId
    resources: Vector
    command: tuple[str, ...]
    name: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    working_directory: str = ""
    """Absolute, or relative to the sandbox; empty is the sandbox."""
    kill_grace_period_ms: int = 0
    """From SIGTERM to SIGKILL; 0 is the agent's default."""
    max_runtime_ms: int = 0
    """0 is without limit."""
    labels: Mapping[str, str] = field(default_factory=dict)


@value
class TaskUsage:
    """What a task used, as its agent measured it."""

    cpu_time_ms: int = 0
    mem_bytes: int = 0
    mem_peak_bytes: int = 0
    mem_limit_bytes: int = 0
    """0 where no limit is enforced."""
    sandbox_bytes: int = 0
    stdout_bytes: int | None = None
    """Written to it, what was rotated away included; final once the task is over. None if unknown."""
    stderr_bytes: int | None = None

    def written_bytes(self, path: str) -> int | None:
        """Give how much was written to ``stdout`` or ``stderr``; None if unknown, as of any other file."""
        return {"stdout": self.stdout_bytes, "stderr": self.stderr_bytes}.get(path)


@value
class TaskStatus:
    """One report about a task. Ordered by ``sequence``, never by its timestamp."""

    framework_id: FrameworkId
    task_id: TaskId
    agent_id: AgentId
    sequence: int
    """From 1, given by the agent; 0 if the master made it, which nobody acknowledges."""
    state: TaskState
    reason: Reason = Reason.NONE
    message: str = ""
    timestamp_ms: int = 0
    exit_code: int | None = None
    signal: int | None = None
    usage: TaskUsage | None = None

    @property
    def key(self) -> TaskKey:
        """The task's name in the whole cluster."""
        return self.framework_id, self.task_id


@value
class RunningTask:
    """A task an agent still runs, as it says so when it registers."""

    framework_id: FrameworkId
    spec: TaskSpec
    state: TaskState
    sequence: int
    ran_ms: int = 0
    """Since its start, by the agent's clock, which the master's is not compared with; 0 if it has not started, or nobody
    knows when."""

    @property
    def key(self) -> TaskKey:
        """The task's name in the whole cluster."""
        return self.framework_id, self.spec.task_id
