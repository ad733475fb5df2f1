"""Records of a run: which process used which resource when, and when each resource was a bottleneck."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Periods:
    """Periods in milliseconds, in order; adjacent ones are merged."""

    starts_ms: list[int] = field(default_factory=list)
    ends_ms: list[int] = field(default_factory=list)
    _before_ms: list[int] = field(default_factory=list)
    """The length of all periods before each."""

    def add(self, start_ms: int, end_ms: int) -> None:
        """Add a period that does not begin before the last one ends."""
        if self.ends_ms and start_ms == self.ends_ms[-1]:
            self.ends_ms[-1] = end_ms
            return
        assert not self.ends_ms or start_ms > self.ends_ms[-1], "periods overlap"
        self._before_ms.append(self.length_ms(start_ms))
        self.starts_ms.append(start_ms)
        self.ends_ms.append(end_ms)

    def length_ms(self, until_ms: int) -> int:
        """Total length of all periods until a time."""
        place = bisect_right(self.starts_ms, until_ms) - 1
        if place < 0:
            return 0
        return self._before_ms[place] + min(until_ms, self.ends_ms[place]) - self.starts_ms[place]

    def until(self, until_ms: int) -> list[tuple[int, int]]:
        """The periods, cut off at a time."""
        pairs = zip(self.starts_ms, self.ends_ms, strict=True)
        return [(start_ms, min(end_ms, until_ms)) for start_ms, end_ms in pairs if start_ms < until_ms]


class History:
    """One run."""

    def __init__(self, processes: Sequence[str], resources: Sequence[str]) -> None:
        self.processes = tuple(processes)
        self.resources = tuple(resources)
        self.ends_ms = 0
        """Until when the run went."""
        self.finished_ms: dict[str, int] = {}
        """When each process was done, of those that are."""
        self.uses: dict[tuple[str, str], Periods] = {}
        """By process and resource; absent where there was none."""
        self.bottlenecks: dict[str, Periods] = {}
        """By resource, while the policy thought it was one."""

    def add_use(self, process: str, resource: str, start_ms: int, end_ms: int) -> None:
        """A turn of a process on a resource."""
        self.uses.setdefault((process, resource), Periods()).add(start_ms, end_ms)

    def add_bottleneck(self, resource: str, start_ms: int, end_ms: int) -> None:
        """The resource was a bottleneck."""
        self.bottlenecks.setdefault(resource, Periods()).add(start_ms, end_ms)

    def used_ms(self, process: str, resource: str, until_ms: int) -> int:
        """How long the process has used the resource by a time."""
        return self.uses.get((process, resource), Periods()).length_ms(until_ms)

    def share(self, process: str, resource: str, from_s: float, to_s: float) -> float:
        """For what part of the time between two times the process used the resource."""
        from_ms, to_ms = round(from_s * 1000), round(to_s * 1000)
        used_ms = self.used_ms(process, resource, to_ms) - self.used_ms(process, resource, from_ms)
        return used_ms / (to_ms - from_ms)

    def utilisation(self, resource: str, from_s: float, to_s: float) -> float:
        """For what part of the time between two times anybody used the resource."""
        return sum(self.share(process, resource, from_s, to_s) for process in self.processes)

    def bottleneck(self, resource: str, from_s: float, to_s: float) -> float:
        """For what part of the time between two times the resource was a bottleneck."""
        periods = self.bottlenecks.get(resource, Periods())
        from_ms, to_ms = round(from_s * 1000), round(to_s * 1000)
        return (periods.length_ms(to_ms) - periods.length_ms(from_ms)) / (to_ms - from_ms)

    def progress(self, process: str, from_s: float, to_s: float) -> float:
        """For what part of the time between two times the process used anything."""
        return (self.total_s(process, to_s) - self.total_s(process, from_s)) / (to_s - from_s)

    def total_s(self, process: str, until_s: float) -> float:
        """For how many seconds the process has used anything by a time."""
        until_ms = round(until_s * 1000)
        return sum(self.used_ms(process, resource, until_ms) for resource in self.resources) / 1000
