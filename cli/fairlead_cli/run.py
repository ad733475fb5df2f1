"""`fairlead run`: one command as one task or many, attached to this shell or on its own."""

import sys
from collections.abc import Sequence
from typing import Any

import click

from fairlead_cli.addresses import json_option, master_option
from fairlead_cli.errors import Invalid
from fairlead_cli.parameters import ARRAY, DURATION, PAIR, ROLE, TASK_DISK, TASK_MEM, WEIGHT
from fairlead_proto.tasks import TASK_MEM_DEFAULT


@click.command(context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False})
@click.argument("command", metavar="[--] CMD...", nargs=-1, required=True)
@click.option("--cpus", default="1", show_default=True, help="Cores of one task, such as 0.5.")
@click.option(
    "--mem",
    type=TASK_MEM,
    default=TASK_MEM_DEFAULT,
    show_default=True,
    help="Memory of one task; more than that ends it. 0 is no limit, and is counted as nothing.",
)
@click.option("--gpus", default="0", help="GPUs of one task.")
@click.option(
    "--disk",
    type=TASK_DISK,
    default="0",
    help="Sandbox space of one task, such as 1GiB; counts for fairness and placement, and is not enforced.",
)
@click.option("--name", default="", help="For listings [default: the program's name]")
@click.option(
    "--role", type=ROLE, default="", help="Account its share is counted on, such as eng/ml [default: default]"
)
@click.option("--weight", type=WEIGHT, help="Of the role, if it has none yet.")
@click.option(
    "-n",
    "count",
    type=click.IntRange(1, 100_000),
    default=1,
    help="How many tasks of it to run, with indices from 1.",
)
@click.option(
    "--array",
    type=ARRAY,
    metavar="INDICES",
    help="A task for each index: 7, 0-99, 0-99:2, 1,3,7-9; 0-99%20 runs at most 20 at once.",
)
@click.option(
    "--each",
    metavar="FILE|-",
    help="A task for each line of a file or of standard input, with {} in CMD replaced by the line and {#} by its index from "
    "0; without them the line is put behind CMD. Lines end with LF or CRLF; empty ones are left out.",
)
@click.option("--at-once", type=click.IntRange(1), help="Launch at most so many tasks at a time.")
@click.option(
    "--env", "env", type=PAIR, multiple=True, metavar="K=V", help="Environment variable; repeatable."
)
@click.option(
    "--workdir",
    default="",
    metavar="DIR",
    help="Where a task starts: an absolute path on its agent's host [default: its sandbox, an empty directory]",
)
@click.option(
    "--no-files",
    is_flag=True,
    help="Make no sandbox and keep no output: starts faster, in / or --workdir, and what tasks print goes nowhere.",
)
@click.option(
    "--output",
    default="",
    metavar="DIR",
    help="Write what tasks print to DIR/NAME.stdout and .stderr instead of the terminal, or DIR/NAME-INDEX.stdout where there are "
    "indices; DIR is made if it is not there, a file is made when there is something to write, and one that exists is never "
    "changed: the run is refused.",
)
@click.option(
    "--constraint",
    "constraints",
    multiple=True,
    metavar="EXPR",
    help="On the agent's attributes: rack=a|b, rack!=a, rack~a.*, ssd, !ssd; all must hold; repeatable.",
)
@click.option(
    "--grace", metavar="DURATION", help="From SIGTERM to SIGKILL when a task is killed [default: 5s]"
)
@click.option("--max-runtime", metavar="DURATION", help="End a task that runs longer, such as 5m.")
@click.option(
    "--retries",
    type=click.IntRange(0, 100),
    default=0,
    show_default=True,
    help="How often a task that fails is run again; one that is lost with its host is in any case.",
)
@click.option(
    "--wait",
    "wait_ms",
    type=DURATION,
    default="3s",
    show_default=True,
    metavar="DURATION",
    help="How long to try to reach a master that does not answer at the start, as while it restarts.",
)
@click.option(
    "--reconnect-timeout",
    "reconnect_timeout_ms",
    type=DURATION,
    default=None,
    metavar="DURATION",
    help="How long to try to reach a master that went away later [default: 30s, with --detach 1h]",
)
@click.option(
    "--detach",
    is_flag=True,
    help="Print the framework's id and leave; a process in the background of this host goes on.",
)
@click.option("-q", "--quiet", "is_quiet", is_flag=True, help="Show output only, no state.")
@master_option
@json_option
def run(
    *,
    as_json: bool,
    is_quiet: bool,
    detach: bool,
    env: Sequence[tuple[str, str]],
    each: str | None,
    **given: Any,
) -> int:
    """Run a command on the cluster.

    No shell is involved: for one, run sh -c '...'. Standard input is not passed on: a task reads end of file. Attached,
    output appears as it is written, and Ctrl-C kills the tasks. With --json stdout has the tasks at the end, stderr their
    output.

    The exit code is the task's own: 127 if its command was not found, 126 if it cannot be executed, 128+N if signal N ended
    it. Of several tasks it is 0 if all finished and 1 otherwise. It is 1 as well if a task was lost or never started, 2 for words
    that cannot be used, 3 for a master away for longer than --wait or, later, --reconnect-timeout, 4 for a demand that no
    agent can ever meet and 130 after Ctrl-C.

    Tasks of -n, --array and --each find their index in FAIRLEAD_TASK_INDEX and their number in FAIRLEAD_TASK_COUNT, and have ids
    FRAMEWORK:INDEX.

    With --detach a process in the background goes on; if it ends, so do its tasks when the master has missed it for an hour.
    """
    from fairlead_cli.array_options import read_each
    from fairlead_cli.printing import print_json
    from fairlead_cli.run_request import RunRequest, with_place

    lines = None if each is None else read_each(each, with_place(given["command"]))
    request = RunRequest(env=dict(env), each=lines, **given)
    if request.each is not None and not request.each:
        print(f"fairlead: --each {each}: there is no line, so there is nothing to run", file=sys.stderr)
        if as_json:
            print_json([])
        return 0
    if detach:
        if request.output:
            raise Invalid(
                "--output: expected an attached run, got --detach; `fairlead logs` reads what a detached one prints"
            )
        from fairlead_cli.detached_run import run_detached

        return run_detached(request, is_json=as_json)
    from fairlead_cli.attached_run import run_attached

    return run_attached(request, is_json=as_json, is_quiet=is_quiet)
