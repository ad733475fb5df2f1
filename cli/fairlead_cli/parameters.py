"""Types of option values: durations, amounts, weights, pairs.

Values are checked here, before any network: a wrong one is refused with what was expected and what came.
What a task needs is checked by
the SDK, which knows the forms of constraints as well.
"""

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from fairlead_cli.addresses import Text
from fairlead_cli.array_options import check_array
from fairlead_proto.fields import InvalidFieldError, read_role
from fairlead_proto.limits import DURATION_MS_MAX, WEIGHT_MAX, WEIGHT_MIN
from fairlead_proto.resources import ResourceError, parse_bytes, parse_milli

Command = TypeVar("Command", bound=Callable[..., Any])

_DURATION_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+")
_DURATION_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


def parse_duration(text: str) -> int:
    """Milliseconds in ``500ms``, ``10s``, ``1h30m`` or ``0``.

    Raises:
        ValueError: not of that form, or above a year.
    """
    if text == "0":
        return 0
    if _DURATION.fullmatch(text) is None:
        raise ValueError(f"expected a duration such as 500ms, 10s, 5m or 1h, got {text!r}")
    duration_ms = round(
        sum(float(amount) * _DURATION_UNITS_MS[unit] for amount, unit in _DURATION_PART.findall(text))
    )
    if duration_ms > DURATION_MS_MAX:
        raise ValueError(f"expected at most 366d, got {text!r}")
    return duration_ms


def parse_pair(text: str) -> tuple[str, str]:
    """Name and value of ``NAME=VALUE``; the value may be empty.

    Raises:
        ValueError: no ``=``, or nothing before it.
    """
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"expected NAME=VALUE, got {text!r}")
    return name, value


def parse_weight(text: str) -> float:
    """A finite weight within the limits.

    Raises:
        ValueError: not a number, or out of range.
    """
    expected = f"expected a number from {WEIGHT_MIN:g} to {WEIGHT_MAX:g}, got {text!r}"
    try:
        weight = float(text)
    except ValueError:
        raise ValueError(expected) from None
    if not WEIGHT_MIN <= weight <= WEIGHT_MAX:
        raise ValueError(expected)
    return weight


def parse_task_bytes(name: str) -> Callable[[str], str]:
    """A check of one amount of bytes of a task, which it gives unchanged.

    Elsewhere a bare number is bytes. Here a person types it, who with ``512`` means MiB.

    Raises:
        ValueError: by the check: not of that form, or a bare number of bytes below 1 MiB that is not 0.
    """

    def check(text: str) -> str:
        amount = parse_bytes(name, text)
        if 0 < amount < 2**20 and not text.strip()[-1].isalpha():
            raise ValueError(
                f"{name}: expected bytes such as 512MiB, got {text!r}: that is {amount} bytes; "
                f"write {text.strip()}MiB or {text.strip()}B"
            )
        return text

    return check


def _parse_resource_weight(text: str) -> tuple[str, float]:
    name, weight = parse_pair(text)
    return name, parse_weight(weight)


def _parse_resources(text: str) -> str:
    """Check the form only: which names exist, the master and the agent know. Returns the text unchanged."""
    amounts: list[int] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, amount = part.partition("=")
        if not equals or not name:
            raise ResourceError(f"expected name=amount such as cpus=4,mem=8GiB, got {part!r}")
        amounts.append(parse_bytes(name, amount) if name in ("mem", "disk") else parse_milli(name, amount))
    if amounts and not any(amounts):
        raise ResourceError(f"expected an amount above zero, got {text!r}")
    return text


def _parse_role(text: str) -> str:
    try:
        return read_role("role", text) if text else ""
    except InvalidFieldError as error:
        raise ValueError(str(error).removeprefix("role: ")) from None


ARRAY: Final = Text("indices", check_array)
ROLE: Final = Text("role", _parse_role)
DURATION: Final = Text("duration", parse_duration)
RESOURCES: Final = Text("resources", _parse_resources)
TASK_MEM: Final = Text("amount", parse_task_bytes("mem"))
TASK_DISK: Final = Text("amount", parse_task_bytes("disk"))
PAIR: Final = Text("name=value", parse_pair)
WEIGHT: Final = Text("weight", parse_weight)
DEMAND: Final = click.Choice(["declared", "measured"])
DEMAND_HELP: Final = "What policies count: what tasks declare, or what such tasks were measured to use. Placement goes by what they declare."
PLACEMENT_HELP: Final = (
    "Which agent gets a task: align, pack, spread, least-loaded, random or random:SEED, heartbeat or heartbeat:SEED; "
    "under slots:K align is random."
)
LOG_LEVEL: Final = click.Choice(["debug", "info", "warning", "error"])
RESOURCE_WEIGHT: Final = Text("resource=weight", _parse_resource_weight)


def child_option(command: Command) -> Command:
    """Let a command be told, by whoever starts it as a process of a local cluster, to end with its parent."""

    def watch(_ctx: click.Context, _param: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's signature
        if value:
            from fairlead_local.parent_watch import stop_with_parent

            stop_with_parent()

    return click.option("--stop-with-parent", is_flag=True, hidden=True, expose_value=False, callback=watch)(
        command
    )


def trace_options(command: Command) -> Command:
    """Add what says how the rows of a trace are read: ``user_column``, ``default_duration_ms``, ``skip_without_duration``."""
    for option in (
        click.option(
            "--skip-without-duration",
            is_flag=True,
            help="Leave out rows without a run time [default: they are an error]",
        ),
        click.option(
            "--default-duration", "default_duration_ms", type=DURATION, help="For rows without a run time."
        ),
        click.option(
            "--user-column",
            default="user_id",
            show_default=True,
            help="Column of the trace that names the owner.",
        ),
    ):
        command = option(command)
    return command
