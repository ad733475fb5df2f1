"""Why work waits, as the master tells it: what the allocator knows, and what only the master does."""

import pytest

from fairlead_master.allocation.explain import WaitReason
from fairlead_master.allocation.parts import at_once
from fairlead_master.core import actions
from fairlead_master.core.explain import Explanation, explain
from fairlead_master.core.machine import Remembered
from fairlead_proto.ids import AgentId
from fairlead_proto.task_state import TaskState
from tests.builders.master import Cluster, a_class, a_status, resources


def explained(cluster: Cluster, identity: str) -> Explanation:
    found = at_once(explain(cluster.master, identity))
    assert found is not None
    return found


def test_nothing_is_known_of_an_id_nobody_has() -> None:
    cluster = Cluster()
    cluster.new_framework()

    assert at_once(explain(cluster.master, "f1-1/t9")) is None
    assert at_once(explain(cluster.master, "t9")) is None
    assert at_once(explain(cluster.master, "f9-9")) is None


@pytest.mark.parametrize("identity", ["t9", "f1-1", "f1-1/c", "f1-1/t9"])
def test_a_waiting_task_is_found_by_any_of_its_names(identity: str) -> None:
    cluster = Cluster()
    cluster.new_agent(cpus=1)
    framework, _ = cluster.new_framework()
    cluster.launch(framework, "t1")
    cluster.demand(framework, a_class(waiting=["t9"]))
    assert cluster.offers() == []

    found = explained(cluster, identity)

    assert found.reason is WaitReason.FULL
    assert found.identity.startswith(identity)


def test_a_launched_task_does_not_wait_and_says_where_it_is() -> None:
    cluster = Cluster()
    agent = cluster.new_agent()
    framework, framework_id = cluster.new_framework()
    cluster.launch(framework, "t1")

    staging = explained(cluster, "t1")
    cluster.report(agent, a_status(framework_id, state=TaskState.FAILED, exit_code=3))
    over = explained(cluster, "f1-1/t1")

    assert (staging.reason, staging.sentence) == (
        WaitReason.NOT_WAITING,
        "it does not wait: STAGING on agent a1-1",
    )
    assert (over.reason, over.sentence) == (WaitReason.NOT_WAITING, "it is over: FAILED on agent a1-1")


def test_a_framework_that_is_away_waits_for_itself() -> None:
    cluster = Cluster()
    session, framework_id = cluster.new_framework()
    cluster.framework_leaves(session)

    assert explained(cluster, framework_id).reason is WaitReason.FRAMEWORK_AWAY


def test_a_framework_that_wants_nothing_or_is_over_does_not_wait() -> None:
    cluster = Cluster()
    session, framework_id = cluster.new_framework()

    assert explained(cluster, framework_id).sentence == "the framework wants nothing beyond what it has"
    cluster.teardown(session)
    assert explained(cluster, framework_id).sentence == "the framework is over"


def test_during_recovery_everything_waits_for_the_agents() -> None:
    known = actions.StoreAgent(
        agent_id=AgentId("a1-1"), hostname="host", total=resources(4, 8), attributes=()
    )
    cluster = Cluster(remembered=Remembered(epoch=2, agents=(known,)))
    session, framework_id = cluster.new_framework()
    cluster.demand(session, a_class())

    found = explained(cluster, framework_id)

    assert found.reason is WaitReason.RECOVERING
    assert found.evidence == {"agents": "a1-1"}


def test_the_most_final_reason_speaks_for_a_framework() -> None:
    cluster = Cluster()
    session, framework_id = cluster.new_framework()
    cluster.demand(session, a_class("large", unit=resources(cpus=64)), a_class("small"))
    cluster.new_agent(cpus=1)
    cluster.offers()

    assert explained(cluster, f"{framework_id}/small").reason is WaitReason.OFFERED
    assert explained(cluster, framework_id).reason is WaitReason.INFEASIBLE
