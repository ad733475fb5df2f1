"""Alpha-fairness: the account that holds least at the market's prices, for its weight, is served next.

    key_i = x_i (a_i . nu)^(1/alpha) / w_i

with x_i what account i holds, a_i the part of each resource that one unit of x_i takes, w_i ``Weight.default``, and nu the
multipliers of the fluid problem: maximise sum_i w_i^alpha u(x_i), u'(x) = x^-alpha, under capacity. There the key of everyone
who could use more is 1. Bonald and Roberts, "Enhanced Cluster Computing Performance through Proportional Fairness"
(paper 000): equations (6) and (7), and section 4.1 for serving "the most deprived" by whole tasks.

- ``alpha:A`` takes x_i for the dominant share of i, and a_i for what goes with a dominant share of 1. That is scale invariant
  for every alpha, where the paper's own form is not; A = 1 is ``pf``, and large A approaches ``drf``.
- ``alpha-tasks:A`` is the paper's own form: x_i counts tasks, a_i is what one takes. It favours small tasks if A is below 1
  and large ones if it is above (proposition 7: only A = 1 is fair even where there is one resource).

**How the market is made of a live cluster.** Everyone who holds or waits for anything is in it, with the proportions of
its *wish*: what it holds and waits for together. It takes part up to its wish; beyond, it is sated, and others share
what it leaves. An account that wants several kinds of unit is taken to want them in the proportion in which it asks for
them: the paper's jobs have one kind. What it holds may then have other proportions than what it wishes for, and its key is
made from what it holds. Under ``alpha-tasks`` a_i is the mean of these tasks, wished for and held.

In a tree of roles there is one market, that of the topmost level. Below it accounts are ranked at its prices, each level by
its own weights: a market of a level's own would be about capacity that others hold.

Resources of zero capacity are skipped; constraints, and whether a unit fits on any agent, are not looked at. A resource
that is not scarce has price 0; keys count a price of at least 1e-9 of all prices for it, so that those who
need only such resources are told apart by what they hold. Equal keys go to the account that was added earlier; keys that
would be equal at exact prices may differ by the tolerance of the prices (``multipliers.tracker``), but not between accounts
that hold multiples of one direction: multiples / weight is one division of whole numbers (``divisors``).

**What it costs.** Grants and completions do not move the prices as long as wishes keep their proportions and nobody becomes
sated, and then cost no look at them. An account whose holdings are a multiple of its direction has key (factor of the direction) x (multiples /
weight), the second without prices: one heap a direction, a tournament above them, O(log n). Changes of the
population are collected and applied in one batch by the next decision: rank-one updates, a model's minimum, one pass over
the directions. When prices have not moved for a second they are made exact.
"""

from collections.abc import Sequence
from math import nan
from operator import add, mul
from typing import Final, Self

from fairlead_master.allocation.api import AllocationError, Policy, Prices
from fairlead_master.allocation.multipliers.classes import (
    AlphaRule,
    DemandClass,
    Direction,
    multiples_of,
    primitive,
    reduced,
)
from fairlead_master.allocation.multipliers.dual import PRICE_FLOOR
from fairlead_master.allocation.multipliers.market import Market
from fairlead_master.allocation.policies.holdings import Account, Queue
from fairlead_master.allocation.policies.tournament import Tournament
from fairlead_master.allocation.weights import Weight
from fairlead_proto.resources import Vector, scale

QUIET_MS: Final = 1_000
"""When prices have not moved for so long they are made exact. A second is far above the time between events of
a busy cluster, which would undo the work at once, and short enough that a person who looks sees exact prices."""

PRICE_TOLERANCE: Final = 1e-2
"""Part of a resource by which demand at the prices in force may exceed it. Ten times what was seen under churn: beyond, they
follow some other population."""


ALPHA_MIN: Final = 0.1
ALPHA_MAX: Final = 8.0
"""Beyond, shares depend so steeply on prices, or prices on shares, that the search for them gets lost. ``drf`` is the limit of
large alpha."""


def parse(word: str, argument: str) -> "AlphaFairness":
    """The policy ``alpha:A`` or ``alpha-tasks:A`` from its word and its argument.

    Raises:
        AllocationError: A is no number from ``ALPHA_MIN`` to ``ALPHA_MAX``.
    """
    try:
        exponent = float(argument)
    except ValueError:
        exponent = nan
    if not ALPHA_MIN <= exponent <= ALPHA_MAX:
        raise AllocationError(
            f"policy: expected {word}:A with A from {ALPHA_MIN} to {ALPHA_MAX:g}, got '{word}:{argument}'"
        )
    return AlphaFairness(f"{word}:{argument}", AlphaRule(exponent, counts_tasks=word == "alpha-tasks"))


class AlphaFairness(Policy):
    """The policies ``alpha:A`` and ``alpha-tasks:A``, and as ``pf`` and ``ceei`` those with A = 1."""

    follows_wishes = True
    interval_ms = QUIET_MS

    def __init__(self, name: str, rule: AlphaRule) -> None:
        self.name = name
        self.market = Market(rule)
        self.tournament = Tournament()
        self._rule = rule
        self._capacity: Vector = ()
        self._accounts: dict[str, Account] = {}
        self._queues: dict[Direction, Queue] = {}
        self._own: dict[str, Queue] = {}
        """Of accounts that hold other proportions than they wish for; nobody else joins them."""
        self._changed: dict[str, Account] = {}
        """Whose part in the market is to be looked at again."""
        self.is_stale = False
        """Whether somebody's part is to be looked at again."""
        self._is_rescaled = False
        """Whether the capacity has changed since keys were made."""
        self._is_exact = True
        self._arrivals = 0
        self._now_ms = 0
        self._told_ms = 0
        """When the last fact came that may move prices."""
        self._moved_ms = 0
        """When prices were last brought up to date and had moved."""
        self._afresh: Self | None = None
        self.root = self
        """The policy whose prices these are: that of the topmost level."""
        self.repriced = 0
        """How often keys were made from new prices; below the topmost level, of ``root`` when its prices were taken over."""
        self.first = self._first

    def follow(self, above: Policy) -> None:
        """Prices are those of the topmost level: money is worth the same to all, whoever they have it from."""
        assert isinstance(above, AlphaFairness), f"{self.name} was told to follow {above.name}"
        self.root = above.root
        self.repriced = -1
        self.first = self._first_below

    def set_capacity(self, capacity: Vector, slots: int) -> None:  # noqa: ARG002 - the interface of all policies
        """Every row of the market changes, so this is O(K)."""
        self._capacity = capacity
        self.market.set_capacity(capacity)
        for queue in self._all_queues():
            queue.kind = self.market.classes.get(queue.direction) or self.market.make_class(queue.direction)
        self._is_rescaled = True
        if self.root is not self:
            self.repriced = -1
        self._note_change()

    def add(self, account: str, weight: Weight, charged: Vector, units: int) -> None:
        """A new account, resting, that wishes for nothing yet."""
        if not self._capacity:
            self.set_capacity((0,) * len(charged), 0)
        self._arrivals += 1
        self._afresh = None
        self._accounts[account] = state = Account(account, weight, charged, units)
        state.arrival = self._arrivals
        self._seat(state)
        if any(charged):
            self._touch(state)

    def remove(self, account: str) -> None:
        """Forget an account."""
        state = self._accounts.pop(account)
        self._leave_queue(state)
        self._changed.pop(account, None)
        self.market.drop(account)
        self._note_change()

    def set_weight(self, account: str, weight: Weight) -> None:
        """The account's weight from now on."""
        state = self._accounts[account]
        state.weigh(weight)
        state.unit = None
        self._seat(state)
        self._touch(state)

    def set_wish(self, account: str, wish: Vector) -> None:
        """What the account may use of the market from now on, and in which proportions."""
        state = self._accounts[account]
        if wish == state.wish and not self._rule.counts_tasks:
            return
        state.wish = wish
        if any(wish) and not self._rule.counts_tasks:
            direction, _ = primitive(wish)
            if direction != state.direction:
                state.direction, state.unit = direction, None
                self._seat(state)
        self._touch(state)

    def set_wish_units(self, account: str, units: int) -> None:
        """In how many tasks the next wish of the account comes."""
        self._accounts[account].wish_units = units

    def charge(self, account: str, unit: Vector, units: int) -> tuple[float, float]:
        """The account got ``units`` more of ``unit``; gives its key before and after that, at the prices in force.

        Prices are not brought up to date for it: a master that restarts is told of ten thousand tasks, one by one.
        """
        self._afresh = None
        state = self._accounts[account]
        queue = state.queue
        assert queue is not None, f"{account} is in no queue"
        before = queue.factor * state.key
        queue = self._take(state, unit, units)
        return before, queue.factor * state.key

    def recount(self, account: str, change: Vector, units: int) -> None:
        """The account counts for so much more."""
        self._afresh = None
        state = self._accounts[account]
        state.units += units
        state.used = tuple(map(add, state.used, change))
        state.unit = None
        self._seat(state)

    def release(self, account: str, unit: Vector, units: int) -> None:
        """The account gave back ``units`` of ``unit``."""
        self._afresh = None
        self._take(self._accounts[account], unit, -units)

    def activate(self, account: str) -> None:
        """The account takes part in ``first``."""
        state = self._accounts[account]
        if state.entry is None and state.queue is not None:
            state.queue.ranking.activate(state)
            self._show(state.queue)

    def deactivate(self, account: str) -> None:
        """The account rests."""
        state = self._accounts[account]
        if state.entry is not None and state.queue is not None:
            state.queue.ranking.deactivate(state)
            self._show(state.queue)

    def key(self, account: str) -> float:
        """What the account holds at the market's prices, for its entitlement.

        A question changes nothing: while changes of the population wait for the next decision, it is answered from a
        market made for it. Otherwise when somebody looked would decide how changes are batched, and a recording could
        not be replayed.
        """
        if self.root is not self:
            return self._key_below(self._accounts[account])
        if self.is_stale:
            return self._made_afresh().key(account)
        state = self._accounts[account]
        return state.queue.factor * state.key if state.queue is not None else 0.0

    def _key_below(self, state: Account) -> float:
        assert state.queue is not None, f"{state.name} is in no queue"
        return self._factor(state.queue.kind, self.root.market_in_force().tracker.nu) * state.key

    def prices(self) -> Prices:
        """The multipliers, in units of weight if alpha is 1, and how far they are from the exact ones. Costs O(n)."""
        market = self.root.market_in_force()
        certificate = market.certificate()
        return Prices(market.prices(), certificate.overload, certificate.slackness)

    def market_in_force(self) -> Market:
        """The market that answers questions now: one made for them while changes wait for the next decision."""
        return self._made_afresh().market if self.is_stale else self.market

    def advance(self, now_ms: int) -> None:
        """Make prices exact if they have not moved for ``QUIET_MS``, or have waited for a decision for so long."""
        self._now_ms = now_ms
        if self.root is not self:
            return
        has_settled = not self._is_exact and now_ms - self._moved_ms >= QUIET_MS
        if has_settled or (self.is_stale and now_ms - self._told_ms >= QUIET_MS):
            self.polish()

    def polish(self) -> None:
        """Make prices exact, up to rounding."""
        self._enter_market()
        if self.market.polish() or self._is_rescaled:
            self._moved_ms = self._now_ms
            self._reprice()
        self.is_stale, self._is_exact = False, True

    def agree_with(self, other: Policy) -> None:
        """Take over the other's prices, which depend on its history within their tolerance.

        Raises:
            AssertionError: they are not the prices of this population, by more than the tolerance.
        """
        if self.root is not self:
            return
        self._enter_market()
        prices = other.prices()
        assert prices is not None, f"{other.name} has no prices"
        self.market.adopt(prices.of_whole)
        certificate = self.market.certificate()
        assert certificate.overload <= PRICE_TOLERANCE, f"prices {prices}: {certificate}"
        assert certificate.slackness <= PRICE_TOLERANCE, f"prices {prices}: {certificate}"
        self._reprice()
        self.is_stale = False

    def _first(self) -> str | None:
        if self.is_stale:
            self.settle()
        queue = self.tournament.first()
        if queue is None:
            return None
        assert isinstance(queue, Queue)
        assert queue.head is not None, "a queue without anyone who takes part came first"
        return queue.head.name

    def _first_below(self) -> str | None:
        root = self.root
        if root.is_stale:
            root.settle()
        if self.repriced != root.repriced:
            self.market.adopt(root.market.prices())
            self._reprice()
            self.repriced = root.repriced
        return self._first()

    def _take(self, state: Account, unit: Vector, units: int) -> Queue:
        """``units`` more of ``unit`` for the account, or fewer; gives its queue after that."""
        queue = state.queue
        assert queue is not None, f"{state.name} is in no queue"
        state.units += units
        state.used = tuple(map(add, state.used, unit if units == 1 else scale(unit, units)))
        if unit != state.unit or (self._rule.counts_tasks and not state.units):
            return self._take_another(state, unit)
        state.multiples += state.step * units
        key = state.multiples / state.over
        queue.ranking.rekey(state, key)
        if state.entry is not None:
            self._show(queue)
        return queue

    def _take_another(self, state: Account, unit: Vector) -> Queue:
        """What the account holds may have another direction now."""
        queue = self._seat(state)
        state.unit = None
        if state.name not in self._own:
            step = 1 if self._rule.counts_tasks else multiples_of(unit, queue.direction[0])
            if step is not None and (not self._rule.counts_tasks or queue.direction == (unit, 1)):
                state.unit, state.step = unit, step * state.grains
        return queue

    def _seat(self, state: Account) -> Queue:
        """Put the account into the queue of what it holds."""
        direction, multiples = self._place_of(state)
        multiples *= state.grains
        queue = self._queues.get(direction) if direction is not None else self._own.get(state.name)
        if direction is None:
            direction = (state.used, 1)
            if queue is not None and queue.direction != direction:
                queue.direction = direction
                queue.kind = self.market.make_class(direction)
                queue.factor = self._factor(queue.kind, self.market.tracker.nu)
        if queue is None or queue is not state.queue:
            takes_part = state.entry is not None
            self._leave_queue(state)
            queue = queue or self._open_queue(state, direction)
            queue.count += 1
            state.queue = queue
            state.key = multiples / state.over
            if takes_part:
                queue.ranking.activate(state)
        else:
            queue.ranking.rekey(state, multiples / state.over)
        state.multiples = multiples
        self._show(queue)
        return queue

    def _place_of(self, state: Account) -> tuple[Direction | None, int]:
        """The direction of what the account holds and how many multiples of it; None for a direction of its own."""
        nothing: Direction = ((0,) * len(state.used), 1)
        if self._rule.counts_tasks:
            return (reduced(state.used, state.units), state.units) if state.units else (nothing, 0)
        if state.direction is None:
            return (None, 1) if any(state.used) else (nothing, 0)
        multiples = multiples_of(state.used, state.direction[0])
        return (None, 1) if multiples is None else (state.direction, multiples)

    def _open_queue(self, state: Account, direction: Direction) -> Queue:
        kind = self.market.classes.get(direction) or self.market.make_class(direction)
        queue = Queue(direction, kind)
        queue.factor = self._factor(kind, self.market.tracker.nu)
        shared, _ = self._place_of(state)
        if shared is None:
            self._own[state.name] = queue
        else:
            self._queues[direction] = queue
        return queue

    def _leave_queue(self, state: Account) -> None:
        queue = state.queue
        if queue is None:
            return
        queue.ranking.deactivate(state)
        self._show(queue)
        queue.count -= 1
        state.queue = None
        if not queue.count and self._own.pop(state.name, None) is None:
            del self._queues[queue.direction]

    def _show(self, queue: Queue) -> None:
        """Let the tournament know who is first in the queue, and with what key."""
        queue.head = head = queue.ranking.head()
        if head is None:
            self.tournament.leave(queue)
        else:
            self.tournament.enter(queue, queue.factor * head.key, head.arrival)

    def _factor(self, kind: DemandClass, nu: Sequence[float]) -> float:
        floor = PRICE_FLOOR * (sum(nu) or 1.0) * kind.total
        return self._rule.factor(kind.gain, max(sum(map(mul, kind.row, nu)), floor))

    def _touch(self, state: Account) -> None:
        if self.root is self:
            self._changed[state.name] = state
        self._note_change()

    def _note_change(self) -> None:
        self.is_stale = self.root is self
        self._told_ms = self._now_ms
        self._afresh = None

    def _enter_market(self) -> None:
        """Tell the market of everyone whose part in it may have changed."""
        for state in self._changed.values():
            self._enter(state)
        self._changed.clear()

    def _enter(self, state: Account) -> None:
        market, wish = self.market, state.wish
        if not any(wish):
            market.drop(state.name)
            return
        if self._rule.counts_tasks:
            direction, multiples = reduced(wish, state.wish_units), state.wish_units
        else:
            direction, multiples = primitive(wish)
        market.put(
            state.name, direction, entitlement=state.weight.default, wish=wish, multiples=float(multiples)
        )
        queue = self._queues.get(direction)
        if queue is not None:
            queue.kind = market.classes.get(direction, queue.kind)

    def settle(self) -> None:
        """Bring prices up to date, and all keys with them if they moved."""
        self._enter_market()
        if self.market.settle() or self._is_rescaled:
            self._is_exact = False
            self._moved_ms = self._now_ms
            self._reprice()
        self.is_stale = False

    def _reprice(self) -> None:
        """The factor of every direction, and the tournament between them."""
        nu, rule = self.market.tracker.nu, self._rule
        least = PRICE_FLOOR * (sum(nu) or 1.0)
        entries = []
        for queue in self._all_queues():
            kind = queue.kind
            if not kind.members:
                kind.price(nu, rule)
            floor = least * kind.total
            queue.factor = factor = kind.factor if kind.cost >= floor else rule.factor(kind.gain, floor)
            head = queue.head
            if head is not None:
                entries.append((factor * head.key, head.arrival, queue))
        self.tournament.replay(entries)
        self.repriced += 1
        self._is_rescaled = False
        self._afresh = None

    def _all_queues(self) -> list[Queue]:
        return [*self._queues.values(), *self._own.values()]

    def _made_afresh(self) -> Self:
        """A policy made from what is known, with exact prices; kept until the next fact."""
        if self._afresh is None:
            fresh = type(self)(self.name, self._rule)
            fresh.set_capacity(self._capacity, 0)
            for state in self._accounts.values():
                fresh.add(state.name, state.weight, state.used, state.units)
                fresh.set_wish_units(state.name, state.wish_units)
                fresh.set_wish(state.name, state.wish)
            fresh.polish()
            self._afresh = fresh
        return self._afresh
