"""The certificates refuse what is nearly right, or they would prove nothing."""

from fractions import Fraction

from tests.papers.certificates import (
    exact_shares,
    is_asset_fair,
    is_drf,
    is_feasible,
    is_max_min_fair,
    is_proportionally_fair,
)

F = Fraction
SHARES = exact_shares((9, 18), {"A": (1, 4), "B": (3, 1)})
NEARLY = F(1, 10**12)


def test_a_hair_less_or_more_is_not_the_fair_allocation() -> None:
    for change in (NEARLY, -NEARLY):
        assert not is_drf(SHARES, {"A": 3 + change, "B": F(2)})
        assert not is_drf(SHARES, {"A": F(3), "B": 2 + change})
        assert not is_asset_fair(SHARES, {"A": F(63, 25) + change, "B": F(54, 25)})
        assert not is_proportionally_fair(
            SHARES, {"A": F(45, 11) + change, "B": F(18, 11)}, (F(9, 5), F(1, 5))
        )


def test_multipliers_must_be_those_of_the_allocation() -> None:
    tasks = {"A": F(45, 11), "B": F(18, 11)}

    assert is_proportionally_fair(SHARES, tasks, (F(9, 5), F(1, 5)))
    assert not is_proportionally_fair(SHARES, tasks, (1, 1))


def test_a_price_on_what_is_not_used_up_is_refused() -> None:
    """One user of all of the first and half of the second resource: (4) allows no price on the second."""
    shares = {"A": [F(1), F(1, 2)]}

    assert is_proportionally_fair(shares, {"A": F(1)}, (1, 0))
    assert not is_proportionally_fair(shares, {"A": F(1)}, (F(1, 2), 1))


def test_a_negative_price_is_refused() -> None:
    """Both resources of the talk's <1000, 1000> example used up would need a price below zero (see test_drf_slides)."""
    shares = exact_shares((1000, 1000), {"A": (2, 3), "B": (5, 1)})

    tasks = {"A": F(4000, 13), "B": F(1000, 13)}
    assert is_feasible(shares, tasks)
    assert not is_proportionally_fair(shares, tasks, (F(11, 4), F(-3, 4)))


def test_who_needs_no_saturated_resource_has_no_bottleneck() -> None:
    shares = {"A": [F(1), F(0)], "B": [F(0), F(1)]}
    rises = {"A": F(1), "B": F(1)}

    assert is_max_min_fair(shares, {"A": F(1), "B": F(1)}, rises)
    assert not is_max_min_fair(shares, {"A": F(1), "B": F(1, 2)}, rises)
