"""Values as other people's scripts read them in JSON: one definition for `--json` and for telemetry.

cpus and gpus are in cores and devices (float), memory and disk in bytes (int), times in milliseconds since 1970. What is
absent is null. A key is added, never renamed, never dropped.
"""

import math
from typing import Any

from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_proto.v1 import operator_pb2, types_pb2

Row = dict[str, Any]


def amounts(resources: types_pb2.Resources) -> dict[str, float | int]:
    """Resource name to amount; the four standard ones are always there."""
    return {
        "cpus": resources.cpus_milli / 1000,
        "mem": resources.mem_bytes,
        "disk": resources.disk_bytes,
        "gpus": resources.gpus_milli / 1000,
        **{name: resources.custom_milli[name] / 1000 for name in sorted(resources.custom_milli)},
    }


def amounts_of(kinds: ResourceKinds, vector: Vector) -> dict[str, float | int]:
    """The same of a vector."""
    return {
        name: amount if name in ("mem", "disk") else amount / 1000
        for name, amount in zip(kinds.names, vector, strict=True)
    }


def finite(number: float) -> float | None:
    """The number, or None where JSON has no word for it."""
    return number if math.isfinite(number) else None


def share(info: operator_pb2.RoleInfo) -> Row:
    """What the policy sees of one role: a row of ``fairlead shares``."""
    return {
        "role": info.role,
        "parent": info.parent or None,
        "weight": finite(info.weight),
        "dominant_share": finite(info.dominant_share),
        "dominant_resource": info.dominant_resource or None,
        "key": finite(info.key),
        "fair_share": finite(info.fair_share),
        "pending": info.pending,
        "running": info.running,
        "rank": info.rank or None,
        "allocated": amounts(info.allocated),
        "counted": amounts(info.counted),
        "used": amounts(info.used) if info.HasField("used") else None,
    }
