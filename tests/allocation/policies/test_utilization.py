"""The live utilisation-first baseline: the gaming example of the talk on dominant resource fairness."""

import pytest

from fairlead_master.allocation.policies.utilization import UtilizationFirst
from fairlead_master.allocation.weights import Weight
from fairlead_proto.ids import Role
from tests.allocation.builders import (
    add_agent,
    add_framework,
    an_allocator,
    cpus_and_mem,
    launch,
    served,
    units_of,
    want,
)

HONEST = cpus_and_mem(1, 2)
LIE = cpus_and_mem(2, 2)


def test_honest_equal_users_share_equally() -> None:
    """Slides "Gaming Utilization-Optimal Schedulers": <100 CPU, 100 GB>, two users of <1 CPU, 2 GB>."""
    allocator = an_allocator(policy="utilization")
    add_agent(allocator, "host", cpus_and_mem(100, 100))
    add_framework(allocator, "1", HONEST)
    add_framework(allocator, "2", HONEST)

    assert units_of(allocator.cycle(0)) == {"1": 25, "2": 25}


@pytest.mark.parametrize("liar", ["1", "2"])
def test_a_user_that_claims_twice_the_cpus_gets_everything(liar: str) -> None:
    """The same slides, "Utilization-Optimal scheduler prefers user 1", whoever came first."""
    allocator = an_allocator(policy="utilization")
    add_agent(allocator, "host", cpus_and_mem(100, 100))
    for name in ("1", "2"):
        add_framework(allocator, name, LIE if name == liar else HONEST)

    assert units_of(allocator.cycle(0)) == {liar: 50}


def test_what_the_preferred_do_not_want_goes_to_the_others() -> None:
    allocator = an_allocator(policy="utilization")
    add_agent(allocator, "host", cpus_and_mem(100, 100))
    add_framework(allocator, "1", HONEST)
    add_framework(allocator, "2", LIE, units=10)

    assert units_of(allocator.cycle(0)) == {"1": 40, "2": 10}
    assert served(allocator)[:10] == ["2"] * 10


def test_a_new_wish_counts_at_once() -> None:
    allocator = an_allocator(policy="utilization")
    add_agent(allocator, "host", cpus_and_mem(100, 100))
    one = add_framework(allocator, "1", HONEST, units=10)
    add_framework(allocator, "2", cpus_and_mem(1.5, 2), units=10)
    for grant in allocator.cycle(0):
        launch(allocator, grant)

    want(allocator, one, LIE, 1_000)
    add_framework(allocator, "3", cpus_and_mem(1.5, 2))

    # It holds <10, 20> of its honest tasks and wants many of the others: together they keep most busy.
    allocator.cycle(1)
    assert served(allocator)[0] == "1"


def test_the_key_is_what_a_dominant_share_of_one_keeps_busy_and_then_the_share() -> None:
    policy = UtilizationFirst()
    policy.set_capacity((100, 200, 0), 0)
    policy.add("1", Weight(2.0), (0, 0, 0), 0)
    policy.set_wish("1", (50, 50, 7))

    before, after = policy.charge("1", (20, 20, 0), 1)

    # Shares wanted <1/2, 1/4>: 1.5 of both together for 1 of the larger. Held: 1/5, by weight 1/10.
    assert before == -1.5
    assert after == pytest.approx(-1.5 + 1e-6 * 0.1 / 1.1, abs=1e-15)


def test_a_weight_counts_between_the_equally_good() -> None:
    allocator = an_allocator(policy="utilization")
    add_agent(allocator, "host", cpus_and_mem(60, 120))
    allocator.set_weight(Role("1"), Weight(2.0))
    add_framework(allocator, "1", HONEST)
    add_framework(allocator, "2", HONEST)

    assert units_of(allocator.cycle(0)) == {"1": 40, "2": 20}


def test_it_does_not_mix_what_would_complement() -> None:
    """<2, 1> and <1, 2> of <30, 30> would keep everything busy in ten of each; one takes 15 and leaves half of a resource."""
    allocator = an_allocator(policy="utilization", head="freeze")
    add_agent(allocator, "host", cpus_and_mem(30, 30))
    add_framework(allocator, "1", cpus_and_mem(2, 1))
    add_framework(allocator, "2", cpus_and_mem(1, 1.9))

    assert units_of(allocator.cycle(0)) == {"2": 15}
