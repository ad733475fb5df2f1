"""Bottleneck-based fairness, live, against a slow reference: a film of all facts, from which everything is summed up again."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_master.allocation.policies.bbf import BottleneckFairness
from fairlead_master.allocation.weights import Weight
from fairlead_proto.resources import Vector, add, subtract

WINDOW_MS, INTERVAL_MS, GRACE_MS = 3_000, 1_000, 1_000


@dataclass
class SlowAccount:
    name: str
    """With a number, since one who leaves and comes back is new."""
    weight: Weight
    charged: Vector = (0, 0)
    units: list[Vector] = field(default_factory=list)
    excess: Vector = (0, 0)
    wish: Vector = (0, 0)
    rests_at_ms: list[int] = field(default_factory=lambda: [-1, -1, -1])

    @property
    def rate(self) -> Vector:
        return tuple(max(0, held + more) for held, more in zip(self.charged, self.excess, strict=True))


@dataclass
class Frame:
    """How things were from ``at_ms`` on."""

    at_ms: int
    rates: dict[str, Vector]
    weights: dict[str, list[float]]
    """Where they are active, by place; in the last one if they are anywhere."""
    units: int
    released: int


class SlowBottleneckFairness:
    def __init__(self) -> None:
        self.now_ms = 0
        self.capacity: Vector = (10, 10)
        self.accounts: dict[str, SlowAccount] = {}
        self.released = 0
        self.film: list[Frame] = []
        self.began_ms: int | None = None

    def shoot(self) -> None:
        weights = {}
        for account in self.accounts.values():
            all_weights = [account.weight.of(0), account.weight.of(1)]
            all_weights.append(sum(all_weights) / 2)
            uses = [*account.wish, sum(account.wish)]
            weights[account.name] = [
                weight if used or rests_at_ms > self.now_ms else 0.0
                for weight, used, rests_at_ms in zip(all_weights, uses, account.rests_at_ms, strict=True)
            ]
        self.film.append(
            Frame(
                self.now_ms,
                {account.name: account.rate for account in self.accounts.values()},
                weights,
                sum(len(account.units) for account in self.accounts.values()),
                self.released,
            )
        )

    def wait(self, wait_ms: int) -> None:
        end_ms = self.now_ms + wait_ms
        ends = {at_ms for account in self.accounts.values() for at_ms in account.rests_at_ms}
        for at_ms in sorted(at_ms for at_ms in ends if self.now_ms < at_ms <= end_ms):
            self.now_ms = at_ms
            self.shoot()
        self.now_ms = end_ms

    def segments(self) -> list[tuple[int, Frame]]:
        """How long each frame of the window lasted."""
        assert self.began_ms is not None
        mark_ms = self.began_ms + (self.now_ms - self.began_ms) // INTERVAL_MS * INTERVAL_MS
        first_ms = max(self.began_ms, mark_ms - WINDOW_MS)
        ends = [frame.at_ms for frame in self.film[1:]] + [self.now_ms]
        return [
            (max(0, end_ms - max(first_ms, frame.at_ms)), frame)
            for frame, end_ms in zip(self.film, ends, strict=True)
        ]

    def keys(self) -> dict[str, float]:
        assert self.began_ms is not None
        segments = self.segments()
        past_ms = sum(length_ms for length_ms, _ in segments)
        before = [frame for frame in self.film if frame.at_ms < self.now_ms - past_ms]
        released = self.released - (before[-1].released if before else 0)
        hold_ms = 2 * WINDOW_MS
        if released:
            mean_ms = max(100, sum(length_ms * frame.units for length_ms, frame in segments) // released)
            hold_ms = min(hold_ms, mean_ms + mean_ms**2 // WINDOW_MS)
        places = range(len(self.capacity))
        used = [
            sum(
                length_ms * sum(rate[place] for rate in frame.rates.values()) for length_ms, frame in segments
            )
            for place in places
        ]
        rate = [sum(account.rate[place] for account in self.accounts.values()) for place in places]
        bottlenecks = [
            place
            for place in places
            if self.capacity[place]
            and (
                used[place] + rate[place] * hold_ms >= 0.9 * self.capacity[place] * (past_ms + hold_ms) - 1e-6
                or 0 < past_ms * 0.9 * self.capacity[place] <= used[place]
            )
        ]
        keys = {}
        for name, account in self.accounts.items():
            coming = [*segments, (INTERVAL_MS + hold_ms, self.film[-1])]
            due, lead = [0.0, 0.0, 0.0], [0.0, 0.0]
            for length_ms, frame in coming:
                for place, weight in enumerate(frame.weights.get(account.name, [])):
                    if weight:
                        everyone = sum(weights[place] for weights in frame.weights.values())
                        due[place] += length_ms * weight / everyone
                for place, capacity in enumerate(self.capacity):
                    if capacity:
                        lead[place] += length_ms * frame.rates.get(account.name, (0, 0))[place] / capacity
            used_places = [
                place
                for place in bottlenecks
                if self.film[-1].weights[account.name][place] or account.rate[place]
            ]
            worst = max((lead[place] - due[place] for place in used_places), default=sum(lead) - due[2])
            into_ms = (self.now_ms - self.began_ms) % INTERVAL_MS
            keys[name] = worst / (WINDOW_MS + into_ms + INTERVAL_MS + hold_ms)
        return keys


WEIGHTS = [Weight(), Weight(2.0), Weight(0.25), Weight(1.0, {0: 5.0})]
WISHES: list[Vector] = [(0, 0), (1, 1), (2, 0), (0, 3)]
EXCESSES: list[Vector] = [(0, 0), (-1, -1), (2, -3), (-5, 1)]
UNITS: list[Vector] = [(1, 0), (0, 2), (3, 1), (1, 4)]
KINDS_OF_FACT = ["charge", "charge", "charge", "release", "release", "want", "want", "weight", "leave"]
facts = st.lists(
    st.tuples(
        st.sampled_from([*KINDS_OF_FACT, "capacity", "observe"]),
        st.sampled_from("abc"),
        st.integers(0, 3),
        st.sampled_from([0, 0, 1, 250, 999, 1000, 1700, 4000]),
    ),
    max_size=40,
)


def tell(policy: BottleneckFairness, slow: SlowBottleneckFairness, kind: str, name: str, choice: int) -> None:
    """One fact, to both."""
    if name not in slow.accounts:
        slow.accounts[name] = SlowAccount(f"{name}{len(slow.film)}", WEIGHTS[choice])
        policy.add(name, WEIGHTS[choice], (0, 0), 0)
    account = slow.accounts[name]
    if kind == "charge":
        account.units.append(UNITS[choice])
        account.charged = add(account.charged, UNITS[choice])
        policy.charge(name, UNITS[choice], 1)
    elif kind == "release" and account.units:
        unit = account.units.pop(choice % len(account.units))
        account.charged = subtract(account.charged, unit)
        slow.released += 1
        policy.release(name, unit, 1)
    elif kind == "want":
        wish = WISHES[choice]
        old, new = [*account.wish, any(account.wish)], [*wish, any(wish)]
        for place in range(3):
            if old[place] and not new[place]:
                account.rests_at_ms[place] = slow.now_ms + GRACE_MS
        account.wish = wish
        policy.set_wish(name, wish)
    elif kind == "weight":
        account.weight = WEIGHTS[choice]
        policy.set_weight(name, WEIGHTS[choice])
    elif kind == "leave" and not account.units:
        del slow.accounts[name]
        policy.remove(name)
    elif kind == "capacity":
        slow.capacity = [(10, 10), (20, 5), (10, 0), (3, 3)][choice]
        policy.set_capacity(slow.capacity, 0)
    elif kind == "observe":
        account.excess = EXCESSES[choice]
        policy.observe(name, EXCESSES[choice])


@given(facts)
def test_keys_are_those_of_the_slow_reference(history: list[tuple[str, str, int, int]]) -> None:
    policy = BottleneckFairness()
    slow = SlowBottleneckFairness()
    policy.set_capacity(slow.capacity, 0)
    for kind, name, choice, wait_ms in history:
        slow.wait(wait_ms)
        policy.advance(slow.now_ms)
        if not slow.accounts:
            slow.began_ms, slow.released, slow.film = slow.now_ms, 0, []
        tell(policy, slow, kind, name, choice)
        slow.shoot()
    if not slow.accounts:
        return
    slow.wait(INTERVAL_MS)  # An interval is over, so all keys are looked at again.
    policy.advance(slow.now_ms)

    keys = slow.keys()

    assert {name: policy.key(name) for name in keys} == pytest.approx(keys, abs=1e-9)
    for name in keys:
        policy.activate(name)
    first = policy.first()
    assert first is not None
    assert policy.key(first) == min(map(policy.key, keys))
