"""Slots, fifo, the names of policies, and the index they share."""

import math
import random
import re
from typing import Self

import pytest

from fairlead_master.allocation import placement
from fairlead_master.allocation.agents import Agent, Fit
from fairlead_master.allocation.api import AllocationError, AllocationSettings, Policy
from fairlead_master.allocation.policies import names
from fairlead_master.allocation.ranking import Ranked, Ranking
from fairlead_master.allocation.weights import Weight
from fairlead_proto.ids import AgentId, FrameworkId, Role
from tests.allocation.builders import (
    KINDS,
    add_agent,
    add_framework,
    an_allocator,
    cpus_and_mem,
    launch,
    served,
    take_back,
    units_of,
    want,
)


def test_slots_are_dealt_out_evenly_whatever_a_task_needs() -> None:
    allocator = an_allocator(policy="slots:6")
    add_agent(allocator, "host", cpus_and_mem(8, 6))
    add_framework(allocator, "small", cpus_and_mem(1, 0.5))
    add_framework(allocator, "large", cpus_and_mem(2, 2))

    grants = allocator.cycle(0)

    assert units_of(grants) == {"small": 3, "large": 3}
    # Section 7.2 of the DRF paper: with many slots the scheduler overcommits memory.
    assert allocator.free(AgentId("host")) == cpus_and_mem(8 - 9, 6 - 7.5)
    allocator.check()


def test_few_slots_leave_most_of_a_host_idle() -> None:
    allocator = an_allocator(policy="slots:3")
    add_agent(allocator, "host", cpus_and_mem(8, 6))
    add_framework(allocator, "small", cpus_and_mem(1, 0.5))

    assert units_of(allocator.cycle(0)) == {"small": 3}
    assert allocator.free(AgentId("host")) == cpus_and_mem(5, 4.5)


def test_a_weight_counts_in_slots() -> None:
    allocator = an_allocator(policy="slots:9")
    add_agent(allocator, "host", cpus_and_mem(9, 9))
    allocator.set_weight(Role("A"), Weight(2.0))
    add_framework(allocator, "A", cpus_and_mem(1, 1))
    add_framework(allocator, "B", cpus_and_mem(1, 1))

    assert units_of(allocator.cycle(0)) == {"A": 6, "B": 3}


def test_a_role_counts_for_all_its_slots_whatever_its_members_need() -> None:
    """Slots are one resource: members that want different ones of the others do not complement each other."""
    allocator = an_allocator(policy="slots:8")
    host = add_agent(allocator, "host", cpus_and_mem(100, 100))
    for name, role in (("cpus", "role"), ("mem", "role"), ("other", "other")):
        add_framework(allocator, name, role=role)
    for name, slots in (("cpus", 4), ("other", 2)):
        for _ in range(slots):
            allocator.charge(FrameworkId(name), host, cpus_and_mem(4, 0))
    for name in ("mem", "other"):
        want(allocator, FrameworkId(name), cpus_and_mem(0, 4), 8)

    assert units_of(allocator.cycle(0)) == {"other": 2}


def test_a_unit_larger_than_the_host_gets_no_slot() -> None:
    allocator = an_allocator(policy="slots:4")
    add_agent(allocator, "small", cpus_and_mem(2, 2))
    add_agent(allocator, "large", cpus_and_mem(8, 8))
    add_framework(allocator, "A", cpus_and_mem(4, 4))

    assert [grant.agent_id for grant in allocator.cycle(0)] == ["large"]


def test_a_free_slot_is_no_room_for_a_unit_larger_than_the_host() -> None:
    agent = Agent(0, AgentId("host"), (4, 4), {}, charged=(0, 0))

    assert Fit(2, slots=1).fits_now(agent, (4, 4))
    assert not Fit(2, slots=1).fits_now(agent, (5, 4))


def test_fifo_serves_the_first_to_wait_until_it_wants_nothing() -> None:
    allocator = an_allocator(policy="fifo")
    add_agent(allocator, "host", cpus_and_mem(4, 4))
    b = add_framework(allocator, "B")
    a = add_framework(allocator, "A")
    want(allocator, a, cpus_and_mem(1, 1), 3)
    want(allocator, b, cpus_and_mem(1, 1), 3)

    allocator.cycle(0)

    assert served(allocator) == ["A", "A", "A", "B"]


def test_a_declined_offer_keeps_its_place_under_fifo() -> None:
    allocator = an_allocator(policy="fifo")
    add_agent(allocator, "host", cpus_and_mem(1, 1))
    add_framework(allocator, "A", cpus_and_mem(1, 1), 1)
    add_framework(allocator, "B", cpus_and_mem(1, 1), 1)
    (grant,) = allocator.cycle(0)

    take_back(allocator, grant)
    allocator.cycle(1)

    assert served(allocator) == ["A"]


def test_within_a_role_frameworks_share_by_the_same_policy() -> None:
    allocator = an_allocator()
    add_agent(allocator, "host", cpus_and_mem(12, 12))
    add_framework(allocator, "a1", cpus_and_mem(1, 1), role="A")
    add_framework(allocator, "a2", cpus_and_mem(1, 1), role="A")
    add_framework(allocator, "b1", cpus_and_mem(1, 1), role="B")

    assert units_of(allocator.cycle(0)) == {"a1": 3, "a2": 3, "b1": 6}
    assert served(allocator)[:6] == ["a1", "b1", "a2", "b1", "a1", "b1"]


def test_a_policy_can_be_changed_while_tasks_run() -> None:
    allocator = an_allocator(policy="slots:2")
    host = add_agent(allocator, "host", cpus_and_mem(9, 18))
    add_framework(allocator, "A", cpus_and_mem(1, 4))
    add_framework(allocator, "B", cpus_and_mem(3, 1))
    for grant in allocator.cycle(0):
        launch(allocator, grant)
    before = allocator.agent_books(host)

    allocator.configure(AllocationSettings(policy="drf"), 1)

    assert allocator.agent_books(host) == before
    assert units_of(allocator.cycle(1)) == {"A": 2, "B": 1}
    allocator.check()


@pytest.mark.parametrize("policy", names.EXAMPLES)
def test_every_policy_may_follow_another_and_knows_what_is_held_and_wanted(policy: str) -> None:
    """Wishes and use are not kept under a policy that does not follow them."""
    allocator = an_allocator(policy="drf")
    add_agent(allocator, "host", cpus_and_mem(9, 18))
    for name, role in (("alone", "alone"), ("one", "two"), ("other", "two"), ("below", "two/below")):
        add_framework(allocator, name, cpus_and_mem(1, 4), role=role)
    launch(allocator, allocator.cycle(0)[0])

    allocator.configure(AllocationSettings(policy=policy), 1)

    allocator.check()


@pytest.mark.parametrize(
    "text", ["", "DRF", "slots", "slots:", "slots:K", "slots:0", "slots:1001", "slots:-1", "slots:1.5"]
)
def test_an_unknown_policy_is_refused_by_naming_the_known_ones(text: str) -> None:
    with pytest.raises(AllocationError, match="slots:K"):
        names.parse(text, KINDS.names)


def test_every_form_of_a_name_that_is_shown_can_be_written() -> None:
    meant = {"RES": "mem", "K": "4", "A": "2", "SECONDS": "60", "PERCENT": "95", "OBJECTIVE": "tasks"}

    written = [re.sub("[A-Z]+", lambda place: meant[place[0]], name) for name in names.NAMES]

    assert {"bbf", "bbf:60", "bbf:95%", "bbf:60,95%", "max-min:mem", "slots:4", "baa:tasks"} < set(written)
    assert [names.parse(name, KINDS.names).name for name in written] == written


@pytest.mark.parametrize("name", names.EXAMPLES)
def test_a_policy_is_called_what_the_operator_wrote(name: str) -> None:
    assert names.parse(name, KINDS.names).name == name


def test_unknown_settings_change_nothing() -> None:
    allocator = an_allocator()
    with pytest.raises(AllocationError, match="align, pack, spread"):
        placement.parse("best")
    with pytest.raises(AllocationError, match="skip, freeze"):
        allocator.configure(AllocationSettings(policy="fifo", when_head_does_not_fit="stop"), 0)

    assert allocator.settings.policy == "drf"


class CountedKey(float):
    """A key that counts how often two of them are compared."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        # A comparison of two entries begins with exactly one of these; what follows it is part of the same comparison.
        CountedKey.comparisons += 1
        return isinstance(other, float) and float(self) == float(other)

    def __hash__(self) -> int:
        return hash(float(self))

    @classmethod
    def count(cls) -> int:
        count, cls.comparisons = cls.comparisons, 0
        return count

    def grown(self, by: float) -> Self:
        return type(self)(float(self) + by)


@pytest.mark.parametrize("accounts", [2, 10, 100, 1_000, 10_000])
def test_a_decision_compares_at_most_two_log_n_and_two_times(accounts: int) -> None:
    """Not timed but counted: the served head is brought down by one replacement."""
    ranking = Ranking()
    rng = random.Random(accounts)
    ranked = {str(n): Ranked(str(n), CountedKey(rng.random())) for n in range(accounts)}
    for account in ranked.values():
        ranking.add(account)
        ranking.activate(account)
    ranking.first()
    bound = 2 * math.log2(accounts) + 2

    counts = []
    for _ in range(2_000):
        CountedKey.count()
        name = ranking.first()
        assert name is not None
        account = ranked[name]
        assert isinstance(account.key, CountedKey)
        ranking.rekey(account, account.key.grown(rng.random()))
        counts.append(CountedKey.count())

    assert max(counts) <= bound
    assert max(counts) > 0


@pytest.mark.parametrize("name", ["drf", "slots:3", "fifo"])
def test_releases_and_rests_keep_the_index_small_and_right(name: str) -> None:
    policy: Policy = names.parse(name, KINDS.names)
    policy.set_capacity((1_000, 1_000), 30)
    rng = random.Random(1)
    accounts = [f"a{n}" for n in range(20)]
    held = dict.fromkeys(accounts, 0)
    active = set()
    for number, account in enumerate(accounts, start=1):
        policy.add(account, Weight(), (0, 0), 0)
        policy.begin_waiting(account, number)
    for _ in range(5_000):
        account = rng.choice(accounts)
        match rng.randrange(4):
            case 0:
                policy.charge(account, (1, 2), 1)
                held[account] += 1
            case 1 if held[account]:
                policy.release(account, (1, 2), 1)
                held[account] -= 1
            case 2:
                policy.activate(account)
                active.add(account)
            case _:
                policy.deactivate(account)
                active.discard(account)

        expected = min(
            (a for a in accounts if a in active),
            key=lambda a: (policy.key(a), accounts.index(a)),
            default=None,
        )
        assert policy.first() == expected


def test_an_account_that_went_to_another_ranking_takes_part_there_when_the_first_one_is_dropped() -> None:
    """As under `baa`, whose groups of accounts end."""
    first, second, account = Ranking(), Ranking(), Ranked("a", 1.0)
    first.activate(account)

    first.deactivate(account)
    second.activate(account)
    del first

    assert second.first() == "a"


def test_the_heap_stays_within_twice_the_active_accounts() -> None:
    ranking = Ranking()
    account, other = Ranked("a", 1.0), Ranked("b", 2.0)
    ranking.add(account)
    ranking.add(other)
    ranking.activate(other)
    for step in range(1_000):
        ranking.activate(account)
        ranking.rekey(account, -float(step))
        ranking.deactivate(account)

    assert len(ranking) <= 2 * 2 + 16
    assert ranking.first() == "b"


def test_capacity_changes_bring_all_keys_up_to_date() -> None:
    allocator = an_allocator()
    add_agent(allocator, "one", (4_000, 100, 0, 0))
    add_framework(allocator, "A", (1_000, 0, 0, 0), 2)
    add_framework(allocator, "B", (0, 30, 0, 0), 2)
    allocator.cycle(0)

    add_agent(allocator, "two", (4_000, 500, 0, 0))

    keys = {row.role: row.key for row in allocator.role_report()}
    assert keys == {"A": 2_000 / 8_000, "B": 60 / 600}
    assert len(KINDS.names) == 4
