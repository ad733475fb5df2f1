"""What the agent and its executor say to one another: commands, events, and their framing.

The values are named tuples, for the executor must start fast and stay small: named tuples need no ``dataclasses``
import and are written by the JSON encoder as they are. Do not compare values of two types with one another.

On the socket each line is one JSON array of messages, each ``[tag, field, ...]`` in the order of the fields here.
Both ends are always of one version, because an agent that finds an executor of another version is told so by ``Hello``.
"""

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, cast

from fairlead_proto.ids import FrameworkId, TaskId, TaskKey
from fairlead_proto.task_state import Reason

PROTOCOL_VERSION: Final = 1

EXIT_LOCKED: Final = 3
"""Exit status of an executor that finds another one serving its work directory."""

LINE_BYTES_MAX: Final = 256 * 1024 * 1024
"""One batch. An agent may launch 10,000 tasks at once, of about 1 KiB each; a command with its environment is below
1 MiB. A line beyond this is not ours, and is refused before it fills the memory."""

LOG_BYTES_MAX: Final = 10 * 1024 * 1024
"""Default size of ``stdout`` or ``stderr`` before it is rotated: as much as people scroll through, twice on disk."""


_to_json: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class ProtocolError(ValueError):
    """What came over the socket is not a message of this protocol."""


class Measurement(NamedTuple):
    """What a task uses (running) or used (over)."""

    cpu_time_ms: int = 0
    """User and system time of all its processes."""
    mem_bytes: int = 0
    """In use now, without page cache that can be dropped; 0 when over."""
    mem_peak_bytes: int = 0
    """Highest seen; 0 if not known. Without cgroups: of all processes when measured while it ran, else of the largest
    one it waited for, unless that is smaller than the executor itself."""
    mem_limit_bytes: int = 0
    """0 where no limit is enforced."""
    sandbox_bytes: int = 0
    """``stdout`` and ``stderr`` on disk, rotated parts included."""
    stdout_bytes: int | None = None
    """Ever written to ``stdout``, what was rotated away included; None if unknown: nobody saw the end, or an executor that
    does not count reports it."""
    stderr_bytes: int | None = None


# Commands: from the agent to the executor.


class Start(NamedTuple):
    """Run a command. Answered by Started or StartFailed. For a known task: answered by where it is, nothing is run."""

    key: TaskKey
    sandbox: str
    """Absolute path; created with its parents if missing."""
    argv: tuple[str, ...]
    environment: dict[str, str]
    """What the task declares; the executor adds PATH, HOME and the FAIRLEAD variables."""
    working_directory: str = ""
    """Absolute, or relative to the sandbox; empty is the sandbox, and without files ``/``. Must exist."""
    cpus_milli: int = 0
    """0 is without quota."""
    mem_bytes: int = 0
    """0 is without limit."""
    log_bytes_max: int = LOG_BYTES_MAX
    """Size at which ``stdout`` and ``stderr`` are rotated, each. 0: no files, so neither they nor the sandbox are made, and
    what the task prints goes nowhere."""

    @property
    def directory(self) -> str:
        """Where the task starts."""
        return os.path.join(self.sandbox if self.log_bytes_max else "/", self.working_directory)


class Signal(NamedTuple):
    """Send a signal to the task's process group. Nothing happens if it is over or unknown.

    SIGTERM to a task whose Start still waits behind others is answered by StartFailed, and nothing is run.
    """

    key: TaskKey
    signal: int


class KillAll(NamedTuple):
    """Kill every process of the task, daemons included, with SIGKILL. Its end is reported as any other.

    One whose Start still waits behind others is not run, as with SIGTERM.
    """

    key: TaskKey


class Forget(NamedTuple):
    """The agent has written the task's end down: do not report it again. Nothing happens if it runs or is unknown."""

    key: TaskKey


class MeasureUsage(NamedTuple):
    """Measure all running tasks. Answered by one Usage."""


class Shutdown(NamedTuple):
    """End the executor, and its tasks at once: starts that wait are neither run nor answered.

    Without ``kill_tasks`` it goes on until the last running task is over, without an agent.
    """

    kill_tasks: bool = True


Command = Start | Signal | KillAll | Forget | MeasureUsage | Shutdown


# Events: from the executor to the agent.


class Started(NamedTuple):
    """The task's main process exists (its program was found and has been entered)."""

    key: TaskKey
    pid: int
    start_ticks: int
    """Field 22 of /proc/PID/stat: tells this process from a later one of the same number."""


class StartFailed(NamedTuple):
    """No process was made. Kept and repeated until Forget, like an exit."""

    key: TaskKey
    reason: Reason
    message: str


class Exited(NamedTuple):
    """The task is over: its main process has ended and every other process of it is gone. Repeated until Forget."""

    key: TaskKey
    exit_code: int | None
    """0 to 255; None if a signal ended it or if nobody saw its end."""
    signal: int | None
    """None with exit_code None: the executor that ran it died, and what was left of the task has been killed."""
    out_of_memory: bool
    message: str
    """What a person should know beyond the numbers; may be empty."""
    usage: Measurement
    finished_ms: int
    """Wall clock of the host, milliseconds since 1970."""


class Hello(NamedTuple):
    """First event of every connection: everything the executor knows."""

    version: int
    pid: int
    """Of the executor."""
    isolation: str
    """"cgroup v2", "cgroup v1" or "none"."""
    isolation_note: str
    """One line on what is not enforced and why; empty if everything is."""
    running: tuple[Started, ...]
    ended: tuple[Exited | StartFailed, ...]
    """Not yet forgotten, oldest first."""


class Usage(NamedTuple):
    """The answer to MeasureUsage: each running task with what it uses."""

    measurements: tuple[tuple[TaskKey, Measurement], ...]


Event = Hello | Started | StartFailed | Exited | Usage
Message = Command | Event

_COMMANDS: Final[dict[str, type[Command]]] = {
    "start": Start,
    "signal": Signal,
    "kill": KillAll,
    "forget": Forget,
    "measure": MeasureUsage,
    "shutdown": Shutdown,
}
_EVENTS: Final[dict[str, type[Event]]] = {
    "hello": Hello,
    "started": Started,
    "failed": StartFailed,
    "exited": Exited,
    "usage": Usage,
}
_TAGS: Final[dict[type[Message], str]] = {kind: tag for tag, kind in [*_COMMANDS.items(), *_EVENTS.items()]}


def encode(messages: Iterable[Message]) -> bytes:
    """Give one line, newline included, that carries ``messages`` in order."""
    return encode_line([to_wire(message) for message in messages])


def encode_line(items: Sequence[tuple[Any, ...]]) -> bytes:
    """Give ``items`` as one line of JSON, newline included."""
    return _to_json(items).encode() + b"\n"


def to_wire(message: Message) -> tuple[Any, ...]:
    """Give ``message`` as a tuple that JSON can carry: its tag, then its fields."""
    if isinstance(message, Hello):
        message = message._replace(ended=cast("Any", tuple(to_wire(end) for end in message.ended)))
    elif isinstance(message, StartFailed):
        return "failed", message.key, message.reason.value, message.message
    return _TAGS[type(message)], *message


def decode_commands(line: bytes) -> list[Command]:
    """Give the commands on one line.

    Raises:
        ProtocolError: the line is not a batch of commands.
    """
    return [_command(item) for item in _items(line)]


def decode_events(line: bytes) -> list[Event]:
    """Give the events on one line.

    Raises:
        ProtocolError: the line is not a batch of events.
    """
    return [event_from_wire(item) for item in _items(line)]


def event_from_wire(item: Sequence[Any]) -> Event:
    """Give the event that ``to_wire`` made ``item`` from.

    Raises:
        ProtocolError: it is not one.
    """
    try:
        match item:
            case ["hello", version, pid, isolation, note, running, ended]:
                ends = tuple(_ended(end) for end in ended)
                return Hello(
                    version, pid, isolation, note, tuple(Started(_key(r[0]), *r[1:]) for r in running), ends
                )
            case ["started", key, pid, start_ticks]:
                return Started(_key(key), pid, start_ticks)
            case ["usage", measurements]:
                return Usage(tuple((_key(key), Measurement(*values)) for key, values in measurements))
            case _:
                return _ended(item)
    except (TypeError, ValueError, IndexError) as error:
        raise ProtocolError(f"expected an event, got {_shown(item)}: {error}") from error


def _ended(item: Sequence[Any]) -> Exited | StartFailed:
    match item:
        case ["exited", key, exit_code, signal, out_of_memory, message, usage, finished_ms]:
            return Exited(
                _key(key), exit_code, signal, out_of_memory, message, Measurement(*usage), finished_ms
            )
        case ["failed", key, reason, message]:
            return StartFailed(_key(key), Reason(reason), message)
        case _:
            raise ProtocolError(f"expected an event, got {_shown(item)}")


def _command(item: Sequence[Any]) -> Command:
    try:
        match item:
            case ["start", key, sandbox, argv, *rest]:
                return Start(_key(key), sandbox, tuple(argv), *rest)
            case ["measure" | "shutdown" as tag, *rest]:
                return _COMMANDS[tag](*rest)
            case [str() as tag, key, *rest] if tag in _COMMANDS:
                return cast("Command", cast("Any", _COMMANDS[tag])(_key(key), *rest))
            case _:
                raise ProtocolError(f"expected a command, got {_shown(item)}")
    except (TypeError, ValueError) as error:
        raise ProtocolError(f"expected a command, got {_shown(item)}: {error}") from error


def _items(line: bytes) -> list[Any]:
    try:
        items = json.loads(line)
    except ValueError as error:
        raise ProtocolError(f"expected a line of JSON, got {_shown(line)}: {error}") from error
    if not isinstance(items, list):
        raise ProtocolError(f"expected an array of messages, got {_shown(items)}")
    return items


def _key(pair: Sequence[str]) -> TaskKey:
    framework_id, task_id = pair
    return FrameworkId(framework_id), TaskId(task_id)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"


class LineBuffer:
    """Cuts a byte stream into lines; holds back the last, unfinished one."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Take what was read and give the lines that are now complete, without their newlines.

        Raises:
            ProtocolError: a line is longer than LINE_BYTES_MAX.
        """
        if b"\n" not in data:
            lines = []
            self._parts.append(data)
        else:
            first, *lines = data.split(b"\n")
            lines.insert(0, b"".join([*self._parts, first]))
            self._parts = [lines.pop()]
            self._size = 0
        self._size += len(self._parts[-1])
        if self._size > LINE_BYTES_MAX:
            raise ProtocolError(f"expected a line of at most {LINE_BYTES_MAX} bytes, got {self._size} so far")
        return lines
