"""What a person wants run, and what came of it: the two values at either end of the SDK."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fairlead_proto import fields
from fairlead_proto.fields import size_bytes
from fairlead_proto.limits import ID_LENGTH_MAX, LABELS_MAX
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import TASK_MEM_DEFAULT, ArrayMember, Constraint, TaskUsage
from fairlead_sdk.amounts import Amounts, Number, parse_amounts, parse_duration
from fairlead_sdk.constraints import parse_constraints
from fairlead_sdk.errors import Infeasible

RETRIES_DEFAULT: Final = 3
"""Losing a host four times running says something about the cluster that a fifth attempt will not mend."""

ATTEMPT_SUFFIX_LENGTH: Final = 8
"""Room for the ``.2`` of a further attempt below the bound on ids."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Task:
    """A process to run somewhere in the cluster, with what it needs.

    Two tasks are never equal: each is one piece of work. All arguments are checked here, before anything is sent.

    Args:
        command: argv; the first word is looked up in the PATH of the task's environment. No shell is involved.
        cpus: cores, at most three decimals.
        mem: memory as bytes or text (``"2GiB"``); the agent enforces it where it can. By default 512 MiB, as of
            ``fairlead run``.
        gpus: GPUs, at most three decimals.
        disk: sandbox space as bytes or text.
        custom: amounts of resources this cluster defines, by name.
        name: for people; by default the task's id.
        env: environment variables, added to the agent's small default set.
        constraints: conditions on the agent's attributes, all required; ``"rack=a"`` or ``Constraint``.
        grace_period: from SIGTERM to SIGKILL when killed, in seconds or text; None is the agent's default (5 s).
        max_runtime: ends the task after this long, in seconds or text; None is without limit.
        retries: how often it is run again after being dropped or lost through no fault of its own.
        retry_failed: how often it is run again after it failed by itself.
        task_id: unique within the framework for ever; by default made from the framework's id.
        working_directory: absolute, or relative to the sandbox; empty is the sandbox.
        labels: words for listings.
        files: whether it needs a sandbox and its output; without, it starts faster and in ``/``, unless the working directory
            is another absolute path, and what it prints goes nowhere.

    Raises:
        ValueError: an argument cannot be used; the text names it, what was expected and what came.
    """

    command: Sequence[str]
    cpus: Number = 1
    mem: Number = TASK_MEM_DEFAULT
    gpus: Number = 0
    disk: Number = 0
    custom: Mapping[str, Number] = field(default_factory=dict)
    name: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    constraints: Sequence[Constraint | str] = ()
    grace_period: float | str | None = None
    max_runtime: float | str | None = None
    retries: int = RETRIES_DEFAULT
    retry_failed: int = 0
    task_id: str = ""
    working_directory: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    files: bool = True

    demand: Amounts = field(init=False, repr=False)
    conditions: tuple[Constraint, ...] = field(init=False, repr=False)
    grace_period_ms: int = field(init=False, repr=False)
    max_runtime_ms: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check_command(self.command)
        _check_types(self)
        if self.retries < 0 or self.retry_failed < 0:
            raise ValueError(f"retries: expected 0 or more, got {min(self.retries, self.retry_failed)}")
        _check_words(self)
        demand = parse_amounts(
            cpus=self.cpus, mem=self.mem, disk=self.disk, gpus=self.gpus, custom=self.custom
        )
        conditions = parse_constraints(self.constraints) if self.constraints else ()
        # The class is frozen for its users; what is derived from the arguments is written once, here.
        object.__setattr__(self, "command", tuple(self.command))
        object.__setattr__(self, "demand", demand)
        object.__setattr__(self, "conditions", conditions)
        object.__setattr__(self, "grace_period_ms", parse_duration("grace_period", self.grace_period))
        object.__setattr__(self, "max_runtime_ms", parse_duration("max_runtime", self.max_runtime))
        if self.max_runtime is not None and not self.max_runtime_ms:
            raise ValueError(
                f"max_runtime: expected more than 0, or none for no limit, got {self.max_runtime!r}"
            )

    @property
    def size_bytes(self) -> int:
        """About how large its description is in a message."""
        words = "".join([*self.command, self.name, self.working_directory])
        return 64 + size_bytes("task", words) + _mapping_size(self.env) + _mapping_size(self.labels)


def check_tasks(tasks: Iterable[Task]) -> list[Task]:
    """List the tasks of a run.

    Raises:
        ValueError: it is something else.
    """
    if not isinstance(tasks, Iterable):
        raise ValueError(f"tasks: expected a list of them, got {tasks!r}")  # noqa: TRY004 - one kind of error
    tasks = list(tasks)
    if strange := [task for task in tasks if type(task) is not Task]:
        raise ValueError(f"tasks: expected each to be a Task, got {strange[0]!r}")
    return tasks


def check_submittable(task: Task, custom_resources: Collection[str], suffix_length: int) -> None:
    """Refuse a task that needs what a cluster with these custom resources does not know, or whose id leaves no room.

    Args:
        task: what is to be submitted.
        custom_resources: of the cluster.
        suffix_length: how much may be put behind the task's id.

    Raises:
        ValueError: it names the argument.
    """
    for name, _ in task.demand.custom_milli:
        if name not in custom_resources:
            known = ", ".join(custom_resources) or "none"
            raise ValueError(f"custom: expected a resource of this cluster ({known}), got {name!r}")
    limit = ID_LENGTH_MAX - suffix_length
    if len(task.task_id) > limit:
        raise ValueError(f"task_id: expected at most {limit} characters, got {len(task.task_id)}")


def _mapping_size(mapping: Mapping[str, str]) -> int:
    return sum(size_bytes("task", name + value) + 8 for name, value in mapping.items()) if mapping else 0


def _check_command(command: Sequence[str]) -> None:
    if isinstance(command, str):
        raise ValueError(  # noqa: TRY004 - one kind of error for every bad argument
            f'command: expected a list of words, got {command!r}; for a shell: ["sh", "-c", ...]'
        )
    if not command or not command[0]:
        raise ValueError("command: expected at least one word, got none")
    for word in command:
        # Callers without a type checker pass numbers and paths here; better told now than by the master.
        if type(word) is not str or "\0" in word:
            raise ValueError(f"command: expected texts without NUL, got {word!r}")
    fields.read_command("command", command)


def _check_types(task: Task) -> None:
    """What a type checker would have said; without one, a bad argument is to be named as well."""
    for name, mapping in (("env", task.env), ("labels", task.labels)):
        if not isinstance(mapping, Mapping):
            raise ValueError(f"{name}: expected texts by name, got {mapping!r}")  # noqa: TRY004 - as above
        for key, value in mapping.items():
            if type(key) is not str or type(value) is not str:
                raise ValueError(f"{name}: expected a text by a name, got {value!r} by {key!r}")
    for name, text in (
        ("name", task.name),
        ("task_id", task.task_id),
        ("working_directory", task.working_directory),
    ):
        if type(text) is not str:
            raise ValueError(f"{name}: expected a text, got {text!r}")
    if type(task.files) is not bool:
        raise ValueError(f"files: expected True or False, got {task.files!r}")
    for name, number in (("retries", task.retries), ("retry_failed", task.retry_failed)):
        if not isinstance(number, int):
            raise ValueError(f"{name}: expected a whole number, got {number!r}")  # noqa: TRY004 - as above


def _check_words(task: Task) -> None:
    """What the master would refuse, task by task, once everything else has been done."""
    if task.env:
        fields.read_environment("env", task.env)
    if task.labels:
        fields.read_attributes("labels", task.labels, count_max=LABELS_MAX)
    if task.working_directory:
        fields.read_path("working_directory", task.working_directory, is_absolute=not task.files)
    if task.name:
        fields.read_name("name", task.name)
    if task.task_id:
        attempts = 1 + task.retries + task.retry_failed
        # A later attempt has the id with its number behind it, which must not be found too long only then.
        fields.read_id("task_id", task.task_id if attempts == 1 else f"{task.task_id}.{attempts}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskResult:
    """How a task ended.

    ``state`` is terminal, or UNREACHABLE when its agent stayed away too long and no attempt was left; ERROR with the
    reason INFEASIBLE when no registered agent is large enough, and then ``refusal`` has the numbers. ``started_ms`` and ``finished_ms`` are by the clock of the agent that ran it, so their difference is right even if that clock is
    not; ``submitted_ms`` is by the clock of this host. All are milliseconds since 1970, 0 if it did not happen.
    """

    task: Task
    """Of a member of an array, the array's template."""
    member: ArrayMember | None = None
    """Which one, if it is of an array: its ``index`` and ``argument``."""
    task_id: str
    """Of the last attempt: the first has the task's id, the second ``<id>.2``, and so on."""
    state: TaskState
    exit_code: int | None = None
    signal: int | None = None
    reason: Reason = Reason.NONE
    message: str = ""
    agent_id: str = ""
    usage: TaskUsage | None = None
    attempts: int = 0
    """Launches, the last one included; 0 if it never was launched."""
    submitted_ms: int = 0
    started_ms: int = 0
    finished_ms: int = 0
    refusal: Infeasible | None = None
    """What the nearest agent lacks for it, if it fits on none; may be raised where that should end the program."""

    @property
    def name(self) -> str:
        """For people: the task's name, of a member of an array with its index, or else the id."""
        name = self.task.name if self.member is None else self.member.name(self.task.name)
        return name or self.task_id

    @property
    def command(self) -> Sequence[str]:
        """What was run: the task's command, with the argument and the index of a member in it."""
        return self.task.command if self.member is None else self.member.command(self.task.command)

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with exit code 0."""
        return self.state is TaskState.FINISHED


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is: each of its tasks is in exactly one of the first four numbers."""

    waiting: int
    """Wanted, not launched."""
    running: int
    """Launched, not over; tasks on unreachable agents among them."""
    finished: int
    """Over, with exit code 0."""
    failed: int
    """Over otherwise."""
    retried: int
    """Further attempts made, over the whole run."""
    killed: int = 0
    """Of those that failed, the ones that somebody ended: you, an operator, or the task's longest time."""
    refused: int = 0
    """Of those that failed, the ones that were never run, because no agent can hold them."""

    @property
    def total(self) -> int:
        """Tasks of the run."""
        return self.waiting + self.running + self.finished + self.failed

    @property
    def done(self) -> int:
        """Tasks that are over."""
        return self.finished + self.failed
