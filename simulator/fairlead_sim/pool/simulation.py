"""A cluster of which only the decisions are real: who is served next, and where.

The allocator is the one of the live master, with its policy, placement, reservations and filters. A framework takes every
offer at once, a task starts the moment it is granted and ends when its time is over; there are no messages, no processes
and nothing fails. Everything that happens in one millisecond happens before the cycle that follows it, so that the order
within a millisecond decides nothing but ties.

A *gang* collects places as a framework does that must have all of its tasks at once: places offered to it are held, and
count as its own, until there are enough. If that takes longer than its patience it gives all of them back and wants none
for a time that is drawn, from twice as long a span at each attempt, so that two gangs which hold half of the cluster each
do not wait for ever.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from fairlead_master.allocation.allocator import Allocator
from fairlead_master.allocation.api import AllocationError, AllocationSettings, Grant
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, Role
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_sim.engine import Alarm, Engine, collecting_rarely
from fairlead_sim.node import Node
from fairlead_sim.observer import Batch, Watcher
from fairlead_sim.pool.arrivals import Arrivals
from fairlead_sim.pool.feasibility import Feasibility, attributes_of
from fairlead_sim.pool.framework import ActiveJob, Gang, PoolFramework
from fairlead_sim.pool.hosts import CrowdedHost, Slowdown
from fairlead_sim.workload import Bundle, Job


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOptions:
    """What a model of frameworks and hosts leaves open."""

    role_of: Callable[[Job], str] = lambda job: job.user
    """On whose shares a job counts."""
    framework_of: Callable[[Job], str] | None = None
    """Whose of several frameworks it is, each of one role; None: jobs of one role are one framework."""
    forgets_idle: bool = False
    """Whether a framework without work leaves, as those do that run one job each; otherwise it stays, as a person's does."""
    gang_patience_ms: int = 60_000
    """How long a gang may hold places that are not enough; its first pause is at most as long."""
    slowdown: Slowdown = field(default_factory=Slowdown)
    """Where the policy promises more than there is."""
    real_total: Callable[[Node], Vector] | None = None
    """What a node really has, where the allocator is told of more than that, as it is of what it shall not look at; None: it is
    told the truth."""

    def owner_of(self, job: Job) -> tuple[str, str]:
        """The role of a job, and the name of its framework."""
        role = self.role_of(job)
        return role, role if self.framework_of is None else self.framework_of(job)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Tasks of a bundle that run on one host when a simulation begins."""

    bundle: Bundle
    units: int
    host: str
    ran_ms: int
    """For how long."""
    left_ms: int
    """How much longer they will, if their host does not slow them down."""


class Pool:
    """Hosts, frameworks with their work, and the allocator between them, on virtual time."""

    def __init__(
        self,
        engine: Engine,
        nodes: Sequence[Node],
        watcher: Watcher,
        *,
        settings: AllocationSettings | None = None,
        options: PoolOptions | None = None,
        drained: Collection[str] = (),
        kinds: ResourceKinds | None = None,
    ) -> None:
        """All nodes are there from the start.

        Args:
            engine: Clock, calendar and dice.
            nodes: The hosts.
            watcher: Told of everything that happens.
            settings: The policy and the rest that an operator may change.
            options: What the model leaves open.
            drained: Names of nodes on which nothing is started; what is adopted there runs to its end.
            kinds: The resources there are; None: the standard ones.

        Raises:
            AllocationError: a setting is not known, or there are no nodes, or two of one name.
        """
        if not nodes:
            raise AllocationError("nodes: expected at least one, got none")
        self.engine = engine
        self.allocator = Allocator(kinds or ResourceKinds(), settings)
        self.events = 0
        """Tasks started plus tasks ended."""
        self._watcher = watcher
        self._options = options or PoolOptions()
        self._frameworks: dict[FrameworkId, PoolFramework] = {}
        self._by_name: dict[str, PoolFramework] = {}
        self._told: dict[FrameworkId, PoolFramework] = {}
        """Those whose demand has changed since the last cycle."""
        self._gangs: dict[tuple[FrameworkId, ClassId], Gang[Grant]] = {}
        self._numbers = count()
        self._is_cycle_due = False
        self._deadline = Alarm(engine, self._cycle)
        self._feasibility = Feasibility(self.allocator)
        self._watches_time = self.allocator.watches_time
        self.feed = Arrivals(engine, watcher, self._feasibility, self._submit).feed
        """Lets jobs arrive."""
        self._crowded: dict[str, CrowdedHost] = {}
        for node in nodes:
            self._add_node(node, is_drained=node.name in drained)

    def adopt(self, job: Job, running: Iterable[Running]) -> None:
        """A job all of whose tasks that are left run already, here and now, whether or not there is room for them.

        The watcher is told that it arrived and that its tasks were started, the latter with the time when they were.
        """
        now_ms = self.engine.now_ms
        self._watcher.arrived(job, now_ms)
        self._tell_time()
        framework = self._framework_of(job)
        framework.jobs += 1
        active = ActiveJob(job, [job.bundles])
        for tasks in running:
            active.left += tasks.units
            for _ in range(tasks.units):
                self.allocator.charge(framework.framework_id, AgentId(tasks.host), tasks.bundle.unit)
            started_ms = now_ms - tasks.ran_ms
            batch = Batch(
                job=job,
                bundle=tasks.bundle,
                units=tasks.units,
                host=tasks.host,
                ready_ms=started_ms,
                started_ms=started_ms,
            )
            self._start(batch, tasks.left_ms, framework, active)

    def run(self) -> None:
        """Let everything happen, until nothing more does."""
        advance = self.engine.advance
        with collecting_rarely():
            while advance():
                pass

    @property
    def unfinished(self) -> int:
        """Jobs that have arrived and not finished."""
        return sum(framework.jobs for framework in self._frameworks.values())

    def _add_node(self, node: Node, *, is_drained: bool) -> None:
        agent_id = AgentId(node.name)
        if node.name in self._crowded:
            raise AllocationError(f"nodes: expected each name once, got {node.name!r} twice")
        self.allocator.add_agent(agent_id, node.total, attributes_of(node))
        self._feasibility.add(node, is_drained=is_drained)
        self.allocator.set_agent_active(agent_id, active=not is_drained)
        real_total = self._options.real_total
        total = node.total if real_total is None else real_total(node)
        self._crowded[node.name] = CrowdedHost(self.engine, total, self._options.slowdown)

    def _submit(self, job: Job) -> None:
        framework = self._framework_of(job)
        framework.jobs += 1
        self._open_stage(framework, ActiveJob(job, job.stages()))

    def _framework_of(self, job: Job) -> PoolFramework:
        role, name = self._options.owner_of(job)
        framework = self._by_name.get(name)
        if framework is None:
            framework = PoolFramework(FrameworkId(f"{next(self._numbers)}"), name, Role(role))
            self._by_name[name] = self._frameworks[framework.framework_id] = framework
            self._tell_time()
            self.allocator.add_framework(framework.framework_id, framework.role)
        return framework

    def _open_stage(self, framework: PoolFramework, active: ActiveJob) -> None:
        bundles = active.stages[active.stage]
        active.ready_ms = self.engine.now_ms
        active.left = sum(bundle.tasks for bundle in bundles)
        for bundle in bundles:
            framework.enqueue(active, bundle)
        self._told[framework.framework_id] = framework
        self._plan_cycle()

    def _plan_cycle(self) -> None:
        """Decide after everything else of this millisecond."""
        if not self._is_cycle_due:
            self._is_cycle_due = True
            self.engine.after(0, self._cycle)

    def _tell_time(self) -> None:
        if self._watches_time:
            self.allocator.advance(self.engine.now_ms)

    def _cycle(self) -> None:
        self._is_cycle_due = False
        now_ms = self.engine.now_ms
        allocator = self.allocator
        self._tell_time()
        for framework in self._told.values():
            if framework.framework_id in self._frameworks:
                allocator.set_demand(framework.framework_id, framework.demand(), now_ms)
        self._told.clear()
        for grant in allocator.cycle(now_ms):
            self._take(grant)
        if allocator.needs_cycle:
            self._plan_cycle()
        self._deadline.move(allocator.next_deadline_ms())

    def _take(self, grant: Grant) -> None:
        framework = self._frameworks[grant.framework_id]
        if framework.queues[grant.class_id].is_gang:
            self._collect(framework, grant)
        else:
            self._launch(framework, grant)

    def _launch(self, framework: PoolFramework, grant: Grant) -> None:
        unit, units = grant.unit, grant.units
        self.allocator.settle(
            framework.framework_id, grant.agent_id, grant.class_id, unit, units, [unit] * units
        )
        self.events += units
        now_ms = self.engine.now_ms
        for waiting, taken in framework.take(grant.class_id, units):
            batch = Batch(
                job=waiting.job.job,
                bundle=waiting.bundle,
                units=taken,
                host=grant.agent_id,
                ready_ms=waiting.job.ready_ms,
                started_ms=now_ms,
            )
            self._start(batch, waiting.bundle.duration_ms, framework, waiting.job)

    def _start(self, batch: Batch, left_ms: int, framework: PoolFramework, active: ActiveJob) -> None:
        self._watcher.started(batch)
        end = partial(self._end, batch, framework, active)
        if self.allocator.allows_overcommit or self._options.real_total is not None:
            self._crowded[batch.host].start(batch, left_ms, end)
        else:
            self.engine.after(left_ms, end)

    def _collect(self, framework: PoolFramework, grant: Grant) -> None:
        """A gang was offered places: it begins if these are the last, and holds them otherwise."""
        name = (framework.framework_id, grant.class_id)
        gang = self._gangs.setdefault(name, Gang())
        if gang.collect(grant, of=framework.queues[grant.class_id].tasks):
            del self._gangs[name]
            for held in gang.held:
                self._launch(framework, held)
        elif gang.patience is None:
            gang.patience = self.engine.maybe_after(
                self._options.gang_patience_ms, partial(self._give_up, framework, grant.class_id)
            )

    def _give_up(self, framework: PoolFramework, class_id: ClassId) -> None:
        """A gang has held places for too long: it gives them back and pauses."""
        gang = self._gangs[framework.framework_id, class_id]
        pause_ms = gang.pause_ms(self._options.gang_patience_ms, self.engine.random)
        self._tell_time()
        for held in gang.held:
            self.allocator.take_back(framework.framework_id, held.agent_id, class_id, held.unit, held.units)
        self.allocator.refuse(framework.framework_id, class_id, None, self.engine.now_ms + pause_ms)
        self._gangs[framework.framework_id, class_id] = Gang(attempts=gang.attempts + 1)
        self._plan_cycle()

    def _end(self, batch: Batch, framework: PoolFramework, active: ActiveJob) -> None:
        self._tell_time()
        self.allocator.release(framework.framework_id, AgentId(batch.host), batch.bundle.unit, batch.units)
        self.events += batch.units
        self._watcher.ended(batch, self.engine.now_ms)
        active.left -= batch.units
        if not active.left:
            self._close_stage(framework, active)
        self._plan_cycle()

    def _close_stage(self, framework: PoolFramework, active: ActiveJob) -> None:
        active.stage += 1
        if active.stage < len(active.stages):
            self._open_stage(framework, active)
            return
        self._watcher.finished(active.job, self.engine.now_ms)
        framework.jobs -= 1
        if not framework.jobs and self._options.forgets_idle:
            self.allocator.remove_framework(framework.framework_id)
            del self._frameworks[framework.framework_id], self._by_name[framework.name]
