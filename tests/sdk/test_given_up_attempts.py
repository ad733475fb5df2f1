"""An attempt given up as lost may turn up again with an agent nobody expected: then it is ended, not run twice."""

import pytest

from fairlead_proto.ids import AgentId, FrameworkId, TaskId
from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import TaskStatus
from fairlead_sdk import workload as workload_module
from fairlead_sdk.events import AcceptItem, AcceptResult, Offer, OffersReceived, StatusReceived
from fairlead_sdk.workload import Workload
from fairlead_sdk.workload_actions import EndTasks, TakeOffer
from tests.sdk.builders import a_task


def a_running_job(name: str = "t1") -> Workload:
    workload = Workload(unreachable_timeout_ms=1000)
    workload.submit(name, a_task(name, retries=3), unix_ms=0)
    launch(workload)
    return workload


def launch(workload: Workload) -> str:
    """Launch what waits; gives the attempt's id."""
    (demand,) = workload.take_demand() or ()
    offer = Offer(
        offer_id="o",
        agent_id="a",
        hostname="h",
        class_id=demand.class_id,
        demand_version=1,
        units=1,
        unit=demand.unit,
        lease_ms=5000,
    )
    (take,) = workload.step(OffersReceived((offer,)), 0)
    assert isinstance(take, TakeOffer)
    (task_id,) = (each.task_id for each in take.launches)
    workload.step(AcceptResult(request_id=1, offer_id="o", items=(AcceptItem(task_id=task_id),)), 0)
    return task_id


def report(task_id: str, state: TaskState) -> StatusReceived:
    return StatusReceived(
        TaskStatus(
            framework_id=FrameworkId("f"),
            task_id=TaskId(task_id),
            agent_id=AgentId("a"),
            sequence=0,
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
    monkeypatch.setattr(workload_module, "GIVEN_UP_KEPT", 1)
    workload = a_running_job("t1")
    workload.step(report("t1", TaskState.LOST), 0)
    launch(workload)
    workload.step(report("t1.2", TaskState.DROPPED), 0)

    assert workload.step(report("t1", TaskState.RUNNING), 0) == [], "forgotten"
    assert workload.step(report("t1.2", TaskState.RUNNING), 0) == [EndTasks(("t1.2",))]
