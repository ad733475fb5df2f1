"""The order in which an executor carries out what its agent has asked for.

What ends tasks does not wait for starts: on a host short of CPU thousands of them take a minute, and those that are not
wanted any more are not made at all. Everything else keeps its order.
"""

import signal
from collections import deque
from collections.abc import Container, Sequence
from typing import Final

from fairlead_agent.executor.protocol import Command, Forget, KillAll, Shutdown, Signal, Start
from fairlead_proto.ids import TaskKey

COMMANDS_PER_TURN: Final = 32
"""A start takes about 200 µs: this many delay the output and the ends of other tasks by some 6 ms."""

ENDS_PER_TURN: Final = 128
"""To end a task takes some 50 µs, with cgroup v1 some 150 µs."""


class CommandQueue:
    """Commands that wait: those that end tasks, and before them the executor's own end, apart from the others."""

    def __init__(self, running: Container[TaskKey]) -> None:
        """Args: the tasks that run, which the owner keeps up to date."""
        self._running = running
        self._ends: deque[Signal | KillAll | Shutdown] = deque()
        self._others: deque[Command] = deque()
        self._waiting: set[TaskKey] = set()
        """Tasks of the starts among the others."""
        self._unwanted: set[TaskKey] = set()
        """Those of these tasks that are to be ended."""

    def __len__(self) -> int:
        return len(self._ends) + len(self._others)

    def end_all(self) -> None:
        """Have the executor end before anything else; for signal handlers, so it is one step."""
        self._ends.appendleft(Shutdown(kill_tasks=True))

    def add(self, commands: Sequence[Command]) -> None:
        """Queue what has come."""
        for command in commands:
            match command:
                case Shutdown(kill_tasks=True):
                    self.end_all()
                case KillAll(key) | Signal(key, signal.SIGTERM):
                    if key in self._running:
                        self._ends.append(command)
                    elif key in self._waiting:
                        self._unwanted.add(key)
                case Start(key):
                    self._waiting.add(key)
                    self._others.append(command)
                case _:
                    self._others.append(command)

    def put_back(self, starts: Sequence[Start]) -> None:
        """Have starts come first again for which a turn had no time."""
        self._waiting.update(start.key for start in starts)
        self._others.extendleft(reversed(starts))

    def take(self) -> list[Command]:
        """Give the commands of the next turn. What follows a start may be about it, so a turn ends with its starts."""
        taken: list[Command] = []
        while self._ends and len(taken) < ENDS_PER_TURN:
            taken.append(self._ends.popleft())
            if isinstance(taken[-1], Shutdown):
                self._keep_what_is_written_down()
        started = False
        for _ in range(min(len(self._others), COMMANDS_PER_TURN)):
            if started and not isinstance(self._others[0], Start):
                break
            command = self._others.popleft()
            if isinstance(command, Start):
                self._waiting.discard(command.key)
                started = True
            taken.append(command)
        return taken

    def take_unwanted(self, key: TaskKey) -> bool:
        """Whether a task was to be ended before it was started; says so once."""
        is_unwanted = key in self._unwanted
        self._unwanted.discard(key)
        return is_unwanted

    def _keep_what_is_written_down(self) -> None:
        """Drop what an executor that kills all its tasks need not do."""
        self._ends.clear()
        self._others = deque(command for command in self._others if isinstance(command, Forget))
        self._waiting.clear()
        self._unwanted.clear()
