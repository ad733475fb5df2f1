"""The border between the messages of a framework's session and their values: what a framework asks of a master.

As in ``convert``, what is read is checked, and what is written is trusted. Demands and accepts are written by
``fairlead_sdk.wire`` and read by ``fairlead_master.framework_wire``, as values of their own.
"""

from fairlead_proto import columns, convert, enum_numbers
from fairlead_proto.fields import (
    InvalidFieldError,
    UnknownValueError,
    read_count,
    read_duration,
    read_id,
    read_name,
    read_role,
    read_weight,
    refusal,
)
from fairlead_proto.framework_calls import (
    Acknowledged,
    FrameworkCall,
    FrameworkConnected,
    KillAsked,
    OffersDeclined,
    ReconcileAsked,
    StatusesAcknowledged,
    TeardownAsked,
)
from fairlead_proto.ids import AgentId, FrameworkId, OfferId, TaskId
from fairlead_proto.limits import NAME_LENGTH_MAX
from fairlead_proto.v1 import framework_pb2 as pb


def fill_call(message: pb.FrameworkCall, call: FrameworkCall, *, in_columns: bool) -> None:
    """Write a call into a message that has its request id."""
    match call:
        case StatusesAcknowledged():
            _fill_acknowledge(message.acknowledge, call, in_columns=in_columns)
        case OffersDeclined():
            message.decline.offer_ids.extend(call.offer_ids)
            message.decline.reason = call.reason
            message.decline.scope = enum_numbers.DECLINE_SCOPES.of[call.scope]
            message.decline.ttl_ms = call.ttl_ms
        case KillAsked():
            message.kill.task_ids.extend(call.task_ids)
            message.kill.grace_period_ms = call.grace_period_ms
        case ReconcileAsked():
            message.reconcile.SetInParent()
            message.reconcile.task_ids.extend(call.task_ids)
        case TeardownAsked():
            message.teardown.SetInParent()
        case FrameworkConnected():
            _fill_hello(message.hello, call)


def _fill_hello(hello: pb.Hello, call: FrameworkConnected) -> None:
    hello.framework_id = call.framework_id or ""
    hello.name = call.name
    hello.role = call.role
    hello.failover_timeout_ms = call.failover_timeout_ms
    hello.principal = call.principal
    hello.last_epoch = call.last_epoch
    hello.weight = call.weight or 0.0
    convert.introduce(hello)


def _fill_acknowledge(message: pb.Acknowledge, call: StatusesAcknowledged, *, in_columns: bool) -> None:
    if not in_columns:
        for task_id, sequence, agent_id in call.items:
            message.items.add(task_id=task_id, sequence=sequence, agent_id=agent_id)
        return
    groups: dict[AgentId, list[tuple[TaskId, int]]] = {}
    for task_id, sequence, agent_id in call.items:
        groups.setdefault(agent_id, []).append((task_id, sequence))
    for agent_id, group in groups.items():
        columns.fill_acknowledgements(message.columns.add(agent_id=agent_id), group)


def read_hello(session: int, call: pb.FrameworkCall, peer: str = "") -> FrameworkConnected:
    """The first call of a session, from the host ``peer``.

    Raises:
        InvalidFieldError: it is not a Hello, or a field of it is wrong.
    """
    if call.WhichOneof("call") != "hello":
        raise InvalidFieldError(f"first call: expected hello, got {call.WhichOneof('call') or 'nothing'}")
    hello = call.hello
    framework_id = (
        FrameworkId(read_id("hello.framework_id", hello.framework_id)) if hello.framework_id else None
    )
    return FrameworkConnected(
        session=session,
        framework_id=framework_id,
        name=read_name("hello.name", hello.name),
        role=read_role("hello.role", hello.role),
        principal=read_name("hello.principal", hello.principal),
        failover_timeout_ms=read_duration("hello.failover_timeout_ms", hello.failover_timeout_ms),
        last_epoch=read_count("hello.last_epoch", hello.last_epoch),
        weight=read_weight("hello.weight", hello.weight) if hello.weight else None,
        peer=peer,
        version=read_name("hello.version", hello.version),
    )


def read_decline(session: int, call: pb.FrameworkCall) -> OffersDeclined:
    """Offers that are given back.

    Raises:
        InvalidFieldError: a field is wrong; so too from the others.
    """
    decline = call.decline
    scopes = enum_numbers.DECLINE_SCOPES.by_number
    scope = scopes.get(decline.scope or pb.Decline.SCOPE_AGENT)
    if scope is None:
        error = refusal("decline.scope", f"one of 0 to {max(scopes)}", decline.scope)
        raise UnknownValueError("scope", str(error))
    ttl_ms = read_duration("decline.ttl_ms", decline.ttl_ms)
    return OffersDeclined(
        session=session,
        request_id=call.request_id,
        offer_ids=tuple([OfferId(read_id("decline.offer_ids", text)) for text in decline.offer_ids]),
        reason=decline.reason[:NAME_LENGTH_MAX],
        scope=scope,
        ttl_ms=ttl_ms,
    )


def read_kill(session: int, call: pb.FrameworkCall) -> KillAsked:
    """Tasks to end."""
    grace_period_ms = read_duration("kill.grace_period_ms", call.kill.grace_period_ms)
    return KillAsked(
        session=session,
        request_id=call.request_id,
        task_ids=tuple([TaskId(read_id("kill.task_ids", text)) for text in call.kill.task_ids]),
        grace_period_ms=grace_period_ms,
    )


def read_acknowledge(session: int, call: pb.FrameworkCall) -> StatusesAcknowledged:
    """Statuses that need not be sent again, those of single messages before those in columns."""
    items = [_read_acknowledged(item) for item in call.acknowledge.items]
    for part in call.acknowledge.columns:
        agent_id = AgentId(read_id("acknowledge.columns.agent_id", part.agent_id) if part.agent_id else "")
        found = columns.read_acknowledgements("acknowledge.columns", part)
        items += [(task_id, sequence, agent_id) for task_id, sequence in found]
    return StatusesAcknowledged(session=session, items=tuple(items))


def _read_acknowledged(item: pb.Acknowledge.Item) -> Acknowledged:
    task_id, agent_id = item.task_id, item.agent_id
    read_id("acknowledge.items.task_id", task_id)
    if agent_id:
        read_id("acknowledge.items.agent_id", agent_id)
    return TaskId(task_id), read_count("acknowledge.items.sequence", item.sequence), AgentId(agent_id)


def read_reconcile(session: int, call: pb.FrameworkCall) -> ReconcileAsked:
    """Tasks whose state is asked for."""
    task_ids = [TaskId(read_id("reconcile.task_ids", text)) for text in call.reconcile.task_ids]
    return ReconcileAsked(session=session, request_id=call.request_id, task_ids=tuple(task_ids))


def read_teardown(session: int, call: pb.FrameworkCall) -> TeardownAsked:
    """The end of the framework."""
    return TeardownAsked(session=session, request_id=call.request_id)
