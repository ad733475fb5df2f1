"""All offers of who leaves are over at once and end so many a step: nobody may use one, and what it promised is held until then."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_master.core import offers, settings
from fairlead_master.core.actions import Action, ForgetAgent
from fairlead_master.core.events import PolicySet
from fairlead_master.core.machine import is_in_parts
from fairlead_master.core.state import AgentState
from fairlead_proto.codes import Rejection
from fairlead_proto.framework_events import AnswerAccept, LaunchAnswer, RescindOffers, SendOffers
from fairlead_proto.ids import AgentId, FrameworkId
from fairlead_proto.orders import LaunchTasks
from fairlead_proto.tasks import RunningTask
from tests.builders.master import Cluster, a_class, a_running, a_spec, accept_answered, resources

TINY = resources(cpus=0.001)
MOST = 20
"""In place of 250, since all books are checked after each step."""
MANY = 2 * MOST + 7
A, F = AgentId("a1-1"), FrameworkId("f1-1")


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "OFFERS_ENDED_PER_STEP_MAX", MOST)


def with_offers(count: int = MANY, **changes: Any) -> tuple[Cluster, int]:
    """A cluster whose one agent, in session 1, is offered so many times to one framework; gives the session of that as well."""
    cluster = Cluster(**changes)
    cluster.new_agent(cpus=100)
    session, _ = cluster.new_framework()
    cluster.demand(session, *[a_class(f"c{number}", unit=TINY) for number in range(count)])
    while len(cluster.master.offers) < count:
        cluster.now_ms += cluster.master.settings.busy_window_ms
        cluster.tick()
    return cluster, session


def ended_by_tick(cluster: Cluster, how: str) -> list[int]:
    """How many offers end so in each tick until all have; the books are checked after each."""
    ended = []
    while cluster.master.leaving:
        before = cluster.master.tallies.offers_ended[how]
        cluster.tick()
        cluster.master.owes_cycle = False  # Cycles in between are not the point here.
        ended.append(cluster.master.tallies.offers_ended[how] - before)
    return ended


def rescinded(actions: list[Action]) -> list[str]:
    return [each for action in actions if isinstance(action, RescindOffers) for each in action.offer_ids]


def answers(actions: list[Action]) -> list[LaunchAnswer]:
    return [answer for action in actions if isinstance(action, AnswerAccept) for answer in action.answers]


def test_offers_of_a_framework_that_leaves_end_so_many_a_step() -> None:
    cluster, session = with_offers()

    cluster.framework_leaves(session)
    at_once = cluster.master.tallies.offers_ended[offers.SESSION_ENDED]

    assert at_once == MOST
    assert cluster.machine.next_deadline_ms(cluster.now_ms) == cluster.now_ms
    assert ended_by_tick(cluster, offers.SESSION_ENDED) == [MOST, 7]
    assert cluster.master.allocator.free(A) == cluster.master.agents[A].total


def test_offers_of_an_agent_that_leaves_end_so_many_a_step_and_are_rescinded_once() -> None:
    cluster, _ = with_offers()
    out = list(cluster.master.offers)

    told = rescinded(cluster.agent_leaves(1))
    assert len(told) == MOST
    while cluster.master.leaving:
        told += rescinded(cluster.tick())

    assert told == out


def test_agents_that_are_silent_at_once_end_so_many_offers_a_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "TASKS_PER_STEP_MAX", 30)
    cluster = Cluster(offer_lease_ms=60_000)
    for _ in range(5):
        cluster.new_agent(cpus=30, gib=30)
    session, _ = cluster.new_framework()
    cluster.demand(session, *[a_class(f"c{number}", units=5) for number in range(30)])
    cluster.wait(1_000)
    assert len(cluster.master.offers) > 5 * MOST
    cluster.now_ms += cluster.master.settings.agent_silence_ms

    ended = []
    while cluster.master.agents_heard or cluster.master.leaving:
        ended.append(len(rescinded(cluster.tick())))

    assert max(ended) <= 30 + MOST
    assert not cluster.master.offers


def test_an_offer_of_an_agent_that_left_cannot_be_accepted_before_it_has_ended() -> None:
    cluster, session = with_offers()
    *_, last = cluster.master.offers
    cluster.agent_leaves(1)

    actions = cluster.accept(session, last, a_spec(unit=TINY))

    gone = LaunchAnswer("t1", Rejection.AGENT_GONE, f"offer {last} is over: its agent left")
    told = RescindOffers(session=session, offer_ids=(last,), reason=offers.AGENT_LEFT)
    assert actions == [told, accept_answered(cluster, session, last, gone)]
    assert ended_by_tick(cluster, offers.AGENT_LEFT) == [MOST, 6]


def test_a_framework_that_is_back_cannot_use_what_its_earlier_session_was_offered() -> None:
    cluster, session = with_offers()
    *_, declined, last = cluster.master.offers
    cluster.framework(framework_id=F)
    session = cluster.session

    (answer,) = answers(cluster.accept(session, last, a_spec(unit=TINY)))
    cluster.decline(session, declined)

    detail = f"offer {last} is over: its framework's session ended"
    assert answer == LaunchAnswer("t1", Rejection.EXPIRED, detail)
    assert cluster.master.tallies.offers_ended[offers.DECLINED] == 0
    assert ended_by_tick(cluster, offers.SESSION_ENDED) == [MOST, 5]


def test_a_framework_that_is_back_is_offered_all_it_wants_once_its_old_offers_have_ended() -> None:
    cluster, _ = with_offers()
    cluster.framework(framework_id=F)
    session = cluster.session
    cluster.demand(session, a_class(f"c{MANY - 1}", unit=TINY, units=3))

    made = [
        terms.units
        for action in cluster.wait(100)
        if isinstance(action, SendOffers)
        for terms in action.offers
    ]

    assert sum(made) == 3
    assert not cluster.master.leaving


def test_a_framework_that_is_ended_is_forgotten_with_the_last_of_its_offers() -> None:
    cluster, session = with_offers()

    cluster.teardown(session)
    assert F in cluster.master.frameworks
    assert ended_by_tick(cluster, offers.SESSION_ENDED) == [MOST, 7]

    assert F in cluster.master.completed_frameworks
    assert F not in cluster.master.frameworks


def test_nothing_is_offered_of_an_agent_that_is_back_before_its_old_offers_have_ended() -> None:
    cluster, _ = with_offers()
    cluster.agent_leaves(1)

    cluster.agent(agent_id=A, incarnation=2, cpus=0.2)
    before = cluster.master.allocator.agent_books(A)
    ended = ended_by_tick(cluster, offers.AGENT_LEFT)
    after = cluster.master.allocator.agent_books(A)

    assert not before.active
    assert before.tasks == MANY - MOST
    assert ended == [MOST, 7]
    assert after.active
    assert cluster.master.agents[A].state is AgentState.ACTIVE


def test_a_new_session_of_an_agent_settles_as_much_less_as_offers_of_the_old_one_ended() -> None:
    cluster, _ = with_offers(MOST - 1)
    running = [a_running(F, f"t{number}", unit=TINY) for number in range(settings.TASKS_PER_STEP_MAX)]

    cluster.agent(agent_id=A, incarnation=2, cpus=100, tasks=running)
    settled = len(cluster.master.agents[A].tasks)

    cluster.tick()
    after = len(cluster.master.agents[A].tasks)

    assert (settled, after) == (settings.TASKS_PER_STEP_MAX - (MOST - 1), settings.TASKS_PER_STEP_MAX)


def test_an_agent_is_not_forgotten_before_its_last_offer_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "OFFERS_ENDED_PER_STEP_MAX", 1)
    cluster, _ = with_offers(5, agent_timeout_ms=0, agent_forget_ms=0, offer_lease_ms=60_000)
    cluster.agent_leaves(1)

    actions: list[Action] = []
    while A in cluster.master.agents:
        actions += cluster.tick()

    assert len(rescinded(actions)) == 4
    assert isinstance(actions[-1], ForgetAgent)


def test_offers_that_another_policy_has_no_room_for_are_over_at_once_and_end_so_many_a_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settings, "TASKS_PER_STEP_MAX", 2 * MOST + 1)
    cluster = Cluster(policy=f"slots:{MANY}")
    cluster.new_agent(cpus=1)
    session, _ = cluster.new_framework()
    cluster.demand(session, *[a_class(f"c{number}", unit=resources(cpus=1)) for number in range(MANY)])
    while len(cluster.master.offers) < MANY:
        cluster.now_ms += cluster.master.settings.busy_window_ms
        cluster.tick()
    *_, last = cluster.master.offers

    cluster.step(PolicySet(request=1, policy="drf"))
    actions = cluster.accept(session, last, a_spec())

    detail = f"offer {last} is over: {offers.POLICY_CHANGED}"
    assert answers(actions) == [LaunchAnswer("t1", Rejection.EXPIRED, detail)]
    assert ended_by_tick(cluster, offers.POLICY_CHANGED) == [MOST, 6]


class Both:
    """The same events for a master that ends all offers at once and one that ends one or two a step."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.most = (10**6, random.randint(1, 2))
        self.clusters = tuple(Cluster(failover_timeout_ms=2_000, agent_timeout_ms=1_000) for _ in range(2))
        self.whole = self.clusters[0]
        self.made: list[str] = []
        self.tasks = 0

    def each(self, do: Callable[[Cluster], list[Action]]) -> None:
        """Do the same with both, and compare what they answer."""
        told = []
        for cluster, most in zip(self.clusters, self.most, strict=True):
            with patch.object(settings, "OFFERS_ENDED_PER_STEP_MAX", most):
                actions = do(cluster)
            told.append(
                [
                    replace(action, answers=tuple(map(_outcome, action.answers)))
                    if isinstance(action, AnswerAccept)
                    else action
                    for action in actions
                    if isinstance(action, AnswerAccept | LaunchTasks | SendOffers)
                ]
            )
            if cluster is self.whole:
                for action in actions:
                    if isinstance(action, SendOffers):
                        self.made += [terms.offer_id for terms in action.offers]
        assert told[1] == told[0]

    def tick(self) -> None:
        """A tick of the one that is behind, between events."""
        with patch.object(settings, "OFFERS_ENDED_PER_STEP_MAX", self.most[1]):
            if is_in_parts(self.clusters[1].master):
                self.clusters[1].master.last_cycle_ms = self.clusters[1].now_ms
                self.clusters[1].tick()

    def cycle(self) -> None:
        """Do all that is left, then let time pass and serve."""
        for cluster, most in zip(self.clusters, self.most, strict=True):
            with patch.object(settings, "OFFERS_ENDED_PER_STEP_MAX", most):
                cluster.master.last_cycle_ms = cluster.now_ms
                while is_in_parts(cluster.master):
                    cluster.master.owes_cycle = False
                    cluster.tick()
        self.compare()
        passed_ms = self.random.choice([20, 20, 20, 1_500, 6_000])
        for cluster in self.clusters:
            cluster.now_ms += passed_ms
            cluster.master.last_cycle_ms = (
                cluster.now_ms
            )  # What is due comes first, however many ticks it takes.
        due = [cluster.machine.next_deadline_ms(cluster.now_ms) for cluster in self.clusters]
        if due[0] == self.whole.now_ms:
            for cluster, most in zip(self.clusters, self.most, strict=True):
                with patch.object(settings, "OFFERS_ENDED_PER_STEP_MAX", most):
                    while cluster.machine.next_deadline_ms(cluster.now_ms) == cluster.now_ms:
                        cluster.master.owes_cycle = False
                        cluster.tick()
        self.compare()
        self.each(_serve)

    def compare(self) -> None:
        whole, cut = (_books(cluster) for cluster in self.clusters)
        assert cut == whole

    def framework_comes(self) -> None:
        away = [None, *self.whole.master.frameworks]
        framework_id = self.random.choice(away)
        if framework_id is not None or len(self.whole.master.frameworks) < 4:
            self.each(lambda cluster: cluster.framework(framework_id=framework_id))

    def framework_goes(self) -> None:
        sessions = list(self.whole.master.framework_by_session)
        if sessions:
            session, is_over = self.random.choice(sessions), self.random.random() < 0.3
            self.each(lambda cluster: (cluster.teardown if is_over else cluster.framework_leaves)(session))

    def agent_comes(self) -> None:
        agent_id = self.random.choice([None, *self.whole.master.agents])
        if agent_id is None and len(self.whole.master.agents) == 3:
            return
        cpus = self.random.choice([3, 6])
        known = self.whole.master.agents.get(AgentId(agent_id or ""))
        running: list[RunningTask] = (
            [a_running(*key, unit=task.resources) for key, task in known.tasks.items()] if known else []
        )
        self.each(
            lambda cluster: cluster.agent(agent_id=agent_id, cpus=cpus, tasks=running, incarnation=2),
        )

    def agent_goes(self) -> None:
        sessions = list(self.whole.master.agent_by_session)
        if sessions:
            session = self.random.choice(sessions)
            self.each(lambda cluster: cluster.agent_leaves(session))

    def want(self) -> None:
        sessions = list(self.whole.master.framework_by_session)
        if sessions:
            session = self.random.choice(sessions)
            units = [self.random.randint(1, 5) for _ in range(self.random.randint(1, 3))]
            classes = [
                a_class(f"c{place}", unit=resources(cpus=0.5 + place / 4), units=count)
                for place, count in enumerate(units)
            ]
            self.each(lambda cluster: cluster.demand(session, *classes))

    def answer(self) -> None:
        sessions = list(self.whole.master.framework_by_session)
        if not sessions or not self.made:
            return
        session, offer_id = self.random.choice(sessions), self.random.choice(self.made[-30:])
        if self.random.random() < 0.3:
            self.each(lambda cluster: cluster.decline(session, offer_id))
        else:
            self.tasks += 1
            spec = a_spec(f"t{self.tasks}", unit=resources(cpus=0.5))
            self.each(lambda cluster: cluster.accept(session, offer_id, spec))


def _serve(cluster: Cluster) -> list[Action]:
    cluster.now_ms += cluster.master.settings.busy_window_ms
    return cluster.tick()


def _outcome(answer: LaunchAnswer) -> LaunchAnswer:
    """Without the reason: who tries to use an offer that is not its own is told so as long as it has not ended, and where first
    the agent left and then the framework, that the latter did."""
    is_over = answer.rejection in (Rejection.AGENT_GONE, Rejection.UNAUTHORIZED, Rejection.EXPIRED)
    return replace(answer, rejection=Rejection.EXPIRED if is_over else answer.rejection, detail="")


def _books(cluster: Cluster) -> tuple[object, ...]:
    master, allocator = cluster.master, cluster.master.allocator
    return (
        list(master.offers),
        sorted(master.ended_offers),
        {each: (allocator.agent_books(each), agent.state) for each, agent in master.agents.items()},
        {each: (framework.state, allocator.pending(each)) for each, framework in master.frameworks.items()},
        {each: sorted(framework.tasks) for each, framework in master.frameworks.items()},
        sorted(master.completed_frameworks),
    )


@given(random=st.randoms(use_true_random=False))
def test_offers_that_end_in_parts_leave_what_ending_them_at_once_does(random: Random) -> None:
    both = Both(random)
    facts = [both.framework_comes, both.framework_goes, both.agent_comes, both.agent_goes]
    facts += [both.want, both.answer, both.answer, both.tick]
    for fact in [both.agent_comes, both.framework_comes] * 4:
        fact()
    for _ in range(6):
        both.want()
        both.cycle()
        for fact in random.choices(facts, k=6):
            fact()
    both.cycle()
