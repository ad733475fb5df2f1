"""Between agent messages and the core's events and actions."""

from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import Final

import fairlead_master
from fairlead_master.batches import Batches
from fairlead_master.core import actions, events
from fairlead_master.sessions import in_parts
from fairlead_proto import convert, enum_numbers, fields
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.ids import AgentId
from fairlead_proto.peers import Unknowns
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import RunningTask, TaskStatus
from fairlead_proto.v1 import agent_pb2 as pb
from fairlead_proto.v1 import types_pb2

_Order = actions.LaunchTasks | actions.KillTask | actions.PingAgent | actions.EndAgentSession

_OUR_OWN: Final = frozenset({TaskState.STAGING, TaskState.UNREACHABLE, TaskState.GONE})
"""What only a master says of a task: it was sent to its agent, which is away, or will not return."""


def read_register(
    session: int, message: pb.AgentMessage, kinds: ResourceKinds, unknowns: Unknowns
) -> events.AgentConnected:
    """The first message of a session.

    Raises:
        InvalidFieldError: it is not a registration, or a field of it is wrong.
    """
    which = message.WhichOneof("message")
    if which != "register":
        raise InvalidFieldError(f"first message: expected register, got {which or 'nothing'}")
    register = message.register
    return events.AgentConnected(
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
        unacknowledged=tuple(_read_statuses("register.unacknowledged", register.unacknowledged, unknowns)),
        last_epoch=fields.read_count("register.last_epoch", register.last_epoch),
        agent_time_ms=fields.read_time("register.agent_time_ms", register.agent_time_ms),
        isolation=fields.read_name("register.isolation", register.isolation),
        version=fields.read_name("register.version", register.version),
        answers_ping=register.answers_ping,
    )


def read_statuses(
    session: int, message: pb.StatusReports, unknowns: Unknowns
) -> list[events.StatusesReported]:
    """Reports of an agent, so many an event."""
    statuses = tuple(_read_statuses("statuses", message.statuses, unknowns))
    return [events.StatusesReported(session=session, statuses=part) for part in in_parts(statuses)]


def read_heartbeat(session: int, message: pb.AgentHeartbeat, kinds: ResourceKinds) -> list[events.AgentBeat]:
    """A sign of life with what is used, so many tasks an event."""
    used = convert.read_resources("heartbeat.used", message.used, kinds)
    reports = tuple(
        [
            (
                convert.read_key("heartbeat.tasks", report.framework_id, report.task_id),
                convert.read_usage(report.usage),
            )
            for report in message.tasks
        ]
    )
    *parts, last = in_parts(reports)
    return [
        *(events.AgentBeat(session=session, used=used, tasks=part, is_last=False) for part in parts),
        events.AgentBeat(session=session, used=used, tasks=last),
    ]


def _read_running(
    field: str, message: pb.RunningTask, kinds: ResourceKinds, unknowns: Unknowns
) -> RunningTask:
    task = convert.read_running_task(field, message, kinds, unknowns)
    _check_state(field, task.state)
    return task


def _read_statuses(
    field: str, messages: Sequence[types_pb2.TaskStatus], unknowns: Unknowns
) -> list[TaskStatus]:
    """Those in a state that is known here: of any other its agent reminds a later version of this master."""
    return unknowns.known(field, messages, partial(_read_status, unknowns=unknowns))


def _read_status(field: str, message: types_pb2.TaskStatus, unknowns: Unknowns) -> TaskStatus:
    status = convert.read_status(field, message, unknowns)
    _check_state(field, status.state)
    if status.sequence == 0:
        raise fields.refusal(f"{field}.sequence", "1 or more from an agent", 0)
    return status


def _check_state(field: str, state: TaskState) -> None:
    if state in _OUR_OWN:
        raise fields.refusal(f"{field}.state", "a state that an agent may report", state.value)


def write_actions(
    orders: Sequence[actions.ToAgent],
    kinds: ResourceKinds,
    *,
    epoch: int,
    heartbeat_interval_ms: int,
    files_token: str = "",
) -> list[pb.MasterMessages]:
    """The batches for one agent that actions make, in their order; acknowledgements that follow one another are one."""
    batches = Batches(lambda: pb.MasterMessages(epoch=epoch), attrgetter("messages"))
    for action in orders:
        match action:
            case actions.ConfirmAgent():
                registered = batches.message().registered
                _fill_registered(registered, action.agent_id, epoch, heartbeat_interval_ms, files_token)
            case actions.AcknowledgeStatuses():
                _fill_acknowledge(batches.message(len(action.items)).acknowledge, action)
            case _:
                _fill_message(batches.message(), action, kinds)
    return batches.made


# Parts are written where they belong: giving a message to another one's constructor copies it.


def _fill_registered(
    registered: pb.Registered, agent_id: str, epoch: int, heartbeat_interval_ms: int, files_token: str
) -> None:
    registered.agent_id = agent_id
    registered.epoch = epoch
    registered.heartbeat_interval_ms = heartbeat_interval_ms
    registered.version = fairlead_master.__version__
    registered.capabilities.extend(convert.OUR_CAPABILITIES)
    registered.files_token = files_token


def _fill_acknowledge(acknowledge: pb.AcknowledgeStatuses, action: actions.AcknowledgeStatuses) -> None:
    items = acknowledge.items
    for (framework_id, task_id), sequence in action.items:
        item = items.add()
        item.framework_id = framework_id
        item.task_id = task_id
        item.sequence = sequence


def _fill_message(message: pb.MasterMessage, action: _Order, kinds: ResourceKinds) -> None:
    match action:
        case actions.LaunchTasks():
            launches = message.launch.tasks
            for task in action.tasks:
                launch = launches.add()
                launch.framework_id = action.framework_id
                convert.fill_task(launch.task, task, kinds)
        case actions.KillTask():
            kill = message.kill.tasks.add()
            kill.framework_id = action.framework_id
            kill.task_id = action.task_id
            kill.grace_period_ms = action.grace_period_ms
            kill.reason = convert.write_reason(action.reason)
        case actions.PingAgent():
            message.ping.SetInParent()
        case actions.EndAgentSession():
            message.refused.code = enum_numbers.REFUSAL_CODES.of[action.code]
            message.refused.detail = action.detail
