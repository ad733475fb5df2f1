"""A disk that takes its time, may be full, and is asked to make things durable."""

from collections.abc import Callable
from dataclasses import dataclass

from fairlead_sim.engine import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskOptions:
    """How long a disk takes. The default is one on which everything is durable at once."""

    sync_max_ms: int = 0
    """From the order until what was written is durable; drawn evenly."""


class Disk:
    """The disk of one host."""

    def __init__(self, engine: Engine, options: DiskOptions) -> None:
        self.options = options
        """May be replaced at any time: what is under way ends as it was drawn."""
        self.is_full = False
        """Nothing more can be written."""
        self.looks_full = True
        """Whether that can be seen before it is tried."""
        self._engine = engine

    def sync(self, done: Callable[[], None]) -> None:
        """Have ``done`` called once everything is durable, or is known to have no room; at once if that takes no time."""
        if self.options.sync_max_ms:
            self._engine.after(self._engine.random.randint(0, self.options.sync_max_ms), done)
        else:
            done()
