"""The fake master's border: the messages a framework sends, checked as a master checks them, and those it is sent."""

from collections.abc import Iterable, Mapping, Sequence

from fairlead_proto.convert import write_resources, write_status
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_proto.tasks import TaskStatus
from fairlead_proto.v1 import framework_pb2
from fairlead_sdk.events import AcceptItem, CallCode, ErrorCode

FrameworkEvent = framework_pb2.FrameworkEvent


def _number(enum: object, name: str) -> int:
    return int(enum.Value(name))  # type: ignore[attr-defined]  # the stubs hide the enum wrapper's methods


def welcome(
    framework_id: str, *, epoch: int, heartbeat_ms: int, failover_ms: int, role: str, custom: Sequence[str]
) -> FrameworkEvent:
    """Takes a session."""
    return FrameworkEvent(
        welcome=framework_pb2.Welcome(
            framework_id=framework_id,
            epoch=epoch,
            heartbeat_interval_ms=heartbeat_ms,
            failover_timeout_ms=failover_ms,
            role=role,
            custom_resources=custom,
        )
    )


def result(
    request_id: int,
    code: CallCode = CallCode.OK,
    detail: str = "",
    *,
    version: int = 0,
    infeasible: Iterable[framework_pb2.Infeasible] = (),
) -> FrameworkEvent:
    """Answers a call."""
    message = framework_pb2.CallResult(
        request_id=request_id, detail=detail, demand_version=version, infeasible=infeasible
    )
    message.code = _number(framework_pb2.CallCode, f"CALL_CODE_{code.value}")  # type: ignore[assignment]
    return FrameworkEvent(result=message)


def infeasible(
    class_id: str, *, best_agent_id: str, missing: Vector, kinds: ResourceKinds
) -> framework_pb2.Infeasible:
    """One class no agent can hold."""
    where = (
        f"the nearest, {best_agent_id}, lacks {kinds.format(missing)}"
        if best_agent_id
        else "constraints exclude all"
    )
    return framework_pb2.Infeasible(
        class_id=class_id,
        best_agent_id=best_agent_id,
        missing=write_resources(missing, kinds),
        detail=f"class {class_id}: no registered agent is large enough; {where}",
    )


def accept_result(request_id: int, offer_id: str, items: Iterable[AcceptItem]) -> FrameworkEvent:
    """Answers an accept."""
    message = framework_pb2.AcceptResult(request_id=request_id, offer_id=offer_id)
    for item in items:
        added = message.items.add(task_id=item.task_id, launched=item.launched, detail=item.detail)
        if item.rejection is not None:
            name = f"REJECTION_{item.rejection.value}"
            added.rejection = _number(framework_pb2.Rejection, name)  # type: ignore[assignment]
    return FrameworkEvent(accept_result=message)


def offer(
    offer_id: str,
    *,
    agent_id: str,
    attributes: Mapping[str, str],
    class_id: str,
    version: int,
    units: int,
    unit: Vector,
    kinds: ResourceKinds,
    lease_ms: int,
) -> framework_pb2.Offer:
    """Room on one agent."""
    return framework_pb2.Offer(
        offer_id=offer_id,
        agent_id=agent_id,
        hostname=attributes["hostname"],
        attributes=attributes,
        class_id=class_id,
        demand_version=version,
        units=units,
        unit=write_resources(unit, kinds),
        lease_ms=lease_ms,
    )


def offers(items: Iterable[framework_pb2.Offer]) -> FrameworkEvent:
    """Makes offers."""
    return FrameworkEvent(offers=framework_pb2.Offers(offers=items))


def rescind(offer_ids: Sequence[str], reason: str) -> FrameworkEvent:
    """Takes offers back."""
    return FrameworkEvent(rescind=framework_pb2.Rescind(offer_ids=offer_ids, reason=reason))


def statuses(items: Iterable[TaskStatus]) -> FrameworkEvent:
    """Reports on tasks."""
    return FrameworkEvent(statuses=framework_pb2.TaskStatuses(statuses=map(write_status, items)))


def reconcile_done(request_id: int, recovering: Sequence[str]) -> FrameworkEvent:
    """Ends a reconciliation."""
    return FrameworkEvent(
        reconcile_done=framework_pb2.ReconcileDone(request_id=request_id, recovering_agent_ids=recovering)
    )


def agent_gone(agent_id: str, reason: str) -> FrameworkEvent:
    """Says that an agent will not return."""
    return FrameworkEvent(agent_gone=framework_pb2.AgentGone(agent_id=agent_id, reason=reason))


def error(code: ErrorCode, detail: str) -> FrameworkEvent:
    """Ends a session."""
    message = framework_pb2.Error(detail=detail)
    message.code = _number(framework_pb2.ErrorCode, f"ERROR_CODE_{code.value}")  # type: ignore[assignment]
    return FrameworkEvent(error=message)


def heartbeat(time_ms: int) -> FrameworkEvent:
    """Shows that the master is there."""
    return FrameworkEvent(heartbeat=framework_pb2.Heartbeat(master_time_ms=time_ms))
