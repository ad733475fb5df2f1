"""What a replay asks of the master as an operator: its agents, its policy, and samples of who has what."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import grpc

from fairlead_proto.convert import read_resources
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_proto.v1 import operator_pb2, types_pb2
from fairlead_proto.v1.operator_pb2_grpc import OperatorServiceStub
from fairlead_sdk.errors import MasterUnreachable, Refused
from fairlead_sim.records import ClusterSample, RoleSample

CALL_TIMEOUT_S: Final = 10.0
"""Of one call: a master answers in milliseconds, and one that needs this long is as good as gone."""

QUIET_TIMEOUT_S: Final = 15.0
"""For tasks to end after their frameworks left: the default grace period of 5 s, and time to report."""
QUIET_LOOK_S: Final = 0.05

CLOCK_NOISE_MS: Final = 50
"""Clocks that seem to differ by less are taken as one: the difference is measured over the network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentView:
    """An agent that takes work."""

    agent_id: str
    total: Vector
    clock_ahead_ms: int
    """Of this host's clock; 0 if the difference is noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What the master has counted since it started, and what is going on."""

    tasks_active: int
    decisions: int
    cpu_time_ms: int
    is_allocated: bool
    """Whether anything is offered or held."""


class ClusterWatch:
    """An operator's connection to one master; an async context manager."""

    def __init__(self, address: str) -> None:
        """Nothing is sent before the first call. ``address`` is HOST:PORT."""
        self.address = address
        # The proxy a host may have for the web is no way to a cluster.
        self._channel = grpc.aio.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)])
        self._master = OperatorServiceStub(self._channel)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._channel.close()

    async def agents(self, *, here_unix_ms: int) -> list[AgentView]:
        """The active agents, by id; ``here_unix_ms`` is this host's time now."""
        cluster = await self._cluster()
        ahead_ms = cluster.master_time_ms - here_unix_ms
        views = []
        token = ""
        while True:
            request = operator_pb2.ListRequest(page_token=token)
            page: operator_pb2.ListAgentsResponse = await self._call(self._master.ListAgents, request)
            for agent in page.agents:
                if agent.state == "ACTIVE":
                    skew_ms = agent.clock_skew_ms + ahead_ms
                    views.append(
                        AgentView(
                            agent_id=agent.agent_id,
                            total=_standard(agent.total, f"agent {agent.agent_id}: total"),
                            clock_ahead_ms=skew_ms if abs(skew_ms) >= CLOCK_NOISE_MS else 0,
                        )
                    )
            token = page.next_page_token
            if not token:
                return views

    async def policy(self) -> str:
        """The allocation policy in force."""
        info: operator_pb2.PolicyInfo = await self._call(
            self._master.GetPolicy, operator_pb2.GetPolicyRequest()
        )
        return info.policy

    async def set_policy(self, policy: str) -> None:
        """Change the allocation policy.

        Raises:
            Refused: the master does not know it; the text says which it knows.
        """
        await self._call(self._master.SetPolicy, operator_pb2.SetPolicyRequest(policy=policy))

    async def counters(self) -> Counters:
        """The master's counters now."""
        cluster = await self._cluster()
        return Counters(
            tasks_active=cluster.tasks_active,
            decisions=cluster.decisions,
            cpu_time_ms=cluster.cpu_time_ms,
            is_allocated=any(_standard(cluster.allocated, "allocated")),
        )

    async def sample(self, at_ms: int) -> ClusterSample:
        """Who has what now; ``at_ms`` is the run's time, kept with it."""
        cluster = await self._cluster()
        roles = await self.roles()
        return ClusterSample(
            at_ms=at_ms,
            total=_standard(cluster.total, "total"),
            allocated=_standard(cluster.allocated, "allocated"),
            used=_standard(cluster.used, "used"),
            roles=roles,
        )

    async def roles(self) -> dict[str, RoleSample]:
        """Every role the master knows, by name."""
        roles: dict[str, RoleSample] = {}
        token = ""
        while True:
            request = operator_pb2.ListRequest(page_token=token)
            page: operator_pb2.ListRolesResponse = await self._call(self._master.ListRoles, request)
            for role in page.roles:
                roles[role.role] = RoleSample(
                    dominant_share=role.dominant_share,
                    dominant_resource=role.dominant_resource,
                    allocated=_standard(role.allocated, f"role {role.role}: allocated"),
                    pending=role.pending,
                    running=role.running,
                )
            token = page.next_page_token
            if not token:
                return roles

    async def wait_until_quiet(self) -> bool:
        """Wait, bounded, until no task is left and nothing is offered or held; gives whether that came about."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + QUIET_TIMEOUT_S
        while loop.time() < deadline:
            counters = await self.counters()
            if not counters.tasks_active and not counters.is_allocated:
                return True
            await asyncio.sleep(QUIET_LOOK_S)
        return False

    async def _cluster(self) -> operator_pb2.Cluster:
        cluster: operator_pb2.Cluster = await self._call(
            self._master.GetCluster, operator_pb2.GetClusterRequest()
        )
        return cluster

    async def _call(self, method: Callable[..., Any], request: Any) -> Any:
        """The answer to one call.

        Raises:
            MasterUnreachable: nobody answers in time.
            Refused: the master said no.
        """
        try:
            return await method(request, timeout=CALL_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            code, details = error.code(), error.details() or ""
            if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                raise MasterUnreachable(f"no master answers at {self.address}: {details}") from None
            raise Refused(code.name, details) from None


_KINDS: Final = ResourceKinds()


def _standard(message: types_pb2.Resources, field: str) -> Vector:
    """The standard resources of an amount; what a cluster defines itself is no part of a trace."""
    plain = types_pb2.Resources()
    plain.CopyFrom(message)
    plain.ClearField("custom_milli")
    return read_resources(field, plain, _KINDS)
