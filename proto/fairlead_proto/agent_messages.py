"""The border between the messages of an agent's session and its values: what a master orders, written and read.

As in ``convert``, what is read is checked, and what is written is trusted.
"""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

from fairlead_proto import convert, enum_numbers, fields
from fairlead_proto.batches import Batches
from fairlead_proto.codes import RefusalCode
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.ids import AgentId, FrameworkId
from fairlead_proto.limits import STATUS_MESSAGE_LENGTH_MAX
from fairlead_proto.orders import (
    AcknowledgeStatuses,
    ConfirmAgent,
    EndAgentSession,
    KillTask,
    LaunchTasks,
    Order,
    PingAgent,
    ToAgent,
    UnreadableLaunch,
)
from fairlead_proto.peers import Unknowns
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.tasks import TaskSpec
from fairlead_proto.v1 import agent_pb2 as pb

# --- orders of a master ------------------------------------------------------------------------------------------


def write_orders(orders: Sequence[ToAgent], kinds: ResourceKinds, *, epoch: int) -> list[pb.MasterMessages]:
    """The batches of orders for one agent, in their order; acknowledgements that follow one another are one message."""
    batches = Batches(lambda: pb.MasterMessages(epoch=epoch), attrgetter("messages"))
    for order in orders:
        if isinstance(order, AcknowledgeStatuses):
            _fill_acknowledge(batches.message(len(order.items)).acknowledge, order)
        else:
            _fill_order(batches.message(), order, kinds, epoch)
    return batches.made


# Parts are written where they belong: giving a message to another one's constructor copies it.


def _fill_acknowledge(message: pb.AcknowledgeStatuses, order: AcknowledgeStatuses) -> None:
    items = message.items
    for (framework_id, task_id), sequence in order.items:
        item = items.add()
        item.framework_id = framework_id
        item.task_id = task_id
        item.sequence = sequence


def _fill_order(
    message: pb.MasterMessage,
    order: ConfirmAgent | LaunchTasks | KillTask | PingAgent | EndAgentSession,
    kinds: ResourceKinds,
    epoch: int,
) -> None:
    match order:
        case LaunchTasks():
            launches = message.launch.tasks
            for task in order.tasks:
                launch = launches.add()
                launch.framework_id = order.framework_id
                convert.fill_task(launch.task, task, kinds)
        case KillTask():
            kill = message.kill.tasks.add()
            kill.framework_id = order.framework_id
            kill.task_id = order.task_id
            kill.grace_period_ms = order.grace_period_ms
            kill.reason = convert.write_reason(order.reason)
        case PingAgent():
            message.ping.SetInParent()
        case ConfirmAgent():
            registered = message.registered
            registered.agent_id = order.agent_id
            registered.epoch = epoch
            registered.heartbeat_interval_ms = order.heartbeat_interval_ms
            registered.files_token = order.files_token
            convert.introduce(registered)
        case EndAgentSession():
            message.refused.code = enum_numbers.REFUSAL_CODES.of[order.code]
            message.refused.detail = order.detail


def read_orders(message: pb.MasterMessage, kinds: ResourceKinds, unknowns: Unknowns) -> list[Order]:
    """The orders in a message that is none about files and of a kind known here.

    Raises:
        InvalidFieldError: a field is wrong; nothing of the message is carried out.
    """
    match message.WhichOneof("message"):
        case "launch":
            return _read_launch(message.launch, kinds)
        case "acknowledge":
            items = tuple(
                (
                    convert.read_key("acknowledge", item.framework_id, item.task_id),
                    fields.read_count("acknowledge.sequence", item.sequence),
                )
                for item in message.acknowledge.items
            )
            return [AcknowledgeStatuses(items=items)]
        case "kill":
            return [_read_kill(order, unknowns) for order in message.kill.tasks]
        case "registered":
            return [_read_registered(message.registered)]
        case "refused":
            return [_read_refused(message.refused, unknowns)]
        case "ping":
            return [PingAgent()]
        case kind:
            raise AssertionError(f"message: expected an order, got {kind}")


def _read_launch(launch: pb.Launch, kinds: ResourceKinds) -> list[Order]:
    tasks: list[tuple[FrameworkId, TaskSpec]] = []
    unreadable: list[Order] = []
    for message in launch.tasks:
        framework_id, task_id = convert.read_key("launch", message.framework_id, message.task.task_id)
        try:
            tasks.append((framework_id, convert.read_task("launch.task", message.task, kinds)))
        except InvalidFieldError as error:
            unreadable.append(UnreadableLaunch(framework_id=framework_id, task_id=task_id, detail=str(error)))
    return [
        *(
            LaunchTasks(framework_id=framework_id, tasks=tuple([task for _, task in group]))
            for framework_id, group in groupby(tasks, lambda pair: pair[0])
        ),
        *unreadable,
    ]


def _read_kill(order: pb.KillTask, unknowns: Unknowns) -> KillTask:
    framework_id, task_id = convert.read_key("kill", order.framework_id, order.task_id)
    return KillTask(
        framework_id=framework_id,
        task_id=task_id,
        grace_period_ms=fields.read_duration("kill.grace_period_ms", order.grace_period_ms),
        reason=convert.read_reason("kill.reason", order.reason, unknowns),
    )


def _read_registered(message: pb.Registered) -> ConfirmAgent:
    return ConfirmAgent(
        agent_id=AgentId(fields.read_id("registered.agent_id", message.agent_id)),
        heartbeat_interval_ms=fields.read_duration(
            "registered.heartbeat_interval_ms", message.heartbeat_interval_ms
        ),
        version=fields.read_name("registered.version", message.version),
        files_token=fields.read_name("registered.files_token", message.files_token),
    )


def _read_refused(message: pb.RegistrationRefused, unknowns: Unknowns) -> EndAgentSession:
    """One with a code that only a newer master knows is one to register again after."""
    code = enum_numbers.read_code(
        "refused.code",
        enum_numbers.REFUSAL_CODES,
        message.code,
        unknowns,
        otherwise=RefusalCode.TOO_SLOW,
    )
    return EndAgentSession(code=code, detail=message.detail[:STATUS_MESSAGE_LENGTH_MAX])
