"""The runner: turns of the loop that end in time, what waits for a commit, and what a full disk changes."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from fairlead_master.allocation.weights import Weight
from fairlead_master.core import actions, events
from fairlead_master.core import turn as turn_module
from fairlead_master.core.actions import Action, Durable
from fairlead_master.core.machine import Machine, Remembered
from fairlead_master.core.settings import CoreSettings
from fairlead_master.core.state import FrameworkState
from fairlead_master.core.turn import TURN_MS_MAX
from fairlead_master.registry_files import NoRoomError
from fairlead_master.runner import Runner
from fairlead_proto.clock import SteadyClock
from fairlead_proto.codes import CallCode, ErrorCode
from fairlead_proto.framework_calls import FrameworkConnected, TeardownAsked
from fairlead_proto.framework_events import EndFrameworkSession
from fairlead_proto.ids import AgentId, FrameworkId, Role
from fairlead_proto.reports import AgentConnected
from tests.builders.master import KINDS, a_class, resources

TURNS = 20
"""Of the loop, in which everything that waits for nothing from outside has happened."""


class SlowDisk:
    """A registry whose commits end when the test says so."""

    def __init__(self) -> None:
        self.asked: list[list[Durable]] = []
        self.short: str | None = None
        self._commit: Future[None] = Future()

    def write(self, batch: Sequence[Durable]) -> "Future[None]":
        self.asked.append(list(batch))
        self._commit = Future()
        return self._commit

    def shortage(self) -> str | None:
        return self.short

    def finish(self) -> None:
        self._commit.set_result(None)

    def fail(self, error: Exception) -> None:
        self._commit.set_exception(error)


class Desk:
    """A runner with sessions whose messages are noted in the order in which they leave."""

    def __init__(self, *known: str) -> None:
        stored = [
            actions.StoreFramework(
                framework_id=FrameworkId(name),
                name=name,
                role=Role("r"),
                principal="",
                failover_timeout_ms=1_000_000,
            )
            for name in known
        ]
        self.disk = SlowDisk()
        clock = SteadyClock()
        remembered = Remembered(epoch=2, frameworks=tuple(stored))
        machine = Machine(KINDS, CoreSettings(), remembered, clock.now_ms())
        self.runner = Runner(machine, self.disk, clock)  # type: ignore[arg-type]  # its shape is the registry's
        self.left: list[Action] = []

    @property
    def frameworks(self) -> dict[FrameworkId, Any]:
        return self.runner.machine.master.frameworks

    def session(self) -> int:
        return self.runner.open_session(self.left.extend)

    def hello(self, framework_id: str | None = None) -> int:
        session = self.session()
        known = FrameworkId(framework_id) if framework_id is not None else None
        event = FrameworkConnected(session=session, framework_id=known, name="n", role=Role("r"))
        self.runner.post(event)
        return session

    def agent(self, agent_id: AgentId | None, cpus: int) -> None:
        event = AgentConnected(
            session=self.session(),
            agent_id=agent_id,
            incarnation=1,
            hostname="h",
            total=resources(cpus, 8),
            attributes={},
        )
        self.runner.post(event)

    def demand(self, session: int, version: int = 1) -> None:
        event = events.DemandSet(
            session=session, request_id=version, version=version, classes=(a_class(),), cost_bytes=0
        )
        self.runner.post(event)

    def weigh(self, weight: float = 2.0) -> "asyncio.Task[actions.AnswerOperator]":
        asked = self.runner.ask(
            lambda number: events.WeightSet(request=number, role=Role("eng"), weight=Weight(weight))
        )
        return asyncio.ensure_future(asked)

    async def settle(self) -> list[str]:
        """Let the loop run; the kinds of what has left since the last time."""
        for _ in range(TURNS):
            await asyncio.sleep(0)
        kinds = [type(action).__name__ for action in self.left]
        self.left.clear()
        return kinds


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_module, "RETRY_MS", 0)


async def test_nobody_hears_of_what_is_not_durable() -> None:
    desk = Desk()
    desk.hello()

    before = await desk.settle()
    desk.disk.finish()
    after = await desk.settle()

    assert [type(action) for action in desk.disk.asked[0]] == [actions.StoreFramework]
    assert (before, after) == ([], ["WelcomeFramework"])


async def test_nothing_overtakes_what_waits_for_a_commit() -> None:
    desk = Desk("f1-1")
    known = desk.hello("f1-1")
    assert await desk.settle() == ["WelcomeFramework"]
    desk.hello()
    await desk.settle()
    desk.demand(known)

    before = await desk.settle()
    desk.disk.finish()
    after = await desk.settle()

    assert (before, after) == ([], ["WelcomeFramework", "AnswerCall"])


async def test_what_waits_for_a_commit_is_counted_also_while_it_is_written() -> None:
    desk = Desk("f1-1")
    known = desk.hello("f1-1")
    await desk.settle()
    assert desk.runner.actions_held == 0

    desk.hello()
    await desk.settle()
    storing_and_welcoming = desk.runner.actions_held
    desk.demand(known)
    await desk.settle()
    with_an_answer = desk.runner.actions_held
    desk.disk.finish()
    await desk.settle()

    assert (storing_and_welcoming, with_an_answer, desk.runner.actions_held) == (2, 3, 0)


@pytest.mark.usefixtures("no_pause")
async def test_what_there_is_no_room_for_is_counted_until_it_is_written() -> None:
    desk = Desk("f1-1")
    await a_full_disk(desk)
    await desk.settle()
    assert desk.runner.actions_held == 1

    desk.disk.finish()
    await desk.settle()

    assert desk.runner.actions_held == 0


async def test_what_comes_during_a_commit_shares_the_next_one() -> None:
    desk = Desk()
    desk.hello()
    await desk.settle()
    desk.hello()
    await desk.settle()
    desk.hello()
    await desk.settle()

    assert [len(batch) for batch in desk.disk.asked] == [1]
    desk.disk.finish()
    assert await desk.settle() == ["WelcomeFramework"]
    assert [len(batch) for batch in desk.disk.asked] == [1, 2]
    desk.disk.finish()
    assert await desk.settle() == ["WelcomeFramework"] * 2


async def test_an_operator_is_answered_after_the_commit() -> None:
    desk = Desk()
    answer = desk.weigh()

    await desk.settle()
    was_answered = answer.done()
    desk.disk.finish()

    assert not was_answered
    assert (await answer).code is CallCode.OK


async def test_the_end_of_a_framework_is_answered_after_the_commit() -> None:
    desk = Desk("f1-1")
    session = desk.hello("f1-1")
    await desk.settle()
    desk.runner.post(TeardownAsked(session=session, request_id=1))

    before = await desk.settle()
    desk.disk.finish()

    assert before == []
    assert await desk.settle() == ["AnswerCall"]


async def test_a_registry_that_fails_ends_the_master_and_nothing_leaves() -> None:
    desk = Desk()
    desk.hello()
    await desk.settle()

    desk.disk.fail(OSError("the disk is broken"))

    assert await desk.settle() == []
    with pytest.raises(OSError, match="the disk is broken"):
        await desk.runner.failed


async def test_stopping_waits_for_the_commit_under_way() -> None:
    desk = Desk()
    desk.hello()
    await desk.settle()

    stopping = asyncio.ensure_future(desk.runner.stop())
    await desk.settle()
    was_stopped = stopping.done()
    desk.disk.finish()
    await stopping

    assert not was_stopped
    assert await desk.settle() == ["WelcomeFramework"]


async def test_short_of_room_what_adds_something_is_refused_before_the_core_has_it() -> None:
    desk = Desk("f1-1")
    desk.disk.short = "the disk is full"
    desk.hello()
    weight = desk.weigh()
    await asyncio.sleep(0)
    known = desk.hello("f1-1")
    desk.demand(known)

    answer = await weight
    end, *_ = desk.left
    kinds = await desk.settle()

    assert kinds == ["EndFrameworkSession", "WelcomeFramework", "AnswerCall"]
    assert isinstance(end, EndFrameworkSession)
    assert (end.code, end.detail) == (ErrorCode.LIMIT, "the disk is full")
    assert (answer.code, answer.error) == (CallCode.LIMIT, "the disk is full")
    assert list(desk.frameworks) == ["f1-1"]
    assert desk.runner.machine.master.weights == {}
    assert desk.disk.asked == []
    desk.disk.short = None
    desk.hello()
    await desk.settle()
    desk.disk.finish()
    assert await desk.settle() == ["WelcomeFramework"]


async def a_full_disk(desk: Desk) -> int:
    """Let the commit of a new framework fail; gives the session of a known one that is served."""
    known = desk.hello("f1-1")
    await desk.settle()
    desk.hello()
    await desk.settle()
    desk.demand(known)
    desk.disk.fail(NoRoomError("the disk is full"))
    return known


@pytest.mark.usefixtures("no_pause")
async def test_without_room_a_framework_is_refused_and_undone_and_others_are_served() -> None:
    desk = Desk("f1-1")

    known = await a_full_disk(desk)
    first = await desk.settle()
    desk.demand(known, version=2)
    desk.hello()

    assert first == ["EndFrameworkSession", "AnswerCall", "AnswerCall"]
    assert await desk.settle() == ["AnswerCall", "EndFrameworkSession"]
    live = [
        item.framework_id for item in desk.frameworks.values() if item.state is not FrameworkState.COMPLETED
    ]
    assert live == ["f1-1"]
    assert not desk.runner.failed.done()


@pytest.mark.usefixtures("no_pause")
async def test_what_there_was_no_room_for_is_tried_again_until_it_is_written() -> None:
    desk = Desk("f1-1")
    await a_full_disk(desk)
    await desk.settle()

    desk.disk.fail(NoRoomError("the disk is still full"))
    await desk.settle()
    desk.disk.finish()
    await desk.settle()
    desk.hello()
    await desk.settle()
    desk.disk.finish()

    assert await desk.settle() == ["WelcomeFramework"]
    kinds = [[type(action).__name__ for action in batch] for batch in desk.disk.asked]
    assert kinds == [["StoreFramework"], ["ForgetFramework"], ["ForgetFramework"], ["StoreFramework"]]


@pytest.mark.usefixtures("no_pause")
async def test_without_room_a_change_is_not_answered_as_done_and_is_written_later() -> None:
    desk = Desk()
    answer = desk.weigh()
    await desk.settle()

    desk.disk.fail(NoRoomError("the disk is full"))
    refused = await answer
    await desk.settle()
    again = await desk.weigh(3.0)
    desk.disk.finish()
    await desk.settle()

    assert refused.code is CallCode.LIMIT
    assert refused.error.startswith("in force, but not written down yet")
    assert (again.code, again.error) == (CallCode.LIMIT, "the disk is full")
    assert desk.disk.asked[1] == [actions.StoreWeight(role=Role("eng"), weight=Weight(2.0))]
    assert len(desk.disk.asked) == 2


@pytest.mark.usefixtures("no_pause")
async def test_without_room_an_end_can_be_asked_for_and_is_written_with_the_next_attempt() -> None:
    desk = Desk("f1-1")
    known = await a_full_disk(desk)
    await desk.settle()

    desk.runner.post(TeardownAsked(session=known, request_id=9))
    await desk.settle()
    desk.disk.finish()
    await desk.settle()
    attempt = desk.disk.asked[-1]
    desk.disk.finish()
    await desk.settle()
    desk.weigh()
    await desk.settle()

    assert attempt == [actions.ForgetFramework(framework_id=FrameworkId("f1-1"))]
    assert [type(action) for action in desk.disk.asked[-1]] == [actions.StoreWeight], "there is room again"


@pytest.mark.usefixtures("no_pause")
async def test_without_room_an_agent_is_refused_and_not_offered() -> None:
    desk = Desk("f1-1")
    known = desk.hello("f1-1")
    desk.demand(known)
    await desk.settle()
    desk.agent(None, 4)
    while not desk.runner.machine.master.offers:
        await desk.settle()

    desk.disk.fail(NoRoomError("the disk is full"))
    kinds = await desk.settle()

    assert "EndAgentSession" in kinds
    assert not {"ConfirmAgent", "SendOffers"} & set(kinds)
    assert desk.runner.machine.master.agent_by_session == {}


@pytest.mark.usefixtures("no_pause")
async def test_what_changes_during_an_attempt_is_written_by_the_next_one() -> None:
    desk = Desk()
    desk.agent(None, 4)
    await desk.settle()
    desk.disk.fail(NoRoomError("the disk is full"))
    await desk.settle()
    (agent_id,) = desk.runner.machine.master.agents

    desk.agent(agent_id, 8)
    await desk.settle()
    desk.disk.finish()
    await desk.settle()

    stored = [
        action for batch in desk.disk.asked for action in batch if isinstance(action, actions.StoreAgent)
    ]
    assert [action.total for action in stored] == [resources(4, 8), resources(4, 8), resources(8, 8)]


async def test_stopping_tries_once_more_to_write() -> None:
    desk = Desk("f1-1")
    await a_full_disk(desk)
    await desk.settle()

    stopping = asyncio.ensure_future(desk.runner.stop())
    await desk.settle()
    desk.disk.fail(NoRoomError("the disk is full"))
    await stopping

    assert len(desk.disk.asked) == 2


class SlowClock(SteadyClock):
    """A clock on which a millisecond passes whenever it is read, so that each step takes one."""

    def __init__(self) -> None:
        super().__init__()
        self._ms = 1_000_000

    def now_ms(self) -> int:
        self._ms += 1
        return self._ms


class Diary(Machine):
    """A machine that writes down what it is told, and always has something to do at once until it is told so twice."""

    def __init__(self) -> None:
        super().__init__(KINDS, CoreSettings(), Remembered(epoch=1), 1_000_000)
        self.told: list[str] = []

    def step(self, event: events.Event, now_ms: int) -> list[Action]:
        self.told.append("tick" if isinstance(event, events.Ticked) else "event")
        return super().step(event, now_ms)

    def next_deadline_ms(self, now_ms: int) -> int | None:
        return now_ms if self.told.count("tick") < 2 else None


def a_hello(session: int) -> FrameworkConnected:
    return FrameworkConnected(session=session, framework_id=None, name="test", role=Role("test"))


async def test_a_turn_ends_in_time_and_a_tick_it_put_off_comes_first_in_the_next() -> None:
    machine = Diary()
    runner = Runner(machine, None, SlowClock())
    for number in range(2 * TURN_MS_MAX):
        runner.post(a_hello(number))

    turns = []
    while len(machine.told) < 2 * TURN_MS_MAX + 2:
        before = len(machine.told)
        await asyncio.sleep(0)
        turns.append(machine.told[before:])
    await runner.stop()

    busy = [turn for turn in turns if turn]
    assert busy[0] == ["event"] * TURN_MS_MAX
    assert busy[1][:2] == ["tick", "event"]
    assert len(busy[1]) <= TURN_MS_MAX + 1
    assert sum(turn.count("event") for turn in busy) == 2 * TURN_MS_MAX
