"""What is said about tasks, as plain values: descriptions, statuses, usage, demand classes, constraints.

The border (``convert``) makes them from messages after checking every field, so code that holds one may rely on the
bounds in ``limits``. Amounts are vectors in the order of the cluster's ``ResourceKinds``.
"""

import re
from collections.abc import Mapping, Sequence
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

INDEX_VARIABLE: Final = "FAIRLEAD_TASK_INDEX"
COUNT_VARIABLE: Final = "FAIRLEAD_TASK_COUNT"
"""What a member of an array finds in its environment: its index, and of how many tasks the whole array is."""

_PLACE: Final = re.compile(r"\{\{#?\}\}|\{#?\}")
"""Where a command of an array has an argument or an index, or is written so that it has not."""

ATTEMPTS_LOOKED_FOR: Final = 128
"""Attempts of a task looked for by their ids, beyond what `fairlead run --retries` may ask for."""

_MEMBER_ID: Final = re.compile(r".+:(\d+)(?:\.\d+)?")


def attempt_name(task_id: str, number: int) -> str:
    """The id of a task's attempt, counted from 1."""
    return task_id if number == 1 else f"{task_id}.{number}"


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
    no_files: bool = False
    """Neither a sandbox nor its output is made; its working directory is absolute, or empty for ``/``."""
    origin: "tuple[TaskArray, int] | None" = field(default=None, compare=False, repr=False)
    """The array that it was made of and its position there, so that it can be sent on as a part of that."""


@value
class ArrayMember:
    """One task of an array: what tells it from the others."""

    array_id: TaskId
    index: int
    """0 or more."""
    count: int
    """Of the tasks of the whole array; 0 if nobody knows yet."""
    argument: str | None = None
    """None if the array has none; then nothing in the command is replaced."""

    @property
    def task_id(self) -> TaskId:
        """The id of its first attempt."""
        return TaskId(f"{self.array_id}:{self.index}")

    def command(self, words: Sequence[str]) -> tuple[str, ...]:
        """The command of this member: ``{}`` is its argument and ``{#}`` its index, wherever they are in a word.

        ``{{}}`` and ``{{#}}`` become ``{}`` and ``{#}``. What has been put in is not looked at again.
        """
        argument = self.argument
        if argument is None:
            return tuple(words)
        inserted = {"{}": argument, "{#}": str(self.index), "{{}}": "{}", "{{#}}": "{#}"}
        return tuple([_PLACE.sub(lambda place: inserted[place[0]], word) for word in words])

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """The variables with the member's index and the array's count, which is left out if nobody knows it."""
        own = {INDEX_VARIABLE: str(self.index), COUNT_VARIABLE: str(self.count)}
        if not self.count:
            del own[COUNT_VARIABLE]
        return {**variables, **own}

    def name(self, of_array: str) -> str:
        """The array's name and the index, for people; empty if the array has no name."""
        return f"{of_array}-{self.index}" if of_array else ""


def member_index(task_id: str) -> int | None:
    """The index in the id of an array's task, be it of a further attempt; None if the id has none."""
    found = _MEMBER_ID.fullmatch(task_id)
    return None if found is None else int(found[1])


def has_place(words: Sequence[str]) -> bool:
    """Whether members of an array with arguments differ by this command."""
    return any(len(place) < len("{{}}") for word in words for place in _PLACE.findall(word))


@value
class TaskArray:
    """Tasks that differ by their index alone, and perhaps by an argument each."""

    template: TaskSpec
    """What they have in common; its id is the array's."""
    indices: Sequence[int]
    """Of the members, in order, each once."""
    count: int
    """Of the tasks of the whole array, of which these may be some; 0 if nobody knows yet."""
    arguments: tuple[str, ...] = ()
    """One an index, or none at all."""
    attempt: int = 1
    """Which attempt of each member this is; above 1 if they are run again."""

    def member(self, position: int) -> ArrayMember:
        """The member whose index stands at this position."""
        argument = self.arguments[position] if self.arguments else None
        index = self.indices[position]
        return ArrayMember(array_id=self.template.task_id, index=index, count=self.count, argument=argument)

    def spec(self, position: int) -> TaskSpec:
        """The member whose index stands at this position, as the task that it is."""
        template, member = self.template, self.member(position)
        task_id = TaskId(attempt_name(member.task_id, self.attempt))
        return TaskSpec(
            task_id=task_id,
            resources=template.resources,
            command=member.command(template.command),
            name=member.name(template.name) or task_id,
            environment=member.environment(template.environment),
            working_directory=template.working_directory,
            kill_grace_period_ms=template.kill_grace_period_ms,
            max_runtime_ms=template.max_runtime_ms,
            labels=template.labels,
            no_files=template.no_files,
            origin=(self, position),
        )

    def part(self, positions: Sequence[int]) -> "TaskArray":
        """The array of the members at these positions."""
        if len(positions) == len(self.indices):
            return self
        return TaskArray(
            template=self.template,
            indices=[self.indices[position] for position in positions],
            count=self.count,
            arguments=tuple([self.arguments[position] for position in positions]) if self.arguments else (),
            attempt=self.attempt,
        )


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
