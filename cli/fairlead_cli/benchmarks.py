"""What `fairlead bench` does: have the simulator package measure, and print."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from fairlead_bench import allocation as allocation_bench
from fairlead_bench import cold_solves, live_policies, live_slots
from fairlead_bench import levels as levels_bench
from fairlead_bench import multipliers as multipliers_bench
from fairlead_bench.children import BenchFailed
from fairlead_bench.cluster import PARTS, ClusterOptions, run_cluster
from fairlead_bench.rows import Header, Row, make_header, print_header, print_table, to_json
from fairlead_cli.errors import Failed, Invalid
from fairlead_lab.workloads.csv_rows import TraceError
from fairlead_master.allocation.policies.names import EXAMPLES
from fairlead_master.solvers.problem import SolverError
from fairlead_sim.workload import WorkloadError


def allocation(*, seed: int, is_quick: bool, as_json: bool) -> None:
    """Measure the allocator by itself and print the figures."""
    header = make_header(seed=seed)
    _print(header, allocation_bench.measure(seed, "quick" if is_quick else "full"), as_json=as_json)


def multipliers(*, seed: int, is_quick: bool, as_json: bool) -> None:
    """Measure what the prices of proportional fairness cost, followed and from nothing, and print the figures."""
    header = make_header(seed=seed)
    scale = "quick" if is_quick else "full"
    rows = [*multipliers_bench.measure(seed, scale), *cold_solves.measure(seed, scale)]
    _print(header, rows, as_json=as_json)


def simulator(*, seed: int, is_quick: bool, as_json: bool, trace: Path | None) -> None:
    """Measure both levels of simulation beside a bare calendar and print the figures.

    Args:
        seed: of the workload.
        is_quick: a smaller one.
        as_json: instead of a table.
        trace: a file to simulate on the fast level as well.

    Raises:
        Invalid: the trace cannot be read.
    """
    header = make_header(seed=seed)
    try:
        rows = levels_bench.measure(seed, "quick" if is_quick else "full", trace)
    except (TraceError, WorkloadError) as error:
        raise Invalid(str(error)) from error
    _print(header, rows, as_json=as_json)


def cluster(
    *, seed: int, is_quick: bool, as_json: bool, parts: Sequence[str] = (), profile: Path | None = None
) -> None:
    """Measure a master under load, tasks as processes, and the footprint, each beside its floor, and print the figures.

    Args:
        seed: for the header; nothing here is random but the machine.
        is_quick: smaller and shorter.
        as_json: instead of a table.
        parts: of ``PARTS``; none are all.
        profile: gets a sampled profile of the master on the control path.

    Raises:
        Failed: a process of the benchmark died, or something took too long.
    """
    header = make_header(seed=seed)
    try:
        rows = run_cluster(ClusterOptions(parts=tuple(parts) or PARTS, is_quick=is_quick, profile=profile))
    except BenchFailed as error:
        raise Failed(str(error)) from error
    _print(header, rows, as_json=as_json)


def policies(names: Sequence[str], *, seconds: float, seed: int, head: str, as_json: bool) -> None:
    """Watch policies on a live cluster and print what each framework held beside what it should.

    Args:
        names: of policies; none are all there are, with an argument that suits the cluster.
        seconds: measured for each policy.
        seed: of the lengths of tasks.
        head: what happens when the first in order does not fit, ``skip`` or ``freeze``.
        as_json: instead of a table.

    Raises:
        Invalid: a policy is not known.
    """
    header = make_header(seed=seed)
    try:
        rows = live_policies.measure(
            names or EXAMPLES, seconds=seconds, seed=seed, head=head, tell=_tell_turn
        )
    except SolverError as error:
        raise Invalid(str(error)) from error
    if as_json:
        print(json.dumps({"header": header.as_dict(), "rows": [asdict(row) for row in rows]}, indent=2))
        return
    print_header(header)
    live_policies.print_rows(rows)


def slots(options: live_slots.SlotsOptions, *, as_json: bool) -> None:
    """Run the DRF paper's comparison with slots on a live cluster and print the jobs done under each policy.

    Raises:
        NoGroups: tasks are to work, and no limits of hosts would hold here.
    """
    header = make_header(seed=options.seeds[0])
    rows = live_slots.measure(options, tell=_tell_turn)
    simulated = live_slots.simulate(options) if options.works else {}
    if as_json:
        beside = [
            {"policy": policy, "job_class": kind, "slowdown": slowdown, "runs": [asdict(run) for run in runs]}
            for (policy, kind, slowdown), runs in simulated.items()
        ]
        found = {"header": header.as_dict(), "rows": [asdict(row) for row in rows], "simulated": beside}
        print(json.dumps(found, indent=2))
        return
    print_header(header)
    live_slots.print_rows(rows, simulated=simulated)


def _tell_turn(policy: str) -> None:
    if sys.stderr.isatty():
        print(f"watching {policy} …", file=sys.stderr)


def _print(header: Header, rows: Sequence[Row], *, as_json: bool) -> None:
    if as_json:
        print(to_json(header, rows))
    else:
        print_table(header, rows)
