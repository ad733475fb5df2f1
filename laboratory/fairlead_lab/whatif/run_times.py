"""How long tasks are assumed to run, of which a cluster knows nothing but what ran before.

A task that waits is expected to run for the mean of those that finished and are most like it: of its framework and
demand; else of its framework; else of frameworks with its name, which are earlier runs of the same work, by demand and then
all; else of its role; else of the cluster. One that runs already is expected to run on for the mean residual life of
the same ones, E[d - r | d > r] after r: what those had left that lasted longer. If none did, it runs as long again as it
has run, as is expected of lives whose tail is a power of time.
"""

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator
from itertools import accumulate

from fairlead_lab.whatif.snapshot import FinishedTask, FrameworkState
from fairlead_proto.resources import Vector


class _Sample:
    """Durations of tasks that are alike."""

    def __init__(self, durations_ms: Iterable[int]) -> None:
        self._sorted = sorted(durations_ms)
        self._sums = [0, *accumulate(self._sorted)]

    @property
    def mean_ms(self) -> int:
        """At least 1."""
        return max(1, round(self._sums[-1] / len(self._sorted)))

    def left_ms(self, ran_ms: int) -> int:
        """At least 1."""
        first = bisect_right(self._sorted, ran_ms)
        longer = len(self._sorted) - first
        if not longer:
            return max(1, ran_ms)
        return max(1, round((self._sums[-1] - self._sums[first]) / longer - ran_ms))


class RunTimes:
    """Expected durations of the tasks of one cluster."""

    def __init__(self, finished: Iterable[FinishedTask], given_ms: int | None = None) -> None:
        """From tasks that finished, or the same for all.

        Args:
            finished: May be empty.
            given_ms: What every task is assumed to take instead, above 0.
        """
        self.given_ms = given_ms
        durations: dict[Hashable, list[int]] = {}
        if given_ms is not None:
            durations[_ALL] = [given_ms]
        else:
            for task in finished:
                for likeness in _likenesses(task.framework_id, task.name, task.role, task.unit):
                    durations.setdefault(likeness, []).append(task.duration_ms)
        self.finished = len(durations.get(_ALL, ()))
        """How many durations they rest on."""
        self._samples = {likeness: _Sample(values) for likeness, values in durations.items()}

    @property
    def are_known(self) -> bool:
        """False if nothing has finished and nothing was given: nothing can be said of the future then."""
        return bool(self._samples)

    def expected_ms(self, framework: FrameworkState, unit: Vector) -> int:
        """How long a task of this demand runs; only if they are known."""
        return self._sample(framework, unit).mean_ms

    def left_ms(self, framework: FrameworkState, unit: Vector, ran_ms: int) -> int:
        """How long it runs on after it has run so long; only if they are known."""
        return self._sample(framework, unit).left_ms(ran_ms)

    def are_of_others(self, framework: FrameworkState, unit: Vector) -> bool:
        """Whether they are of other work: nothing of this framework, nor of one of its name in its role, has finished."""
        closest = next(iter(self._known(framework, unit)), None)
        return self.given_ms is None and closest in {("role", framework.role), _ALL}

    def _sample(self, framework: FrameworkState, unit: Vector) -> _Sample:
        return self._samples[next(self._known(framework, unit))]

    def _known(self, framework: FrameworkState, unit: Vector) -> Iterator[Hashable]:
        likenesses = _likenesses(framework.framework_id, framework.name, framework.role, unit)
        return (likeness for likeness in likenesses if likeness in self._samples)


_ALL = "all"


def _likenesses(framework_id: str, name: str, role: str, unit: Vector) -> Iterator[Hashable]:
    """What a task has in common with others, the closest first."""
    yield "framework and demand", framework_id, unit
    yield "framework", framework_id
    yield "name and demand", role, name, unit
    yield "name", role, name
    yield "role", role
    yield _ALL
