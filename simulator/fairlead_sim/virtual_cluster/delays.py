"""How long things take between a framework's wish and a running process, in milliseconds."""

from dataclasses import dataclass
from typing import Final

from fairlead_agent.runner import GATHER_S
from fairlead_master.core.settings import CoreSettings

_LIVE: Final = CoreSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """The defaults are those of a live cluster on one network: what its settings say, and a millisecond a hop."""

    network_ms: int = 1
    """One way, of every message."""
    start_ms: int = 1
    """From the order to start a process to its running."""
    allocation_window_ms: int = _LIVE.allocation_window_ms
    """Least time between two allocation cycles of a calm master."""
    busy_window_ms: int = _LIVE.busy_window_ms
    """The same of a busy one."""
    gather_ms: int = round(GATHER_S * 1000)
    """How long a busy agent waits for more to report."""

    def most_ms(self) -> int:
        """At most so long after a wish there is room for, its task runs; and at most so long after its end that is known.

        A wish, an offer, an acceptance and a launch are a message each, an end is two; both wait for a window, if not
        their own then that of a cycle in which they are the last to be looked at.
        """
        window_ms = max(self.allocation_window_ms, self.busy_window_ms)
        return 6 * self.network_ms + self.start_ms + 2 * self.gather_ms + window_ms


INSTANT = Delays(network_ms=0, start_ms=0, allocation_window_ms=0, busy_window_ms=0, gather_ms=0)
"""A cluster in which everything but the tasks themselves takes no time."""
