"""Snapshots of small clusters: what a test is not about has a default."""

from collections.abc import Mapping, Sequence

from fairlead_lab.whatif.snapshot import (
    FinishedTask,
    FrameworkState,
    Host,
    RunningTask,
    Snapshot,
    WaitingClass,
)
from fairlead_master.allocation.api import AllocationSettings
from fairlead_master.allocation.weights import Weight
from fairlead_proto.ids import Role
from fairlead_proto.resources import ResourceKinds, Vector

GIB = 2**30
NINE: Vector = (9000, 18 * GIB, 0, 0)
"""The cluster of the DRF paper's example, and the demands of its users A and B."""
A: Vector = (1000, 4 * GIB, 0, 0)
B: Vector = (3000, GIB, 0, 0)


def a_framework(framework_id: str, role: str = "", name: str = "") -> FrameworkState:
    return FrameworkState(framework_id=framework_id, name=name or framework_id, role=role or framework_id)


def a_host(agent_id: str = "a1", total: Vector = NINE, **attributes: str) -> Host:
    return Host(agent_id=agent_id, hostname=f"host-of-{agent_id}", total=total, attributes=attributes)


def some_waiting(framework_id: str, unit: Vector, units: int) -> WaitingClass:
    return WaitingClass(framework_id=framework_id, class_id="c", unit=unit, units=units)


def some_running(
    framework_id: str, unit: Vector, *ran_ms: int, agent_id: str = "a1"
) -> tuple[RunningTask, ...]:
    """A task for each time that one has run."""
    return tuple(
        RunningTask(framework_id=framework_id, agent_id=agent_id, unit=unit, ran_ms=time_ms)
        for time_ms in ran_ms
    )


def some_finished(
    framework_id: str, unit: Vector, *durations_ms: int, name: str = "", role: str = ""
) -> list[FinishedTask]:
    return [
        FinishedTask(
            framework_id=framework_id,
            name=name or framework_id,
            role=role or framework_id,
            unit=unit,
            duration_ms=duration_ms,
        )
        for duration_ms in durations_ms
    ]


def a_snapshot(
    *,
    hosts: Sequence[Host] | None = None,
    frameworks: Sequence[FrameworkState] | None = None,
    waiting: Sequence[WaitingClass] = (),
    running: Sequence[RunningTask] = (),
    weights: Mapping[Role, Weight] | None = None,
    policy: str = "drf",
    tasks_left_out: int = 0,
    is_measured: bool = False,
) -> Snapshot:
    """By default the frameworks A and B, each of a role of its name, on the nine cores of the paper."""
    known = frameworks or [a_framework("A"), a_framework("B")]
    return Snapshot(
        kinds=ResourceKinds(),
        settings=AllocationSettings(policy=policy),
        hosts=[a_host()] if hosts is None else hosts,
        frameworks={framework.framework_id: framework for framework in known},
        weights=weights or {},
        waiting=waiting,
        running=running,
        tasks_left_out=tasks_left_out,
        is_measured=is_measured,
    )
