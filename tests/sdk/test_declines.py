"""What a scheduler declined stays declined, however often it says what it wants."""

import asyncio
from collections.abc import Sequence

import pytest

from fairlead_sdk import Driver, Offer, Scheduler, Task, TaskStatus, demand_class, is_terminal, run_scheduler
from fairlead_sdk.wire import write_batches
from fairlead_sim.testing import VirtualMaster
from tests.sdk.builders import a_task
from tests.sdk.test_session_state import an_open_session

TASKS = 12
OFFERS_MAX = 200


class Careful(Scheduler):
    """Takes all its tasks but one on the agent that is offered first, and says after each offer what it still wants."""

    def __init__(self, *, lift_declines: bool) -> None:
        self.lift_declines = lift_declines
        self.agents: list[str] = []
        """Of each task."""
        self.offers = 0
        self.over = 0

    def registered(self, driver: Driver) -> None:
        self.ask(driver)

    def ask(self, driver: Driver) -> None:
        wanted = demand_class("c", TASKS - len(self.agents), cpus=1, mem="64MiB")
        driver.set_demand([wanted], lift_declines=self.lift_declines)

    def resource_offers(self, driver: Driver, offers: Sequence[Offer]) -> None:
        for offer in offers:
            self.offers += 1
            room = TASKS - 1 - self.agents.count(offer.agent_id)
            tasks: list[Task] = [a_task() for _ in range(min(offer.units, room, TASKS - len(self.agents)))]
            if tasks:
                driver.accept(offer, tasks)
                self.agents += [offer.agent_id] * len(tasks)
            else:
                driver.decline([offer], reason="enough of its tasks are there", ttl="20s")
        self.ask(driver)
        if self.offers >= OFFERS_MAX:
            driver.stop()

    def status_update(self, driver: Driver, status: TaskStatus) -> None:
        self.over += is_terminal(status.state)
        if self.over == TASKS:
            driver.stop()


def a_master() -> VirtualMaster:
    """One agent, with room for all."""
    master = VirtualMaster()
    master.add_agent("large", cpus=100, mem="100GiB")
    return master


async def test_a_careful_scheduler_is_offered_what_it_declined_once_its_time_is_over() -> None:
    master = a_master()
    scheduler = Careful(lift_declines=False)
    ended = asyncio.create_task(run_scheduler(scheduler, master=master))

    await master.advance(59_999)
    placed, offers = len(scheduler.agents), scheduler.offers
    master.add_agent("small", cpus=1, mem="1GiB")
    await master.finish(ended)

    assert (placed, offers) == (TASKS - 1, 1 + 3), "the first, then one each 20 s"
    assert scheduler.agents == ["large"] * (TASKS - 1) + ["small"]


async def test_a_scheduler_may_lift_what_it_declined() -> None:
    master = a_master()
    scheduler = Careful(lift_declines=True)

    await master.finish(run_scheduler(scheduler, master=master))

    assert scheduler.offers == OFFERS_MAX
    assert master.clock.now_ms() < 60_000


@pytest.mark.parametrize("lift_declines", [False, True])
def test_whether_declines_are_lifted_is_always_said(lift_declines: bool) -> None:
    """A master takes silence for an older peer, which expects that they are."""
    session = an_open_session()
    session.set_demand((), lift_declines=lift_declines)

    [batch] = write_batches(session.take_outgoing())

    [call] = batch.calls
    assert call.set_demand.HasField("lift_declines")
    assert call.set_demand.lift_declines is lift_declines
