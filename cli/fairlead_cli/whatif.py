"""`fairlead simulate --from-cluster`: what the live cluster would do under another policy, or with other hosts."""

import asyncio
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from fairlead_cli.addresses import master_option
from fairlead_cli.parameters import DURATION

if TYPE_CHECKING:
    from fairlead_lab.whatif.answer import Answer, CaseOutcome, RoleOutcome
    from fairlead_lab.whatif.question import Question
    from fairlead_lab.whatif.snapshot import Snapshot

_OPTIONS: Final = ("add", "drain", "task_duration_ms")
"""That make sense with --from-cluster only."""
_SHARED: Final = ("from_cluster", "master", "policies", "horizon_ms", "seed", "as_json", *_OPTIONS)
"""That make sense with it."""


def or_from_cluster(simulate: Callable[..., int]) -> Callable[..., int]:
    """Let a command that simulates a workload begin with the state of the live cluster instead, and give it the options for that."""

    @wraps(simulate)
    def either(*, from_cluster: bool, **given: Any) -> int:
        own = {name: given.pop(name) for name in ("master", *_OPTIONS)}
        if from_cluster:
            _check_options()
            return _whatif(
                own["master"],
                policies=given["policies"],
                add=own["add"],
                drain=own["drain"],
                horizon_ms=given["horizon_ms"],
                task_duration_ms=own["task_duration_ms"],
                seed=given["seed"],
                as_json=given["as_json"],
            )
        if any(own[name] for name in _OPTIONS):
            raise click.UsageError("--add, --drain and --task-duration go with --from-cluster")
        return simulate(**given)

    command = master_option(either)
    for option in (
        click.option(
            "--task-duration",
            "task_duration_ms",
            type=DURATION,
            help="How long every task of the cluster is assumed to run [default: as those like it that finished]",
        ),
        click.option(
            "--drain", multiple=True, metavar="AGENT", help="Without this agent of the cluster; repeatable."
        ),
        click.option(
            "--add",
            metavar="HOSTS",
            help="With more hosts than the cluster has, such as 2:cpus=16,mem=64GiB.",
        ),
        click.option(
            "--from-cluster",
            is_flag=True,
            help="Begin with what the live cluster runs and wants now, in place of a trace.",
        ),
    ):
        command = option(command)
    return command


def _check_options() -> None:
    """Refuse what was given and would be of no effect."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        if name not in _SHARED and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{parameter.opts[0]} and --from-cluster do not go together")


def _whatif(
    master: str,
    *,
    policies: Sequence[str],
    add: str | None,
    drain: Sequence[str],
    horizon_ms: int | None,
    task_duration_ms: int | None,
    seed: int | None,
    as_json: bool,
) -> int:
    from fairlead_cli.errors import Invalid, Refused, expected_errors
    from fairlead_cli.printing import print_json
    from fairlead_cli.progress_bar import progress_bar
    from fairlead_lab.whatif.question import Question, QuestionError
    from fairlead_lab.whatif.run_times import RunTimes
    from fairlead_lab.whatif.scenario import answer
    from fairlead_lab.workloads.nodes import parse_nodes

    if task_duration_ms == 0:
        raise Invalid("--task-duration: expected a duration above 0, got 0")
    try:
        with expected_errors():
            question = Question(
                policies=policies,
                added=parse_nodes(add) if add is not None else (),
                drained=drain,
                horizon_ms=horizon_ms,
                seed=1 if seed is None else seed,
            )
            _check_policies(question)
            with progress_bar("reading the cluster") as tell:
                snapshot = asyncio.run(_read(master))
                found = answer(snapshot, question, RunTimes(snapshot.finished, task_duration_ms), tell)
    except QuestionError as error:
        raise Refused(str(error)) from error
    if as_json:
        print_json(found.as_json())
    else:
        _print(found)
    return 0


def _check_policies(question: "Question") -> None:
    """Refuse unknown ones before anybody is asked; those that name a cluster's own resource are judged with it."""
    from fairlead_master.allocation.policies import names
    from fairlead_proto.resources import STANDARD_NAMES

    for policy in question.policies:
        kind, _, parameter = policy.partition(":")
        if not parameter or kind != "max-min":
            names.parse(policy, STANDARD_NAMES)


async def _read(master: str) -> "Snapshot":
    from fairlead_cli.errors import Unreachable
    from fairlead_lab.whatif.reading import read_snapshot
    from fairlead_sdk.errors import MasterUnreachable
    from fairlead_sdk.operator_client import OperatorClient

    try:
        async with OperatorClient(master) as client:
            return await read_snapshot(client)
    except MasterUnreachable as error:
        raise Unreachable(master, error.cause.rpartition(": ")[2]) from error


def _print(found: "Answer") -> None:
    from fairlead_cli.printing import print_table
    from fairlead_cli.tables import Column

    columns = [
        Column(title, key, right=key != "role")
        for title, key in (
            ("ROLE", "role"),
            ("RUNS", "runs"),
            ("SHARE", "share"),
            ("WAITS", "waits"),
            ("ANEW", "anew"),
            ("SHARE", "share_anew"),
            ("MEAN WAIT", "wait"),
            ("LONGEST", "longest"),
            ("DONE IN", "done"),
        )
    ]
    for case in found.cases:
        print(f"{_heading(case)}\n")
        print_table([_row(role) for role in case.roles], columns)
        print(f"all: mean wait {_time(case.wait_mean_ms)}, done in {_time(case.finish_ms)}")
        if case.tasks_drained:
            print(
                f"on hosts that take no work: {_tasks(case.tasks_drained)}; a SHARE has what they hold, over the other hosts' resources, "
                "and may be above 100%"
            )
        for never in case.never:
            run = "task never runs" if never.tasks == 1 else "tasks never run"
            print(f"{never.framework_id}/{never.class_id}: {never.tasks} {run}: {never.why}")
        if case.not_started and found.horizon_ms is not None:
            print(f"not started by then: {case.not_started}")
        print()
    print("RUNS and WAITS: after the next decisions. ANEW: if all that runs were handed out again as well.")
    print(f"Assumed: {found.assumption}.")
    for remark in found.remarks:
        print(f"Note: {remark}.")


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"


def _heading(case: "CaseOutcome") -> str:
    policy = "" if case.name.startswith(case.policy) else f"{case.policy}, "
    held = " ".join(f"{name} {fraction:.0%}" for name, fraction in case.utilization.items() if fraction)
    hosts = "host" if case.hosts == 1 else "hosts"
    return f"{case.name}: {policy}{case.hosts} {hosts}, held: {held or 'nothing'}"


def _time(duration_ms: float | None) -> str:
    from fairlead_cli.tables import span

    return "-" if duration_ms is None else span(duration_ms)


def _row(role: "RoleOutcome") -> dict[str, str]:
    return {
        "role": role.role,
        "runs": f"{role.now.tasks}",
        "share": f"{role.now.dominant_share:.1%} {role.now.dominant_resource}".rstrip(),
        "waits": f"{role.waiting}",
        "anew": f"{role.anew.tasks}",
        "share_anew": f"{role.anew.dominant_share:.1%} {role.anew.dominant_resource}".rstrip(),
        "wait": _time(role.wait_mean_ms),
        "longest": _time(role.wait_max_ms),
        "done": _time(role.finish_ms),
    }
