"""A framework as a queue: the tasks it waits to run, by class, and the gangs it is collecting places for."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final, Generic, TypeVar

from fairlead_master.allocation.api import Grant
from fairlead_proto.framework_events import OfferTerms
from fairlead_proto.ids import ClassId, FrameworkId, Role
from fairlead_proto.resources import Vector
from fairlead_proto.tasks import Constraint, DemandClass
from fairlead_sim.engine import Occurrence
from fairlead_sim.pool.feasibility import Kind
from fairlead_sim.workload import Bundle, Job

_ATTEMPTS_COUNTED: Final = 10
"""Of a gang: pauses do not grow for ever."""


@dataclass(slots=True, eq=False)
class ActiveJob:
    """A job under way."""

    job: Job
    stages: list[tuple[Bundle, ...]]
    stage: int = 0
    left: int = 0
    """Tasks of the stage that are not over."""
    ready_ms: int = 0
    """When the stage began."""


@dataclass(slots=True, eq=False)
class Waiting:
    """Tasks of a bundle that have not started."""

    job: ActiveJob
    bundle: Bundle
    tasks: int


@dataclass(slots=True, eq=False)
class Queue:
    """The tasks of one class that wait, in the order in which they became ready."""

    class_id: ClassId
    unit: Vector
    constraints: tuple[Constraint, ...]
    is_gang: bool
    waiting: deque[Waiting] = field(default_factory=deque)
    tasks: int = 0


class PoolFramework:
    """One framework and its work."""

    def __init__(self, framework_id: FrameworkId, name: str, role: Role) -> None:
        self.framework_id = framework_id
        self.name = name
        self.role = role
        self.jobs = 0
        """Under way."""
        self.queues: dict[ClassId, Queue] = {}
        """Those in which something waits, in the order in which they began to."""
        self._class_ids: dict[Kind, ClassId] = {}
        """Of queues that gangs have no part in: in a trace each task may want something else, so no more are remembered."""
        self._classes = 0

    def enqueue(self, job: ActiveJob, bundle: Bundle) -> None:
        """The tasks of a bundle are ready to start."""
        if bundle.is_gang and bundle.tasks > 1:
            class_id = self._new_class()
        else:
            kind = (bundle.unit, bundle.constraints)
            known = self._class_ids.get(kind)
            if known is None:
                known = self._class_ids[kind] = self._new_class()
            class_id = known
        queue = self.queues.get(class_id)
        if queue is None:
            is_gang = bundle.is_gang and bundle.tasks > 1
            queue = self.queues[class_id] = Queue(class_id, bundle.unit, bundle.constraints, is_gang)
        queue.waiting.append(Waiting(job, bundle, bundle.tasks))
        queue.tasks += bundle.tasks

    def take(self, class_id: ClassId, units: int) -> Iterator[tuple[Waiting, int]]:
        """So many tasks of a class, those that wait longest first: in portions of one bundle each."""
        queue = self.queues[class_id]
        queue.tasks -= units
        while units:
            first = queue.waiting[0]
            taken = min(units, first.tasks)
            first.tasks -= taken
            units -= taken
            if not first.tasks:
                queue.waiting.popleft()
            yield first, taken
        if not queue.tasks:
            del self.queues[class_id]
            if not queue.is_gang:
                del self._class_ids[queue.unit, queue.constraints]

    def _new_class(self) -> ClassId:
        self._classes += 1
        return ClassId(str(self._classes))

    def demand(self) -> list[DemandClass]:
        """What it wants, all of it, as it tells a master."""
        return [
            DemandClass(
                class_id=queue.class_id, unit=queue.unit, units=queue.tasks, constraints=queue.constraints
            )
            for queue in self.queues.values()
        ]


Held = TypeVar("Held", Grant, OfferTerms)
"""Places that a gang holds: what an allocator grants, or what a master offers."""


@dataclass(slots=True, eq=False)
class Gang(Generic[Held]):
    """The places a gang has collected."""

    held: list[Held] = field(default_factory=list)
    units: int = 0
    attempts: int = 0
    patience: Occurrence | None = None

    def collect(self, places: Held, *, of: int) -> bool:
        """Hold more places; whether these were the last of so many."""
        self.held.append(places)
        self.units += places.units
        if self.units == of and self.patience is not None:
            self.patience.cancel()
        return self.units == of

    def pause_ms(self, patience_ms: int, random: Random) -> int:
        """How long it wants nothing after it has given up."""
        # Drawn, as two that gave up together would otherwise come back together; and no longer for ever.
        return random.randint(1, patience_ms << min(self.attempts, _ATTEMPTS_COUNTED))
