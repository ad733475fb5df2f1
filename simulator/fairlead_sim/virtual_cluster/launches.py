"""The tasks of a trace on their hosts: what their commands stand for, and processes that last as long as the trace says.

What a command stands for is the one thing that passes from a framework to a host beside the protocol.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count

from fairlead_agent.core import events
from fairlead_agent.core.actions import StartProcess
from fairlead_proto.ids import TaskKey
from fairlead_proto.tasks import TaskUsage
from fairlead_sim.engine import Engine
from fairlead_sim.observer import Batch, Watcher
from fairlead_sim.pool.framework import ActiveJob
from fairlead_sim.pool.hosts import CrowdedHost
from fairlead_sim.virtual_cluster.processes import Ended, ProcessTable, Report


@dataclass(slots=True, eq=False)
class Launch:
    """Tasks of one bundle that are launched together with one offer."""

    batch: Batch
    active: ActiveJob


class Programs:
    """Commands by number. Tasks of one launch have the same command, which says how long they run."""

    def __init__(self) -> None:
        self._launches: dict[str, Launch] = {}
        self._numbers = count(1)

    def add(self, launch: Launch) -> str:
        """The command of a new launch."""
        command = str(next(self._numbers))
        self._launches[command] = launch
        return command

    def take(self, command: str) -> Launch:
        """What the command stands for. All tasks of a launch are started at once, so this is asked once."""
        return self._launches.pop(command)


@dataclass(slots=True)
class Tally:
    """Tasks of all hosts so far."""

    started: int = 0
    ended: int = 0


class LaunchedProcesses:
    """The processes of one host on which nothing fails: they do nothing but take their time, all of a launch together."""

    def __init__(
        self,
        engine: Engine,
        programs: Programs,
        watcher: Watcher,
        tally: Tally,
        start_ms: int,
        crowded: CrowdedHost | None,
    ) -> None:
        """``crowded`` says how fast tasks run, where the policy promises more than there is."""
        self._report: Report = _to_nobody
        self._engine = engine
        self._programs = programs
        self._watcher = watcher
        self._tally = tally
        self._start_ms = start_ms
        self._crowded = crowded
        self._ordered: dict[str, list[TaskKey]] = {}
        """To be started at the end of the agent's turn, by command."""

    def report_to(self, report: Report | None) -> None:
        """Who is connected from now on."""
        self._report = report or _to_nobody

    def order(self, order: StartProcess) -> None:
        """Make a process of a task when ``start_ordered`` is called."""
        key = (order.framework_id, order.spec.task_id)
        command = order.spec.command[0]
        if command in self._ordered:
            self._ordered[command].append(key)
        else:
            self._ordered[command] = [key]

    def start_ordered(self) -> int | None:
        """Start what was ordered; gives how long it takes to report that, None if it was nothing."""
        if not self._ordered:
            return None
        ordered, self._ordered = self._ordered, {}
        self._engine.after(self._start_ms, partial(self._begin, ordered))
        return self._start_ms

    def signal(self, key: TaskKey, *, force: bool) -> None:
        """Nothing is killed here."""
        raise AssertionError(f"{key} is to be ended, by force: {force}, where nothing fails")

    def forget(self, _key: TaskKey) -> None:
        """Nobody kept the end."""

    def die(self) -> None:
        """Nothing dies here."""
        raise AssertionError("an executor died where nothing fails")

    def reboot(self) -> None:
        """Nothing dies here."""
        raise AssertionError("a host went down where nothing fails")

    def known(self) -> tuple[Sequence[TaskKey], Sequence[Ended]]:
        """Nothing, as agents are not restarted."""
        return (), ()

    def usage(self) -> tuple[tuple[TaskKey, TaskUsage], ...]:
        """Nothing: tasks hold what they asked for, and nobody has measured it."""
        return ()

    def _begin(self, ordered: dict[str, list[TaskKey]]) -> None:
        engine = self._engine
        for command, keys in ordered.items():
            launch = self._programs.take(command)
            batch = launch.batch
            batch.started_ms = engine.now_ms
            self._tally.started += len(keys)
            self._watcher.started(batch)
            end = partial(self._end, launch, keys)
            if self._crowded is not None:
                self._crowded.start(batch, batch.bundle.duration_ms, end)
            else:
                engine.after(batch.bundle.duration_ms, end)
        self._report([events.ProcessStarted(key=key) for keys in ordered.values() for key in keys])

    def _end(self, launch: Launch, keys: list[TaskKey]) -> None:
        """The processes of a launch end, all of them well."""
        now_ms = self._engine.now_ms
        self._tally.ended += len(keys)
        self._watcher.ended(launch.batch, now_ms)
        self._report(
            [events.ProcessExited(key=key, exit_code=0, signal=None, ended_ms=now_ms) for key in keys]
        )


def _to_nobody(happened: list[events.Event]) -> None:
    raise AssertionError(f"nobody is connected to hear of {happened}")


Processes = ProcessTable | LaunchedProcesses
"""What an agent finds on its host, and what outlives it."""
