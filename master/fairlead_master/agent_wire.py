"""From agent messages to the core's events."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from fairlead_master.core import events
from fairlead_master.sessions import in_parts
from fairlead_proto import convert, fields
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.ids import AgentId
from fairlead_proto.peers import Unknowns
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import RunningTask, TaskStatus
from fairlead_proto.v1 import agent_pb2 as pb
from fairlead_proto.v1 import types_pb2

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
