"""Named times."""

from hypothesis import example, given
from hypothesis import strategies as st

from fairlead_agent.core.deadlines import Deadlines, Due
from fairlead_proto.ids import TaskKey
from tests.agent.builders import a_key

TIMES = st.integers(0, 20)
MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.integers(0, 8), TIMES),
        st.tuples(st.just("cancel"), st.integers(0, 8), st.just(0)),
        st.tuples(st.just("pop"), st.just(0), TIMES),
    ),
    max_size=60,
)


@given(MOVES)
@example([("set", 0, 10), ("set", 3, 5)])  # of one kind that has a queue, out of order
def test_agrees_with_a_sorted_dictionary(moves: list[tuple[str, int, int]]) -> None:
    deadlines = Deadlines()
    reference: dict[tuple[Due, TaskKey | None], int] = {}
    for kind, number, at_ms in moves:
        # Two kinds of which every task has one, which wait in queues, and one of few.
        due, key = (Due.RESEND, Due.SLOW_START, Due.RUNTIME)[number % 3], a_key(f"t{number}")
        if kind == "set":
            deadlines.set(due, at_ms, key)
            reference[due, key] = at_ms
        elif kind == "cancel":
            deadlines.cancel(due, key)
            reference.pop((due, key), None)
        else:
            name = deadlines.pop_due(at_ms)
            earliest = min(reference.values(), default=None)
            if name is None:
                assert earliest is None or earliest > at_ms
            else:
                assert reference.pop(name) == earliest
        next_ms = min(reference.values(), default=None)
        assert all(
            deadlines.may_come_before(later_ms)
            for later_ms in range(21)
            if next_ms is not None and next_ms < later_ms
        )
        assert deadlines.next_ms() == next_ms
        assert not deadlines.may_come_before(0 if next_ms is None else next_ms)
        assert len(deadlines) == len(reference)
        assert {name: deadlines.at(name) for name in reference} == reference
        assert all((name in deadlines) == (name in reference) for name in ((due, key), (Due.RESEND, key)))


def test_those_of_one_millisecond_come_by_kind_and_then_as_they_were_set() -> None:
    deadlines = Deadlines()
    deadlines.set(Due.RESEND, 5, a_key("t2"))
    deadlines.set(Due.RESEND, 5, a_key("t1"))
    deadlines.set(Due.ESCALATE, 5, a_key("t3"))

    popped = [deadlines.pop_due(5) for _ in range(4)]

    assert popped == [
        (Due.ESCALATE, a_key("t3")),
        (Due.RESEND, a_key("t2")),
        (Due.RESEND, a_key("t1")),
        None,
    ]


def test_abandoned_entries_do_not_pile_up() -> None:
    deadlines = Deadlines()
    deadlines.set(Due.HEARTBEAT, 1)
    for number in range(10_000):
        deadlines.set(Due.RUNTIME, 10**9 + number, a_key(f"t{number}"))
        deadlines.cancel(Due.RUNTIME, a_key(f"t{number}"))

    assert len(deadlines._heap) < 200
