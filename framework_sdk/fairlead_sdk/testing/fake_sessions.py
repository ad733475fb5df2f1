"""The fake's frameworks: who is connected, what they want, what was offered to them, and what they asked for.

One message of a framework is answered by one message, in order, after everything in it was carried out.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from fairlead_proto.convert import read_classes, read_task
from fairlead_proto.fields import InvalidFieldError, read_id, read_role
from fairlead_proto.ids import AgentId, FrameworkId, TaskId
from fairlead_proto.resources import ResourceKinds, Vector, add, fits, missing, scale, units_that_fit
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import DemandClass, TaskSpec, TaskStatus
from fairlead_proto.v1 import framework_pb2, types_pb2
from fairlead_sdk.events import AcceptItem, CallCode, ErrorCode, Rejection
from fairlead_sdk.testing import fake_wire
from fairlead_sdk.testing.fake_cluster import FakeAgent, FakeCluster, FakeTask
from fairlead_sdk.testing.memory_link import MemoryLink
from fairlead_sdk.testing.outcomes import Script

REPEAT_OFFER_MS = 1_000
"""How long a declined pairing is left alone when the decline asks for nothing: the fake's clock would stand still for ever
between a scheduler that declines everything and a master that offers it again."""

DECLINE_TTL_MS = 5_000
"""The default of the schema."""

QUANTUM = {"cpus": 100, "mem": 256 * 2**20}
"""What a framework that declares no demand is offered at a time: a master's default."""


@dataclass(slots=True, kw_only=True)
class FakeOffer:
    """Room promised to one framework."""

    offer_id: str
    agent: FakeAgent
    demand: DemandClass
    units: int
    expires_ms: int


@dataclass(slots=True, kw_only=True, eq=False)
class FakeFramework:
    """One framework the fake knows."""

    framework_id: str
    name: str
    role: str
    link: MemoryLink | None = None
    version: int = 0
    classes: dict[str, DemandClass] = field(default_factory=dict)
    wanted: dict[str, int] = field(default_factory=dict)
    """Class id to units not launched yet, offered ones among them."""
    offers: dict[str, FakeOffer] = field(default_factory=dict)
    refused_until_ms: dict[tuple[str, str], int] = field(default_factory=dict)
    """(class id, agent id or empty for all) to when it may be offered again."""
    left_alone_until_ms: dict[tuple[str, str], int] = field(default_factory=dict)
    """The same where nothing was asked for: until the next demand at the latest."""


class FakeSessions:
    """What the fake does about each call. Answers collect in ``outbox`` until the owner sends them."""

    def __init__(
        self,
        cluster: FakeCluster,
        script: Script,
        kinds: ResourceKinds,
        now_ms: Callable[[], int],
        lease_ms: int,
    ) -> None:
        self.frameworks: dict[str, FakeFramework] = {}
        self.outbox: list[tuple[FakeFramework, framework_pb2.FrameworkEvent]] = []
        self.lease_ms = lease_ms
        self.rejections: list[Rejection] = []
        """Given to the tasks of the next accepts, one an accept."""
        self._cluster = cluster
        self._script = script
        self._kinds = kinds
        self._now_ms = now_ms
        self._offers_made = 0

    def tell(self, framework: FakeFramework, event: framework_pb2.FrameworkEvent) -> None:
        """Add to what this framework is sent next."""
        self.outbox.append((framework, event))

    def disconnect(self, framework: FakeFramework) -> None:
        """A session is over: its demand and its offers go, its tasks stay."""
        framework.link = None
        framework.version = 0
        framework.classes = {}
        framework.wanted = {}
        framework.refused_until_ms = {}
        framework.left_alone_until_ms = {}
        for offer in list(framework.offers.values()):
            self._take_back(framework, offer)

    # --- calls ---------------------------------------------------------------------------------------------------

    def set_demand(self, framework: FakeFramework, request_id: int, message: framework_pb2.SetDemand) -> None:
        """Replace what a framework wants, unless it can never be had."""
        if message.version <= framework.version:
            detail = f"version: expected above {framework.version}, got {message.version}"
            self.tell(framework, fake_wire.result(request_id, CallCode.INVALID, detail))
            return
        try:
            classes = [
                demand if demand.is_declared else replace(demand, unit=self._kinds.vector(QUANTUM))
                for demand in read_classes("classes", message.classes, self._kinds)
            ]
        except InvalidFieldError as error:
            answer = fake_wire.result(request_id, CallCode.INVALID, str(error), version=framework.version)
            self.tell(framework, answer)
            return
        hopeless = [verdict for demand in classes if (verdict := self._infeasible(demand)) is not None]
        if hopeless:
            answer = fake_wire.result(
                request_id,
                CallCode.INFEASIBLE,
                hopeless[0].detail,
                version=framework.version,
                infeasible=hopeless,
            )
            self.tell(framework, answer)
            return
        framework.version = message.version
        before, framework.classes = framework.classes, {demand.class_id: demand for demand in classes}
        framework.wanted = {demand.class_id: demand.units for demand in classes}
        framework.left_alone_until_ms = {}
        if message.lift_declines or not message.HasField("lift_declines"):
            framework.refused_until_ms = {}
        framework.refused_until_ms = {
            (class_id, agent_id): until_ms
            for (class_id, agent_id), until_ms in framework.refused_until_ms.items()
            if _is_same(before.get(class_id), framework.classes.get(class_id))
        }
        self.tell(framework, fake_wire.result(request_id, version=framework.version))

    def _infeasible(self, demand: DemandClass) -> framework_pb2.Infeasible | None:
        if not self._cluster.agents:
            return None
        matching = [agent for agent in self._cluster.agents.values() if _meets(agent, demand)]
        if any(fits(demand.unit, agent.total) for agent in matching):
            return None
        lacks = {agent.agent_id: missing(demand.unit, agent.total) for agent in matching}
        best = min(lacks, key=lambda agent_id: sum(lacks[agent_id]), default="")
        return fake_wire.infeasible(
            demand.class_id,
            best_agent_id=best,
            missing=lacks.get(best, self._kinds.zero),
            kinds=self._kinds,
        )

    def accept(
        self, framework: FakeFramework, request_id: int, message: framework_pb2.Accept
    ) -> list[FakeTask]:
        """Launch what fits the offer, answer task by task, and return the launched tasks, which are not started yet."""
        offer = framework.offers.get(message.offer_id)
        forced = self.rejections.pop(0) if self.rejections else None
        items: list[AcceptItem] = []
        launched: list[FakeTask] = []
        used = self._kinds.zero
        for spec in message.tasks:
            verdict = self._judge(framework, offer, spec, forced, used, len(launched))
            if isinstance(verdict, AcceptItem):
                items.append(verdict)
                continue
            assert offer is not None, "a task was taken without an offer"
            used = add(used, verdict.resources)
            outcome = self._script.next(verdict)
            launched.append(self._cluster.launch(framework.framework_id, verdict, offer.agent, outcome))
            items.append(AcceptItem(task_id=verdict.task_id))
        if offer is not None:
            del framework.offers[offer.offer_id]
            class_id = offer.demand.class_id
            if class_id in framework.wanted:
                framework.wanted[class_id] = max(0, framework.wanted[class_id] - len(launched))
            room = scale(offer.demand.unit, offer.units)
            self._cluster.release(offer.agent, tuple(a - b for a, b in zip(room, used, strict=True)))
        self.tell(framework, fake_wire.accept_result(request_id, message.offer_id, items))
        return launched

    def _judge(
        self,
        framework: FakeFramework,
        offer: FakeOffer | None,
        message: types_pb2.TaskSpec,
        forced: Rejection | None,
        used: Vector,
        launched: int,
    ) -> TaskSpec | AcceptItem:
        def reject(rejection: Rejection, detail: str) -> AcceptItem:
            return AcceptItem(task_id=message.task_id, rejection=rejection, detail=detail)

        try:
            spec = read_task("task", message, self._kinds)
        except InvalidFieldError as error:
            return reject(Rejection.INVALID, str(error))
        if forced is not None:
            return reject(forced, "as the test asked")
        if offer is None:
            return reject(Rejection.EXPIRED, "the offer is over")
        if (framework.framework_id, spec.task_id) in self._cluster.tasks:
            return reject(Rejection.INVALID, f"task id {spec.task_id}: expected one that was not used before")
        room = scale(offer.demand.unit, offer.units)
        if launched == offer.units or not fits(add(used, spec.resources), room):
            return reject(Rejection.NO_FIT, f"{spec.task_id} exceeds what is left of {offer.offer_id}")
        return spec

    def decline(self, framework: FakeFramework, request_id: int, message: framework_pb2.Decline) -> None:
        """Take offers back, and leave alone for a time what was refused."""
        scope = framework_pb2.Decline.Scope
        for offer_id in message.offer_ids:
            offer = framework.offers.get(offer_id)
            if offer is None:
                continue
            agent_id = "" if message.scope == scope.SCOPE_CLASS else offer.agent.agent_id
            pairing = (offer.demand.class_id, agent_id)
            if message.scope == scope.SCOPE_NOTHING:
                framework.left_alone_until_ms[pairing] = self._now_ms() + REPEAT_OFFER_MS
            else:
                framework.refused_until_ms[pairing] = self._now_ms() + (message.ttl_ms or DECLINE_TTL_MS)
            self._take_back(framework, offer)
        self.tell(framework, fake_wire.result(request_id))

    def kill(self, framework: FakeFramework, request_id: int, message: framework_pb2.Kill) -> None:
        """End tasks; unknown ids are named in the answer."""
        unknown = []
        for task_id in message.task_ids:
            task = self._cluster.tasks.get((framework.framework_id, task_id))
            if task is None or task.agent.is_recovering:
                unknown.append(task_id)
            else:
                self._cluster.kill(task, message.grace_period_ms)
        detail = f"tasks not known: {', '.join(unknown)}" if unknown else ""
        code = CallCode.UNKNOWN if unknown else CallCode.OK
        self.tell(framework, fake_wire.result(request_id, code, detail))

    def acknowledge(self, framework: FakeFramework, message: framework_pb2.Acknowledge) -> None:
        """Forget statuses up to the sequence numbers given."""
        for item in message.items:
            task = self._cluster.tasks.get((framework.framework_id, item.task_id))
            if task is not None:
                task.unacknowledged = [
                    status for status in task.unacknowledged if status.sequence > item.sequence
                ]

    def reconcile(self, framework: FakeFramework, request_id: int, message: framework_pb2.Reconcile) -> None:
        """Tell the state of tasks, then the end marker."""
        recovering = [agent.agent_id for agent in self._cluster.agents.values() if agent.is_recovering]
        of_framework = [
            task for (owner, _), task in self._cluster.tasks.items() if owner == framework.framework_id
        ]
        asked = message.task_ids or [task.task_id for task in of_framework if not task.is_over]
        known = {task.task_id: task for task in of_framework if not task.agent.is_recovering}
        statuses: list[TaskStatus] = []
        for task_id in asked:
            task = known.get(task_id)
            if task is not None and task.last is not None and task.last.state is task.state and task.is_over:
                statuses.append(task.last)
            elif task is not None:
                statuses.append(self._cluster.status(task, Reason.RECONCILIATION, "as asked"))
            elif not recovering:
                statuses.append(self._unknown(framework, task_id))
        if statuses:
            self.tell(framework, fake_wire.statuses(statuses))
        self.tell(framework, fake_wire.reconcile_done(request_id, recovering))

    def _unknown(self, framework: FakeFramework, task_id: str) -> TaskStatus:
        return TaskStatus(
            framework_id=FrameworkId(framework.framework_id),
            task_id=TaskId(read_id("task_id", task_id)),
            agent_id=AgentId(""),
            sequence=0,
            state=TaskState.LOST,
            reason=Reason.UNKNOWN_TASK,
            message="nobody knows this task",
        )

    # --- offers --------------------------------------------------------------------------------------------------

    def allocate(self) -> int | None:
        """Offer what is free to who wants it, first come first served; returns when a refused pairing opens again."""
        now_ms = self._now_ms()
        opens_ms: list[int] = []
        for framework in self.frameworks.values():
            made = [
                self._offer(framework, demand, agent, now_ms, opens_ms)
                for demand in framework.classes.values()
                for agent in self._cluster.agents.values()
            ]
            offers = [offer for offer in made if offer is not None]
            if offers:
                self.tell(framework, fake_wire.offers(offers))
        return min(opens_ms, default=None)

    def _offer(
        self,
        framework: FakeFramework,
        demand: DemandClass,
        agent: FakeAgent,
        now_ms: int,
        opens_ms: list[int],
    ) -> framework_pb2.Offer | None:
        offered = sum(
            offer.units for offer in framework.offers.values() if offer.demand.class_id == demand.class_id
        )
        wanted = framework.wanted[demand.class_id] - offered
        if wanted <= 0 or not agent.is_present or not _meets(agent, demand):
            return None
        units = min(wanted, units_that_fit(demand.unit, agent.free))
        if units <= 0:
            return None
        refused_until_ms = max(
            refused.get((demand.class_id, agent_id), 0)
            for refused in (framework.refused_until_ms, framework.left_alone_until_ms)
            for agent_id in ("", agent.agent_id)
        )
        if refused_until_ms > now_ms:
            opens_ms.append(refused_until_ms)
            return None
        self._cluster.reserve(agent, scale(demand.unit, units))
        self._offers_made += 1
        offer = FakeOffer(
            offer_id=f"offer-{self._offers_made}",
            agent=agent,
            demand=demand,
            units=units,
            expires_ms=now_ms + self.lease_ms,
        )
        framework.offers[offer.offer_id] = offer
        return fake_wire.offer(
            offer.offer_id,
            agent_id=agent.agent_id,
            attributes=agent.attributes,
            class_id=demand.class_id,
            version=framework.version,
            units=units,
            unit=demand.unit,
            kinds=self._kinds,
            lease_ms=self.lease_ms,
        )

    def rescind(self, framework: FakeFramework, offers: list[FakeOffer], reason: str) -> None:
        """Take offers back and say so."""
        if not offers:
            return
        for offer in offers:
            self._take_back(framework, offer)
        self.tell(framework, fake_wire.rescind([offer.offer_id for offer in offers], reason))

    def _take_back(self, framework: FakeFramework, offer: FakeOffer) -> None:
        del framework.offers[offer.offer_id]
        if offer.agent.agent_id in self._cluster.agents:
            self._cluster.release(offer.agent, scale(offer.demand.unit, offer.units))

    # --- sessions ------------------------------------------------------------------------------------------------

    def greet(self, hello: framework_pb2.Hello) -> FakeFramework:
        """Admit a framework, or give a known one its new session.

        Raises:
            Refusal: the session is not to be.
        """
        try:
            role = read_role("role", hello.role)
        except InvalidFieldError as error:
            raise Refusal(ErrorCode.INVALID, str(error)) from None
        if not hello.framework_id:
            framework_id = f"framework-{len(self.frameworks) + 1}"
            framework = FakeFramework(framework_id=framework_id, name=hello.name, role=role)
            self.frameworks[framework_id] = framework
        else:
            known = self.frameworks.get(hello.framework_id)
            if known is None:
                raise Refusal(ErrorCode.UNKNOWN_FRAMEWORK, f"framework {hello.framework_id} is not known")
            framework = known
        return framework


class Refusal(Exception):
    """A session that is not to be, and what the framework is told."""

    def __init__(self, code: ErrorCode, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def _is_same(before: DemandClass | None, now: DemandClass | None) -> bool:
    """Whether what was declined of a class is still about the same thing."""
    if before is None or now is None:
        return False
    return (before.unit, before.constraints) == (now.unit, now.constraints)


def _meets(agent: FakeAgent, demand: DemandClass) -> bool:
    return all(constraint.holds(agent.attributes) for constraint in demand.constraints)
