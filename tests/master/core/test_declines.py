"""How long what was declined stays declined, when the framework goes on saying what it wants."""

from typing import Any

import pytest

from fairlead_proto.codes import DeclineScope
from fairlead_proto.tasks import Constraint, DemandClass, Operator
from tests.builders.master import UNIT, Cluster, a_class, a_spec, resources

MINUTE_MS = 60_000
TASKS = 12
OFFERS_MAX = 200
"""Nobody offers as much in earnest; a loop that gets there goes on for ever."""


def a_decliner(scope: DeclineScope, ttl_ms: int) -> tuple[Cluster, int]:
    """A framework that wants a unit and declined the only agent there is."""
    cluster = Cluster()
    cluster.new_agent()
    framework, _ = cluster.new_framework()
    cluster.demand(framework, a_class())
    (offer,) = cluster.offers()
    cluster.decline(framework, offer.offer_id, scope=scope, ttl_ms=ttl_ms)
    return cluster, framework


@pytest.mark.parametrize("scope", [DeclineScope.AGENT, DeclineScope.CLASS])
def test_what_was_declined_stays_so_until_its_time_is_over(scope: DeclineScope) -> None:
    cluster, framework = a_decliner(scope, ttl_ms=2_000)
    declined_ms = cluster.now_ms

    cluster.demand(framework, a_class(units=3), lift_declines=False)

    assert cluster.wait(declined_ms + 1_999 - cluster.now_ms) == []
    (sent,) = cluster.wait(1)
    assert [offer.units for offer in sent.offers] == [3]  # type: ignore[union-attr]  # nothing else was due


@pytest.mark.parametrize("scope", [DeclineScope.AGENT, DeclineScope.CLASS])
def test_a_demand_may_lift_what_was_declined(scope: DeclineScope) -> None:
    cluster, framework = a_decliner(scope, ttl_ms=60_000)

    cluster.demand(framework, a_class(), lift_declines=True)

    assert len(cluster.offers()) == 1


@pytest.mark.parametrize(
    "other",
    [
        a_class("other"),
        a_class(unit=resources(cpus=2, gib=1)),
        a_class(constraints=[Constraint("rack", Operator.NOT_EXISTS)]),
    ],
)
def test_another_class_was_not_declined(other: DemandClass) -> None:
    cluster, framework = a_decliner(DeclineScope.CLASS, ttl_ms=60_000)

    cluster.demand(framework, other, lift_declines=False)

    assert len(cluster.offers()) == 1


def test_a_new_session_has_declined_nothing() -> None:
    cluster, framework = a_decliner(DeclineScope.CLASS, ttl_ms=60_000)
    cluster.framework_leaves(framework)
    again, _ = cluster.new_framework(framework_id="f1-1")

    cluster.demand(again, a_class(), lift_declines=False)

    assert len(cluster.offers()) == 1


class CarefulScheduler:
    """Puts all but one of its tasks on the agent that is offered first, declines that one from then on, and says after
    each turn what it still wants."""

    def __init__(self, cluster: Cluster, *, lift_declines: bool) -> None:
        self.cluster = cluster
        self.lift_declines = lift_declines
        self.offers = 0
        self.launched: dict[str, int] = {}
        self.session, _ = cluster.new_framework()

    def run(self, duration_ms: int) -> None:
        """Let time pass; stops early where offers have no end."""
        cluster = self.cluster
        end_ms = cluster.now_ms + duration_ms
        cluster.demand(self.session, a_class(units=TASKS))
        while cluster.now_ms < end_ms and self.offers < OFFERS_MAX:
            offers = cluster.offers()
            for offer in offers:
                self._answer(offer)
            if offers:
                left = TASKS - sum(self.launched.values())
                cluster.demand(self.session, a_class(units=left), lift_declines=self.lift_declines)
            else:
                due_ms = cluster.machine.next_deadline_ms(cluster.now_ms)
                cluster.now_ms = end_ms if due_ms is None else max(cluster.now_ms, due_ms)

    def _answer(self, offer: Any) -> None:
        self.offers += 1
        here, all_of_them = self.launched.get(offer.agent_id, 0), sum(self.launched.values())
        count = min(offer.units, TASKS - 1 - here, TASKS - all_of_them)
        if count == 0:
            self.cluster.decline(self.session, offer.offer_id, scope=DeclineScope.AGENT)
            return
        specs = [a_spec(f"t{all_of_them + number}", unit=UNIT) for number in range(count)]
        self.cluster.accept(self.session, offer.offer_id, *specs)
        self.launched[offer.agent_id] = here + count


def careful(*, lift_declines: bool) -> CarefulScheduler:
    cluster = Cluster(agent_silence_ms=10 * MINUTE_MS, staging_timeout_ms=10 * MINUTE_MS)
    cluster.new_agent(cpus=100, gib=100)
    cluster.new_agent(cpus=1, gib=1)
    scheduler = CarefulScheduler(cluster, lift_declines=lift_declines)
    scheduler.run(MINUTE_MS)
    return scheduler


def test_a_careful_scheduler_gets_all_its_tasks_in_a_few_offers() -> None:
    scheduler = careful(lift_declines=False)

    assert sum(scheduler.launched.values()) == TASKS
    assert scheduler.offers <= 4


def test_who_lifts_what_it_declines_is_offered_it_without_end() -> None:
    """As every demand did once: the agent that is declined is chosen again each time, and the last task never runs."""
    scheduler = careful(lift_declines=True)

    assert sum(scheduler.launched.values()) == TASKS - 1
    assert scheduler.offers == OFFERS_MAX
