"""Processes of a local cluster that are none."""

import signal
from collections.abc import Callable
from pathlib import Path

from fairlead_local.child_process import ChildProcess


class FakeProcess(ChildProcess):
    """A process that is dead or alive as the test says, and counts its starts."""

    def __init__(self, name: str) -> None:
        super().__init__(name, (), Path("/nowhere"))
        self.alive = True
        self.starts = 0
        self.signals: list[int] = []
        self.when_signalled: Callable[[], None] = lambda: None

    @property
    def is_alive(self) -> bool:
        return self.alive

    @property
    def pid(self) -> int:
        return 1

    def start(self) -> None:
        self.alive = True
        self.starts += 1

    def signal(self, number: int) -> None:
        self.signals.append(number)
        self.alive = self.alive and number != signal.SIGKILL
        self.when_signalled()
