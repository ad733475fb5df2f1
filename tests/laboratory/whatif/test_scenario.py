"""Answers on clusters small enough to be followed with a pencil."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_lab.whatif.answer import CaseOutcome
from fairlead_lab.whatif.question import Question
from fairlead_lab.whatif.run_times import RunTimes
from fairlead_lab.whatif.scenario import answer
from fairlead_lab.whatif.snapshot import Snapshot
from fairlead_lab.workloads.nodes import parse_nodes
from fairlead_master.allocation.api import AllocationError
from fairlead_master.allocation.weights import Weight
from fairlead_proto.ids import Role
from fairlead_proto.tasks import Constraint, Operator
from tests.laboratory.whatif.builders import (
    GIB,
    A,
    B,
    a_framework,
    a_host,
    a_snapshot,
    some_finished,
    some_running,
    some_waiting,
)

NOT_KNOWN = RunTimes([])
SECOND = RunTimes([], given_ms=1000)


def outcomes(
    snapshot: Snapshot, question: Question | None = None, run_times: RunTimes = SECOND
) -> list[CaseOutcome]:
    return list(answer(snapshot, question or Question(), run_times).cases)


def tasks_now(case: CaseOutcome) -> dict[str, int]:
    return {role.role: role.now.tasks for role in case.roles}


BOTH_WAIT = (some_waiting("A", A, 9), some_waiting("B", B, 9))


def test_an_empty_cluster_serves_the_example_of_drf() -> None:
    """Paper 001, section 4.1: three tasks of A, two of B, two thirds of memory and of CPUs."""
    (case,) = outcomes(a_snapshot(waiting=BOTH_WAIT), run_times=NOT_KNOWN)

    assert tasks_now(case) == {"A": 3, "B": 2}
    assert [role.waiting for role in case.roles] == [6, 7]
    assert [role.now.dominant_share for role in case.roles] == pytest.approx([2 / 3, 2 / 3])
    assert [role.now.dominant_resource for role in case.roles] == ["mem", "cpus"]
    assert case.utilization == pytest.approx({"cpus": 1, "mem": 14 / 18})


def test_other_policies_divide_what_is_free_otherwise() -> None:
    cases = outcomes(a_snapshot(waiting=BOTH_WAIT), Question(policies=["max-min:cpus", "slots:4"]))

    assert [case.policy for case in cases] == ["drf", "max-min:cpus", "slots:4"]
    # Equal CPUs: A would get as many as B's one or two tasks have; memory ends at four of A.
    assert [tasks_now(case) for case in cases] == [{"A": 3, "B": 2}, {"A": 4, "B": 1}, {"A": 2, "B": 2}]


def test_what_runs_is_left_alone_and_what_the_policy_is_heading_for_is_told_beside_it() -> None:
    """A holds all of memory; DRF would give it three of four."""
    running = some_running("A", A, 0, 0, 0, 0)

    (case,) = outcomes(a_snapshot(running=running, waiting=[some_waiting("B", B, 9)]))

    assert tasks_now(case) == {"A": 4, "B": 1}
    assert {role.role: role.anew.tasks for role in case.roles} == {"A": 3, "B": 2}


def test_weights_count() -> None:
    """Three times the weight, and nine cores for tasks of one."""
    wish = (1000, GIB, 0, 0)
    waiting = [some_waiting("A", wish, 20), some_waiting("B", wish, 20)]
    snapshot = a_snapshot(waiting=waiting, weights={Role("B"): Weight(2.0)})

    assert tasks_now(outcomes(snapshot)[0]) == {"A": 3, "B": 6}


def test_waits_and_ends_follow_from_the_run_times() -> None:
    """Three of A's four fit in memory beside what runs for 400 ms more; the fourth waits for that."""
    snapshot = a_snapshot(
        frameworks=[a_framework("A"), a_framework("B")],
        running=some_running("B", (0, 4 * GIB, 0, 0), 600),
        waiting=[some_waiting("A", A, 4)],
    )

    (case,) = outcomes(snapshot)

    by_role = {role.role: role for role in case.roles}
    assert (by_role["A"].wait_mean_ms, by_role["A"].wait_max_ms, by_role["A"].finish_ms) == (100, 400, 1400)
    assert (by_role["B"].wait_mean_ms, by_role["B"].wait_max_ms, by_role["B"].finish_ms) == (None, None, 400)
    assert (case.wait_mean_ms, case.finish_ms, case.not_started) == (100, 1400, 0)


def test_how_far_it_is_is_told_over_all_cases() -> None:
    snapshot = a_snapshot(running=some_running("B", B, 600), waiting=[some_waiting("A", A, 4)])
    told: list[tuple[str, int, int]] = []

    answer(snapshot, Question(policies=["fifo"]), SECOND, lambda *what: told.append(what))

    assert {total for _, _, total in told} == {10}
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert [told[0], told[-1]] == [("as it is", 0, 10), ("fifo", 10, 10)]
    assert ("fifo", 5, 10) in told


def test_run_times_are_those_of_each_framework() -> None:
    """Three tasks of A and two of B at first; when A is done after 300 ms, a third of B's nine begins beside them."""
    finished = some_finished("A", A, 100) + some_finished("B", B, 5000)

    (case,) = outcomes(a_snapshot(waiting=BOTH_WAIT), run_times=RunTimes(finished))

    ends = {role.role: role.finish_ms for role in case.roles}
    assert ends == {"A": 300, "B": 15_300}


def test_times_of_other_work_are_told_from_own_ones() -> None:
    waiting = (*BOTH_WAIT, some_waiting("C", A, 7))
    snapshot = replace(a_snapshot(waiting=waiting), frameworks={name: a_framework(name) for name in "ABC"})
    own = some_finished("A", A, 100) + some_finished("old", B, 100, name="B", role="B")
    tasks = sum(each.units for each in waiting)

    (remark,) = answer(snapshot, Question(), RunTimes(own)).remarks
    other = answer(snapshot, Question(), RunTimes(some_finished("D", A, 11))).remarks

    assert remark.startswith(f"of 7 of the {tasks} tasks that wait nothing alike has finished")
    assert other[0].startswith(f"of {tasks} of the {tasks} tasks")
    assert answer(snapshot, Question(), SECOND).remarks == []
    assert answer(snapshot, Question(), NOT_KNOWN).remarks == []


def test_nothing_is_said_of_the_future_where_nothing_is_known_of_it() -> None:
    found = answer(a_snapshot(waiting=BOTH_WAIT), Question(), NOT_KNOWN)

    assert "no task has finished yet" in found.assumption
    (case,) = found.cases
    assert (case.wait_mean_ms, case.finish_ms, case.not_started) == (None, None, 13)
    assert all(role.wait_mean_ms is role.wait_max_ms is role.finish_ms is None for role in case.roles)


def test_a_horizon_ends_the_look() -> None:
    """Four of A at a time in memory, one second each: eight have started after 1.5 s, and one has not."""
    snapshot = a_snapshot(waiting=[some_waiting("A", A, 9)])

    (case,) = outcomes(snapshot, Question(horizon_ms=1500))

    assert (case.not_started, case.finish_ms) == (1, None)
    assert case.wait_mean_ms == 500


def test_more_hosts_take_what_waits() -> None:
    question = Question(added=parse_nodes("1:cpus=9,mem=18GiB"))

    before, after = outcomes(a_snapshot(waiting=[some_waiting("A", A, 8)]), question)

    assert (before.hosts, tasks_now(before), before.finish_ms) == (1, {"A": 4}, 2000)
    assert (after.hosts, tasks_now(after), after.finish_ms) == (2, {"A": 8}, 1000)
    assert after.wait_mean_ms == 0


def test_a_drained_host_runs_what_it_has_to_the_end() -> None:
    """Two hosts, two tasks of A on the one that is drained; six wait where four fit at a time."""
    snapshot = a_snapshot(
        hosts=[a_host("a1"), a_host("a2")],
        running=some_running("A", A, 0, 0),
        waiting=[some_waiting("A", A, 6)],
    )

    before, after = outcomes(snapshot, Question(drained=["a1"]))

    assert (tasks_now(before), before.finish_ms) == ({"A": 8}, 1000)
    assert (tasks_now(after), after.finish_ms, after.hosts) == ({"A": 6}, 2000, 1)
    assert (before.tasks_drained, after.tasks_drained) == (0, 2)
    assert {role.anew.tasks for role in after.roles} == {4}
    assert after.roles[0].now.dominant_share == pytest.approx(6 * 4 / 18), "of the capacity that is left"
    assert after.utilization["mem"] == pytest.approx(4 * 4 / 18), "on the host that is left"


def test_what_fits_on_the_drained_host_alone_is_named_and_holds_up_nobody() -> None:
    rack = (Constraint("rack", Operator.EQUALS, ("x",)),)
    picky = replace(some_waiting("A", A, 3), class_id="picky", constraints=rack)
    snapshot = a_snapshot(
        hosts=[a_host("a1", rack="x"), a_host("a2")], waiting=[picky, some_waiting("A", A, 1)]
    )

    before, after = outcomes(snapshot, Question(drained=["a1"]))

    assert not before.never
    (never,) = after.never
    assert (never.framework_id, never.class_id, never.tasks) == ("A", "picky", 3)
    assert "drained" in never.why
    assert (after.finish_ms, after.not_started) == (1000, 0)


def test_roles_include_those_below_them() -> None:
    frameworks = [a_framework("A", "eng/ml"), a_framework("B", "eng/web")]
    snapshot = a_snapshot(frameworks=frameworks, waiting=[some_waiting("A", A, 2), some_waiting("B", B, 3)])

    (case,) = outcomes(snapshot)

    assert tasks_now(case) == {"eng": 4, "eng/ml": 2, "eng/web": 2}
    assert [role.waiting for role in case.roles] == [1, 0, 1]
    assert [role.finish_ms for role in case.roles] == [2000, 1000, 2000]


def test_frameworks_of_one_role_are_told_apart() -> None:
    """Otherwise the first class of the first framework would be all that the role wants, in order."""
    frameworks = [a_framework("A", "R"), a_framework("B", "R")]
    snapshot = a_snapshot(frameworks=frameworks, waiting=BOTH_WAIT)

    (case,) = outcomes(snapshot)

    assert case.utilization == pytest.approx({"cpus": 1, "mem": 14 / 18})


def test_a_policy_nobody_knows_is_refused() -> None:
    with pytest.raises(AllocationError, match="lottery"):
        outcomes(a_snapshot(waiting=BOTH_WAIT), Question(policies=["lottery"]))


def test_what_is_not_as_on_the_cluster_is_remarked() -> None:
    found = answer(a_snapshot(tasks_left_out=3, is_measured=True), Question(), SECOND)

    assert found.remarks == [
        "tasks on agents that are gone or not back yet are left out: 3",
        "the cluster counts measured demand; here what tasks declare counts",
    ]


@given(
    running=st.lists(st.tuples(st.sampled_from("AB"), st.integers(0, 3000)), max_size=12),
    waiting=st.tuples(st.integers(0, 12), st.integers(0, 12)),
    policy=st.sampled_from(["drf", "pf", "bbf", "slots:3", "fifo", "max-min", "asset", "baa"]),
)
def test_every_task_is_accounted_for_and_a_question_asked_twice_is_answered_alike(
    running: list[tuple[str, int]], waiting: tuple[int, int], policy: str
) -> None:
    units = {"A": A, "B": B}
    snapshot = a_snapshot(
        hosts=[a_host("a1"), a_host("a2")],
        running=[
            task
            for name, ran_ms in running
            for task in some_running(name, units[name], ran_ms, agent_id="a2")
        ],
        waiting=[
            some_waiting(name, units[name], count) for name, count in zip("AB", waiting, strict=True) if count
        ],
    )
    question = Question(policies=[policy], drained=["a1"])

    found = answer(snapshot, question, SECOND)

    for case in found.cases:
        assert sum(role.now.tasks + role.waiting for role in case.roles) == len(running) + sum(waiting)
        assert sum(role.now.tasks for role in case.roles) >= len(running)
        assert case.not_started == 0
        if running or any(waiting):
            assert case.finish_ms is not None
    assert answer(snapshot, question, SECOND) == found
