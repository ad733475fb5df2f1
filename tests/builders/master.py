"""Builders for tests of the master's core: a master to talk to, and events with everything but the point defaulted."""

from collections.abc import Mapping, Sequence
from typing import Any

from fairlead_master.allocation.api import AllocationSettings
from fairlead_master.core import events, invariants
from fairlead_master.core.actions import Action
from fairlead_master.core.machine import Machine, Remembered, is_in_parts
from fairlead_master.core.settings import CoreSettings
from fairlead_proto.codes import CallCode, DeclineScope
from fairlead_proto.framework_calls import (
    FrameworkConnected,
    KillAsked,
    OffersDeclined,
    ReconcileAsked,
    StatusesAcknowledged,
    TeardownAsked,
)
from fairlead_proto.framework_events import (
    AnswerAccept,
    AnswerCall,
    LaunchAnswer,
    OfferTerms,
    SendOffers,
    WelcomeFramework,
)
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, OfferId, Role, TaskId
from fairlead_proto.orders import LaunchTasks
from fairlead_proto.reports import AgentConnected
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import Constraint, DemandClass, RunningTask, TaskSpec, TaskStatus

KINDS = ResourceKinds()
GIB = 2**30


def resources(cpus: float = 0, gib: float = 0) -> Vector:
    """A vector of cores and memory."""
    return (round(cpus * 1000), round(gib * GIB), 0, 0)


UNIT = resources(cpus=1, gib=1)


def a_class(
    class_id: str = "c",
    *,
    unit: Vector = UNIT,
    units: int = 1,
    constraints: Sequence[Constraint] = (),
    waiting: Sequence[str] = (),
) -> DemandClass:
    """A demand class of one core and one GiB, once."""
    return DemandClass(
        class_id=ClassId(class_id),
        unit=unit,
        units=units,
        constraints=tuple(constraints),
        waiting_task_ids=tuple(map(TaskId, waiting)),
    )


def a_spec(task_id: str = "t1", *, unit: Vector = UNIT, command: Sequence[str] = ("true",)) -> TaskSpec:
    """A task of one core and one GiB."""
    return TaskSpec(task_id=TaskId(task_id), resources=unit, command=tuple(command), name=task_id)


def a_status(
    framework_id: str,
    task_id: str = "t1",
    state: TaskState = TaskState.RUNNING,
    sequence: int = 1,
    *,
    agent_id: str = "a1-1",
    reason: Reason = Reason.NONE,
    exit_code: int | None = None,
) -> TaskStatus:
    """A report of an agent."""
    return TaskStatus(
        framework_id=FrameworkId(framework_id),
        task_id=TaskId(task_id),
        agent_id=AgentId(agent_id),
        sequence=sequence,
        state=state,
        reason=reason,
        exit_code=exit_code,
    )


def a_running(
    framework_id: str,
    task_id: str = "t1",
    state: TaskState = TaskState.RUNNING,
    sequence: int = 1,
    *,
    unit: Vector = UNIT,
    ran_ms: int = 0,
) -> RunningTask:
    """A task as an agent names it when it registers."""
    return RunningTask(
        framework_id=FrameworkId(framework_id),
        spec=a_spec(task_id, unit=unit),
        state=state,
        sequence=sequence,
        ran_ms=ran_ms,
    )


class Cluster:
    """A master under test: events in, whole lists of actions out, all invariants checked after every step.

    Time stands still unless a test moves it. Agents are called a1-1, a1-2, … and frameworks f1-1, f1-2, … in the order
    in which they connect, as the master (of epoch 1) names them.
    """

    def __init__(
        self,
        *,
        remembered: Remembered | None = None,
        now_ms: int = 1_000_000,
        policy: str = "drf",
        **settings: Any,
    ) -> None:
        self.now_ms = now_ms
        self.session = 0
        self.request = 0
        core = CoreSettings(allocation=AllocationSettings(policy=policy), **settings)
        self.machine = Machine(KINDS, core, remembered or Remembered(epoch=1), now_ms)
        self.master = self.machine.master
        invariants.check(self.master)

    def step(self, event: events.Event) -> list[Action]:
        """Take one event now."""
        actions = self.machine.step(event, self.now_ms)
        invariants.check(self.master)
        return actions

    def tick(self) -> list[Action]:
        """Say that a deadline has come."""
        return self.step(events.Ticked())

    def wait(self, milliseconds: int) -> list[Action]:
        """Let time pass, with every tick that is due on the way; gives all their actions."""
        end_ms = self.now_ms + milliseconds
        actions: list[Action] = []
        while (due := self.machine.next_deadline_ms(self.now_ms)) is not None and due <= end_ms:
            self.now_ms = due
            actions += self.tick()
            after = self.machine.next_deadline_ms(self.now_ms)
            is_done = after is None or after > due
            assert is_done or is_in_parts(self.master), f"a tick at {due} leaves a deadline at {after}"
        self.now_ms = end_ms
        return actions

    def agent(
        self,
        *,
        cpus: float = 4,
        gib: float = 8,
        agent_id: str | None = None,
        incarnation: int = 1,
        tasks: Sequence[RunningTask] = (),
        unacknowledged: Sequence[TaskStatus] = (),
        attributes: Mapping[str, str] | None = None,
        last_epoch: int = 0,
        agent_time_ms: int = 0,
        answers_ping: bool = False,
    ) -> list[Action]:
        """Connect an agent in a new session, ``self.session`` after that."""
        self.session += 1
        return self.step(
            AgentConnected(
                session=self.session,
                agent_id=AgentId(agent_id) if agent_id is not None else None,
                incarnation=incarnation,
                hostname="host",
                total=resources(cpus, gib),
                attributes=attributes or {},
                tasks=tuple(tasks),
                unacknowledged=tuple(unacknowledged),
                last_epoch=last_epoch,
                agent_time_ms=agent_time_ms,
                answers_ping=answers_ping,
            )
        )

    def framework(
        self,
        *,
        framework_id: str | None = None,
        role: str = "default",
        principal: str = "",
        failover_timeout_ms: int = 0,
        last_epoch: int = 0,
        weight: float | None = None,
        peer: str = "",
    ) -> list[Action]:
        """Connect a framework in a new session, ``self.session`` after that."""
        self.session += 1
        return self.step(
            FrameworkConnected(
                session=self.session,
                framework_id=FrameworkId(framework_id) if framework_id is not None else None,
                name="test",
                role=Role(role),
                principal=principal,
                failover_timeout_ms=failover_timeout_ms,
                last_epoch=last_epoch,
                weight=weight,
                peer=peer,
            )
        )

    def new_agent(self, **changes: Any) -> int:
        """Connect an agent that is admitted; gives its session."""
        self.agent(**changes)
        return self.session

    def new_framework(self, **changes: Any) -> tuple[int, FrameworkId]:
        """Connect a framework that is admitted; gives its session and its id."""
        actions = self.framework(**changes)
        welcome = next(action for action in actions if isinstance(action, WelcomeFramework))
        return self.session, welcome.framework_id

    def demand(
        self,
        session: int,
        *classes: DemandClass,
        version: int | None = None,
        cost_bytes: int = 0,
        lift_declines: bool = True,
    ) -> list[Action]:
        """Set what a framework wants; the version grows by itself."""
        self.request += 1
        return self.step(
            events.DemandSet(
                session=session,
                request_id=self.request,
                version=self.request if version is None else version,
                classes=classes,
                cost_bytes=cost_bytes,
                lift_declines=lift_declines,
            )
        )

    def offers(self) -> list[OfferTerms]:
        """The offers that an allocation cycle makes now."""
        self.now_ms += self.master.settings.allocation_window_ms
        return [offer for action in self.tick() if isinstance(action, SendOffers) for offer in action.offers]

    def accept(self, session: int, offer_id: str, *specs: TaskSpec | events.InvalidTask) -> list[Action]:
        """Take an offer."""
        self.request += 1
        return self.step(
            events.OfferAccepted(
                session=session,
                request_id=self.request,
                offer_id=OfferId(offer_id),
                tasks=specs,
            )
        )

    def decline(
        self,
        session: int,
        *offer_ids: str,
        scope: DeclineScope = DeclineScope.NOTHING,
        ttl_ms: int = 0,
    ) -> list[Action]:
        """Give offers back."""
        self.request += 1
        return self.step(
            OffersDeclined(
                session=session,
                request_id=self.request,
                offer_ids=tuple(map(OfferId, offer_ids)),
                reason="test",
                scope=scope,
                ttl_ms=ttl_ms,
            )
        )

    def launch(self, session: int, *task_ids: str, unit: Vector = UNIT) -> list[Action]:
        """Ask for room for these tasks, get offers, launch them; gives the launches."""
        self.demand(session, a_class(units=len(task_ids), unit=unit))
        left = list(task_ids)
        launches: list[Action] = []
        for offer in self.offers():
            specs = [a_spec(left.pop(0), unit=unit) for _ in range(offer.units)]
            actions = self.accept(session, offer.offer_id, *specs)
            launches += [action for action in actions if isinstance(action, LaunchTasks)]
        assert not left, f"no room for {left}"
        return launches

    def report(self, session: int, *statuses: TaskStatus) -> list[Action]:
        """Report from an agent."""
        return self.step(events.StatusesReported(session=session, statuses=statuses))

    def kill(self, session: int, *task_ids: str, grace_ms: int = 0) -> list[Action]:
        """Ask for the end of tasks."""
        self.request += 1
        return self.step(
            KillAsked(
                session=session,
                request_id=self.request,
                task_ids=tuple(map(TaskId, task_ids)),
                grace_period_ms=grace_ms,
            )
        )

    def acknowledge(self, session: int, *items: tuple[str, int, str]) -> list[Action]:
        """Acknowledge statuses: (task, sequence, agent or empty)."""
        typed = tuple((TaskId(task), sequence, AgentId(agent)) for task, sequence, agent in items)
        return self.step(StatusesAcknowledged(session=session, items=typed))

    def reconcile(self, session: int, *task_ids: str) -> list[Action]:
        """Ask where tasks are."""
        self.request += 1
        return self.step(
            ReconcileAsked(session=session, request_id=self.request, task_ids=tuple(map(TaskId, task_ids)))
        )

    def agent_leaves(self, session: int) -> list[Action]:
        """End the session of an agent."""
        return self.step(events.AgentDisconnected(session=session, reason="gone"))

    def framework_leaves(self, session: int) -> list[Action]:
        """End the session of a framework."""
        return self.step(events.FrameworkDisconnected(session=session))

    def teardown(self, session: int) -> list[Action]:
        """End a framework."""
        self.request += 1
        return self.step(TeardownAsked(session=session, request_id=self.request))

    def state(self, framework_id: str, task_id: str = "t1") -> TaskState | None:
        """Where a task is, as the master sees it."""
        task = self.master.find_task((FrameworkId(framework_id), TaskId(task_id)))
        return task.state if task is not None else None


def answered(
    cluster: Cluster, session: int, code: CallCode, detail: str = "", version: int = 0
) -> AnswerCall:
    """The answer to the last call of a session."""
    return AnswerCall(
        session=session, request_id=cluster.request, code=code, detail=detail, demand_version=version
    )


def accept_answered(cluster: Cluster, session: int, offer_id: str, *answers: LaunchAnswer) -> AnswerAccept:
    """The answer to its last accept."""
    return AnswerAccept(
        session=session, request_id=cluster.request, offer_id=OfferId(offer_id), answers=answers
    )


def a_pair(**agent: float) -> tuple[Cluster, int, int]:
    """A cluster with an agent and a framework, and their sessions."""
    cluster = Cluster()
    return cluster, cluster.new_agent(**agent), cluster.new_framework()[0]
