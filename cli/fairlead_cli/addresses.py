"""Where the master is: the type of an address, and the options that nearly every command takes.

`fairlead --help` imports this file, so it imports nothing of the roles.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

DEFAULT_PORT: Final = 5050
DEFAULT_MASTER: Final = f"127.0.0.1:{DEFAULT_PORT}"


class Text(click.ParamType):  # type: ignore[type-arg]  # generic in newer click only
    """A text option that a function turns into a value; ValueError says what is wrong with it."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read a text; what is no text is a default and has been read before."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except ValueError as error:
            # Click names the option before it.
            self.fail(str(error).removeprefix(f"{param.name}: " if param else ""), param, ctx)


def parse_address(text: str) -> str:
    """``HOST:PORT`` unchanged, an IPv6 host in brackets.

    Raises:
        ValueError: no host, or no port within 1 and 65535 (0 lets the system choose, where that makes sense).
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535 or (":" in host and host[0] != "["):
        raise ValueError(f"expected HOST:PORT such as {DEFAULT_MASTER}, got {text!r}")
    return text


ADDRESS: Final = Text("host:port", parse_address)

Command = TypeVar("Command", bound=Callable[..., Any])


def _inherit_master(ctx: click.Context, _param: click.Parameter, value: str | None) -> str:
    """The command's own --master wins over the group's, that over FAIRLEAD_MASTER, that over the default."""
    own = ctx.get_parameter_source("master") is click.core.ParameterSource.COMMANDLINE
    root = ctx.find_root().params.get("master")
    return (value if own else None) or root or value or DEFAULT_MASTER


def master_option(command: Command) -> Command:
    """Add --master to a command, as the argument ``master``: an address, never None."""
    return click.option(
        "--master",
        type=ADDRESS,
        envvar="FAIRLEAD_MASTER",
        callback=_inherit_master,
        help=f"Address of the master [default: FAIRLEAD_MASTER or {DEFAULT_MASTER}]",
    )(command)


def json_option(command: Command) -> Command:
    """Add --json to a command, as the argument ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")(command)
