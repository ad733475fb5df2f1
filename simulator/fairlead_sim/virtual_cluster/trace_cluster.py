"""A cluster that works off a trace: the master and the agents of a virtual cluster in which nothing fails.

All messages between them are there: offers with leases, acceptances, launches, statuses and their acknowledgements, heartbeats.
What faults would need is left out, for speed: disks, observers, frameworks of the SDK, processes that can be killed. The same
jobs can be fed to it as to a ``Pool``, and it tells a watcher the same.

Agents register before the simulation begins, frameworks at the moment their first job arrives.
"""

import sys
from collections.abc import Sequence
from typing import Final

from fairlead_agent.core.state import AgentSettings
from fairlead_master.allocation.api import AllocationError, AllocationSettings
from fairlead_master.core.settings import CoreSettings
from fairlead_master.core.state import Master
from fairlead_proto.resources import ResourceKinds
from fairlead_sim.engine import Engine, collecting_rarely
from fairlead_sim.node import Node
from fairlead_sim.observer import Watcher
from fairlead_sim.pool.arrivals import Arrivals
from fairlead_sim.pool.feasibility import Feasibility
from fairlead_sim.pool.hosts import CrowdedHost
from fairlead_sim.pool.simulation import PoolOptions
from fairlead_sim.virtual_cluster.agent import SimulatedAgent
from fairlead_sim.virtual_cluster.delays import Delays
from fairlead_sim.virtual_cluster.launches import LaunchedProcesses, Processes, Programs, Tally
from fairlead_sim.virtual_cluster.master import SimulatedMaster
from fairlead_sim.virtual_cluster.network import NetworkOptions
from fairlead_sim.virtual_cluster.processes import HostOptions
from fairlead_sim.virtual_cluster.trace_framework import TraceFramework
from fairlead_sim.workload import Job

IDLE_MS: Final = 24 * 3600 * 1000
"""How long nothing may run while jobs wait and none arrives, before they are given up: no decision waits for a day."""


_REMEMBERED: Final = 100
"""Tasks that are over an agent remembers, and their sandboxes: it does so in case a session breaks, which none does here,
and ten thousand of them on each of a thousand hosts would be gigabytes."""


class TraceCluster:
    """Hosts with agents, a master, and frameworks with their work, on virtual time."""

    def __init__(
        self,
        engine: Engine,
        nodes: Sequence[Node],
        watcher: Watcher,
        *,
        settings: AllocationSettings | None = None,
        options: PoolOptions | None = None,
        delays: Delays | None = None,
    ) -> None:
        """All nodes are there from the start.

        Raises:
            AllocationError: a setting is not known, or there are no nodes, or two of one name.
        """
        if not nodes:
            raise AllocationError("nodes: expected at least one, got none")
        self.engine = engine
        self._watcher = watcher
        self._options = options or PoolOptions()
        delays = delays or Delays()
        core = CoreSettings(
            allocation=settings or AllocationSettings(),
            allocation_window_ms=delays.allocation_window_ms,
            busy_window_ms=delays.busy_window_ms,
        )
        self.master = SimulatedMaster(
            engine,
            ResourceKinds(),
            core,
            _network(delays),
            disk=None,
            events_per_turn_max=sys.maxsize,
        )
        self.master.start()
        self._programs = Programs()
        self._tally = Tally()
        self.hosts: dict[str, SimulatedAgent] = {}
        allocator = self.core.allocator
        slowdown = self._options.slowdown if allocator.allows_overcommit else None
        self._frameworks: dict[str, TraceFramework] = {}
        feasibility = Feasibility(allocator)
        for node in nodes:
            if node.name in self.hosts:
                raise AllocationError(f"nodes: expected each name once, got {node.name!r} twice")
            crowded = CrowdedHost(engine, node.total, slowdown) if slowdown is not None else None
            processes = LaunchedProcesses(
                engine, self._programs, watcher, self._tally, delays.start_ms, crowded
            )
            self.hosts[node.name] = _agent(node, self.master, processes, delays)
            feasibility.add(node)
        for host in self.hosts.values():
            host.start()
        engine.run_until(engine.now_ms)
        self._arrivals = Arrivals(engine, watcher, feasibility, self._submit)
        self.feed = self._arrivals.feed
        """Lets jobs arrive."""
        self.unfinished = 0
        """Jobs that have arrived and not finished."""

    @property
    def core(self) -> Master:
        """What the master knows."""
        assert self.master.machine is not None, "it does not fail"
        return self.master.machine.master

    @property
    def events(self) -> int:
        """Tasks started plus tasks ended."""
        return self._tally.started + self._tally.ended

    def run(self) -> None:
        """Let everything happen until all jobs are done, or none is to come and nothing has run for a day."""
        with collecting_rarely():
            self._run()

    def _run(self) -> None:
        engine, tally = self.engine, self._tally
        idle_since_ms = engine.now_ms
        advance = engine.advance
        arrivals = self._arrivals
        while (arrivals.sources or self.unfinished) and advance():
            if arrivals.sources or tally.started > tally.ended:
                idle_since_ms = engine.now_ms
            elif engine.now_ms - idle_since_ms > IDLE_MS:
                return

    def _submit(self, job: Job) -> None:
        self.unfinished += 1
        self._framework_of(job).submit(job)

    def _framework_of(self, job: Job) -> TraceFramework:
        role, name = self._options.owner_of(job)
        framework = self._frameworks.get(name)
        if framework is None:
            framework = self._frameworks[name] = TraceFramework(
                name,
                role,
                self.engine,
                self.master.network,
                self._programs,
                gang_patience_ms=self._options.gang_patience_ms,
                finished=self._finished,
            )
        return framework

    def _finished(self, framework: TraceFramework, job: Job) -> None:
        self._watcher.finished(job, self.engine.now_ms)
        self.unfinished -= 1
        if not framework.jobs and self._options.forgets_idle:
            framework.leave()
            del self._frameworks[framework.name]


def _network(delays: Delays) -> NetworkOptions:
    return NetworkOptions(
        delay_min_ms=delays.network_ms,
        delay_max_ms=delays.network_ms,
        reconnect_min_ms=0,
        reconnect_max_ms=0,
        opens_at_once=True,
    )


def _agent(node: Node, master: SimulatedMaster, processes: Processes, delays: Delays) -> SimulatedAgent:
    settings = AgentSettings(
        hostname=node.name,
        total=node.total,
        attributes=node.attributes,
        history_count_max=_REMEMBERED,
        sandbox_count_max=_REMEMBERED,
    )
    options = HostOptions(executor_ms=0, gather_ms=delays.gather_ms)
    return SimulatedAgent(master.network, settings, processes, options, disk=None)
