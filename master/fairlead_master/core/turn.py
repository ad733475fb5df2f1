"""A master's turns: what waits to be stepped, what waits for a commit, and what leaves.

All that has arrived is stepped together, in a turn that is bounded, so a burst of events costs one allocation cycle. No
step waits for anything. Actions wait in one place only: behind a durable one, until its batch is written. While nothing
can be made durable, because the disk is full, ``durability`` says what leaves and what is refused, and what is to be
written is tried again until it is.

Whoever owns a turn has the clock, the writer and the peers: it posts events, runs turns, writes each batch it is given
and says how that ended, and delivers what it collects after either. The live runner and the simulators are such owners.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from fairlead_master.core import durability
from fairlead_master.core.actions import DURABLE, Action, AnswerOperator, Durable
from fairlead_master.core.durability import Subject
from fairlead_master.core.events import Event, Ticked
from fairlead_master.core.machine import Machine

EVENTS_PER_TURN_MAX: Final = 500
"""Events stepped before the loop serves its connections again, if they are small."""

TURN_MS_MAX: Final = 8
"""Then the loop serves its connections, whatever is left. An allocation cycle, which takes about as long, waits for the next
turn; much less, and a saturated master would write many small messages in place of a few."""

RETRY_MS: Final = 1_000
"""Between attempts to write what there was no room for: soon enough for who has just made room and looks."""


Unaddressed = Durable | AnswerOperator
_UNADDRESSED: Final = DURABLE | {AnswerOperator}


class Turn:
    """The queue, the barrier and the mail of one machine."""

    def __init__(self, machine: Machine, shortage: Callable[[], str | None] | None) -> None:
        """``shortage`` says why there is hardly room to write; None if nothing is written down, so nothing waits."""
        self.events: deque[Event] = deque()
        """What has arrived; append to it."""
        self.step: Callable[[Event, int], list[Action]] = machine.step
        """Decides on one event. May be replaced by what calls it and looks on."""
        self.now_ms = 0
        """When the last turn ended."""
        self._machine = machine
        self._shortage = shortage
        self._by_session: dict[int, list[Action]] = {}
        self._unaddressed: list[Unaddressed] = []
        self._tick_was_put_off = False
        """The last turn had no time left for a tick that was due: the next one begins with it."""
        self._writing: list[list[Action]] | None = None
        """The steps whose durable actions are being written."""
        self._held: list[list[Action]] | None = None
        """The steps that wait for the next batch, or for its turn; None while nothing waits."""
        self._unwritten: dict[Subject, Durable] = {}
        """What there was no room for, the newest of each subject; empty as a rule."""
        self._unheard_of: frozenset[Subject] = frozenset()
        """Of these subjects nobody may hear before they are written."""
        self._retrying: dict[Subject, Durable] | None = None
        """What is being written of that."""
        self._retry_ms = 0
        self._no_room = ""
        """Why the last write failed."""

    @property
    def lacks_room(self) -> bool:
        """Whether something waits to be written that there was no room for."""
        return bool(self._unwritten)

    @property
    def actions_held(self) -> int:
        """Actions that wait for a commit, or for room to write them."""
        waiting = (*(self._writing or ()), *(self._held or ()))
        return sum(map(len, waiting)) + len(self._unwritten)

    # --- events --------------------------------------------------------------------------------------------------

    def run(
        self, clock: Callable[[], int], *, events_max: int = EVENTS_PER_TURN_MAX, ms_max: int = TURN_MS_MAX
    ) -> int | None:
        """Take what has arrived, as much as a turn may; gives when to run the next one if nothing arrives before."""
        events, machine = self.events, self._machine
        now_ms = clock()
        end_ms = now_ms + ms_max
        if self._tick_was_put_off:
            self._tick_was_put_off = False
            self.take(Ticked(), now_ms)
            now_ms = clock()
        for _ in range(min(len(events), events_max)):
            if now_ms >= end_ms:
                break
            self.take(events.popleft(), now_ms)
            now_ms = clock()
        deadline_ms = machine.next_deadline_ms(now_ms)
        if deadline_ms is not None and deadline_ms <= now_ms:
            if now_ms < end_ms:
                self.take(Ticked(), now_ms)
                deadline_ms = machine.next_deadline_ms(now_ms)
            else:
                self._tick_was_put_off = True
        self.now_ms = now_ms
        if self._unwritten and self._retrying is None and now_ms < self._retry_ms:
            return self._retry_ms if deadline_ms is None else min(deadline_ms, self._retry_ms)
        return deadline_ms

    def take(self, event: Event, now_ms: int) -> None:
        """Step one event."""
        if type(event) in durability.ADDING:
            refused = self._refusal(event)
            if refused is not None:
                self._emit([refused])
                return
        self._emit(self.step(event, now_ms))

    def _refusal(self, event: Event) -> Action | None:
        """The answer to what cannot be taken on for want of room, without troubling the core."""
        if self._shortage is None:
            return None
        why = self._no_room if self._unwritten else self._shortage()
        return durability.refusal(self._machine.master, event, why) if why else None

    def _emit(self, orders: list[Action]) -> None:
        if self._held is not None:
            self._held.append(orders)
        elif self._unwritten:
            self._put_off([orders], _durable(orders))
        elif self._shortage is None or DURABLE.isdisjoint(map(type, orders)):
            self._let_go(orders)
        else:
            self._held = [orders]

    # --- what is written -----------------------------------------------------------------------------------------

    def to_write(self) -> list[Durable]:
        """The next batch, to be written whole or not at all; empty if there is none, or one is being written."""
        if self._held is not None and self._writing is None:
            self._writing, self._held = self._held, []
            return [action for orders in self._writing for action in _durable(orders)]
        if self._unwritten and self._retrying is None and self._retry_ms <= self.now_ms:
            self._retrying = dict(self._unwritten)
            return list(self._retrying.values())
        return []

    def retry_at_once(self) -> None:
        """Do not wait any longer before what there was no room for is tried again."""
        self._retry_ms = 0

    def written(self) -> None:
        """The batch is durable: what waited behind it may leave."""
        if self._retrying is not None:
            self._end_retry(self._retrying)
            return
        assert self._writing is not None, "no batch was being written"
        steps, self._writing = self._writing, None
        held = self._held or []
        if all(DURABLE.isdisjoint(map(type, orders)) for orders in held):
            steps += held
            self._held = None
        for orders in steps:
            self._let_go(orders)

    def lacked_room(self, why: str, now_ms: int) -> None:
        """There was no room for the batch: what may leave leaves, the rest is refused, and writing is tried again."""
        self._no_room = why
        self._retry_ms = now_ms + RETRY_MS
        if self._retrying is not None:
            self._retrying = None
            return
        steps = [*(self._writing or ()), *(self._held or ())]
        self._writing = self._held = None
        durable = [action for orders in steps for action in _durable(orders)]
        self._unheard_of = durability.untold(durable)
        self._put_off(steps, durable)

    def _put_off(self, steps: list[list[Action]], durable: Iterable[Durable]) -> None:
        self._unwritten.update((durability.subject(action), action) for action in durable)
        released = [durability.release(orders, self._unheard_of, self._no_room) for orders in steps]
        for step in released:
            self._let_go(step.orders)
        # Before all that waits, so that hardly a step sees what is to be undone.
        self.events.extendleft(reversed([event for step in released for event in step.undoing]))

    def _end_retry(self, batch: dict[Subject, Durable]) -> None:
        self._retrying = None
        self._let_go(list(batch.values()))
        self._unheard_of = frozenset()
        for subject, action in batch.items():
            if self._unwritten[subject] is action:
                del self._unwritten[subject]
        self.retry_at_once()

    # --- what leaves ---------------------------------------------------------------------------------------------

    def _let_go(self, orders: Iterable[Action]) -> None:
        by_session = self._by_session
        for order in orders:
            if type(order) in _UNADDRESSED:
                self._unaddressed.append(order)  # type: ignore[arg-type]  # as its type says
            else:
                session: int = order.session  # type: ignore[union-attr]  # all others are for one
                waiting = by_session.get(session)
                if waiting is None:
                    by_session[session] = [order]
                else:
                    waiting.append(order)

    def collect(self) -> tuple[dict[int, list[Action]], list[Unaddressed]]:
        """What may leave since the last time: for each session, and answers to operators among what is durable now."""
        outgoing = self._by_session, self._unaddressed
        self._by_session, self._unaddressed = {}, []
        return outgoing


def _durable(orders: Iterable[Action]) -> list[Durable]:
    return [order for order in orders if isinstance(order, Durable)]
