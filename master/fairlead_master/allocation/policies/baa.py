"""Bottleneck-aware allocation: the account that is furthest below its group's level is served next.

    key_i = U_ig / (C_g w_i y_g), for the resource g of which i wants the largest share

U_ig is what account i holds or is offered of g, C_g the total of the active agents, w_i the account's weight as one number.
The groups' levels y_g are those of the static program (``bottleneck_groups``) for all accounts that hold or want
something, with what they hold and want together as their demand, and that by how many units it is as one task. Liu,
"Multi-Objective Bottleneck-Aware Allocation of Multiple Resources", 2015: static allocation (2.15) for the levels,
algorithm 2, ascending order of the bottleneck resource, for who is next. ADR 0012 has our reading of the paper.

How we differ: accounts want only so much and may need nothing of some resource, which the levels do not know; what they
leave over goes to the smallest key, above 1 as below. Nobody is passed over for holding more than its level: who is ahead
just waits for the others, as long as these want something. Weights are ours. Equal keys go to the account that was added
earlier. The levels are a function of who wants what and of nothing else; they are computed again when that has changed
and the next key is asked for, in a program of as many variables as there are resources.
"""

from heapq import heapify, heappop, heappush
from operator import add, sub
from typing import Final

from fairlead_master.allocation.api import AllocationError, Policy
from fairlead_master.allocation.policies.bottleneck_groups import GOALS, Group, bottleneck, levels
from fairlead_master.allocation.ranking import Ranked, Ranking
from fairlead_master.allocation.weights import Weight
from fairlead_proto.resources import Vector, scale

_FIXED_POINT: Final = 2.0**128
"""Sums of this many parts are kept as integers: whole numbers add up to the same in any order, so that the levels do not
depend on who came and went. The smallest terms, single units among bytes, keep the 53 bits they have."""


def parse(name: str) -> "BottleneckAware":
    """The policy ``baa``, or ``baa:OBJECTIVE`` for one of the paper's three objectives alone.

    Raises:
        AllocationError: there is no such objective.
    """
    if name not in GOALS:
        raise AllocationError(f"policy: expected one of {', '.join(GOALS)}, got {name!r}")
    return BottleneckAware(name)


class _Largest:
    """Numbers that come and go, any of them more than once; the largest is at hand."""

    __slots__ = ("_counts", "_heap")

    def __init__(self) -> None:
        self._counts: dict[float, int] = {}
        self._heap: list[float] = []
        """Negated. Holds every number there is, and some that are gone."""

    def add(self, number: float) -> None:
        """One more of this number."""
        count = self._counts.get(number, 0)
        self._counts[number] = count + 1
        if not count:
            heappush(self._heap, -number)
            if len(self._heap) > 2 * len(self._counts) + 16:
                self._heap = [-known for known in self._counts]
                heapify(self._heap)

    def remove(self, number: float) -> None:
        """One less of this number."""
        self._counts[number] -= 1
        if not self._counts[number]:
            del self._counts[number]

    def get(self) -> float:
        """The largest. There must be one."""
        while -self._heap[0] not in self._counts:
            heappop(self._heap)
        return -self._heap[0]


class _Account(Ranked):
    """``key`` is the level it is at: U_ig / (C_g w_i)."""

    __slots__ = ("by", "grains", "members", "over", "part", "used", "weight", "wish", "wish_units")

    def __init__(self, name: str, weight: Weight, used: Vector) -> None:
        super().__init__(name, 0.0)
        self.weigh(weight)
        self.used = used
        self.wish: Vector = (0,) * len(used)
        self.wish_units = 0
        self.members: _Members | None = None
        """Its group's; None while it wants nothing that the cluster has."""
        self.by = 1
        """C_g w_i in the grains that its weight needs: the level is one division of whole numbers (``divisors``)."""
        self.part: _Part | None = None

    def weigh(self, weight: Weight) -> None:
        """The account has this weight from now on."""
        self.weight = weight.default
        self.over, self.grains = weight.ratio_of_all


class _Part:
    """What an account adds to its group's sums, in the units of vectors; it takes away the same when it leaves."""

    __slots__ = ("loads", "ratios", "tasks", "unit", "weight")

    def __init__(self, state: _Account, place: int) -> None:
        wanted = state.wish[place]
        self.ratios = [amount / wanted for amount in state.wish]
        self.loads = [int(state.weight * ratio * _FIXED_POINT) for ratio in self.ratios]
        self.unit = wanted / max(1, state.wish_units)
        self.tasks = int(state.weight / self.unit * _FIXED_POINT)
        self.weight = int(state.weight * _FIXED_POINT)


class _Members:
    """The accounts of one bottleneck resource."""

    def __init__(self, place: int, places: int) -> None:
        self.place = place
        self.ranking = Ranking()
        self.height = 1.0
        """y_g."""
        self.count = 0
        self.weight = 0
        self._loads = [0] * places
        self._tasks = 0
        self._largest = [_Largest() for _ in range(places)]
        self._unit = _Largest()

    def join(self, part: _Part) -> None:
        """One account more."""
        self.count += 1
        self.weight += part.weight
        self._tasks += part.tasks
        self._loads = list(map(add, self._loads, part.loads))
        self._unit.add(part.unit)
        for largest, ratio in zip(self._largest, part.ratios, strict=True):
            largest.add(ratio)

    def leave(self, part: _Part) -> None:
        """One account less."""
        self.count -= 1
        self.weight -= part.weight
        self._tasks -= part.tasks
        self._loads = list(map(sub, self._loads, part.loads))
        self._unit.remove(part.unit)
        for largest, ratio in zip(self._largest, part.ratios, strict=True):
            largest.remove(ratio)

    def group(self, capacity: Vector, floor: float) -> Group:
        """As the program sees it, in shares of the capacity; there must be an account."""
        own = capacity[self.place]
        scales = [own / total if total > 0 else 0.0 for total in capacity]
        return Group(
            bottleneck=self.place,
            loads=tuple([load / _FIXED_POINT * by for load, by in zip(self._loads, scales, strict=True)]),
            largest=tuple([top.get() * by for top, by in zip(self._largest, scales, strict=True)]),
            tasks=self._tasks / _FIXED_POINT * own,
            fewest=own / self._unit.get(),
            floor=floor,
        )


class BottleneckAware(Policy):
    """The policies ``baa`` and ``baa:OBJECTIVE``. See the module's docstring for their key."""

    follows_wishes = True

    def __init__(self, name: str = "baa") -> None:
        self.name = name
        self._goals = GOALS[name]
        self._accounts: dict[str, _Account] = {}
        self._capacity: Vector = ()
        self._groups: list[_Members] = []
        """By the place of their resource."""
        self._idle = Ranking()
        """Of accounts in no group, whose key is 0."""
        self._arrivals = 0
        self._is_stale = False
        self._solved: list[Group] = []
        """For which the levels were computed last."""
        self.programs_solved = 0
        self.first = self._first

    def set_capacity(self, capacity: Vector, slots: int) -> None:  # noqa: ARG002 - the interface of all policies
        """Every share changes, and maybe every group, so this is O(n)."""
        self._capacity = capacity
        for state in self._accounts.values():
            self._leave(state)
        self._groups = [_Members(place, len(capacity)) for place in range(len(capacity))]
        self._solved = []
        for state in self._accounts.values():
            self._join(state)

    def add(self, account: str, weight: Weight, charged: Vector, units: int) -> None:  # noqa: ARG002 - see above
        """A new account, resting, that wishes for nothing yet."""
        if not self._groups:
            self.set_capacity((0,) * len(charged), 0)
        self._arrivals += 1
        self._accounts[account] = state = _Account(account, weight, charged)
        state.arrival = self._arrivals

    def remove(self, account: str) -> None:
        """Forget an account."""
        state = self._accounts.pop(account)
        self._ranking(state).deactivate(state)
        self._leave(state)

    def set_weight(self, account: str, weight: Weight) -> None:
        """The account's weight from now on."""
        state = self._accounts[account]
        self._leave(state)
        state.weigh(weight)
        self._join(state)

    def set_wish_units(self, account: str, units: int) -> None:
        """How many units the next wish is told in."""
        self._accounts[account].wish_units = units

    def set_wish(self, account: str, wish: Vector) -> None:
        """The account may belong to another group now, and the levels of all may differ."""
        state = self._accounts[account]
        self._leave(state)
        state.wish = wish
        self._join(state)

    def charge(self, account: str, unit: Vector, units: int) -> tuple[float, float]:
        """The account got ``units`` more of ``unit``; gives its key before and after that."""
        state = self._accounts[account]
        before = self.key(account)
        self._hold(state, tuple(map(add, state.used, scale(unit, units))))
        return before, self.key(account)

    def recount(self, account: str, change: Vector, units: int) -> None:  # noqa: ARG002 - shares count
        """The same; nobody asks for a key, so no levels are computed."""
        state = self._accounts[account]
        self._hold(state, tuple(map(add, state.used, change)))

    def release(self, account: str, unit: Vector, units: int) -> None:
        """The account gave back ``units`` of ``unit``."""
        state = self._accounts[account]
        self._hold(state, tuple(map(sub, state.used, scale(unit, units))))

    def activate(self, account: str) -> None:
        """The account takes part in ``first``."""
        state = self._accounts[account]
        self._ranking(state).activate(state)

    def deactivate(self, account: str) -> None:
        """The account rests."""
        state = self._accounts[account]
        self._ranking(state).deactivate(state)

    def key(self, account: str) -> float:
        """What the account holds of its bottleneck, in parts of its group's level."""
        self._settle()
        state = self._accounts[account]
        return state.key / state.members.height if state.members is not None else 0.0

    def _first(self) -> str | None:
        """The smallest of the groups' heads."""
        self._settle()
        best: Ranked | None = self._idle.head()
        best_key = 0.0
        for members in self._groups:
            head = members.ranking.head()
            if head is None:
                continue
            key = head.key / members.height
            if best is None or key < best_key or (key == best_key and head.arrival < best.arrival):
                best, best_key = head, key
        return best.name if best is not None else None

    def _hold(self, state: _Account, used: Vector) -> None:
        state.used = used
        self._ranking(state).rekey(state, self._level(state))

    def _level(self, state: _Account) -> float:
        if state.members is None:
            return 0.0
        place = state.members.place
        return state.used[place] * state.grains / state.by

    def _ranking(self, state: _Account) -> Ranking:
        return self._idle if state.members is None else state.members.ranking

    def _leave(self, state: _Account) -> None:
        """Take the account out of its group's sums; it keeps its place in the ranking until it joins."""
        if state.part is not None and state.members is not None:
            state.members.leave(state.part)
            state.part = None
            self._is_stale = True

    def _join(self, state: _Account) -> None:
        """Put the account where its wish belongs, with the key it has there."""
        shares = [
            want / total if total > 0 else 0.0 for want, total in zip(state.wish, self._capacity, strict=True)
        ]
        members = self._groups[bottleneck(shares)] if any(shares) else None
        if members is not None:
            state.by = self._capacity[members.place] * state.over
        if members is not state.members:
            is_active = state.entry is not None
            self._ranking(state).deactivate(state)
            state.members = members
            state.key = self._level(state)
            if is_active:
                self._ranking(state).activate(state)
        else:
            self._ranking(state).rekey(state, self._level(state))
        if members is not None:
            state.part = _Part(state, members.place)
            members.join(state.part)
            self._is_stale = True

    def _settle(self) -> None:
        """Bring the groups' levels up to date."""
        if not self._is_stale:
            return
        self._is_stale = False
        present = [members for members in self._groups if members.count]
        if not present:
            return
        floor = _FIXED_POINT / sum(members.weight for members in present)
        groups = [members.group(self._capacity, floor) for members in present]
        if groups == self._solved:
            return
        self._solved = groups
        self.programs_solved += 1
        whole = [1.0 if total > 0 else 0.0 for total in self._capacity]
        for members, height in zip(present, levels(groups, whole, self._goals), strict=True):
            members.height = height
