"""Tasks that wait, grouped into the demand classes the master is told of.

Tasks with the same amounts and the same constraints are one class, so that a sweep of a hundred thousand equal tasks is
one line on the wire and one decision at a time in the master.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final

from fairlead_proto.limits import CLASSES_MAX, PATTERNS_MAX, UNITS_MAX, WAITING_TASKS_MAX
from fairlead_proto.resources import QUANTITY_MAX
from fairlead_proto.tasks import ArrayMember, Constraint, Operator
from fairlead_sdk.amounts import Amounts
from fairlead_sdk.calls import Demand, Launch
from fairlead_sdk.matching import launchable_count
from fairlead_sdk.task import Task

_EMPTY_CLASSES_MAX: Final = CLASSES_MAX
"""Classes kept though nothing waits in them: their name may come back with the next task, or stand on an offer under way."""


class _Class:
    def __init__(self, class_id: str, unit: Amounts, constraints: tuple[Constraint, ...]) -> None:
        self.class_id = class_id
        self.unit = unit
        self.constraints = constraints
        self.again: dict[str, Launch] = {}
        self.waiting: dict[str, Launch] = {}
        self.promised: dict[str, int] = {}
        """Array id to how many of its members are to come."""
        self.taken = 0
        self.suspended = False

    @property
    def count(self) -> int:
        return len(self.again) + len(self.waiting) + sum(self.promised.values())


class DemandBook:
    """The waiting attempts by class, in order of preference: first come first, repeated attempts before new ones."""

    def __init__(self) -> None:
        self._ids: dict[tuple[Amounts, tuple[Constraint, ...]], str] = {}
        self._classes: dict[str, _Class] = {}
        self._made = 0

    def __len__(self) -> int:
        return sum(group.count for group in self._classes.values())

    def add(
        self, attempt_id: str, task: Task, *, member: ArrayMember | None = None, again: bool = False
    ) -> str:
        """Let an attempt wait, and return its class id; ``again`` puts it before the new ones."""
        group = self._class_of(task)
        (group.again if again else group.waiting)[attempt_id] = Launch(attempt_id, task, member)
        return group.class_id

    def promise(self, array_id: str, task: Task, units: int) -> int:
        """Count so many further members of an array as waiting, until they are added, and return how many were before."""
        group = self._class_of(task)
        before = group.promised.pop(array_id, 0)
        if units:
            group.promised[array_id] = units
        return before

    def remove(self, attempt_id: str, class_id: str) -> None:
        """Let an attempt wait no longer."""
        group = self._classes[class_id]
        (group.again if attempt_id in group.again else group.waiting).pop(attempt_id)

    def waiting_ids(self, class_id: str) -> list[str]:
        """The attempts that wait in a class, in the order they will be taken; none for an unknown class."""
        group = self._classes.get(class_id)
        return [] if group is None else [*group.again, *group.waiting]

    def waiting_count(self, class_id: str) -> int:
        """How many attempts wait in a class, promised ones not counted."""
        group = self._classes.get(class_id)
        return 0 if group is None else len(group.again) + len(group.waiting)

    def take(self, class_id: str, unit: Amounts, units: int) -> list[Launch]:
        """Take the next attempts of a class for an offer of so many units; they wait no longer.

        Empty if nothing waits, or the offer is of another unit than the class has: then it fits nothing here.
        """
        group = self._classes.get(class_id)
        if group is None or group.unit != unit:
            return []
        candidates = list(islice(chain(group.again.values(), group.waiting.values()), units))
        count = launchable_count([launch.size_bytes for launch in candidates], units=units)
        for launch in candidates[:count]:
            self.remove(launch.task_id, class_id)
        group.taken += count
        return candidates[:count]

    def suspend(self, class_id: str) -> None:
        """Leave a class out of the demand for now."""
        self._classes[class_id].suspended = True

    def resume_all(self) -> bool:
        """Put suspended classes back, and say whether there were any."""
        suspended = [group for group in self._classes.values() if group.suspended]
        for group in suspended:
            group.suspended = False
        return bool(suspended)

    def is_stale(self) -> bool:
        """Whether a class has launched all the waiting tasks it named, and more wait that nobody can see in listings."""
        return any(group.count and group.taken >= WAITING_TASKS_MAX for group in self._classes.values())

    def class_ids(self) -> list[str]:
        """The classes that are, or are about to be, announced."""
        return [group.class_id for group in self._classes.values() if group.count and not group.suspended]

    def classes(self) -> tuple[Demand, ...]:
        """The demand to announce now; classes beyond the master's bounds wait for earlier ones to empty."""
        wanted = (group for group in self._classes.values() if group.count and not group.suspended)
        return tuple(map(_announce, islice(_within_patterns(wanted), CLASSES_MAX)))

    def _class_of(self, task: Task) -> _Class:
        key = (task.demand, task.conditions)
        class_id = self._ids.get(key)
        if class_id is None:
            self._forget_empty()
            self._made += 1
            class_id = self._ids[key] = f"c{self._made}"
            self._classes[class_id] = _Class(class_id, *key)
        return self._classes[class_id]

    def _forget_empty(self) -> None:
        empty = [group for group in self._classes.values() if not group.count]
        if len(empty) <= _EMPTY_CLASSES_MAX:
            return
        for group in empty:
            del self._classes[group.class_id]
            del self._ids[group.unit, group.constraints]


def _within_patterns(groups: Iterable[_Class]) -> Iterator[_Class]:
    """The classes, in order, that bring no more different patterns than a master takes in one demand."""
    known: set[str] = set()
    for group in groups:
        own = {c.values[0] for c in group.constraints if c.operator is Operator.MATCHES}
        if len(known | own) <= PATTERNS_MAX:
            known |= own
            yield group


def _announce(group: _Class) -> Demand:
    group.taken = 0
    largest = max(group.unit.as_dict().values())
    return Demand(
        class_id=group.class_id,
        unit=group.unit,
        units=min(group.count, UNITS_MAX, QUANTITY_MAX // largest),
        constraints=group.constraints,
        waiting_task_ids=tuple(islice(chain(group.again, group.waiting), WAITING_TASKS_MAX)),
    )
