"""Child processes of a benchmark: Python modules that say when they are ready, answer by lines, and never outlive it."""

import os
import selectors
import signal
import subprocess  # starting processes is what this file is for
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

READY_TIMEOUT_S: Final = 30.0
END_TIMEOUT_S: Final = 5.0


class BenchFailed(Exception):
    """A process of the benchmark died or did not answer."""


class Child:
    """A Python module that runs as a process of its own until the stack it belongs to is left."""

    def __init__(self, stack: ExitStack, module: str, *words: str) -> None:
        self._module = module
        # A session of its own, because Ctrl-C is for us: we end the children, in their order.
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        stack.callback(self._end)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def say(self, line: str) -> None:
        """Write a line to its standard input."""
        assert self._process.stdin is not None, "children are started with pipes"
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._dead() from None

    def answer(self, timeout_s: float) -> str:
        """The next line of its standard output; one at a time is due.

        Raises:
            BenchFailed: it died, or wrote nothing in time.
        """
        pipe = self._process.stdout
        assert pipe is not None, "children are started with pipes"
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            if not selector.select(timeout_s):
                raise BenchFailed(f"{self._module} did not answer within {timeout_s:g} s")
        line = pipe.readline()
        if not line:
            raise self._dead()
        return line

    def wait_for_line(self, path: Path) -> str:
        """The line it writes into a file when it is ready.

        Raises:
            BenchFailed: it died, or was not ready in time.
        """
        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline:
            if path.exists() and (text := path.read_text()).endswith("\n"):
                return text.strip()
            if self._process.poll() is not None:
                raise self._dead()
            time.sleep(0.01)
        raise BenchFailed(f"{self._module} was not ready within {READY_TIMEOUT_S:g} s")

    def _dead(self) -> BenchFailed:
        return BenchFailed(f"{self._module} ended with exit code {self._process.wait(END_TIMEOUT_S)}")

    def _end(self) -> None:
        self._process.terminate()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # It died with a line of ours unread.
                    pipe.close()
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def end_with_parent() -> None:
    """In a child that reads nothing from its standard input: end it when its parent is gone, whatever took that one."""

    def watch() -> None:
        while os.read(0, 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent", daemon=True).start()
