"""Bottleneck-based fairness: who lags furthest behind its entitlement, where it lags least among bottlenecks, is next.

    key_i = - min over bottlenecks j that i uses of gap_ij / (T + H)     gap_ij = A_ij - c_ij / C_j

    key_i = - (A_i - sum over j of c_ij / C_j) / (T + H)                 where i uses no bottleneck: the asset gap

Zeldes and Feitelson, "On-Line Fair Allocations Based on Bottlenecks and Global Priorities" (2013), section 3, with the
constants of section 4. Over a window of T (3 s), c_ij is what account i consumed of resource j, in resource-time, and
C_j the capacity. A_ij is what i was entitled to, the integral of w_ij / (sum of w_kj over the accounts k that use j), while
it *used* j: held or wanted some, or did so less than a grace period of T/3 (1 s) ago; A_i the same over all accounts that
held or wanted anything. A resource of which at least 90 % was consumed is a bottleneck, and one priority counts for all
resources. An account that is new starts with neither entitlement nor consumption, and one that was away for T is as new.

The paper writes a_i for A_ij, and lets all active clients share it; its experiments (figures 4 and 7: two thirds
and one third of the disk for entitlements of 20 and 10, or 40 and 20, whatever others use) come out only if those who use
a resource share it, as in the scheduler it builds on. That is at least e_i = w_i / (sum over all), so who has it has no
justified complaint. How else we differ, and why:

- The paper's clients use a resource for an instant; here a task may outlast the window. So the window reaches from T ago to
  a *horizon* H ahead, with entitlements as they are and with what is held now held until then: two decisions of one
  instant see each other, and in the steady state the key is held share minus entitlement, times a constant. H is the
  interval at which priorities are computed, plus how long units are held: m by Little's law over the window, stretched to
  m + m^2/T, between T/30 (the quantum of the paper's simulations) and 2T. With short tasks the past decides, as in the
  paper; with long ones what is held. Without the stretch, tasks that begin and end together swing between too many and
  too few.
- A resource that was consumed to 90 % by now, or that is once the time units are held has passed at the present rate, is a
  bottleneck: one that fills in a burst is not noticed only 3 s later. While the policy is younger than T, the window is too.
- What is consumed is what is *charged*, a reservation keeping others out whether or not it is used; but what is
  *measured* of tasks whose use counts (``Policy.observe``): those of frameworks that declare no demand, or all of them.
- Within a role, bottlenecks are those of the whole cluster.

Priorities are looked at again once an interval (1 s, or T/60 if that is longer), which costs O(n J); also when the weights of
those active on a resource changed by an eighth, and when one more resource became a bottleneck. Between, an account's key
follows its own charges and releases, in O(J + log n). Equal keys go to the account that was added earlier; the paper leaves
ties to each resource.
"""

import re
from collections import deque
from math import inf
from operator import add, ge, sub
from typing import Final

from fairlead_master.allocation.api import AllocationError, Policy
from fairlead_master.allocation.policies.sliding_window import Credit, EntitlementClock, Meter
from fairlead_master.allocation.ranking import Ranked, Ranking
from fairlead_master.allocation.weights import Weight
from fairlead_proto.resources import Vector, scale

WINDOW_S: Final = 3
"""T of section 4.1."""

WINDOW_S_MAX: Final = 3_600
"""An hour: who was served more than an hour ago has no say in who is served now."""

THRESHOLD: Final = 0.9
"""Of the window's capacity: a resource that is used more is a bottleneck (section 4.1)."""

GRACE_FRACTION: Final = 3
"""The grace period is the window over this: 1 s of 3 s, as in section 4.3."""

INTERVAL_MS: Final = 1_000
"""How often priorities are computed: "e.g. once a second" (section 5)."""

INTERVALS_MAX: Final = 60
"""In a window, so that an hour's window costs no more memory than a minute's."""

HORIZON_FRACTION: Final = 30
"""Units are taken to be held for the window over this at least: 0.1 s of 3 s, the quantum of section 4.1."""

HORIZON_FACTOR: Final = 2
"""And at most the window times this; the module's docstring says why."""

STALE_FRACTION: Final = 8
"""Keys are made anew once the weights of those present changed by one part in this. Smaller would be O(n) for every
account that comes or goes; larger, and entitlements are that wrong for up to an interval."""

_ARGUMENT: Final = re.compile(
    "(?P<only_window>[0-9]{1,4})|((?P<window>[0-9]{1,4}),)?(?P<per_cent>[0-9]{1,3})%"
)

_WEIGHT_GRAINS: Final = 1_000_000
"""Weights are summed as whole numbers of this part of one, the smallest weight there is, so that sums do not drift."""


class _Account(Ranked):
    __slots__ = ("charged", "credit", "due_ms", "excess", "meter", "rests_at_ms", "weights")

    def __init__(self, name: str, weights: Vector, charged: Vector, meter: Meter, credit: Credit) -> None:
        super().__init__(name, 0.0)
        self.weights = weights
        """In grains, by place; in the last place for all resources together."""
        self.charged = charged
        self.excess: Vector = (0,) * len(charged)
        """What its measured tasks use beyond what is charged for them."""
        self.meter = meter
        """What it consumes, at the rate of ``charged`` and ``excess`` together."""
        self.credit = credit
        """A_ij until now, in the last place A_i, and where it is active: uses a resource or did so lately."""
        self.rests_at_ms: list[int | None] = [None] * len(weights)
        """By place, when it stops being active, having held and wanted nothing for a grace period."""
        self.due_ms: tuple[float, ...] = (0.0,) * len(weights)
        """A_ij until the window's end, in the last place A_i."""


class BottleneckFairness(Policy):
    """The policy ``bbf``. See the module's docstring for its key.

    Usable without an allocator: an account uses a resource, and is entitled to some of it, while the last wish told of
    it (``set_wish``) has some.
    """

    follows_wishes = True
    follows_use = True
    remembers = True

    def __init__(
        self,
        *,
        window_ms: int = WINDOW_S * 1000,
        interval_ms: int | None = None,
        threshold: float = THRESHOLD,
    ) -> None:
        self.interval_ms: int = interval_ms or max(INTERVAL_MS, -(-window_ms // INTERVALS_MAX))
        self.name = _name(window_ms, threshold)
        self.bottlenecks: tuple[int, ...] = ()
        """Places of the resources that were bottlenecks at the last look."""
        self.rekeyed = 0
        """Keys made anew otherwise than by a charge or release, since the policy was made; what growth is measured by."""
        self._intervals = max(1, window_ms // self.interval_ms)
        self._window_ms = self._intervals * self.interval_ms
        self._hold_ms = HORIZON_FACTOR * self._window_ms
        """h."""
        self._end_ms = 0
        """When the window that keys are computed for ends: H after the last look at all keys."""
        self._length_ms = 1
        """Of that window, from the oldest mark on: T + H, and as much more as an interval was old at the look."""
        self._threshold = threshold
        self._above: BottleneckFairness | None = None
        self._ranking = Ranking()
        self.first = self._first
        self._accounts: dict[str, _Account] = {}
        self._awake: dict[str, _Account] = {}
        """Accounts that are active, or consumed or were entitled to something within the window."""
        self._resting: deque[tuple[int, _Account, int]] = deque()
        """Who may stop being active when in which place, soonest first."""
        self._capacity: Vector = ()
        self._now_ms = 0
        self._next_mark_ms = self.interval_ms
        self._begin(0)
        self._ceilings: tuple[float, ...] = ()
        """By place, the rate of ``_total`` from which on it is a bottleneck; infinite where it is one."""
        self._is_total_new = False
        """Whether the rate of ``_total`` was not yet compared with the ceilings. That waits for the next decision, for of a
        task that is over the measurement is taken back first and what it held after that."""
        self._is_stale = True
        """Whether all keys are to be looked at before the next decision."""
        self._is_marked = True
        """Whether an interval ended since they were: only then does a bottleneck stop being one."""

    def set_capacity(self, capacity: Vector, slots: int) -> None:  # noqa: ARG002 - the interface of all policies
        """Every share changes, so this is O(n), at the next decision."""
        self._capacity = capacity
        self.bottlenecks = tuple([place for place in self.bottlenecks if capacity[place] > 0])
        if not self._accounts:
            self._begin(self._now_ms)
        self._is_stale = True

    def follow(self, above: Policy) -> None:
        """Bottlenecks are those of ``above``: the part of the cluster that is ranked here saturates nothing by itself."""
        assert isinstance(above, BottleneckFairness), f"{self.name} was told to follow {above.name}"
        self._above = above

    def add(self, account: str, weight: Weight, charged: Vector, units: int) -> None:
        """A new account, resting, without a past."""
        if len(self._capacity) != len(charged):
            self.set_capacity((0,) * len(charged), 0)
        weights = _grains(weight, len(charged))
        meter = Meter(charged, self._now_ms, self._intervals)
        credit = Credit(len(weights), self._intervals)
        state = _Account(account, weights, charged, meter, credit)
        self._accounts[account] = self._awake[account] = state
        self._ranking.add(state)
        self._change_total((0,) * len(charged), charged, units)
        self._renew(state)

    def remove(self, account: str) -> None:
        """Forget an account. What it consumed stays part of the utilisation."""
        state = self._accounts.pop(account)
        self._awake.pop(account, None)
        self._ranking.deactivate(state)
        self._change_total(state.meter.rate, (0,) * len(state.charged), 0)
        self._set_active(state, (0,) * len(state.weights))
        state.rests_at_ms = [None] * len(state.weights)

    def set_weight(self, account: str, weight: Weight) -> None:
        """The account's weight from now on; what it was entitled to before stays."""
        state = self._accounts[account]
        state.weights = _grains(weight, len(state.charged))
        active = zip(state.weights, state.credit.active, strict=True)
        self._set_active(state, tuple([new if old else 0 for new, old in active]))
        self._renew(state)

    def set_wish(self, account: str, wish: Vector) -> None:
        """It uses what it holds or wants, and is active there until a grace period after it does not."""
        state = self._accounts[account]
        uses = (*wish, any(wish))
        joins = False
        for place, weight in enumerate(state.credit.active):
            if uses[place]:
                state.rests_at_ms[place] = None
                joins = joins or not weight
            elif weight and state.rests_at_ms[place] is None:
                rests_at_ms = self._now_ms + self._window_ms // GRACE_FRACTION
                state.rests_at_ms[place] = rests_at_ms
                self._resting.append((rests_at_ms, state, place))
        if joins:
            old = zip(state.weights, state.credit.active, uses, strict=True)
            self._set_active(state, tuple([weight if used else active for weight, active, used in old]))
            self._awake[account] = state
            self._renew(state)

    def charge(self, account: str, unit: Vector, units: int) -> tuple[float, float]:
        """The account got ``units`` more of ``unit``; gives its key before and after that."""
        self.freshen()
        state = self._accounts[account]
        before = state.key
        state.charged = tuple(map(add, state.charged, unit if units == 1 else scale(unit, units)))
        self._consume(state, units)
        return before, state.key

    def recount(self, account: str, change: Vector, units: int) -> None:
        """The same for a group; nobody asks for its key, so none is looked at."""
        state = self._accounts[account]
        state.charged = tuple(map(add, state.charged, change))
        self._consume(state, units)

    def release(self, account: str, unit: Vector, units: int) -> None:
        """The account gave back ``units`` of ``unit``."""
        state = self._accounts[account]
        state.charged = tuple(map(sub, state.charged, unit if units == 1 else scale(unit, units)))
        self._released += units
        self._consume(state, -units)

    def observe(self, account: str, excess: Vector) -> None:
        """From now on it consumes so much more than is charged to it, or less."""
        state = self._accounts[account]
        if excess != state.excess:
            state.excess = excess
            self._consume(state, 0)

    def activate(self, account: str) -> None:
        """The account takes part in ``first``."""
        self._ranking.activate(self._accounts[account])

    def deactivate(self, account: str) -> None:
        """The account rests."""
        self._ranking.deactivate(self._accounts[account])

    def key(self, account: str) -> float:
        """Minus the account's smallest gap over the bottlenecks that it uses, or minus its asset gap."""
        self.freshen()
        return self._accounts[account].key

    def find_bottlenecks(self) -> tuple[int, ...]:
        """Places of the resources that are bottlenecks now."""
        self.freshen()
        return self.bottlenecks

    def advance(self, now_ms: int) -> None:
        """It is ``now_ms``: intervals and grace periods that are over by then end in order."""
        if not self._accounts:
            self._begin(now_ms)
            return
        while True:
            rests_at_ms = self._resting[0][0] if self._resting else now_ms + 1
            if min(rests_at_ms, self._next_mark_ms) > now_ms:
                break
            if rests_at_ms < self._next_mark_ms:
                self._end_grace(*self._resting.popleft())
            else:
                self._mark(now_ms)
        self._now_ms = now_ms

    def _begin(self, now_ms: int) -> None:
        """Time begins: there is nobody yet, and nothing was used."""
        width = len(self._capacity)
        self._now_ms = now_ms
        self._next_mark_ms = now_ms + self.interval_ms
        self._clock = EntitlementClock(width + 1, now_ms)
        self._weights_seen: Vector = (0,) * (width + 1)
        """The clock's, as of the last look at all keys: what keys are computed with."""
        self._total = Meter((0,) * (width + 1), now_ms, self._intervals)
        """What all accounts consume together; its last place counts units."""
        self._released = 0
        self._released_marks = deque([0], self._intervals + 1)
        self._is_stale = self._is_marked = True

    def _end_grace(self, rests_at_ms: int, state: _Account, place: int) -> None:
        if state.rests_at_ms[place] == rests_at_ms:  # Otherwise it uses the resource again, or is gone.
            state.rests_at_ms[place] = None
            self._now_ms = rests_at_ms
            active = state.credit.active
            self._set_active(state, (*active[:place], 0, *active[place + 1 :]))
            self._renew(state)

    def _mark(self, now_ms: int) -> None:
        """End an interval. Of many that passed at once only those that a window holds are looked at."""
        if not self._resting:
            unseen = (now_ms - self._next_mark_ms) // self.interval_ms - self._intervals
            self._next_mark_ms += max(0, unseen) * self.interval_ms
        self._now_ms = mark_ms = self._next_mark_ms
        self._next_mark_ms += self.interval_ms
        self._clock.advance(mark_ms)
        self._total.mark(mark_ms)
        self._released_marks.append(self._released)
        asleep = []
        for name, state in self._awake.items():
            state.meter.mark(mark_ms)
            state.credit.mark(self._clock)
            if not any(state.credit.active) and not any(state.meter.rate):
                recent = (*state.meter.within(mark_ms), *state.credit.within(self._clock))
                if not any(recent):
                    asleep.append(name)
        for name in asleep:
            self._awake.pop(name).key = 0.0
        self._is_stale = self._is_marked = True

    def _set_active(self, state: _Account, active: Vector) -> None:
        self._clock.advance(self._now_ms)
        state.credit.set_active(active, self._clock)
        for weight, seen in zip(self._clock.weights, self._weights_seen, strict=True):
            if STALE_FRACTION * abs(weight - seen) > seen:
                self._is_stale = True

    def _consume(self, state: _Account, units: int) -> None:
        """Bring the account's rate, the total and the key up to date; it holds ``units`` more."""
        rate = state.charged
        if any(state.excess):
            rate = tuple([max(0, held + more) for held, more in zip(rate, state.excess, strict=True)])
        before = state.meter.rate
        state.meter.set_rate(rate, self._now_ms)
        self._awake[state.name] = state
        self._change_total(before, rate, units)
        self._ranking.rekey(state, self._key(state))

    def _change_total(self, before: Vector, after: Vector, units: int) -> None:
        total = self._total.rate
        rate = (*map(add, total, map(sub, after, before)), total[-1] + units)
        self._total.set_rate(rate, self._now_ms)
        self._is_total_new = True

    def _first(self) -> str | None:
        self.freshen()
        return self._ranking.first()

    def freshen(self) -> None:
        """Look at all keys again if something happened that asks for it. Every decision and every report does."""
        if self._is_total_new:
            self._is_total_new = False
            if any(map(ge, self._total.rate, self._ceilings)):
                self._is_stale = True
        above = self._above
        if above is not None:
            above.freshen()
        if self._is_stale or (above is not None and above.bottlenecks != self.bottlenecks):
            self._look()

    def _look(self) -> None:
        """Look at all keys again: horizon, bottlenecks, entitlements."""
        self._clock.advance(self._now_ms)
        self._weights_seen = self._clock.weights
        self._hold_ms = self._find_hold_ms()
        self._end_ms = self._now_ms + self.interval_ms + self._hold_ms
        self._length_ms = self._end_ms - (self._next_mark_ms - self.interval_ms - self._window_ms)
        self._look_for_bottlenecks()
        self._is_stale = self._is_marked = False
        for state in self._awake.values():
            self._renew(state, is_alone=False)
        self._ranking.rebuild()

    def _find_hold_ms(self) -> int:
        """How long a unit is held, by Little's law: units held over time by units given back, within the window."""
        most_ms = HORIZON_FACTOR * self._window_ms
        released = self._released - self._released_marks[0]
        if not released:
            return most_ms
        held_ms = max(self._total.within(self._now_ms)[-1] // released, self._window_ms // HORIZON_FRACTION)
        return min(most_ms, held_ms + held_ms * held_ms // self._window_ms)

    def _look_for_bottlenecks(self) -> None:
        """Which resources are used up, and from which rate on the others will be.

        Until an interval ends none stops being one, so that keys are made anew at most once a resource and interval
        for that reason.
        """
        if self._above is not None:
            self.bottlenecks = self._above.bottlenecks
            return
        past_ms = self._total.span_ms(self._now_ms)
        used = self._total.within(self._now_ms)
        found, ceilings = [], []
        for place, capacity in enumerate(self._capacity):
            enough = self._threshold * capacity
            ceiling = (enough * (past_ms + self._hold_ms) - used[place]) / self._hold_ms
            is_found = capacity > 0 and (
                self._total.rate[place] >= ceiling
                or (past_ms > 0 and used[place] >= enough * past_ms)
                or (place in self.bottlenecks and not self._is_marked)
            )
            ceilings.append(inf if is_found or capacity <= 0 else ceiling)
            if is_found:
                found.append(place)
        self._ceilings = tuple(ceilings)
        self.bottlenecks = tuple(found)

    def _renew(self, state: _Account, *, is_alone: bool = True) -> None:
        """Bring what the account is due and its key up to date; if it ``is_alone`` in that, its rank too."""
        self.rekeyed += 1
        coming_ms = self._end_ms - self._now_ms
        credit = state.credit
        state.due_ms = tuple(
            [
                past + (weight / seen * coming_ms if seen else 0.0)
                for past, weight, seen in zip(
                    credit.within(self._clock), credit.active, self._weights_seen, strict=True
                )
            ]
        )
        state.key = self._key(state)
        if is_alone:
            self._ranking.rekey(state, state.key)

    def _key(self, state: _Account) -> float:
        """Minus the gap at the window's end, with what the account holds now held until then.

        Accounts to which nothing happens keep their keys, and an account that is served later in an interval is
        not behind one that was served sooner.
        """
        coming_ms = self._end_ms - self._now_ms
        used = state.meter.within(self._now_ms)
        rate, due, capacity, active = state.meter.rate, state.due_ms, self._capacity, state.credit.active
        lead = -inf
        for place in self.bottlenecks:
            if active[place] or rate[place]:
                lead = max(lead, (used[place] + rate[place] * coming_ms) / capacity[place] - due[place])
        if lead == -inf:
            lead = -due[-1]
            for place, total in enumerate(capacity):
                if total > 0:
                    lead += (used[place] + rate[place] * coming_ms) / total
        return lead / self._length_ms


def parse(argument: str) -> BottleneckFairness:
    """The policy of ``bbf:ARGUMENT``: a window in seconds, a threshold in per cent, or both with a comma between.

    Raises:
        AllocationError: none of these.
    """
    match = _ARGUMENT.fullmatch(argument)
    if match is not None:
        window_s = int(match["window"] or match["only_window"] or WINDOW_S)
        per_cent = int(match["per_cent"] or round(THRESHOLD * 100))
        if 1 <= window_s <= WINDOW_S_MAX and 1 <= per_cent <= 100:
            return BottleneckFairness(window_ms=window_s * 1000, threshold=per_cent / 100)
    raise AllocationError(
        f"policy: expected bbf:SECONDS with a window of 1 to {WINDOW_S_MAX} s, bbf:PERCENT% with a threshold of "
        f"1 to 100 %, or bbf:SECONDS,PERCENT%, got {'bbf:' + argument!r}"
    )


def _name(window_ms: int, threshold: float) -> str:
    parts = [f"{window_ms / 1000:g}"] * (window_ms != WINDOW_S * 1000)
    parts += [f"{threshold * 100:g}%"] * (threshold != THRESHOLD)
    return ":".join(["bbf", ",".join(parts)]) if parts else "bbf"


def _grains(weight: Weight, places: int) -> Vector:
    """The weight for each place, and in the end for all together: the mean of them."""
    grains = [max(1, round(weight.of(place) * _WEIGHT_GRAINS)) for place in range(places)]
    return (*grains, sum(grains) // places)
