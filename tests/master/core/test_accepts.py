"""What becomes of an offer that a framework accepts, task by task."""

from fairlead_master.core.events import InvalidTask
from fairlead_proto.codes import CallCode, Rejection
from fairlead_proto.framework_events import (
    AnswerAccept,
    ForwardStatuses,
    LaunchAnswer,
    OfferTerms,
    SendOffers,
)
from fairlead_proto.ids import AgentId, FrameworkId
from fairlead_proto.orders import LaunchTasks
from fairlead_proto.task_state import TaskState
from tests.builders.master import (
    GIB,
    Cluster,
    a_class,
    a_pair,
    a_spec,
    a_status,
    accept_answered,
    answered,
    resources,
)


def test_an_accepted_offer_launches_in_order_and_frees_the_rest() -> None:
    cluster, agent, framework = a_pair(cpus=4)
    framework_id = FrameworkId("f1-1")
    cluster.demand(framework, a_class(units=4))
    (offer,) = cluster.offers()

    accepted = cluster.accept(framework, offer.offer_id, a_spec("t2"), a_spec("t1"))

    assert accepted == [
        LaunchTasks(
            session=agent,
            framework_id=framework_id,
            tasks=(a_spec("t2"), a_spec("t1")),
        ),
        accept_answered(cluster, framework, offer.offer_id, LaunchAnswer("t2"), LaunchAnswer("t1")),
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
    assert again == [accept_answered(cluster, framework, "o1-1", LaunchAnswer("t1"))]

    cluster.report(agent, a_status("f1-1", state=TaskState.FINISHED))
    answer, told = cluster.accept(framework, offer.offer_id, a_spec())
    assert answer == accept_answered(cluster, framework, "o1-1", LaunchAnswer("t1"))
    assert isinstance(told, ForwardStatuses), "who repeats a call may have missed the end as well"
    assert [(status.state, status.sequence) for status in told.statuses] == [(TaskState.FINISHED, 1)]


def test_a_repeated_accept_after_a_reconnection_is_answered_as_before() -> None:
    cluster, _, framework = a_pair()
    cluster.demand(framework, a_class())
    (offer,) = cluster.offers()
    cluster.accept(framework, offer.offer_id, a_spec())
    cluster.framework_leaves(framework)
    cluster.framework(framework_id="f1-1")

    assert cluster.accept(cluster.session, offer.offer_id, a_spec()) == [
        accept_answered(cluster, cluster.session, "o1-1", LaunchAnswer("t1"))
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
            LaunchAnswer("t2", Rejection.EXPIRED, "offer o1-1 is over: it was used"),
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
            LaunchAnswer("t1", Rejection.UNAUTHORIZED, "offer o1-1 was made to another framework"),
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
            LaunchAnswer("t1", Rejection.EXPIRED, "offer o7-7 is over: it is not known any more"),
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
    assert isinstance(launch, LaunchTasks)
    assert [spec.task_id for spec in launch.tasks] == ["fits", "rest"]
    assert answer == accept_answered(
        cluster,
        framework,
        "o1-1",
        LaunchAnswer(
            "large",
            Rejection.NO_FIT,
            "task needs cpus=5,mem=1GiB, offer o1-1 of 2 x cpus=2,mem=2GiB has cpus=4,mem=4GiB left",
        ),
        LaunchAnswer("fits"),
        LaunchAnswer("rest"),
        LaunchAnswer(
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

    (answer,) = [action for action in accepted if isinstance(action, AnswerAccept)]
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
        LaunchAnswer("bad", Rejection.INVALID, "command: expected a word"),
        LaunchAnswer("t1"),
    )


def offered_after_the_pause(cluster: Cluster) -> tuple[OfferTerms, ...]:
    sent = cluster.wait(cluster.master.settings.rejected_pause_ms)
    return tuple(terms for action in sent if isinstance(action, SendOffers) for terms in action.offers)


def test_a_task_id_is_used_once_within_an_accept_across_accepts_and_after_the_end() -> None:
    cluster, agent, framework = a_pair()
    cluster.demand(framework, a_class(units=2))
    (offer,) = cluster.offers()
    refused = LaunchAnswer("t1", Rejection.INVALID, "task id t1: expected one that was not used before")

    _, within = cluster.accept(framework, offer.offer_id, a_spec(), a_spec())
    assert within == accept_answered(cluster, framework, "o1-1", LaunchAnswer("t1"), refused)

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


def test_an_accept_for_a_class_that_is_wanted_no_more_still_launches() -> None:
    cluster, _, framework = a_pair()
    cluster.demand(framework, a_class("old"))
    (offer,) = cluster.offers()
    cluster.demand(framework, a_class("new", units=0))

    launch, answer = cluster.accept(framework, offer.offer_id, a_spec())

    assert isinstance(launch, LaunchTasks)
    assert answer == accept_answered(cluster, framework, "o1-1", LaunchAnswer("t1"))
    assert cluster.offers() == []


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
    assert sum(isinstance(action, SendOffers) for action in later) == 1
