"""What the commands of tasks stand for: the one thing that passes from a framework to a host beside the protocol."""

from dataclasses import dataclass
from itertools import count

from fairlead_sim.observer import Batch
from fairlead_sim.pool.framework import ActiveJob


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
