"""What operators order, and how allocation changes on a running cluster."""

import pytest

from fairlead_master.allocation.hierarchy import WEIGHTS_MAX
from fairlead_master.allocation.weights import Weight
from fairlead_master.core import actions, events
from fairlead_master.core import settings as bounds
from fairlead_master.core.state import AgentState
from fairlead_proto.codes import CallCode, ErrorCode
from fairlead_proto.framework_events import AnswerCall, EndFrameworkSession, RescindOffers, WelcomeFramework
from fairlead_proto.ids import AgentId, FrameworkId, Role, TaskId
from fairlead_proto.orders import KillTask, LaunchTasks
from fairlead_proto.task_state import Reason, TaskState
from tests.builders.master import Cluster, a_class, a_running, a_spec, a_status, resources

F = FrameworkId("f1-1")
A = AgentId("a1-1")
S = TaskState


def kill_by_operator(
    cluster: Cluster, *task_ids: str, framework_id: str | None = None
) -> list[actions.Action]:
    return cluster.step(
        events.OperatorKillAsked(
            request=7,
            task_ids=tuple(map(TaskId, task_ids)),
            framework_id=FrameworkId(framework_id) if framework_id else None,
            grace_period_ms=100,
        )
    )


def set_policy(cluster: Cluster, **changes: str) -> list[actions.Action]:
    return cluster.step(events.PolicySet(request=7, **changes))


def outcome(
    task_id: str, outcome: str, framework_id: str | None = F, detail: str = ""
) -> actions.KillOutcome:
    return actions.KillOutcome(
        task_id=TaskId(task_id),
        framework_id=FrameworkId(framework_id) if framework_id else None,
        outcome=outcome,
        detail=detail,
    )


def test_an_operator_kills_tasks_by_id_and_hears_of_each() -> None:
    cluster = Cluster()
    agent = cluster.new_agent()
    framework, _ = cluster.new_framework()
    cluster.launch(framework, "t1", "t2")
    cluster.report(agent, a_status(F, "t2", S.FINISHED))
    cluster.demand(framework, a_class(waiting=["t3"]))

    answer = kill_by_operator(cluster, "t1", "t2", "t3", "t9")

    assert answer == [
        KillTask(
            session=agent,
            framework_id=F,
            task_id=TaskId("t1"),
            grace_period_ms=100,
            reason=Reason.KILLED_BY_OPERATOR,
        ),
        actions.AnswerOperator(
            request=7,
            outcomes=(
                outcome("t1", "killing"),
                outcome("t2", "already over", detail="FINISHED"),
                outcome("t3", "pending", detail="it waits in framework f1-1, which alone can withdraw it"),
                outcome("t9", "unknown", None),
            ),
        ),
    ]


def test_killing_a_task_whose_attempt_is_over_ends_the_later_one_that_lives() -> None:
    cluster = Cluster()
    agent = cluster.new_agent()
    framework, _ = cluster.new_framework()
    for attempt in ("t1", "t1.2"):
        cluster.launch(framework, attempt)
        cluster.report(agent, a_status(F, attempt, S.FAILED))
    cluster.launch(framework, "t1.3")

    order, answer = kill_by_operator(cluster, "t1")

    assert isinstance(order, KillTask)
    assert order.task_id == "t1.3"
    assert answer == actions.AnswerOperator(
        request=7, outcomes=(outcome("t1", "killing", detail="its attempt t1.3"),)
    )


def test_killing_a_task_whose_later_attempt_waits_says_who_can_withdraw_it() -> None:
    cluster = Cluster()
    agent = cluster.new_agent()
    framework, _ = cluster.new_framework()
    cluster.launch(framework, "t1")
    cluster.report(agent, a_status(F, "t1", S.FAILED))
    cluster.demand(framework, a_class(waiting=["t1.2"]))

    detail = "its attempt t1.2 waits in framework f1-1, which alone can withdraw it"
    assert kill_by_operator(cluster, "t1") == [
        actions.AnswerOperator(request=7, outcomes=(outcome("t1", "pending", detail=detail),))
    ]


def test_killing_a_task_that_is_over_spares_another_whose_id_looks_like_its_attempt() -> None:
    cluster = Cluster()
    agent = cluster.new_agent()
    framework, _ = cluster.new_framework()
    cluster.launch(framework, "v1", "w1", "w1.2")
    cluster.report(agent, a_status(F, "v1", S.FAILED), a_status(F, "w1", S.FINISHED))
    cluster.demand(framework, a_class())
    (offer, *_) = cluster.offers()
    cluster.accept(framework, offer.offer_id, a_spec("v1.2", command=["another"]))

    assert kill_by_operator(cluster, "v1", "w1") == [
        actions.AnswerOperator(
            request=7,
            outcomes=(
                outcome("v1", "already over", detail="FAILED"),
                outcome("w1", "already over", detail="FINISHED"),
            ),
        )
    ]


def test_killing_an_unknown_task_of_a_framework_says_that_it_may_wait_there() -> None:
    cluster = Cluster()
    cluster.new_framework()
    detail = "it may wait in framework f1-1, which alone can withdraw it; `fairlead kill --framework f1-1` ends all of it"

    for owner in (None, F):
        assert kill_by_operator(cluster, "f1-1:5", framework_id=owner) == [
            actions.AnswerOperator(request=7, outcomes=(outcome("f1-1:5", "unknown", owner, detail),))
        ]


def test_an_operator_must_say_whose_task_is_meant_if_two_have_it() -> None:
    cluster = Cluster()
    cluster.new_agent()
    for framework in (cluster.new_framework()[0], cluster.new_framework()[0]):
        cluster.launch(framework, "t1")

    (ambiguous,) = kill_by_operator(cluster, "t1")
    _, clear = kill_by_operator(cluster, "t1", framework_id="f1-2")

    assert ambiguous == actions.AnswerOperator(
        request=7, outcomes=(outcome("t1", "ambiguous", None, "frameworks f1-1, f1-2 have such a task"),)
    )
    assert clear == actions.AnswerOperator(request=7, outcomes=(outcome("t1", "killing", "f1-2"),))


def test_an_operator_ends_a_framework_with_its_tasks_and_its_session() -> None:
    cluster = Cluster()
    agent = cluster.new_agent()
    framework, _ = cluster.new_framework()
    cluster.launch(framework, "t1")

    answer = cluster.step(events.OperatorTeardownAsked(request=7, framework_id=F))

    assert answer == [
        EndFrameworkSession(
            session=framework,
            code=ErrorCode.UNKNOWN_FRAMEWORK,
            detail="framework f1-1 was ended by an operator",
        ),
        KillTask(
            session=agent,
            framework_id=F,
            task_id=TaskId("t1"),
            grace_period_ms=0,
            reason=Reason.FRAMEWORK_REMOVED,
        ),
        actions.ForgetFramework(framework_id=F),
        actions.AnswerOperator(request=7, tasks_killed=1),
    ]
    again = cluster.step(events.OperatorTeardownAsked(request=8, framework_id=F))
    assert again == [
        actions.AnswerOperator(
            request=8,
            code=CallCode.UNKNOWN,
            error="framework f1-1: expected one that is registered, got none by that id",
        )
    ]


def test_a_framework_that_is_ended_is_told_why_if_the_operator_says_so() -> None:
    cluster = Cluster()
    cluster.new_framework()

    answer = cluster.step(
        events.OperatorTeardownAsked(request=7, framework_id=F, detail="the cluster was stopped")
    )

    (ended,) = [action for action in answer if isinstance(action, EndFrameworkSession)]
    assert ended.detail == "framework f1-1 was ended: the cluster was stopped"


def test_a_weight_is_written_down_and_moves_the_shares() -> None:
    cluster = Cluster()
    cluster.new_agent(cpus=8)
    for role in ("a", "b"):
        session, _ = cluster.new_framework(role=role)
        cluster.demand(session, a_class(units=100))

    answer = cluster.step(events.WeightSet(request=7, role=Role("a"), weight=Weight(3.0)))

    assert answer == [
        actions.StoreWeight(role=Role("a"), weight=Weight(3.0)),
        actions.AnswerOperator(request=7),
    ]
    assert [offer.units for offer in cluster.offers()] == [6, 2]


def test_weights_beyond_the_bound_are_refused_and_the_master_goes_on() -> None:
    cluster = Cluster()
    for number in range(WEIGHTS_MAX):
        cluster.machine.step(
            events.WeightSet(request=1, role=Role(f"r{number}"), weight=Weight(2.0)), cluster.now_ms
        )

    refused = cluster.step(events.WeightSet(request=7, role=Role("late"), weight=Weight(2.0)))
    brought = cluster.framework(role="later", weight=2.0)
    changed = cluster.step(events.WeightSet(request=8, role=Role("r0"), weight=Weight(5.0)))

    assert refused == [
        actions.AnswerOperator(
            request=7,
            code=CallCode.LIMIT,
            error=f"weights: expected at most {WEIGHTS_MAX} roles with one, got another for late",
        )
    ]
    assert [type(action) for action in brought] == [actions.StoreFramework, WelcomeFramework]
    assert changed[0] == actions.StoreWeight(role=Role("r0"), weight=Weight(5.0))
    assert len(cluster.master.weights) == WEIGHTS_MAX


def test_a_policy_that_is_set_is_written_down_whole() -> None:
    cluster = Cluster()

    answer = set_policy(cluster, policy="slots:2", placement="pack")

    assert answer == [
        actions.StorePolicy(policy="slots:2", placement="pack", when_head_does_not_fit="skip"),
        actions.AnswerOperator(request=7),
    ]
    assert set_policy(cluster, when_head_does_not_fit="freeze")[0] == actions.StorePolicy(
        policy="slots:2", placement="pack", when_head_does_not_fit="freeze"
    )


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"policy": "lottery"}, "policy: expected one of drf, "),
        ({"policy": "slots:0"}, "policy: expected slots:K with K from 1"),
        ({"placement": "scatter"}, "placement: expected one of align, pack, spread, least-loaded, random, heartbeat, got 'scatter'"),
        ({"when_head_does_not_fit": "panic"}, "when_head_does_not_fit: expected one of skip, freeze, got 'panic'"),
    ],
)  # fmt: skip
def test_a_policy_that_is_not_known_changes_nothing(changes: dict[str, str], complaint: str) -> None:
    cluster = Cluster()
    before = cluster.master.settings

    (answer,) = set_policy(cluster, **changes)

    assert isinstance(answer, actions.AnswerOperator)
    assert answer.code is CallCode.INVALID
    assert answer.error.startswith(complaint)
    assert cluster.master.settings == before


def test_the_policy_changes_under_running_tasks_and_back() -> None:
    """Slots give more than there is, and what runs is left alone when vectors count again."""
    cluster = Cluster()
    agent = cluster.new_agent(cpus=4, gib=8)
    framework, _ = cluster.new_framework()
    cluster.launch(framework, "t1", unit=resources(cpus=3, gib=1))
    cluster.report(agent, a_status(F))

    set_policy(cluster, policy="slots:3")
    cluster.demand(framework, a_class("big", unit=resources(cpus=3, gib=1), units=5))
    (offer,) = cluster.offers()
    assert offer.units == 2, "two of three slots are free, whatever the tasks need"
    cluster.accept(
        framework, offer.offer_id, *(a_spec(name, unit=resources(cpus=3, gib=1)) for name in ("t2", "t3"))
    )
    cluster.report(agent, a_status(F, "t2"), a_status(F, "t3"))

    set_policy(cluster, policy="drf")
    assert cluster.master.agents[A].state is AgentState.OVERCOMMITTED
    assert cluster.offers() == []
    (row,) = cluster.master.allocator.role_report()
    assert row.dominant_share == 9 / 4, "what an overcommitted agent has still counts, or shares would vanish"
    cluster.report(agent, a_status(F, "t1", S.FINISHED, 2), a_status(F, "t2", S.FINISHED, 2))
    cluster.step(events.AgentBeat(session=agent, used=()))
    assert cluster.offers() == [], "three of four cores are taken"
    cluster.report(agent, a_status(F, "t3", S.FINISHED, 2))
    assert [again.units for again in cluster.offers()] == [1]


def test_offers_that_are_out_can_be_taken_after_the_policy_changed() -> None:
    cluster = Cluster()
    cluster.new_agent()
    framework, _ = cluster.new_framework()
    cluster.demand(framework, a_class(units=2))
    (offer,) = cluster.offers()

    set_policy(cluster, policy="slots:1")

    launch, _ = cluster.accept(framework, offer.offer_id, a_spec("t1"), a_spec("t2"))
    assert isinstance(launch, LaunchTasks)
    set_policy(cluster, policy="fifo")
    assert len(cluster.master.agents[A].tasks) == 2


def test_offers_of_slots_that_there_is_no_room_for_end_with_them() -> None:
    cluster = Cluster(policy="slots:3")
    cluster.new_agent(cpus=4)
    framework, _ = cluster.new_framework()
    cluster.demand(framework, a_class(unit=resources(cpus=3), units=3))
    (offer,) = cluster.offers()
    assert offer.units == 3

    answer = set_policy(cluster, policy="drf")

    assert answer[0] == RescindOffers(
        session=framework, offer_ids=(offer.offer_id,), reason="the policy changed and its agent is too full"
    )
    assert [again.units for again in cluster.offers()] == [1]


def test_an_overcommitted_agent_is_offered_again_under_slots() -> None:
    cluster = Cluster()
    session = cluster.new_agent()
    framework, _ = cluster.new_framework()
    cluster.launch(framework, "t1")
    cluster.report(session, a_status(F))
    running = cluster.master.frameworks[F].tasks[TaskId("t1")]
    cluster.agent_leaves(session)
    cluster.agent(agent_id=A, cpus=0.5, tasks=[a_running(F)])
    assert cluster.master.agents[A].state is AgentState.OVERCOMMITTED

    set_policy(cluster, policy="slots:2")

    assert cluster.master.agents[A].state is AgentState.ACTIVE
    assert running.state is S.RUNNING


def test_the_example_of_dominant_resource_fairness_runs_through_the_core() -> None:
    """Ghodsi et al., "Dominant Resource Fairness", section 4.1: 9 CPU, 18 GB, A <1 CPU, 4 GB>, B <3 CPU, 1 GB>.

    Three tasks of A and two of B run, both with a dominant share of two thirds.
    """
    cluster = Cluster()
    cluster.new_agent(cpus=9, gib=18)
    needs = {"a": resources(cpus=1, gib=4), "b": resources(cpus=3, gib=1)}
    sessions = {role: cluster.new_framework(role=role)[0] for role in needs}
    for role, unit in needs.items():
        cluster.demand(sessions[role], a_class(role, unit=unit, units=10))

    for offer in cluster.offers():
        specs = [a_spec(f"{offer.class_id}{n}", unit=offer.unit) for n in range(offer.units)]
        cluster.accept(sessions[offer.class_id], offer.offer_id, *specs)

    held = {framework.role: len(framework.tasks) for framework in cluster.master.frameworks.values()}
    shares = {
        row.role: (row.dominant_share, row.dominant_resource)
        for row in cluster.master.allocator.role_report()
    }
    assert held == {"a": 3, "b": 2}
    assert shares == {"a": (12 / 18, "mem"), "b": (6 / 9, "cpus")}


def test_another_policy_is_answered_at_once_and_decides_when_all_are_ranked() -> None:
    cluster = Cluster()
    cluster.new_agent()
    for number in range(250):
        cluster.new_framework(role=f"r{number}")

    stored, answer = set_policy(cluster, policy="max-min")

    assert isinstance(stored, actions.StorePolicy)
    assert answer == actions.AnswerOperator(request=7)
    assert cluster.master.allocator.is_cut_short
    session, framework_id = cluster.new_framework(role="late")
    assert isinstance(cluster.demand(session, a_class())[-1], AnswerCall)
    cluster.wait(500)
    assert [offer.framework.framework_id for offer in cluster.master.offers.values()] == [framework_id]


def test_agents_are_judged_so_many_a_step_when_the_policy_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "TASKS_PER_STEP_MAX", 2)
    cluster = Cluster(policy="slots:3")
    agents = [cluster.new_agent(cpus=4) for _ in range(5)]
    framework, _ = cluster.new_framework()
    cluster.demand(framework, a_class(unit=resources(cpus=3), units=15))
    assert len(cluster.offers()) == len(agents)

    ends = [len(cluster.master.offers)]
    set_policy(cluster, policy="drf")
    while cluster.master.judging:
        ends.append(len(cluster.master.offers))
        cluster.tick()

    assert ends == [5, 5, 3, 3, 1], "two agents, or offers, a step"
    cluster.wait(100)
    assert [offer.units for offer in cluster.master.offers.values()] == [1] * 5
