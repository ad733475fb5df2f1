"""One task from its start to the report of its end."""

import contextlib
import os
import resource
import signal
from collections.abc import Iterator
from typing import Final, NamedTuple

from fairlead_agent.executor.launch import Launched
from fairlead_agent.executor.protocol import Exited, Measurement, Start, Started

_KILL_TIMEOUT_MS: Final = 10_000
"""A killed process is gone in milliseconds, but for one that hangs in the kernel (a dead file server). Its task's end
is then reported all the same, and says so."""


FREE_AFTER_MS: Final = 200
"""From SIGKILL until what still lives no longer needs to keep to its CPU quota. Nearly all are gone by then, and to free one
takes longer than to kill it."""


class Ending(NamedTuple):
    """How the main process ended."""

    code: int
    """Exit code, or minus the signal."""
    rusage: resource.struct_rusage
    """Of it and of the children it waited for."""
    at_ms: int
    """On the monotonic clock."""


class RunningTask:
    """A task that has a process, until everything of it is gone."""

    def __init__(self, start: Start, launched: Launched, started: Started) -> None:
        self.key = start.key
        self.started = started
        self.group = launched.group
        self.streams = launched.streams
        self._ending: Ending | None = None
        self._was_killed = False
        self._was_out_of_memory = False
        self._left_count = 0

    def pump(self, pipe: int) -> bool:
        """Take one piece of output; false once the stream is over, and then it is closed."""
        stream = self.streams[0] if pipe == self.streams[0].read_end else self.streams[1]
        if stream.pump():
            return True
        stream.close()
        return False

    def signal(self, number: int) -> None:
        """Send a signal to the process group, if its leader still is the task's main process; an unknown number is ignored."""
        if self._ending is None:
            with contextlib.suppress(OSError):
                os.killpg(self.started.pid, number)

    def kill(self) -> None:
        """Kill every process there is now; the rest follows when the main process has ended."""
        self._was_killed = True
        if self._ending is None:
            self.signal(signal.SIGKILL)
        self.group.kill()

    def is_out_of_memory(self) -> bool:
        """Whether the kernel has killed one of its processes for memory, so that the rest is to be killed as well.

        Nobody can reason about such a task. With cgroup v2 the kernel does this by itself.
        """
        if not self._was_killed and self.group.memory_kills():
            self._was_out_of_memory = True
        return self._was_out_of_memory and not self._was_killed

    def measure(self) -> Measurement:
        """Give what it uses now."""
        return self._with_output(self.group.measure())

    def _with_output(self, measured: Measurement) -> Measurement:
        if not self.streams:
            return measured._replace(stdout_bytes=0, stderr_bytes=0)
        stdout, stderr = (stream.log for stream in self.streams)
        return measured._replace(
            sandbox_bytes=stdout.disk_bytes + stderr.disk_bytes,
            stdout_bytes=stdout.written_bytes,
            stderr_bytes=stderr.written_bytes,
        )

    def end(self, ending: Ending) -> None:
        """Learn how the main process ended."""
        self._ending = ending
        self.group.main_ended()

    def is_gone(self, now_ms: int) -> bool:
        """Whether no process of it is left; those that are get killed. True also when that takes too long."""
        assert self._ending is not None
        left = self.group.pids()
        if not left:
            return True
        self.group.kill()
        if now_ms - self._ending.at_ms > FREE_AFTER_MS:
            self.group.free()
        self._left_count = len(left)
        return now_ms - self._ending.at_ms > _KILL_TIMEOUT_MS

    def finish(self, finished_ms: int) -> Exited:
        """Take the rest of the output, close everything but the group, and give the report."""
        assert self._ending is not None
        for stream in self.streams:
            if stream.read_end >= 0:
                stream.drain()
                stream.close()
        code = self._ending.code
        usage = self._final_usage(self._ending.rusage)
        is_out_of_memory = self._was_out_of_memory or (
            code != 0 and not self._was_killed and self.group.memory_kills() > 0
        )
        return Exited(
            key=self.key,
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            out_of_memory=is_out_of_memory,
            message="; ".join(filter(None, self._remarks(usage, is_out_of_memory=is_out_of_memory))),
            usage=usage,
            finished_ms=finished_ms,
        )

    def _final_usage(self, rusage: resource.struct_rusage) -> Measurement:
        """Give the group's counters, or where it has none those of the main process and its waited-for children."""
        counted = self.group.measure_ended()
        # The kernel's figure begins with the size of the executor, whose memory the child shared until it was another
        # program; only what is above that is the task's.
        executor_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        known_peak = rusage.ru_maxrss * 1024 if rusage.ru_maxrss > executor_kib else 0
        return self._with_output(counted)._replace(
            cpu_time_ms=max(counted.cpu_time_ms, int((rusage.ru_utime + rusage.ru_stime) * 1000)),
            mem_bytes=0,
            mem_peak_bytes=counted.mem_peak_bytes or known_peak,
        )

    def _remarks(self, usage: Measurement, *, is_out_of_memory: bool) -> Iterator[str]:
        if is_out_of_memory:
            yield f"out of memory: limit {usage.mem_limit_bytes} bytes, peak {usage.mem_peak_bytes} bytes"
        elif (kills := self.group.memory_kills()) and not self._was_killed:
            yield f"{kills} of its processes killed by the kernel at its memory limit of {usage.mem_limit_bytes} bytes"
        if self._left_count and self.group.pids():
            yield f"{self._left_count} processes of it could not be killed"
        for name, stream in zip(("stdout", "stderr"), self.streams, strict=False):
            yield stream.complaint(name)
