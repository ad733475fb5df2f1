"""Turns a Start into a process: sandbox, streams, environment, group, and the reason when it does not work."""

import errno
import os
import resource
import signal
import stat
import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from fairlead_agent.executor.isolation import Group, Isolation, Limits
from fairlead_agent.executor.output import OutputStream
from fairlead_agent.executor.protocol import Start
from fairlead_proto.task_state import Reason

_UNDO_ROUNDS: Final = 100


class LaunchFailed(Exception):
    """No process was made; whatever was made for it is undone."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class Launched(NamedTuple):
    """A process that runs."""

    pid: int
    group: Group
    streams: tuple[OutputStream, ...]
    """Standard output and standard error, or none for a task without files."""


class Launcher:
    """What all launches share."""

    def __init__(self, isolation: Isolation, *, path: str) -> None:
        self._isolation = isolation
        self._path = path
        # Python ignores SIGPIPE and SIGXFSZ, and whoever started the agent may have ignored others, as nohup does.
        # Signals that are caught become the default ones by themselves.
        self._ignored_signals = [
            number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN
        ]
        self._null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        # Below any limit that lets a program run at all.
        self._low = [os.dup(self._null), os.dup(self._null)]
        # For itself the executor wants all descriptors it can have; its tasks get the limit it was started with.
        self._task_files = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._own_files = (self._task_files[1], self._task_files[1])
        resource.setrlimit(resource.RLIMIT_NOFILE, self._own_files)

    def close(self) -> None:
        """Launch no more."""
        for descriptor in (self._null, *self._low):
            os.close(descriptor)

    def launch(self, start: Start, group_name: str) -> Launched:
        """Start the task's main process, inside its group from its first instruction.

        Raises:
            LaunchFailed: it could not be started.
        """
        if not start.argv or not start.argv[0]:
            raise LaunchFailed(Reason.INVALID_TASK, f"command: expected a program, got {list(start.argv)!r}")
        names = ("stdout", "stderr") if start.log_bytes_max else ()
        if names:
            _make_sandbox(start.sandbox)
        streams: list[OutputStream] = []
        try:
            # One by one, so that the first is known where there is no room for the second.
            streams.extend(OutputStream(f"{start.sandbox}/{name}", start.log_bytes_max) for name in names)
            group = self._isolation.create(group_name, start.sandbox)
        except OSError as error:
            for stream in streams:
                stream.close()
            raise LaunchFailed(Reason.EXECUTOR_FAILED, f"cannot prepare the task: {error}") from error
        try:
            pid = self._spawn_inside(group, start, streams)
        except LaunchFailed:
            for stream in streams:
                stream.close()
            group.remove()
            raise
        for stream in streams:
            stream.close_write_end()
        return Launched(pid, group, tuple(streams))

    def _spawn_inside(self, group: Group, start: Start, streams: list[OutputStream]) -> int:
        try:
            group.enter()
        except OSError as error:
            group.leave()
            raise LaunchFailed(Reason.EXECUTOR_FAILED, f"cannot enter the task's group: {error}") from error
        try:
            pid = self._spawn_at(start, streams)
        finally:
            # An executor that cannot leave must not go on inside a task's limits: it ends, and the next one cleans up.
            group.leave()
        group.adopt(pid)
        try:
            group.limit(Limits(start.cpus_milli, start.mem_bytes))
        except OSError as error:
            _undo(pid, group)
            raise LaunchFailed(Reason.EXECUTOR_FAILED, f"cannot limit the task: {error}") from error
        return pid

    def _spawn_at(self, start: Start, streams: list[OutputStream]) -> int:
        """Spawn from within the task's working directory: posix_spawn cannot change it, and this process has one thread."""
        directory = start.directory
        try:
            os.chdir(directory)
        except OSError as error:
            raise LaunchFailed(
                Reason.SANDBOX_FAILED,
                f"working_directory: expected a directory, got {directory!r}: {error.strerror}",
            ) from error
        except ValueError as error:
            raise LaunchFailed(Reason.INVALID_TASK, f"working_directory: {error}") from error
        try:
            environment = task_environment(start, directory=directory, path=self._path)
            program = find_program(start.argv[0], environment["PATH"])
            return self._spawn(program, start.argv, environment, streams)
        finally:
            os.chdir("/")

    def _spawn(
        self, program: str, argv: tuple[str, ...], environment: Mapping[str, str], streams: list[OutputStream]
    ) -> int:
        ends = [stream.write_end for stream in streams] or [self._null, self._null]
        is_high = max(ends) >= self._task_files[0]
        if is_high:
            # The C library takes no descriptor to pass on that is beyond the limit in force, which is the task's.
            for low, end in zip(self._low, ends, strict=True):
                os.dup2(end, low, inheritable=False)
        actions = [
            (os.POSIX_SPAWN_DUP2, descriptor, number)
            for number, descriptor in enumerate([self._null, *(self._low if is_high else ends)])
        ]
        resource.setrlimit(resource.RLIMIT_NOFILE, self._task_files)
        try:
            return os.posix_spawn(
                program,
                argv,
                environment,
                file_actions=actions,
                setsid=True,
                setsigmask=(),
                setsigdef=self._ignored_signals,
            )
        except OSError as error:
            raise LaunchFailed(*_explained(error, program, argv, environment)) from error
        except ValueError as error:
            raise LaunchFailed(Reason.INVALID_TASK, f"command or environment: {error}") from error
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, self._own_files)
            if is_high:
                # An end that stayed open would keep the stream from ending.
                for low in self._low:
                    os.dup2(self._null, low, inheritable=False)


def task_environment(start: Start, *, directory: str, path: str) -> dict[str, str]:
    """Give the whole environment of a task: what it declares, over defaults, under what Fairlead says about it."""
    framework_id, task_id = start.key
    homes = {"HOME": start.sandbox, "TMPDIR": start.sandbox} if start.log_bytes_max else {"HOME": "/"}
    return {
        "PATH": path,
        **homes,
        **start.environment,
        "PWD": os.path.normpath(directory),
        "FAIRLEAD_TASK_ID": task_id,
        "FAIRLEAD_FRAMEWORK_ID": framework_id,
        "FAIRLEAD_SANDBOX": start.sandbox,
        "FAIRLEAD_CPUS": f"{start.cpus_milli / 1000:g}",
        "FAIRLEAD_MEM_BYTES": str(start.mem_bytes),
    }


def find_program(name: str, path: str) -> str:
    """Give the file to execute for ``name``, as a shell would find it from the current directory.

    Raises:
        LaunchFailed: there is none, or none that may be executed.
    """
    candidates = [name] if "/" in name else [os.path.join(directory, name) for directory in path.split(":")]
    found = ""
    for candidate in candidates:
        try:
            mode = os.stat(candidate).st_mode
        except (OSError, ValueError):
            continue
        if stat.S_ISREG(mode) and os.access(candidate, os.X_OK):
            return candidate
        found = found or f"{candidate} is " + ("a directory" if stat.S_ISDIR(mode) else "not executable")
    if found:
        raise LaunchFailed(Reason.COMMAND_NOT_EXECUTABLE, f"command: expected a program, but {found}")
    where = "" if "/" in name else f" in PATH {path}"
    raise LaunchFailed(Reason.COMMAND_NOT_FOUND, f"command: {name!r} not found{where}")


def _make_sandbox(path: str) -> None:
    try:
        try:
            os.mkdir(path, 0o700)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            os.mkdir(path, 0o700)
        except FileExistsError:
            if not os.path.isdir(path):
                raise
    except OSError as error:
        raise LaunchFailed(Reason.SANDBOX_FAILED, f"sandbox: cannot make {path}: {error.strerror}") from error
    except ValueError as error:
        raise LaunchFailed(Reason.INVALID_TASK, f"sandbox: {error}") from error


def _explained(
    error: OSError, program: str, argv: tuple[str, ...], environment: Mapping[str, str]
) -> tuple[Reason, str]:
    """Say why the kernel did not execute a file that is there and executable."""
    match error.errno:
        case errno.ENOEXEC:
            return (
                Reason.COMMAND_NOT_EXECUTABLE,
                f"command: {program} is neither a binary for this host nor a script with #!",
            )
        case errno.ENOENT:
            return (
                Reason.COMMAND_NOT_EXECUTABLE,
                f"command: the interpreter {program} asks for does not exist",
            )
        case errno.E2BIG:
            size = sum(len(os.fsencode(text)) + 1 for text in (*argv, *environment, *environment.values()))
            return (
                Reason.COMMAND_NOT_EXECUTABLE,
                f"command: {size} bytes of arguments and environment are more than this host takes",
            )
        case errno.EACCES | errno.ELOOP | errno.ETXTBSY | errno.EINVAL | errno.ENOTDIR | errno.EPERM:
            return Reason.COMMAND_NOT_EXECUTABLE, f"command: cannot execute {program}: {error.strerror}"
        case _:
            return Reason.EXECUTOR_FAILED, f"cannot start {program}: {error.strerror}"


def _undo(pid: int, group: Group) -> None:
    """Kill what runs without the limits it was promised. Waits some milliseconds, on a host that is broken anyway."""
    group.kill()
    os.waitpid(pid, 0)
    group.main_ended()
    for _ in range(_UNDO_ROUNDS):
        if not group.pids():
            return
        group.kill()
        time.sleep(0.001)
