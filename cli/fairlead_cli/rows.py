"""Rows of listings: what `--json` prints, by the names that other people's scripts rely on.

A key is added, never renamed, never dropped. cpus and gpus are in cores and devices (float), memory and disk in bytes
(int), times in milliseconds since 1970 by the master's clock. What is absent is null.
"""

from fairlead_proto.tasks import TaskUsage, member_index
from fairlead_proto.v1 import operator_pb2, types_pb2
from fairlead_telemetry import payloads
from fairlead_telemetry.payloads import amounts, finite

Row = payloads.Row

share = payloads.share
"""A row of ``fairlead shares``: telemetry sends the same."""


def task(info: operator_pb2.TaskInfo) -> Row:
    """A row of ``fairlead tasks``."""
    is_told = info.HasField("resources")
    asked = info.resources
    return {
        "id": info.task_id,
        "index": member_index(info.task_id),
        **_same(info, "name", "framework_id", "framework", "role"),
        "agent_id": info.agent_id or None,
        "state": info.state,
        "cpus": asked.cpus_milli / 1000 if is_told else None,
        "mem_bytes": asked.mem_bytes if is_told else None,
        "disk_bytes": asked.disk_bytes if is_told else None,
        "gpus": asked.gpus_milli / 1000 if is_told else None,
        "submitted_ms": info.submitted_ms or None,
        "started_ms": info.started_ms or None,
        "finished_ms": info.finished_ms or None,
        "exit_code": info.exit_code if info.HasField("exit_code") else None,
        "signal": info.signal if info.HasField("signal") else None,
        **_same(info, "reason", "message"),
        "command": list(info.command) if is_told else None,
        "labels": {name: info.labels[name] for name in sorted(info.labels)},
        "usage": usage(info.usage) if info.HasField("usage") else None,
    }


def _same(info: object, *names: str) -> Row:
    """Keys that are called as the schema calls them, and hold what it holds."""
    return {name: getattr(info, name) for name in names}


def usage(used: types_pb2.TaskUsage | TaskUsage) -> Row:
    """What a task used, within a row of tasks."""
    return {
        **_same(used, "cpu_time_ms", "mem_bytes", "mem_peak_bytes"),
        "mem_limit_bytes": used.mem_limit_bytes or None,
        "sandbox_bytes": used.sandbox_bytes,
    }


def agent(info: operator_pb2.AgentInfo) -> Row:
    """A row of ``fairlead agents``."""
    return {
        "id": info.agent_id,
        **_same(info, "hostname", "state"),
        "attributes": {name: info.attributes[name] for name in sorted(info.attributes)},
        "total": amounts(info.total),
        "allocated": amounts(info.allocated),
        "offered": amounts(info.offered),
        "used": amounts(info.used),
        **_same(info, "tasks", "isolation", "clock_skew_ms"),
        "registered_ms": info.registered_ms or None,
        "version": info.version,
    }


def framework(info: operator_pb2.FrameworkInfo) -> Row:
    """A row of ``fairlead frameworks``."""
    return {
        "id": info.framework_id,
        **_same(info, "name", "role", "state", "pending", "running", "finished"),
        **_same(
            info, "offers_sent", "offers_accepted", "offers_declined", "offers_expired", "demand_version"
        ),
        "registered_ms": info.registered_ms or None,
        **_same(info, "principal", "version"),
    }


def market(answer: operator_pb2.ListRolesResponse) -> Row:
    """What rows of ``fairlead shares`` have in common: prices under ``pf`` and its kin, bottlenecks under ``bbf``."""
    prices = answer.prices
    return {
        "prices": {name: finite(prices[name]) for name in sorted(prices)} or None,
        "price_error": answer.price_error if prices else None,
        "bottlenecks": list(answer.bottlenecks) if answer.policy.partition(":")[0] == "bbf" else None,
    }


def weights(info: operator_pb2.RoleInfo) -> Row:
    """A row of ``fairlead weight get``."""
    exceptions = info.resource_weights
    return {
        "role": info.role,
        "parent": info.parent or None,
        "weight": finite(info.weight),
        "resource_weights": {name: finite(exceptions[name]) for name in sorted(exceptions)},
        "frameworks": info.frameworks,
    }


def role(info: operator_pb2.RoleInfo) -> Row:
    """A row of ``fairlead roles``."""
    return {**share(info), **weights(info)}


def offer(info: operator_pb2.OfferInfo) -> Row:
    """A row of ``fairlead offers``."""
    return {
        "id": info.offer_id,
        **_same(info, "framework_id", "framework", "agent_id", "class_id", "units"),
        "resources": amounts(info.resources),
        "expires_in_ms": info.expires_in_ms,
    }


def decision(info: operator_pb2.Decision) -> Row:
    """A row of ``fairlead shares --log``: one grant of the allocator."""
    return {
        **_same(info, "number", "time_ms", "framework_id", "role", "agent_id", "class_id", "units"),
        "key_before": finite(info.key_before),
        "key_after": finite(info.key_after),
        "policy": info.policy,
    }


def explanation(info: operator_pb2.Explanation) -> Row:
    """What ``fairlead explain --json`` prints."""
    name = operator_pb2.WaitReason.Name(info.reason)
    return {
        **_same(info, "id", "kind"),
        "reason": name.removeprefix("WAIT_REASON_"),
        "sentence": info.sentence,
        "evidence": {name: info.evidence[name] for name in sorted(info.evidence)},
        "next_steps": list(info.next_steps),
        **_same(info, "epoch", "version"),
    }
