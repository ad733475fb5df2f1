"""Lets processes run: each resource serves the waiting process that the policy ranks first.

Paper 004, section 4.1, with the live cluster's policy object in place of the paper's prioritisation agent. The policy is
told what it is told on a cluster: a resource's capacity is 1, a process that waits for it or holds it wishes for 1 of it,
and while it is served 1 is charged to it. One key of the policy counts on all resources. Of equal keys the process that
has waited longest is served, so that equals take turns.

A resource that can be switched serves for a quantum at a time; after it the process waits again beside the others. Time
is virtual, in whole milliseconds. Service times are drawn by dice of each process's own, as many whatever the policy does:
so two policies with one seed meet the same requests.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final

from fairlead_lab.papers.bbf.timesharing.history import History
from fairlead_lab.papers.bbf.timesharing.program import Program, ProgramError, Use, resources_of
from fairlead_master.allocation.api import AllocationError, Policy
from fairlead_master.allocation.policies import names
from fairlead_master.allocation.weights import Weight
from fairlead_proto.resources import Vector
from fairlead_sim.engine import Engine

QUANTUM_MS: Final = 100
"""Section 4.1: "they are done in quanta of 0.1 seconds"."""

PROCESSES_MAX: Final = 1_000


@dataclass(slots=True)
class _Process:
    """A process with the work it has left."""

    name: str
    uses: Iterator[Use]
    dice: Random
    place: int | None = None
    """Of the resource it waits for or holds; None while it pauses."""
    is_switched: bool = False
    left_ms: int = 0
    """Of the use it is in."""
    waits_since: tuple[int, int] = (0, 0)
    """When it joined the queue it is in, and in which order."""


def make_policy(text: str, resources: Sequence[str]) -> Policy:
    """The live policy of this name, as an operator writes it, if it can rank processes that hold nothing while they wait.

    Raises:
        AllocationError: it is unknown, or goes by what is held alone, so that all who wait would be equal.
    """
    policy = names.parse(text, resources)
    if not policy.remembers and policy.name != "fifo":
        raise AllocationError(
            "policy: expected bbf, bbf:SECONDS, bbf:PERCENT%, bbf:SECONDS,PERCENT% or fifo, which rank processes by "
            f"more than what they hold, got {text!r}: who waits for a turn holds nothing"
        )
    return policy


class Timesharing:
    """A run of processes on resources. All processes start at time 0."""

    def __init__(
        self,
        programs: Sequence[Program],
        *,
        policy: str = "bbf",
        seed: str = "",
        quantum_ms: int = QUANTUM_MS,
    ) -> None:
        """Make processes of programs; of equal keys at the start the one that is named first is served first.

        Args:
            programs: one for each process.
            policy: as an operator writes it; see ``make_policy``.
            seed: of all service times.
            quantum_ms: the longest turn on a resource that can be switched.

        Raises:
            ProgramError: no programs, two of one name, or a resource that can be switched in one and not in another.
            AllocationError: see ``make_policy``.
        """
        _check(programs)
        switched = resources_of(programs)
        self._resources = tuple(switched)
        self._quantum_ms = quantum_ms
        self._engine = Engine(Random(seed), now_ms=0)  # noqa: S311 - service times, no secret
        self._queues: list[list[_Process]] = [[] for _ in switched]
        self._is_busy = [False] * len(switched)
        self._joined = 0
        self._bottlenecks: dict[int, int] = {}
        """Place of each present one, to since when that is not yet written down."""
        self._unfinished = len(programs)
        self.history = History([program.name for program in programs], self._resources)
        self.policy = make_policy(policy, self._resources)
        self.policy.set_capacity((1,) * len(switched), 0)
        nothing = (0,) * len(switched)
        for program in programs:
            self.policy.add(program.name, Weight(program.priority), nothing, 0)
        for program in programs:
            dice = Random(f"{seed}/{program.name}")  # noqa: S311 - see above
            self._go_on(_Process(program.name, iter(program), dice))
        self._serve()
        if self.policy.interval_ms is not None:
            self._engine.after(self.policy.interval_ms, self._look_again)

    @property
    def now_s(self) -> float:
        """Seconds since the start."""
        return self._engine.now_ms / 1000

    @property
    def bottlenecks(self) -> tuple[str, ...]:
        """Resources that the policy takes for bottlenecks now; none under a policy that does not ask."""
        return tuple([self._resources[place] for place in self.policy.find_bottlenecks() or ()])

    @property
    def turns(self) -> int:
        """How often a process has joined a queue so far: the work that the simulation has had."""
        return self._joined

    def run(
        self, until_s: float | None = None, *, on_turns: Callable[[int], None] = lambda _: None
    ) -> History:
        """Let time pass until all processes are done, or until a time since the start. May be called again.

        Args:
            until_s: that time; None: until all are done.
            on_turns: called with the number of turns whenever it may have grown.
        """
        until_ms = None if until_s is None else round(until_s * 1000)
        engine = self._engine
        while self._unfinished:
            next_ms = engine.next_ms()
            assert next_ms is not None, "a process waits for nothing"
            if until_ms is not None and next_ms > until_ms:
                break
            if self.policy.interval_ms is not None:
                self.policy.advance(next_ms)
            # All turns that end now end before the next begin, so that who comes first does not depend on the order.
            while engine.next_ms() == next_ms:
                engine.advance()
            self._serve()
            on_turns(self._joined)
        if until_ms is not None and self._unfinished:
            engine.run_until(until_ms)
        self.history.ends_ms = engine.now_ms
        self._write_down_bottlenecks(self._bottlenecks)
        return self.history

    def _look_again(self) -> None:
        """Priorities are computed "e.g. once a second" (section 5), turns or not."""
        assert self.policy.interval_ms is not None
        if self._unfinished:
            self._engine.after(self.policy.interval_ms, self._look_again)

    def _go_on(self, process: _Process) -> None:
        """The process takes up its next use."""
        now_ms = self._engine.now_ms
        for use in process.uses:
            process.left_ms = use.draw_ms(process.dice)
            if not process.left_ms:
                continue
            if use.is_pause:
                process.place = None
                self.policy.set_wish(process.name, self._one_of(None))
                self._engine.after(process.left_ms, partial(self._go_on, process))
            else:
                process.place = self._resources.index(use.resource)
                process.is_switched = use.is_switched
                self.policy.set_wish(process.name, self._one_of(process.place))
                self._wait(process)
            return
        self._unfinished -= 1
        self.history.finished_ms[process.name] = now_ms
        self.policy.set_wish(process.name, self._one_of(None))
        self.policy.remove(process.name)

    def _wait(self, process: _Process) -> None:
        assert process.place is not None
        self._joined += 1
        process.waits_since = (self._engine.now_ms, self._joined)
        self.policy.begin_waiting(process.name, self._joined)
        self._queues[process.place].append(process)

    def _one_of(self, place: int | None) -> Vector:
        return tuple([int(place == each) for each in range(len(self._resources))])

    def _serve(self) -> None:
        """Begin a turn on every resource that is free and wanted."""
        for place, queue in enumerate(self._queues):
            if queue and not self._is_busy[place]:
                process = min(queue, key=lambda each: (self.policy.key(each.name), each.waits_since))
                queue.remove(process)
                self._begin_turn(process, place)
        self._write_down_bottlenecks(self.policy.find_bottlenecks() or ())

    def _begin_turn(self, process: _Process, place: int) -> None:
        now_ms = self._engine.now_ms
        turn_ms = min(self._quantum_ms, process.left_ms) if process.is_switched else process.left_ms
        self._is_busy[place] = True
        self.policy.charge(process.name, self._one_of(place), 1)
        self.history.add_use(process.name, self._resources[place], now_ms, now_ms + turn_ms)
        self._engine.after(turn_ms, partial(self._end_turn, process, place, turn_ms))

    def _end_turn(self, process: _Process, place: int, turn_ms: int) -> None:
        self._is_busy[place] = False
        self.policy.release(process.name, self._one_of(place), 1)
        process.left_ms -= turn_ms
        if process.left_ms:
            self._wait(process)
        else:
            self._go_on(process)

    def _write_down_bottlenecks(self, present: Collection[int]) -> None:
        """Record the bottlenecks that lasted until now; ``present`` has the resources that are bottlenecks from now on."""
        now_ms = self._engine.now_ms
        for place, since_ms in self._bottlenecks.items():
            if since_ms < now_ms:
                self.history.add_bottleneck(self._resources[place], since_ms, now_ms)
        self._bottlenecks = dict.fromkeys(present, now_ms)


def _check(programs: Sequence[Program]) -> None:
    """Raise ProgramError for mistakes that no single program shows."""
    if not 1 <= len(programs) <= PROCESSES_MAX:
        raise ProgramError(f"processes: expected 1 to {PROCESSES_MAX}, got {len(programs)}")
    seen: set[str] = set()
    for program in programs:
        if program.name in seen:
            raise ProgramError(f"{program.name}: expected a name of its own for each process, got it twice")
        seen.add(program.name)
    if not resources_of(programs):
        raise ProgramError("programs: expected the use of some resource, got only pauses")
