"""The prices a market follows, against those of a market that is opened anew and solved from cold."""

from collections.abc import Iterator
from math import inf
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_master.allocation.multipliers.classes import AlphaRule, primitive
from fairlead_master.allocation.multipliers.market import Market
from fairlead_master.allocation.multipliers.satiation import Wish, satiate
from fairlead_proto.resources import Vector, scale

ALPHAS = (0.25, 0.5, 1.0, 2.0, 8.0)
ENDLESS = 10**9
"""Multiples beyond any capacity here: nobody who wants them is ever sated."""

Wants = tuple[Vector, int, float]
"""A unit, how many of it, and the weight."""


def a_market(capacity: Vector, alpha: float = 1.0) -> Market:
    market = Market(AlphaRule(alpha))
    market.set_capacity(capacity)
    return market


def put(market: Market, name: str, wants: Wants) -> None:
    unit, units, weight = wants
    direction, steps = primitive(unit)
    market.put(
        name,
        direction,
        entitlement=weight,
        wish=scale(unit, units),
        multiples=float(steps * units),
    )


def churn(
    random: Random, kinds: list[Vector], start: int, events: int, most: int
) -> Iterator[tuple[str, Wants | None]]:
    """Who comes or changes what it wants, and who leaves (None)."""
    alive: list[str] = []
    for number in range(start + events):
        if number < start or random.random() < 0.45 or not alive:
            name = f"u{number}"
            alive.append(name)
        elif random.random() < 0.15:
            name = random.choice(alive)
        else:
            yield alive.pop(random.randrange(len(alive))), None
            continue
        units = most if most == ENDLESS else random.randint(1, 2 * most)
        yield name, (random.choice(kinds), units, random.choice((0.5, 1.0, 1.0, 3.0)))


def some_kinds(random: Random, count: int, width: int) -> list[Vector]:
    kinds = [tuple(random.choice((0, 1, 1, 2, 5, 10, 30, 100)) for _ in range(width)) for _ in range(count)]
    return [kind if any(kind) else (1,) * width for kind in kinds]


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(
    ("kinds", "width", "start", "most"),
    [
        (4, 2, 8, ENDLESS),
        (20, 3, 200, ENDLESS),
        (60, 4, 300, ENDLESS),
        (4, 2, 8, 20_000),
        (20, 3, 100, 800),
        (60, 4, 300, 400),
    ],
)
def test_prices_under_churn_stay_within_a_thousandth_and_polish_to_a_billionth(
    alpha: float, kinds: int, width: int, start: int, most: int
) -> None:
    random = Random(f"{alpha} {kinds} {most}")
    vectors = some_kinds(random, kinds, width)
    capacity = (1_000_000,) * width
    market = a_market(capacity, alpha)
    members: dict[str, Wants] = {}
    for number, (name, wants) in enumerate(churn(random, vectors, start, 120, most)):
        if wants is None:
            del members[name]
            market.drop(name)
        else:
            members[name] = wants
            put(market, name, wants)
        if number < start:
            continue
        market.settle()
        certificate = market.certificate()
        assert certificate.overload <= 1e-3
        assert certificate.slackness <= 1e-3
        if number % 20 == 0:
            anew = a_market(capacity, alpha)
            for member, theirs in members.items():
                put(anew, member, theirs)
            anew.polish()
            total = sum(anew.prices())
            assert market.prices() == pytest.approx(anew.prices(), rel=0, abs=1e-3 * total)

    market.polish()

    certificate = market.certificate()
    assert certificate.overload <= 1e-9
    assert certificate.slackness <= 1e-9


def test_money_is_spent_to_the_last_unit() -> None:
    """Paper 000, equation (5): the multipliers sum to the number of jobs."""
    market = a_market((1_000, 1_000))
    for number in range(5):
        put(market, f"a{number}", ((10, 1), ENDLESS, 1.0))
        put(market, f"b{number}", ((1, 10), ENDLESS, 2.0))

    market.polish()

    assert sum(market.prices()) == pytest.approx(15, rel=1e-12)


def test_a_duplicated_resource_shares_its_price() -> None:
    market = a_market((1_000, 1_000, 500))
    put(market, "a", ((2, 2, 1), ENDLESS, 1.0))
    put(market, "b", ((4, 4, 2), ENDLESS, 3.0))

    market.polish()

    assert sum(market.prices()) == pytest.approx(4, rel=1e-9)
    assert market.certificate().overload <= 1e-9


def test_where_everyone_gets_what_it_wishes_nothing_costs_anything() -> None:
    market = a_market((100, 100))
    put(market, "a", ((1, 2), 20, 1.0))
    put(market, "b", ((3, 1), 20, 1.0))

    market.settle()

    assert market.prices() == (0.0, 0.0)
    assert market.tracker.cold_starts == 0


def test_a_wish_fulfilled_leaves_its_room_to_others() -> None:
    """One of three wants a tenth only; the others share nine tenths."""
    market = a_market((1_000, 1_000))
    put(market, "small", ((1, 1), 100, 1.0))
    put(market, "a", ((1, 1), ENDLESS, 1.0))
    put(market, "b", ((1, 1), ENDLESS, 1.0))

    market.polish()

    # Each of the others gets 450, so a unit of everything costs 1 / 0.45.
    assert sum(market.prices()) == pytest.approx(1 / 0.45, rel=1e-12)


def test_the_sated_want_again_when_prices_fall() -> None:
    market = a_market((1_000, 1_000))
    put(market, "a", ((1, 0), 600, 1.0))
    for number in range(9):
        put(market, f"b{number}", ((1, 0), ENDLESS, 1.0))
    market.polish()
    assert market.prices()[0] == pytest.approx(10)

    for number in range(9):
        market.drop(f"b{number}")
    market.polish()
    assert market.prices() == (0.0, 0.0)

    put(market, "b", ((1, 0), ENDLESS, 1.0))
    market.polish()

    assert market.prices()[0] == pytest.approx(2)


def test_a_population_that_leaves_and_returns_has_its_prices_again() -> None:
    market = a_market((1_000, 700))
    wants = {"a": ((3, 1), ENDLESS, 1.0), "b": ((1, 4), ENDLESS, 2.0), "c": ((1, 1), 50, 1.0)}
    for name, theirs in wants.items():
        put(market, name, theirs)
    market.polish()
    before = market.prices()

    for name in wants:
        market.drop(name)
    market.settle()
    assert market.prices() == (0.0, 0.0)
    for name, theirs in wants.items():
        put(market, name, theirs)
    market.polish()

    assert market.prices() == pytest.approx(before, rel=1e-9)


def test_who_needs_only_what_was_free_gives_it_a_price() -> None:
    market = a_market((1_000, 1_000))
    put(market, "a", ((10, 1), ENDLESS, 1.0))
    market.settle()
    assert market.prices()[1] == 0.0

    put(market, "b", ((0, 1), ENDLESS, 1.0))
    market.polish()

    # 0.1 of the second resource goes with the whole of the first: nu_1 + 0.1 nu_2 is a's price per share, nu_2 is b's.
    assert market.prices()[1] == pytest.approx(1 / 0.9, rel=1e-9)
    assert sum(market.prices()) == pytest.approx(2, rel=1e-9)


def test_capacity_that_comes_and_goes_is_priced_anew() -> None:
    market = a_market((1_000, 0))
    put(market, "a", ((1, 0), ENDLESS, 1.0))
    put(market, "b", ((0, 1), ENDLESS, 1.0))
    put(market, "c", ((1, 1), ENDLESS, 1.0))
    market.polish()
    assert market.prices() == pytest.approx((2.0, 0.0))

    market.set_capacity((1_000, 10))
    market.polish()
    with_both = market.prices()
    market.set_capacity((0, 0))
    market.settle()
    assert market.prices() == (0.0, 0.0)
    market.set_capacity((1_000, 10))
    market.polish()

    assert with_both[1] > 0
    assert market.prices() == pytest.approx(with_both)


def test_a_small_weight_survives_a_large_one_in_its_class() -> None:
    market = a_market((1_000, 1_000))
    put(market, "small", ((1, 0), ENDLESS, 1e-6))
    put(market, "large", ((1, 0), ENDLESS, 1e6))
    market.drop("large")

    market.polish()

    assert market.prices()[0] == pytest.approx(1e-6, rel=1e-12)


@given(
    st.lists(
        st.tuples(
            st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(any),
            st.integers(1, 400),
            st.sampled_from((0.25, 1.0, 1.0, 5.0)),
        ),
        min_size=1,
        max_size=9,
    ),
    st.sampled_from(ALPHAS),
)
def test_exact_prices_meet_all_conditions_whoever_is_sated(wants: list[Wants], alpha: float) -> None:
    market = a_market((1_000, 1_000), alpha)
    for number, theirs in enumerate(wants):
        put(market, f"u{number}", theirs)
        market.settle()

    market.polish()

    certificate = market.certificate()
    assert certificate.overload <= 1e-9
    assert certificate.slackness <= 1e-9


@given(
    st.lists(
        st.tuples(
            st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(any),
            st.integers(1, 400),
            st.sampled_from((0.25, 1.0, 1.0, 5.0)),
        ),
        min_size=1,
        max_size=9,
    ),
    st.sampled_from(ALPHAS),
)
def test_who_is_sated_and_what_others_get_is_what_the_static_solver_says(
    wants: list[Wants], alpha: float
) -> None:
    """Two active sets: one follows the market from event to event, the other begins with nobody sated."""
    market = a_market((1_000, 1_000), alpha)
    for number, theirs in enumerate(wants):
        put(market, f"u{number}", theirs)
        market.settle()
    for number in range(0, len(wants), 3):
        market.drop(f"u{number}")
        market.settle()
        put(market, f"u{number}", wants[number])

    market.polish()

    wishes = []
    for unit, units, weight in wants:
        size = max(unit) / 1_000
        wishes.append(Wish([amount / (1_000 * size) for amount in unit], weight, units * size))
    expected = satiate(wishes, alpha).units
    for wish, given_to in zip(wishes, expected, strict=True):
        price = sum(need * value for need, value in zip(wish.row, market.prices(), strict=True))
        wanted = wish.weight * price ** (-1 / alpha) if price else inf
        assert min(wish.limit, wanted) == pytest.approx(given_to, rel=1e-9)


def test_events_cost_passes_over_classes_the_more_seldom_the_larger_the_population() -> None:
    """The larger the population, the less one event moves prices, and the more events one set of sums lasts."""

    def relinearisations(population: int) -> int:
        random = Random(7)
        kinds = some_kinds(random, 50, 4)
        market = a_market((1_000_000,) * 4)
        before = 0
        for number, (name, wants) in enumerate(churn(random, kinds, population, 200, ENDLESS)):
            if wants is None:
                market.drop(name)
            else:
                put(market, name, wants)
            if number == population - 1:
                market.polish()
                before = market.tracker.relinearisations
            if number >= population:
                market.settle()
        assert market.tracker.cold_starts == 1
        return market.tracker.relinearisations - before

    small, large = relinearisations(200), relinearisations(4_000)

    assert large <= 20
    assert large < small
