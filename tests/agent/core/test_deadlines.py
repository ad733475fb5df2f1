"""Named times."""

from hypothesis import given
from hypothesis import strategies as st

from fairlead_agent.core.deadlines import Deadlines, Due
from tests.agent.builders import a_key

TIMES = st.integers(0, 20)
MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.integers(0, 5), TIMES),
        st.tuples(st.just("cancel"), st.integers(0, 5), st.just(0)),
        st.tuples(st.just("pop"), st.just(0), TIMES),
    ),
    max_size=60,
)


@given(MOVES)
def test_agrees_with_a_sorted_dictionary(moves: list[tuple[str, int, int]]) -> None:
    deadlines = Deadlines()
    reference: dict[str, int] = {}
    for kind, number, at_ms in moves:
        task = f"t{number}"
        if kind == "set":
            deadlines.set(Due.RESEND, at_ms, a_key(task))
            reference[task] = at_ms
        elif kind == "cancel":
            deadlines.cancel(Due.RESEND, a_key(task))
            reference.pop(task, None)
        else:
            name = deadlines.pop_due(at_ms)
            earliest = min(reference.values(), default=None)
            if name is None:
                assert earliest is None or earliest > at_ms
            else:
                assert name[1] is not None
                assert reference.pop(name[1][1]) == earliest
        assert deadlines.next_ms() == min(reference.values(), default=None)
        assert len(deadlines) == len(reference)


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
