from math import log2

from hypothesis import given
from hypothesis import strategies as st

from fairlead_master.allocation.policies.tournament import Contender, Tournament

changes = st.lists(st.tuples(st.integers(0, 19), st.none() | st.integers(0, 9)), max_size=80)


def test_nobody_is_first_of_an_empty_tournament() -> None:
    tournament = Tournament()
    contender = Contender()

    tournament.enter(contender, 1.0, 1)
    tournament.leave(contender)
    tournament.leave(contender)

    assert tournament.first() is None


@given(changes)
def test_the_first_has_the_smallest_key_and_ties_go_by_arrival(changes: list[tuple[int, int | None]]) -> None:
    tournament = Tournament()
    contenders = [Contender() for _ in range(20)]
    keys: dict[int, int] = {}
    for number, key in changes:
        if key is None:
            keys.pop(number, None)
            tournament.leave(contenders[number])
        else:
            keys[number] = key
            tournament.enter(contenders[number], float(key), number)
        expected = min(((key, number) for number, key in keys.items()), default=None)
        assert tournament.first() is (None if expected is None else contenders[expected[1]])


@given(changes, st.integers(0, 100))
def test_all_keys_may_change_at_once(changes: list[tuple[int, int | None]], offset: int) -> None:
    tournament = Tournament()
    contenders = [Contender() for _ in range(20)]
    present = {number for number, key in changes if key is not None}
    for number in present:
        tournament.enter(contenders[number], 0.0, number)

    tournament.replay([((number * 37 + offset) % 11, number, contenders[number]) for number in present])

    expected = min((((number * 37 + offset) % 11, number) for number in present), default=None)
    assert tournament.first() is (None if expected is None else contenders[expected[1]])


def test_a_change_plays_as_many_matches_as_the_tree_is_high() -> None:
    tournament = Tournament()
    contenders = [Contender() for _ in range(1024)]
    for number, contender in enumerate(contenders):
        tournament.enter(contender, float(number), number)

    for number, contender in enumerate(contenders):
        before = tournament.matches
        tournament.enter(contender, 5_000.0 - number, number)
        assert tournament.matches - before <= log2(1024)


def test_a_change_far_behind_plays_only_until_an_outcome_stays() -> None:
    tournament = Tournament()
    contenders = [Contender() for _ in range(1024)]
    for number, contender in enumerate(contenders):
        tournament.enter(contender, float(number % 2), number)
    before = tournament.matches

    tournament.enter(contenders[513], 7.0, 513)

    assert tournament.matches - before == 1
