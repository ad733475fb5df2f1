"""What `fairlead run` was asked for, as values, and the tasks that makes.

It can be written as JSON, since a detached run is another process.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from fairlead_cli.errors import Invalid
from fairlead_proto.tasks import TASK_MEM_DEFAULT
from fairlead_sdk.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One command, how often, and what each of its tasks needs. Texts as a person wrote them."""

    master: str
    command: Sequence[str]
    count: int = 1
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

    def make_tasks(self, framework_id: str) -> list[Task]:
        """The tasks, with ids made from the framework's.

        Raises:
            Invalid: something asked for cannot be; the text names it, what was expected and what came.
        """
        return [self._make_task(f"{framework_id}-{index}", index) for index in range(1, self.count + 1)]

    def check(self) -> None:
        """Find out before anything is sent whether tasks can be made of this; raises as ``make_tasks``."""
        if self.output and self.no_files:
            raise Invalid("--output: expected tasks whose output is kept, got --no-files")
        self._make_task("check", 1)

    def _make_task(self, task_id: str, index: int) -> Task:
        if self.workdir and not self.workdir.startswith("/"):
            raise Invalid(f"--workdir: expected an absolute path on the agent's host, got {self.workdir!r}")
        name = self.framework_name if self.count == 1 else f"{self.framework_name}-{index}"
        try:
            return Task(
                command=self.command,
                cpus=self.cpus,
                mem=self.mem,
                gpus=self.gpus,
                disk=self.disk,
                name=name,
                env=self.env,
                working_directory=self.workdir,
                files=not self.no_files,
                constraints=self.constraints,
                max_runtime=self.max_runtime,
                grace_period=self.grace,
                retry_failed=self.retries,
                task_id=task_id,
            )
        except ValueError as error:
            raise Invalid(str(error)) from error
