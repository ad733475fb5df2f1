"""What a replay asks of the master as an operator: its agents, its policy, and samples of who has what."""

import asyncio
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from fairlead_lab.metrics.records import ClusterSample, RoleSample
from fairlead_proto.convert import read_resources
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_proto.v1 import operator_pb2, types_pb2
from fairlead_sdk.operator_client import OperatorClient

CALL_TIMEOUT_S: Final = 10.0
"""Of one call: a master answers in milliseconds, and one that needs this long is as good as gone."""

QUIET_TIMEOUT_S: Final = 15.0
"""For tasks to end after their frameworks left: the default grace period of 5 s, and time to report."""
QUIET_LOOK_S: Final = 0.05

CLOCK_NOISE_MS: Final = 50
"""Clocks that seem to differ by less are taken as one: the difference is measured over the network."""

_KINDS: Final = ResourceKinds()


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
    """An operator's connection to one master, as values; an async context manager.

    Every method raises ``MasterUnreachable`` if nobody answers in time, and ``Refused`` if the master says no.
    """

    def __init__(self, address: str) -> None:
        """Nothing is sent before the first call. ``address`` is HOST:PORT."""
        self.address = address
        self._client = OperatorClient(address, deadline=CALL_TIMEOUT_S)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.close()

    async def agents(self, *, here_unix_ms: int) -> list[AgentView]:
        """The active agents, by id; ``here_unix_ms`` is this host's time now."""
        ahead_ms = (await self._client.cluster()).master_time_ms - here_unix_ms
        return [
            _agent_view(agent, ahead_ms) async for agent in self._client.agents() if agent.state == "ACTIVE"
        ]

    async def policy(self) -> str:
        """The allocation policy in force."""
        return (await self._client.policy()).policy

    async def set_policy(self, policy: str) -> None:
        """Change the allocation policy; ``Refused`` names those the master knows."""
        await self._client.set_policy(policy)

    async def counters(self) -> Counters:
        """The master's counters now."""
        cluster = await self._client.cluster()
        return Counters(
            tasks_active=cluster.tasks_active,
            decisions=cluster.decisions,
            cpu_time_ms=cluster.cpu_time_ms,
            is_allocated=any(_standard(cluster.allocated, "allocated")),
        )

    async def roles(self) -> dict[str, RoleSample]:
        """Every role the master knows, by name."""
        return {
            role.role: RoleSample(
                dominant_share=role.dominant_share,
                dominant_resource=role.dominant_resource,
                allocated=_standard(role.allocated, f"role {role.role}: allocated"),
                pending=role.pending,
                running=role.running,
            )
            async for role in self._client.roles()
        }

    async def sample(self, at_ms: int) -> ClusterSample:
        """Who has what now; ``at_ms`` is the run's time, kept with it."""
        cluster = await self._client.cluster()
        return ClusterSample(
            at_ms=at_ms,
            total=_standard(cluster.total, "total"),
            allocated=_standard(cluster.allocated, "allocated"),
            used=_standard(cluster.used, "used"),
            roles=await self.roles(),
        )

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


def _agent_view(agent: operator_pb2.AgentInfo, master_ahead_ms: int) -> AgentView:
    skew_ms = agent.clock_skew_ms + master_ahead_ms
    return AgentView(
        agent_id=agent.agent_id,
        total=_standard(agent.total, f"agent {agent.agent_id}: total"),
        clock_ahead_ms=skew_ms if abs(skew_ms) >= CLOCK_NOISE_MS else 0,
    )


def _standard(message: types_pb2.Resources, field: str) -> Vector:
    """The standard resources of an amount; what a cluster defines itself is no part of a trace."""
    plain = types_pb2.Resources()
    plain.CopyFrom(message)
    plain.ClearField("custom_milli")
    return read_resources(field, plain, _KINDS)
