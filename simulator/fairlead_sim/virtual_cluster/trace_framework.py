"""A framework that works off its jobs as fast as it is offered places, by the protocol and nothing else.

It says what it wants when it has something new to want, takes every offer at once, acknowledges each status, and opens the
next stage of a job when it has heard of the last end of the one before. What one turn of the master has for it is answered
by one message.

A *gang* holds the offers made to it until there are enough for all of its tasks. It can hold them for no longer than their
leases; before the first ends it gives all back and wants none for a time that is drawn (as in ``pool``).
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from fairlead_master.core import events
from fairlead_proto.codes import CallCode, DeclineScope
from fairlead_proto.framework_calls import (
    FrameworkConnected,
    OffersDeclined,
    StatusesAcknowledged,
    TeardownAsked,
)
from fairlead_proto.framework_events import (
    AnswerAccept,
    AnswerCall,
    ForwardStatuses,
    OfferTerms,
    SendOffers,
    WelcomeFramework,
)
from fairlead_proto.ids import AgentId, ClassId, Role, TaskId
from fairlead_proto.task_state import TERMINAL, TaskState
from fairlead_proto.tasks import TaskSpec, TaskStatus
from fairlead_sim.engine import Engine
from fairlead_sim.observer import Batch
from fairlead_sim.pool.framework import ActiveJob, Gang, PoolFramework, Waiting
from fairlead_sim.virtual_cluster.launches import Launch, Programs
from fairlead_sim.virtual_cluster.network import Connection, End, Message, Network
from fairlead_sim.workload import Job

_NONE: Final[Mapping[str, str]] = {}
"""What tasks have of labels and variables: one for all, as nobody changes it."""


class TraceFramework:
    """One framework, its session and its work."""

    def __init__(
        self,
        name: str,
        role: str,
        engine: Engine,
        network: Network,
        programs: Programs,
        *,
        gang_patience_ms: int,
        finished: Callable[["TraceFramework", Job], None],
    ) -> None:
        """Registers at once; ``finished`` is told of each job when its last task is known to be over."""
        self.name = name
        self.role = Role(role)
        self.jobs = 0
        """Under way."""
        self._engine = engine
        self._programs = programs
        self._gang_patience_ms = gang_patience_ms
        self._finished = finished
        self._launches: dict[TaskId, Launch] = {}
        """Of each task that is not known to be over."""
        self._gangs: dict[ClassId, Gang[OfferTerms]] = {}
        self._requests = 0
        self._wants_more = False
        connection = network.dial(name, End(self._received, self._lost))
        assert connection is not None, f"framework {name}: the master of a trace is there"
        self._connection = connection
        self._session = connection.number
        self._work: PoolFramework
        hello = FrameworkConnected(session=self._session, framework_id=None, name=name, role=self.role)
        connection.open([hello])

    def submit(self, job: Job) -> None:
        """Run a job."""
        self.jobs += 1
        self._open_stage(ActiveJob(job, job.stages()))
        self._connection.send_up([self._demand()])

    def leave(self) -> None:
        """Unregister. There is nothing under way any more."""
        self._connection.send_up([TeardownAsked(session=self._session, request_id=self._next_request())])
        self._connection.close()

    def _open_stage(self, active: ActiveJob) -> None:
        bundles = active.stages[active.stage]
        active.ready_ms = self._engine.now_ms
        active.left = sum(bundle.tasks for bundle in bundles)
        for bundle in bundles:
            self._work.enqueue(active, bundle)
        self._wants_more = True

    def _lost(self, _connection: Connection) -> None:
        raise AssertionError(f"framework {self.name}: lost its session on a cluster in which nothing fails")

    def _received(self, _connection: Connection, orders: Message) -> None:
        """A message of the master."""
        message: list[events.Event] = []
        acknowledged: list[tuple[TaskId, int, AgentId]] = []
        for order in orders:
            match order:
                case ForwardStatuses():
                    for status in order.statuses:
                        acknowledged.append((status.task_id, status.sequence, status.agent_id))
                        if status.state is not TaskState.RUNNING:
                            self._follow(status)
                case SendOffers():
                    for offer in order.offers:
                        self._consider(offer, message)
                case AnswerAccept():
                    for answer in order.answers:
                        assert answer.rejection is None, (
                            f"framework {self.name}: nobody else had what it was offered: {answer}"
                        )
                case WelcomeFramework():
                    self._work = PoolFramework(order.framework_id, self.name, self.role)
                case AnswerCall():
                    assert order.code is CallCode.OK, f"framework {self.name}: {order}"
                case _:
                    raise AssertionError(
                        f"framework {self.name}: {order} on a cluster in which nothing fails"
                    )
        if acknowledged:
            message.append(StatusesAcknowledged(session=self._session, items=tuple(acknowledged)))
        if self._wants_more:
            # Behind the acceptances: it is wanted beyond what they take.
            message.append(self._demand())
        if message:
            self._connection.send_up(message)

    def _demand(self) -> events.DemandSet:
        self._wants_more = False
        request = self._next_request()
        return events.DemandSet(
            session=self._session, request_id=request, version=request, classes=tuple(self._work.demand())
        )

    def _next_request(self) -> int:
        self._requests += 1
        return self._requests

    def _follow(self, status: TaskStatus) -> None:
        """A task has moved: to its end, unless its start was slow."""
        if status.state not in TERMINAL:
            return
        assert status.state is TaskState.FINISHED, f"framework {self.name}: {status}, where nothing fails"
        active = self._launches.pop(status.task_id).active
        active.left -= 1
        if active.left:
            return
        active.stage += 1
        if active.stage < len(active.stages):
            self._open_stage(active)
            return
        self.jobs -= 1
        self._finished(self, active.job)

    def _consider(self, offer: OfferTerms, message: list[events.Event]) -> None:
        queue = self._work.queues[offer.class_id]
        if not queue.is_gang:
            message.append(self._accept(offer))
            return
        gang = self._gangs.setdefault(offer.class_id, Gang())
        if gang.collect(offer, of=queue.tasks):
            del self._gangs[offer.class_id]
            message += [self._accept(held) for held in gang.held]
        elif gang.patience is None:
            patience_ms = min(self._gang_patience_ms, offer.lease_ms // 2)
            gang.patience = self._engine.maybe_after(patience_ms, partial(self._give_up, offer.class_id))

    def _accept(self, offer: OfferTerms) -> events.OfferAccepted:
        specs: list[TaskSpec] = []
        for waiting, units in self._work.take(offer.class_id, offer.units):
            specs += self._launch(offer, waiting, units)
        return events.OfferAccepted(
            session=self._session,
            request_id=self._next_request(),
            offer_id=offer.offer_id,
            tasks=tuple(specs),
        )

    def _launch(self, offer: OfferTerms, waiting: Waiting, units: int) -> list[TaskSpec]:
        batch = Batch(
            job=waiting.job.job,
            bundle=waiting.bundle,
            units=units,
            host=offer.hostname,
            ready_ms=waiting.job.ready_ms,
            started_ms=0,  # Its host says when.
        )
        launch = Launch(batch, waiting.job)
        command = self._programs.add(launch)
        task_ids = [TaskId(f"{command}-{number}") for number in range(units)]
        self._launches.update(dict.fromkeys(task_ids, launch))
        unit, words = offer.unit, (command,)
        return [
            TaskSpec(task_id=task_id, resources=unit, command=words, environment=_NONE, labels=_NONE)
            for task_id in task_ids
        ]

    def _give_up(self, class_id: ClassId) -> None:
        """A gang has held offers for too long: it gives them back and pauses."""
        gang = self._gangs[class_id]
        self._connection.send_up(
            [
                OffersDeclined(
                    session=self._session,
                    request_id=self._next_request(),
                    offer_ids=tuple(offer.offer_id for offer in gang.held),
                    reason="not enough of them for all tasks of a gang",
                    scope=DeclineScope.CLASS,
                    ttl_ms=gang.pause_ms(self._gang_patience_ms, self._engine.random),
                )
            ]
        )
        self._gangs[class_id] = Gang(attempts=gang.attempts + 1)
