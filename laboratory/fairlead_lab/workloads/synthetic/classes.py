"""Classes of jobs and the users who hand them in, and the jobs that a seed makes of them.

Each class draws from sequences of its own (arrivals, owners, tasks), which depend on the seed and the class's name alone:
changing one class leaves the jobs of the others as they were.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import Any, Final

from fairlead_lab.workloads.synthetic.arrivals import Arrivals, read_arrivals
from fairlead_lab.workloads.synthetic.draws import (
    Draw,
    Even,
    Fixed,
    Uniform,
    draw,
    pick,
    read_draw,
)
from fairlead_lab.workloads.synthetic.table import Table, duration_ms, text_item
from fairlead_lab.workloads.traces import DURATION_S_MAX, TASKS_PER_ROW_MAX
from fairlead_proto.resources import QUANTITY_MAX, STANDARD_NAMES, ResourceError, parse_bytes, parse_milli
from fairlead_proto.tasks import Constraint
from fairlead_sdk.constraints import parse_constraint
from fairlead_sim.workload import Bundle, Job, WorkloadError

_NOTHING: Final = Fixed(0.0)
_ONE: Final = Fixed(1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Somebody who hands in jobs."""

    name: str
    weight: float = 1.0
    """In the policy's eyes."""
    share: float = 1.0
    """Of the jobs, beside those of the other users of a class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage of each job of a class; everything is drawn once for a stage, so that its tasks are equal."""

    tasks: Draw
    demand: tuple[Draw, ...]
    """In the standard order, in the standard units."""
    duration_ms: Draw
    is_gang: bool
    constraints: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobClass:
    """Jobs that are alike."""

    name: str
    weight: float
    """Its part of the jobs of the arrivals that classes share."""
    users: tuple[User, ...]
    stages: tuple[Stage, ...]
    arrivals: Arrivals | None
    """Its own, or None if it takes part in the shared ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """All classes, and the arrivals of those without their own."""

    classes: tuple[JobClass, ...]
    arrivals: Arrivals | None

    def jobs(self, seed: int) -> list[Job]:
        """The jobs of a seed, by arrival; equal ones every time."""
        jobs: list[Job] = []
        sharing = [each for each in self.classes if each.arrivals is None]
        if self.arrivals is not None and sharing:
            mix = _even(seed, "", "mix")
            up_to = tuple(accumulate(each.weight for each in sharing))
            times: dict[str, list[int]] = {each.name: [] for each in sharing}
            for at_ms in self.arrivals.times_ms(_even(seed, "", "arrivals")):
                times[sharing[pick(up_to, mix)].name].append(at_ms)
            for each in sharing:
                jobs += _jobs_of(each, times[each.name], seed)
        for each in self.classes:
            if each.arrivals is not None:
                jobs += _jobs_of(each, each.arrivals.times_ms(_even(seed, each.name, "arrivals")), seed)
        if not jobs:
            raise WorkloadError(f"scenario: expected at least one job, got none with seed {seed}")
        # Sorting is stable: jobs that arrive together come in the order of the classes.
        return sorted(jobs, key=lambda job: job.submit_ms)


def _even(seed: int, name: str, purpose: str) -> Even:
    # A text as the seed is hashed by SHA-512, the same on every machine.
    return Random(f"{seed}|{name}|{purpose}").random  # noqa: S311 - a workload, no secret


def _jobs_of(each: JobClass, times_ms: Iterator[int] | Sequence[int], seed: int) -> Iterator[Job]:
    owners, tasks = _even(seed, each.name, "owners"), _even(seed, each.name, "tasks")
    up_to = tuple(accumulate(user.share for user in each.users))
    for number, at_ms in enumerate(times_ms):
        job_id = f"{each.name}-{number}"
        user = each.users[pick(up_to, owners)].name
        yield Job(
            job_id=job_id,
            user=user,
            submit_ms=at_ms,
            bundles=tuple(
                _bundle(stage, tasks, job_id=job_id, user=user, number=index, at_ms=at_ms)
                for index, stage in enumerate(each.stages)
            ),
        )


def _bundle(stage: Stage, even: Even, *, job_id: str, user: str, number: int, at_ms: int) -> Bundle:
    tasks = min(TASKS_PER_ROW_MAX, max(1, round(draw(stage.tasks, even))))
    unit = tuple(_amount(draw(each, even)) for each in stage.demand)
    if not any(unit):
        # Draws of every resource came out as zero, which no task is.
        unit = (1, *unit[1:])
    return Bundle(
        job_id=job_id,
        user=user,
        stage=number,
        tasks=tasks,
        unit=unit,
        submit_ms=at_ms,
        duration_ms=min(DURATION_S_MAX * 1000, round(draw(stage.duration_ms, even))),
        constraints=stage.constraints,
        is_gang=stage.is_gang and tasks > 1,
    )


def _amount(value: float) -> int:
    """What is wanted at all is not rounded to nothing."""
    return min(QUANTITY_MAX, max(1, round(value))) if value > 0 else 0


def read_user(value: Any, path: str) -> User:
    """A user: a name, or a table with name, weight and share."""
    if isinstance(value, str):
        return User(name=text_item(value, path))
    table = Table(value, path)
    table.require("name", "a name")
    user = User(
        name=table.text("name", ""),
        weight=table.number("weight", least=0, most=1e6, default=1.0, is_open=True),
        share=table.number("share", least=0, most=1e9, default=1.0, is_open=True),
    )
    table.done()
    return user


def read_class(users: Sequence[User]) -> Callable[[Any, str], JobClass]:
    """A reader of classes whose jobs these users may own; without users each class is its own."""

    def read(value: Any, path: str) -> JobClass:
        table = Table(value, path)
        table.require("name", "a name")
        name = table.text("name", "")
        weight = table.number("weight", least=0, most=1e9, default=1.0, is_open=True)
        owners = _owners(table, name, users)
        own = table.table("arrivals")
        arrivals = read_arrivals(own) if own is not None else None
        stages = tuple(table.items("stages", "tables, one a stage", _read_stage))
        if not stages:
            stages = (_stage(table),)
        table.done()
        return JobClass(name=name, weight=weight, users=owners, stages=stages, arrivals=arrivals)

    return read


def _owners(table: Table, name: str, users: Sequence[User]) -> tuple[User, ...]:
    known = {user.name: user for user in users}
    names = table.items("users", "names of users", text_item)
    if not names:
        return tuple(users) or (User(name=name),)
    for number, owner in enumerate(names):
        if known and owner not in known:
            raise WorkloadError(
                f"{table.at('users')}[{number}]: expected one of {', '.join(known)}, got {owner!r}"
            )
    return tuple(known.get(owner, User(name=owner)) for owner in names)


def _read_stage(value: Any, path: str) -> Stage:
    table = Table(value, path)
    stage = _stage(table)
    table.done()
    return stage


def _stage(table: Table) -> Stage:
    table.require("demand", "a table of amounts such as cpus = 1")
    table.require("duration", "how long a task runs")
    tasks = table.raw("tasks")
    return Stage(
        tasks=_ONE if tasks is None else _read_tasks(tasks, table.at("tasks")),
        demand=_demand(table),
        duration_ms=read_draw(table.raw("duration"), table.at("duration"), duration_ms),
        is_gang=table.flag("gang", default=False),
        constraints=tuple(table.items("constraints", "texts such as rack=a|b", _constraint)),
    )


def _demand(table: Table) -> tuple[Draw, ...]:
    below = table.table("demand")
    assert below is not None
    found = []
    for name in STANDARD_NAMES:
        value = below.raw(name)
        found.append(_NOTHING if value is None else read_draw(value, below.at(name), _amount_of(name)))
    below.done()
    if all(isinstance(each, Fixed) and not each.value for each in found):
        raise table.bad("demand", f"an amount above zero in one of {', '.join(STANDARD_NAMES)}")
    return tuple(found)


def _amount_of(name: str) -> Callable[[Any, str], float]:
    def read(value: Any, path: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise WorkloadError(f"{path}: expected an amount of {name}, got {value!r}")
        try:
            return parse_bytes(path, str(value)) if name in {"mem", "disk"} else parse_milli(path, str(value))
        except ResourceError as error:
            raise WorkloadError(str(error)) from None

    return read


def _read_tasks(value: Any, path: str) -> Draw:
    found = read_draw(value, path, _tasks)
    match found:
        case Uniform(least, most):
            # Rounded later: each whole number between the two, both included, is then as likely.
            return Uniform(least - 0.5, most + 0.5)
        case Fixed(tasks) if tasks != int(tasks):
            raise WorkloadError(f"{path}: expected a whole number of tasks, got {value!r}")
        case _:
            return found


def _tasks(value: Any, path: str) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 1 <= value <= TASKS_PER_ROW_MAX:
        raise WorkloadError(
            f"{path}: expected a number of tasks from 1 to {TASKS_PER_ROW_MAX}, got {value!r}"
        )
    return float(value)


def _constraint(value: Any, path: str) -> Constraint:
    try:
        return parse_constraint(text_item(value, path))
    except WorkloadError:
        raise
    except ValueError as error:
        raise WorkloadError(f"{path}: {error}") from None
