"""A scheduler of one's own: the copies of a service go on different racks, one each.

The master offers room by demand and fairness; which of the offers to take is ours to say. This scheduler accepts an offer
only if no copy runs on its rack yet, and declines the others for that agent. A copy that ends is started again elsewhere.

    fairlead agent --attribute rack=a ...     (agents need a rack)
    python examples/rack_scheduler.py --master 127.0.0.1:5050 --copies 3 --runs 6
"""

import argparse
import asyncio
from collections.abc import Sequence

from fairlead_sdk import (
    Driver,
    FairleadError,
    Offer,
    Scheduler,
    Scope,
    Task,
    TaskState,
    TaskStatus,
    Transport,
    demand_class,
    is_terminal,
    run_scheduler,
)


class RackScheduler(Scheduler):
    """Keeps ``copies`` copies running, each on a rack of its own, until ``runs`` of them have finished."""

    def __init__(self, command: Sequence[str], *, copies: int, runs: int) -> None:
        self.command = command
        self.copies = copies
        self.runs = runs
        self.rack_of: dict[str, str] = {}
        """Task id to rack, for every copy that is being launched or runs."""
        self.finished: list[tuple[str, str]] = []
        """(task id, rack) of the copies that finished."""
        self.failure: FairleadError | None = None
        self._launches = 0

    def registered(self, driver: Driver) -> None:
        """Say what is wanted; also after a reconnection, which keeps what runs."""
        self._ask(driver)

    async def resource_offers(self, driver: Driver, offers: Sequence[Offer]) -> None:
        """Take one offer a free rack, give the others back."""
        for offer in offers:
            rack = offer.attributes.get("rack", "")
            if rack and rack not in self.rack_of.values() and self._missing > 0:
                await self._launch(driver, offer, rack)
            else:
                driver.decline([offer], reason=f"rack {rack or 'unknown'} is taken", scope=Scope.AGENT)

    async def _launch(self, driver: Driver, offer: Offer, rack: str) -> None:
        self._launches += 1
        task = Task(self.command, task_id=f"copy-{self._launches}", cpus=1, mem="128MiB")
        self.rack_of[task.task_id] = rack
        [answer] = await driver.accept(offer, [task])
        if not answer.launched:
            # It never existed: the rack is free again, and the demand has to say so.
            del self.rack_of[task.task_id]
            self._ask(driver)

    def status_update(self, driver: Driver, status: TaskStatus) -> None:
        """Free the rack of a copy that is over, and ask for the next one."""
        print(status.task_id, status.state.value, "on", self.rack_of.get(status.task_id, "?"))
        if not is_terminal(status.state) or status.task_id not in self.rack_of:
            return
        rack = self.rack_of.pop(status.task_id)
        if status.state is TaskState.FINISHED:
            self.finished.append((status.task_id, rack))
        if len(self.finished) >= self.runs:
            driver.stop()
        else:
            self._ask(driver)

    def error(self, driver: Driver, error: FairleadError) -> None:
        """No agent has a rack, or is large enough: say so and end."""
        self.failure = error
        driver.stop()

    @property
    def _missing(self) -> int:
        left = self.runs - len(self.finished)
        return min(self.copies, left) - len(self.rack_of)

    def _ask(self, driver: Driver) -> None:
        wanted = demand_class("copy", max(0, self._missing), cpus=1, mem="128MiB", constraints=["rack"])
        driver.set_demand([wanted])


async def main(
    master: str | Transport | None = None,
    copies: int = 3,
    runs: int = 6,
    command: Sequence[str] = ("sleep", "0.5"),
) -> int:
    """Run until so many copies finished; 1 if that cannot be."""
    scheduler = RackScheduler(command, copies=copies, runs=runs)
    await run_scheduler(scheduler, name="racks", master=master)
    if scheduler.failure is not None:
        print("error:", scheduler.failure)
        return 1
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--master", help="HOST:PORT; by default FAIRLEAD_MASTER, then 127.0.0.1:5050")
    parser.add_argument("--copies", type=int, default=3, help="copies at a time (default: 3)")
    parser.add_argument("--runs", type=int, default=6, help="runs in all (default: 6)")
    arguments = parser.parse_args()
    raise SystemExit(asyncio.run(main(arguments.master, arguments.copies, arguments.runs)))
