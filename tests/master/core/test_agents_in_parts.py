"""Thousands of tasks come and go with their agent, so many a step; one that had no turn yet is as it was."""

from collections import Counter
from collections.abc import Sequence

from fairlead_master.core import events, settings
from fairlead_master.core.actions import Action, ForgetAgent, StoreAgent, StoreFramework
from fairlead_master.core.machine import Remembered
from fairlead_master.core.state import AgentState
from fairlead_proto.framework_events import AnnounceAgentGone, FinishReconciliation, ForwardStatuses
from fairlead_proto.ids import DEFAULT_ROLE, AgentId, FrameworkId
from fairlead_proto.orders import KillTask
from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import RunningTask
from tests.builders.master import Cluster, a_class, a_running, a_status, resources

MOST = settings.TASKS_PER_STEP_MAX
MANY = 2 * MOST + 7
TINY = resources(cpus=0.001)
A = AgentId("a1-1")
F = FrameworkId("f1-1")
S = TaskState
DAY_MS = 24 * 3600 * 1000


def running(count: int = MANY) -> list[RunningTask]:
    return [a_running(F, f"t{number}", unit=TINY) for number in range(count)]


def restarted() -> tuple[Cluster, int]:
    """A master after a restart, before its agent is back; gives the session of its framework as well."""
    stored = StoreFramework(
        framework_id=F, name="test", role=DEFAULT_ROLE, principal="", failover_timeout_ms=3600 * 1000
    )
    agent = StoreAgent(agent_id=A, hostname="host", total=resources(100, 8), attributes=())
    cluster = Cluster(remembered=Remembered(epoch=2, frameworks=(stored,), agents=(agent,)))
    session, _ = cluster.new_framework(framework_id=F)
    return cluster, session


def with_tasks() -> tuple[Cluster, int]:
    """A cluster whose agent, in session 2, runs tasks; gives the session of their framework as well."""
    cluster, session = restarted()
    back(cluster, running())
    settle(cluster)
    assert states(cluster) == {S.RUNNING: MANY}
    return cluster, session


def back(cluster: Cluster, tasks: Sequence[RunningTask]) -> list[Action]:
    return cluster.agent(agent_id=A, cpus=100, tasks=tasks)


def settle(cluster: Cluster) -> list[list[Action]]:
    """The ticks that are due now."""
    ticks = []
    while (
        due_ms := cluster.machine.next_deadline_ms(cluster.now_ms)
    ) is not None and due_ms <= cluster.now_ms:
        ticks.append(cluster.tick())
    return ticks


def states(cluster: Cluster) -> Counter[TaskState]:
    framework = cluster.master.frameworks[F]
    return Counter(task.state for task in framework.tasks.values())


def told(found: list[Action]) -> Counter[TaskState]:
    return Counter(
        status.state for action in found if isinstance(action, ForwardStatuses) for status in action.statuses
    )


def test_a_registration_is_settled_in_parts_and_nothing_is_offered_or_lost_meanwhile() -> None:
    cluster, session = restarted()
    cluster.demand(session, a_class(unit=TINY))

    back(cluster, running())
    assert states(cluster) == {S.RUNNING: MOST}
    early = cluster.reconcile(session, "t0", f"t{MANY - 1}")
    assert told(early) == {S.RUNNING: 1}
    assert isinstance(early[-1], FinishReconciliation)
    assert early[-1].recovering_agent_ids == (A,)
    assert cluster.offers() == []
    assert states(cluster) == {S.RUNNING: 2 * MOST}
    settle(cluster)

    assert states(cluster) == {S.RUNNING: MANY}
    assert told(cluster.reconcile(session, f"t{MANY - 1}")) == {S.RUNNING: 1}
    assert len(cluster.master.offers) + len(cluster.offers()) == 1


def test_what_an_agent_says_waits_behind_what_it_brought() -> None:
    cluster, session = restarted()
    back(cluster, running())
    agent = cluster.session

    soon = cluster.report(agent, a_status(F, f"t{MANY - 1}", S.FINISHED, 2))
    cluster.reconcile(session)
    settle(cluster)

    assert told(soon) == {}
    assert cluster.state(F, f"t{MANY - 1}") is S.FINISHED
    assert states(cluster) == {S.RUNNING: MANY - 1}
    assert cluster.report(agent, a_status(F, "t0", S.FINISHED, 2)) != []


def test_reports_in_a_row_are_settled_as_fast_as_they_come() -> None:
    cluster, _ = restarted()
    back(cluster, running())
    registration = cluster.master.agents[A].registration
    assert registration is not None
    before = len(registration.left)

    cluster.report(cluster.session, *[a_status(F, f"t{number}", S.RUNNING, 1) for number in range(MOST)])

    assert len(registration.left) <= before


def test_a_session_that_breaks_leaves_the_rest_to_the_next_one() -> None:
    cluster, session = restarted()
    back(cluster, running())

    cluster.agent_leaves(cluster.session)
    assert cluster.master.agents[A].state is AgentState.RECOVERING
    assert told(cluster.reconcile(session, f"t{MANY - 1}")) == {}
    assert settle(cluster) == []
    back(cluster, running(MANY - 1))
    cluster.agent(agent_id=A, cpus=100, incarnation=2, tasks=running(MANY - 1))
    settle(cluster)

    assert states(cluster) == {S.RUNNING: MANY - 1}
    assert cluster.master.agents[A].state is AgentState.ACTIVE


def test_a_kill_meanwhile_goes_out_at_once_and_again_when_the_task_has_its_turn() -> None:
    cluster, session = with_tasks()
    cluster.agent_leaves(2)
    back(cluster, running())

    at_once = cluster.kill(session, f"t{MANY - 1}")
    later = [action for tick in settle(cluster) for action in tick]

    assert isinstance(at_once[0], KillTask)
    assert [action.task_id for action in later if isinstance(action, KillTask)] == [f"t{MANY - 1}"]


def test_tasks_an_agent_is_back_without_are_lost_in_parts() -> None:
    cluster, _ = with_tasks()
    cluster.agent_leaves(2)

    parts = [back(cluster, running(3)), *settle(cluster)]

    assert [told(part)[S.LOST] for part in parts] == [MOST - 6, MOST, 10]
    assert states(cluster) == {S.RUNNING: 3}


def test_a_launch_is_not_judged_before_it_has_its_turn() -> None:
    cluster, session = with_tasks()
    cluster.launch(session, "new", unit=TINY)
    cluster.agent_leaves(2)
    cluster.now_ms += 20_000
    back(cluster, [*running(), a_running(F, "new", unit=TINY)])
    cluster.now_ms += 10_000

    settle(cluster)

    assert cluster.state(F, "new") is S.STAGING
    assert not cluster.master.agents[A].registration


def test_an_agent_nobody_knows_is_told_to_end_its_tasks_in_parts() -> None:
    cluster, _ = restarted()

    parts = [cluster.agent(agent_id="stranger", tasks=running()), *settle(cluster)]

    assert [sum(isinstance(action, KillTask) for action in part) for part in parts] == [MOST, MOST, 7]


def test_an_agent_is_given_up_in_parts_and_tasks_without_their_turn_run_on_when_it_returns() -> None:
    cluster, _ = with_tasks()
    cluster.agent_leaves(2)
    cluster.now_ms += cluster.master.settings.agent_timeout_ms

    part = cluster.tick()
    assert told(part) == {S.UNREACHABLE: MOST - 1}  # The agent itself is one thing to do as well.
    assert cluster.master.agents[A].state is AgentState.UNREACHABLE
    returned = [*back(cluster, running()), *[action for tick in settle(cluster) for action in tick]]

    assert told(returned) == {S.RUNNING: MOST - 1}
    assert states(cluster) == {S.RUNNING: MANY}


def test_an_agent_is_given_up_to_its_last_task() -> None:
    cluster, _ = with_tasks()
    cluster.agent_leaves(2)
    cluster.now_ms += cluster.master.settings.agent_timeout_ms

    parts = settle(cluster)

    assert [told(part)[S.UNREACHABLE] for part in parts] == [MOST - 1, MOST, 8]
    assert states(cluster) == {S.UNREACHABLE: MANY}
    assert cluster.master.allocator.agent_books(A).tasks == 0


def test_an_agent_is_forgotten_with_the_last_of_its_tasks_and_that_is_said_once() -> None:
    cluster, _ = with_tasks()
    cluster.agent_leaves(2)
    cluster.now_ms += cluster.master.settings.agent_timeout_ms
    settle(cluster)
    cluster.now_ms += DAY_MS

    parts = settle(cluster)

    assert [told(part)[S.GONE] for part in parts] == [MOST, MOST, 7]
    announced = [[type(a) for a in part if isinstance(a, AnnounceAgentGone | ForgetAgent)] for part in parts]
    assert announced == [[], [], [AnnounceAgentGone, ForgetAgent]]
    assert A not in cluster.master.agents


def test_another_policy_makes_no_offers_of_an_agent_before_its_time() -> None:
    cluster, session = restarted()
    cluster.demand(session, a_class(unit=TINY))
    back(cluster, running())

    cluster.step(events.PolicySet(request=1, policy="slots:1000", placement=""))
    cluster.report(cluster.session)

    assert cluster.master.agents[A].registration is not None
    assert not cluster.master.offers
    settle(cluster)
    assert states(cluster) == {S.RUNNING: MANY}
