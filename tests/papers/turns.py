"""Processes that use one resource at a time, in turns, ranked by the live policy ``bbf``: the simulator of paper 004, 4.1.

Each resource serves one process for a quantum of 0.1 s; then the waiting one with the smallest key of the policy is next,
the same global key on every resource, and of equal keys the one that has waited longest. Time is virtual, in milliseconds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Final

from fairlead_master.allocation.api import Weight
from fairlead_master.allocation.policies.bbf import BottleneckFairness

QUANTUM_MS: Final = 100
"""Section 4.1: "they are done in quanta of 0.1 seconds"."""

IDLE: Final = -1
"""In a program in place of a resource: "we use the 'idle' resource to delay the blue process"."""

Phase = tuple[int, int]
"""A resource by place, or ``IDLE``, and for how many milliseconds it is used."""


@dataclass
class Process:
    """What it has still to do, and what it did."""

    name: str
    program: Sequence[Phase]
    phase: int = 0
    left_ms: int = 0
    """Of the phase it is in."""
    waits_since: tuple[int, int] = (0, 0)
    """When it joined the queue it is in, and in which order."""
    ended_ms: int | None = None
    used_ms: list[int] = field(default_factory=list)
    """By resource."""


class Turns:
    """Resources, processes and the time."""

    def __init__(self, resources: int) -> None:
        self.policy = BottleneckFairness()
        self.policy.set_capacity((1,) * resources, 0)
        self.processes: dict[str, Process] = {}
        self.now_ms = 0
        self._queues: list[list[Process]] = [[] for _ in range(resources)]
        self._busy = [False] * resources
        self._events: list[tuple[int, int, Process, int, int]] = []
        """When a turn or a pause ends, in which order it was begun, whose it is, where, and how long it took."""
        self._order = count()

    def join(self, name: str, entitlement: float, program: Sequence[Phase]) -> None:
        """A process comes."""
        nothing = (0,) * len(self._queues)
        self.policy.add(name, Weight(entitlement), nothing, 0)
        self.processes[name] = process = Process(name, program, used_ms=list(nothing))
        process.left_ms = program[0][1]
        self._enqueue(process)

    def run_until(self, until_ms: int) -> dict[str, list[float]]:
        """Let time pass; gives for what part of it each process used each resource."""
        began_ms = self.now_ms
        before = {name: tuple(process.used_ms) for name, process in self.processes.items()}
        self._serve()
        while self._events and self._events[0][0] <= until_ms:
            self._pass_to(self._events[0][0])
            while self._events and self._events[0][0] == self.now_ms:
                _, _, process, place, turn_ms = heappop(self._events)
                self._end_turn(process, place, turn_ms)
            self._serve()
        self._pass_to(until_ms)
        passed_ms = until_ms - began_ms
        return {
            name: [
                (late - early) / passed_ms for late, early in zip(process.used_ms, before[name], strict=True)
            ]
            for name, process in self.processes.items()
        }

    def run(self) -> dict[str, float]:
        """Let time pass until all are done; gives when each was, in seconds."""
        self._serve()
        while self._events:
            self.run_until(self._events[0][0])
        return {name: (process.ended_ms or 0) / 1000 for name, process in self.processes.items()}

    def _pass_to(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.policy.advance(now_ms)

    def _enqueue(self, process: Process) -> None:
        """It wants the resource of the phase it is in, and nothing else."""
        place, length_ms = process.program[process.phase]
        self.policy.set_wish(process.name, self._one(place))
        if place == IDLE:
            heappush(self._events, (self.now_ms + length_ms, next(self._order), process, IDLE, length_ms))
        else:
            process.waits_since = (self.now_ms, next(self._order))
            self._queues[place].append(process)

    def _one(self, place: int) -> tuple[int, ...]:
        return tuple([int(place == each) for each in range(len(self._queues))])

    def _serve(self) -> None:
        """Begin a turn on every resource that is free and wanted."""
        for place, queue in enumerate(self._queues):
            if queue and not self._busy[place]:
                process = min(queue, key=lambda each: (self.policy.key(each.name), each.waits_since))
                queue.remove(process)
                self._busy[place] = True
                self.policy.charge(process.name, self._one(place), 1)
                turn_ms = min(QUANTUM_MS, process.left_ms)
                heappush(self._events, (self.now_ms + turn_ms, next(self._order), process, place, turn_ms))

    def _end_turn(self, process: Process, place: int, turn_ms: int) -> None:
        if place != IDLE:
            process.used_ms[place] += turn_ms
            self._busy[place] = False
            self.policy.release(process.name, self._one(place), 1)
        process.left_ms -= turn_ms
        if not process.left_ms:
            process.phase += 1
            if process.phase == len(process.program):
                process.ended_ms = self.now_ms
                self.policy.set_wish(process.name, self._one(IDLE))
                self.policy.remove(process.name)
                return
            process.left_ms = process.program[process.phase][1]
        self._enqueue(process)


def seconds(*phases: tuple[int, float]) -> list[Phase]:
    """A program, its lengths given in seconds."""
    return [(place, round(length_s * 1000)) for place, length_s in phases]


def repeated(times: int, phases: Iterable[Phase]) -> list[Phase]:
    """The phases, one after another, so many times."""
    return list(phases) * times
