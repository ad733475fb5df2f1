"""Between the messages of an agent's session and the core's events and actions.

What tasks, statuses and amounts look like is ``fairlead_proto.convert``'s business; here is only the envelope. An item
that cannot be read is answered or logged, and the rest of its batch counts.
"""

import time
from collections.abc import Iterator
from typing import Final

from structlog.typing import FilteringBoundLogger

from fairlead_agent.core import actions, events
from fairlead_proto import convert, enum_numbers, fields
from fairlead_proto.codes import RefusalCode
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.ids import AgentId
from fairlead_proto.limits import STATUS_MESSAGE_LENGTH_MAX
from fairlead_proto.peers import Unknowns
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.tasks import RunningTask
from fairlead_proto.v1 import agent_pb2

REGISTER_COMMAND_BYTES_MAX: Final = 4 * 1024 * 1024
"""Commands of all tasks in one registration. Beyond it only first words are sent: they serve listings, and a
registration that exceeds the size of a message could never be delivered."""

STATUSES_PER_MESSAGE_MAX: Final = 1_000
"""Some 200 KiB, and never more than 5 MiB."""

SessionAction = actions.SendRegistration | actions.SendStatuses | actions.SendHeartbeat | actions.SendGoodbye


def read_batch(
    batch: agent_pb2.MasterMessages, kinds: ResourceKinds, log: FilteringBoundLogger, unknowns: Unknowns
) -> tuple[list[events.Event], list[agent_pb2.FileRequest]]:
    """Give the events in a batch, in order, and apart from them the requests for files, which the core is not asked."""
    found: list[events.Event] = []
    file_requests: list[agent_pb2.FileRequest] = []
    for message in batch.messages:
        kind = message.WhichOneof("message")
        if kind == "file_request":
            file_requests.append(message.file_request)
            continue
        if kind is None:
            unknowns.note("message", "a message of a kind that this version does not know")
            continue
        try:
            found += _read_message(message, kind, batch.epoch, kinds, unknowns)
        except InvalidFieldError as error:
            log.warning("message.unreadable", message=kind, detail=str(error))
    return found, file_requests


def _read_message(
    message: agent_pb2.MasterMessage, kind: str, epoch: int, kinds: ResourceKinds, unknowns: Unknowns
) -> Iterator[events.Event]:
    fields.read_count("epoch", epoch)
    match kind:
        case "launch":
            yield from _read_launch(message.launch, epoch, kinds)
        case "acknowledge":
            items = tuple(
                (
                    convert.read_key("acknowledge", item.framework_id, item.task_id),
                    fields.read_count("acknowledge.sequence", item.sequence),
                )
                for item in message.acknowledge.items
            )
            yield events.StatusesAcknowledged(epoch=epoch, items=items)
        case "kill":
            orders = tuple(_read_kill(order, unknowns) for order in message.kill.tasks)
            yield events.KillRequested(epoch=epoch, orders=orders)
        case "registered":
            yield _read_registered(message.registered, epoch)
        case "refused":
            yield _read_refused(message.refused, epoch, unknowns)
        case "ping":
            yield events.Pinged(epoch=epoch)
        case _:
            raise AssertionError(f"message: expected one of the schema, got {kind}")


def _read_registered(message: agent_pb2.Registered, epoch: int) -> events.Registered:
    return events.Registered(
        epoch=epoch,
        agent_id=AgentId(fields.read_id("registered.agent_id", message.agent_id)),
        heartbeat_interval_ms=fields.read_duration(
            "registered.heartbeat_interval_ms", message.heartbeat_interval_ms
        ),
        master=convert.read_peer("registered", message.version, message.capabilities),
        files_token=fields.read_name("registered.files_token", message.files_token),
    )


def _read_refused(
    message: agent_pb2.RegistrationRefused, epoch: int, unknowns: Unknowns
) -> events.RegistrationRefused:
    """One with a code that only a newer master knows is one to register again after."""
    code = enum_numbers.read_code(
        "refused.code",
        enum_numbers.REFUSAL_CODES,
        message.code,
        unknowns,
        otherwise=RefusalCode.TOO_SLOW,
    )
    return events.RegistrationRefused(
        epoch=epoch, code=code, detail=message.detail[:STATUS_MESSAGE_LENGTH_MAX]
    )


def _read_launch(
    launch: agent_pb2.Launch, epoch: int, kinds: ResourceKinds
) -> Iterator[events.LaunchRequested | events.LaunchUnreadable]:
    orders: list[events.LaunchOrder] = []
    unreadable: list[events.LaunchUnreadable] = []
    for task in launch.tasks:
        framework_id, task_id = convert.read_key("launch", task.framework_id, task.task.task_id)
        try:
            spec = convert.read_task("launch.task", task.task, kinds)
            orders.append(events.LaunchOrder(framework_id, spec))
        except InvalidFieldError as error:
            unreadable.append(
                events.LaunchUnreadable(
                    epoch=epoch, framework_id=framework_id, task_id=task_id, detail=str(error)
                )
            )
    if orders:
        yield events.LaunchRequested(epoch=epoch, orders=tuple(orders))
    yield from unreadable


def _read_kill(order: agent_pb2.KillTask, unknowns: Unknowns) -> events.KillOrder:
    return events.KillOrder(
        key=convert.read_key("kill", order.framework_id, order.task_id),
        grace_period_ms=fields.read_duration("kill.grace_period_ms", order.grace_period_ms),
        reason=convert.read_reason("kill.reason", order.reason, unknowns),
    )


def write_messages(action: SessionAction, kinds: ResourceKinds, version: str) -> list[agent_pb2.AgentMessage]:
    """The messages that carry an action."""
    match action:
        case actions.SendStatuses():
            statuses = action.statuses
            return [
                agent_pb2.AgentMessage(
                    statuses=agent_pb2.StatusReports(
                        statuses=[
                            convert.write_status(status)
                            for status in statuses[start : start + STATUSES_PER_MESSAGE_MAX]
                        ]
                    )
                )
                for start in range(0, len(statuses), STATUSES_PER_MESSAGE_MAX)
            ]
        case actions.SendRegistration():
            return [agent_pb2.AgentMessage(register=_write_registration(action, kinds, version))]
        case actions.SendHeartbeat():
            return [agent_pb2.AgentMessage(heartbeat=_write_heartbeat(action, kinds))]
        case actions.SendGoodbye():
            return [agent_pb2.AgentMessage(goodbye=agent_pb2.Goodbye(reason=action.reason))]


def _write_registration(
    action: actions.SendRegistration, kinds: ResourceKinds, version: str
) -> agent_pb2.Register:
    command_bytes = sum(sum(map(len, task.spec.command)) for task in action.tasks)
    is_shortened = command_bytes > REGISTER_COMMAND_BYTES_MAX
    return agent_pb2.Register(
        agent_id=action.agent_id,
        incarnation=action.incarnation,
        hostname=action.hostname,
        total=convert.write_resources(action.total, kinds),
        attributes=action.attributes,
        tasks=[_write_running(task, kinds, is_shortened=is_shortened) for task in action.tasks],
        unacknowledged=[convert.write_status(status) for status in action.unacknowledged],
        last_epoch=action.last_epoch,
        agent_time_ms=_wall_ms(),
        isolation=action.isolation,
        version=version,
        answers_ping=True,
        capabilities=convert.OUR_CAPABILITIES,
    )


def _write_running(task: RunningTask, kinds: ResourceKinds, *, is_shortened: bool) -> agent_pb2.RunningTask:
    message = convert.write_running_task(task, kinds)
    if is_shortened:
        del message.task.command[1:]
        message.task.command[0] = message.task.command[0][:256]
    return message


def _write_heartbeat(action: actions.SendHeartbeat, kinds: ResourceKinds) -> agent_pb2.AgentHeartbeat:
    return agent_pb2.AgentHeartbeat(
        agent_time_ms=_wall_ms(),
        used=convert.write_resources(action.used, kinds),
        tasks=[
            agent_pb2.TaskUsageReport(
                framework_id=framework_id, task_id=task_id, usage=convert.write_usage(usage)
            )
            for (framework_id, task_id), usage in action.tasks
        ],
    )


def _wall_ms() -> int:
    # The host's clock and not the agent's steady one: the master reports by it how far the host is off.
    return time.time_ns() // 1_000_000
