"""Sums of a run, added up as it goes; no record of any task is kept, so memory grows with jobs and users only.

There is one engine of measures. A simulation tells it of jobs and batches (``Metrics`` is a ``Watcher``); the report of a
replay feeds it the tasks of its records, which may start late, fail or never start. ``summary`` makes the result.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from fairlead_lab.metrics.integrals import Crowding, Holding, Integral, Timeline
from fairlead_lab.metrics.result import UNFINISHED, Refused
from fairlead_lab.metrics.shares import SharesSoFar
from fairlead_lab.metrics.statistics import VALUES_MAX, Distribution
from fairlead_lab.workloads.plan import dominant_fraction
from fairlead_lab.workloads.scaling import largest_amounts
from fairlead_proto.resources import STANDARD_NAMES, Vector
from fairlead_sim.observer import Batch
from fairlead_sim.workload import Bundle, Job

REASONS_MAX: Final = 100
"""For which jobs are refused, told apart."""


@dataclass(slots=True)
class UserSums:
    """What came of one user's work."""

    tasks_finished: int = 0
    wait_ms: int = 0
    """Of his finished tasks, summed."""


@dataclass(slots=True)
class _Active:
    """A job under way."""

    place: int
    """Among all jobs."""
    user: str
    stages: list[tuple[Bundle, ...]]
    stage: int = -1
    left: int = 0
    """Tasks of the stage that are not over."""
    arrived_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is measured: the work, the hosts, and what to tell apart."""

    jobs: Sequence[Job]
    """All that will be handed in; each at most once."""
    hosts: Mapping[str, Vector]
    """Capacity by name."""
    user_of: Callable[[Job], str]
    """On whose shares a job counts."""
    size_ends: Sequence[float]
    """Upper ends of the classes of demand size, ascending; the last is the largest there is."""
    tracked: Sequence[str] = ()
    """Users whose shares over time are wanted."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Of users that weigh other than 1."""
    waits_apart_max: int = VALUES_MAX
    """So many different waits are kept exactly; see ``Distribution``."""


class Metrics:
    """Adds up a run: a watcher of simulations, and the primitives that records of a live run are fed to."""

    def __init__(self, subject: Subject) -> None:
        """Nothing has happened yet."""
        hosts = subject.hosts
        self.subject = subject
        self.capacity: Vector = tuple(sum(places) for places in zip(*hosts.values(), strict=True))
        self.places = tuple(place for place, total in enumerate(self.capacity) if total)
        """Of the resources that there are."""
        self.held = {place: Integral() for place in self.places}
        self.held_at_last_arrival = dict.fromkeys(self.places, 0)
        """Integrals."""
        self.waiting = Integral()
        """Tasks that could start."""
        self.running = Integral()
        self.over = [Integral() for _ in self.capacity]
        """Of what is held, what exceeds its host."""
        self.over_at_last_arrival = [0] * len(self.capacity)
        """Integrals."""
        self.crowded_ms = 0
        """Task-milliseconds on hosts that were promised more than they have."""
        self.shares = SharesSoFar(self.capacity, subject.weights)
        self.others = Holding(self.capacity)
        """What all users together hold that are not tracked."""
        self.timeline = Timeline(self.sums_at)
        self.completion_ms = array("q", [UNFINISHED]) * len(subject.jobs)
        """By place of the job."""
        self.wait_ms = Distribution(subject.waits_apart_max)
        self.waits_by_size = [Distribution(subject.waits_apart_max) for _ in subject.size_ends]
        self.users: dict[str, UserSums] = {}
        """By name, in order of arrival."""
        self.refusals: dict[str, Refused] = {}
        """By reason."""
        self.arrived_places: list[int] = []
        """Of the jobs that arrived, refused ones left out here and below."""
        self.jobs_finished = 0
        self.jobs_left = len(subject.jobs)
        """Neither finished nor refused, those that have not arrived included."""
        self.tasks_arrived = 0
        self.tasks_started = 0
        self.tasks_finished = 0
        self.first_arrival_ms = 0
        self.last_arrival_ms = 0
        self.last_change_ms = 0
        """When a task last started or ended, or a job arrived."""
        self._place_of = {id(job): place for place, job in enumerate(subject.jobs)}
        self._active: dict[int, _Active] = {}
        self._tracked = frozenset(subject.tracked)
        self._largest = largest_amounts(hosts.values())
        self._class_of: dict[Vector, Distribution] = {}
        self._crowding: dict[str, Crowding] = {}

    def watch_crowding(self) -> None:
        """Hosts may be promised more than they have: add that up too. To be called before the run."""
        self._crowding = {name: Crowding(total) for name, total in self.subject.hosts.items()}

    def sums_at(self, now_ms: int) -> list[float]:
        """What the timeline keeps, nothing having changed since the last change.

        In order: held by resource, tasks waiting, tasks running, time contended, Jain's index over that time, dominant
        shares of the tracked users and of all others together. All are integrals over time.
        """
        shares = self.shares
        shares.advance(now_ms)
        sums: list[float] = [self.held[place].until(now_ms) for place in self.places]
        sums += (self.waiting.until(now_ms), self.running.until(now_ms), shares.contended_ms, shares.jain_ms)
        for user in self.subject.tracked:
            standing = shares.users.get(user)
            sums.append(standing.holding.until(now_ms) if standing is not None else 0.0)
        sums.append(self.others.until(now_ms))
        return sums

    def add_job(self, job: Job, now_ms: int) -> str:
        """Count a job that arrives now, its tasks not yet handed in; gives on whose shares it counts."""
        if not self.arrived_places:
            self.first_arrival_ms = now_ms
        self._come_to(now_ms)
        self.arrived_places.append(self._place_of[id(job)])
        self.tasks_arrived += job.tasks
        self.last_arrival_ms = now_ms
        self.held_at_last_arrival = {where: held.until(now_ms) for where, held in self.held.items()}
        self.over_at_last_arrival = [over.until(now_ms) for over in self.over]
        user = self.subject.user_of(job)
        self.users.setdefault(user, UserSums())
        return user

    def hand_in(self, user: str, tasks: int, now_ms: int) -> None:
        """Count tasks that could start from now on."""
        self._come_to(now_ms)
        self.shares.wait(user, tasks, now_ms)
        self.waiting.change(tasks, now_ms)

    def give_up(self, user: str, tasks: int, now_ms: int) -> None:
        """Count tasks that were handed in and will never start."""
        self._come_to(now_ms)
        self.shares.change(user, (), now_ms, waiting=-tasks)
        self.waiting.change(-tasks, now_ms)

    def start(self, user: str, unit: Vector, tasks: int, host: str, now_ms: int) -> None:
        """Count tasks that run on a host from now on."""
        self._come_to(now_ms)
        self.shares.change(user, unit, now_ms, waiting=-tasks, running=tasks)
        self._hold(user, unit, tasks, host, now_ms)
        self.waiting.change(-tasks, now_ms)
        self.tasks_started += tasks

    def end(self, user: str, unit: Vector, tasks: int, host: str, now_ms: int) -> None:
        """Count tasks that are over, well or not."""
        self._come_to(now_ms)
        self.shares.change(user, unit, now_ms, running=-tasks)
        self._hold(user, unit, -tasks, host, now_ms)

    def add_finished_tasks(self, user: str, unit: Vector, tasks: int, wait_ms: int) -> None:
        """Count tasks that ended well, each after so long a wait."""
        self.wait_ms.add(wait_ms, tasks)
        self._waits_of(unit).add(wait_ms, tasks)
        sums = self.users[user]
        sums.tasks_finished += tasks
        sums.wait_ms += wait_ms * tasks
        self.tasks_finished += tasks

    def add_finished_job(self, place: int, completion_ms: int) -> None:
        """Count a job, by its place among all, whose tasks all ended well."""
        self.completion_ms[place] = completion_ms
        self.jobs_finished += 1
        self.jobs_left -= 1

    def arrived(self, job: Job, now_ms: int) -> None:
        """See ``Watcher``."""
        user = self.add_job(job, now_ms)
        active = _Active(self._place_of[id(job)], user, job.stages(), arrived_ms=now_ms)
        self._active[id(job)] = active
        self._open_next_stage(active, now_ms)

    def refused(self, job: Job, bundle: Bundle, why: str, now_ms: int) -> None:  # noqa: ARG002 - told to all watchers
        """See ``Watcher``."""
        reason = self._reason(bundle, why)
        first = Refused(reason=reason, jobs=0, tasks=0, example=job.job_id)
        former = self.refusals.get(reason, first)
        self.refusals[reason] = replace(former, jobs=former.jobs + 1, tasks=former.tasks + job.tasks)
        self.jobs_left -= 1

    def started(self, batch: Batch) -> None:
        """See ``Watcher``."""
        user = self._active[id(batch.job)].user
        self.start(user, batch.bundle.unit, batch.units, batch.host, batch.started_ms)

    def ended(self, batch: Batch, now_ms: int) -> None:
        """See ``Watcher``."""
        unit, units = batch.bundle.unit, batch.units
        active = self._active[id(batch.job)]
        self.end(active.user, unit, units, batch.host, now_ms)
        self.add_finished_tasks(active.user, unit, units, batch.started_ms - batch.ready_ms)
        active.left -= units
        if not active.left:
            self._open_next_stage(active, now_ms)

    def finished(self, job: Job, now_ms: int) -> None:
        """See ``Watcher``."""
        active = self._active.pop(id(job))
        self.add_finished_job(active.place, now_ms - active.arrived_ms)

    def is_stalled(self, since_ms: int) -> bool:
        """Whether nothing has happened since then though tasks wait, and nothing runs that could make room for them."""
        return bool(self.waiting.level) and not self.running.level and self.last_change_ms < since_ms

    def _come_to(self, now_ms: int) -> None:
        """Before anything changes at a time."""
        self.last_change_ms = now_ms
        if now_ms >= self.timeline.next_ms:
            self.timeline.catch_up(now_ms)

    def _open_next_stage(self, active: _Active, now_ms: int) -> None:
        active.stage += 1
        if active.stage < len(active.stages):
            active.left = sum(bundle.tasks for bundle in active.stages[active.stage])
            self.hand_in(active.user, active.left, now_ms)

    def _hold(self, user: str, unit: Vector, tasks: int, host: str, now_ms: int) -> None:
        for place, held in self.held.items():
            held.change(unit[place] * tasks, now_ms)
        self.running.change(tasks, now_ms)
        if user not in self._tracked:
            self.others.hold(unit, tasks, now_ms)
        # A host that joined a live run is none of those whose crowding is watched.
        if (crowding := self._crowding.get(host)) is not None:
            self.crowded_ms += crowding.change(unit, tasks, now_ms, self.over)

    def _reason(self, bundle: Bundle, why: str) -> str:
        """Why no host could hold a task, where that is so in words that many jobs share: ``why`` has the amounts of each."""
        for place, (wanted, most) in enumerate(zip(bundle.unit, self._largest, strict=True)):
            if wanted > most:
                return f"a task wants more {STANDARD_NAMES[place]} than any node has"
        return why if why in self.refusals or len(self.refusals) < REASONS_MAX else "other reasons"

    def _waits_of(self, unit: Vector) -> Distribution:
        """Waits of tasks of this size."""
        found = self._class_of.get(unit)
        if found is None:
            size = dominant_fraction(unit, self._largest)
            # A gang may fit under slots and not otherwise, and then be larger than all that were classed.
            place = min(bisect_left(self.subject.size_ends, size), len(self.waits_by_size) - 1)
            found = self._class_of[unit] = self.waits_by_size[place]
        return found
