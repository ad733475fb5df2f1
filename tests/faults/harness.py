"""A cluster of the real cores under random but seeded faults, with every invariant checked after every step.

A run has two parts. In the first, work arrives and everything goes wrong that may: the network, processes of every role,
hosts, policies, operators. In the second nothing goes wrong any more, and all work must finish and every book balance. A
failure is told with its seed and the last things that happened.
"""

import hashlib
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from fairlead_agent.core import actions as agent_actions
from fairlead_agent.core import events as agent_events
from fairlead_agent.core.state import AgentState
from fairlead_master.allocation.api import AllocationSettings
from fairlead_master.allocation.weights import Weight
from fairlead_master.core import actions, events, invariants
from fairlead_master.core.machine import Machine
from fairlead_master.core.settings import CoreSettings
from fairlead_proto.ids import AgentId, Role, TaskId, TaskKey
from fairlead_proto.resources import Vector
from fairlead_proto.task_state import TaskState, is_terminal
from fairlead_proto.tasks import TaskStatus
from fairlead_sdk import events as session_events
from fairlead_sim.engine import Engine
from fairlead_sim.virtual_cluster.agent import AgentObservers, SimulatedAgent
from fairlead_sim.virtual_cluster.cluster import MASTER, Cluster, Observers
from fairlead_sim.virtual_cluster.disk import DiskOptions
from fairlead_sim.virtual_cluster.framework import FrameworkOptions, Job
from fairlead_sim.virtual_cluster.master import MasterObservers
from fairlead_sim.virtual_cluster.network import NetworkOptions
from fairlead_sim.virtual_cluster.processes import HostOptions, ProcessTable
from tests.faults.barrier import AgentBarrier, Barrier

TRANSCRIPT_LINES = 60
POLICIES = ("drf", "slots:2", "slots:3", "fifo")
GIB = 2**30

SETTINGS = CoreSettings(
    # Short times, so that every deadline of the master comes up in a run of a minute.
    offer_lease_ms=700,
    decline_ttl_ms=500,
    staging_timeout_ms=4_000,
    heartbeat_interval_ms=1_000,
    agent_silence_ms=4_000,
    agent_timeout_ms=6_000,
    agent_forget_ms=9_000,
    failover_timeout_ms=20_000,
    recovery_wait_ms=2_000,
    kill_retry_ms=2_000,
)
FAULTY = NetworkOptions(
    delay_max_ms=40,
    break_fraction=0.01,
    notice_max_ms=3_000,
    reconnect_max_ms=1_500,
    stall_fraction=0.01,
    stall_max_ms=6_000,
    repeat_fraction=0.05,
)
QUIET = NetworkOptions(delay_max_ms=5)
QUIET_MS_MAX = 15 * 60 * 1000
"""Virtual time in which everything must be over: agents repeat unacknowledged statuses once a minute at the latest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much of everything."""

    seed: int
    agents: int = 4
    frameworks: int = 3
    jobs: int = 10
    """Of each framework."""
    faulty_ms: int = 45_000
    fault_every_ms: int = 1_200
    network: NetworkOptions = FAULTY


class Run:
    """One seeded run."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.random = Random(plan.seed)
        self.transcript: deque[str] = deque(maxlen=TRANSCRIPT_LINES)
        self.faults: Counter[str] = Counter()
        self.ends: dict[tuple[TaskKey, AgentId], TaskStatus] = {}
        """The first end an agent reported of each of its tasks."""
        self._hash = hashlib.sha256()
        self.engine = Engine(self.random)
        self.barrier, self.agent_barrier = Barrier(), AgentBarrier()
        self.cluster = Cluster(
            self.engine,
            settings=replace(SETTINGS, allocation=AllocationSettings(policy=self.random.choice(POLICIES))),
            network=plan.network,
            observers=Observers(
                MasterObservers(
                    self._saw_master, self.barrier.wrote, self.barrier.excuse, self.barrier.check
                ),
                AgentObservers(self._saw_agent, self.agent_barrier.wrote, self.agent_barrier.check),
                self._saw_framework,
            ),
        )
        self.cluster.disks[MASTER].options = DiskOptions(sync_max_ms=30)
        for number in range(plan.agents):
            total = (self.random.choice((2_000, 4_000)), self.random.choice((4, 8)) * GIB, 0, 0)
            options = HostOptions(start_max_ms=self.random.choice((5, 1_500)), end_ms=20)
            agent = self.cluster.add_agent(f"host{number}", total, options=options)
            self.cluster.disks[agent.name].options = DiskOptions(sync_max_ms=30)
        for number in range(plan.frameworks):
            name = f"fw{number}"
            self.cluster.add_framework(
                name,
                [self._job(f"{name}j{index}") for index in range(plan.jobs // 2)],
                role=self.random.choice(("a", "b")),
                options=FrameworkOptions(
                    think_max_ms=self.random.choice((0, 1_200)),
                    decline_fraction=0.05,
                    ignore_fraction=0.05,
                    failover_timeout_ms=self.random.choice((0, 8_000)),
                    unreachable_timeout_ms=self.random.choice((2_000, 15_000)),
                ),
            )

    @property
    def digest(self) -> str:
        """Of everything every core was told and decided, with the times."""
        return self._hash.hexdigest()

    def execute(self) -> None:
        """Run both parts.

        Raises:
            AssertionError: something was wrong; the message has the seed and the transcript.
        """
        try:
            self.cluster.start()
            self._plan_arrivals()
            self._plan_faults()
            self.cluster.run_for(self.plan.faulty_ms)
            self._calm()
            self._finish()
        except Exception as error:
            told = "\n".join(self.transcript)
            raise AssertionError(f"seed {self.plan.seed}: {error}\n{told}") from error

    def _job(self, name: str) -> Job:
        unit: Vector = (self.random.choice((500, 1_000, 2_000)), self.random.choice((1, 2)) * GIB, 0, 0)
        duration = str(self.random.choice((1, 200, 2_000, 9_000)))
        command = self.random.choice(
            (
                ("run", duration),
                ("run", duration),
                ("run", duration, "3"),
                ("stubborn", duration),
                ("stubborn", duration),
                ("missing",),
            )
        )
        return Job(name=name, unit=unit, command=command)

    def _plan_arrivals(self) -> None:
        """The other half of the jobs come one by one."""
        for framework in self.cluster.frameworks.values():
            for index in range(len(framework.jobs), self.plan.jobs):
                job = self._job(f"{framework.name}j{index}")
                at_ms = self.random.randint(0, self.plan.faulty_ms)
                self.engine.after(at_ms, partial(framework.add, job))

    # --- faults ------------------------------------------------------------------------------------------------------

    def _plan_faults(self) -> None:
        at_ms = self.engine.now_ms
        end_ms = at_ms + self.plan.faulty_ms
        if self.plan.faulty_ms and self.plan.seed % 2:
            # Hardly an id is new later on, and what looks full is not asked to write one.
            self._fill_disk()
            self.cluster.disks[MASTER].looks_full = False
        while (at_ms := at_ms + self.random.randint(1, 2 * self.plan.fault_every_ms)) < end_ms:
            self.engine.at(at_ms, self._one_fault)

    def _one_fault(self) -> None:
        kinds = (
            self._crash_master,
            self._crash_agent,
            self._crash_agent,
            self._leave_agent,
            self._reboot_host,
            self._crash_executor,
            self._resize_agent,
            self._crash_framework,
            self._partition,
            self._partition,
            self._kill_by_operator,
            self._kill_by_operator,
            self._kill_by_operator,
            self._change_policy,
            self._change_weight,
            self._fill_disk,
            self._fill_disk_of_agent,
        )
        fault = self.random.choice(kinds)
        name = fault.__name__.strip("_")
        self.faults[name] += 1
        self._note(f"fault: {name}")
        fault()

    def _crash_master(self) -> None:
        after = self.random.choice((None, 0, 1, 2))
        self.cluster.crash_master(self.random.randint(1, 4_000), after_actions=after)

    def _some_agent(self) -> SimulatedAgent:
        return self.random.choice(list(self.cluster.agents.values()))

    def _down(self, agent: SimulatedAgent) -> None:
        self.engine.after(
            self.random.choice((10, 3_000, 9_000, 25_000)),
            lambda: agent.start() if agent.machine is None else None,
        )

    def _crash_agent(self) -> None:
        agent = self._some_agent()
        after = self.random.choice((None, 0, 1, 2))

        def crash() -> None:
            agent.crash()
            self._down(agent)

        if after is None:
            crash()
        else:
            agent.crash_within_step(after, crash)

    def _leave_agent(self) -> None:
        self._some_agent().leave(is_stopping_tasks=self.random.random() < 0.5)

    def _reboot_host(self) -> None:
        agent = self._some_agent()
        agent.reboot()
        self._down(agent)

    def _resize_agent(self) -> None:
        agent = self._some_agent()
        agent.crash()
        agent.settings = replace(
            agent.settings, total=(self.random.choice((1_000, 2_000, 4_000)), 8 * GIB, 0, 0)
        )
        self._down(agent)

    def _crash_executor(self) -> None:
        self._some_agent().crash_executor()

    def _crash_framework(self) -> None:
        framework = self.random.choice(list(self.cluster.frameworks.values()))
        if framework.is_up:
            framework.crash()
            self.engine.after(
                self.random.choice((10, 3_000, 12_000)),
                lambda: None if framework.is_up else framework.start(),
            )

    def _partition(self) -> None:
        name = self.random.choice([*self.cluster.agents, *self.cluster.frameworks])
        up, down = self.random.choice(((True, True), (True, False), (False, True)))
        self.cluster.network.cut(name, self.random.choice((500, 5_000, 15_000)), up=up, down=down)

    def _kill_by_operator(self) -> None:
        machine = self.cluster.master.machine
        keys = [key for agent in machine.master.agents.values() for key in agent.tasks] if machine else []
        task_ids: tuple[TaskId, ...] = (self.random.choice(keys)[1],) if keys else ()
        self.cluster.master.post(
            events.OperatorKillAsked(request=1, task_ids=task_ids, framework_id=None, grace_period_ms=200)
        )

    def _change_policy(self) -> None:
        self.cluster.master.post(
            events.PolicySet(
                request=2,
                policy=self.random.choice(POLICIES),
                placement=self.random.choice(("align", "pack", "spread")),
                when_head_does_not_fit=self.random.choice(("skip", "freeze")),
            )
        )

    def _change_weight(self) -> None:
        role, weight = self.random.choice(("a", "b")), self.random.choice((1.0, 2.0, 5.0))
        self.cluster.master.post(events.WeightSet(request=3, role=Role(role), weight=Weight(weight)))

    def _fill_disk(self) -> None:
        """The master's, for a while."""
        disk = self.cluster.disks[MASTER]
        disk.is_full, disk.looks_full = True, self.random.random() < 0.5
        self.engine.after(self.random.randint(1, 5_000), self._make_room)

    def _fill_disk_of_agent(self) -> None:
        disk = self.cluster.disks[self._some_agent().name]
        disk.is_full = True
        self.engine.after(self.random.randint(1, 20_000), lambda: setattr(disk, "is_full", False))

    def _make_room(self) -> None:
        self.cluster.disks[MASTER].is_full = False

    # --- the end -----------------------------------------------------------------------------------------------------

    def _calm(self) -> None:
        self._note("no more faults")
        self._make_room()
        self.cluster.network.options = QUIET
        self.cluster.network.heal()
        for agent in self.cluster.agents.values():
            self.cluster.disks[agent.name].is_full = False
            # Large enough for every job, or one that fits nowhere would wait for ever.
            if agent.settings.total[0] < 4_000:
                agent.crash()
                agent.settings = replace(agent.settings, total=(4_000, 8 * GIB, 0, 0))
            if agent.machine is None:
                agent.start()
        for framework in self.cluster.frameworks.values():
            if not framework.is_up:
                framework.start()

    def _finish(self) -> None:
        end_ms = self.engine.now_ms + QUIET_MS_MAX
        while self.engine.now_ms < end_ms and self._unfinished():
            self.cluster.run_for(1_000)
        unfinished = self._unfinished()
        assert not unfinished, f"after {QUIET_MS_MAX} quiet ms: {unfinished}"
        self._check_starts()
        self._check_results()

    def _unfinished(self) -> str:
        """What is not over yet, in words; empty if everything is."""
        for framework in self.cluster.frameworks.values():
            for job in framework.jobs.values():
                if job.end is None:
                    return f"job {job.name} is {framework.state_of(job.name)} after {job.repeats} repeats"
        machine = self.cluster.master.machine
        if machine is None:
            return "the master is down"
        if machine.master.offers:
            return f"offers are out: {list(machine.master.offers)}"
        for agent in machine.master.agents.values():
            if agent.tasks:
                return f"the master has live tasks: {[task.key for task in agent.tasks.values()]}"
            if agent.session is not None and machine.master.allocator.free(agent.agent_id) != agent.total:
                return f"agent {agent.agent_id} is not free"
        for simulated in self.cluster.agents.values():
            if (left := _left_on(simulated, self.cluster.processes[simulated.name])) is not None:
                return f"{simulated.name}: {left}"
        return ""

    def _check_starts(self) -> None:
        """No id is started twice: never by one agent, and by two only for a framework that crashed.

        One that resumes and asks about a task whose agent was forgotten is told that nobody knows it, as if it had never
        been launched, and launches it under the id it had.
        """
        for name, processes in self.cluster.processes.items():
            here = [key for key, count in Counter(processes.starts).items() if count > 1]
            assert not here, f"{name} started more than once: {here}"
        starts = Counter(key for processes in self.cluster.processes.values() for key in processes.starts)
        for framework in self.cluster.frameworks.values():
            ids = (framework.framework_id, *framework.former_ids)
            twice = [key for key, count in starts.items() if count > 1 and key[0] in ids]
            assert not twice or framework.crashes, f"{framework.name}: started more than once: {twice}"

    def _check_results(self) -> None:
        for framework in self.cluster.frameworks.values():
            for job in framework.jobs.values():
                fails = job.command[0] == "missing" or job.command[-1] == "3"
                expected = TaskState.FAILED if fails else TaskState.FINISHED
                assert job.end is expected, f"job {job.name}: expected {expected.value}, got {job.result}"

    # --- watching ----------------------------------------------------------------------------------------------------

    def _saw_master(self, machine: Machine, event: events.Event, decided: Sequence[actions.Action]) -> None:
        self._note(f"master: {event}", *decided)
        self.barrier.note(machine, decided)
        invariants.check(machine.master)

    def _saw_agent(
        self,
        agent: SimulatedAgent,
        happened: list[agent_events.Event],
        decided: list[agent_actions.Action],
    ) -> None:
        for event in happened:
            self._note(f"{agent.name}: {event}")
        self._note(f"{agent.name}", *decided)
        self.agent_barrier.note(agent, decided)
        assert agent.machine is not None, f"{agent.name} took a step while it was down"
        check_agent(agent.machine.state)

    def _saw_framework(self, name: str, event: session_events.Event) -> None:
        self._note(f"{name}: {event}")
        if isinstance(event, session_events.StatusReceived) and event.status.sequence:
            self._check_end(event.status)

    def _check_end(self, status: TaskStatus) -> None:
        if is_terminal(status.state):
            first = self.ends.setdefault((status.key, status.agent_id), status)
            assert (first.state, first.sequence) == (status.state, status.sequence), (
                f"{status.key} ended twice: {first.state.value}, {status.state.value}"
            )

    def _note(self, what: str, *decided: object) -> None:
        lines = [f"{self.engine.now_ms} {what}", *(f"    -> {action}" for action in decided)]
        for line in lines:
            self._hash.update(line.encode())
            self.transcript.append(line[:300])


def _left_on(agent: SimulatedAgent, processes: ProcessTable) -> str | None:
    if agent.machine is None or not agent.machine.state.is_registered:
        return "not registered"
    state = agent.machine.state
    if state.live:
        return f"live tasks {list(state.live)}"
    if state.outboxes:
        return f"unacknowledged statuses of {list(state.outboxes)}"
    if processes.running or processes.ended:
        return f"processes {list(processes.running)}, ends nobody took {list(processes.ended)}"
    return None


def check_agent(state: AgentState) -> None:
    """Raise unless an agent's books balance."""
    both = [key for key in state.live if key in state.over]
    assert not both, f"alive and over: {both}"
    for key, outbox in state.outboxes.items():
        assert outbox, f"{key} has an empty outbox"
        numbers = [status.sequence for status in outbox]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), f"{key}: statuses {numbers}"
        assert key in state.live or key in state.over, f"{key} is unknown and has statuses {numbers}"
    forgotten = [key for key in state.over if key not in state.history and key not in state.outboxes]
    assert not forgotten, f"over, neither acknowledged nor owed: {forgotten}"
    waiting = [key for key in state.unordered if key not in state.live]
    assert not waiting, f"wait for an executor and are not alive: {waiting}"
