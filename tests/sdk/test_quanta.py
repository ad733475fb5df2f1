"""Schedulers that do not say what their tasks need."""

from collections.abc import Sequence

import pytest

from fairlead_sdk import (
    Amounts,
    Driver,
    Offer,
    Scheduler,
    TaskStatus,
    demand_class,
    fitting_tasks,
    is_terminal,
    quanta_class,
    run_scheduler,
)
from tests.sdk.builders import a_master, a_task


class Grabber(Scheduler):
    """Looks at what is free and decides then what to run on it."""

    def __init__(self) -> None:
        self.offers: list[Offer] = []
        self.running = 0

    def registered(self, driver: Driver) -> None:
        driver.set_demand([quanta_class("any", 15)])

    async def resource_offers(self, driver: Driver, offers: Sequence[Offer]) -> None:
        driver.set_demand([])
        for offer in offers:
            self.offers.append(offer)
            tasks = fitting_tasks(offer, [a_task(cpus=1), a_task(cpus=0.5), a_task(cpus=0.1)])
            answers = await driver.accept(offer, tasks)
            self.running += sum(answer.launched for answer in answers)

    def status_update(self, driver: Driver, status: TaskStatus) -> None:
        self.running -= is_terminal(status.state)
        if not self.running:
            driver.stop()


async def test_quanta_are_offered_and_tasks_of_any_size_go_on_them() -> None:
    master = a_master()
    scheduler = Grabber()

    await master.finish(run_scheduler(scheduler, master=master))

    quantum = Amounts(cpus_milli=100, mem_bytes=256 * 2**20)
    assert [(offer.unit, offer.units) for offer in scheduler.offers] == [(quantum, 15)]
    assert [task.spec.resources[0] for task in master.tasks] == [1_000, 500]
    master.assert_at_rest()


def test_a_number_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="units: expected 0 or more, got -1"):
        quanta_class("any", -1)


def test_a_demand_of_nothing_is_still_refused() -> None:
    with pytest.raises(ValueError, match="expected at least one resource above zero"):
        demand_class("any", 1)
