"""Schedulers of one's own, against a cluster in memory."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from fairlead_proto.codes import ErrorCode, Rejection
from fairlead_sdk import (
    AcceptItem,
    Driver,
    FairleadError,
    Infeasible,
    Offer,
    Scheduler,
    Scope,
    Superseded,
    TaskStatus,
    demand_class,
    is_terminal,
    run_scheduler,
)
from fairlead_sim.testing import AT_ONCE, Outcome, VirtualMaster
from tests.sdk.builders import a_master, a_task, begin


class Recorder(Scheduler):
    """Wants some units, accepts each offer as far as its tasks go, and notes what happens."""

    def __init__(self, tasks: int = 1) -> None:
        self.left = tasks
        self.notes: list[str] = []
        self.answers: list[AcceptItem] = []
        self.on_offers: Callable[[Driver, Sequence[Offer]], None] | None = None

    def ask(self, driver: Driver) -> None:
        driver.set_demand([demand_class("c", self.left, cpus=1, mem="64MiB")])

    def registered(self, driver: Driver) -> None:
        self.notes.append("registered")
        self.ask(driver)

    async def resource_offers(self, driver: Driver, offers: Sequence[Offer]) -> None:
        if self.on_offers is not None:
            self.on_offers(driver, offers)
            return
        for offer in offers:
            count = min(offer.units, self.left)
            self.left -= count
            self.answers += await driver.accept(offer, [a_task() for _ in range(count)])

    def offer_rescinded(self, driver: Driver, offer_id: str) -> None:
        self.notes.append(f"rescinded {offer_id}")

    def status_update(self, driver: Driver, status: TaskStatus) -> None:
        self.notes.append(status.state.value)

    def disconnected(self, driver: Driver) -> None:
        self.notes.append("disconnected")

    def agent_gone(self, driver: Driver, agent_id: str) -> None:
        self.notes.append(f"gone {agent_id}")

    def error(self, driver: Driver, error: FairleadError) -> None:
        self.notes.append(f"error {type(error).__name__}")


class StopAtEnd(Recorder):
    def status_update(self, driver: Driver, status: TaskStatus) -> None:
        super().status_update(driver, status)
        if is_terminal(status.state):
            driver.stop()


async def test_a_scheduler_is_offered_what_it_asked_for_and_told_what_happens() -> None:
    master = a_master()
    scheduler = StopAtEnd()

    await master.finish(run_scheduler(scheduler, master=master))

    assert scheduler.notes == ["registered", "RUNNING", "FINISHED"]
    assert [item.launched for item in scheduler.answers] == [True]
    await master.advance(60_000)
    assert not master.tasks[0].unacknowledged
    assert not master.frameworks
    master.assert_at_rest()


async def test_a_scheduler_that_overrides_nothing_holds_nothing() -> None:
    class Idle(Scheduler):
        def registered(self, driver: Driver) -> None:
            driver.set_demand([demand_class("c", 1, cpus=1)])

    master = a_master()
    run = begin(run_scheduler(Idle(), master=master))
    await master.advance(30_000)

    master.assert_at_rest()
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)


async def test_rejected_tasks_are_answered_one_by_one() -> None:
    master = a_master()
    master.reject_next_accept(Rejection.NO_FIT)
    scheduler = Recorder(2)
    run = begin(run_scheduler(scheduler, master=master))
    await master.advance(0)

    assert [item.rejection for item in scheduler.answers] == [Rejection.NO_FIT] * 2
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)


async def test_an_offer_that_is_over_is_answered_expired_without_asking() -> None:
    master = a_master()
    held: list[Offer] = []
    answers: list[AcceptItem] = []
    scheduler = Recorder()
    scheduler.on_offers = lambda _, offers: held.extend(offers)

    class Late(Recorder):
        def offer_rescinded(self, driver: Driver, offer_id: str) -> None:
            begin(self.try_it(driver))

        async def try_it(self, driver: Driver) -> None:
            answers.extend(await driver.accept(held[0], [a_task()]))

    late = Late()
    late.on_offers = scheduler.on_offers
    run = begin(run_scheduler(late, master=master))
    await master.advance(4_999)
    assert not answers
    await master.advance(1)

    assert [item.rejection for item in answers] == [Rejection.EXPIRED]
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)


async def test_declined_room_is_not_offered_again_until_the_filter_ends_or_is_lifted() -> None:
    master = a_master()
    times_ms: list[int] = []
    scheduler = Recorder()

    def decline(driver: Driver, offers: Sequence[Offer]) -> None:
        times_ms.append(master.clock.now_ms())
        driver.decline(offers, scope=Scope.AGENT, ttl="3s")
        if len(times_ms) == 2:
            wanted = demand_class("c", 1, cpus=1, mem="64MiB")
            driver.set_demand([wanted], lift_declines=True)

    scheduler.on_offers = decline
    run = begin(run_scheduler(scheduler, master=master))
    await master.advance(4_000)

    assert times_ms == [0, 3_000, 3_000]
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)


async def test_a_refused_demand_raises_where_it_is_awaited_and_else_goes_to_error() -> None:
    master = a_master(cpus=1)
    caught: list[FairleadError] = []

    class Greedy(Recorder):
        async def registered(self, driver: Driver) -> None:  # type: ignore[override]  # callbacks may be async
            try:
                await driver.set_demand([demand_class("big", 1, cpus=2)])
            except Infeasible as error:
                caught.append(error)
            driver.set_demand([demand_class("bigger", 1, cpus=3)])

    scheduler = Greedy()
    run = begin(run_scheduler(scheduler, master=master))
    await master.advance(0)

    assert [str(getattr(error, "missing", None)) for error in caught] == ["{'cpus': 1000}"]
    assert scheduler.notes == ["error Infeasible"]
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)


async def test_a_slow_callback_does_not_keep_offers_from_being_rescinded_or_reports_from_acknowledgement() -> (
    None
):
    master = a_master()
    gate = asyncio.Event()

    class Slow(Recorder):
        async def status_update(self, driver: Driver, status: TaskStatus) -> None:  # type: ignore[override]
            await gate.wait()

    run = begin(run_scheduler(Slow(), master=master))
    await master.advance(1_000)
    assert len(master.tasks[0].unacknowledged) == 2

    await master.advance(10_000)
    assert not master.tasks[0].unacknowledged
    assert not run.done()
    gate.set()
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)


async def test_a_callback_that_raises_ends_the_run_with_its_error() -> None:
    class Broken(Recorder):
        def status_update(self, driver: Driver, status: TaskStatus) -> None:
            raise RuntimeError("my own fault")

    master = a_master()
    with pytest.raises(RuntimeError, match="my own fault"):
        await master.finish(run_scheduler(Broken(), master=master))
    await master.advance(10_000)
    master.assert_at_rest()


async def test_a_session_taken_over_ends_the_scheduler() -> None:
    master = a_master()
    scheduler = Recorder()
    run = begin(run_scheduler(scheduler, master=master))
    await master.advance(0)
    master.refuse(ErrorCode.SUPERSEDED)

    with pytest.raises(Superseded):
        await master.finish(run)
    assert scheduler.notes[-1] == "error Superseded"


async def test_a_broken_stream_is_mended_and_an_accept_in_flight_answered() -> None:
    master = a_master()
    master.script(lambda _: True, Outcome(duration_ms=20_000))
    master.lose_next_accept(launched=True)
    scheduler = StopAtEnd()

    await master.finish(run_scheduler(scheduler, master=master))

    assert [item.launched for item in scheduler.answers] == [True]
    assert len(master.tasks) == 1
    assert scheduler.notes[:3] == ["registered", "disconnected", "registered"]


async def test_a_scheduler_may_leave_its_tasks_running() -> None:
    master = a_master()
    master.script(lambda _: True, Outcome(duration_ms=None))

    class Leave(Recorder):
        def status_update(self, driver: Driver, status: TaskStatus) -> None:
            driver.stop(on_exit="leave")

    await master.finish(run_scheduler(Leave(), master=master))

    assert len(master.running()) == 1
    assert list(master.frameworks) == ["f1-1"]


async def test_ids_made_for_a_resumed_scheduler_are_none_of_an_earlier_session() -> None:
    master = a_master()
    master.script(lambda _: True, Outcome(duration_ms=None))

    class Leave(Recorder):
        async def resource_offers(self, driver: Driver, offers: Sequence[Offer]) -> None:
            await super().resource_offers(driver, offers)
            driver.stop(on_exit="leave")

    earlier, later, last = Leave(), Leave(), Leave()
    await master.finish(run_scheduler(earlier, master=master))
    for scheduler in (later, last):
        await master.advance(1)
        await master.finish(run_scheduler(scheduler, master=master, framework_id="f1-1"))

    items = earlier.answers + later.answers + last.answers
    assert [item.launched for item in items] == [True] * 3, items
    assert earlier.answers[0].task_id == "f1-1-1"
    assert len(master.running()) == 3


async def test_reconciliation_tells_what_is_news_and_says_when_it_is_done() -> None:
    master = a_master()
    master.script(lambda _: True, Outcome(duration_ms=None))
    seen: list[object] = []

    class Asker(Recorder):
        async def status_update(self, driver: Driver, status: TaskStatus) -> None:  # type: ignore[override]
            self.notes.append(f"{status.task_id} {status.state.value} {status.reason.value}")
            if len(self.notes) == 2:
                seen.append(await driver.reconcile("f1-1-1", "nobody"))

    scheduler = Asker()
    run = begin(run_scheduler(scheduler, master=master))
    await master.advance(1_000)

    assert seen == [()]
    assert scheduler.notes == [
        "registered",
        "f1-1-1 RUNNING NONE",
        "nobody LOST UNKNOWN_TASK",
    ]
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)


async def test_a_lost_agent_is_told_with_the_fate_of_its_tasks() -> None:
    master = VirtualMaster(settings=replace(AT_ONCE, agent_timeout_ms=30_000, agent_forget_ms=60_000))
    master.add_agent("a", cpus=1, mem="1GiB")
    master.script(lambda _: True, Outcome(duration_ms=None))
    scheduler = StopAtEnd()
    run = begin(run_scheduler(scheduler, master=master))
    await master.advance(1_000)
    master.lose_agent("a")
    await master.finish(run)

    assert scheduler.notes[-3:] == ["UNREACHABLE", "GONE", "gone a"]
    assert master.clock.now_ms() == 91_000
