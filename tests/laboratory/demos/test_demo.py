import io
import re
import shlex
import sys
from pathlib import Path

import click
import pytest
from rich.console import Console

from fairlead_cli.main import fairlead
from fairlead_lab.demos.demo import comparison, look_next, print_comparison, shown_standing, standing_table
from fairlead_lab.demos.paper_example import Standing, describe
from fairlead_lab.metrics.records import RoleSample, RunRecord
from fairlead_lab.metrics.report import build_report
from fairlead_lab.replay.replay import ReplayOutcome, resolve_policy
from fairlead_lab.workloads.plan import plan_replay
from fairlead_lab.workloads.scaling import ScalingRule
from fairlead_sim.workload import group_jobs
from tests.laboratory.workloads.workload_builders import GIB, a_bundle, a_job_record, a_task_record

GB = 10**9
NODE = (4000, 16 * GIB, 0, 0)
REPOSITORY = Path(__file__).resolve().parents[3]


def a_role(tasks: int, cpus: int, mem_gb: int, share: float, resource: str) -> RoleSample:
    return RoleSample(
        dominant_share=share,
        dominant_resource=resource,
        allocated=(cpus * 1000, mem_gb * GB, 0, 0),
        pending=20,
        running=tasks,
    )


AT_REST = Standing(
    at_s=4.2, roles={"a": a_role(3, 3, 12, 12 / 18, "mem"), "b": a_role(2, 6, 2, 6 / 9, "cpus")}
)
A_ALONE = Standing(at_s=0.5, roles={"a": a_role(4, 4, 16, 16 / 18, "mem")})


def test_standing_of_the_paper_is_three_and_two_tasks_with_shares_of_two_thirds() -> None:
    other = Standing(at_s=1, roles={"a": a_role(3, 3, 12, 0.66, "mem"), "b": AT_REST.roles["b"]})

    assert AT_REST.is_expected
    assert not A_ALONE.is_expected
    assert not other.is_expected
    assert not Standing(at_s=0, roles={}).is_expected


def test_standing_is_described_with_what_each_framework_holds() -> None:
    assert describe(AT_REST) == [
        ("A <1 CPU, 4 GB>", "3", "3", "12 GB", "0.667 mem"),
        ("B <3 CPU, 1 GB>", "2", "6", "2 GB", "0.667 cpus"),
    ]
    assert describe(A_ALONE)[1] == ("B <3 CPU, 1 GB>", "0", "0", "0 GB", "not here yet")


def test_changes_are_lines_where_there_is_no_terminal() -> None:
    console = Console(file=io.StringIO(), record=True, width=120)

    with shown_standing(console) as show:
        for standing in (A_ALONE, A_ALONE, AT_REST, AT_REST):
            show(standing)

    lines = console.export_text().splitlines()
    assert lines == [
        "  0.5 s  A <1 CPU, 4 GB>: 4 tasks, share 0.889 mem   B <3 CPU, 1 GB>: 0 tasks, share not here yet",
        "  4.2 s  A <1 CPU, 4 GB>: 3 tasks, share 0.667 mem   B <3 CPU, 1 GB>: 2 tasks, share 0.667 cpus",
    ]


def test_shares_are_a_table_that_moves_on_a_terminal() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120)

    with shown_standing(console) as show:
        show(AT_REST)
    console.print(standing_table(A_ALONE))

    assert isinstance(console.file, io.StringIO)
    assert "0.667 cpus" in console.file.getvalue()
    assert "not here yet" in console.file.getvalue()


@pytest.mark.parametrize(
    ("name", "policy"), [("drf", "drf"), ("slots:3", "slots:3"), ("slots:largest", "slots:2"), ("slots:average", "slots:3")]
)  # fmt: skip
def test_number_of_slots_may_be_chosen_from_the_work(name: str, policy: str) -> None:
    bundles = [a_bundle("a", unit=(1600, GIB, 0, 0)), a_bundle("b", unit=(1000, GIB, 0, 0))]
    rule = ScalingRule(reference=NODE, agents=(NODE,), speedup=1)

    assert resolve_policy(name, plan_replay(group_jobs(bundles), rule), NODE) == policy


def test_comparison_table_shows_each_policy_and_what_slots_promise_twice() -> None:
    rule = ScalingRule(reference=NODE, agents=(NODE,), speedup=1)
    plan = plan_replay(group_jobs([a_bundle("a", unit=(3000, GIB, 0, 0), tasks=2)]), rule)
    fair = a_job_record(
        a_task_record("t0", unit=(3000, GIB, 0, 0)),
        a_task_record("t1", unit=(3000, GIB, 0, 0), started_ms=1000, finished_ms=2000),
    )
    twice = a_job_record(*(a_task_record(f"t{n}", unit=(3000, GIB, 0, 0)) for n in range(2)))
    reports = [
        build_report(RunRecord(policy=policy, agents={"a0": NODE}, jobs=(job,)))
        for policy, job in (("drf", fair), ("slots:1", fair), ("slots:2", twice))
    ]
    outcome = ReplayOutcome(
        plan=plan, agents=[NODE], reference=NODE, rows_without_duration=0, reports=reports
    )
    console = Console(file=io.StringIO(), record=True, width=160)

    print_comparison(console, outcome)

    shown = console.export_text()
    assert "slots:2: a slot is the average task, so tasks spent 100.0 % of their time on agents" in shown
    assert "tasks held 75.0 % of the CPUs; 75.0 % under drf" in shown
    assert "Modelled:" in shown
    assert "Where to look next:" in shown
    assert outcome.is_whole


def test_what_to_do_next_can_be_typed_in_a_clone_without_the_command_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = tmp_path / ".venv" / "bin"
    beside.mkdir(parents=True)
    (beside / "fairlead").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(beside / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))

    assert "\n  .venv/bin/fairlead up  " in look_next()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert f"\n  {beside}/fairlead up  " in look_next()


def test_next_steps_are_commands_and_files_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fairlead").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(REPOSITORY)

    called = re.findall(r"^  fairlead (.+?)  ", look_next(), re.MULTILINE)
    named = re.findall(r"(?:docs|examples)/\S+", look_next())

    for words in called:
        verb, *arguments = shlex.split(words.replace("FILE", "pyproject.toml"))
        command = fairlead.get_command(click.Context(fairlead), verb)
        assert command is not None
        command.make_context(verb, arguments)
    assert [words.split()[0] for words in called] == ["up", "run", "simulate", "replay"]
    assert len(named) == 2
    assert all((REPOSITORY / path).is_file() for path in named)


def test_demonstration_compares_drf_with_slots_of_two_sizes_in_bounded_time() -> None:
    settings = comparison()

    assert settings.policies == ("drf", "slots:largest", "slots:average")
    assert settings.limit_s is not None
    assert settings.limit_s * len(settings.policies) < 120
    assert settings.trace.is_file()
    assert settings.nodes is not None
    assert settings.nodes.is_file()
