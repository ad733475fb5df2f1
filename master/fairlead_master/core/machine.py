"""The master's one verb: an event comes in, actions go out.

``step`` is a dispatch and nothing else; each kind of event has its function in the file of its subject. Time enters as
an argument; what must happen later is a deadline in the state, and ``next_deadline_ms`` says when to send ``Ticked``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fairlead_master.allocation.allocator import Allocator
from fairlead_master.allocation.weights import Weight
from fairlead_master.core import (
    agents,
    events,
    frameworks,
    measurements,
    offers,
    operations,
    reconcile,
    tasks,
)
from fairlead_master.core import settings as bounds
from fairlead_master.core.actions import Action, StoreAgent, StoreFramework
from fairlead_master.core.settings import CoreSettings
from fairlead_master.core.state import Agent, AgentState, Framework, Master
from fairlead_proto.framework_calls import (
    FrameworkConnected,
    KillAsked,
    OffersDeclined,
    ReconcileAsked,
    StatusesAcknowledged,
    TeardownAsked,
)
from fairlead_proto.ids import Role
from fairlead_proto.reports import AgentConnected
from fairlead_proto.resources import ResourceKinds


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What a master finds written down when it starts."""

    epoch: int
    """Of this start: one more than any before."""
    frameworks: tuple[StoreFramework, ...] = ()
    agents: tuple[StoreAgent, ...] = ()
    weights: tuple[tuple[Role, Weight], ...] = ()


class Machine:
    """A master without a clock, a network or a disk."""

    def __init__(
        self, kinds: ResourceKinds, settings: CoreSettings, remembered: Remembered, now_ms: int
    ) -> None:
        self.master = Master(
            kinds=kinds,
            settings=settings,
            epoch=remembered.epoch,
            allocator=Allocator(kinds, settings.allocation),
        )
        self.master.watches_time = self.master.allocator.watches_time
        _recover(self.master, remembered, now_ms)

    def step(self, event: events.Event, now_ms: int) -> list[Action]:
        """Take one event at a time that never goes back; give what is to be done about it, in order."""
        master = self.master
        if master.watches_time:
            master.allocator.advance(now_ms)
        _HANDLERS[type(event)](master, event, now_ms)
        out, master.out = master.out, []
        return out

    def next_deadline_ms(self, now_ms: int) -> int | None:
        """When the next ``Ticked`` is due; not before ``now_ms``. None: only an event can change anything."""
        if is_in_parts(self.master):
            return now_ms
        cycle_ms = offers.next_cycle_ms(self.master, now_ms)
        if cycle_ms is not None and cycle_ms <= now_ms:
            return now_ms  # Nothing can be due before.
        deadlines = _deadlines(self.master)
        if cycle_ms is not None:
            deadlines.append(cycle_ms)
        return max(now_ms, min(deadlines)) if deadlines else None


def _tick(master: Master, _event: events.Ticked, now_ms: int) -> None:
    """Do what is due, as much as a step may; a cycle beside little else, or in a tick of its own: every other one if need be."""
    if not (master.owes_cycle and _is_cycle_due(master, now_ms)):
        done = _do_what_is_due(master, now_ms)
        master.owes_cycle = done > bounds.TASKS_BESIDE_CYCLE_MAX and _is_cycle_due(master, now_ms)
        if master.owes_cycle:
            return
    master.owes_cycle = False
    if _is_cycle_due(master, now_ms):
        offers.run_cycle(master, now_ms)


def _is_cycle_due(master: Master, now_ms: int) -> bool:
    cycle_ms = offers.next_cycle_ms(master, now_ms)
    if cycle_ms is not None and cycle_ms <= now_ms:
        return True
    allocator_ms = master.allocator.next_deadline_ms()
    return allocator_ms is not None and allocator_ms <= now_ms and master.recovery_until_ms is None


def is_in_parts(master: Master) -> bool:
    """Whether some step left things to do to the next ticks."""
    left = (
        master.leaving,
        master.registering,
        master.judging,
        master.giving_up,
        master.ending,
        master.reconciling,
        master.measuring,
    )
    return master.is_behind or master.owes_cycle or any(left)


def _do_what_is_due(master: Master, now_ms: int) -> int:
    """End what is overdue and carry on with what steps left to do, so much of all kinds together; gives how much it was."""
    left = bounds.TASKS_PER_STEP_MAX
    for do_some in (
        offers.end_due,
        tasks.end_overdue,
        agents.end_overdue,
        frameworks.end_overdue,
        agents.settle_in_parts,
        agents.judge_in_parts,
        agents.give_up_in_parts,
        frameworks.end_in_parts,
        reconcile.tell_in_parts,
        measurements.measure_in_parts,
    ):
        if left <= 0:
            break
        left -= do_some(master, left, now_ms)
    master.is_behind = left <= 0 or bool(master.hoarders)
    return bounds.TASKS_PER_STEP_MAX - left


def _deadlines(master: Master) -> list[int]:
    """The earliest deadline of each kind but cycles. All are kept in order, or few: those of agents that are away."""
    deadlines: list[int] = []
    first_ms = master.recovery_until_ms
    if first_ms is None:
        first_ms = master.allocator.next_deadline_ms()
    if first_ms is not None:
        deadlines.append(first_ms)
    if master.offers:
        deadlines.append(next(iter(master.offers.values())).expires_ms)
    if master.staging:
        deadlines.append(next(iter(master.staging.values())))
    if master.killing:
        deadlines.append(next(iter(master.killing.values())))
    if master.agents_heard:
        deadlines.append(next(iter(master.agents_heard.values())) + master.settings.agent_silence_ms)
    if master.agents_doubted:
        deadlines.append(next(iter(master.agents_doubted.values())))
    if master.agents_away:
        away = [agent.deadline_ms for agent in master.agents_away.values()]
        deadlines += [deadline_ms for deadline_ms in away if deadline_ms is not None]
    failover = master.failover_deadlines.first()
    if failover is not None:
        deadlines.append(failover[0])
    return deadlines


def _recover(master: Master, remembered: Remembered, now_ms: int) -> None:
    """Take up what an earlier master wrote down; agents and frameworks bring the rest themselves."""
    for role, weight in remembered.weights:
        master.weights[role] = weight
        master.allocator.set_weight(role, weight)
    for stored in remembered.frameworks:
        timeout_ms = min(stored.failover_timeout_ms, master.settings.failover_timeout_max_ms)
        framework = Framework(
            framework_id=stored.framework_id,
            name=stored.name,
            role=stored.role,
            principal=stored.principal,
            failover_timeout_ms=timeout_ms,
            registered_ms=now_ms,
            away_until_ms=now_ms + timeout_ms,
            is_remembered=True,
        )
        master.peers.admit(framework.peer)
        master.failover_deadlines.set(framework.framework_id, now_ms + timeout_ms)
        master.peers.leave(framework.peer, framework.framework_id)
        master.frameworks[stored.framework_id] = framework
        master.frameworks_away[stored.framework_id] = framework
        master.allocator.add_framework(stored.framework_id, stored.role)
    for known in remembered.agents:
        _recover_agent(master, known, now_ms)
    if master.recovering:
        master.recovery_until_ms = now_ms + master.settings.recovery_wait_ms


def _recover_agent(master: Master, known: StoreAgent, now_ms: int) -> None:
    attributes = {**dict(known.attributes), "hostname": known.hostname, "agent_id": known.agent_id}
    timeout_ms = master.settings.agent_forget_ms if known.is_away else master.settings.agent_timeout_ms
    agent = Agent(
        agent_id=known.agent_id,
        hostname=known.hostname,
        total=known.total,
        attributes=attributes,
        state=AgentState.UNREACHABLE if known.is_away else AgentState.RECOVERING,
        registered_ms=now_ms,
        deadline_ms=now_ms + timeout_ms,
    )
    master.agents[known.agent_id] = agent
    master.agents_away[known.agent_id] = agent
    master.allocator.add_agent(known.agent_id, known.total, attributes)
    if not known.is_away:
        master.recovering[known.agent_id] = None


_HANDLERS: Mapping[type, Callable[[Master, Any, int], None]] = {
    FrameworkConnected: frameworks.framework_connected,
    events.FrameworkDisconnected: frameworks.framework_disconnected,
    events.DemandSet: frameworks.demand_set,
    events.OfferAccepted: offers.offer_accepted,
    OffersDeclined: offers.offers_declined,
    KillAsked: frameworks.kill_asked,
    StatusesAcknowledged: tasks.statuses_acknowledged,
    ReconcileAsked: reconcile.reconcile_asked,
    TeardownAsked: frameworks.teardown_asked,
    AgentConnected: agents.agent_connected,
    events.AgentDisconnected: agents.agent_disconnected,
    events.StatusesReported: agents.statuses_reported,
    events.AgentBeat: agents.agent_beat,
    events.AgentDoubted: agents.agent_doubted,
    events.OperatorKillAsked: operations.operator_kill_asked,
    events.OperatorTeardownAsked: operations.operator_teardown_asked,
    events.WeightSet: operations.weight_set,
    events.PolicySet: operations.policy_set,
    events.Ticked: _tick,
}
