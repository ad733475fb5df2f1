"""The SDK's border: session values to messages, messages to session values, and nothing else.

What is read is checked, since a master may be newer, broken or not a master at all; ``InvalidFieldError`` names the field.
The vocabulary shared with the other roles is read by ``fairlead_proto.convert``, and what the master says in values that are
its own too by ``framework_messages``, as what it is asked in such values is written by ``framework_call_messages``. Here are
those with named amounts, which a vector of the master's only numbers.
"""

from collections.abc import Sequence

from fairlead_proto import columns, convert
from fairlead_proto.convert import write_constraint
from fairlead_proto.fields import (
    InvalidFieldError,
    read_attributes,
    read_count,
    read_duration,
    read_id,
    read_name,
    read_role,
)
from fairlead_proto.framework_call_messages import fill_call
from fairlead_proto.framework_messages import read_event
from fairlead_proto.limits import BATCH_BYTES_MAX, DURATION_MS_MAX, UNITS_MAX
from fairlead_proto.peers import ARRAYS, COLUMNS, NONE, Capabilities, Unknowns, read_capabilities
from fairlead_proto.resources import QUANTITY_MAX
from fairlead_proto.v1 import framework_pb2, types_pb2
from fairlead_sdk.amounts import Amounts
from fairlead_sdk.calls import (
    Accept,
    Call,
    Demand,
    Launch,
    NumberedCall,
    SetDemand,
    call_size,
)
from fairlead_sdk.events import Offer, OffersReceived, Received, StatusReceived, Welcome

# --- writing -----------------------------------------------------------------------------------------------------


def write_batches(
    calls: Sequence[NumberedCall], peer: Capabilities = NONE
) -> list[framework_pb2.FrameworkCalls]:
    """Messages of all the calls in their order, as few as the bound on a message's size allows."""
    batches: list[framework_pb2.FrameworkCalls] = []
    batch: list[framework_pb2.FrameworkCall] = []
    size = 0
    for request_id, call in calls:
        call_bytes = call_size(call)
        if batch and size + call_bytes > BATCH_BYTES_MAX:
            batches.append(framework_pb2.FrameworkCalls(calls=batch))
            batch, size = [], 0
        batch.append(_write_call(request_id, call, peer))
        size += call_bytes
    if batch:
        batches.append(framework_pb2.FrameworkCalls(calls=batch))
    return batches


def _write_call(request_id: int, call: Call, peer: Capabilities) -> framework_pb2.FrameworkCall:
    message = framework_pb2.FrameworkCall(request_id=request_id)
    match call:
        case SetDemand():
            message.set_demand.version = call.version
            message.set_demand.classes.extend(map(_write_demand, call.classes))
            message.set_demand.lift_declines = call.lift_declines
        case Accept():
            message.accept.offer_id = call.offer_id
            if ARRAYS in peer and all(launch.member is not None for launch in call.launches):
                _fill_arrays(message.accept, call.launches)
            else:
                message.accept.tasks.extend(map(write_launch, call.launches))
        case _:
            fill_call(message, call, in_columns=COLUMNS in peer)
    return message


def _write_demand(demand: Demand) -> framework_pb2.DemandClass:
    return framework_pb2.DemandClass(
        class_id=demand.class_id,
        unit=write_amounts(demand.unit) if demand.unit != Amounts() else None,
        units=demand.units,
        constraints=map(write_constraint, demand.constraints),
        waiting_task_ids=demand.waiting_task_ids,
    )


def _fill_arrays(accept: framework_pb2.Accept, launches: Sequence[Launch]) -> None:
    """Write members of arrays, which the answer names in the same order; a template once for those that follow one another."""
    last: tuple[object, ...] = ()
    array: types_pb2.TaskArray | None = None
    for launch in launches:
        member, task = launch.member, launch.task
        assert member is not None, f"{launch.task_id} is of no array"
        has_argument = member.argument is not None
        # What is left of its id behind that of the first attempt says which one it is.
        attempt = int(launch.task_id[len(member.task_id) + 1 :] or 1)
        alike = (id(task), member.array_id, member.count, attempt, has_argument)
        if array is None or alike != last:
            array = accept.arrays.add(count=member.count, attempt=attempt)
            array.template.CopyFrom(write_launch(Launch(member.array_id, task)))
            array.template.name = task.name
            last = alike
        array.indices.append(member.index)
        if member.argument is not None:
            array.arguments.append(member.argument)


def write_launch(launch: Launch) -> types_pb2.TaskSpec:
    """The description of one attempt."""
    task, member = launch.task, launch.member
    return types_pb2.TaskSpec(
        task_id=launch.task_id,
        name=launch.name,
        resources=write_amounts(task.demand),
        command=task.command if member is None else member.command(task.command),
        environment=task.env if member is None else member.environment(task.env),
        working_directory=task.working_directory,
        kill_grace_period_ms=task.grace_period_ms,
        max_runtime_ms=task.max_runtime_ms,
        labels=task.labels,
        no_files=not task.files,
    )


def write_amounts(amounts: Amounts) -> types_pb2.Resources:
    """The message of an amount."""
    return types_pb2.Resources(
        cpus_milli=amounts.cpus_milli,
        mem_bytes=amounts.mem_bytes,
        disk_bytes=amounts.disk_bytes,
        gpus_milli=amounts.gpus_milli,
        custom_milli=dict(amounts.custom_milli) if amounts.custom_milli else None,
    )


# --- reading -----------------------------------------------------------------------------------------------------


def read_events(message: framework_pb2.FrameworkEvents, unknowns: Unknowns) -> list[Received]:
    """The events of one message in their order, every field checked.

    What only a newer master knows is passed over: an event of another kind, a report of another state, which comes again. Of
    a no for another reason the no is kept.

    Raises:
        InvalidFieldError: a field cannot be used.
    """
    events: list[Received] = []
    for index, event in enumerate(message.events):
        field = f"events[{index}]"
        match event.WhichOneof("event"):
            case "statuses":
                reports = columns.read_statuses(f"{field}.statuses", event.statuses, unknowns)
                events += map(StatusReceived, reports)
            case "offers":
                offers = tuple([_read_offer(f"{field}.offers", offer) for offer in event.offers.offers])
                events.append(OffersReceived(offers))
            case "welcome":
                events.append(_read_welcome(f"{field}.welcome", event.welcome))
            case None:
                unknowns.note("event", f"{field}: an event of a kind that this version does not know")
            case which:
                events.append(read_event(field, which, event, unknowns))
    return events


def _read_welcome(field: str, message: framework_pb2.Welcome) -> Welcome:
    interval_ms = read_duration(f"{field}.heartbeat_interval_ms", message.heartbeat_interval_ms)
    if interval_ms == 0:
        raise InvalidFieldError(f"{field}.heartbeat_interval_ms: expected above 0, got 0")
    return Welcome(
        framework_id=read_id(f"{field}.framework_id", message.framework_id),
        epoch=read_count(f"{field}.epoch", message.epoch),
        heartbeat_interval_ms=interval_ms,
        failover_timeout_ms=read_duration(f"{field}.failover_timeout_ms", message.failover_timeout_ms),
        role=read_role(f"{field}.role", message.role),
        custom_resources=tuple(message.custom_resources),
        master_version=read_name(f"{field}.version", message.version),
        capabilities=read_capabilities(message.capabilities),
    )


def _read_offer(field: str, message: framework_pb2.Offer) -> Offer:
    units, lease_ms = message.units, message.lease_ms
    if not 1 <= units <= UNITS_MAX or not 1 <= lease_ms <= DURATION_MS_MAX:
        raise InvalidFieldError(
            f"{field}: expected units of 1 to {UNITS_MAX} and lease_ms of 1 to {DURATION_MS_MAX}, got {units} and {lease_ms}"
        )
    agent_id = read_id(f"{field}.agent_id", message.agent_id)
    attributes = read_attributes(f"{field}.attributes", message.attributes)
    hostname = read_name(f"{field}.hostname", message.hostname)
    attributes.setdefault("hostname", hostname)
    attributes.setdefault("agent_id", agent_id)
    return Offer(
        offer_id=read_id(f"{field}.offer_id", message.offer_id),
        agent_id=agent_id,
        hostname=hostname,
        attributes=attributes,
        class_id=read_id(f"{field}.class_id", message.class_id),
        demand_version=read_count(f"{field}.demand_version", message.demand_version),
        units=units,
        unit=read_amounts(f"{field}.unit", message.unit),
        lease_ms=lease_ms,
    )


def read_amounts(field: str, message: types_pb2.Resources) -> Amounts:
    """The amount of a message, of whatever resources the master knows."""
    vector = (message.cpus_milli, message.mem_bytes, message.disk_bytes, message.gpus_milli)
    custom = message.custom_milli
    if custom or min(vector) < 0 or max(vector) > QUANTITY_MAX:
        convert.read_named(field, message)  # Refuses what is out of range by its name.
    return Amounts(*vector, tuple(sorted(custom.items())) if custom else ())
