"""The demonstration behind ``fairlead demo``: fair sharing on a local cluster of real agents, in about a minute.

Part 1 is the worked example of the paper on dominant resource fairness, live. Part 2 runs a small mixed workload as real
processes under DRF and under slots of two sizes, and compares. Needs no root, no broker, no container; leaves nothing
behind, however it ends.
"""

import asyncio
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from fairlead_lab.demos.paper_example import RESOURCES, Standing, describe, run_example
from fairlead_lab.metrics.report_table import percent, short_table
from fairlead_lab.replay.cluster_watch import ClusterWatch
from fairlead_lab.replay.replay import (
    SLOTS_FOR_LARGEST,
    SLOTS_ON_AVERAGE,
    ReplayOutcome,
    ReplaySettings,
    replay,
)
from fairlead_lab.workloads.sample import NODES, SAMPLE, SAMPLE_NODES, SPEEDUP
from fairlead_local.cluster import LocalCluster

AGENT: Final = "cpus=4,mem=16GiB"
"""A quarter of the sample's nodes, so that its tasks keep their shape and look like those of a laptop."""

RUN_LIMIT_S: Final = 30.0
"""Of each of the three runs, which take ten to fifteen seconds: with it the demonstration ends within two minutes."""

_INTRODUCTION: Final = """\
[bold]Part 1: the example of the paper on dominant resource fairness, live[/bold]
One agent of 9 CPUs and 18 GB. Tasks of framework A need <1 CPU, 4 GB>, those of B <3 CPU, 1 GB>; both have more
than fit. A begins alone; B arrives when A holds all it can. A framework's dominant share is its largest share of
any resource: DRF serves whoever has the smallest, so both should come to rest at 2/3, A with 3 tasks and B with 2."""

_COMPARISON: Final = f"""
[bold]Part 2: one workload under DRF and under slots[/bold]
Four users on {NODES} agents of {AGENT}, real processes: ana's tasks want CPU, ben's memory, cleo's are small, dan's
large. Slot scheduling divides an agent into K equal slots and gives every task one, whatever it needs. Slots that
hold the largest task waste what a small one leaves; slots for the average promise large ones what is not there."""

_MODELLED: Final = """
Modelled: each task sleeps for its run time. Amounts are declared and not used, so what slots promise twice hurts
nobody here; real work would be slowed down or killed. Real: offers, launches, processes, statuses, times."""

_SCENARIO: Final = "examples/scenarios/two_kinds_of_users.toml"

_LOOK_NEXT: Final = (
    ("up", "a cluster to play with; it says what to try"),
    ("run --cpus 1 --mem 64MiB -n 20 -- sleep 5", "tasks from the shell; the verb shares says who has what"),
    (f"simulate --scenario {_SCENARIO}", "which policy? four of them on an hour's work, on virtual time"),
    ("replay --trace FILE --compare drf --compare slots:average", "your own trace, compared as here"),
)
"""Words for the command, and what they give."""


def run_demo(console: Console | None = None) -> int:
    """Play both parts; gives the exit code: 0, or 1 if something did not come out as it must (the text says what).

    Raises:
        FairleadError: the cluster failed.
    """
    return asyncio.run(demo(console or Console()))


async def demo(console: Console) -> int:
    """Play both parts on this console; see ``run_demo``."""
    console.print(_INTRODUCTION, highlight=False, soft_wrap=True)
    if not await play_example(console):
        return 1
    console.print(_COMPARISON, highlight=False, soft_wrap=True)
    outcome = await replay(comparison(), console)
    print_comparison(console, outcome)
    return 0 if outcome.is_whole else 1


def comparison() -> ReplaySettings:
    """The replay of part 2."""
    return ReplaySettings(
        trace=SAMPLE,
        nodes=SAMPLE_NODES,
        speedup=SPEEDUP,
        agents=NODES,
        resources=AGENT,
        policies=("drf", SLOTS_FOR_LARGEST, SLOTS_ON_AVERAGE),
        limit_s=RUN_LIMIT_S,
    )


async def play_example(console: Console) -> bool:
    """Part 1 on a cluster of its own; gives whether it came to rest where the paper says."""
    local = LocalCluster(agents=1, resources=RESOURCES, policy="drf")
    async with local as cluster, ClusterWatch(cluster.address) as watch:
        with shown_standing(console) as show:
            standing = await run_example(cluster.address, watch, show)
    if standing is None:
        console.print(
            "The cluster did not come to rest at 3 tasks of A and 2 of B with dominant shares of 2/3: the last line above "
            "is what it did instead. Part 2 is left out.",
            style="red",
        )
        return False
    console.print(
        f"At rest after {standing.at_s:.1f} s: A holds 12 of 18 GB, B 6 of 9 CPUs, both dominant shares are 2/3.",
        highlight=False,
        soft_wrap=True,
    )
    return True


@contextmanager
def shown_standing(console: Console) -> Iterator[Callable[[Standing], None]]:
    """A function that shows the shares: a table that moves on a terminal, a line for each change elsewhere."""
    if console.is_terminal:
        with Live(console=console, refresh_per_second=10) as live:
            yield lambda standing: live.update(standing_table(standing))
        return
    last: list[tuple[str, ...]] = []

    def show_line(standing: Standing) -> None:
        nonlocal last
        now: list[tuple[str, ...]] = list(describe(standing))
        if now != last:
            last = now
            parts = (
                f"{name}: {tasks} task{'s' * (tasks != '1')}, share {share}"
                for name, tasks, _, _, share in now
            )
            console.print(f"{standing.at_s:5.1f} s  {'   '.join(parts)}", highlight=False, soft_wrap=True)

    yield show_line


def standing_table(standing: Standing) -> Group:
    """The two frameworks with what they hold and a bar for the dominant share."""
    table = Table()
    for name in ("framework", "tasks", "CPUs", "memory", "dominant share", ""):
        table.add_column(name, justify="left" if name in {"framework", ""} else "right")
    for name, line in zip(("a", "b"), describe(standing), strict=True):
        role = standing.roles.get(name)
        share = role.dominant_share if role is not None else 0.0
        table.add_row(*line, ProgressBar(total=1.0, completed=share, width=30))
    return Group(table, f"{standing.at_s:.1f} s")


def print_comparison(console: Console, outcome: ReplayOutcome) -> None:
    """The table of part 2, what it shows, what is modelled, and where to look next."""
    console.print(short_table(outcome.results))
    drf, large, average = outcome.results
    held, held_by_slots = percent(drf.resources["cpus"].held), percent(large.resources["cpus"].held)
    console.print(
        f"{large.policy}: a slot holds the largest task, so tasks held {held_by_slots} of the CPUs; {held} under drf.\n"
        f"{average.policy}: a slot is the average task, so tasks spent {percent(average.crowded_fraction)} of their "
        "time on agents that had promised more than they have; under drf none ever does.",
        highlight=False,
        soft_wrap=True,
    )
    console.print(_MODELLED, highlight=False, soft_wrap=True)
    console.print(look_next(), highlight=False, soft_wrap=True)


def look_next() -> str:
    """Commands to go on with, as they can be typed where we were started."""
    lines = [(f"{_command()} {words}", gives) for words, gives in _LOOK_NEXT]
    lines.append(("docs/results/replay-metacentrum.md", "a real trace of a grid's users, replayed"))
    width = max(len(typed) for typed, _ in lines)
    return "\nWhere to look next:\n" + "\n".join(f"  {typed:{width}}  {gives}" for typed, gives in lines)


def _command() -> str:
    """What the shell here calls the command: its name, or where it is, beside the Python that runs us, if not on the path."""
    beside = Path(sys.executable).with_name("fairlead")
    if shutil.which("fairlead") or not beside.exists():
        return "fairlead"
    return str(beside.relative_to(Path.cwd()) if beside.is_relative_to(Path.cwd()) else beside)
