"""The core's events of what a framework asks; what it is told is written by ``fairlead_proto.framework_messages``."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from fairlead_master.core import events
from fairlead_master.sessions import in_parts
from fairlead_proto import array_messages, convert, fields, limits
from fairlead_proto import framework_call_messages as calls
from fairlead_proto.fields import InvalidFieldError, UnknownValueError
from fairlead_proto.framework_calls import KillAsked, OffersDeclined, ReconcileAsked, StatusesAcknowledged
from fairlead_proto.ids import OfferId
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.v1 import framework_pb2 as pb

_CLASS_BYTES: Final = 14 * 1024
"""What a class costs by itself, as measured: its values 0.3 KiB, its books 1.2 KiB, the agents it may choose from 12 KiB."""

_PART_BYTES: Final = 60
"""What a word of a class costs beyond its letters, as measured: the text's head and its place in a tuple."""

_CONSTRAINT_PARTS: Final = 3
"""What a constraint costs beside its values, in such words."""


def read_call(session: int, call: pb.FrameworkCall, kinds: ResourceKinds) -> list[events.Event]:
    """The events of a call after the first: one, or several for a long list of tasks.

    Raises:
        InvalidFieldError: a field is wrong; nothing of the call is carried out.
    """
    which = call.WhichOneof("call")
    reader = _READERS.get(which or "")
    if reader is None:
        expected = f"call: expected one of {', '.join(_READERS)}"
        if which is None:
            raise UnknownValueError("call", f"{expected}, got none that this version knows")
        raise InvalidFieldError(f"{expected}, got {which}")
    return reader(session, call, kinds)


def _read_demand(session: int, call: pb.FrameworkCall, kinds: ResourceKinds) -> list[events.Event]:
    cost_bytes = _demand_cost(call.set_demand)
    if cost_bytes > limits.DEMAND_BYTES_MAX:
        raise InvalidFieldError(
            f"set_demand: expected at most {limits.DEMAND_BYTES_MAX} bytes in memory, got {cost_bytes}: want fewer "
            "classes, or fewer values in their constraints"
        )
    demand = events.DemandSet(
        session=session,
        request_id=call.request_id,
        version=fields.read_count("set_demand.version", call.set_demand.version),
        classes=convert.read_classes("set_demand.classes", call.set_demand.classes, kinds),
        cost_bytes=cost_bytes,
        # Frameworks older than the field rely on what it was before.
        lift_declines=call.set_demand.lift_declines or not call.set_demand.HasField("lift_declines"),
    )
    return [demand]


def _demand_cost(demand: pb.SetDemand) -> int:
    """What a demand takes in memory, in bytes: by the number of its parts, and their text."""
    parts = 0
    for wanted in demand.classes:
        parts += len(wanted.waiting_task_ids) + sum(
            [_CONSTRAINT_PARTS + len(constraint.values) for constraint in wanted.constraints]
        )
    return _CLASS_BYTES * len(demand.classes) + _PART_BYTES * parts + demand.ByteSize()


def _read_accept(session: int, call: pb.FrameworkCall, kinds: ResourceKinds) -> list[events.Event]:
    messages, arrays = call.accept.tasks, call.accept.arrays
    count = len(messages) + sum([len(array.indices) for array in arrays])
    if count > limits.TASKS_PER_ACCEPT_MAX:
        raise InvalidFieldError(
            f"accept.tasks: expected at most {limits.TASKS_PER_ACCEPT_MAX} tasks, got {count}"
        )
    # An older agent gets each task of an array for itself.
    size = call.ByteSize() + sum(map(array_messages.size_bytes, arrays))
    if size > limits.ACCEPT_BYTES_MAX:
        raise InvalidFieldError(
            f"accept: expected at most {limits.ACCEPT_BYTES_MAX} bytes, got {size}: launch fewer at once"
        )
    tasks: list[Any] = []
    for message in messages:
        try:
            tasks.append(convert.read_task("task", message, kinds))
        except InvalidFieldError as error:
            tasks.append(events.InvalidTask(message.task_id[: limits.ID_LENGTH_MAX], str(error)))
    for array in arrays:
        try:
            tasks += array_messages.read_array("array", array, kinds)
        except InvalidFieldError as error:
            tasks += [
                events.InvalidTask(task_id[: limits.ID_LENGTH_MAX], str(error))
                for task_id in array_messages.task_ids(array)
            ]
    accept = events.OfferAccepted(
        session=session,
        request_id=call.request_id,
        offer_id=OfferId(fields.read_id("accept.offer_id", call.accept.offer_id)),
        tasks=tuple(tasks),
    )
    return [accept]


def _read_decline(session: int, call: pb.FrameworkCall, _kinds: ResourceKinds) -> list[events.Event]:
    return _parted(calls.read_decline(session, call), "offer_ids")


def _read_kill(session: int, call: pb.FrameworkCall, _kinds: ResourceKinds) -> list[events.Event]:
    return _parted(calls.read_kill(session, call), "task_ids")


def _read_acknowledge(session: int, call: pb.FrameworkCall, _kinds: ResourceKinds) -> list[events.Event]:
    items = calls.read_acknowledge(session, call).items
    return [StatusesAcknowledged(session=session, items=part) for part in in_parts(items)]


def _read_reconcile(session: int, call: pb.FrameworkCall, _kinds: ResourceKinds) -> list[events.Event]:
    return _parted(calls.read_reconcile(session, call), "task_ids")


def _read_teardown(session: int, call: pb.FrameworkCall, _kinds: ResourceKinds) -> list[events.Event]:
    return [calls.read_teardown(session, call)]


def _parted(call: OffersDeclined | KillAsked | ReconcileAsked, records: str) -> list[events.Event]:
    """A call with many records as several, of which the last is answered."""
    *first, last = in_parts(getattr(call, records))
    if not first:
        return [call]
    changes: list[dict[str, Any]] = [{records: part, "is_last": False} for part in first]
    return [replace(call, **change) for change in (*changes, {records: last})]


_READERS: Final[Mapping[str, Callable[[int, pb.FrameworkCall, ResourceKinds], list[events.Event]]]] = {
    "set_demand": _read_demand,
    "accept": _read_accept,
    "decline": _read_decline,
    "kill": _read_kill,
    "acknowledge": _read_acknowledge,
    "reconcile": _read_reconcile,
    "teardown": _read_teardown,
}


def write_invalid(call: pb.FrameworkCall, error: InvalidFieldError) -> pb.FrameworkEvent:
    """The answer to a call that did not pass the border."""
    if call.WhichOneof("call") == "accept":
        task_ids = [task.task_id for task in call.accept.tasks]
        for array in call.accept.arrays:
            task_ids += array_messages.task_ids(array)
        items = [
            pb.AcceptResult.Item(task_id=task_id, rejection=pb.REJECTION_INVALID, detail=str(error))
            for task_id in task_ids[: limits.TASKS_PER_ACCEPT_MAX]
        ]
        answer = pb.AcceptResult(request_id=call.request_id, offer_id=call.accept.offer_id, items=items)
        return pb.FrameworkEvent(accept_result=answer)
    return pb.FrameworkEvent(
        result=pb.CallResult(request_id=call.request_id, code=pb.CALL_CODE_INVALID, detail=str(error))
    )
