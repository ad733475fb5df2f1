"""Figures 2 to 5 of paper 003: who is in them, what is counted, and what the notes claim."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_lab.papers import catalogue, public_traces
from fairlead_lab.papers.baa import joining
from fairlead_lab.papers.baa.demands import Demand, made_up, read, sample
from fairlead_lab.papers.experiment import Agreement, RunOptions
from fairlead_lab.workloads.csv_rows import TraceError
from fairlead_master.allocation.policies.bottleneck_groups import bottleneck
from fairlead_master.solvers.registry import solve

HEADER = "agent,job_id,cpu_norm,mem_norm\n"


def a_file(folder: Path, *rows: str, name: str = "google2019_a_demands_1000.csv.gz") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress((HEADER + "".join(f"{row}\n" for row in rows)).encode()))
    return path


@pytest.fixture(autouse=True)
def _each_run_anew() -> Iterator[None]:
    joining._run.cache_clear()
    yield
    joining._run.cache_clear()


def test_what_is_in_use_is_a_part_of_what_those_who_joined_brought() -> None:
    """A system of (2, 2). u0 brings half of it, and its tasks of (0.5, 0.25) use up the CPUs with two, and memory by half.

    u1, of (0.25, 0.5), brings the other half, and both may rise to two thirds of all there is: u0 gets a third task, as the
    group of the first resource is served first, (1.5, 0.75), and u1 the two that fit beside it, (2, 1.75).
    """
    problem = joining.machines([(0.5, 0.25), (0.25, 0.5)])
    assert joining.join_all(problem) == [(1.0, 0.5), pytest.approx((1.0, 0.875))]


def test_a_fitting_system_has_resources_in_the_proportion_of_demand() -> None:
    problem = joining.fitting([(0.2, 0.1), (0.4, 0.2), (0.2, 0.1)])

    assert problem.capacity == pytest.approx((3, 1.5))
    assert joining.join_all(problem)[-1] == pytest.approx((1, 1))


SOME = st.lists(st.tuples(st.floats(0.01, 1), st.floats(0.01, 1)), min_size=2, max_size=12)


@given(SOME)
def test_nobody_uses_more_than_there_is(vectors: list[Demand]) -> None:
    found = joining.join_all(joining.machines(vectors))

    assert len(found) == len(vectors)
    assert all(0 <= fraction <= 1 + 1e-9 for in_use in found for fraction in in_use)


@given(SOME)
def test_the_levels_of_the_groups_differ_by_no_more_than_there_is_room_for(vectors: list[Demand]) -> None:
    problem = joining.machines(vectors)
    given_tasks = solve(problem, "baa:utilization").tasks

    levels: list[float] = [0.0, 0.0]
    for user, tasks in zip(problem.users, given_tasks, strict=True):
        share = problem.share(user)
        place = bottleneck(share)
        levels[place] = tasks * share[place]

    if all(levels):
        assert max(levels) / min(levels) - 1 <= joining.room(problem) + 1e-6


def test_there_is_any_room_beside_an_empty_group() -> None:
    assert joining.room(joining.machines([(0.2, 0.1)])) == float("inf")
    assert joining.room(joining.machines([(0.2, 0.1), (0.2, 0.4)])) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("curve", "agreement", "said"),
    [
        ([0.1, 1.0, 0.95, 0.97], Agreement.WITHIN, "3.0 percentage points"),
        ([0.1, 1.0, 0.95, 1.0], Agreement.AGREES, "100.0% in the end"),
        ([1.0, 1.0, 0.8, 0.92], Agreement.WITHIN, "80.0% or more from 3 users on"),
        ([1.0, 1.0, 1.0, 0.85], Agreement.DIFFERS, "85.0% in the end"),
    ],
)
def test_the_verdict_goes_by_the_end_and_tells_the_lowest(
    curve: list[float], agreement: Agreement, said: str
) -> None:
    verdict = joining.judge(curve)

    assert verdict.agreement is agreement
    assert said in str(verdict)


def test_each_figure_is_one_resource_of_the_run_of_its_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"d{number},1,{0.1 + 0.01 * number:.2f},{0.3 - 0.01 * number:.2f}" for number in range(20)]
    for size in (1000, 2000):
        a_file(tmp_path, *rows, name=f"google2019_a_demands_{size}.csv.gz")
    monkeypatch.setenv(public_traces.VARIABLE, str(tmp_path))

    for figure, users, resource in ((2, 1000, "cpus"), (3, 1000, "mem"), (4, 2000, "cpus"), (5, 2000, "mem")):
        experiment = catalogue.find(f"baa-fig{figure}")
        result = experiment.run(RunOptions())
        assert experiment.columns == ("users", "resource", "utilization")
        assert f"{users} users" in experiment.title
        assert [row[:2] for row in result.rows] == [[joined, resource] for joined in range(1, 21)]
        assert "20 users with demands from Google's traces of 2019, in place of the paper's" in result.notes
        assert experiment.run(RunOptions()) == result


def test_without_the_trace_requests_are_made_up_and_the_notes_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead_lab.papers.baa.demands.find_trace", lambda _name: None)

    found = sample(1000, seed=1)

    assert "made up" in found.origin
    assert len(found.vectors) == 1000
    assert found == sample(1000, seed=1)
    assert found != sample(1000, seed=2)


def test_made_up_requests_are_distributed_as_the_real_ones() -> None:
    """Of the real 2,000: medians 0.0073 and 0.0038, means 0.0133 and 0.0077, two thirds are CPU-bound."""
    vectors = made_up(20_000, seed=3)

    cpus, mem = (sorted(amounts) for amounts in zip(*vectors, strict=True))
    assert (cpus[10_000], mem[10_000]) == (pytest.approx(0.0065, rel=0.15), pytest.approx(0.0036, rel=0.15))
    assert (sum(cpus) / 20_000, sum(mem) / 20_000) == (
        pytest.approx(0.0139, rel=0.1),
        pytest.approx(0.0085, rel=0.15),
    )
    assert sum(need > other for need, other in vectors) / 20_000 == pytest.approx(0.69, abs=0.03)
    assert all(0 < amount <= 1 for vector in vectors for amount in vector)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("d0,1,0,0.5", "amounts above 0 of both resources"),
        ("d0,1,0.5,1.5", "from 0 to 1"),
        ("d0,1,x,0.5", "a number"),
    ],
)
def test_a_file_of_other_amounts_is_refused(tmp_path: Path, row: str, said: str) -> None:
    with pytest.raises(TraceError, match=said):
        read(a_file(tmp_path, row))


def test_a_folder_that_lacks_the_sample_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(public_traces.VARIABLE, str(tmp_path))

    with pytest.raises(FileNotFoundError, match="google2019_a_demands_1000"):
        sample(1000, seed=1)
