"""An attempt given up as lost may turn up again with an agent nobody expected: then it is ended, not run twice."""

import pytest

from fairlead_proto.codes import Rejection
from fairlead_proto.framework_events import AnswerAccept, FinishReconciliation
from fairlead_proto.ids import AgentId, FrameworkId, OfferId, TaskId
from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import TaskStatus
from fairlead_sdk import jobs as jobs_module
from fairlead_sdk.calls import Demand
from fairlead_sdk.errors import FairleadError
from fairlead_sdk.events import AcceptItem, Offer, OffersReceived, StatusReceived
from fairlead_sdk.jobs import Phase
from fairlead_sdk.task import TaskResult
from fairlead_sdk.workload import Workload
from fairlead_sdk.workload_actions import Action, EndTasks, JobEnded, JobMoved, TakeOffer
from tests.sdk.builders import a_task


def a_running_job(name: str = "t1") -> Workload:
    workload = Workload(unreachable_timeout_ms=1000)
    workload.submit(name, a_task(name, retries=3), unix_ms=0)
    launch(workload)
    return workload


def an_offer(demand: Demand) -> Offer:
    return Offer(
        offer_id="o",
        agent_id="a",
        hostname="h",
        class_id=demand.class_id,
        demand_version=1,
        units=1,
        unit=demand.unit,
        lease_ms=5000,
    )


def launch(workload: Workload) -> str:
    """Launch what waits; gives the attempt's id."""
    (demand,) = workload.take_demand() or ()
    (take,) = workload.step(OffersReceived((an_offer(demand),)), 0)
    assert isinstance(take, TakeOffer)
    (task_id,) = (each.task_id for each in take.launches)
    workload.step(
        AnswerAccept(request_id=1, offer_id=OfferId("o"), answers=(AcceptItem(task_id=task_id),)), 0
    )
    return task_id


def report(task_id: str, state: TaskState, *, agent_id: str = "a", sequence: int = 0) -> StatusReceived:
    return StatusReceived(
        TaskStatus(
            framework_id=FrameworkId("f"),
            task_id=TaskId(task_id),
            agent_id=AgentId(agent_id),
            sequence=sequence,
            state=state,
        )
    )


def test_a_lost_attempt_that_turns_up_running_is_ended() -> None:
    workload = a_running_job("t1")
    workload.step(report("t1", TaskState.LOST), 0)
    assert launch(workload) == "t1.2"

    assert workload.step(report("t1", TaskState.RUNNING), 0) == [EndTasks(("t1",))]
    assert workload.step(report("t1", TaskState.KILLING), 0) == []
    assert workload.step(report("t1", TaskState.KILLED), 0) == []


def test_a_stranger_is_left_alone() -> None:
    """After a takeover tasks of the framework's earlier life are reported: they are not this one's to end."""
    workload = a_running_job("t1")

    assert workload.step(report("other", TaskState.RUNNING), 0) == []


def test_what_was_given_up_is_remembered_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_module, "GIVEN_UP_KEPT", 1)
    workload = a_running_job("t1")
    workload.step(report("t1", TaskState.LOST), 0)
    launch(workload)
    workload.step(report("t1.2", TaskState.DROPPED), 0)

    assert workload.step(report("t1", TaskState.RUNNING), 0) == [], "forgotten"
    assert workload.step(report("t1.2", TaskState.RUNNING), 0) == [EndTasks(("t1.2",))]


def a_search_in_vain() -> Workload:
    """A resumed session asks about a job whose first attempt may be on an agent that is away."""
    workload = Workload(unreachable_timeout_ms=1000, is_resumed=True)
    workload.submit("t1", a_task("t1", retries=3), unix_ms=0)
    workload.asked(1, workload.take_questions())
    workload.step(report("t1", TaskState.UNREACHABLE, agent_id=""), 0)
    workload.step(FinishReconciliation(request_id=1, recovering_agent_ids=(AgentId("b"),)), 0)
    return workload


def test_a_known_end_of_a_later_attempt_is_the_result_when_the_search_for_others_is_given_up() -> None:
    workload = a_search_in_vain()
    workload.step(report("t1.2", TaskState.FAILED, sequence=1), 500)

    *_, ended = workload.expire(1000)

    assert isinstance(ended, JobEnded)
    assert isinstance(ended.outcome, TaskResult)
    assert (ended.outcome.task_id, ended.outcome.state) == ("t1.2", TaskState.FAILED)
    assert len(workload) == 0


@pytest.mark.parametrize("state", [TaskState.RUNNING, TaskState.FAILED])
def test_an_attempt_of_an_earlier_session_that_turns_up_is_not_launched_again(state: TaskState) -> None:
    workload = a_search_in_vain()
    end, again = workload.expire(1000)
    assert end == EndTasks(("t1",)), "and the second attempt waits"
    assert isinstance(again, JobMoved)
    assert again.given_up is not None
    assert (again.launch, again.given_up.state) == (None, TaskState.UNREACHABLE)

    moved, *ended = workload.step(report("t1.2", state, sequence=2), 2000)

    assert isinstance(moved, JobMoved)
    assert workload.take_demand() == ()
    assert [type(action) for action in ended] == ([] if state is TaskState.RUNNING else [JobEnded])


def test_a_rejected_attempt_is_not_waited_for_on_an_agent() -> None:
    """The report of an agent away was of an earlier launch under this id, or of nobody knows what."""
    workload = Workload(unreachable_timeout_ms=1000)
    workload.submit("t1", a_task("t1", retries=3), unix_ms=0)
    (demand,) = workload.take_demand() or ()
    workload.step(OffersReceived((an_offer(demand),)), 0)
    workload.step(report("t1", TaskState.UNREACHABLE), 0)

    rejected = AcceptItem(task_id="t1", rejection=Rejection.EXPIRED)
    workload.step(AnswerAccept(request_id=1, offer_id=OfferId("o"), answers=(rejected,)), 500)

    assert workload.expire(1000) == []
    assert launch(workload) == "t1"


def a_resumed_job(*requests: tuple[str, ...]) -> Workload:
    """A job of an earlier session, of whose attempts the master was asked by these requests."""
    workload = Workload(unreachable_timeout_ms=1000, is_resumed=True)
    workload.submit("t1", a_task("t1", retries=3), unix_ms=0)
    assert set(workload.take_questions()) >= {"t1", "t1.2", "t1.3"}
    for number, attempt_ids in enumerate(requests):
        workload.asked(number, attempt_ids)
    return workload


def test_the_end_of_a_later_attempt_counts_though_an_earlier_one_is_only_unreachable() -> None:
    workload = a_resumed_job(("t1", "t1.2", "t1.3", "t1.4"))
    workload.step(report("t1", TaskState.UNREACHABLE, agent_id="away"), 0)
    workload.step(report("t1.2", TaskState.FINISHED, sequence=2), 0)

    moved, ended_first, over = workload.step(FinishReconciliation(request_id=0), 0)

    assert isinstance(moved, JobMoved)
    assert ended_first == EndTasks(("t1",))
    assert isinstance(over, JobEnded)
    assert isinstance(over.outcome, TaskResult)
    assert (over.outcome.task_id, over.outcome.state) == ("t1.2", TaskState.FINISHED)


def test_an_attempt_that_was_replaced_before_is_ended_when_it_comes_back() -> None:
    workload = a_resumed_job(("t1", "t1.2", "t1.3", "t1.4"))
    workload.step(report("t1", TaskState.LOST), 0)
    workload.step(report("t1.2", TaskState.RUNNING), 0)
    workload.step(FinishReconciliation(request_id=0), 0)

    assert workload.step(report("t1", TaskState.RUNNING), 0) == [EndTasks(("t1",))]


def test_no_attempt_is_taken_up_while_a_later_one_is_asked_about() -> None:
    workload = a_resumed_job(("t1",), ("t1.2", "t1.3", "t1.4"))
    workload.step(report("t1", TaskState.RUNNING), 0)
    assert workload.step(FinishReconciliation(request_id=0), 0) == []

    workload.step(report("t1.2", TaskState.RUNNING), 0)
    moved, *_ = workload.step(FinishReconciliation(request_id=1), 0)

    assert isinstance(moved, JobMoved)
    assert moved.launch is not None
    assert moved.launch.task_id == "t1.2"


def test_an_id_that_an_earlier_session_used_is_sought_once_more_before_the_task_is_in_error() -> None:
    """An agent came back with the second attempt between the last question about it and its launch."""
    workload = a_search_in_vain()
    workload.expire(1000)
    (demand,) = workload.take_demand() or ()
    workload.step(OffersReceived((an_offer(demand),)), 0)
    used = AcceptItem(task_id="t1.2", rejection=Rejection.INVALID, detail="used before")
    assert workload.step(AnswerAccept(request_id=2, offer_id=OfferId("o"), answers=(used,)), 1500) == []

    workload.asked(3, workload.take_questions())
    workload.step(report("t1.2", TaskState.RUNNING), 1600)
    (moved,) = workload.step(FinishReconciliation(request_id=3, recovering_agent_ids=()), 1600)

    assert isinstance(moved, JobMoved)
    assert moved.launch is not None
    assert workload.state_of("t1") == (Phase.LIVE, TaskState.RUNNING)


def test_an_invalid_task_of_a_resumed_framework_ends_in_error() -> None:
    workload = a_resumed_job(("t1", "t1.2", "t1.3", "t1.4"))
    workload.step(FinishReconciliation(request_id=0, recovering_agent_ids=()), 0)
    invalid = AcceptItem(task_id="t1", rejection=Rejection.INVALID, detail="env: expected text")

    def refused(request_id: int) -> list[Action]:
        (demand,) = workload.take_demand() or ()
        workload.step(OffersReceived((an_offer(demand),)), 0)
        return workload.step(
            AnswerAccept(request_id=request_id, offer_id=OfferId("o"), answers=(invalid,)), 0
        )

    assert refused(1) == []
    workload.asked(2, workload.take_questions())
    workload.step(FinishReconciliation(request_id=2, recovering_agent_ids=()), 0)
    (over,) = refused(3)
    assert isinstance(over, JobEnded)
    assert isinstance(over.outcome, TaskResult)
    assert (over.outcome.state, over.outcome.message) == (TaskState.ERROR, "env: expected text")


def test_a_late_answer_of_an_earlier_search_says_nothing_to_the_next_one() -> None:
    """The job ended while the master was asked about it, and was submitted again under the same id."""
    workload = a_resumed_job(("t1", "t1.2", "t1.3", "t1.4"))
    workload.fail_all(FairleadError("over"))
    workload.submit("t1", a_task("t1", retries=3), unix_ms=0)
    workload.asked(1, workload.take_questions())

    assert workload.step(FinishReconciliation(request_id=0, recovering_agent_ids=()), 0) == []
    assert workload.take_demand() in (None, ()), "it is not launched before its own question is answered"
    workload.step(report("t1.2", TaskState.RUNNING), 0)
    moved, *_ = workload.step(FinishReconciliation(request_id=1, recovering_agent_ids=()), 0)

    assert isinstance(moved, JobMoved)
    assert moved.launch is not None
    assert moved.launch.task_id == "t1.2"
