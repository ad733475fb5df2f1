"""A turn of the loop ends in time, however much there is to do, and nothing is left out."""

import asyncio

from fairlead_master.core.actions import Action
from fairlead_master.core.events import Event, FrameworkConnected, Ticked
from fairlead_master.core.machine import Machine, Remembered
from fairlead_master.core.settings import CoreSettings
from fairlead_master.runner import TURN_MS_MAX, Clock, Runner
from fairlead_proto.ids import Role
from fairlead_proto.resources import ResourceKinds


class SlowClock(Clock):
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
        super().__init__(ResourceKinds(), CoreSettings(), Remembered(epoch=1), 1_000_000)
        self.told: list[str] = []

    def step(self, event: Event, now_ms: int) -> list[Action]:
        self.told.append("tick" if isinstance(event, Ticked) else "event")
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
