"""The executor's one loop: commands in, processes started, watched and ended, events out.

One thread, so that it may change its own working directory and group around a spawn. Nothing in the loop waits: pipes
and sockets do not block, and what needs time (processes that do not die, groups the kernel still holds) is looked at
again in a later turn. Each turn does a bounded piece of every kind of work, so that no task holds up another one.
"""

import contextlib
import ctypes
import fcntl
import os
import select
import signal
import socket
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fairlead_agent.executor.agent_link import AgentLink, complain
from fairlead_agent.executor.command_queue import CommandQueue
from fairlead_agent.executor.isolation import Isolation, IsolationError
from fairlead_agent.executor.journal import Journal, Recorded
from fairlead_agent.executor.launch import Launcher, LaunchFailed
from fairlead_agent.executor.paths import ExecutorPaths
from fairlead_agent.executor.probe import choose, group_directories
from fairlead_agent.executor.processes import stat_of
from fairlead_agent.executor.protocol import (
    EXIT_LOCKED,
    PROTOCOL_VERSION,
    Event,
    Exited,
    Forget,
    Hello,
    KillAll,
    Measurement,
    MeasureUsage,
    Shutdown,
    Signal,
    Start,
    Started,
    StartFailed,
    Usage,
)
from fairlead_agent.executor.recovery import boot_id, end_leftovers, lost
from fairlead_agent.executor.running import FREE_AFTER_MS, Ending, RunningTask
from fairlead_proto.ids import TaskKey
from fairlead_proto.task_state import Reason

EXIT_FAILED: Final = 1

_PR_SET_CHILD_SUBREAPER: Final = 36

_TASKS_PER_TURN: Final = 32
"""To measure one takes a millisecond, and so may letting a killed one end: so many delay the others' ends by some 30 ms."""

_STARTS_MS: Final = 50
"""In one turn, on a host so short of CPU that one start takes this long. Nobody could be killed meanwhile."""

_REPEAT_INTERVAL_MS: Final = 20
"""Until what is being killed is looked at again. Mostly SIGCHLD comes earlier."""

_REMOVAL_INTERVAL_MS: Final = 200
"""Until a group that the kernel has not let go of is removed again. Nobody waits for it."""

_CLOSE_ROUNDS: Final = 50
"""A second: the kernel lets go of a group when its last process has been switched out. What stays is taken by the next
executor."""


class Server:
    """The state of the loop."""

    def __init__(self, isolation: Isolation, journal: Journal, settings: Mapping[str, Any]) -> None:
        self._isolation = isolation
        self._journal = journal
        self._alone_timeout_ms: int = settings["alone_timeout_ms"]
        self._epoll = select.epoll()
        self._listener: socket.socket | None = None
        self._link: AgentLink | None = None
        self._tasks: dict[TaskKey, RunningTask] = {}
        self._by_pid: dict[int, RunningTask] = {}
        self._by_pipe: dict[int, RunningTask] = {}
        self._ending: dict[TaskKey, RunningTask] = {}
        self._killed: deque[tuple[int, RunningTask]] = deque()
        """Those that were killed, and until when their CPU quota holds for what still lives; in this order."""
        self._removable: list[RunningTask] = []
        """Over and reported; their groups are still held by the kernel."""
        self._arrivals: list[socket.socket] = []
        """Agents that have connected and not been greeted."""
        self._commands = CommandQueue(self._tasks)
        self._measuring: deque[TaskKey] = deque()
        """Tasks yet to be measured for the event that was asked for."""
        self._measured: list[tuple[TaskKey, Measurement]] = []
        self._measurements_due = 0
        """How many such events were asked for."""
        self._events: list[Event] = []
        self._group_count = 0
        self._is_ending = False
        self._alone_since_ms = _monotonic_ms()
        self._wakeup, wakeup_writer = os.pipe()
        for end in (self._wakeup, wakeup_writer):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wakeup_writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._commands.end_all())
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._launcher = Launcher(isolation, path=settings["path"])
        self._epoll.register(self._wakeup, select.EPOLLIN)

    def listen(self, listener: socket.socket, first: socket.socket | None) -> None:
        """Serve agents that connect to ``listener``, and at once the one that started us."""
        listener.setblocking(False)
        self._listener = listener
        self._epoll.register(listener.fileno(), select.EPOLLIN)
        if first is not None:
            self._greet(first)

    def run(self) -> None:
        """Work until told to end, or alone for too long."""
        while not self._is_over():
            for descriptor, _ in self._epoll.poll(self._timeout_s()):
                self._serve(descriptor)
            self._turn()

    def close(self) -> None:
        """Give back the groups, and then hang up: an agent that sees the end can rely on it."""
        for _ in range(_CLOSE_ROUNDS):
            self._remove_groups()
            if not self._removable and self._isolation.close():
                break
            time.sleep(_REPEAT_INTERVAL_MS / 1000)
        self._launcher.close()
        if self._link is not None:
            self._link.close()

    def _is_over(self) -> bool:
        if self._tasks or self._commands:
            self._alone_since_ms = _monotonic_ms()
            return False
        if self._link is not None and self._link.is_open:
            self._alone_since_ms = _monotonic_ms()
        return self._is_ending or _monotonic_ms() - self._alone_since_ms >= self._alone_timeout_ms

    def _timeout_s(self) -> float | None:
        if self._commands or self._measurements_due:
            return 0
        if self._ending or self._killed:
            return _REPEAT_INTERVAL_MS / 1000
        if self._removable:
            return _REMOVAL_INTERVAL_MS / 1000
        if self._tasks or (self._link is not None and self._link.is_open):
            return None
        return max(self._alone_since_ms + self._alone_timeout_ms - _monotonic_ms(), 0) / 1000

    def _serve(self, descriptor: int) -> None:
        """React to one ready descriptor. One that was closed earlier in this turn is no longer known."""
        task = self._by_pipe.get(descriptor)
        if task is not None:
            if task.pump(descriptor):
                return
            del self._by_pipe[descriptor]
        elif self._link is not None and descriptor == self._link.descriptor and self._link.is_open:
            self._commands.add(self._link.receive())
            self._link.flush()
        elif self._listener is not None and descriptor == self._listener.fileno():
            with contextlib.suppress(OSError):
                self._arrivals.append(self._listener.accept()[0])
        elif descriptor == self._wakeup:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wakeup, 4096)
            self._reap()

    def _greet_arrivals(self) -> None:
        """Take the newest agent for the only one, once all that the one before it had sent is done."""
        if not self._arrivals or self._commands:
            return
        if self._link is not None and self._link.is_open:
            self._commands.add(self._link.receive())
            if self._commands:
                return
            self._link.close()
        for connection in self._arrivals:
            self._greet(connection)
        self._arrivals.clear()

    def _greet(self, connection: socket.socket) -> None:
        if self._link is not None:
            self._link.close()
        self._link = AgentLink(connection, self._epoll)
        running = tuple(task.started for task in self._tasks.values())
        ended = tuple(self._journal.ended.values())
        isolation = self._isolation
        self._link.send(
            [Hello(PROTOCOL_VERSION, os.getpid(), isolation.name, isolation.note, running, ended)]
        )

    def _turn(self) -> None:
        starts: list[Start] = []
        forgotten: list[TaskKey] = []
        for command in self._commands.take():
            match command:
                case Start():
                    if not self._is_ending:
                        starts.append(command)
                case Forget(key):
                    forgotten.append(key)
                case _:
                    self._obey(command)
        self._record(forgotten=forgotten)
        if starts:
            self._start_all(starts)
        if self._measurements_due:
            self._measure_some()
        ended = self._finish_ended()
        self._free_killed()
        self._record(ends=ended)
        self._events += ended
        self._remove_groups()
        if self._events and self._link is not None and self._link.is_open:
            self._link.send(self._events)
        self._events = []
        self._greet_arrivals()

    def _start_all(self, starts: list[Start]) -> None:
        """Start what is not known yet: written down before, so that a successor finds it, and after, with its pid."""
        new: dict[TaskKey, Start] = {}
        for start in starts:
            if start.key not in self._tasks and start.key not in self._journal.ended:
                new.setdefault(start.key, start)
        message = "ended before it was started"
        unwanted = [key for key in new if self._commands.take_unwanted(key)]
        failures: list[Exited | StartFailed] = [
            StartFailed(key, Reason.EXECUTOR_FAILED, message) for key in unwanted
        ]
        for key in unwanted:
            del new[key]
        try:
            self._journal.record(starts=[Recorded(start.key, start.sandbox, 0, 0) for start in new.values()])
        except OSError as error:
            message = f"cannot write down what is started: {error}"
            failures += [StartFailed(key, Reason.EXECUTOR_FAILED, message) for key in new]
            new = {}
        late = self._launch_all(new, failures)
        # Many a short task has ended by now. Its pid is nobody's any more, and its output is taken with its end.
        self._reap()
        running = [task for key in new if (task := self._tasks.get(key)) and key not in self._ending]
        for task in running:
            self._watch(task)
        pids = [
            Recorded(task.key, new[task.key].sandbox, task.started.pid, task.started.start_ticks)
            for task in running
        ]
        self._record(starts=pids, ends=failures)
        self._commands.put_back([start for start in starts if start.key in late])
        self._events += self._answers([start for start in starts if start.key not in late])

    def _launch_all(self, new: Mapping[TaskKey, Start], failures: list[Exited | StartFailed]) -> set[TaskKey]:
        """Launch tasks, add those that cannot be to ``failures``, and give those that a turn has no time for."""
        late: set[TaskKey] = set()
        begun_ms = _monotonic_ms()
        # Else each one that ends meanwhile would interrupt the others' starts; all of them are heard of behind.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))
        try:
            for start in new.values():
                if _monotonic_ms() - begun_ms > _STARTS_MS:
                    late.add(start.key)
                    continue
                try:
                    self._launch(start)
                except LaunchFailed as failure:
                    failures.append(StartFailed(start.key, failure.reason, failure.message))
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGCHLD,))
        return late

    def _watch(self, task: RunningTask) -> None:
        """Take what a task prints as it comes."""
        for stream in task.streams:
            self._by_pipe[stream.read_end] = task
            self._epoll.register(stream.read_end, select.EPOLLIN)

    def _record(
        self,
        *,
        forgotten: Sequence[TaskKey] = (),
        starts: Sequence[Recorded] = (),
        ends: Sequence[Exited | StartFailed] = (),
    ) -> None:
        """Write down what has happened. It has happened even if the disk is full: the journal catches up later."""
        try:
            self._journal.record(forgotten=forgotten, starts=starts, ends=ends)
        except OSError as error:
            complain(f"journal: {error}")

    def _answers(self, starts: list[Start]) -> list[Event]:
        answers: list[Event] = []
        for start in starts:
            task = self._tasks.get(start.key)
            answers.append(task.started if task is not None else self._journal.ended[start.key])
        return answers

    def _launch(self, start: Start) -> None:
        self._group_count += 1
        launched = self._launcher.launch(start, f"t{self._group_count}")
        stat = stat_of(launched.pid)
        assert stat is not None, f"our own child {launched.pid} is not reaped yet, so it has a stat"
        task = RunningTask(start, launched, Started(start.key, launched.pid, stat.start_ticks))
        self._tasks[start.key] = self._by_pid[launched.pid] = task

    def _obey(self, command: Signal | KillAll | MeasureUsage | Shutdown) -> None:
        match command:
            case Signal(key, number):
                if (task := self._tasks.get(key)) is not None:
                    task.signal(number)
            case KillAll(key):
                if (task := self._tasks.get(key)) is not None:
                    self._isolation.refresh()
                    self._kill(task)
            case MeasureUsage():
                self._measurements_due += 1
                if self._measurements_due == 1:
                    self._measuring = deque(self._tasks)
            case Shutdown(kill_tasks):
                self._is_ending = True
                self._measurements_due = 0
                self._isolation.refresh()
                tasks = list(self._tasks.values()) if kill_tasks else []
                for task in tasks:
                    # Of thousands the last must not wait until the groups of all others have been written to.
                    task.signal(signal.SIGKILL)
                for task in tasks:
                    self._kill(task)

    def _measure_some(self) -> None:
        """Go on with a measurement: thousands of tasks take seconds, which nobody's end must wait for."""
        self._isolation.refresh()
        for _ in range(min(len(self._measuring), _TASKS_PER_TURN)):
            key = self._measuring.popleft()
            if (task := self._tasks.get(key)) is not None:
                if task.is_out_of_memory():
                    self._kill(task)
                self._measured.append((key, task.measure()))
        if not self._measuring:
            self._events.append(Usage(tuple(self._measured)))
            self._measured = []
            self._measurements_due -= 1
            self._measuring = deque(self._tasks if self._measurements_due else ())

    def _kill(self, task: RunningTask) -> None:
        task.kill()
        self._killed.append((_monotonic_ms() + FREE_AFTER_MS, task))

    def _free_killed(self) -> None:
        """Let tasks end that were killed and are still there, some in a turn."""
        for _ in range(min(len(self._killed), _TASKS_PER_TURN)):
            if self._killed[0][0] > _monotonic_ms():
                return
            _, task = self._killed.popleft()
            if self._tasks.get(task.key) is task and task.key not in self._ending:
                task.group.free()

    def _reap(self) -> None:
        """Collect every child that has ended: main processes, and orphans that became ours."""
        while True:
            try:
                pid, status, rusage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            task = self._by_pid.pop(pid, None)
            if task is not None:
                task.end(Ending(os.waitstatus_to_exitcode(status), rusage, _monotonic_ms()))
                self._ending[task.key] = task

    def _finish_ended(self) -> list[Exited]:
        """Kill what is left of tasks whose main process has ended, and give the reports of those that are gone."""
        if not self._ending:
            return []
        self._isolation.refresh()
        done = [task for task in self._ending.values() if task.is_gone(_monotonic_ms())]
        for task in done:
            for stream in task.streams:
                self._by_pipe.pop(stream.read_end, None)
            del self._ending[task.key], self._tasks[task.key]
            self._removable.append(task)
        return [task.finish(int(time.time() * 1000)) for task in done]

    def _remove_groups(self) -> None:
        if self._removable:
            self._removable = [task for task in self._removable if not task.group.remove()]
            # An orphan that could be of one of these tasks or of others is of the others now, or of nobody.
            self._isolation.settle()


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def serve(settings: Mapping[str, Any]) -> int:
    """Be the executor of one work directory; gives the process's exit status.

    Args:
        settings: work_dir, isolation, cgroup_parent, path, alone_timeout_ms, agent_pid. Stdin is the first connection
            of the agent, stderr the log.
    """
    paths = ExecutorPaths(settings["work_dir"])
    first = socket.socket(fileno=os.dup(0))
    # Whatever the agent has open without care, no task may have.
    os.closerange(3, first.fileno())
    os.closerange(first.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.close(null)
    lock = os.open(paths.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return EXIT_LOCKED
    os.ftruncate(lock, 0)
    os.write(lock, f"{os.getpid()}\n".encode())
    os.chdir("/")
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        complain("expected to become the reaper of orphans (prctl), was refused")
        return EXIT_FAILED
    try:
        isolation, journal = _prepared(paths, settings)
    except (IsolationError, OSError, ValueError) as error:
        complain(str(error))
        return EXIT_FAILED
    _serve_until_over(Server(isolation, journal, settings), paths, first)
    journal.close()
    return 0


def _serve_until_over(server: Server, paths: ExecutorPaths, first: socket.socket) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(paths.socket)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener, paths.socket_address() as address:
        listener.bind(address)
        os.chmod(paths.socket, 0o600)
        listener.listen(8)
        server.listen(listener, first)
        try:
            server.run()
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(paths.socket)
            server.close()


def _prepared(paths: ExecutorPaths, settings: Mapping[str, Any]) -> tuple[Isolation, Journal]:
    """End what a dead predecessor left, and have isolation and journal ready."""
    journal = Journal(paths.journal)
    running = list(journal.running.values())
    is_same_boot = journal.boot_id == boot_id()
    parent = settings["cgroup_parent"]
    # The journal may be lost, or of an earlier parent: it knows more of the groups, or less.
    directories = dict.fromkeys(
        [*journal.directories, *group_directories(parent=parent, work_dir=paths.work_dir)]
    )
    # Pids of an earlier boot are somebody else's now. Groups of an earlier run of a container may still be there.
    left_count = end_leftovers(running if is_same_boot else [], list(directories), paths.work_dir)
    if left_count:
        complain(f"{left_count} processes of an earlier executor could not be killed")
    isolation = choose(
        settings["isolation"], parent=parent, work_dir=paths.work_dir, agent_pid=settings["agent_pid"]
    )
    if journal.damage:
        complain(f"{journal.damage}; kept as {journal.set_aside()}; whatever ran has been killed")
    now_ms = int(time.time() * 1000)
    why = _why_lost(is_same_boot=is_same_boot, is_damaged=bool(journal.damage))
    journal.open(boot_id=boot_id(), directories=list(isolation.directories))
    journal.record(ends=[lost(recorded, why=why, now_ms=now_ms) for recorded in running])
    return isolation, journal


def _why_lost(*, is_same_boot: bool, is_damaged: bool) -> str:
    if is_same_boot:
        return "the executor that ran it died, and what was left of it was killed"
    if is_damaged:
        return "the executor's journal was damaged, and what was left of the task was killed"
    return "the host or container was restarted"
