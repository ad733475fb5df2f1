"""Between the messages of an agent's session and the core's events and actions.

What tasks, statuses and amounts look like is ``fairlead_proto.convert``'s business; here is only the envelope. An item
that cannot be read is answered or logged, and the rest of its batch counts.
"""

import time
from typing import Final

from structlog.typing import FilteringBoundLogger

from fairlead_agent.core import actions, events
from fairlead_proto import convert, fields
from fairlead_proto.agent_messages import read_orders
from fairlead_proto.fields import InvalidFieldError
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
            epoch = fields.read_count("epoch", batch.epoch)
            found += [events.Ordered(epoch, order) for order in read_orders(message, kinds, unknowns)]
        except InvalidFieldError as error:
            log.warning("message.unreadable", message=kind, detail=str(error))
    return found, file_requests


def write_messages(action: SessionAction, kinds: ResourceKinds) -> list[agent_pb2.AgentMessage]:
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
            return [agent_pb2.AgentMessage(register=_write_registration(action, kinds))]
        case actions.SendHeartbeat():
            return [agent_pb2.AgentMessage(heartbeat=_write_heartbeat(action, kinds))]
        case actions.SendGoodbye():
            return [agent_pb2.AgentMessage(goodbye=agent_pb2.Goodbye(reason=action.reason))]


def _write_registration(action: actions.SendRegistration, kinds: ResourceKinds) -> agent_pb2.Register:
    command_bytes = sum(sum(map(len, task.spec.command)) for task in action.tasks)
    is_shortened = command_bytes > REGISTER_COMMAND_BYTES_MAX
    message = agent_pb2.Register(
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
        answers_ping=True,
    )
    convert.introduce(message)
    return message


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
