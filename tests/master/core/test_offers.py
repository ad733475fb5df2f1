"""Demand, offers with leases, and what becomes of them."""

from itertools import pairwise

from fairlead_master.core import actions
from fairlead_master.core.events import AgentBeat, DeclineScope, InvalidTask
from fairlead_proto.codes import CallCode, Rejection
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, OfferId, TaskId
from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import Constraint, Operator
from tests.builders.master import GIB, UNIT, Cluster, a_class, a_spec, a_status, resources


def answered(
    cluster: Cluster, session: int, code: CallCode, detail: str = "", version: int = 0
) -> actions.AnswerCall:
    return actions.AnswerCall(
        session=session, request_id=cluster.request, code=code, detail=detail, demand_version=version
    )


def accept_answered(
    cluster: Cluster, session: int, offer_id: str, *answers: actions.LaunchAnswer
) -> actions.AnswerAccept:
    return actions.AnswerAccept(
        session=session, request_id=cluster.request, offer_id=OfferId(offer_id), answers=answers
    )


def a_pair(**agent: float) -> tuple[Cluster, int, int]:
    cluster = Cluster()
    return cluster, cluster.new_agent(**agent), cluster.new_framework()[0]


def test_demand_is_answered_with_its_version_and_served_by_the_next_cycle() -> None:
    cluster, _, framework = a_pair(cpus=4, gib=8)

    answer = cluster.demand(framework, a_class(units=2), version=5)
    offers = cluster.tick()

    assert answer == [answered(cluster, framework, CallCode.OK, version=5)]
    assert offers == [
        actions.SendOffers(
            session=framework,
            offers=(
                actions.OfferTerms(
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
        actions.AnswerCall(
            session=framework,
            request_id=cluster.request,
            code=CallCode.INFEASIBLE,
            detail=detail,
            demand_version=1,
            infeasible=(
                actions.InfeasibleClass(
                    class_id=ClassId("big"),
                    best_agent_id=AgentId("a1-1"),
                    missing=resources(cpus=2),
                    detail=detail,
                ),
            ),
        )
    ]
    assert [offer.class_id for offer in cluster.offers()] == ["old"], "a refused demand replaces nothing"


def test_a_demand_that_no_agent_may_take_is_refused_by_its_constraint() -> None:
    cluster, _, framework = a_pair()

    (answer,) = cluster.demand(framework, a_class(constraints=[Constraint("rack", Operator.EQUALS, ("z",))]))

    assert isinstance(answer, actions.AnswerCall)
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

    assert ended == actions.RescindOffers(
        session=framework, offer_ids=(first.offer_id,), reason="its lease ended"
    )
    assert isinstance(offered, actions.SendOffers)
    assert offered.offers[0].offer_id == "o1-2"
    assert cluster.report(agent) == []
    assert cluster.accept(framework, first.offer_id, a_spec()) == [
        accept_answered(
            cluster,
            framework,
            first.offer_id,
            actions.LaunchAnswer("t1", Rejection.EXPIRED, "offer o1-1 is over: its lease ended"),
        )
    ]


def test_an_accepted_offer_launches_in_order_and_frees_the_rest() -> None:
    cluster, agent, framework = a_pair(cpus=4)
    framework_id = FrameworkId("f1-1")
    cluster.demand(framework, a_class(units=4))
    (offer,) = cluster.offers()

    accepted = cluster.accept(framework, offer.offer_id, a_spec("t2"), a_spec("t1"))

    assert accepted == [
        actions.LaunchTasks(
            session=agent,
            framework_id=framework_id,
            tasks=(a_spec("t2"), a_spec("t1")),
        ),
        accept_answered(
            cluster, framework, offer.offer_id, actions.LaunchAnswer("t2"), actions.LaunchAnswer("t1")
        ),
    ]
    assert cluster.state(framework_id, "t1") is TaskState.STAGING
    assert [again.units for again in cluster.offers()] == [2], "units not launched are wanted again"


def test_an_accept_without_tasks_gives_the_offer_back() -> None:
    cluster, _, framework = a_pair()
    cluster.demand(framework, a_class())
    (offer,) = cluster.offers()

    assert cluster.accept(framework, offer.offer_id) == [accept_answered(cluster, framework, offer.offer_id)]
    assert len(cluster.offers()) == 1


def test_a_repeated_accept_is_answered_as_before_and_launches_nothing() -> None:
    cluster, agent, framework = a_pair()
    cluster.demand(framework, a_class())
    (offer,) = cluster.offers()
    cluster.accept(framework, offer.offer_id, a_spec())

    again = cluster.accept(framework, offer.offer_id, a_spec())
    assert again == [accept_answered(cluster, framework, "o1-1", actions.LaunchAnswer("t1"))]

    cluster.report(agent, a_status("f1-1", state=TaskState.FINISHED))
    answer, told = cluster.accept(framework, offer.offer_id, a_spec())
    assert answer == accept_answered(cluster, framework, "o1-1", actions.LaunchAnswer("t1"))
    assert isinstance(told, actions.ForwardStatuses), "who repeats a call may have missed the end as well"
    assert [(status.state, status.sequence) for status in told.statuses] == [(TaskState.FINISHED, 1)]


def test_a_repeated_accept_after_a_reconnection_is_answered_as_before() -> None:
    cluster, _, framework = a_pair()
    cluster.demand(framework, a_class())
    (offer,) = cluster.offers()
    cluster.accept(framework, offer.offer_id, a_spec())
    cluster.framework_leaves(framework)
    cluster.framework(framework_id="f1-1")

    assert cluster.accept(cluster.session, offer.offer_id, a_spec()) == [
        accept_answered(cluster, cluster.session, "o1-1", actions.LaunchAnswer("t1"))
    ]


def test_a_used_offer_launches_no_other_task() -> None:
    cluster, _, framework = a_pair()
    cluster.demand(framework, a_class())
    (offer,) = cluster.offers()
    cluster.accept(framework, offer.offer_id, a_spec())

    assert cluster.accept(framework, offer.offer_id, a_spec("t2")) == [
        accept_answered(
            cluster,
            framework,
            "o1-1",
            actions.LaunchAnswer("t2", Rejection.EXPIRED, "offer o1-1 is over: it was used"),
        )
    ]
    assert cluster.state("f1-1", "t2") is None, "a rejected task never exists"


def test_an_offer_of_another_framework_cannot_be_taken_or_declined() -> None:
    cluster, _, framework = a_pair()
    thief, _ = cluster.new_framework()
    cluster.demand(framework, a_class())
    (offer,) = cluster.offers()

    assert cluster.accept(thief, offer.offer_id, a_spec()) == [
        accept_answered(
            cluster,
            thief,
            "o1-1",
            actions.LaunchAnswer("t1", Rejection.UNAUTHORIZED, "offer o1-1 was made to another framework"),
        )
    ]
    assert cluster.decline(thief, offer.offer_id) == [
        answered(cluster, thief, CallCode.UNAUTHORIZED, "offers of another framework: o1-1")
    ]
    assert offer.offer_id in cluster.master.offers


def test_an_offer_nobody_made_is_over() -> None:
    cluster, _, framework = a_pair()

    assert cluster.accept(framework, "o7-7", a_spec()) == [
        accept_answered(
            cluster,
            framework,
            "o7-7",
            actions.LaunchAnswer("t1", Rejection.EXPIRED, "offer o7-7 is over: it is not known any more"),
        )
    ]


def test_tasks_that_exceed_their_offer_are_refused_one_by_one() -> None:
    cluster, agent, framework = a_pair(cpus=8, gib=16)
    cluster.demand(framework, a_class(unit=resources(cpus=2, gib=2), units=2))
    (offer,) = cluster.offers()

    accepted = cluster.accept(
        framework,
        offer.offer_id,
        a_spec("large", unit=resources(cpus=5, gib=1)),
        a_spec("fits", unit=resources(cpus=3, gib=1)),
        a_spec("rest", unit=resources(cpus=1, gib=3)),
        a_spec("third", unit=(1, 0, 0, 0)),
    )

    launch, answer = accepted
    assert isinstance(launch, actions.LaunchTasks)
    assert [spec.task_id for spec in launch.tasks] == ["fits", "rest"]
    assert answer == accept_answered(
        cluster,
        framework,
        "o1-1",
        actions.LaunchAnswer(
            "large",
            Rejection.NO_FIT,
            "task needs cpus=5,mem=1GiB, offer o1-1 of 2 x cpus=2,mem=2GiB has cpus=4,mem=4GiB left",
        ),
        actions.LaunchAnswer("fits"),
        actions.LaunchAnswer("rest"),
        actions.LaunchAnswer(
            "third",
            Rejection.NO_FIT,
            "task needs cpus=0.001, offer o1-1 of 2 x cpus=2,mem=2GiB has nothing left",
        ),
    )
    assert launch.session == agent
    assert cluster.master.allocator.free(AgentId("a1-1")) == (4_000, 12 * GIB, 0, 0)


def test_more_tasks_than_units_are_refused_even_if_they_would_fit() -> None:
    cluster, _, framework = a_pair()
    cluster.demand(framework, a_class())
    (offer,) = cluster.offers()

    accepted = cluster.accept(
        framework, offer.offer_id, a_spec("t1", unit=(1, 0, 0, 0)), a_spec("t2", unit=(1, 0, 0, 0))
    )

    (answer,) = [action for action in accepted if isinstance(action, actions.AnswerAccept)]
    assert [entry.rejection for entry in answer.answers] == [None, Rejection.NO_FIT]


def test_an_invalid_description_is_refused_and_the_others_run() -> None:
    cluster, _, framework = a_pair()
    cluster.demand(framework, a_class(units=2))
    (offer,) = cluster.offers()

    _, answer = cluster.accept(
        framework, offer.offer_id, InvalidTask("bad", "command: expected a word"), a_spec()
    )

    assert answer == accept_answered(
        cluster,
        framework,
        "o1-1",
        actions.LaunchAnswer("bad", Rejection.INVALID, "command: expected a word"),
        actions.LaunchAnswer("t1"),
    )


def offered_after_the_pause(cluster: Cluster) -> tuple[actions.OfferTerms, ...]:
    sent = cluster.wait(cluster.master.settings.rejected_pause_ms)
    return tuple(
        terms for action in sent if isinstance(action, actions.SendOffers) for terms in action.offers
    )


def test_a_task_id_is_used_once_within_an_accept_across_accepts_and_after_the_end() -> None:
    cluster, agent, framework = a_pair()
    cluster.demand(framework, a_class(units=2))
    (offer,) = cluster.offers()
    refused = actions.LaunchAnswer(
        "t1", Rejection.INVALID, "task id t1: expected one that was not used before"
    )

    _, within = cluster.accept(framework, offer.offer_id, a_spec(), a_spec())
    assert within == accept_answered(cluster, framework, "o1-1", actions.LaunchAnswer("t1"), refused)

    (second,) = offered_after_the_pause(cluster)
    across = cluster.accept(framework, second.offer_id, a_spec())
    assert across == [accept_answered(cluster, framework, second.offer_id, refused)]

    cluster.report(agent, a_status("f1-1", state=TaskState.FINISHED))
    (third,) = offered_after_the_pause(cluster)
    after = cluster.accept(framework, third.offer_id, a_spec())
    assert after == [accept_answered(cluster, framework, third.offer_id, refused)]


def test_two_frameworks_may_use_one_task_id() -> None:
    cluster, _, framework = a_pair()
    other, _ = cluster.new_framework()

    cluster.launch(framework, "t1")
    cluster.launch(other, "t1")

    assert cluster.state("f1-1") is cluster.state("f1-2") is TaskState.STAGING


def test_offers_of_an_agent_that_leaves_are_rescinded_and_cannot_be_taken() -> None:
    cluster, agent, framework = a_pair()
    cluster.demand(framework, a_class())
    (offer,) = cluster.offers()

    gone = cluster.agent_leaves(agent)

    assert gone == [
        actions.RescindOffers(session=framework, offer_ids=(offer.offer_id,), reason="its agent left")
    ]
    assert cluster.accept(framework, offer.offer_id, a_spec()) == [
        accept_answered(
            cluster,
            framework,
            "o1-1",
            actions.LaunchAnswer("t1", Rejection.AGENT_GONE, "offer o1-1 is over: its agent left"),
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

    assert isinstance(again, actions.SendOffers)


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
    assert [type(action) for action in later] == [actions.SendOffers]


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


def test_an_accept_for_a_class_that_is_wanted_no_more_still_launches() -> None:
    cluster, _, framework = a_pair()
    cluster.demand(framework, a_class("old"))
    (offer,) = cluster.offers()
    cluster.demand(framework, a_class("new", units=0))

    launch, answer = cluster.accept(framework, offer.offer_id, a_spec())

    assert isinstance(launch, actions.LaunchTasks)
    assert answer == accept_answered(cluster, framework, "o1-1", actions.LaunchAnswer("t1"))
    assert cluster.offers() == []


def test_events_within_the_window_share_one_cycle() -> None:
    cluster, _, framework = a_pair(cpus=8)
    cluster.demand(framework, a_class("x"))
    cluster.tick()
    cluster.demand(framework, a_class("x"), a_class("y"))

    assert cluster.machine.next_deadline_ms(cluster.now_ms) == cluster.now_ms + 4
    assert cluster.tick() == [], "a tick before the window is over allocates nothing"
    (offers,) = cluster.wait(4)
    assert isinstance(offers, actions.SendOffers)
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


def test_what_was_rejected_is_not_offered_again_at_once() -> None:
    """A scheduler with a bug repeats its mistake as often as it is offered the chance."""
    cluster = Cluster()
    cluster.new_agent()
    framework, _ = cluster.new_framework()
    cluster.demand(framework, a_class(units=2))
    (offer,) = cluster.offers()

    cluster.accept(framework, offer.offer_id, a_spec("t1", unit=resources(cpus=100)))

    assert cluster.offers() == []
    later = cluster.wait(cluster.master.settings.rejected_pause_ms)
    assert sum(isinstance(action, actions.SendOffers) for action in later) == 1


def test_offers_nobody_answers_come_less_and_less_often() -> None:
    cluster = Cluster()
    agent = cluster.new_agent()
    framework, _ = cluster.new_framework()
    cluster.demand(framework, a_class())
    offered_ms: list[int] = []
    while len(offered_ms) < 5:
        cluster.step(AgentBeat(session=agent, used=()))
        sent = cluster.tick()
        if any(isinstance(action, actions.SendOffers) for action in sent):
            offered_ms.append(cluster.now_ms)
        due = cluster.machine.next_deadline_ms(cluster.now_ms)
        assert due is not None
        cluster.now_ms = due

    gaps = [round((after - before) / 5_000) for before, after in pairwise(offered_ms)]
    assert gaps == [1, 2, 3, 5], "the lease, and then no pause, a lease of it, two leases, four"
    assert cluster.offers() == [], "the fifth has expired as well"
    cluster.demand(framework, a_class())
    assert len(cluster.offers()) == 1, "whoever says anew what he wants is asked at once"
