"""The first of many deadlines is found without looking at all of them."""

from hypothesis import given
from hypothesis import strategies as st

from fairlead_master.core.deadlines import Deadlines
from fairlead_proto.ids import FrameworkId

ids = st.sampled_from([FrameworkId(f"f{number}") for number in range(5)])


@given(st.lists(st.tuples(ids, st.none() | st.integers(0, 9)), max_size=300))
def test_the_first_deadline_is_the_earliest_and_of_equal_ones_the_one_set_first(
    facts: list[tuple[FrameworkId, int | None]],
) -> None:
    deadlines = Deadlines()
    known: dict[FrameworkId, int] = {}
    for framework_id, deadline_ms in facts:
        known.pop(framework_id, None)
        if deadline_ms is None:
            deadlines.drop(framework_id)
        else:
            known[framework_id] = deadline_ms
            deadlines.set(framework_id, deadline_ms)

        first = min(known, key=lambda each: known[each], default=None)
        assert deadlines.first() == (None if first is None else (known[first], first))
        assert len(deadlines) == len(known)


def test_a_framework_that_comes_and_goes_leaves_no_more_than_a_few_entries() -> None:
    deadlines = Deadlines()
    for time_ms in range(10_000):
        deadlines.set(FrameworkId("f"), time_ms)

    assert len(deadlines._heap) <= 100
