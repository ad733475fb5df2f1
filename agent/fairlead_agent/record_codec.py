"""The journal's records as JSON arrays, and back.

Arrays, because a task writes four records and their keys would be most of the bytes. Amounts are named, since the
kinds of a cluster may change between two lives of an agent: those it no longer knows are dropped.
"""

from typing import Any

from fairlead_agent.core.records import (
    EndedWithoutFiles,
    IdentityTaken,
    Record,
    StatusesAccepted,
    StatusMade,
    TaskLaunched,
    TaskRemembered,
)
from fairlead_proto.ids import AgentId, FrameworkId, TaskId
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import TaskSpec, TaskStatus, TaskUsage


class RecordUnreadable(ValueError):
    """An array that is no record; the message says what it is."""


def encode(record: Record, kinds: ResourceKinds) -> list[Any]:
    """The array of a record; its first item is the kind of record."""
    match record:
        case StatusMade():
            return ["status", *_encode_status(record.status)]
        case StatusesAccepted():
            return ["accepted", *record.key, record.sequence]
        case TaskLaunched():
            spec = record.spec
            return [
                "launched",
                record.framework_id,
                "",  # Versions before this one read a role here.
                record.launched_ms,
                spec.task_id,
                kinds.as_dict(spec.resources),
                spec.command,
                spec.name,
                spec.working_directory,
                spec.kill_grace_period_ms,
                spec.max_runtime_ms,
                dict(spec.labels),
                record.started_ms,
                # Only where it says something: a version that does not know it reads one item less.
                *([True] if spec.no_files else []),
            ]
        case TaskRemembered():
            return ["remembered", *_encode_status(record.status)]
        case EndedWithoutFiles():
            return ["no_files", *record.key]
        case IdentityTaken():
            return ["identity", record.agent_id, record.boot_id, record.incarnation, record.epoch]


def _encode_status(status: TaskStatus) -> list[Any]:
    usage = status.usage
    return [
        status.framework_id,
        status.task_id,
        status.agent_id,
        status.sequence,
        status.state.value,
        status.reason.value,
        status.message,
        status.timestamp_ms,
        status.exit_code,
        status.signal,
        usage
        and [
            usage.cpu_time_ms,
            usage.mem_bytes,
            usage.mem_peak_bytes,
            usage.mem_limit_bytes,
            usage.sandbox_bytes,
            usage.stdout_bytes,
            usage.stderr_bytes,
        ],
    ]


def decode(array: object, kinds: ResourceKinds) -> Record:
    """The record of an array.

    Raises:
        RecordUnreadable: no record looks like this; perhaps a newer version of the agent wrote it.
    """
    try:
        match array:
            case ["status", *items]:
                return StatusMade(status=_decode_status(items))
            case ["accepted", str(framework_id), str(task_id), int(sequence)]:
                return StatusesAccepted(key=(FrameworkId(framework_id), TaskId(task_id)), sequence=sequence)
            case ["launched", *items]:
                return _decode_launched(items, kinds)
            case ["remembered", *items]:
                return TaskRemembered(status=_decode_status(items))
            case ["no_files", str(framework_id), str(task_id)]:
                return EndedWithoutFiles(key=(FrameworkId(framework_id), TaskId(task_id)))
            case ["identity", str(agent_id), str(boot_id), int(incarnation), int(epoch)]:
                return IdentityTaken(
                    agent_id=AgentId(agent_id), boot_id=boot_id, incarnation=incarnation, epoch=epoch
                )
            case _:
                raise RecordUnreadable(f"expected a record, got {str(array)[:100]}")
    except (TypeError, ValueError) as error:
        raise RecordUnreadable(f"expected a record, got {str(array)[:100]}: {error}") from error


def _decode_launched(items: list[Any], kinds: ResourceKinds) -> TaskLaunched:
    (
        framework_id,
        _role,
        launched_ms,
        task_id,
        amounts,
        command,
        name,
        directory,
        grace_ms,
        runtime_ms,
        labels,
        *later,
    ) = items
    return TaskLaunched(
        framework_id=FrameworkId(framework_id),
        launched_ms=launched_ms,
        started_ms=int(later[0]) if later else 0,  # The first agents did not write it.
        spec=TaskSpec(
            task_id=TaskId(task_id),
            resources=tuple(amounts.get(name, 0) for name in kinds.names),
            command=tuple(command),
            name=name,
            working_directory=directory,
            kill_grace_period_ms=grace_ms,
            max_runtime_ms=runtime_ms,
            labels=labels,
            no_files=later[1:] == [True],
        ),
    )


def _decode_status(items: list[Any]) -> TaskStatus:
    (framework_id, task_id, agent_id, sequence, state, reason, message, timestamp_ms, code, signal, usage) = (
        items
    )
    return TaskStatus(
        framework_id=FrameworkId(framework_id),
        task_id=TaskId(task_id),
        agent_id=AgentId(agent_id),
        sequence=sequence,
        state=TaskState(state),
        reason=Reason(reason),
        message=message,
        timestamp_ms=timestamp_ms,
        exit_code=code,
        signal=signal,
        usage=_decode_usage(usage) if usage is not None else None,
    )


def _decode_usage(items: list[int]) -> TaskUsage:
    cpu_time_ms, mem_bytes, mem_peak_bytes, mem_limit_bytes, sandbox_bytes, *later = items
    stdout_bytes, stderr_bytes = later or (None, None)  # The first agents did not count output.
    return TaskUsage(
        cpu_time_ms=cpu_time_ms,
        mem_bytes=mem_bytes,
        mem_peak_bytes=mem_peak_bytes,
        mem_limit_bytes=mem_limit_bytes,
        sandbox_bytes=sandbox_bytes,
        stdout_bytes=stdout_bytes,
        stderr_bytes=stderr_bytes,
    )
