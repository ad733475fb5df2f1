"""The agent's hold on its executor: connects to a live one or starts one, sends commands, yields events.

Nothing here waits for the executor except ``connect``. Commands are buffered and sent once a loop turn; an executor
that stops reading is given up as lost when too much has piled up.
"""

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import fairlead_agent
import fairlead_proto
from fairlead_agent.executor import main as executor_main
from fairlead_agent.executor.paths import ExecutorPaths
from fairlead_agent.executor.protocol import (
    EXIT_LOCKED,
    PROTOCOL_VERSION,
    Command,
    Event,
    Forget,
    Hello,
    KillAll,
    LineBuffer,
    MeasureUsage,
    ProtocolError,
    Shutdown,
    Signal,
    Start,
    decode_events,
    encode,
)
from fairlead_proto.ids import TaskKey

DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CONNECT_TIMEOUT_S: Final = 20.0
"""An executor is there in a tenth of a second; on a host that swaps, or that must first kill the tasks of a dead
predecessor (which may take 10 s), in many seconds. Beyond that a person should be told."""

_RETRY_INTERVAL_S: Final = 0.05
"""Between looks for an executor that another start has just begun; a start takes about this long."""

_UNSENT_BYTES_MAX: Final = 256 * 1024 * 1024
"""Commands an executor has not read. 10,000 starts are about 10 MiB; this much means that it is stuck."""

_LOG_TAIL_BYTES: Final = 500


class ExecutorFailed(RuntimeError):
    """No executor could be started or reached; the message says why."""


class ExecutorLost(ConnectionError):
    """The executor died or stopped answering. Its tasks are killed by the next one, which also reports them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorOptions:
    """How a new executor is to run its tasks. An executor that already lives keeps what it was started with."""

    isolation: str = "auto"
    """"auto" (best that works), or exactly "cgroup v2", "cgroup v1" or "none"."""
    cgroup_parent: str = ""
    """Group to make the tasks' groups in, from the root of each hierarchy; empty: inside the agent's own."""
    path: str = DEFAULT_PATH
    """PATH of tasks that declare none."""
    alone_timeout_ms: int = 10_000
    """How long an executor without agent and without tasks lives on: long enough for an agent's restart, and short
    enough that nobody finds a forgotten one."""


class ExecutorClient:
    """A connection to one executor. Made by ``connect``; used from one event loop.

    Commands given after the executor was lost, or after ``close``, are dropped: ``events`` is where the loss shows.
    """

    hello: Hello
    """What the executor knew when the connection was made: adopt ``running``, write down and forget ``ended``."""

    def __init__(self, link: "_Link", hello: Hello) -> None:
        self._link = link
        self.hello = hello

    @classmethod
    async def connect(
        cls, work_dir: Path, options: ExecutorOptions | None = None, *, timeout_s: float = CONNECT_TIMEOUT_S
    ) -> Self:
        """Reuse the live executor of ``work_dir`` or start one, and wait for its Hello.

        Raises:
            ExecutorFailed: none answered in time, or it could not start; the message holds what it last logged.
        """
        paths = ExecutorPaths(str(work_dir))
        try:
            Path(paths.directory).mkdir(parents=True, exist_ok=True, mode=0o700)
            Path(paths.directory).chmod(0o700)
            async with asyncio.timeout(timeout_s):
                link, hello = await _reach(paths, options or ExecutorOptions())
        except TimeoutError:
            raise ExecutorFailed(
                f"expected an executor to answer on {paths.socket} within {timeout_s:g} s, got nothing{_log_tail(paths)}"
            ) from None
        except OSError as error:
            raise ExecutorFailed(f"cannot start an executor in {paths.directory}: {error}") from error
        return cls(link, hello)

    def start(self, command: Start) -> None:
        """Order a task to be run; answered by Started or StartFailed."""
        self._link.send(command)

    def signal(self, key: TaskKey, signal: int) -> None:
        """Order a signal to the process group of a task."""
        self._link.send(Signal(key, signal))

    def kill_all(self, key: TaskKey) -> None:
        """Order SIGKILL for every process of a task."""
        self._link.send(KillAll(key))

    def forget(self, key: TaskKey) -> None:
        """Say that the end of a task is written down and need not be repeated."""
        self._link.send(Forget(key))

    def measure_usage(self) -> None:
        """Order one Usage event."""
        self._link.send(MeasureUsage())

    def shutdown(self, *, kill_tasks: bool) -> None:
        """Order the executor's end. ``events`` raises ExecutorLost once it is gone: here that is the confirmation."""
        self._link.send(Shutdown(kill_tasks))

    async def events(self) -> AsyncIterator[list[Event]]:
        """Yield what the executor reports, each time all that has come since. Ends after ``close``.

        Raises:
            ExecutorLost: the executor is gone; everything it had sent has been yielded before.
        """
        while batch := await self._link.receive():
            yield batch

    async def close(self) -> None:
        """Leave the executor to itself; its tasks run on, and a later ``connect`` finds them."""
        await self._link.close()


class _Link(asyncio.Protocol):
    """The socket: batches what goes out, collects what comes in."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._lines = LineBuffer()
        self._inbox: deque[Event] = deque()
        self._outbox: list[Command] = []
        self._arrived = asyncio.Event()
        self._over: str = ""
        self._closed = False
        self._gone = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            for line in self._lines.feed(data):
                self._inbox.extend(decode_events(line))
        except ProtocolError as error:
            self._give_up(f"it sent something unexpected: {error}")
        self._arrived.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._over = self._over or (f"the connection failed: {exc}" if exc else "it closed the connection")
        self._arrived.set()
        self._gone.set()

    def send(self, command: Command) -> None:
        if self._over:
            return
        if not self._outbox:
            self._loop.call_soon(self._flush)
        self._outbox.append(command)

    def _flush(self) -> None:
        commands, self._outbox = self._outbox, []
        if self._over or self._transport is None or not commands:
            return
        self._transport.write(encode(commands))
        if self._transport.get_write_buffer_size() > _UNSENT_BYTES_MAX:
            self._give_up(f"it left more than {_UNSENT_BYTES_MAX} bytes unread")

    def _give_up(self, why: str) -> None:
        self._over = self._over or why
        if self._transport is not None:
            self._transport.abort()

    async def receive(self) -> list[Event]:
        """Give all events that have come, at least one; empty after ``close``."""
        while not self._inbox and not self._over and not self._closed:
            self._arrived.clear()
            await self._arrived.wait()
        if self._closed:
            return []
        if not self._inbox:
            raise ExecutorLost(f"the executor is lost: {self._over}")
        batch = list(self._inbox)
        self._inbox.clear()
        return batch

    async def hello(self) -> Hello:
        """Wait for the first event.

        Raises:
            ExecutorLost: the connection ended before it.
        """
        while not self._inbox and not self._over:
            self._arrived.clear()
            await self._arrived.wait()
        if not self._inbox:
            raise ExecutorLost(self._over)
        first = self._inbox.popleft()
        if not isinstance(first, Hello) or first.version != PROTOCOL_VERSION:
            raise ExecutorFailed(
                f"expected an executor that speaks version {PROTOCOL_VERSION}, got {first!r}; "
                "end it (its tasks end with it) or go back to the version that started it"
            )
        return first

    async def close(self) -> None:
        """Send what is still unsent, then close; never waits for an executor that does not read."""
        self._flush()
        self._closed = True
        self._arrived.set()
        if self._transport is not None:
            if self._transport.get_write_buffer_size() > 0:
                self._transport.abort()
            else:
                self._transport.close()
            await self._gone.wait()


async def _reach(paths: ExecutorPaths, options: ExecutorOptions) -> tuple[_Link, Hello]:
    """Connect or start until one says hello. The caller bounds the time."""
    while True:
        ours = None
        connection = _connected(paths)
        if connection is None:
            connection, ours = _started(paths, options)
        _, link = await asyncio.get_running_loop().create_connection(_Link, sock=connection)
        try:
            hello = await link.hello()
        except ExecutorLost:
            # It ended just now, or what we started found that another one holds the lock: look again.
            if ours is not None and (status := await _exit_status(ours)) not in {
                0,
                EXIT_LOCKED,
            }:
                raise ExecutorFailed(
                    f"the executor ended at its start with status {status}{_log_tail(paths)}"
                ) from None
            await asyncio.sleep(_RETRY_INTERVAL_S)
        except BaseException:
            await link.close()
            raise
        else:
            if ours is not None:
                _reap_when_over(ours)
            return link, hello


def _connected(paths: ExecutorPaths) -> socket.socket | None:
    """Give a connection to the executor that listens in the work directory, or None."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.setblocking(False)
    try:
        with paths.socket_address() as address:
            connection.connect(address)
    except (FileNotFoundError, ConnectionRefusedError, BlockingIOError):
        connection.close()
        return None
    except OSError:
        connection.close()
        raise
    return connection


def _started(paths: ExecutorPaths, options: ExecutorOptions) -> tuple[socket.socket, int]:
    """Start an executor and give our end of its first connection (its stdin), and its pid."""
    ours, theirs = socket.socketpair()
    settings = {
        "work_dir": paths.work_dir,
        "import_roots": [
            str(Path(package.__file__ or "").parents[1]) for package in (fairlead_agent, fairlead_proto)
        ],
        "isolation": options.isolation,
        "cgroup_parent": options.cgroup_parent,
        "path": options.path,
        "alone_timeout_ms": options.alone_timeout_ms,
        "agent_pid": os.getpid(),
    }
    argv = [sys.executable, "-I", "-S", str(executor_main.__file__), json.dumps(settings)]
    actions = [
        (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
        (os.POSIX_SPAWN_OPEN, 1, paths.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    ours.setblocking(False)
    with theirs:
        try:
            pid = os.posix_spawn(sys.executable, argv, os.environ, file_actions=actions, setsid=True)
        except OSError:
            ours.close()
            raise
    return ours, pid


async def _exit_status(pid: int) -> int:
    """Wait for the end of an executor that has hung up, and give its status (negative: the signal that ended it)."""
    while True:
        status = _reaped(pid)
        if status is not None:
            return status
        await asyncio.sleep(_RETRY_INTERVAL_S / 10)


def _reaped(pid: int) -> int | None:
    """Give the status of a child that is over, or None."""
    try:
        reaped, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return 0
    return os.waitstatus_to_exitcode(status) if reaped else None


def _reap_when_over(pid: int) -> None:
    """Keep a dead executor from staying a zombie for as long as the agent lives."""
    loop = asyncio.get_running_loop()
    pidfd = os.pidfd_open(pid)

    def reap() -> None:
        loop.remove_reader(pidfd)
        os.close(pidfd)
        _reaped(pid)

    loop.add_reader(pidfd, reap)


def _log_tail(paths: ExecutorPaths) -> str:
    """Give the end of the executor's log as the rest of an error message, or nothing."""
    with contextlib.suppress(OSError):
        text = Path(paths.log).read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace").strip()
        if text:
            return f"; its log ends with: {text}"
    return ""
