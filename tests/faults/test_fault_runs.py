"""Seeded runs of the real cores under faults: nothing is lost, nothing runs twice, every book balances.

``FAIRLEAD_FAULT_SEEDS=1000`` runs more of them; a failure names its seed. A seed gives the same history only as long as
the harness draws the same numbers, so what one finds becomes a test by events beside the core, not a number kept here.
"""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from fairlead_master.core import settings
from fairlead_master.core.actions import Action
from fairlead_master.core.events import Event, Ticked
from fairlead_master.core.machine import Machine, is_in_parts
from fairlead_proto.task_state import TaskState
from fairlead_sim.virtual_cluster.network import NetworkOptions
from tests.faults.harness import Plan, Run

pytestmark = pytest.mark.fault

SEEDS = range(int(os.environ.get("FAIRLEAD_FAULT_SEEDS", "40")))


class _Reach(Run):
    """Counts what a run came by."""

    def __init__(self, plan: Plan) -> None:
        self.reached: Counter[str] = Counter()
        super().__init__(plan)

    def _note(self, what: str, *decided: object) -> None:
        super()._note(what, *decided)
        for action in decided:
            self.reached[type(action).__name__] += 1
            statuses: Sequence[object] = getattr(action, "statuses", ())
            self.reached.update(status.state.value for status in statuses)  # type: ignore[attr-defined]


@cache
def executed(seed: int) -> tuple[Counter[str], Counter[str], str]:
    """What the run of a seed reached, the faults that happened, and its digest."""
    run = _Reach(Plan(seed=seed))
    run.execute()
    return run.reached, run.faults, run.digest


@pytest.mark.parametrize("seed", SEEDS)
def test_all_work_ends_and_all_books_balance_after_faults(seed: int) -> None:
    executed(seed)


@pytest.mark.parametrize("seed", range(2_000, 2_006))
def test_all_books_balance_while_everything_is_done_task_by_task(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a master does in parts of 500 tasks meets nothing in runs with a few dozen: so in parts of one, far apart."""
    due_ms, step = Machine.next_deadline_ms, Machine.step
    parts = 0
    next_ms: int | None = None

    def later_ms(machine: Machine, now_ms: int) -> int | None:
        nonlocal parts, next_ms
        if not is_in_parts(machine.master):
            next_ms = None
            return due_ms(machine, now_ms)
        if next_ms is None:
            parts += 1
            next_ms = now_ms + 50
        return next_ms

    def note_tick(machine: Machine, event: Event, now_ms: int) -> list[Action]:
        nonlocal next_ms
        if isinstance(event, Ticked):
            next_ms = None
        return step(machine, event, now_ms)

    monkeypatch.setattr(settings, "TASKS_PER_STEP_MAX", 1)
    monkeypatch.setattr(settings, "OFFERS_ENDED_PER_STEP_MAX", 1)
    monkeypatch.setattr(Machine, "next_deadline_ms", later_ms)
    monkeypatch.setattr(Machine, "step", note_tick)

    Run(Plan(seed=seed, agents=2, jobs=25)).execute()

    assert parts > 10


def test_without_faults_every_job_takes_one_attempt() -> None:
    run = Run(Plan(seed=1, faulty_ms=0, network=NetworkOptions(delay_max_ms=3)))

    run.execute()

    for framework in run.cluster.frameworks.values():
        assert len(framework.jobs) == run.plan.jobs
        assert {(job.repeats, job.result and job.result.attempts) for job in framework.jobs.values()} == {
            (0, 1)
        }


def test_the_faults_reach_what_they_are_for() -> None:
    """A harness in which nothing goes wrong proves nothing."""
    reached: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    for seed in (*range(8), *range(1_000, 1_004)):
        reached += executed(seed)[0]
        faults += executed(seed)[1]

    expected = {state.value for state in TaskState} - {"STAGING", "ERROR"}
    expected |= {
        "RescindOffers",
        "KillTask",
        "EndAgentSession",
        "EndFrameworkSession",
        "FinishReconciliation",
    }
    expected |= {"ForgetAgent", "ForgetFramework", "AnnounceAgentGone", "StartExecutor", "KillProcess"}
    assert not (missing := sorted(expected - set(reached))), f"never came about: {missing}"
    assert len(faults) == 13, f"kinds of faults that happened: {sorted(faults)}"


PRINT_DIGEST = "from tests.faults.harness import *; run = Run(Plan(seed=7)); run.execute(); print(run.digest)"


def test_a_seed_gives_one_history_whatever_the_hash_seed() -> None:
    root = Path(__file__).parents[2]
    digests = {
        subprocess.run(
            [sys.executable, "-c", PRINT_DIGEST],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
            timeout=100,
        ).stdout
        for hash_seed in ("1", "2")
    }

    assert digests == {executed(7)[2] + "\n"}


def test_another_seed_gives_another_history() -> None:
    assert executed(1)[2] != executed(2)[2]
