"""Proofs by arithmetic: whether an allocation is what a policy defines, in fractions, without solving anything.

A hand-derived answer is put through its certificate before a solver is compared with it, so that neither the paper nor the
solver is believed. All take a_ij, the exact share of resource j that one task of user i takes.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

Shares = Mapping[str, Sequence[Fraction]]
Tasks = Mapping[str, Fraction]


def exact_shares(
    capacity: Sequence[int | Fraction], demands: Mapping[str, Sequence[int | Fraction]]
) -> Shares:
    """a_ij = D_ij / C_j."""
    return {
        name: [Fraction(need) / Fraction(total) for need, total in zip(demand, capacity, strict=True)]
        for name, demand in demands.items()
    }


def used(shares: Shares, tasks: Tasks) -> list[Fraction]:
    """The fraction of each resource that is taken."""
    return [
        sum((tasks[name] * part for name, part in zip(shares, column, strict=True)), Fraction(0))
        for column in zip(*shares.values(), strict=True)
    ]


def is_feasible(shares: Shares, tasks: Tasks) -> bool:
    """Paper 000, (1)."""
    return all(part <= 1 for part in used(shares, tasks)) and all(count >= 0 for count in tasks.values())


def is_proportionally_fair(shares: Shares, tasks: Tasks, prices: Sequence[int | Fraction]) -> bool:
    """Paper 000, (1), (3) and (4), which hold of the one proportionally fair allocation and its multipliers alone."""
    taken = used(shares, tasks)
    return (
        is_feasible(shares, tasks)
        and all(price >= 0 for price in prices)
        and all(price * (part - 1) == 0 for price, part in zip(prices, taken, strict=True))
        and all(
            tasks[name] * sum(part * price for part, price in zip(row, prices, strict=True)) == 1
            for name, row in shares.items()
        )
    )


def is_max_min_fair(shares: Shares, tasks: Tasks, rises: Mapping[str, Fraction]) -> bool:
    """Whether tasks times rises is max-min fair: everyone has a bottleneck.

    A bottleneck of a user is a resource it needs, which is saturated, and of whose users it has the largest level: the
    talk's appendix ("max/min theorem"), paper 000, section 2.3. A rise is by how much the level grows with one task.
    """
    taken = used(shares, tasks)
    level = {name: tasks[name] * rises[name] for name in shares}

    def is_bottleneck(name: str, place: int) -> bool:
        return (
            shares[name][place] > 0
            and taken[place] == 1
            and all(level[other] <= level[name] for other, row in shares.items() if row[place])
        )

    places = range(len(taken))
    return is_feasible(shares, tasks) and all(
        any(is_bottleneck(name, place) for place in places) for name in shares
    )


def is_drf(shares: Shares, tasks: Tasks) -> bool:
    """Max-min fair in dominant shares."""
    return is_max_min_fair(shares, tasks, {name: max(row) for name, row in shares.items()})


def is_asset_fair(shares: Shares, tasks: Tasks) -> bool:
    """Max-min fair in sums of shares."""
    return is_max_min_fair(shares, tasks, {name: sum(row, Fraction(0)) for name, row in shares.items()})
