"""The state of a live cluster, taken from the listings of its master."""

from collections.abc import Iterable
from itertools import chain
from typing import Final

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
from fairlead_proto.convert import read_constraints, read_demand, read_resources
from fairlead_proto.ids import Role
from fairlead_proto.resources import STANDARD_NAMES, ResourceKinds
from fairlead_proto.task_state import TaskState
from fairlead_proto.v1 import operator_pb2
from fairlead_sdk.operator_client import OperatorClient

_HOLDING: Final = tuple(
    state.value for state in (TaskState.STAGING, TaskState.STARTING, TaskState.RUNNING, TaskState.KILLING)
)
_AWAY: Final = TaskState.UNREACHABLE.value
_FINISHED: Final = TaskState.FINISHED.value
_TAKING: Final = ("ACTIVE", "OVERCOMMITTED")
_THERE: Final = (*_TAKING, "DISCONNECTED")


async def read_snapshot(client: OperatorClient) -> Snapshot:
    """The cluster now, read page by page while it works on.

    Raises:
        MasterUnreachable: no master answers.
        Refused: the master does not let us look.
    """
    policy = await client.policy()
    now_ms = (await client.cluster()).master_time_ms
    agents = [agent async for agent in client.agents() if agent.state in _THERE]
    tasks = [task async for task in client.tasks(states=[*_HOLDING, _AWAY, _FINISHED])]
    classes = [row async for row in client.classes() if row.pending + row.offered > 0]
    frameworks = {
        framework.framework_id: FrameworkState(
            framework_id=framework.framework_id, name=framework.name, role=framework.role
        )
        async for framework in client.frameworks()
    }
    roles = [role async for role in client.roles()]
    kinds = _kinds(agents, tasks, classes, roles)
    there = {agent.agent_id for agent in agents}
    active = [task for task in tasks if task.state != _FINISHED and task.framework_id in frameworks]
    held = [task for task in active if task.state in _HOLDING and task.agent_id in there]
    return Snapshot(
        kinds=kinds,
        settings=AllocationSettings(
            policy=policy.policy,
            placement=policy.placement,
            when_head_does_not_fit=policy.when_head_does_not_fit,
        ),
        hosts=[_host(agent, kinds) for agent in agents],
        frameworks=frameworks,
        weights={Role(role.role): _weight(role, kinds) for role in roles},
        waiting=[_waiting(row, kinds) for row in classes if row.framework_id in frameworks],
        running=[_running(task, kinds, now_ms) for task in held],
        finished=[_finished(task, kinds) for task in tasks if task.state == _FINISHED and task.started_ms],
        tasks_left_out=len(active) - len(held),
        is_measured=policy.demand == "measured",
    )


def _kinds(
    agents: Iterable[operator_pb2.AgentInfo],
    tasks: Iterable[operator_pb2.TaskInfo],
    classes: Iterable[operator_pb2.ClassInfo],
    roles: Iterable[operator_pb2.RoleInfo],
) -> ResourceKinds:
    """The resources that are spoken of: a master does not list those it was told of."""
    amounts = chain(
        (agent.total for agent in agents),
        (task.resources for task in tasks),
        (row.unit for row in classes),
    )
    names = {name for amount in amounts for name in amount.custom_milli}
    names.update(name for role in roles for name in role.resource_weights)
    return ResourceKinds(tuple(sorted(names - set(STANDARD_NAMES))))


def _host(agent: operator_pb2.AgentInfo, kinds: ResourceKinds) -> Host:
    return Host(
        agent_id=agent.agent_id,
        hostname=agent.hostname,
        total=read_resources(f"agent {agent.agent_id}: total", agent.total, kinds),
        attributes=dict(agent.attributes),
        takes_work=agent.state in _TAKING,
    )


def _weight(role: operator_pb2.RoleInfo, kinds: ResourceKinds) -> Weight:
    places = {kinds.names.index(name): weight for name, weight in role.resource_weights.items()}
    return Weight(role.weight, places or None)


def _waiting(row: operator_pb2.ClassInfo, kinds: ResourceKinds) -> WaitingClass:
    field = f"class {row.framework_id}/{row.class_id}"
    return WaitingClass(
        framework_id=row.framework_id,
        class_id=row.class_id,
        unit=read_demand(f"{field}: unit", row.unit, kinds),
        units=row.pending + row.offered,
        constraints=read_constraints(f"{field}: constraints", row.constraints),
    )


def _running(task: operator_pb2.TaskInfo, kinds: ResourceKinds, now_ms: int) -> RunningTask:
    return RunningTask(
        framework_id=task.framework_id,
        agent_id=task.agent_id,
        unit=read_resources(f"task {task.task_id}: resources", task.resources, kinds),
        ran_ms=max(0, now_ms - task.started_ms) if task.started_ms else 0,
    )


def _finished(task: operator_pb2.TaskInfo, kinds: ResourceKinds) -> FinishedTask:
    return FinishedTask(
        framework_id=task.framework_id,
        name=task.framework,
        role=task.role,
        unit=read_resources(f"task {task.task_id}: resources", task.resources, kinds),
        duration_ms=max(0, task.finished_ms - task.started_ms),
    )
