"""One process of a local cluster: a `fairlead` command of its own, logging to a file, gone when its parent is."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from signal import SIGKILL
from typing import Final

FAIRLEAD: Final = (sys.executable, "-m", "fairlead_cli.main")
"""The `fairlead` command of this very environment, whatever PATH says."""

LOG_TAIL_BYTES: Final = 4096
"""Of a log that is shown when a process dies at its start: a screenful."""


class ChildProcess:
    """Starts, stops and starts again one `fairlead` command. Not for use from several threads at once."""

    def __init__(self, name: str, arguments: Sequence[str], log: Path) -> None:
        """Args: a name for people, the command's words after `fairlead`, and the file its output is added to."""
        self.name = name
        self.arguments = tuple(arguments)
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id of the latest start; of a dead process after it died."""
        assert self._process is not None, f"{self.name} was never started"
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it has been started and still runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Of the latest start once it ended, -N for signal N; None while it runs or was never started."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        """Start it; harmless while it runs.

        Raises:
            OSError: the log cannot be written, or no process can be made.
        """
        if self.is_alive:
            return
        self.close()
        with open(self.log, "ab", opener=_open_privately) as log:
            self._process = subprocess.Popen(  # it lives longer than this block, by design
                [*FAIRLEAD, *self.arguments],
                # It ends when this pipe does, so that even a SIGKILL of ours leaves no process behind.
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "GRPC_ENABLE_FORK_SUPPORT": "0", "PYTHONUNBUFFERED": "1"},
                # Ctrl-C on the terminal reaches the parent only, which then stops the others in order.
                process_group=0,
            )

    def signal(self, number: int) -> None:
        """Send a signal; nothing happens if it is over."""
        if self._process is not None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """End it by SIGKILL, as a power failure would, and wait until it is gone."""
        self.signal(SIGKILL)
        self.wait(None)

    def wait(self, timeout_s: float | None) -> bool:
        """Wait for its end and say whether it came in time; None waits for ever."""
        if self._process is None:
            return True
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def log_tail(self) -> str:
        """The last lines it wrote."""
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - LOG_TAIL_BYTES))
                return log.read().decode(errors="replace").strip()
        except OSError as error:
            return f"(no log: {error})"

    def last_words(self) -> str:
        """How a sentence on its end goes on: with the one line by which commands refuse, or else the log's end."""
        tail = self.log_tail()
        said = [
            line
            for line in tail.splitlines()
            if line.startswith(("fairlead: ", f"fairlead {self.arguments[0]}: "))
        ]
        return f": {said[-1]} (log: {self.log})" if said else f"; the end of {self.log}:\n{tail}"

    def close(self) -> None:
        """Let go of the pipe that keeps it alive."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()


def _open_privately(path: str, flags: int) -> int:
    """Make a missing file one that other users cannot read: logs name tasks and their commands."""
    return os.open(path, flags, 0o600)
