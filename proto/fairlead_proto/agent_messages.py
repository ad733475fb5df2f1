"""The border between the messages of an agent's session and their values: what a master orders, what an agent reports.

As in ``convert``, what is read is checked, and what is written is trusted.
"""

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Final

from fairlead_proto import array_messages, columns, convert, enum_numbers, fields
from fairlead_proto.batches import Batches, joined
from fairlead_proto.codes import RefusalCode
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.ids import AgentId, FrameworkId, TaskId, TaskKey
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
from fairlead_proto.peers import ARRAYS, COLUMNS, NONE, Capabilities, Unknowns, read_capabilities
from fairlead_proto.reports import AgentConnected
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import RunningTask, TaskSpec, TaskStatus, TaskUsage
from fairlead_proto.v1 import agent_pb2 as pb
from fairlead_proto.v1 import types_pb2

# --- orders of a master ------------------------------------------------------------------------------------------


def write_orders(
    orders: Sequence[ToAgent], kinds: ResourceKinds, *, epoch: int, peer: Capabilities = NONE
) -> list[pb.MasterMessages]:
    """The batches of orders for one agent, in their order; acknowledgements that follow one another are one message."""
    batches = Batches(lambda: pb.MasterMessages(epoch=epoch), attrgetter("messages"))
    for order in joined(orders, AcknowledgeStatuses, "items"):
        if isinstance(order, AcknowledgeStatuses):
            _fill_acknowledge(batches.message().acknowledge, order, in_columns=COLUMNS in peer)
        else:
            _fill_order(batches.message(), order, kinds, epoch, peer)
    return batches.made


# Parts are written where they belong: giving a message to another one's constructor copies it.


def _fill_acknowledge(
    message: pb.AcknowledgeStatuses, order: AcknowledgeStatuses, *, in_columns: bool
) -> None:
    if in_columns:
        groups: dict[FrameworkId, list[tuple[TaskId, int]]] = {}
        for (framework_id, task_id), sequence in order.items:
            groups.setdefault(framework_id, []).append((task_id, sequence))
        for framework_id, group in groups.items():
            part = message.columns.add()
            part.framework_id = framework_id
            columns.fill_acknowledgements(part, group)
        return
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
    peer: Capabilities,
) -> None:
    match order:
        case LaunchTasks():
            _fill_launch(message.launch, order, kinds, in_arrays=ARRAYS in peer)
        case KillTask():
            kill = message.kill.tasks.add()
            kill.framework_id = order.framework_id
            kill.task_id = order.task_id
            kill.grace_period_ms = order.grace_period_ms
            kill.reason = enum_numbers.REASONS.of[order.reason]
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


def _fill_launch(launch: pb.Launch, order: LaunchTasks, kinds: ResourceKinds, *, in_arrays: bool) -> None:
    single, arrays = array_messages.arrays_in(order.tasks) if in_arrays else (order.tasks, ())
    tasks = launch.tasks
    for spec in single:
        task = tasks.add()
        task.framework_id = order.framework_id
        convert.fill_task(task.task, spec, kinds)
    for array in arrays:
        part = launch.arrays.add()
        part.framework_id = order.framework_id
        array_messages.fill_array(part.array, array, kinds)


def read_orders(message: pb.MasterMessage, kinds: ResourceKinds, unknowns: Unknowns) -> list[Order]:
    """The orders in a message that is none about files and of a kind known here.

    Raises:
        InvalidFieldError: a field is wrong; nothing of the message is carried out.
    """
    match message.WhichOneof("message"):
        case "launch":
            return _read_launch(message.launch, kinds)
        case "acknowledge":
            return [_read_acknowledge(message.acknowledge)]
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


def _read_acknowledge(message: pb.AcknowledgeStatuses) -> AcknowledgeStatuses:
    items = [
        (
            convert.read_key("acknowledge", item.framework_id, item.task_id),
            fields.read_count("acknowledge.sequence", item.sequence),
        )
        for item in message.items
    ]
    for part in message.columns:
        framework_id = FrameworkId(fields.read_id("acknowledge.columns.framework_id", part.framework_id))
        found = columns.read_acknowledgements("acknowledge.columns", part)
        items += [((framework_id, task_id), sequence) for task_id, sequence in found]
    return AcknowledgeStatuses(items=tuple(items))


def _read_launch(launch: pb.Launch, kinds: ResourceKinds) -> list[Order]:
    tasks: list[tuple[FrameworkId, TaskSpec]] = []
    unreadable: list[Order] = []
    for message in launch.tasks:
        framework_id, task_id = convert.read_key("launch", message.framework_id, message.task.task_id)
        try:
            tasks.append((framework_id, convert.read_task("launch.task", message.task, kinds)))
        except InvalidFieldError as error:
            unreadable.append(UnreadableLaunch(framework_id=framework_id, task_id=task_id, detail=str(error)))
    for part in launch.arrays:
        framework_id = FrameworkId(fields.read_id("launch.arrays.framework_id", part.framework_id))
        try:
            specs = array_messages.read_array("launch.arrays.array", part.array, kinds)
            tasks += [(framework_id, spec) for spec in specs]
        except InvalidFieldError as error:
            for text in array_messages.task_ids(part.array):
                task_id = TaskId(fields.read_id("launch.arrays.array.template.task_id", text))
                unreadable.append(
                    UnreadableLaunch(framework_id=framework_id, task_id=task_id, detail=str(error))
                )
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
        capabilities=read_capabilities(message.capabilities),
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


# --- reports of an agent -----------------------------------------------------------------------------------------

REGISTER_COMMAND_BYTES_MAX: Final = 4 * 1024 * 1024
"""Commands of all tasks in one registration. Beyond it only first words are sent: they serve listings, and a
registration that exceeds the size of a message could never be delivered."""

STATUSES_PER_MESSAGE_MAX: Final = 1_000
"""Some 200 KiB, and never more than 5 MiB."""

_OUR_OWN: Final = frozenset({TaskState.STAGING, TaskState.UNREACHABLE, TaskState.GONE})
"""What only a master says of a task: it was sent to its agent, which is away, or will not return."""


def write_register(report: AgentConnected, kinds: ResourceKinds) -> pb.AgentMessage:
    """The first message of a session."""
    message = pb.AgentMessage()
    register = message.register
    register.agent_id = report.agent_id or ""
    register.incarnation = report.incarnation
    register.hostname = report.hostname
    convert.fill_resources(register.total, report.total, kinds)
    register.attributes.update(report.attributes)
    for task in report.tasks:
        convert.fill_running_task(register.tasks.add(), task, kinds)
    command_bytes = sum(sum(map(len, task.spec.command)) for task in report.tasks)
    if command_bytes > REGISTER_COMMAND_BYTES_MAX:
        for running in register.tasks:
            running.task.command[:] = [running.task.command[0][:256]]
    for status in report.unacknowledged:
        convert.fill_status(register.unacknowledged.add(), status)
    register.last_epoch = report.last_epoch
    register.agent_time_ms = report.agent_time_ms
    register.isolation = report.isolation
    register.answers_ping = True
    convert.introduce(register)
    return message


def read_register(
    session: int, message: pb.AgentMessage, kinds: ResourceKinds, unknowns: Unknowns
) -> AgentConnected:
    """The first message of a session.

    Raises:
        InvalidFieldError: it is not a registration, or a field of it is wrong.
    """
    which = message.WhichOneof("message")
    if which != "register":
        raise InvalidFieldError(f"first message: expected register, got {which or 'nothing'}")
    register = message.register
    return AgentConnected(
        session=session,
        agent_id=AgentId(fields.read_id("register.agent_id", register.agent_id))
        if register.agent_id
        else None,
        incarnation=fields.read_count("register.incarnation", register.incarnation),
        hostname=fields.read_name("register.hostname", register.hostname),
        total=convert.read_resources("register.total", register.total, kinds),
        attributes=fields.read_attributes("register.attributes", register.attributes),
        tasks=tuple(
            _read_running(f"register.tasks[{index}]", task, kinds, unknowns)
            for index, task in enumerate(register.tasks)
        ),
        unacknowledged=tuple(
            unknowns.known(
                "register.unacknowledged", register.unacknowledged, partial(_read_status, unknowns=unknowns)
            )
        ),
        last_epoch=fields.read_count("register.last_epoch", register.last_epoch),
        agent_time_ms=fields.read_time("register.agent_time_ms", register.agent_time_ms),
        isolation=fields.read_name("register.isolation", register.isolation),
        version=fields.read_name("register.version", register.version),
        answers_ping=register.answers_ping,
    )


def write_statuses(statuses: Sequence[TaskStatus], peer: Capabilities = NONE) -> list[pb.AgentMessage]:
    """The messages of reports, those about one task in their order."""
    messages: list[pb.AgentMessage] = []
    for start in range(0, len(statuses), STATUSES_PER_MESSAGE_MAX):
        message = pb.AgentMessage()
        part = statuses[start : start + STATUSES_PER_MESSAGE_MAX]
        columns.fill_statuses(message.statuses, part, in_columns=COLUMNS in peer)
        messages.append(message)
    return messages


def read_statuses(message: pb.StatusReports, unknowns: Unknowns) -> tuple[TaskStatus, ...]:
    """Reports of an agent, those about one task in their order.

    Those in a state that is not known here are left out: of them their agent reminds a later version of this master.
    """
    found = columns.read_statuses("statuses", message, unknowns)
    for status in found:
        if status.state in _OUR_OWN or not status.sequence:
            _check_report(f"statuses of {status.task_id}", status)
    return tuple(found)


def write_heartbeat(
    time_ms: int, used: Vector, tasks: Sequence[tuple[TaskKey, TaskUsage]], kinds: ResourceKinds
) -> pb.AgentMessage:
    """A sign of life with what all tasks together use, and each whose figures changed."""
    message = pb.AgentMessage()
    heartbeat = message.heartbeat
    heartbeat.agent_time_ms = time_ms
    convert.fill_resources(heartbeat.used, used, kinds)
    for (framework_id, task_id), usage in tasks:
        report = heartbeat.tasks.add()
        report.framework_id = framework_id
        report.task_id = task_id
        convert.fill_usage(report.usage, usage)
    return message


def read_heartbeat(
    message: pb.AgentHeartbeat, kinds: ResourceKinds
) -> tuple[Vector, tuple[tuple[TaskKey, TaskUsage], ...]]:
    """What all tasks together use, and those whose figures changed."""
    used = convert.read_resources("heartbeat.used", message.used, kinds)
    reports = [
        (
            convert.read_key("heartbeat.tasks", report.framework_id, report.task_id),
            convert.read_usage(report.usage),
        )
        for report in message.tasks
    ]
    return used, tuple(reports)


def _read_running(
    field: str, message: pb.RunningTask, kinds: ResourceKinds, unknowns: Unknowns
) -> RunningTask:
    task = convert.read_running_task(field, message, kinds, unknowns)
    _check_state(field, task.state)
    return task


def _read_status(field: str, message: types_pb2.TaskStatus, unknowns: Unknowns) -> TaskStatus:
    status = convert.read_status(field, message, unknowns)
    _check_report(field, status)
    return status


def _check_report(field: str, status: TaskStatus) -> None:
    _check_state(field, status.state)
    if status.sequence == 0:
        raise fields.refusal(f"{field}.sequence", "1 or more from an agent", 0)


def _check_state(field: str, state: TaskState) -> None:
    if state in _OUR_OWN:
        raise fields.refusal(f"{field}.state", "a state that an agent may report", state.value)
