"""What `fairlead run` was asked for, as values, and the tasks that makes.

It can be written as JSON, since a detached run is another process.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from fairlead_cli.array_options import parse_array
from fairlead_cli.errors import Invalid
from fairlead_proto.tasks import TASK_MEM_DEFAULT, has_place
from fairlead_sdk.arrays import Array
from fairlead_sdk.task import Task


def with_place(command: Sequence[str]) -> Sequence[str]:
    """The words of a command with a place for a line of ``--each``: behind them, unless they have one."""
    return command if has_place(command) else (*command, "{}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One command, how often, and what each of its tasks needs. Texts as a person wrote them."""

    master: str
    command: Sequence[str]
    count: int = 1
    """How many tasks, with indices from 1; 1 is a task without an index, unless ``array`` or ``each`` says more."""
    array: str | None = None
    """Indices, as ``parse_array`` reads them."""
    each: Sequence[str] | None = None
    """An argument for each task."""
    at_once: int | None = None
    cpus: str = "1"
    mem: str = TASK_MEM_DEFAULT
    gpus: str = "0"
    disk: str = "0"
    name: str = ""
    role: str = ""
    weight: float | None = None
    env: dict[str, str] = field(default_factory=dict)
    workdir: str = ""
    """Absolute, on the agent's host; empty is the sandbox."""
    no_files: bool = False
    """Neither sandboxes nor output are made."""
    output: str = ""
    """Directory for what an attached run's tasks write; empty is this process's own stdout and stderr."""
    constraints: Sequence[str] = ()
    max_runtime: str | None = None
    grace: str | None = None
    retries: int = 0
    wait_ms: int = 0
    """How long a master that does not answer at the start is tried; 0 is once."""
    reconnect_timeout_ms: int | None = None
    """How long a master that went away is tried; None is the SDK's: as long as the master keeps the framework, 1 h."""

    @property
    def framework_name(self) -> str:
        """For listings: the name given, or the program's."""
        return self.name or PurePath(self.command[0]).name

    @property
    def is_array(self) -> bool:
        """Whether tasks are told apart by an index, also if there is one only."""
        return self.count > 1 or bool(self.array) or self.each is not None

    def make_work(self, framework_id: str) -> Task | Array:
        """What is to run, with ids made from the framework's.

        Raises:
            Invalid: something asked for cannot be; the text names it, what was expected and what came.
        """
        try:
            if not self.is_array:
                return self._make_task(f"{framework_id}-1", self.command)
            over, at_once = self._members()
            words = self.command if self.each is None else with_place(self.command)
            return Array(self._make_task(framework_id, words), over, at_once=at_once)
        except ValueError as error:
            raise Invalid(str(error)) from error

    def check(self) -> None:
        """Find out before anything is sent whether tasks can be made of this; raises as ``make_work``."""
        if self.workdir and not self.workdir.startswith("/"):
            raise Invalid(f"--workdir: expected an absolute path on the agent's host, got {self.workdir!r}")
        if self.output and self.no_files:
            raise Invalid("--output: expected tasks whose output is kept, got --no-files")
        if (self.count > 1) + bool(self.array) + (self.each is not None) > 1:
            raise Invalid("-n, --array, --each: expected one of them, got several")
        if self.at_once is not None and not self.is_array:
            raise Invalid("--at-once: expected -n, --array or --each beside it, got a single task")
        self.make_work("check")

    def task_names(self) -> Iterator[str]:
        """The names of all its tasks."""
        work = self.make_work("names")
        if isinstance(work, Task):
            yield work.name
        else:
            for member in work.members("names"):
                yield member.name(work.template.name)

    def _members(self) -> tuple[Sequence[int] | Sequence[str], int | None]:
        """What they are told apart by, and how many may be launched at once."""
        if self.each is not None:
            return self.each, self.at_once
        if not self.array:
            return range(1, self.count + 1), self.at_once
        indices, at_once = parse_array(self.array)
        if at_once is not None and self.at_once is not None:
            raise Invalid(
                f"--at-once: expected it here or in --array, got both {self.at_once} and {self.array!r}"
            )
        return indices, at_once or self.at_once

    def _make_task(self, task_id: str, command: Sequence[str]) -> Task:
        return Task(
            command=command,
            cpus=self.cpus,
            mem=self.mem,
            gpus=self.gpus,
            disk=self.disk,
            name=self.framework_name,
            env=self.env,
            working_directory=self.workdir,
            files=not self.no_files,
            constraints=self.constraints,
            max_runtime=self.max_runtime,
            grace_period=self.grace,
            retry_failed=self.retries,
            task_id=task_id,
        )
