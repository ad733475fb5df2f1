"""What is held: every command line whose output must not change unless somebody says so, and the lists of what there is."""

import json
import shlex
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Final

from tests.goldens.running import Case

POOLED: Final = ("example.json", "weighted.json", "zeros.json")
"""Problems of one pool; example.json and machines.json are those of docs/allocate.md."""

QUICK_IDS: Final = ("drf-fig4", "drf-fig6", "bbf-fig2", "bbf-fig12")
"""Experiments of less than half a second."""

ON_TRACES: Final = ("drf-fig13", "drf-fig14", "baa-fig2", "baa-fig3", "baa-fig4", "baa-fig5")
"""Experiments that run on public traces where they are."""

GRID: Final = "--trace traces/metacentrum2013.csv.gz --nodes traces/metacentrum2013_nodes.csv.gz --skip-without-duration"
FACEBOOK: Final = "--trace traces/fb2010.csv.gz --nodes 40:cpus=16,mem=32GiB"
SCENARIO: Final = "--scenario examples/scenarios/two_kinds_of_users.toml --limit 60 --seeds 1"
GROUPS_NEEDING_TRACES: Final = ("reproduce-traces", "simulate-traces")


@cache
def all_cases() -> tuple[Case, ...]:
    """Every case, in the order in which they are kept."""
    return (
        *_helps(),
        *_lists(),
        *_allocations(),
        *_listings(),
        *_what_ifs(),
        *_experiments(),
        *_simulations(),
        *_trace_simulations(),
        *_others(),
    )


def _case(group: str, command: str, *, quick: bool = False, call: Callable[[], object] | None = None) -> Case:
    typed, _, stdin = command.partition(" < ")
    arguments = () if call and not typed.startswith("fairlead ") else tuple(shlex.split(typed)[1:])
    return Case(group=group, command=command, arguments=arguments, stdin=stdin, call=call, is_quick=quick)


def _helps() -> Iterator[Case]:
    """The help of every command, found by walking through them: a new one is a case without a golden."""
    from fairlead_cli.main import fairlead

    for words in _commands(fairlead, ()):
        yield _case("help", shlex.join(["fairlead", *words, "--help"]), quick=True)


def _commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    import click

    yield words
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from _commands(command.get_command(context, name), (*words, name))


def _lists() -> Iterator[Case]:
    for what, names in (
        ("live policies", "fairlead_master.allocation.policies.names.NAMES"),
        ("exact policies", "fairlead_master.solvers.registry.NAMES"),
        ("placements", "fairlead_master.allocation.placement.NAMES"),
        ("formats of traces", "fairlead_lab.workloads.loading.FORMATS"),
        ("properties", "fairlead_lab.properties.definitions.PROPERTIES"),
        ("public names of fairlead_sdk", "fairlead_sdk"),
        ("public names of fairlead_sdk.sync", "fairlead_sdk.sync"),
        ("public names of fairlead_sim.testing", "fairlead_sim.testing"),
    ):
        yield _case("names", what, quick=True, call=_Lister(names))
    for command in ("fairlead reproduce list", "fairlead reproduce list --json", "fairlead --version"):
        yield _case("names", command, quick=True)


class _Lister:
    """Prints names, one a line: of a collection, or of a module's classes and functions."""

    def __init__(self, place: str) -> None:
        self.place = place

    def __call__(self) -> None:
        from importlib import import_module
        from inspect import getmembers

        module, _, last = self.place.rpartition(".")
        if last in {"NAMES", "FORMATS", "PROPERTIES"}:
            for name in getattr(import_module(module), last):
                print(getattr(name, "name", name))
            return
        found = import_module(self.place)
        own = [name for name, value in vars(found).items() if getattr(value, "__module__", "") == self.place]
        for name in sorted(getattr(found, "__all__", [name for name in own if name[0] != "_"])):
            value = getattr(found, name)
            methods = (
                [each for each, _ in getmembers(value) if each[0] != "_"] if isinstance(value, type) else []
            )
            print(f"{name}: {', '.join(methods)}" if methods else name)


def _allocations() -> Iterator[Case]:
    from fairlead_lab.properties.search import one_of_each_kind

    flags = ("", " --discrete")
    policies = (*one_of_each_kind(), "bbf:60,95%", "max-min:mem", "slots:2")
    for file, policy, flag in product((*POOLED, "machines.json"), policies, flags):
        command = f"fairlead allocate {file} --policy {policy}{flag}"
        yield _case("allocate", command, quick=file in {"example.json", "machines.json"})
        if file in {"example.json", "machines.json"}:
            yield _case("allocate-json", f"{command} --json", quick=file == "machines.json")
    for file, flag, form in product(("example.json", "machines.json"), flags, ("", " --json")):
        yield _case(
            "allocate",
            f"fairlead allocate {file} --verify -{flag}{form} < {file[:-5]}.allocation",
            quick=True,
        )
    for ending in ("png", "svg", "pdf"):
        yield _case("allocate-plots", f"fairlead allocate machines.json --plot plot.{ending}")
    yield _case("allocate-plots", "fairlead allocate - --discrete --plot plot.png < example.json", quick=True)


def _listings() -> Iterator[Case]:
    """Listings of a master with canned answers."""
    for verb, form in product(
        (
            "tasks",
            "agents",
            "frameworks",
            "roles",
            "offers",
            "shares",
            "explain t-2",
            "policy get",
            "weight get",
        ),
        ("", " --json"),
    ):
        command = f"fairlead {verb}{form}"
        yield _case("listings", command, call=_WithMaster())


def _what_ifs() -> Iterator[Case]:
    for words in (
        "",
        "--json",
        "--add 1:cpus=2,mem=8GiB --policy pf --policy slots:2",
        "--add 1:cpus=2,mem=8GiB --policy pf --policy slots:2 --json",
        "--horizon 2s",
        "--task-duration 10s --drain agent-1 --add 2:cpus=4,mem=16GiB",
    ):
        yield _case("whatif", f"fairlead simulate --from-cluster {words}".strip(), call=_WithMaster())


class _WithMaster:
    """Runs the command line against a master of canned answers, with work that waits."""

    def __call__(self) -> None:
        import os

        from fairlead_cli.main import run
        from fairlead_proto.v1 import operator_pb2, types_pb2
        from tests.cli.canned_master import GIB, ServedMaster, a_task, an_agent

        core = types_pb2.Resources(cpus_milli=1000, mem_bytes=GIB)
        with ServedMaster() as served:
            os.environ["FAIRLEAD_MASTER"] = served.address
            served.master.agents = [an_agent()]
            served.master.tasks = [
                a_task("t-1", resources=core, started_ms=9_000, finished_ms=0),
                a_task("t-2", resources=core, state="PENDING", agent_id="", started_ms=0),
                a_task("t-3", resources=core, state="FINISHED", started_ms=2_000, finished_ms=6_000),
            ]
            served.master.classes = [
                operator_pb2.ClassInfo(framework_id="fw-1", class_id="c", unit=core, pending=9, offered=1)
            ]
            run()


def _experiments() -> Iterator[Case]:
    from fairlead_lab.papers.catalogue import all_experiments

    for experiment in all_experiments():
        group = "reproduce-traces" if experiment.id in ON_TRACES else "reproduce"
        command = f"fairlead reproduce {experiment.id} --quick --out out"
        yield _case(group, command, quick=experiment.id in QUICK_IDS)
    yield _case(
        "reproduce", "fairlead reproduce drf-fig3 bbf-fig2 --quick --seed 2 --processes 1 --json", quick=True
    )


def _simulations() -> Iterator[Case]:
    """On what a seed makes, and on small samples."""
    from fairlead_master.allocation.policies.names import EXAMPLES

    def a(words: str, *, quick: bool = False) -> Case:
        return _case("simulate", f"fairlead simulate {words}", quick=quick)

    sample = "--trace sample.csv --nodes sample_nodes.csv"
    for policy in EXAMPLES:
        yield a(f"{SCENARIO} --policy {policy}", quick=policy in {"drf", "slots:4"})
    yield a(f"{SCENARIO} --json --policy drf --policy pf --processes 1", quick=True)
    yield a(f"{SCENARIO} --policy drf --policy pf --policy slots:8 --seeds 3 --processes 1 --out out")
    yield a(f"{SCENARIO} --policy drf --policy fifo --seeds 2 --processes 2 --json")
    yield a(f"{SCENARIO} --level cluster --policy drf --policy slots:8 --processes 1 --out out")
    for words in (
        "--per job",
        "--when-head-does-not-fit freeze",
        "--placement pack",
        "--placement spread",
        "--placement least-loaded",
        "--placement random",
        "--placement heartbeat:7",
        "--policy slots:4 --slowdown 0",
        "--until 5m",
        "--seed 9",
    ):
        yield a(f"{SCENARIO} {words} --json")
    yield a(f"{sample} --policy drf --policy slots:4 --processes 1 --out out")
    yield a(f"{sample} --policy drf --level cluster --json")
    for trace, words in (
        ("cluster.swf", "--skip-without-duration"),
        ("events.csv", "--default-duration 10m"),
        ("facebook.tsv", ""),
        ("pods.csv", "--skip-without-duration --user-column qos"),
    ):
        yield a(f"--trace samples/{trace} --nodes 4:cpus=64,mem=256GiB,gpus=8 {words}".strip(), quick=True)


def _trace_simulations() -> Iterator[Case]:
    """On the first jobs of public traces: of the grid's 17,898 the first 1,500, of Facebook's 24,442 the first 100."""

    def a(words: str) -> Case:
        return _case("simulate-traces", f"fairlead simulate {words}")

    yield a(
        f"{GRID} --limit 1500 --policy drf --policy pf --policy slots:4 --policy fifo --processes 1 --out out"
    )
    for policy in ("asset", "max-min", "bbf", "baa", "utilization", "alpha:2"):
        yield a(f"{GRID} --limit 400 --policy {policy} --json")
    yield a(f"{GRID} --limit 300 --policy drf --policy pf --seeds 3 --processes 1 --out out")
    yield a(f"{FACEBOOK} --limit 30 --policy drf --level cluster --json")
    yield a(f"{FACEBOOK} --limit 100 --policy drf --policy slots:8 --per job --processes 1 --out out")
    yield a(f"{FACEBOOK} --limit 60 --policy pf --policy bbf --policy max-min:cpus --processes 1 --json")
    yield a("--trace traces/alibaba_gpu2023.csv.gz --nodes 20:cpus=64,mem=256GiB,gpus=8 --skip-without-duration "
            "--user-column qos --limit 400 --policy drf --policy fifo --processes 1 --json")  # fmt: skip
    yield a(
        "--trace traces/google2019_a.csv.gz --nodes 20:cpus=1,mem=1GiB --default-duration 10m --limit 200 --json"
    )


def _others() -> Iterator[Case]:
    programs = "examples/timesharing/red.txt examples/timesharing/blue.txt examples/timesharing/green.txt"
    for words in (
        "",
        "--json",
        "--policy fifo",
        "--policy bbf:20,90% --seed 3 --runs 4",
        "--quantum 0.05 --until 20",
    ):
        yield _case(
            "timeshare", f"fairlead timeshare {programs} {words}".strip(), quick=words in {"", "--json"}
        )
    yield _case("timeshare", f"fairlead timeshare {programs} --out out")
    for words in (
        "--policy drf --policy asset --trials 20",
        "--policy drf --policy asset --trials 20 --json",
        "--policy drf --policy pf --trials 10 --weighted --capped --seed 7",
        "--policy max-min:cpus --policy slots:4 --trials 10 --positive",
    ):
        yield _case("properties", f"fairlead properties {words}", quick="20" in words)
    yield _case("properties", "fairlead properties --trials 20")
    for form in ("", " --json"):
        yield _case("replay-recording", f"fairlead replay-recording flight.jsonl{form}", quick=True)
    yield _case("replay", "report of a replay in memory", call=_print_replay)


def _print_replay() -> None:
    """What `fairlead replay` prints and writes, of a replay on a cluster in memory."""
    import asyncio

    from rich.console import Console

    from fairlead_lab.metrics.records import write_run
    from fairlead_lab.metrics.report import build_report
    from fairlead_lab.metrics.report_table import print_reports
    from tests.goldens.replaying import a_run

    runs = [asyncio.run(a_run(policy)) for policy in ("drf", "slots:4")]
    for run in runs:
        write_run(Path("out"), run)
    reports = [build_report(run) for run in runs]
    print_reports(Console(width=140), reports)
    (Path("out") / "report.json").write_text(json.dumps([report.as_json() for report in reports], indent=1))
