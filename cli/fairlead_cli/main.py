"""The `fairlead` command: a table of verbs, each imported only when it is called.

`fairlead --help` and completion of verbs read the table and import neither grpc nor rich, which together cost more
than everything else at start. Completion for the shell is click's own, for bash for example:
`eval "$(_FAIRLEAD_COMPLETE=bash_source fairlead)"` (zsh and fish likewise).
"""

import gc
import os

# Before any import of grpc: what it says on standard error, in a format of its own, every command says in a line.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final, NamedTuple

import click
from click.shell_completion import CompletionItem

from fairlead_cli import errors
from fairlead_cli.addresses import ADDRESS
from fairlead_cli.standard_output import OutputFailed, drop, flush_output, replace_closed, watch_output


class Verb(NamedTuple):
    """Where a command lives and the line that `--help` shows for it."""

    module: str
    attribute: str
    help: str


VERBS: Final[dict[str, Verb]] = {
    "up": Verb("up", "up", "Start a local cluster; Ctrl-C stops it."),
    "run": Verb("run", "run", "Run a command on the cluster."),
    "tasks": Verb("listing", "tasks", "List tasks."),
    "agents": Verb("listing", "agents", "List agents: total, allocated and used."),
    "frameworks": Verb("listing", "frameworks", "List frameworks."),
    "roles": Verb("listing", "roles", "List roles."),
    "offers": Verb("listing", "offers", "List offers that are out."),
    "shares": Verb("listing", "shares", "Show who has what share, and who is next."),
    "logs": Verb("logs", "logs", "Print a task's output."),
    "kill": Verb("kill", "kill", "Kill tasks, or a framework with all its tasks."),
    "explain": Verb("explain", "explain", "Say why a task or framework waits."),
    "policy": Verb("policy", "policy", "Show or change the allocation policy."),
    "weight": Verb("policy", "weight", "Show or change the weights of roles."),
    "health": Verb("health", "health", "Ask whether the master serves."),
    "watch": Verb("watch", "watch", "Print what master and agents send to an MQTT broker."),
    "master": Verb("master", "master", "Run a master."),
    "agent": Verb("agent", "agent", "Run an agent on this host."),
    "demo": Verb("replay", "demo", "Show fair sharing at work on a local cluster."),
    "replay": Verb("replay", "replay", "Run a trace as real tasks."),
    "replay-recording": Verb(
        "recording", "replay_recording", "Give a master's recorded events to a core again."
    ),
    "allocate": Verb("allocate", "allocate", "Say who gets what under a policy, without a cluster."),
    "simulate": Verb("simulate", "simulate", "Run a workload under policies, on virtual time."),
    "reproduce": Verb("reproduce", "reproduce", "Compute the papers' figures and tables again."),
    "timeshare": Verb("timeshare", "timeshare", "Run programs of processes by turns."),
    "properties": Verb("properties", "properties", "Search for cases in which a policy is unfair."),
    "bench": Verb("bench", "bench", "Measure the allocator and the cluster."),
}


class VerbGroup(click.Group):
    """A group that knows its commands from `VERBS` and imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """All verbs, in the order of the table."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import the command of a verb; None if there is none of that name."""
        verb = VERBS.get(cmd_name)
        if verb is None:
            return None
        command = getattr(import_module(f"fairlead_cli.{verb.module}"), verb.attribute)
        assert isinstance(command, click.Command), f"{cmd_name} is no command"
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb of a command line; what is no verb is answered with those that are."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            ctx.fail(f"{args[0]!r} is no command; expected one of {', '.join(VERBS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write the table of verbs, without importing one."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.help) for name, verb in VERBS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Verbs that begin with ``incomplete``, without importing one."""
        found = [
            CompletionItem(name, help=verb.help)
            for name, verb in VERBS.items()
            if name.startswith(incomplete)
        ]
        # Past Group's own method, which would import every command for its help.
        return found + click.Command.shell_complete(self, ctx, incomplete)


@click.group(
    cls=VerbGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    epilog='Completion, for bash: eval "$(_FAIRLEAD_COMPLETE=bash_source fairlead)"; zsh and fish likewise.',
)
@click.version_option(package_name="fairlead", prog_name="fairlead", message="%(prog)s %(version)s")
@click.option(
    "--master",
    type=ADDRESS,
    help="Address of the master; every command that talks to it takes this option as well.",
)
@click.pass_context
def fairlead(ctx: click.Context, master: str | None) -> None:
    """Share real hosts between frameworks, fairly.

    The master's address is --master HOST:PORT, or FAIRLEAD_MASTER, or 127.0.0.1:5050. Listings take --json. Exit
    codes: 0 ok, a task's own code for `run`, 1 something failed, 2 invalid input, 3 master unreachable, 4 refused, 130
    interrupted.
    """
    ctx.obj = master


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; expected errors are one line on stderr.

    When the reader of our output has left (`| head`) the code is 1, without a word.

    Raises:
        SystemExit: with that code, by click, if it is what notices.
    """
    try:
        outcome = fairlead.main(args=arguments, prog_name="fairlead", standalone_mode=False)
        # What is still in the buffer would else fail only once nobody can say so any more.
        flush_output()
    except (click.Abort, KeyboardInterrupt):
        _debug()
        return errors.EXIT_INTERRUPTED
    except click.UsageError as error:
        _debug()
        path, text = error.ctx.command_path if error.ctx else "fairlead", error.format_message()
        # A group without a command is answered with its help, which needs no frame.
        _say(text if text.startswith("Usage:") else f"{path}: {text} (see `{path} --help`)")
        return errors.EXIT_INVALID
    except click.ClickException as error:
        _debug()
        _say(f"fairlead: {error.format_message()}")
        return error.exit_code
    except BrokenPipeError:
        _debug()
        drop(sys.stdout)
        return errors.Failed.exit_code
    except OutputFailed as error:
        _debug()
        drop(sys.stdout)
        _say(f"fairlead: standard output: {error.strerror}")
        return errors.Failed.exit_code
    return outcome if isinstance(outcome, int) else 0


def _say(line: str) -> None:
    """Print a line on stderr; where that cannot be written either, the exit code has to do."""
    from fairlead_cli.tables import printable

    try:
        print(printable(line, keep="\n\t"), file=sys.stderr, flush=True)
    except OSError:
        drop(sys.stderr)


def _debug() -> None:
    """Let the error in flight end the process with its traceback, if FAIRLEAD_DEBUG asks for that."""
    if os.environ.get("FAIRLEAD_DEBUG", "") not in ("", "0"):
        raise  # noqa: PLE0704 - called from except clauses only


def main() -> None:
    """Entry point of the `fairlead` command."""
    replace_closed()
    watch_output()
    code = run()
    # What there is dies with the process. Python would look it all over for garbage first, several times: a quarter of what a short
    # command takes.
    gc.freeze()
    sys.exit(code)


if __name__ == "__main__":
    main()
