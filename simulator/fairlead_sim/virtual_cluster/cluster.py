"""A cluster of a master, agents and frameworks of the SDK, in which everything may fail that fails live.

The cores are those that run on hosts, and the frameworks are sessions and workloads of the SDK; streams, disks and processes are
models with options, by whose defaults nothing goes wrong. Everything that happens is an occurrence on one engine, so a run is
repeated exactly by its generator's seed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fairlead_agent.core.state import AgentSettings
from fairlead_master.core.settings import CoreSettings
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_sdk.events import Event
from fairlead_sim.engine import Engine
from fairlead_sim.virtual_cluster.agent import AgentObservers, SimulatedAgent
from fairlead_sim.virtual_cluster.disk import Disk, DiskOptions
from fairlead_sim.virtual_cluster.framework import FrameworkOptions, Job, SimulatedFramework
from fairlead_sim.virtual_cluster.master import MasterObservers, SimulatedMaster
from fairlead_sim.virtual_cluster.network import NetworkOptions
from fairlead_sim.virtual_cluster.processes import HostOptions, ProcessTable

MASTER: Final = "master"
"""The master's host."""


@dataclass(slots=True)
class Observers:
    """Whoever watches a run."""

    master: MasterObservers = field(default_factory=MasterObservers)
    agent: AgentObservers = field(default_factory=AgentObservers)
    framework: Callable[[str, Event], None] = lambda *_: None
    """Of a framework's session, told of what happened in it."""


class Cluster:
    """One master, its agents and its frameworks. Nothing happens before ``start`` and ``run_for``."""

    def __init__(
        self,
        engine: Engine,
        *,
        kinds: ResourceKinds | None = None,
        settings: CoreSettings | None = None,
        network: NetworkOptions | None = None,
        observers: Observers | None = None,
    ) -> None:
        self.engine = engine
        self.disks: dict[str, Disk] = {}
        """Of each host, that of the master being ``MASTER``."""
        self.kinds = kinds or ResourceKinds()
        self.observers = observers or Observers()
        self.settings = settings or CoreSettings()
        self.master = SimulatedMaster(
            engine,
            self.kinds,
            self.settings,
            network or NetworkOptions(),
            disk=self._disk(MASTER),
            observers=self.observers.master,
        )
        self.network = self.master.network
        self.processes: dict[str, ProcessTable] = {}
        """Of each host."""
        self.agents: dict[str, SimulatedAgent] = {}
        self.frameworks: dict[str, SimulatedFramework] = {}

    def add_agent(
        self,
        name: str,
        total: Vector,
        *,
        attributes: Mapping[str, str] | None = None,
        options: HostOptions | None = None,
    ) -> SimulatedAgent:
        """One more host; its agent is started by ``start``, or by the caller if the cluster runs already."""
        settings = AgentSettings(hostname=name, total=total, kinds=self.kinds, attributes=attributes or {})
        options = options or HostOptions()
        processes = self.processes[name] = ProcessTable(self.engine, options)
        agent = self.agents[name] = SimulatedAgent(
            self.network,
            settings,
            processes,
            options,
            disk=self._disk(name),
            observers=self.observers.agent,
        )
        return agent

    def add_framework(
        self,
        name: str,
        jobs: Sequence[Job],
        *,
        role: str = "default",
        options: FrameworkOptions | None = None,
    ) -> SimulatedFramework:
        """One more framework with its work; started by ``start``, or by the caller if the cluster runs already."""
        framework = SimulatedFramework(
            name,
            self.network,
            self.kinds,
            options or FrameworkOptions(),
            role=role,
            jobs=jobs,
            tell=self.observers.framework,
        )
        self.frameworks[name] = framework
        return framework

    def _disk(self, name: str) -> Disk:
        disk = self.disks[name] = Disk(self.engine, DiskOptions())
        return disk

    def start(self) -> None:
        """Start every process."""
        self.master.start()
        for agent in self.agents.values():
            agent.start()
        for framework in self.frameworks.values():
            framework.start()

    def run_for(self, duration_ms: int) -> None:
        """Let so much time pass."""
        self.engine.run_until(self.engine.now_ms + duration_ms)

    def crash_master(self, down_ms: int, *, after_actions: int | None = None) -> None:
        """Kill the master now, or when more than so many actions leave together, and start it again later."""
        if self.master.machine is None:
            return
        if after_actions is not None:
            self.master.crash_amid_turn(after_actions, lambda: self.crash_master(down_ms))
            return
        self.master.crash()
        self.network.is_host_up = False
        self.network.break_all()
        self.engine.after(down_ms, self._start_master)

    def _start_master(self) -> None:
        self.network.is_host_up = True
        self.master.start()
