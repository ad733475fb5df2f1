"""The comparison with slots, on a real cluster small enough for a test."""

import io

from rich.console import Console

from fairlead_sim.bench.live_slots import ClassRow, SlotsOptions, lengths, measure, print_rows


def test_users_run_one_job_after_the_other_under_each_policy() -> None:
    told: list[str] = []
    options = SlotsOptions(
        policies=("drf", "slots:2"), agents=2, seconds=4.0, task_s=0.1, job_tasks=3, seed=3
    )

    rows = measure(options, told.append)

    assert told == ["drf", "slots:2"]
    assert [(row.policy, row.job_class) for row in rows] == [
        ("drf", "small"), ("drf", "large"), ("slots:2", "small"), ("slots:2", "large"),
    ]  # fmt: skip
    for row in rows:
        assert row.jobs > 4, "each of four users finished more than one"
        assert row.mean_response_s is not None
        assert row.mean_response_s > 0.05


def test_lengths_are_the_same_under_every_policy_and_differ_between_jobs() -> None:
    first = list(lengths(1, "small-0", 0, 50, 2.0))

    assert first == list(lengths(1, "small-0", 0, 50, 2.0))
    assert first != list(lengths(1, "small-0", 1, 50, 2.0))
    assert all(1.0 <= length <= 3.0 for length in first)


def test_rows_without_a_finished_job_have_no_response_time() -> None:
    console = Console(file=io.StringIO())

    print_rows([ClassRow(policy="drf", job_class="small", jobs=0, mean_response_s=None)], console)

    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().endswith("| drf | small | 0 |  |\n")
