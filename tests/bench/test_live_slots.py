"""The comparison with slots, on a real cluster small enough for a test."""

import io
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from fairlead_bench import host_groups
from fairlead_bench.live_slots import (
    CLASSES,
    SLEEPING,
    WORKING,
    ClassRow,
    SlotsOptions,
    a_task,
    lengths,
    measure,
    print_rows,
    simulate,
)
from fairlead_lab.papers.drf import closed_loop

WHY_NOT = host_groups.why_not()


def test_users_run_one_job_after_the_other_under_each_policy() -> None:
    told: list[str] = []
    scale = replace(SLEEPING, agents=2, seconds=3.0, task_s=0.1, job_tasks=2)
    options = SlotsOptions(policies=("drf", "slots:2"), scale=scale, seeds=(3,))

    rows = measure(options, told.append)

    assert told == ["drf", "slots:2"]
    assert [(row.policy, row.job_class) for row in rows] == [
        ("drf", "small"), ("drf", "large"), ("slots:2", "small"), ("slots:2", "large"),
    ]  # fmt: skip
    for row in rows:
        assert row.jobs > 4, "each of four users finished more than one"
        assert row.killed == 0
        assert row.mean_response_s is not None
        assert row.mean_response_s > 0.05


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
def test_where_memory_ends_work_is_killed_and_done_again() -> None:
    """One host, on which ten slots promise four users of large tasks more memory than there is."""
    scale = replace(WORKING, agents=1, seconds=6.0, task_s=0.4, job_tasks=3, cpu_milli=100)
    options = SlotsOptions(policies=("slots:10", "drf"), scale=scale, works=True, seeds=(1,))

    killed = {(row.policy, row.job_class): row.killed for row in measure(options)}

    assert killed["slots:10", "large"] > 0
    assert killed["drf", "small"] == killed["drf", "large"] == 0


def test_work_is_what_a_task_uses_of_the_cpus_it_declares() -> None:
    small, large = CLASSES

    task = a_task(large, WORKING, 10.0, works=True)

    assert (task.command[0], float(task.command[-2])) == (sys.executable, 10.0 * 2 * WORKING.cpu_milli / 1000)
    assert int(task.command[-1]) < 2 * WORKING.gib_bytes
    assert list(a_task(small, SLEEPING, 2.5, works=False).command) == ["sleep", "2.500"]


def test_the_simulation_beside_is_as_large_as_the_live_experiment() -> None:
    scale = replace(WORKING, agents=6, job_tasks=10)

    found = simulate(SlotsOptions(policies=("slots:4",), scale=scale))

    assert {key[1:] for key in found} == {
        (kind, slowdown) for kind in ("small", "large") for slowdown in (0.0, 10.0)
    }
    for runs in found.values():
        assert len(runs) == 8
    whole = closed_loop.run("slots:4", 1, closed_loop.Setup(memory_slowdown=0.0))
    # A job is 80 tasks on 48 hosts in 20 mean run times there, and 10 on 6 here.
    assert found["slots:4", "small", 0.0][1].jobs == pytest.approx(whole["small"].jobs, abs=4)


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


def test_rows_of_several_seeds_are_one_with_an_interval() -> None:
    console = Console(file=io.StringIO())
    rows = [
        ClassRow(
            policy="drf",
            job_class="small",
            jobs=jobs,
            mean_response_s=2.0,
            killed=jobs,
            seed=jobs,
            idle=jobs / 4,
        )
        for jobs in (1, 3)
    ]
    beside = {("drf", "small", 0.0): [closed_loop.Finished(4, 1.5), closed_loop.Finished(4, None)]}

    print_rows(rows, console, simulated=beside)

    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().endswith(
        "| drf | small | 2.0 ± 12.7 | 2.00 ± 0.00 | 2.0 ± 12.7 | 25% | 4.0 ± 0.0 | 1.50 |\n"
    )
