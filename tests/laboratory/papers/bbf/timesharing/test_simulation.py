"""Turns, quanta, pauses and priorities; the paper's own runs are in tests/papers/test_bbf_runs.py."""

import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fairlead_lab.papers.bbf.timesharing.averages import run_many
from fairlead_lab.papers.bbf.timesharing.history import History, Periods
from fairlead_lab.papers.bbf.timesharing.program import Distribution, Loop, Program, ProgramError, Use
from fairlead_lab.papers.bbf.timesharing.simulation import PROCESSES_MAX, QUANTUM_MS, Timesharing
from fairlead_master.allocation.api import AllocationError
from fairlead_master.allocation.policies.bbf import BottleneckFairness


def a_program(name: str, *uses: Use, priority: float = 1, times: int = 1) -> Program:
    return Program(name, priority, (Loop(times, uses),))


def test_the_policy_is_the_one_of_the_live_cluster() -> None:
    assert type(Timesharing([a_program("p", Use("CPU", 1))]).policy) is BottleneckFairness
    assert Timesharing([a_program("p", Use("CPU", 1))], policy="bbf:10,95%").policy.name == "bbf:10,95%"


def test_a_resource_that_cannot_be_switched_serves_to_the_end() -> None:
    programs = [a_program(name, Use("TAPE", 1, is_switched=False)) for name in "ab"]

    run = Timesharing(programs).run()

    assert run.finished_ms == {"a": 1_000, "b": 2_000}
    assert run.uses["b", "TAPE"].until(9_000) == [(1_000, 2_000)]


def test_a_turn_is_a_quantum_at_most() -> None:
    run = Timesharing([a_program(name, Use("CPU", 0.25)) for name in "ab"]).run()

    assert run.uses["a", "CPU"].until(9_000) == [(0, 100), (200, 300), (400, 450)]
    assert run.uses["b", "CPU"].until(9_000) == [(100, 200), (300, 400), (450, 500)]


def test_a_quantum_can_be_chosen() -> None:
    run = Timesharing([a_program(name, Use("CPU", 0.2)) for name in "ab"], quantum_ms=200).run()

    assert run.finished_ms == {"a": 200, "b": 400}


def test_who_pauses_uses_nothing_and_takes_no_entitlement() -> None:
    late = a_program("late", Use("IDLE", 5), Use("CPU", 1))

    run = Timesharing([a_program("early", Use("CPU", 5)), late]).run()

    assert run.finished_ms == {"early": 5_000, "late": 6_000}
    assert run.share("early", "CPU", 0, 5) == 1


def test_fifo_serves_whoever_waits_longest_whatever_the_priorities() -> None:
    programs = [a_program("a", Use("CPU", 10), priority=99), a_program("b", Use("CPU", 10))]

    run = Timesharing(programs, policy="fifo").run()

    assert run.finished_ms == {"a": 19_900, "b": 20_000}
    assert run.bottlenecks == {}


@pytest.mark.parametrize("policy", ["drf", "asset", "max-min"])
def test_a_policy_that_goes_by_what_is_held_is_refused(policy: str) -> None:
    with pytest.raises(AllocationError, match=f"who waits for a turn holds nothing|got '{policy}'"):
        Timesharing([a_program("p", Use("CPU", 1))], policy=policy)


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(AllocationError, match="got 'bbff'"):
        Timesharing([a_program("p", Use("CPU", 1))], policy="bbff")


@pytest.mark.parametrize(
    ("programs", "complaint"),
    [
        ([], f"processes: expected 1 to {PROCESSES_MAX}, got 0"),
        ([a_program("p", Use("CPU", 1))] * 2, "p: expected a name of its own for each process, got it twice"),
        ([a_program("p", Use("IDLE", 1))], "programs: expected the use of some resource, got only pauses"),
    ],
)
def test_programs_that_cannot_run_together_are_refused(programs: list[Program], complaint: str) -> None:
    with pytest.raises(ProgramError, match=complaint):
        Timesharing(programs)


def test_a_run_can_be_interrupted_without_changing_it() -> None:
    programs = [
        a_program(name, Use("CPU", 0.3, 0.1), Use("DISK", 0.4, 0.2), priority=priority, times=20)
        for name, priority in (("a", 1), ("b", 2), ("c", 3))
    ]
    whole = Timesharing(programs).run()
    interrupted = Timesharing(programs)

    for until_s in (0.05, 1, 1.7, 9.99):
        partly = interrupted.run(until_s)
        assert partly.ends_ms == until_s * 1000
        for name in whole.processes:
            assert partly.total_s(name, until_s) == whole.total_s(name, until_s)
    rest = interrupted.run()

    assert rest.finished_ms == whole.finished_ms
    assert rest.uses == whole.uses
    assert rest.bottlenecks == whole.bottlenecks


uses = st.builds(
    Use,
    st.sampled_from(["CPU", "DISK", "NETWORK", "IDLE"]),
    st.floats(0.01, 2),
    st.floats(0, 1),
    st.sampled_from([Distribution.NORM, Distribution.EXP]),
)
loops = st.builds(Loop, st.integers(1, 5), st.lists(uses, min_size=1, max_size=3).map(tuple))
drawn_programs = st.lists(
    st.tuples(st.floats(0.01, 100), st.lists(loops, min_size=1, max_size=2).map(tuple)),
    min_size=1,
    max_size=5,
).map(lambda drawn: [Program(f"p{number}", *each) for number, each in enumerate(drawn)])


@settings(max_examples=60, deadline=None)
@given(drawn_programs, st.sampled_from(["bbf", "bbf:5", "fifo"]))
def test_work_is_conserved(programs: list[Program], policy: str) -> None:
    assume(any(not use.is_pause for program in programs for use in program))

    run = Timesharing(programs, policy=policy).run()

    end_s = run.ends_ms / 1000
    assert set(run.finished_ms) == {program.name for program in programs}
    for resource in run.resources:
        turns = sorted(
            turn
            for (_, used), periods in run.uses.items()
            if used == resource
            for turn in periods.until(run.ends_ms)
        )
        # One process at a time.
        assert all(first[1] <= second[0] for first, second in pairwise(turns))
    for program in programs:
        # One resource at a time: never more than the time that has passed, and as much as under any other policy.
        assert run.total_s(program.name, end_s) <= run.finished_ms[program.name] / 1000
    other = Timesharing(programs, policy="fifo").run()
    work = [[each.total_s(program.name, 10_000) for program in programs] for each in (run, other)]
    assert work[0] == work[1], "requests do not depend on the policy"


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0.01, 3), min_size=1, max_size=6), st.sampled_from(["bbf", "fifo"]))
def test_a_resource_does_not_rest_while_anybody_wants_it(lengths_s: list[float], policy: str) -> None:
    programs = [
        a_program(f"p{place}", Use("CPU", length_s, length_s / 3), priority=place + 1, times=5)
        for place, length_s in enumerate(lengths_s)
    ]

    run = Timesharing(programs, policy=policy).run()

    assert sum(run.used_ms(name, "CPU", run.ends_ms) for name in run.processes) == run.ends_ms


SCRIPT = """
from fairlead_lab.papers.bbf.timesharing.averages import run_many
from fairlead_lab.papers.bbf.timesharing.program import Loop, Program, Use
uses = (Use("CPU", 0.3, 0.1), Use("DISK", 0.4, 0.2))
programs = [Program(name, priority, (Loop(10, uses),)) for name, priority in (("a", 1), ("b", 2))]
for history in run_many(programs, 3, seed=5).histories:
    print(history.uses, history.bottlenecks, history.finished_ms)
"""


def test_the_same_seed_gives_the_same_run_under_any_hash_seed() -> None:
    outputs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": hash_seed},
        ).stdout
        for hash_seed in ("1", "2")
    ]

    assert outputs[0] == outputs[1] != ""


def test_how_far_it_is_is_told_in_turns_of_all_runs() -> None:
    """Three uses of half a second by turns of a tenth are fifteen turns a run."""
    told: list[tuple[int, int]] = []

    run_many([a_program("a", Use("CPU", 0.5), times=3)], 4, progress=lambda *what: told.append(what))

    assert told == sorted(told)
    assert {total for _, total in told} == {60}
    assert told[-1][0] == 60


def test_averages_are_over_runs_that_differ() -> None:
    programs = [a_program("a", Use("CPU", 2, 0.5), times=3), a_program("b", Use("CPU", 1), Use("IDLE", 1))]

    runs = run_many(programs, 8, seed=3)

    averages = runs.averages(step_s=1)
    ends = [history.finished_ms["a"] / 1000 for history in runs.histories]
    assert len(set(ends)) > 1
    assert runs.finish_s()["a"] == pytest.approx(sum(ends) / 8)
    assert averages.times_s[0] == 0
    assert averages.times_s[-1] >= max(ends)
    assert averages.used_s["a", "CPU"][-1] == pytest.approx(sum(ends) / 8 - 1), "b had the CPU for a second"
    assert averages.deviation_s["b"][-1] == 0 < averages.deviation_s["a"][-1]
    assert run_many(programs, 9, seed=3).histories[0].uses == runs.histories[0].uses


def test_a_process_that_is_not_done_in_every_run_has_no_finish() -> None:
    programs = [a_program("a", Use("CPU", 1)), a_program("b", Use("CPU", 30))]

    assert run_many(programs, 2, until_s=10).finish_s() == {"a": pytest.approx(1.9, abs=0.2)}


def test_periods_without_a_gap_are_one_and_lengths_are_cut_off() -> None:
    periods = Periods()
    for start_ms, end_ms in ((0, 10), (10, 20), (30, 50)):
        periods.add(start_ms, end_ms)

    assert periods.until(40) == [(0, 20), (30, 40)]
    assert [periods.length_ms(at) for at in (0, 5, 20, 25, 30, 40, 90)] == [0, 5, 20, 20, 20, 30, 40]


def test_shares_are_of_the_time_between() -> None:
    history = History(["a"], ["CPU", "DISK"])
    history.add_use("a", "CPU", 0, 1_000)
    history.add_use("a", "DISK", 1_000, 4_000)
    history.add_bottleneck("DISK", 2_000, 3_000)

    assert history.share("a", "CPU", 0, 4) == 0.25
    assert history.progress("a", 0.5, 6) == 3.5 / 5.5
    assert history.utilisation("DISK", 0, 4) == 0.75
    assert history.bottleneck("DISK", 0, 4) == 0.25
    assert QUANTUM_MS == 100
