"""The listings: tasks, agents, frameworks, roles, offers, shares."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from fairlead_cli.addresses import json_option, master_option
from fairlead_proto.task_state import TaskState

Command = TypeVar("Command", bound=Callable[..., Any])

_STATES = click.Choice(["PENDING", *(state.value for state in TaskState)], case_sensitive=False)


def _listing_options(command: Command) -> Command:
    watch = click.option("--watch", "is_watched", is_flag=True, help="Show it again after every change.")
    return master_option(json_option(watch(command)))


@click.command()
@click.option("--state", "states", type=_STATES, multiple=True, help="Only tasks in this state; repeatable.")
@click.option("--framework", "framework_id", default="", help="Only tasks of the framework with this id.")
@_listing_options
def tasks(master: str, *, as_json: bool, is_watched: bool, states: Sequence[str], framework_id: str) -> None:
    """List tasks.

    Of the tasks that wait, frameworks name the first few of each kind; a line on stderr says how many more there are.
    """
    from fairlead_cli import pages, showing

    wanted = [state.upper() for state in states]
    listing = pages.tasks(states=wanted, framework_id=framework_id)
    if as_json or is_watched or (wanted and "PENDING" not in wanted):
        showing.show(master, listing, as_json=as_json, is_watched=is_watched)
    else:
        showing.show_tasks(master, listing, framework_id)


def _listing(name: str, help: str) -> click.Command:
    """The command of a listing without options of its own, which ``pages`` has under the same name in capitals."""

    @click.command(name, help=help)
    @_listing_options
    def show(master: str, *, as_json: bool, is_watched: bool) -> None:
        from fairlead_cli import pages, showing

        showing.show(master, getattr(pages, name.upper()), as_json=as_json, is_watched=is_watched)

    return show


agents = _listing(
    "agents",
    "List agents: total, allocated and used.\n\n"
    "Allocated is what is offered or held by tasks; used is what was measured on the host.",
)
frameworks = _listing("frameworks", "List frameworks.")
roles = _listing("roles", "List roles.")
offers = _listing("offers", "List offers that are out.")


@click.command()
@click.option("--log", "is_log", is_flag=True, help="Show the last decisions instead, newest first.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="Of --log.")
@_listing_options
def shares(master: str, *, as_json: bool, is_watched: bool, is_log: bool, limit: int) -> None:
    """Show who has what share, and who is next.

    The dominant share is the largest share of any resource a role holds; the mark in the bar is its fair share,
    which goes by weight among the roles that hold or want something. NEXT counts in the order the policy serves.
    A role includes those below it, such as eng/ml below eng; what it is due is part of what the role above is due.
    """
    from fairlead_cli import pages, showing

    if not is_log:
        showing.show(master, pages.SHARES, as_json=as_json, is_watched=is_watched)
        return
    if is_watched:
        raise click.UsageError("--log and --watch do not go together")
    showing.show_log(master, limit, as_json=as_json)
