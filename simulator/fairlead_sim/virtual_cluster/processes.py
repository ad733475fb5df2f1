"""The processes of a host, and what they do: by default what their command spells out, and nothing else is carried to a host."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fairlead_agent.core import events
from fairlead_agent.core.actions import StartProcess
from fairlead_proto.ids import TaskKey
from fairlead_proto.task_state import Reason
from fairlead_proto.tasks import TaskSpec, TaskUsage
from fairlead_sim.engine import Engine, Occurrence

Report = Callable[[list[events.Event]], None]
"""Takes what has happened to processes, in order."""

Ended = events.ProcessExited | events.ProcessStartFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOptions:
    """How long things take on a host, in milliseconds."""

    start_min_ms: int = 1
    start_max_ms: int = 1
    """From the order to start a process to its running; drawn evenly."""
    end_ms: int = 1
    """From a signal to the end."""
    gather_ms: int = 0
    """How long a busy agent waits for more before it takes what has come."""
    executor_ms: int = 5
    """From an agent's start, or an executor's loss, to a connected executor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What a task's process does."""

    duration_ms: int | None = None
    """None: it runs until it is ended."""
    exit_code: int | None = 0
    """None, and no signal: nobody sees the end."""
    signal: int | None = None
    message: str = ""
    usage: TaskUsage | None = None
    is_stubborn: bool = False
    """Ignores SIGTERM."""
    is_missing: bool = False
    """There is no such command."""


def program_of_command(_key: TaskKey, spec: TaskSpec) -> Program:
    """The program a command spells out: ``run DURATION_MS [EXIT_CODE]``, ``stubborn …``, or ``missing``."""
    verb, *numbers = spec.command
    if verb == "missing":
        return Program(is_missing=True)
    return Program(
        duration_ms=int(numbers[0]),
        exit_code=int(numbers[1]) if len(numbers) > 1 else 0,
        is_stubborn=verb == "stubborn",
    )


@dataclass(slots=True, eq=False)
class _Process:
    program: Program
    end: Occurrence | None = None


@dataclass(slots=True, eq=False)
class ProcessTable:
    """The processes of one host, and the ends nobody has been told to forget. Outlives the agent's process."""

    engine: Engine
    options: HostOptions
    running: dict[TaskKey, _Process] = field(default_factory=dict)
    ended: dict[TaskKey, Ended] = field(default_factory=dict)
    _report: Report | None = None
    program_of: Callable[[TaskKey, TaskSpec], Program] = program_of_command
    starts: list[TaskKey] = field(default_factory=list)
    """Every process that was ever ordered here, in order."""

    def report_to(self, report: Report | None) -> None:
        """Who is connected from now on; None: nobody, and what ends is kept in ``ended``."""
        self._report = report

    def order(self, order: StartProcess) -> None:
        """Make a process of a task."""
        key = (order.framework_id, order.spec.task_id)
        self.starts.append(key)
        program = self.program_of(key, order.spec)
        if program.is_missing:
            failure = events.ProcessStartFailed(
                key=key, reason=Reason.COMMAND_NOT_FOUND, message=program.message or "no such command"
            )
            self.engine.after(0, lambda: self._over(failure))
            return
        started_ms = self.engine.random.randint(self.options.start_min_ms, self.options.start_max_ms)
        process = self.running[key] = _Process(program)
        self.engine.after(started_ms, lambda: self._started(key, process))
        if program.duration_ms is not None:
            process.end = self.engine.maybe_after(
                started_ms + program.duration_ms,
                lambda: self._exit(key, program.exit_code, program.signal, program.message),
            )

    def start_ordered(self) -> int | None:
        """Nothing waits to be started."""
        return None

    def signal(self, key: TaskKey, *, force: bool) -> None:
        """End a process, if it is there and lets itself be ended."""
        process = self.running.get(key)
        if process is not None and (force or not process.program.is_stubborn):
            self.engine.after(self.options.end_ms, lambda: self._exit(key, None, 9 if force else 15))

    def forget(self, key: TaskKey) -> None:
        """The end need not be kept any longer."""
        self.ended.pop(key, None)

    def die(self) -> None:
        """Every process ends and nobody sees how: the host went down, or the executor."""
        for process in self.running.values():
            if process.end is not None:
                process.end.cancel()
        self.running.clear()

    def reboot(self) -> None:
        """The host goes down, and with it the ends nobody has been told to forget."""
        self.die()
        self.ended.clear()

    def known(self) -> tuple[Sequence[TaskKey], Sequence[Ended]]:
        """What runs, and the ends nobody has been told to forget."""
        return tuple(self.running), tuple(self.ended.values())

    def usage(self) -> tuple[tuple[TaskKey, TaskUsage], ...]:
        """What each process uses: a fixed little memory."""
        return tuple((key, TaskUsage(mem_bytes=2**20)) for key in self.running)

    def _started(self, key: TaskKey, process: _Process) -> None:
        if self.running.get(key) is process and self._report is not None:
            self._report([events.ProcessStarted(key=key)])

    def _exit(self, key: TaskKey, exit_code: int | None, signal: int | None, message: str = "") -> None:
        process = self.running.pop(key, None)
        if process is None:
            return
        if process.end is not None:
            process.end.cancel()
        self._over(
            events.ProcessExited(
                key=key,
                exit_code=exit_code,
                signal=signal,
                message=message,
                usage=process.program.usage,
                ended_ms=self.engine.now_ms,
            )
        )

    def _over(self, end: Ended) -> None:
        self.ended[end.key] = end
        if self._report is not None:
            self._report([end])
