"""What a scheduler of one's own says it wants, class by class."""

from collections.abc import Iterable, Mapping, Sequence

from fairlead_proto.limits import WAITING_TASKS_MAX
from fairlead_proto.tasks import Constraint
from fairlead_sdk.amounts import Amounts, Number, parse_amounts
from fairlead_sdk.calls import Demand
from fairlead_sdk.constraints import parse_constraints


def demand_class(
    class_id: str,
    units: int,
    *,
    cpus: Number = 0,
    mem: Number = 0,
    gpus: Number = 0,
    disk: Number = 0,
    custom: Mapping[str, Number] | None = None,
    constraints: Iterable[Constraint | str] = (),
    waiting_task_ids: Sequence[str] = (),
) -> Demand:
    """One line of ``Driver.set_demand``: so many units of this size, on agents that meet the constraints.

    Args:
        class_id: names the class; offers carry it.
        units: how many are wanted beyond everything accepted before.
        cpus: of one unit, as in ``Task``, as are the other amounts.
        mem: of one unit.
        gpus: of one unit.
        disk: of one unit.
        custom: of one unit.
        constraints: as in ``Task``.
        waiting_task_ids: some of the tasks behind it (32 are kept), for listings.

    Raises:
        ValueError: an amount or a constraint cannot be used.
    """
    unit = parse_amounts(cpus=cpus, mem=mem, gpus=gpus, disk=disk, custom=custom or {})
    return _demand(class_id, unit, units, constraints, waiting_task_ids)


def quanta_class(
    class_id: str,
    units: int,
    *,
    constraints: Iterable[Constraint | str] = (),
    waiting_task_ids: Sequence[str] = (),
) -> Demand:
    """One line of ``Driver.set_demand`` that does not say what its tasks need: it is offered quanta of what is free.

    A quantum is the master's to choose, by default a tenth of a core and 256 MiB; an offer names it as its ``unit``. Quanta
    free on one agent come in one offer, and tasks may be of any size that fits into an offer, at most one a quantum.
    Under the policy ``bbf`` the framework is charged for what its tasks measurably use.

    Args:
        class_id: names the class; offers carry it.
        units: how many quanta may be on offer at once; each task accepted takes one of them off.
        constraints: as in ``Task``.
        waiting_task_ids: as in ``demand_class``.

    Raises:
        ValueError: the number or a constraint cannot be used.
    """
    return _demand(class_id, Amounts(), units, constraints, waiting_task_ids)


def _demand(
    class_id: str,
    unit: Amounts,
    units: int,
    constraints: Iterable[Constraint | str],
    waiting_task_ids: Sequence[str],
) -> Demand:
    if units < 0:
        raise ValueError(f"units: expected 0 or more, got {units}")
    return Demand(
        class_id=class_id,
        unit=unit,
        units=units,
        constraints=parse_constraints(constraints),
        waiting_task_ids=tuple(waiting_task_ids[:WAITING_TASKS_MAX]),
    )
