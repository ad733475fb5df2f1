"""What frameworks make a master keep is bounded, by the host they come from and in total."""

import pytest

from fairlead_master.core import actions, settings
from fairlead_master.core.events import FrameworkDisconnected
from fairlead_master.core.machine import Remembered
from fairlead_master.core.state import Master
from fairlead_proto.codes import CallCode, ErrorCode
from fairlead_proto.framework_calls import FrameworkConnected
from fairlead_proto.framework_events import AnswerCall, EndFrameworkSession, WelcomeFramework
from fairlead_proto.ids import FrameworkId, Role
from tests.builders.master import Cluster, a_class

DAY_MS = 24 * 3600 * 1000


def connect(cluster: Cluster, peer: str) -> list[actions.Action]:
    """Connect a framework without the invariants, which would look at thousands of others."""
    cluster.session += 1
    hello = FrameworkConnected(
        session=cluster.session, framework_id=None, name="test", role=Role("default"), peer=peer
    )
    return cluster.machine.step(hello, cluster.now_ms)


def come_and_go(cluster: Cluster, peer: str, count: int) -> None:
    """So many frameworks connect and leave, one after the other."""
    for _ in range(count):
        connect(cluster, peer)
        cluster.machine.step(FrameworkDisconnected(session=cluster.session), cluster.now_ms)


def away(master: Master, peer: str) -> list[FrameworkId]:
    return [key for key, framework in master.frameworks_away.items() if framework.peer == peer]


def the_answer(orders: list[actions.Action]) -> AnswerCall:
    (answer,) = (order for order in orders if isinstance(order, AnswerCall))
    return answer


@pytest.mark.parametrize(
    ("wish_ms", "granted_ms"), [(0, 3_600_000), (3 * DAY_MS, 3 * DAY_MS), (366 * DAY_MS, 7 * DAY_MS)]
)
def test_a_failover_timeout_beyond_the_bound_is_shortened_and_the_framework_is_told(
    wish_ms: int, granted_ms: int
) -> None:
    cluster = Cluster()

    store, welcome = cluster.framework(failover_timeout_ms=wish_ms)
    cluster.framework_leaves(1)

    assert isinstance(store, actions.StoreFramework)
    assert isinstance(welcome, WelcomeFramework)
    assert store.failover_timeout_ms == welcome.failover_timeout_ms == granted_ms
    assert cluster.machine.next_deadline_ms(cluster.now_ms) == cluster.now_ms + granted_ms


def test_a_failover_timeout_written_down_under_another_bound_is_shortened() -> None:
    stored = actions.StoreFramework(
        framework_id=FrameworkId("f1-1"),
        name="test",
        role=Role("default"),
        principal="",
        failover_timeout_ms=366 * DAY_MS,
    )

    cluster = Cluster(
        remembered=Remembered(epoch=2, frameworks=(stored,)), failover_timeout_max_ms=2 * DAY_MS
    )

    assert cluster.machine.next_deadline_ms(cluster.now_ms) == cluster.now_ms + 2 * DAY_MS


def test_of_a_hosts_frameworks_that_are_away_the_longest_away_without_tasks_is_ended() -> None:
    cluster = Cluster()
    cluster.new_agent()
    busy, _ = cluster.new_framework(peer="10.0.0.1")
    cluster.launch(busy, "t1")
    cluster.framework_leaves(busy)
    other, _ = cluster.new_framework(peer="10.0.0.2")
    cluster.framework_leaves(other)
    come_and_go(cluster, "10.0.0.1", settings.FRAMEWORKS_AWAY_PER_PEER_MAX - 1)

    connect(cluster, "10.0.0.1")
    orders = cluster.framework_leaves(cluster.session)

    assert orders == [actions.ForgetFramework(framework_id=FrameworkId("f1-3"))]
    kept = away(cluster.master, "10.0.0.1")
    assert len(kept) == settings.FRAMEWORKS_AWAY_PER_PEER_MAX
    assert kept[:2] == ["f1-1", "f1-4"]
    assert away(cluster.master, "10.0.0.2") == ["f1-2"]


def test_if_all_hosts_keep_too_many_away_the_one_that_keeps_most_gives_one_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settings, "FRAMEWORKS_AWAY_MAX", 5)
    cluster = Cluster()
    come_and_go(cluster, "10.0.0.1", 1)
    come_and_go(cluster, "10.0.0.2", 4)

    come_and_go(cluster, "10.0.0.3", 1)

    assert [len(away(cluster.master, f"10.0.0.{host}")) for host in (1, 2, 3)] == [1, 3, 1]
    assert "f1-2" not in cluster.master.frameworks


def test_a_remembered_framework_is_kept_while_an_agent_may_bring_its_tasks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settings, "FRAMEWORKS_AWAY_MAX", 1)
    known = actions.StoreFramework(
        framework_id=FrameworkId("f1-1"),
        name="test",
        role=Role("default"),
        principal="",
        failover_timeout_ms=DAY_MS,
    )
    agent = actions.StoreAgent(agent_id="a1-1", hostname="h", total=(1, 1, 1, 1), attributes=())  # type: ignore[arg-type]  # an id
    cluster = Cluster(remembered=Remembered(epoch=2, frameworks=(known,), agents=(agent,)))

    come_and_go(cluster, "10.0.0.1", 1)

    assert "f1-1" in cluster.master.frameworks_away


def test_a_host_may_have_so_many_frameworks_and_another_host_still_gets_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settings, "FRAMEWORKS_PER_PEER_MAX", 2)
    cluster = Cluster()
    connect(cluster, "10.0.0.1")
    connect(cluster, "10.0.0.1")

    refusal = cluster.framework(peer="10.0.0.1")
    cluster.new_framework(peer="10.0.0.2")

    assert refusal == [
        EndFrameworkSession(
            session=3,
            code=ErrorCode.LIMIT,
            detail="frameworks: expected at most 2 from one host, got another from 10.0.0.1: tear down those that are over",
        )
    ]


def test_a_framework_that_comes_back_from_another_host_counts_there() -> None:
    cluster = Cluster()
    session, framework_id = cluster.new_framework(peer="10.0.0.1")
    cluster.framework_leaves(session)

    cluster.new_framework(framework_id=framework_id, peer="10.0.0.2")

    assert cluster.master.peers.counts() == {"10.0.0.2": (1, 0, [])}


def test_demands_that_take_too_much_memory_are_refused_to_the_host_that_sends_them() -> None:
    cluster = Cluster()
    greedy, _ = cluster.new_framework(peer="10.0.0.1")
    again, _ = cluster.new_framework(peer="10.0.0.1")
    other, _ = cluster.new_framework(peer="10.0.0.2")
    most = settings.DEMANDS_BYTES_PER_PEER_MAX
    cluster.demand(greedy, a_class(), cost_bytes=most)

    refused = the_answer(cluster.demand(again, a_class(), cost_bytes=1))
    elsewhere = the_answer(cluster.demand(other, a_class(), cost_bytes=1))
    less = the_answer(cluster.demand(greedy, a_class(), cost_bytes=most - 1))
    now_fits = the_answer(cluster.demand(again, a_class(), cost_bytes=1))

    assert refused.code is CallCode.LIMIT
    assert refused.detail == (
        f"set_demand: expected at most {most} bytes for the demands from 10.0.0.1, got {most + 1} with this one: "
        "want fewer classes, or fewer values in their constraints"
    )
    assert [answer.code for answer in (elsewhere, less, now_fits)] == [CallCode.OK] * 3


def test_demands_of_all_frameworks_together_are_bounded_and_one_that_leaves_makes_room() -> None:
    cluster = Cluster()
    sessions = [cluster.new_framework(peer=f"10.0.0.{host}")[0] for host in range(5)]
    for session in sessions[:4]:
        cluster.demand(session, a_class(), cost_bytes=settings.DEMANDS_BYTES_MAX // 4)

    refused = the_answer(cluster.demand(sessions[4], a_class(), cost_bytes=1))
    cluster.framework_leaves(sessions[0])
    now_fits = the_answer(cluster.demand(sessions[4], a_class(), cost_bytes=1))

    assert refused.code is CallCode.LIMIT
    assert "the demands of all frameworks" in refused.detail
    assert now_fits.code is CallCode.OK
