"""What is wanted is said anew after a broken stream, without what has been launched since it was last said."""

from fairlead_proto.framework_events import AnswerAccept
from fairlead_proto.ids import OfferId
from fairlead_sdk.events import AcceptItem, Disconnected, Offer, OffersReceived
from fairlead_sdk.workload import Workload
from fairlead_sdk.workload_actions import GiveBack, TakeOffer
from tests.sdk.builders import a_task


def an_offer(workload: Workload, offer_id: str = "o1", *, units: int) -> Offer:
    (demand,) = workload.take_demand() or ()
    return Offer(
        offer_id=offer_id,
        agent_id="a",
        hostname="h",
        attributes={},
        class_id=demand.class_id,
        demand_version=1,
        units=units,
        unit=demand.unit,
        lease_ms=5000,
    )


def a_workload(*names: str) -> Workload:
    workload = Workload(unreachable_timeout_ms=1000)
    for name in names:
        workload.submit(name, a_task(name), unix_ms=0)
    return workload


def test_after_a_break_the_demand_leaves_out_what_was_launched() -> None:
    workload = a_workload("t1", "t2", "t3")
    (take,) = workload.step(OffersReceived((an_offer(workload, units=2),)), 0)
    assert isinstance(take, TakeOffer)
    items = tuple(AcceptItem(task_id=launch.task_id) for launch in take.launches)
    workload.step(AnswerAccept(request_id=1, offer_id=OfferId("o1"), answers=items), 0)
    assert workload.take_demand() is None, "launches alone need no message: the master counts them too"

    workload.step(Disconnected("the master died"), 0)
    (demand,) = workload.take_demand() or ()

    assert demand.units == 1


def test_an_offer_nobody_needs_is_answered_by_what_is_wanted_now() -> None:
    workload = a_workload("t1")
    offer = an_offer(workload, units=1)
    workload.step(OffersReceived((offer,)), 0)

    actions = workload.step(OffersReceived((offer,)), 0)

    assert actions == [GiveBack(("o1",))]
    assert workload.take_demand() == (), "or the master would offer the same for ever"
