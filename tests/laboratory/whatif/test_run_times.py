"""What is assumed of the future is a mean of the past that somebody can compute by hand."""

from fairlead_lab.whatif.run_times import RunTimes
from tests.laboratory.whatif.builders import A, B, a_framework, some_finished


def test_a_task_is_expected_to_run_as_long_as_those_of_its_framework_and_demand() -> None:
    finished = some_finished("f1", A, 100, 300) + some_finished("f1", B, 5000) + some_finished("f2", A, 9000)
    run_times = RunTimes(finished)

    assert run_times.expected_ms(a_framework("f1"), A) == 200
    assert run_times.expected_ms(a_framework("f1"), B) == 5000
    assert run_times.finished == 4


def test_without_such_the_next_most_alike_are_asked() -> None:
    """Own framework, own name, own role, anybody."""
    run_times = RunTimes(
        [
            *some_finished("own", A, 10, role="R"),
            *some_finished("old", A, 20, name="sweep", role="R"),
            *some_finished("old", B, 40, name="sweep", role="R"),
            *some_finished("other", B, 80, role="S"),
        ]
    )

    assert run_times.expected_ms(a_framework("own", "R"), B) == 10
    assert run_times.expected_ms(a_framework("new", "R", "sweep"), B) == 40
    assert run_times.expected_ms(a_framework("new", "R", "sweep"), (1, 0, 0, 0)) == 30
    assert run_times.expected_ms(a_framework("new", "R", "else"), A) == round(70 / 3)
    assert run_times.expected_ms(a_framework("new", "T", "else"), A) == round(150 / 4)


def test_a_name_means_the_same_work_within_a_role_only() -> None:
    run_times = RunTimes(
        [*some_finished("f", A, 10, name="run", role="R"), *some_finished("g", A, 30, role="S")]
    )

    assert run_times.expected_ms(a_framework("h", "S", "run"), A) == 30


def test_what_runs_is_expected_to_run_on_as_those_did_that_lasted_longer() -> None:
    run_times = RunTimes(some_finished("f", A, 100, 200, 600))

    left = [run_times.left_ms(a_framework("f"), A, ran_ms) for ran_ms in (0, 100, 150, 599)]

    assert left == [300, 300, 250, 1]


def test_what_has_run_longer_than_any_other_runs_as_long_again() -> None:
    run_times = RunTimes(some_finished("f", A, 100, 200))

    assert run_times.left_ms(a_framework("f"), A, 200) == 200
    assert run_times.left_ms(a_framework("f"), A, 5000) == 5000


def test_a_given_duration_is_that_of_all() -> None:
    run_times = RunTimes(some_finished("f", A, 100), given_ms=1000)

    assert run_times.expected_ms(a_framework("f"), A) == 1000
    assert run_times.left_ms(a_framework("f"), A, 400) == 600
    assert run_times.left_ms(a_framework("f"), A, 1500) == 1500


def test_tasks_of_no_time_at_all_still_take_a_millisecond() -> None:
    run_times = RunTimes(some_finished("f", A, 0))

    assert run_times.expected_ms(a_framework("f"), A) == 1
    assert run_times.left_ms(a_framework("f"), A, 0) == 1


def test_nothing_is_known_where_nothing_has_finished() -> None:
    assert not RunTimes([]).are_known
    assert RunTimes([], given_ms=1).are_known
