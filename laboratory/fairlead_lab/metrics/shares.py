"""Who held what when, swept from task records: shares over time, and what fairness indices are made of.

A user *holds* a task's demand from its process's start to its end. A user is *present* while a task of his is submitted
and not over, and *contending* while one is submitted and not started: only then does he want more than he has, and only
among such users is an unequal share a question of fairness. Fairness at an instant is asked where at least two
contend.

The few milliseconds of a launch count as waiting too; they weigh what they last, so on a cluster that is often free
they are visible in these numbers, and a report says how long contention was in all.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fairlead_lab.metrics.records import TaskRecord
from fairlead_lab.workloads.plan import dominant_fraction
from fairlead_proto.resources import Vector

SHARE_TOLERANCE = 1e-9
"""Below an entitlement by less than this is rounding of the division, not a smaller share."""


@dataclass(slots=True)
class UserShares:
    """One user's time in the run, in milliseconds and share-milliseconds."""

    present_ms: int = 0
    contending_ms: int = 0
    """Of that, wanting more while at least one other does."""
    share_ms: float = 0.0
    """Integral of the dominant share over the run."""
    below_ms: int = 0
    """Of ``contending_ms``, with a dominant share under 1/n of the n users then present."""

    @property
    def mean_share(self) -> float:
        """Mean dominant share while present; 0 if never."""
        return self.share_ms / self.present_ms if self.present_ms else 0.0


@dataclass(slots=True)
class ShareSummary:
    """What the sweep over a run found."""

    held: list[float]
    """Integral over the run of what is held, by resource, in amount-milliseconds."""
    over: list[float]
    """The part of it that exceeds what its agent has: slots promise more than there is."""
    run_ms: int = 0
    """Run time of all tasks, summed."""
    crowded_ms: int = 0
    """The part of it spent on agents that were promised more of some resource than they have at that moment."""
    users: dict[str, UserShares] = field(default_factory=dict)
    contended_ms: int = 0
    """How long at least two users wanted more."""
    jain_ms: float = 0.0
    """Integral of Jain's index over that time."""

    @property
    def jain(self) -> float | None:
        """Mean over the contended time of Jain's index of the contending users' dominant shares; None without contention.

        J = (sum s_i)^2 / (n sum s_i^2): 1 if all are equal, 1/n if one has all. R. Jain, D. Chiu, W. Hawe, "A
        Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared Computer Systems", 1984.
        Where all shares are zero they are equal, so 1.
        """
        return self.jain_ms / self.contended_ms if self.contended_ms else None


def jain_index(shares: Sequence[float]) -> float:
    """Jain's index of non-negative shares, 1/n to 1; 1 if all are zero or there are none."""
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0


def sweep_shares(tasks: Sequence[TaskRecord], agents: Mapping[str, Vector]) -> ShareSummary:
    """Walk through the run from one change to the next and add up.

    Tasks without both times are not held by anyone; those that never started are waiting to the end of the run, as
    they were. Tasks on agents that are not in ``agents`` count in shares and not in ``over``.
    """
    places = len(next(iter(agents.values())))
    capacity: Vector = tuple(sum(column) for column in zip(*agents.values(), strict=True))
    summary = ShareSummary(held=[0.0] * places, over=[0.0] * places)
    books = _Books(places, agents)
    now_ms = 0
    for at_ms, changes in _by_time(tasks):
        books.settle(summary, capacity, at_ms - now_ms)
        now_ms = at_ms
        for sign, kind, task in changes:
            books.apply(sign, kind, task)
    return summary


_WAIT, _HOLD = 0, 1
_Change = tuple[int, int, TaskRecord]


def _by_time(tasks: Sequence[TaskRecord]) -> Iterator[tuple[int, list[_Change]]]:
    end_ms = max((max(task.submitted_ms, task.finished_ms or 0) for task in tasks), default=0)
    changes: dict[int, list[_Change]] = {}
    for task in tasks:
        is_held = task.started_ms is not None and task.finished_ms is not None
        waits_until_ms = task.started_ms if is_held and task.started_ms is not None else end_ms
        changes.setdefault(task.submitted_ms, []).append((1, _WAIT, task))
        changes.setdefault(waits_until_ms, []).append((-1, _WAIT, task))
        if is_held:
            assert task.finished_ms is not None, "held tasks have both times"
            changes.setdefault(waits_until_ms, []).append((1, _HOLD, task))
            changes.setdefault(task.finished_ms, []).append((-1, _HOLD, task))
    yield from sorted(changes.items())


class _Books:
    """Who waits for and holds what now."""

    def __init__(self, places: int, agents: Mapping[str, Vector]) -> None:
        self.agents = agents
        self.waiting: dict[str, int] = {}
        self.running: dict[str, int] = {}
        self.held: dict[str, list[int]] = {}
        self.on_agent = {agent_id: [0] * places for agent_id in agents}
        self.tasks_on_agent = dict.fromkeys(agents, 0)
        self.zero = [0] * places

    def apply(self, sign: int, kind: int, task: TaskRecord) -> None:
        counts = self.waiting if kind == _WAIT else self.running
        counts[task.user] = counts.get(task.user, 0) + sign
        if kind == _WAIT:
            return
        if task.agent_id in self.tasks_on_agent:
            self.tasks_on_agent[task.agent_id] += sign
        for amounts in (self.held.setdefault(task.user, list(self.zero)), self.on_agent.get(task.agent_id)):
            if amounts is not None:
                for place, amount in enumerate(task.unit):
                    amounts[place] += sign * amount

    def settle(self, summary: ShareSummary, capacity: Vector, passed_ms: int) -> None:
        """Add the time since the last change, in which nothing changed, to the summary."""
        if not passed_ms:
            return
        shares = {user: dominant_fraction(tuple(held), capacity) for user, held in self.held.items()}
        present = [user for user in sorted(self.waiting) if self.waiting[user] or self.running.get(user, 0)]
        for user in present:
            entry = summary.users.setdefault(user, UserShares())
            entry.present_ms += passed_ms
            entry.share_ms += shares.get(user, 0.0) * passed_ms
        self._settle_contention(summary, shares, present, passed_ms)
        for held in self.held.values():
            for place, amount in enumerate(held):
                summary.held[place] += amount * passed_ms
        summary.run_ms += sum(self.running.values()) * passed_ms
        for agent_id, amounts in self.on_agent.items():
            self._settle_agent(summary, agent_id, amounts, passed_ms)

    def _settle_agent(self, summary: ShareSummary, agent_id: str, amounts: list[int], passed_ms: int) -> None:
        over = [max(0, amount - total) for amount, total in zip(amounts, self.agents[agent_id], strict=True)]
        if any(over):
            summary.crowded_ms += self.tasks_on_agent[agent_id] * passed_ms
            for place, amount in enumerate(over):
                summary.over[place] += amount * passed_ms

    def _settle_contention(
        self, summary: ShareSummary, shares: dict[str, float], present: list[str], passed_ms: int
    ) -> None:
        contending = [user for user in present if self.waiting[user]]
        if len(contending) < 2:
            return
        summary.contended_ms += passed_ms
        summary.jain_ms += jain_index([shares.get(user, 0.0) for user in contending]) * passed_ms
        for user in contending:
            entry = summary.users[user]
            entry.contending_ms += passed_ms
            if shares.get(user, 0.0) < 1 / len(present) - SHARE_TOLERANCE:
                entry.below_ms += passed_ms
