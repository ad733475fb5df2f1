"""Waiting tasks as demand classes, and what goes on an offer."""

from fairlead_proto.limits import CLASSES_MAX, MESSAGE_BYTES_MAX, PATTERNS_MAX
from fairlead_sdk import Amounts, Offer, Task, fitting_tasks
from fairlead_sdk.calls import Launch
from fairlead_sdk.demand import DemandBook
from tests.sdk.builders import a_task

ONE = a_task().demand


def an_offer(*, units: int = 4, unit: Amounts = ONE, **attributes: str) -> Offer:
    return Offer(
        offer_id="o",
        agent_id="a",
        hostname="a",
        attributes=attributes,
        class_id="c1",
        demand_version=1,
        units=units,
        unit=unit,
        lease_ms=1000,
    )


def ids(launches: list[Launch]) -> list[str]:
    return [launch.task_id for launch in launches]


def test_equal_tasks_are_one_class_and_others_are_not() -> None:
    book = DemandBook()
    for number in range(40):
        book.add(f"t{number}", a_task())
    book.add("large", a_task(cpus=2))
    book.add("picky", a_task(constraints=["rack=a"]))

    classes = book.classes()

    assert [(demand.class_id, demand.units) for demand in classes] == [("c1", 40), ("c2", 1), ("c3", 1)]
    assert classes[0].waiting_task_ids == tuple(f"t{number}" for number in range(32))
    assert [str(constraint) for constraint in classes[2].constraints] == ["rack=a"]


def test_repeated_attempts_are_taken_before_new_ones() -> None:
    book = DemandBook()
    book.add("new", a_task())
    book.add("old", a_task(), again=True)

    assert ids(book.take("c1", ONE, 5)) == ["old", "new"]
    assert book.classes() == ()


def test_an_offer_takes_no_more_than_its_units() -> None:
    book = DemandBook()
    for number in range(5):
        book.add(f"t{number}", a_task())

    assert ids(book.take("c1", ONE, 2)) == ["t0", "t1"]
    assert book.classes()[0].units == 3


def test_an_offer_of_another_unit_or_class_takes_nothing() -> None:
    book = DemandBook()
    book.add("t", a_task())

    assert book.take("c1", Amounts(cpus_milli=1), 1) == []
    assert book.take("c9", ONE, 1) == []
    assert len(book) == 1


def test_an_accept_stays_below_the_size_of_a_message() -> None:
    book = DemandBook()
    for number in range(200):
        book.add(f"t{number}", Task(["x" * 100_000], cpus=1, mem="64MiB"))

    taken = book.take("c1", ONE, 200)

    assert 1 < len(taken) < 200
    assert sum(launch.task.size_bytes for launch in taken) <= MESSAGE_BYTES_MAX // 4


def test_a_suspended_class_is_not_announced_until_resumed() -> None:
    book = DemandBook()
    book.add("t", a_task())
    book.suspend("c1")

    assert book.classes() == ()
    assert book.resume_all()
    assert [demand.class_id for demand in book.classes()] == ["c1"]
    assert not book.resume_all()


def test_a_book_with_all_named_tasks_launched_is_stale_while_more_wait() -> None:
    book = DemandBook()
    for number in range(40):
        book.add(f"t{number}", a_task())
    book.classes()

    book.take("c1", ONE, 31)
    assert not book.is_stale()
    book.take("c1", ONE, 1)
    assert book.is_stale()

    assert book.classes()[0].waiting_task_ids == tuple(f"t{number}" for number in range(32, 40))
    assert not book.is_stale()


def test_no_more_classes_are_announced_than_a_master_takes() -> None:
    book = DemandBook()
    for number in range(CLASSES_MAX + 5):
        book.add(f"t{number}", a_task(cpus=number + 1))

    assert len(book.classes()) == CLASSES_MAX


def test_no_more_patterns_are_announced_than_a_master_takes() -> None:
    book = DemandBook()
    for number in range(PATTERNS_MAX + 5):
        book.add(f"t{number}", a_task(constraints=[f"rack~r{number}"]))
        book.add(f"u{number}", a_task(constraints=[f"rack~r{number}", "ssd"]))
    book.add("plain", a_task())

    announced = book.classes()

    assert len(announced) == 2 * PATTERNS_MAX + 1
    assert announced[-1].waiting_task_ids == ("plain",)


def test_units_are_capped_where_the_sum_would_leave_the_range_of_amounts() -> None:
    book = DemandBook()
    for number in range(10):
        book.add(f"t{number}", a_task(mem=2**51))

    assert book.classes()[0].units == 4


def test_empty_classes_are_forgotten_in_the_long_run() -> None:
    book = DemandBook()
    for number in range(5 * CLASSES_MAX):
        class_id = book.add(f"t{number}", a_task(cpus=number + 1))
        book.remove(f"t{number}", class_id)

    assert len(book._classes) <= CLASSES_MAX + 2


def test_mixed_tasks_are_packed_greedily_by_amount_and_constraint() -> None:
    tasks = [a_task(cpus=3), a_task(cpus=2), a_task(cpus=1, constraints=["rack=b"]), a_task(cpus=1)]

    chosen = fitting_tasks(an_offer(units=4, rack="a"), tasks)

    assert chosen == [tasks[0], tasks[3]]


def test_an_offer_meets_constraints_given_as_text() -> None:
    offer = an_offer(rack="a1", ssd="yes")

    assert offer.meets("rack=a1|a2", "ssd", "!gpu", "rack~a.")
    assert not offer.meets("rack=a2")
