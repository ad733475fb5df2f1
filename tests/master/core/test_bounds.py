"""What a master remembers is bounded, and what it does is a function of what it was told."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead_master.core import events, settings
from fairlead_master.core.events import Ticked
from fairlead_master.core.state import Master
from fairlead_proto.codes import DeclineScope
from fairlead_proto.framework_calls import StatusesAcknowledged
from fairlead_proto.ids import FrameworkId, OfferId, TaskId
from fairlead_proto.patterns import matches
from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import Constraint, Operator
from tests.builders.master import Cluster, a_class, a_spec, a_status, resources

F = FrameworkId("f1-1")
TASKS = int(os.environ.get("FAIRLEAD_BOUNDS_TASKS", "30000"))
"""A million was run once; thirty thousand pass every bound as well."""
BATCH = 1_000


def finish_many(cluster: Cluster, total: int) -> None:
    """Launch and finish so many tasks, a thousand at a time; without the invariants, which would look at everything."""
    machine = cluster.machine
    agent = cluster.new_agent(cpus=BATCH)
    framework, _ = cluster.new_framework()
    for batch in range(total // BATCH):
        cluster.now_ms += 20  # past the window of a busy cluster
        machine.step(
            events.DemandSet(
                session=framework,
                request_id=batch,
                version=batch + 1,
                classes=(a_class(unit=resources(cpus=1), units=BATCH),),
            ),
            cluster.now_ms,
        )
        machine.step(Ticked(), cluster.now_ms)
        (offer,) = list(cluster.master.offers.values())
        names = [f"t{batch}-{number}" for number in range(BATCH)]
        machine.step(
            events.OfferAccepted(
                session=framework,
                request_id=batch,
                offer_id=OfferId(offer.offer_id),
                tasks=tuple(a_spec(name, unit=resources(cpus=1)) for name in names),
            ),
            cluster.now_ms,
        )
        ends = tuple(a_status(F, name, TaskState.FINISHED) for name in names)
        machine.step(events.StatusesReported(session=agent, statuses=ends), cluster.now_ms)
        acknowledged = tuple(
            (TaskId(name), 1, status.agent_id) for name, status in zip(names, ends, strict=True)
        )
        machine.step(StatusesAcknowledged(session=framework, items=acknowledged), cluster.now_ms)


def sizes(master: Master) -> dict[str, int]:
    """The length of every table of a master that has one."""
    fields = ((name, getattr(master, name)) for name in Master.__dataclass_fields__)
    return {name: len(table) for name, table in fields if hasattr(table, "__len__")}


def test_finished_tasks_do_not_grow_the_master() -> None:
    cluster = Cluster()

    finish_many(cluster, TASKS)

    found = sizes(cluster.master)
    assert cluster.master.tasks_ended == TASKS
    assert found.pop("finished") == settings.FINISHED_TASKS_KEPT
    assert found.pop("changes") == settings.CHANGES_KEPT
    assert found.pop("ended_offers") == TASKS // BATCH
    assert {name: size for name, size in found.items() if size} == {
        "frameworks": 1,
        "framework_by_session": 1,
        "agents": 1,
        "agent_by_session": 1,
        "agents_heard": 1,
    }
    assert cluster.tick() == []


def test_ended_offers_and_completed_frameworks_are_forgotten_oldest_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settings, "ENDED_OFFERS_KEPT", 3)
    monkeypatch.setattr(settings, "COMPLETED_FRAMEWORKS_KEPT", 2)
    cluster = Cluster()
    cluster.new_agent()
    framework, _ = cluster.new_framework()
    cluster.demand(framework, a_class())
    for _ in range(5):
        (offer,) = cluster.offers()
        cluster.decline(framework, offer.offer_id)
    for _ in range(4):
        cluster.teardown(cluster.new_framework()[0])

    assert list(cluster.master.ended_offers) == ["o1-3", "o1-4", "o1-5"]
    assert list(cluster.master.completed_frameworks) == ["f1-4", "f1-5"]


def test_filters_of_declines_are_bounded() -> None:
    cluster = Cluster()
    cluster.new_agent(cpus=2)
    framework, _ = cluster.new_framework()
    cluster.demand(framework, a_class())
    for _ in range(50):
        (offer,) = cluster.offers()
        cluster.decline(framework, offer.offer_id, scope=DeclineScope.CLASS, ttl_ms=1)

    assert len(cluster.offers()) == 1


def a_history() -> str:
    """A digest of what a master decides in a short life with a bit of everything."""
    cluster = Cluster()
    digest = hashlib.sha256()
    agents = [cluster.new_agent(cpus=cpus, attributes={"rack": rack}) for cpus, rack in ((4, "a"), (8, "b"))]
    sessions = [cluster.new_framework(role=role)[0] for role in ("x", "y", "x")]
    for round_number in range(5):
        for number, session in enumerate(sessions):
            unit = resources(cpus=1 + number / 2, gib=1)
            digest.update(repr(cluster.demand(session, a_class("c", unit=unit, units=3))).encode())
        for offer in cluster.offers():
            digest.update(repr(offer).encode())
            owner = cluster.master.offers[offer.offer_id].framework
            assert owner.session is not None
            name = f"t{round_number}-{offer.offer_id}"
            digest.update(
                repr(cluster.accept(owner.session, offer.offer_id, a_spec(name, unit=offer.unit))).encode()
            )
        for agent in list(cluster.master.agents.values()):
            ends = [
                a_status(task.framework_id, task.task_id, TaskState.FINISHED, agent_id=agent.agent_id)
                for task in agent.tasks.values()
            ]
            assert agent.session is not None
            digest.update(repr(cluster.report(agent.session, *ends)).encode())
        digest.update(repr(cluster.wait(3_000)).encode())
    digest.update(repr(cluster.agent_leaves(agents[0])).encode())
    digest.update(repr(cluster.wait(100_000)).encode())
    return digest.hexdigest()


def test_the_same_events_give_the_same_actions_under_any_hash_seed() -> None:
    told = {
        subprocess.run(
            [sys.executable, "-c", "from tests.master.core.test_bounds import a_history; print(a_history())"],
            cwd=Path(__file__).parents[3],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
            timeout=100,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    }

    assert told == {a_history()} == {a_history()}


def test_one_event_matches_each_pattern_with_each_agent_once_however_many_classes_share_it() -> None:
    cluster = Cluster()
    for number in range(40):
        cluster.agent(attributes={"rack": f"rack{number}"})
    session, _ = cluster.new_framework()
    matches.cache_clear()

    classes = [
        a_class(f"c{number}", constraints=[Constraint("rack", Operator.MATCHES, (f"rack{number % 32}x*",))])
        for number in range(320)
    ]
    cluster.demand(session, *classes)
    cluster.offers()

    assert matches.cache_info().hits > 0
    assert matches.cache_info().misses <= 32 * 40
