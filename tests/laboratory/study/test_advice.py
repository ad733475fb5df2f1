"""What a study says in sentences: true to its numbers, and to what they leave open."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from html import unescape
from typing import Any

import pytest

from fairlead_lab.metrics.result import PolicyResult, SizeClass
from fairlead_lab.metrics.statistics import Spread
from fairlead_lab.study.advice import summary, where_waiting_comes_from
from fairlead_lab.study.questions import Answer, answers
from fairlead_lab.study.report import report_page
from fairlead_lab.study.run import run_study
from fairlead_lab.study.study import Outcome, SimulationOptions, Study
from fairlead_lab.study.tables import finished_jobs, users
from fairlead_sim.node import Node
from fairlead_sim.workload import Bundle, Job
from tests.laboratory.workloads.workload_builders import GIB

NODES = tuple(Node(name=name, total=(4000, 8 * GIB, 0, 0)) for name in ("a", "b"))


@dataclass(frozen=True)
class Queue:
    """More work than there is room for, of two users, one with small tasks and one with large ones."""

    is_gang: bool = False
    is_of_seed: bool = False

    def jobs(self, seed: int, /) -> list[Job]:
        found = []
        for number in range(16):
            user, unit = (("ann", (1000, GIB, 0, 0)), ("bob", (4000, 4 * GIB, 0, 0)))[number % 2]
            bundle = Bundle(
                job_id=f"j{number}", user=user, stage=0, tasks=2, unit=unit, submit_ms=number * 1000,
                duration_ms=9000 + number + (seed if self.is_of_seed else 0), is_gang=self.is_gang,
            )  # fmt: skip
            found.append(Job(job_id=f"j{number}", user=user, submit_ms=number * 1000, bundles=(bundle,)))
        return found


def a_study(
    *policies: str,
    seeds: tuple[int, ...] = (1,),
    source: Queue | None = None,
    options: SimulationOptions | None = None,
) -> Outcome:
    study = Study(
        source=source or Queue(), nodes=NODES, policies=policies, seeds=seeds,
        options=options or SimulationOptions(),
    )  # fmt: skip
    return run_study(study, processes=1)


def with_runs(outcome: Outcome, change: Callable[[PolicyResult], PolicyResult]) -> Outcome:
    results = {policy: [change(run) for run in runs] for policy, runs in outcome.results.items()}
    return replace(outcome, results=results)


def answer_about(subject: str, outcome: Outcome) -> Answer:
    return next(answer for answer in answers(outcome) if answer.question.subject == subject)


def test_use_is_what_hosts_can_give_however_much_is_promised() -> None:
    outcome = a_study("drf", "slots:8")
    (run,) = outcome.results["slots:8"]

    use = run.resources["cpus"]

    assert use.held_until_last_arrival > 1
    assert use.held_until_last_arrival - use.over_until_last_arrival <= 1
    answer = answer_about("the use of the cluster", outcome)
    assert answer.numbers[1] == f"{100 * (use.held_until_last_arrival - use.over_until_last_arrival):.1f} %"
    assert answer.left_out == {1}


def test_the_number_of_questions_is_that_of_the_rows() -> None:
    outcome = a_study("drf", "slots:8")
    known = answers(outcome)
    differing = [answer for answer in known if answer.best]

    assert 0 < len(differing) < len(known)
    assert summary(outcome, known)[0].startswith(
        f"The policies differ in {len(differing)} of the {len(known)} questions below."
    )


def test_one_fraction_has_one_number() -> None:
    outcome = a_study("drf", "slots:8", seeds=(1, 2), source=Queue(is_of_seed=True))
    mean = sum(run.crowded_fraction for run in outcome.results["slots:8"]) / 2

    (line,) = (line for line in summary(outcome, answers(outcome)) if line.startswith("Under slots:8"))

    assert line.startswith(f"Under slots:8 {100 * mean:.1f} ")


def test_equals_are_told_what_to_choose_by() -> None:
    outcome = a_study("drf", "pf", "fifo")
    known = [
        replace(answer, best=frozenset({0, 1})) if number else replace(answer, best=frozenset())
        for number, answer in enumerate(answers(outcome))
    ]

    leaders = summary(outcome, known)[0]

    assert "No question decides between drf and pf" in leaders
    assert "keep the one you run" in leaders
    best_in_all = [replace(answer, best=answer.best & {0}) for answer in known]
    assert summary(outcome, best_in_all)[0].endswith("drf is among the best in all 6 of those.")
    best_in_one = [
        replace(answer, best=answer.best if number == 1 else frozenset())
        for number, answer in enumerate(best_in_all)
    ]
    assert summary(outcome, best_in_one)[0].endswith("drf is among the best in that one.")
    known[1] = replace(known[1], best=frozenset({0}))
    known[2] = replace(known[2], best=frozenset({1}))
    assert "Which question matters is for you to say" in summary(outcome, known)[0]


def test_who_cannot_be_asked_is_said_in_the_row() -> None:
    of_jobs = a_study("drf", "fifo", options=SimulationOptions(is_user_per_job=True))

    row = answer_about("how few are worse off than alone", of_jobs)

    assert (
        "16 of the 16 are left out" in row.meaning
    )  # a task wants 1 of 8 cores, and 1/16 of them is half a core
    assert "left out" not in answer_about("how few are worse off than alone", a_study("drf")).meaning


def test_which_tasks_are_large_is_said_in_the_row() -> None:
    row = answer_about("the largest tasks", a_study("drf"))

    assert row.meaning.endswith(": more than 25 % of the largest, 50 % of all tasks.")


def test_those_who_are_clearly_worse_off_have_names() -> None:
    def change(run: PolicyResult) -> PolicyResult:
        names = {"drf": [], "fifo": ["ann", *(["bob"] if run.seed == 2 else [])]}[run.policy]
        return replace(run, clear_violations=names)

    outcome = with_runs(a_study("drf", "fifo", seeds=(1, 2)), change)

    (line,) = (line for line in summary(outcome, answers(outcome)) if line.startswith("Clearly worse off"))

    assert "nobody under drf; ann and bob (with 1 of 2 seeds) under fifo" in line


def page(*policies: str, **options: Any) -> str:
    return unescape(report_page(a_study(*policies, **options), {}, title="work", command="fairlead simulate"))


def test_what_a_seed_changes_is_said() -> None:
    def of(source: Queue, *seeds: int) -> str:
        return page("drf", seeds=seeds, source=source)

    assert "A seed makes the work itself" in of(Queue(is_of_seed=True), 1, 2)
    assert "how long gangs wait" in of(Queue(is_gang=True), 1, 2)
    in_slots = page("drf", "slots:2", seeds=(1, 2))
    assert "which hosts tasks are placed on under slots:2" in in_slots
    fixed = SimulationOptions(placement="random:1")
    assert "all are alike.</p>" in page("drf", "slots:2", seeds=(1, 2), options=fixed)
    assert "all are alike.</p>" in of(Queue(), 1, 2)
    assert "Each policy was run with" not in of(Queue(), 1)


def test_how_many_comparisons_are_made_is_said() -> None:
    assert "7 questions of 3 policies are 14 comparisons" in page("drf", "pf", "fifo", seeds=(1, 2))
    assert "comparisons" not in page("drf")


def _waits(count: int, mean_ms: float) -> Spread:
    return Spread(count=count, mean=mean_ms, p50=0, p95=mean_ms, p99=mean_ms, most=mean_ms)


@pytest.mark.parametrize(("large_ms", "is_large"), [(9_700.0, True), (1_000.0, False), (0.0, False)])
def test_waiting_is_ascribed_to_large_tasks_only_where_they_make_it(large_ms: float, is_large: bool) -> None:
    classes = [
        SizeClass(largest_size=0.25, wait=_waits(80, 100.0)),
        SizeClass(largest_size=1.0, wait=_waits(20, large_ms)),
    ]

    def change(run: PolicyResult) -> PolicyResult:
        resources = {name: replace(use, held_until_last_arrival=0.5) for name, use in run.resources.items()}
        return replace(run, waits_by_size=classes, resources=resources)

    (line,) = where_waiting_comes_from(with_runs(a_study("drf"), change))

    part = 20 * large_ms / (20 * large_ms + 8000)
    assert f"{100 * part:.0f} % of all waiting is that of the 20 % of tasks that want more than 25 %" in line
    assert ("So what waits here is mostly large tasks" in line) == is_large


def test_nothing_is_said_of_waiting_where_nobody_waits() -> None:
    alone = Bundle(
        job_id="j", user="ann", stage=0, tasks=1, unit=(1000, GIB, 0, 0), submit_ms=0, duration_ms=9
    )
    source = _One(Job(job_id="j", user="ann", submit_ms=0, bundles=(alone,)))
    study = Study(source=source, nodes=NODES, policies=("drf",), seeds=(1,))

    assert where_waiting_comes_from(run_study(study, processes=1)) == []


@dataclass(frozen=True)
class _One:
    job: Job

    def jobs(self, seed: int, /) -> list[Job]:
        return [self.job]


@pytest.mark.parametrize(("by_seed_ms", "cell"), [(4000.0, "11 s"), (100.0, "7.2 s ↑")])
def test_users_are_means_over_the_seeds_and_later_only_if_these_tell(by_seed_ms: float, cell: str) -> None:
    def change(run: PolicyResult) -> PolicyResult:
        later_ms = by_seed_ms * run.seed + (4000 if by_seed_ms < 4000 else 0)
        completion_ms = {"drf": 3000.0, "fifo": 3000.0 + later_ms}[run.policy]
        changed = [replace(user, mean_completion_ms=completion_ms) for user in run.users]
        return replace(run, users=changed)

    outcome = with_runs(a_study("drf", "fifo", seeds=(1, 2, 3)), change)

    _, rows = users(outcome)

    # Later by 4, 8 and 12 s is 8 ± 9.9 s; by 4.1, 4.2 and 4.3 s it is 4.2 ± 0.2 s.
    assert [tuple(row[-2:]) for row in rows] == [("3 s", cell)] * 2


def test_a_second_counts_as_ten_in_the_bounded_slowdown() -> None:
    short = Bundle(
        job_id="s", user="ann", stage=0, tasks=1, unit=(4000, GIB, 0, 0), submit_ms=0, duration_ms=1000
    )
    jobs = [Job(job_id=f"j{n}", user="ann", submit_ms=0, bundles=(short,)) for n in range(40)]
    study = Study(source=_Many(tuple(jobs)), nodes=NODES, policies=("drf",), seeds=(1,))

    (run,) = run_study(study, processes=1).results["drf"]

    # Two at a time, so they are done after 1 to 20 s.
    assert (run.slowdown.most, run.bounded_slowdown.most) == (20, 2)
    assert run.bounded_slowdown.p50 == 1


@dataclass(frozen=True)
class _Many:
    found: tuple[Job, ...]

    def jobs(self, seed: int, /) -> list[Job]:
        return list(self.found)


def test_jobs_of_seeds_that_differ_are_added_up() -> None:
    (run,) = a_study("drf").results["drf"]
    runs = [replace(run, jobs=jobs, jobs_finished=jobs - 1) for jobs in (959, 910, 910)]

    assert finished_jobs(runs) == "2776 of 2779 in 3 runs"
    assert finished_jobs(runs[1:]) == "909 of 910"
