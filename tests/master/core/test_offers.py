"""Demand, offers with leases, and what becomes of them."""

from itertools import pairwise

from fairlead_master.core.events import AgentBeat
from fairlead_proto.codes import CallCode, DeclineScope, Rejection
from fairlead_proto.framework_events import (
    AnswerCall,
    InfeasibleClass,
    LaunchAnswer,
    OfferTerms,
    RescindOffers,
    SendOffers,
)
from fairlead_proto.ids import AgentId, ClassId, OfferId, TaskId
from fairlead_proto.tasks import Constraint, Operator
from tests.builders.master import (
    UNIT,
    Cluster,
    a_class,
    a_pair,
    a_spec,
    accept_answered,
    answered,
    resources,
)


def test_demand_is_answered_with_its_version_and_served_by_the_next_cycle() -> None:
    cluster, _, framework = a_pair(cpus=4, gib=8)

    answer = cluster.demand(framework, a_class(units=2), version=5)
    offers = cluster.tick()

    assert answer == [answered(cluster, framework, CallCode.OK, version=5)]
    assert offers == [
        SendOffers(
            session=framework,
            offers=(
                OfferTerms(
                    offer_id=OfferId("o1-1"),
                    agent_id=AgentId("a1-1"),
                    hostname="host",
                    attributes={"hostname": "host", "agent_id": "a1-1"},
                    class_id=ClassId("c"),
                    demand_version=5,
                    unit=UNIT,
                    units=2,
                    lease_ms=5_000,
                ),
            ),
        )
    ]
    assert cluster.offers() == [], "what is offered is not offered again"


def test_no_demand_means_no_offers() -> None:
    cluster, _, framework = a_pair()

    assert cluster.offers() == []
    cluster.demand(framework)
    assert cluster.offers() == []
    assert (
        cluster.machine.next_deadline_ms(cluster.now_ms)
        == cluster.master.agents_heard[AgentId("a1-1")] + 20_000
    )


def test_a_demand_that_comes_out_of_order_changes_nothing() -> None:
    cluster, _, framework = a_pair()
    cluster.demand(framework, a_class(units=3), version=5)

    for late in (4, 5):
        answer = cluster.demand(framework, version=late)

        assert answer == [
            answered(
                cluster, framework, CallCode.INVALID, f"version: expected above 5, got {late}", version=5
            )
        ]
    assert [offer.units for offer in cluster.offers()] == [3]


def test_a_demand_larger_than_any_agent_is_refused_and_says_what_is_missing() -> None:
    cluster, _, framework = a_pair(cpus=4, gib=8)
    cluster.new_agent(cpus=2, gib=32)
    cluster.demand(framework, a_class("old"), version=1)

    answer = cluster.demand(
        framework, a_class("fits"), a_class("big", unit=resources(cpus=6, gib=8)), version=2
    )

    detail = "class big needs cpus=6,mem=8GiB: no registered agent is large enough; the nearest, a1-1, lacks cpus=2"
    assert answer == [
        AnswerCall(
            session=framework,
            request_id=cluster.request,
            code=CallCode.INFEASIBLE,
            detail=detail,
            demand_version=1,
            infeasible=(
                InfeasibleClass(
                    class_id=ClassId("big"),
                    best_agent_id=AgentId("a1-1"),
                    missing={"cpus": 2_000},
                    detail=detail,
                ),
            ),
        )
    ]
    assert [offer.class_id for offer in cluster.offers()] == ["old"], "a refused demand replaces nothing"


def test_a_demand_that_no_agent_may_take_is_refused_by_its_constraint() -> None:
    cluster, _, framework = a_pair()

    (answer,) = cluster.demand(framework, a_class(constraints=[Constraint("rack", Operator.EQUALS, ("z",))]))

    assert isinstance(answer, AnswerCall)
    assert answer.code is CallCode.INFEASIBLE
    assert answer.detail == "class c: no registered agent meets rack=z"
    assert answer.infeasible[0].best_agent_id is None


def test_with_no_agent_registered_any_demand_waits() -> None:
    cluster = Cluster()
    framework, _ = cluster.new_framework()

    answer = cluster.demand(framework, a_class(unit=resources(cpus=1000)), version=1)
    assert answer == [answered(cluster, framework, CallCode.OK, version=1)]

    cluster.new_agent(cpus=1000)
    assert [offer.units for offer in cluster.offers()] == [1]


def test_an_offer_that_is_not_answered_ends_with_its_lease_and_is_made_again() -> None:
    cluster, agent, framework = a_pair()
    cluster.demand(framework, a_class())
    (first,) = cluster.offers()

    assert cluster.wait(4_999) == []
    ended, offered = cluster.wait(1)

    assert ended == RescindOffers(session=framework, offer_ids=(first.offer_id,), reason="its lease ended")
    assert isinstance(offered, SendOffers)
    assert offered.offers[0].offer_id == "o1-2"
    assert cluster.report(agent) == []
    assert cluster.accept(framework, first.offer_id, a_spec()) == [
        accept_answered(
            cluster,
            framework,
            first.offer_id,
            LaunchAnswer("t1", Rejection.EXPIRED, "offer o1-1 is over: its lease ended"),
        )
    ]


def test_offers_of_an_agent_that_leaves_are_rescinded_and_cannot_be_taken() -> None:
    cluster, agent, framework = a_pair()
    cluster.demand(framework, a_class())
    (offer,) = cluster.offers()

    gone = cluster.agent_leaves(agent)

    assert gone == [RescindOffers(session=framework, offer_ids=(offer.offer_id,), reason="its agent left")]
    assert cluster.accept(framework, offer.offer_id, a_spec()) == [
        accept_answered(
            cluster,
            framework,
            "o1-1",
            LaunchAnswer("t1", Rejection.AGENT_GONE, "offer o1-1 is over: its agent left"),
        )
    ]


def test_a_declined_class_is_not_offered_anywhere_until_the_time_is_up() -> None:
    cluster, _, framework = a_pair()
    cluster.new_agent()
    cluster.demand(framework, a_class())
    (offer,) = cluster.offers()

    assert cluster.decline(framework, offer.offer_id, scope=DeclineScope.CLASS, ttl_ms=2_000) == [
        answered(cluster, framework, CallCode.OK)
    ]
    assert cluster.wait(1_999) == []
    (again,) = cluster.wait(1)

    assert isinstance(again, SendOffers)


def test_a_declined_agent_is_not_offered_for_that_class_until_the_time_is_up() -> None:
    cluster, _, framework = a_pair(cpus=8)
    cluster.new_agent(cpus=1)
    cluster.demand(framework, a_class("x"))
    (offer,) = cluster.offers()

    cluster.decline(framework, offer.offer_id, scope=DeclineScope.AGENT)
    (other,) = cluster.offers()
    cluster.decline(framework, other.offer_id, scope=DeclineScope.AGENT)

    assert {offer.agent_id, other.agent_id} == {"a1-1", "a1-2"}
    assert cluster.offers() == []
    later = cluster.wait(cluster.master.settings.decline_ttl_ms)
    assert [type(action) for action in later] == [SendOffers]


def test_a_decline_without_scope_is_offered_again_at_once() -> None:
    cluster, _, framework = a_pair()
    cluster.demand(framework, a_class())
    (offer,) = cluster.offers()

    cluster.decline(framework, offer.offer_id)

    assert [again.offer_id for again in cluster.offers()] == ["o1-2"]


def test_new_demand_lifts_what_was_declined() -> None:
    cluster, _, framework = a_pair()
    cluster.demand(framework, a_class())
    (offer,) = cluster.offers()
    cluster.decline(framework, offer.offer_id, scope=DeclineScope.CLASS, ttl_ms=60_000)

    cluster.demand(framework, a_class())

    assert len(cluster.offers()) == 1


def test_declining_an_offer_twice_or_one_that_is_over_is_harmless() -> None:
    cluster, _, framework = a_pair()
    cluster.demand(framework, a_class())
    (offer,) = cluster.offers()

    assert cluster.decline(framework, offer.offer_id, offer.offer_id, "o9-9") == [
        answered(cluster, framework, CallCode.OK)
    ]
    assert cluster.decline(framework, offer.offer_id, scope=DeclineScope.CLASS) == [
        answered(cluster, framework, CallCode.OK)
    ]
    assert len(cluster.offers()) == 1, "a decline of an ended offer is no filter"


def test_events_within_the_window_share_one_cycle() -> None:
    cluster, _, framework = a_pair(cpus=8)
    cluster.demand(framework, a_class("x"))
    cluster.tick()
    cluster.demand(framework, a_class("x"), a_class("y"))

    assert cluster.machine.next_deadline_ms(cluster.now_ms) == cluster.now_ms + 4
    assert cluster.tick() == [], "a tick before the window is over allocates nothing"
    (offers,) = cluster.wait(4)
    assert isinstance(offers, SendOffers)
    assert TaskId(offers.offers[0].class_id) == "y"


def test_a_calm_cluster_offers_within_milliseconds_and_a_busy_one_gathers() -> None:
    cluster = Cluster()
    cluster.new_agent(cpus=100, gib=100)
    framework, _ = cluster.new_framework()
    settings = cluster.master.settings
    cluster.demand(framework, a_class("one", unit=resources(cpus=1, gib=1), units=1))
    assert [offer.units for offer in cluster.offers()] == [1]
    before = cluster.master.last_cycle_ms
    cluster.demand(framework, a_class("two", unit=resources(cpus=1, gib=1), units=30))
    calm = cluster.machine.next_deadline_ms(cluster.now_ms)
    assert [offer.units for offer in cluster.offers()] == [30]

    cluster.demand(framework, a_class("three", unit=resources(cpus=1, gib=1), units=1))
    busy = cluster.machine.next_deadline_ms(cluster.now_ms)

    assert calm is not None
    assert calm - before <= settings.allocation_window_ms
    assert busy == cluster.master.last_cycle_ms + settings.busy_window_ms


def test_offers_nobody_answers_come_less_and_less_often() -> None:
    cluster = Cluster()
    agent = cluster.new_agent()
    framework, _ = cluster.new_framework()
    cluster.demand(framework, a_class())
    offered_ms: list[int] = []
    while len(offered_ms) < 5:
        cluster.step(AgentBeat(session=agent, used=()))
        sent = cluster.tick()
        if any(isinstance(action, SendOffers) for action in sent):
            offered_ms.append(cluster.now_ms)
        due = cluster.machine.next_deadline_ms(cluster.now_ms)
        assert due is not None
        cluster.now_ms = due

    gaps = [round((after - before) / 5_000) for before, after in pairwise(offered_ms)]
    assert gaps == [1, 2, 3, 5], "the lease, and then no pause, a lease of it, two leases, four"
    assert cluster.offers() == [], "the fifth has expired as well"
    cluster.demand(framework, a_class())
    assert len(cluster.offers()) == 1, "whoever says anew what he wants is asked at once"
