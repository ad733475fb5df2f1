"""What a load generator is asked to do and what it has counted: plain values that travel as JSON lines."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from operator import add, sub
from typing import Final, Self

LATENCIES_KEPT: Final = 20_000
"""Latencies a generator keeps, the newest: enough for a p99 that does not jump, small enough to send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one generator plays."""

    address: str
    """Of the master, HOST:PORT."""
    agents: int
    frameworks: int
    first: int
    """Number of its first agent and framework, so that names differ between generators."""
    cpus_per_agent: int
    demand: int
    """Tasks of one CPU each framework asks for at a time."""
    is_steady: bool
    """Whether a framework tops its demand up when half of it is served; else it asks again when all of it is over."""
    roles: int
    """Frameworks are spread over that many roles."""
    demand_interval_s: float = 0.0
    """If not zero, a framework wants ``demand`` tasks more after each such time, whatever became of those before: an offered
    load. The frameworks' turns are spread evenly over it."""

    capabilities: tuple[str, ...] = ()
    """What agents and frameworks say that they can do, and then do: ``fairlead_proto.peers`` has the words."""

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What ``to_json`` wrote."""
        return cls(**json.loads(text))


@dataclass(slots=True, kw_only=True)
class Traffic:
    """Messages of the streams of one kind, agents or frameworks, as gRPC carries them: batches."""

    sent: int = 0
    sent_bytes: int = 0
    received: int = 0
    received_bytes: int = 0

    def minus(self, before: "Traffic") -> "Traffic":
        """What happened since ``before``."""
        return self._with(before, sub)

    def plus(self, other: "Traffic") -> "Traffic":
        """Both together."""
        return self._with(other, add)

    def _with(self, other: "Traffic", combine: Callable[[int, int], int]) -> "Traffic":
        return Traffic(**{name: combine(value, getattr(other, name)) for name, value in asdict(self).items()})


@dataclass(slots=True, kw_only=True)
class Snapshot:
    """What a generator has counted since it started."""

    launched: int = 0
    """Tasks the master confirmed as launched."""
    finished: int = 0
    """Tasks whose FINISHED status reached their framework."""
    unfinished: int = 0
    """Tasks that ended in any other state, or were rejected."""
    unacknowledged: int = 0
    """Statuses agents still wait for an acknowledgement of."""
    in_flight: int = 0
    offers: int = 0
    cpu_s: float = 0.0
    agents: Traffic = field(default_factory=Traffic)
    frameworks: Traffic = field(default_factory=Traffic)
    latencies_ms: list[float] = field(default_factory=list)
    """From an offer's arrival to the task's FINISHED, of the newest tasks since the last snapshot."""

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What ``to_json`` wrote."""
        fields = json.loads(text)
        fields["agents"] = Traffic(**fields["agents"])
        fields["frameworks"] = Traffic(**fields["frameworks"])
        return cls(**fields)


def total(parts: list[Snapshot]) -> Snapshot:
    """All generators together."""
    result = Snapshot()
    for part in parts:
        for name in ("launched", "finished", "unfinished", "unacknowledged", "in_flight", "offers", "cpu_s"):
            setattr(result, name, getattr(result, name) + getattr(part, name))
        result.agents = result.agents.plus(part.agents)
        result.frameworks = result.frameworks.plus(part.frameworks)
        result.latencies_ms += part.latencies_ms
    return result
