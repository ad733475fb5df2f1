"""Random histories of the simple path's state: nothing launched twice at a time, everything ends, the books agree.

The other side is played by a small honest cluster of plain values: it launches what is accepted, rejects what it feels like,
loses streams and agents, and repeats itself.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_proto.codes import CallCode, Rejection
from fairlead_proto.framework_events import AnswerAccept, AnswerCall, Heartbeat
from fairlead_proto.ids import AgentId, FrameworkId, OfferId, TaskId
from fairlead_proto.task_state import RETRIABLE, TaskState
from fairlead_proto.tasks import TaskStatus
from fairlead_sdk.calls import Demand, Launch
from fairlead_sdk.events import AcceptItem, DemandAnswered, Event, Offer, OffersReceived, StatusReceived
from fairlead_sdk.task import TaskResult
from fairlead_sdk.workload import Workload
from fairlead_sdk.workload_actions import Action, EndTasks, GiveBack, JobEnded, TakeOffer
from tests.sdk.builders import a_task

ENDINGS = (TaskState.FINISHED, TaskState.FAILED, TaskState.LOST, TaskState.DROPPED, TaskState.GONE)
REJECTIONS = (Rejection.EXPIRED, Rejection.AGENT_GONE, Rejection.NO_FIT, Rejection.UNAUTHORIZED)


@dataclass
class Attempt:
    job_id: str
    state: TaskState = TaskState.STAGING
    sequence: int = 0


@dataclass
class Cluster:
    """Plays master and agents, and keeps the workload to its promises."""

    workload: Workload
    chance: random.Random
    demand: dict[str, Demand] = field(default_factory=dict)
    asked: dict[str, Launch] = field(default_factory=dict)
    live: dict[str, Attempt] = field(default_factory=dict)
    launched: set[str] = field(default_factory=set)
    launched_in_order: list[str] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    results: dict[str, object] = field(default_factory=dict)
    offers_made: int = 0
    now_ms: int = 0

    def tell(self, event: Event) -> None:
        self.carry_out(self.workload.step(event, self.now_ms))

    def carry_out(self, actions: Sequence[Action]) -> None:
        for action in actions:
            match action:
                case TakeOffer():
                    assert action.offer.offer_id not in self.taken, "an offer was taken twice"
                    self.taken.add(action.offer.offer_id)
                    assert len(action.launches) <= action.offer.units
                    for launch in action.launches:
                        self.ask(launch)
                case GiveBack():
                    assert not self.taken.intersection(action.offer_ids)
                    self.taken.update(action.offer_ids)
                case EndTasks():
                    for task_id in action.task_ids:
                        if task_id in self.live:
                            self.live[task_id].state = TaskState.KILLING
                case JobEnded():
                    assert action.job_id not in self.results, "a job ended twice"
                    self.results[action.job_id] = action.outcome
                case _:
                    pass
        demand = self.workload.take_demand()
        if demand is not None:
            self.demand = {item.class_id: item for item in demand}

    def ask(self, launch: Launch) -> None:
        stem, dot, number = launch.task_id.rpartition(".")
        job_id = stem if dot and number.isdigit() else launch.task_id
        rivals = [task_id for task_id, attempt in self.live.items() if attempt.job_id == job_id]
        assert not rivals, f"{launch.task_id} was launched while {rivals} ran"
        assert launch.task_id not in self.launched | self.asked.keys(), f"{launch.task_id} was used twice"
        self.asked[launch.task_id] = launch

    def offer(self) -> None:
        """Some room for some class, asked for or not."""
        self.offers_made += 1
        known = list(self.demand.values()) or [Demand(class_id="c1", unit=a_task().demand, units=1)]
        demand = self.chance.choice(known)
        offer = Offer(
            offer_id=f"o{self.offers_made}",
            agent_id="a",
            hostname="a",
            class_id=demand.class_id,
            demand_version=1,
            units=self.chance.randint(1, 3),
            unit=demand.unit,
            lease_ms=1000,
        )
        self.tell(OffersReceived((offer,)))
        assert offer.offer_id in self.taken, "an offer was neither taken nor given back"

    def answer(self, *, kindly: bool) -> None:
        for task_id in list(self.asked):
            del self.asked[task_id]
            rejection = None if kindly or self.chance.random() < 0.6 else self.chance.choice(REJECTIONS)
            if rejection is None:
                self.launched.add(task_id)
                self.launched_in_order.append(task_id)
                stem, dot, number = task_id.rpartition(".")
                self.live[task_id] = Attempt(stem if dot and number.isdigit() else task_id)
            item = AcceptItem(task_id=task_id, rejection=rejection)
            self.tell(AnswerAccept(request_id=1, offer_id=OfferId("o"), answers=(item,)))

    def report(self, *, kindly: bool) -> None:
        for task_id, attempt in list(self.live.items()):
            choices = [TaskState.RUNNING, *ENDINGS, *([] if kindly else [TaskState.UNREACHABLE])]
            state = TaskState.FINISHED if kindly else self.chance.choice(choices)
            if attempt.state is TaskState.KILLING:
                state = TaskState.KILLED
            attempt.sequence += 1
            if state not in (TaskState.RUNNING, TaskState.UNREACHABLE):
                del self.live[task_id]
            status = TaskStatus(
                framework_id=FrameworkId("f"),
                task_id=TaskId(task_id),
                agent_id=AgentId("a"),
                sequence=attempt.sequence,
                state=state,
            )
            self.tell(StatusReceived(status))
            if self.chance.random() < 0.2:
                self.tell(StatusReceived(status))

    def pass_time(self) -> None:
        """Less than the unreachable timeout: replacing attempts that may still run is another test's subject."""
        self.now_ms += 10
        self.carry_out(self.workload.expire(self.now_ms))
        self.tell(Heartbeat(self.now_ms))
        self.tell(DemandAnswered(result=AnswerCall(request_id=1, code=CallCode.OK)))


@settings(max_examples=120)
@given(
    st.integers(0, 2**32),
    st.lists(st.sampled_from(["submit", "offer", "answer", "report", "kill", "time"]), max_size=80),
)
def test_every_job_ends_once_and_never_runs_twice_at_a_time(seed: int, steps: list[str]) -> None:
    chance = random.Random(seed)
    workload = Workload(unreachable_timeout_ms=10**9)
    cluster = Cluster(workload, chance)
    submitted: list[str] = []
    for step in steps:
        match step:
            case "submit":
                job_id = f"job{len(submitted)}"
                submitted.append(job_id)
                task = a_task(cpus=chance.randint(1, 3), retries=2, retry_failed=chance.randint(0, 1))
                workload.submit(job_id, task, unix_ms=0)
                cluster.carry_out([])
            case "offer":
                cluster.offer()
            case "answer":
                cluster.answer(kindly=False)
            case "report":
                cluster.report(kindly=False)
            case "kill" if submitted:
                cluster.carry_out(list(workload.kill([chance.choice(submitted)])))
            case _:
                cluster.pass_time()

    for _ in range(10 * len(submitted) + 10):
        cluster.offer()
        cluster.answer(kindly=True)
        cluster.report(kindly=True)

    assert set(cluster.results) == set(submitted), "some job never ended"
    assert not cluster.live
    assert len(workload) == 0
    assert workload.take_demand() is None
    assert not cluster.demand or not workload._book.classes()
    for outcome in cluster.results.values():
        assert isinstance(outcome, TaskResult)
        assert outcome.attempts <= 1 + 2 + outcome.task.retry_failed
        if outcome.state in RETRIABLE:
            assert outcome.attempts >= 1
