"""Rows of `fairlead run --json`; a file of its own, since listings do without the SDK."""

from fairlead_cli.rows import Row, usage
from fairlead_sdk.framework import Framework
from fairlead_sdk.task import TaskResult


def result_row(ended: TaskResult, framework: Framework) -> Row:
    """A row of ``fairlead run --json``: the keys of ``task``, from what the framework itself knows."""
    demand = ended.task.demand
    return {
        "id": ended.task_id,
        "name": ended.task.name,
        "framework_id": framework.framework_id,
        "framework": framework.name,
        "role": framework.role,
        "agent_id": ended.agent_id or None,
        "state": ended.state.value,
        "cpus": demand.cpus_milli / 1000,
        "mem_bytes": demand.mem_bytes,
        "disk_bytes": demand.disk_bytes,
        "gpus": demand.gpus_milli / 1000,
        "submitted_ms": ended.submitted_ms or None,
        "started_ms": ended.started_ms or None,
        "finished_ms": ended.finished_ms or None,
        "exit_code": ended.exit_code,
        "signal": ended.signal,
        "reason": ended.reason.value,
        "message": ended.message,
        "command": list(ended.task.command),
        "labels": dict(sorted(ended.task.labels.items())),
        "usage": None if ended.usage is None else usage(ended.usage),
    }
