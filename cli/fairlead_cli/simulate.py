"""`fairlead simulate`: what a workload would get under which policy, without a cluster."""

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import cpu_count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from fairlead_cli.addresses import json_option
from fairlead_cli.parameters import DURATION, trace_options
from fairlead_cli.whatif import or_from_cluster

if TYPE_CHECKING:
    from fairlead_lab.study.run import Progress
    from fairlead_lab.study.study import Case, Outcome, Source, Study
    from fairlead_lab.workloads.scenario import Scenario, TraceSource

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_DEFAULT_POLICY: Final = "drf"
_DEFAULT_SEED: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a person asked for; None where nothing was said."""

    trace: Path | None
    trace_format: str
    scenario: Path | None
    nodes: str | None
    policies: Sequence[str]
    jobs_max: int | None
    seed: int | None
    seeds: int | None
    level: str
    per: str
    placement: str | None
    when_head_does_not_fit: str | None
    slowdown: float | None
    horizon_ms: int | None
    user_column: str
    default_duration_ms: int | None
    skip_without_duration: bool

    @property
    def subject(self) -> str:
        """What is simulated, for a title."""
        path = self.trace or self.scenario
        return path.name if path is not None else ""


@click.command()
@click.option(
    "--trace",
    type=_FILE,
    help="A workload trace: the project's CSV, SWF, SWIM, openb, Google; may be gzipped.",
)
@click.option(
    "--format",
    "trace_format",
    default="auto",
    show_default=True,
    help="Of the trace, if it is not told from the file.",
)
@click.option("--scenario", type=_FILE, help="A scenario file (TOML or YAML) in place of a trace.")
@click.option("--nodes", help="A file of nodes, or words such as 20:cpus=80,mem=505GiB+48:cpus=12,mem=90GiB.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    help="drf, pf, slots:4, …; repeatable, the first is what others are compared with.",
)
@click.option(
    "--limit",
    "jobs_max",
    type=click.IntRange(1),
    metavar="JOBS",
    help="Only the first so many jobs.",
)
@click.option("--seed", type=click.IntRange(0), help="Of everything random [default: 1, or the scenario's]")
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="So many runs of each policy, with seeds that count up; means get confidence intervals.",
)
@click.option(
    "--level",
    type=click.Choice(["pool", "cluster"]),
    default="pool",
    show_default=True,
    help="pool: policies and placement alone; cluster: whole masters and agents with their messages, about five times slower.",
)
@click.option(
    "--per",
    type=click.Choice(["user", "job"]),
    default="user",
    show_default=True,
    help="Who has a share: each user, or each job.",
)
@click.option(
    "--placement",
    help="Which host a task gets: align, pack, spread, least-loaded, random or heartbeat, the last two as :SEED or by --seed "
    "[default: align, and random under slots:K]",
)
@click.option(
    "--when-head-does-not-fit",
    type=click.Choice(["skip", "freeze"]),
    help="Whether others are served past who is next but does not fit [default: skip]",
)
@click.option(
    "--slowdown",
    type=click.FloatRange(0),
    metavar="S",
    help="Under slots, how steeply a host slows down whose tasks want more memory than it has [default: 10]",
)
@click.option(
    "--until",
    "--horizon",
    "horizon_ms",
    type=DURATION,
    help="End each run so long after the first arrival, or after now.",
)
@trace_options
@click.option("--processes", type=click.IntRange(1, 256), help="Runs at a time [default: one for each CPU]")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for report.html, results.json, and a CSV and a plot of each chart.",
)
@json_option
@or_from_cluster
def simulate(*, as_json: bool, out: Path | None, processes: int | None, **given: Any) -> int:
    """Run a workload under policies, on virtual time.

    The policies, placement and books are those of a live master. Prints how policies compare; --out has the whole report.
    With --from-cluster the work and the hosts are those of the live cluster now: what would another policy do, two more
    hosts, or one less?
    Exits with 1 if jobs still waited when a run ended. A job with a task that no host could ever hold is refused, which is
    printed and is no failure.
    """
    from fairlead_cli.errors import expected_errors, told_if_a_process_is_lost, told_if_unwritable
    from fairlead_cli.printing import print_json
    from fairlead_lab.study.document import as_document
    from fairlead_lab.study.run import run_study
    from fairlead_local.end_signals import ended_as_by_ctrl_c

    request = Request(**given)
    with expected_errors():
        study = _study(request)
        if out is not None:
            with told_if_unwritable(out):
                out.mkdir(parents=True, exist_ok=True)
        runs = len(study.policies) * len(study.seeds)
        with ended_as_by_ctrl_c(), told_if_a_process_is_lost(), _progress(runs) as progress:
            outcome = run_study(study, processes=processes or cpu_count() or 1, progress=progress)
        if out is not None:
            _write(out, outcome, request)
    if as_json:
        print_json(as_document(outcome, with_speed=True))
    else:
        _print(outcome, out)
    return 0 if all(run.is_complete for runs in outcome.results.values() for run in runs) else 1


def _study(request: Request) -> "Study":
    """What is to be run; a scenario says whatever the command line does not.

    Raises:
        UsageError: what was said does not go together, or too little was.
        AllocationError, TraceError, WorkloadError: see ``run_study``.
    """
    from fairlead_lab.study.study import SimulationOptions, Study
    from fairlead_lab.workloads import scenario as scenarios
    from fairlead_lab.workloads.nodes import parse_nodes
    from fairlead_master.allocation import placement
    from fairlead_master.allocation.policies import names
    from fairlead_proto.resources import STANDARD_NAMES
    from fairlead_sim.pool.hosts import Slowdown

    if (request.trace is None) == (request.scenario is None):
        raise click.UsageError("expected either --trace FILE or --scenario FILE")
    scenario = None if request.scenario is None else scenarios.load(request.scenario)
    nodes = parse_nodes(request.nodes) if request.nodes is not None else scenario and scenario.nodes
    if not nodes:
        raise click.UsageError("expected --nodes: a file, or words such as 20:cpus=80,mem=505GiB")
    policies = (
        tuple(dict.fromkeys(request.policies)) or (scenario and scenario.policies) or (_DEFAULT_POLICY,)
    )
    for policy in policies:
        names.parse(policy, STANDARD_NAMES)
    if request.placement is not None:
        placement.parse(request.placement)
    return Study(
        source=_trace(request) if scenario is None else _limited(scenario.work, request.jobs_max),
        nodes=tuple(nodes),
        policies=policies,
        seeds=_seeds(request, scenario),
        options=SimulationOptions(
            placement=request.placement or (scenario.placement if scenario else "align"),
            when_head_does_not_fit=request.when_head_does_not_fit
            or (scenario.when_head_does_not_fit if scenario else "skip"),
            memory_slowdown=(
                request.slowdown
                if request.slowdown is not None
                else scenario.slowdown
                if scenario
                else Slowdown().memory
            ),
            level=request.level,
            is_user_per_job=request.per == "job",
            weights=scenario.weights if scenario else {},
            horizon_ms=request.horizon_ms,
        ),
    )


def _trace(request: Request) -> "TraceSource":
    from fairlead_lab.workloads.scenario import TraceSource
    from fairlead_lab.workloads.traces import TraceOptions
    from fairlead_sim.workload import Selection

    assert request.trace is not None, "checked before"
    return TraceSource(
        path=request.trace,
        format=request.trace_format,
        options=TraceOptions(
            user_column=request.user_column,
            default_duration_ms=request.default_duration_ms,
            skip_without_duration=request.skip_without_duration,
        ),
        selection=Selection(jobs_max=request.jobs_max),
    )


def _limited(source: "Source", jobs_max: int | None) -> "Source":
    from fairlead_lab.study.study import FirstJobs

    return source if jobs_max is None else FirstJobs(source, jobs_max)


def _seeds(request: Request, scenario: "Scenario | None") -> tuple[int, ...]:
    if request.seed is None and request.seeds is None and scenario is not None:
        return scenario.seeds
    first = _DEFAULT_SEED if request.seed is None else request.seed
    return tuple(range(first, first + (request.seeds or 1)))


@contextmanager
def _progress(cases: int) -> "Iterator[Progress]":
    """A bar of all tasks of all runs."""
    from fairlead_cli.progress_bar import progress_bar

    done: dict[Case, int] = {}
    with progress_bar("reading the workload") as tell:

        def progress(case: "Case", tasks: int, total: int) -> None:
            done[case] = tasks
            running = f"{case.policy}, seed {case.seed}" if cases > 1 else case.policy
            # Seeds differ in tasks, and those of runs that have not begun are not known: about as many as in this one.
            tell(running, sum(done.values()), total * cases)

        yield progress


def _write(out: Path, outcome: "Outcome", request: Request) -> None:
    from fairlead_cli.errors import told_if_unwritable
    from fairlead_lab.plotting import PlotsUnavailable
    from fairlead_lab.study.report import PageUnavailable, write_report

    # As it was typed, for whoever wants to do it again.
    command = shlex.join(["fairlead", *sys.argv[1:]])
    try:
        with told_if_unwritable(out):
            write_report(out, outcome, title=request.subject, command=command)
    except (PlotsUnavailable, PageUnavailable) as error:
        click.echo(f"fairlead simulate: {error}", err=True)


def _print(outcome: "Outcome", out: Path | None) -> None:
    from fairlead_cli.printing import print_table
    from fairlead_cli.tables import Column
    from fairlead_lab.study.advice import doubts
    from fairlead_lab.study.tables import refusals, size_rows, summary_rows

    policies = outcome.study.policies
    columns = [Column("MEASURE", "measure")]
    columns += [Column(policy, policy, right=True) for policy in policies]
    print_table(summary_rows(outcome), columns)
    if len(policies) > 1:
        print(
            f"\nMean completion by tasks of the job; in brackets as a multiple of that under {policies[0]}:"
        )
        columns[0] = Column("TASKS", "measure", right=True)
        print_table(size_rows(outcome), columns)
    for line in (*refusals(outcome), *doubts(outcome)):
        print(line)
    if out is not None:
        page = out / "report.html"
        print(f"\n{page if page.exists() else out / 'results.json'}")
