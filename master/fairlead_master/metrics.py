"""What the master shows Prometheus, from its state. Labels are bounded: states, resources, answers, a hundred roles; never an id.

Made in parts, like long answers to operators: figures of one scrape may be some moments apart.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from enum import Enum
from heapq import nlargest
from typing import Final

import fairlead_master
from fairlead_master import views
from fairlead_master.allocation.parts import Parts
from fairlead_master.core import offers
from fairlead_master.core.state import AgentState, FrameworkState, Master
from fairlead_master.runner import Runner
from fairlead_master.sessions import Traffic
from fairlead_proto.peers import Unknowns
from fairlead_proto.resources import Vector, add, scale
from fairlead_proto.task_state import TaskState, is_terminal
from fairlead_telemetry.broker import Counters
from fairlead_telemetry.metrics import (
    Family,
    LoopDelay,
    MetricsServer,
    counter,
    counters,
    gauge,
    gauges,
    resources,
    telemetry_families,
)
from fairlead_telemetry.payloads import amounts_of

ROLES_MAX: Final = 100
"""Of which a series is kept: those with the largest shares."""

Families = Generator[Family | None, None, None]
"""None wherever others may have a turn."""

STATES_PER_STEP: Final = 100
"""Counted between two places where others may have a turn, some 30 us."""

_ENDS: Final = {offers.USED: "accepted", offers.LEASE_ENDED: "expired", offers.DECLINED: "declined"}
"""Any other end of an offer is a rescind, which says why in the log."""


class MasterMetrics:
    """One master's metrics."""

    def __init__(
        self,
        address: str,
        runner: Runner,
        traffic: Mapping[str, Traffic],
        unknowns: Mapping[str, Unknowns],
        telemetry: Counters | None,
    ) -> None:
        """Begin to serve.

        Args:
            address: HOST:PORT.
            runner: whose state is shown; it is told to time its turns.
            traffic: bytes by kind of peer.
            unknowns: what newer peers said that is not known here, by kind of peer.
            telemetry: what became of messages to a broker; None without one.

        Raises:
            InvalidMetricsAddress: it cannot be listened on.
        """
        self._runner = runner
        self._traffic = traffic
        self._unknowns = unknowns
        self._telemetry = telemetry
        self._server = MetricsServer(address, self._collect)
        self.port = self._server.port
        self._turn = self._server.histogram(
            "fairlead_turn_seconds", "Time of one turn of the loop: events stepped and actions sent."
        )
        self._cycle = self._server.histogram(
            "fairlead_allocation_cycle_seconds", "Time of a turn with an allocation cycle."
        )
        self._decision = self._server.histogram(
            "fairlead_allocation_decision_seconds",
            "Mean time of a unit granted, of each turn that granted any.",
        )
        self._delay = LoopDelay(
            self._server.histogram("fairlead_loop_delay_seconds", "How late the event loop serves a timer.")
        )
        runner.on_turn = self._on_turn

    def close(self) -> None:
        """Stop serving; blocks for at most half a second."""
        self._runner.on_turn = None
        self._delay.stop()
        self._server.close()

    def _on_turn(self, seconds: float, cycles: int, decisions: int) -> None:
        self._turn(seconds)
        if cycles:
            self._cycle(seconds)
        if decisions:
            self._decision(seconds / decisions)

    async def _collect(self) -> list[Family]:
        families: list[Family] = []
        await self._runner.in_parts(views.fill(self._families(), families))
        return families

    def _families(self) -> Families:
        master, runner = self._runner.machine.master, self._runner
        policy = master.settings.allocation.policy
        yield Family(
            "gauge",
            "fairlead_master_info",
            "What runs; always 1.",
            ("version", "policy"),
            (((fairlead_master.__version__, policy), 1.0),),
        )
        yield gauge("fairlead_master_epoch", "Number of this start.", master.epoch)
        waiting = {"events": runner.events_waiting, "held_actions": runner.actions_held}
        yield gauges("fairlead_queue_length", "Events and actions that wait.", "queue", waiting)
        yield from _peers(master)
        yield from _work(master)
        yield from _amounts(master)
        yield from _roles(master)
        yield from self._messages()

    def _messages(self) -> Iterator[Family]:
        samples = tuple(
            ((peer, direction), float(amount))
            for peer, traffic in self._traffic.items()
            for direction, amount in (("received", traffic.received_bytes), ("sent", traffic.sent_bytes))
        )
        yield Family(
            "counter", "fairlead_stream_bytes", "Messages of sessions.", ("peer", "direction"), samples
        )
        yield Family(
            "counter",
            "fairlead_unknown",
            "Messages and values of newer peers that this version does not know, by what they are.",
            ("peer", "what"),
            tuple(
                ((peer, what), float(count))
                for peer, unknowns in self._unknowns.items()
                for what, count in unknowns.counts.copy().items()
            ),
        )
        if self._telemetry is not None:
            yield from telemetry_families(self._telemetry)


def _peers(master: Master) -> Families:
    agents = yield from _by_state(AgentState, (each.state for each in list(master.agents.values())))
    frameworks = yield from _by_state(
        FrameworkState, (each.state for each in list(master.frameworks.values()))
    )
    sessions = {"agent": len(master.agent_by_session), "framework": len(master.framework_by_session)}
    yield gauges("fairlead_agents", "Agents by state.", "state", agents)
    yield gauges("fairlead_frameworks", "Frameworks by state.", "state", frameworks)
    yield gauges("fairlead_sessions", "Open sessions by kind of peer.", "peer", sessions)


def _by_state(states: Iterable[Enum], found: Iterator[Enum]) -> Parts[dict[str, float]]:
    """How many there are of each state, zeros too: a series that comes and goes is no ground for an alert."""
    counts = {str(state.value): 0.0 for state in states}
    for number, state in enumerate(found):
        counts[state.value] += 1
        if number % STATES_PER_STEP == 0:
            yield
    return counts


def _work(master: Master) -> Families:
    tasks = (task for each in list(master.frameworks.values()) for task in list(each.tasks.values()))
    live = yield from _by_state(
        (state for state in TaskState if not is_terminal(state)),
        (task.state for task in tasks if not is_terminal(task.state)),
    )
    tallies = master.tallies
    ends: Counter[str] = Counter()
    for how, count in tallies.offers_ended.items():
        ends[_ENDS.get(how, "rescinded")] += count
    work = master.allocator.counters
    yield gauges("fairlead_tasks", "Tasks that are not over, by state.", "state", live)
    yield counters("fairlead_task_moves", "Changes of tasks by new state.", "state", tallies.moves)
    yield gauge("fairlead_offers", "Offers that are out.", len(master.offers))
    yield counter("fairlead_offers_made", "Offers made.", master.offers_made)
    yield counters("fairlead_offers_ended", "Offers by how they ended.", "end", ends)
    yield counters("fairlead_launches", "Tasks of accepts by answer.", "answer", tallies.launches)
    yield counter("fairlead_allocation_cycles", "Allocation cycles with something to do.", work.cycles)
    yield counter("fairlead_allocation_decisions", "Units granted.", work.decisions)


def _amounts(master: Master) -> Families:
    kinds = master.kinds
    total, free, used, offered = kinds.zero, kinds.zero, kinds.zero, kinds.zero
    for agent_id in list(master.agents):
        agent = master.agents.get(agent_id)
        if agent is not None and agent.is_connected:
            total = add(total, agent.total)
            free = add(free, master.allocator.free(agent_id))
            used = add(used, agent.used) if agent.used else used
        yield None
    for offer in list(master.offers.values()):
        offered = add(offered, scale(offer.unit, offer.units))
        yield None
    allocated: Vector = tuple([max(0, all_of - left) for all_of, left in zip(total, free, strict=True)])
    for name, text, vector in (
        ("capacity", "What connected agents have.", total),
        ("allocated", "What is offered or held by tasks.", allocated),
        ("offered", "What is offered and not taken.", offered),
        ("used", "What agents measured.", used),
    ):
        yield resources(f"fairlead_resource_{name}", text, amounts_of(kinds, vector))


def _roles(master: Master) -> Families:
    report = yield from master.allocator.role_report_in_parts()
    shown = nlargest(ROLES_MAX, report, key=lambda row: row.dominant_share)
    yield gauge("fairlead_roles", "Roles with a framework; a series is kept of a hundred.", len(report))
    shares = {str(row.role): row.dominant_share for row in shown}
    fair_shares = {str(row.role): row.fair_share for row in shown}
    pending = {str(row.role): float(row.pending) for row in shown}
    yield gauges("fairlead_role_dominant_share", "Largest share of any resource.", "role", shares)
    yield gauges("fairlead_role_fair_share", "Share by weight.", "role", fair_shares)
    yield gauges("fairlead_role_pending_units", "Units wanted and not offered.", "role", pending)
