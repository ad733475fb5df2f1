"""Frameworks that declare no demand: what is free is offered to them in small quanta."""

from collections import Counter

import pytest

from fairlead_master.allocation.policies import names
from fairlead_master.core.events import AgentBeat
from fairlead_proto.codes import CallCode, DeclineScope, Rejection
from fairlead_proto.framework_events import AnswerAccept, AnswerCall
from fairlead_proto.ids import ClassId, TaskId
from fairlead_proto.orders import LaunchTasks
from fairlead_proto.resources import Vector
from fairlead_proto.tasks import Constraint, DemandClass, Operator, TaskUsage
from tests.builders.master import KINDS, Cluster, a_class, a_spec, resources

QUANTUM: Vector = (100, 256 * 2**20, 0, 0)


def in_quanta(units: int, *constraints: Constraint) -> DemandClass:
    """A class that does not say what its tasks need, as it comes from the border."""
    return DemandClass(
        class_id=ClassId("any"), unit=KINDS.zero, units=units, constraints=constraints, is_declared=False
    )


def test_what_is_free_is_offered_in_quanta_up_to_the_units_asked_for() -> None:
    cluster = Cluster()
    cluster.new_agent(cpus=1, gib=8)
    cluster.new_agent(cpus=4, gib=0.5)
    session, _ = cluster.new_framework()

    cluster.demand(session, in_quanta(1_000))
    offers = cluster.offers()

    assert {(offer.agent_id, offer.unit, offer.units) for offer in offers} == {
        ("a1-1", QUANTUM, 10),
        ("a1-2", QUANTUM, 2),
    }
    assert cluster.offers() == []


def test_tasks_of_any_size_go_on_the_quanta_of_an_offer() -> None:
    """Nothing is known of what they need until then, so nothing but the offer bounds them."""
    cluster = Cluster()
    cluster.new_agent(cpus=1, gib=8)
    session, _ = cluster.new_framework()
    cluster.demand(session, in_quanta(10))
    (offer,) = cluster.offers()

    actions = cluster.accept(
        session,
        offer.offer_id,
        a_spec("large", unit=resources(cpus=0.7, gib=0.25)),
        a_spec("small", unit=resources(cpus=0.01, gib=1)),
        a_spec("beyond", unit=resources(cpus=0.3)),
    )

    (launch,) = [action for action in actions if isinstance(action, LaunchTasks)]
    assert [task.task_id for task in launch.tasks] == ["large", "small"]
    (answer,) = [action for action in actions if isinstance(action, AnswerAccept)]
    assert [item.rejection for item in answer.answers] == [None, None, Rejection.NO_FIT]
    cluster.now_ms += cluster.master.settings.rejected_pause_ms
    assert [offer.units for offer in cluster.offers()] == [2], "what is left over is free, and still wanted"


def test_a_declined_quantum_is_left_alone_for_a_while() -> None:
    cluster = Cluster()
    cluster.new_agent(cpus=1, gib=8)
    session, _ = cluster.new_framework()
    cluster.demand(session, in_quanta(10))
    (offer,) = cluster.offers()

    cluster.decline(session, offer.offer_id, scope=DeclineScope.AGENT)

    assert cluster.offers() == []
    cluster.now_ms += cluster.master.settings.decline_ttl_ms
    assert [again.units for again in cluster.offers()] == [10]


@pytest.mark.parametrize("policy", names.EXAMPLES)
def test_under_every_policy_both_those_who_declare_and_those_who_do_not_are_served(policy: str) -> None:
    cluster = Cluster(policy=policy)
    for _ in range(10):
        cluster.new_agent(cpus=1, gib=8)
    declared, _ = cluster.new_framework(role="declared")
    undeclared, _ = cluster.new_framework(role="undeclared")
    cluster.demand(declared, a_class(unit=QUANTUM, units=50))
    cluster.demand(undeclared, in_quanta(50))

    given = Counter[str]()
    for offer in cluster.offers():
        given[offer.class_id] += offer.units

    assert min(given["c"], given["any"]) > 0, given


def test_shares_of_both_are_those_of_the_policy() -> None:
    cluster = Cluster()
    cluster.new_agent(cpus=3, gib=64)
    declared, _ = cluster.new_framework(role="declared")
    undeclared, _ = cluster.new_framework(role="undeclared", weight=2.0)
    cluster.demand(declared, a_class(unit=resources(cpus=0.2, gib=0.1), units=1_000))
    cluster.demand(undeclared, in_quanta(1_000))

    given = Counter[str]()
    for offer in cluster.offers():
        given[offer.class_id] += offer.units * offer.unit[0]

    assert given == {"c": 1_000, "any": 2_000}


@pytest.mark.parametrize(("is_declared", "given"), [(True, {"busy": 5, "idle": 5}), (False, {"idle": 10})])
def test_under_bottleneck_based_fairness_they_are_charged_for_what_they_measurably_use(
    is_declared: bool, given: dict[str, int]
) -> None:
    """Zeldes and Feitelson, section 3: no demands are known, the use of each client is tracked.

    Both hold a third of the host, one uses a core and the other a tenth of one. Who declares demands shares what is held;
    of those who do not, the idle one gets all that is left.
    """
    cluster = Cluster(policy="bbf")
    agent = cluster.new_agent(cpus=3, gib=64)
    sessions = {role: cluster.new_framework(role=role) for role in ("busy", "idle")}
    wanted = a_class(unit=QUANTUM, units=10) if is_declared else in_quanta(10)
    for role, (session, _) in sessions.items():
        cluster.demand(session, wanted)
        for offer in cluster.offers():
            specs = [a_spec(f"{role}-{number}", unit=QUANTUM) for number in range(offer.units)]
            cluster.accept(session, offer.offer_id, *specs)

    for beats in range(1, 21):
        cluster.wait(1_000)
        usages = tuple(
            [
                ((framework_id, TaskId(f"{role}-{number}")), TaskUsage(cpu_time_ms=beats * spent_ms))
                for (role, (_, framework_id)), spent_ms in zip(sessions.items(), (100, 10), strict=True)
                for number in range(10)
            ]
        )
        cluster.step(AgentBeat(session=agent, used=(), tasks=usages))
    for session, _ in sessions.values():
        cluster.demand(session, wanted)
    offers = cluster.offers()

    assert given == {str(cluster.master.offers[o.offer_id].framework.role): o.units for o in offers}


def test_a_quantum_is_a_setting() -> None:
    cluster = Cluster(quantum_cpus_milli=500, quantum_mem_bytes=0)
    cluster.new_agent(cpus=1, gib=8)
    session, _ = cluster.new_framework()
    cluster.demand(session, in_quanta(10))

    (offer,) = cluster.offers()

    assert (offer.unit, offer.units) == ((500, 0, 0, 0), 2)


def test_where_no_agent_may_be_taken_or_holds_a_quantum_it_is_refused() -> None:
    cluster = Cluster()
    cluster.new_agent(cpus=0.05, gib=8)
    session, _ = cluster.new_framework()

    (too_small,) = cluster.demand(session, in_quanta(1))
    (excluded,) = cluster.demand(session, in_quanta(1, Constraint("gpu", Operator.EXISTS)))

    assert isinstance(too_small, AnswerCall)
    assert isinstance(excluded, AnswerCall)
    assert (too_small.code, excluded.code) == (CallCode.INFEASIBLE, CallCode.INFEASIBLE)
    assert "class any needs cpus=0.1,mem=256MiB: no registered agent is large enough" in too_small.detail
    assert "no registered agent meets gpu" in excluded.detail
