"""Tables for people: drawn on a terminal, plain aligned columns elsewhere. Ids are never cut.

Each listing names its columns here; a column turns a row of `rows` into a cell.
"""

import re
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from fairlead_cli.rows import Row
from fairlead_proto.resources import format_milli

BAR_WIDTH: Final = 24

REMARK_LENGTH_MAX: Final = 40
"""Of a message in a listing: enough to recognise it; `--json` has all of it."""

_GAP: Final = 2
"""Blanks between columns of a drawn table, at most."""

_STATE_STYLES: Final = {
    "RUNNING": "green", "ACTIVE": "green", "CONNECTED": "green",
    "FINISHED": "dim", "COMPLETED": "dim",
    "PENDING": "yellow", "STAGING": "yellow", "STARTING": "yellow", "KILLING": "yellow", "RECOVERING": "yellow",
    "DISCONNECTED": "yellow", "OVERCOMMITTED": "yellow", "KILLED": "magenta",
    "FAILED": "red", "ERROR": "red", "LOST": "red", "DROPPED": "red", "UNREACHABLE": "red", "GONE": "red",
}  # fmt: skip


class Column(NamedTuple):
    """One column: its title and what it shows of a row."""

    title: str
    cell: str | Callable[[Row], Any]
    """A key of the row, or what makes something of it."""
    right: bool = False
    is_shown: Callable[[Sequence[Row]], bool] = lambda _rows: True
    terminal_only: bool = False


def approximate_bytes(amount: float) -> str:
    """Bytes for people, to one decimal: ``1.5GiB``."""
    for suffix, size in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if amount >= size:
            return f"{amount / size:.1f}".removesuffix(".0") + suffix
    return f"{amount:g}B" if amount else "0"


def cores(amount: float) -> str:
    """Cores or devices without needless zeros: ``1.5``."""
    return format_milli(round(amount * 1000))


def span(duration_ms: float) -> str:
    """A duration for people: ``12.3s``, ``4m05s``, ``2h03m``, ``3d04h``."""
    if duration_ms < 60_000:
        return f"{max(0.0, duration_ms / 1000):.1f}s"
    minutes, seconds = divmod(int(duration_ms // 1000), 60)
    if minutes < 60:
        return f"{minutes}m{seconds:02d}s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}h{minutes:02d}m"
    days, hours = divmod(hours, 24)
    return f"{days}d{hours:02d}h"


def share_bar(share: float, fair_share: float, width: int = BAR_WIDTH) -> str:
    """A bar of a share in [0, 1] with a mark where the fair share is."""
    filled = round(min(max(share, 0.0), 1.0) * width)
    cells = ["█"] * filled + ["·"] * (width - filled)
    if fair_share > 0:
        cells[min(width - 1, round(min(fair_share, 1.0) * width))] = "┃"
    return "".join(cells)


def _three(name: str, show: Callable[[float], str]) -> Callable[[Row], str]:
    return lambda row: "/".join(show(row[kind].get(name, 0)) for kind in ("total", "allocated", "used"))


def _any_gpus(rows: Sequence[Row]) -> bool:
    return any(row.get("gpus") or row.get("total", {}).get("gpus") for row in rows)


def _any_estimated(rows: Sequence[Row]) -> bool:
    """Whether the policy counts something else than what is held."""
    return any(row["counted"] != row["allocated"] for row in rows)


def _any_measured(rows: Sequence[Row]) -> bool:
    return any(row["used"] is not None for row in rows)


def _run_time(row: Row) -> str | None:
    if row["started_ms"] is None:
        return None
    return span((row["finished_ms"] or time.time() * 1000) - row["started_ms"])


def _ending(row: Row) -> str | None:
    if row["signal"] is not None:
        return f"signal {row['signal']}"
    return None if row["exit_code"] is None else str(row["exit_code"])


def _reason(row: Row) -> str | None:
    """Why it ended as it did; without a reason the beginning of what the agent remarked."""
    if row["reason"] not in ("", "NONE"):
        return str(row["reason"])
    message = " ".join(row["message"].split())
    return message if len(message) <= REMARK_LENGTH_MAX else message[: REMARK_LENGTH_MAX - 1] + "…"


def _share(name: str) -> Callable[[Row], str | None]:
    return lambda row: None if row[name] is None else f"{row[name]:.4f}"


def _in_tree(row: Row) -> str:
    """The whole name, so that it can be copied, further in the deeper it stands."""
    role: str = row["role"]
    return "  " * role.count("/") + role


def _pairs(pairs: dict[str, Any]) -> str:
    return ",".join(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in pairs.items())  # fmt: skip


def _if_told(shown: Callable[[float], str], amount: float | None) -> str | None:
    return None if amount is None else shown(amount)


def _held(amounts: dict[str, float]) -> str:
    shown = (
        f"{name}={approximate_bytes(amount) if name in ('mem', 'disk') else cores(amount)}"
        for name, amount in amounts.items()
        if amount
    )
    return ",".join(shown)


TASKS: Final = (
    Column("ID", "id"),
    Column("NAME", "name", is_shown=lambda rows: any(r["name"] != r["id"] for r in rows)),
    Column("FRAMEWORK", lambda row: row["framework"] or row["framework_id"]),
    Column("STATE", "state"),
    Column("AGENT", "agent_id"),
    Column("CPUS", lambda row: _if_told(cores, row["cpus"]), right=True),
    Column("MEM", lambda row: _if_told(approximate_bytes, row["mem_bytes"]), right=True),
    Column("GPUS", lambda row: _if_told(cores, row["gpus"]), right=True, is_shown=_any_gpus),
    Column("TIME", _run_time, right=True),
    Column("EXIT", _ending, right=True),
    Column("REASON", _reason),
)
AGENTS: Final = (
    Column("ID", "id"),
    Column("HOSTNAME", "hostname"),
    Column("STATE", "state"),
    Column("CPUS TOTAL/ALLOCATED/USED", _three("cpus", cores), right=True),
    Column("MEM TOTAL/ALLOCATED/USED", _three("mem", approximate_bytes), right=True),
    Column("GPUS TOTAL/ALLOCATED/USED", _three("gpus", cores), right=True, is_shown=_any_gpus),
    Column("TASKS", "tasks", right=True),
    Column("ISOLATION", "isolation"),
    Column("ATTRIBUTES", lambda row: _pairs(row["attributes"])),
)
FRAMEWORKS: Final = (
    Column("ID", "id"),
    Column("NAME", "name"),
    Column("ROLE", "role"),
    Column("STATE", "state"),
    Column("PENDING", "pending", right=True),
    Column("RUNNING", "running", right=True),
    Column("FINISHED", "finished", right=True),
    Column(
        "OFFERS SENT/ACCEPTED/DECLINED/EXPIRED",
        lambda row: "/".join(
            str(row[f"offers_{what}"]) for what in ("sent", "accepted", "declined", "expired")
        ),
        right=True,
    ),
)
ROLES: Final = (
    Column("ROLE", _in_tree),
    Column("WEIGHT", lambda row: f"{row['weight']:g}", right=True),
    Column("RESOURCE WEIGHTS", lambda row: _pairs(row["resource_weights"])),
    Column("FRAMEWORKS", "frameworks", right=True),
    Column("PENDING", "pending", right=True),
    Column("RUNNING", "running", right=True),
    Column("ALLOCATED", lambda row: _held(row["allocated"])),
)
SHARES: Final = (
    Column("ROLE", _in_tree),
    Column("WEIGHT", lambda row: f"{row['weight']:g}", right=True),
    Column("DOMINANT SHARE", _share("dominant_share"), right=True),
    Column("", lambda row: share_bar(row["dominant_share"] or 0, row["fair_share"] or 0), terminal_only=True),
    Column("RESOURCE", "dominant_resource"),
    Column("FAIR SHARE", _share("fair_share"), right=True),
    Column("KEY", _share("key"), right=True),
    Column("PENDING", "pending", right=True),
    Column("RUNNING", "running", right=True),
    Column("NEXT", "rank", right=True),
    Column("HELD", lambda row: _held(row["allocated"]), is_shown=_any_measured),
    Column("COUNTED", lambda row: _held(row["counted"]), is_shown=_any_estimated),
    Column("USED", lambda row: _held(row["used"] or {}), is_shown=_any_measured),
)
WEIGHTS: Final = (
    Column("ROLE", _in_tree),
    Column("WEIGHT", lambda row: f"{row['weight']:g}", right=True),
    Column("OF RESOURCES", lambda row: _pairs(row["resource_weights"])),
    Column("FRAMEWORKS", "frameworks", right=True),
)
OFFERS: Final = (
    Column("ID", "id"),
    Column("FRAMEWORK", lambda row: row["framework"] or row["framework_id"]),
    Column("AGENT", "agent_id"),
    Column("CLASS", "class_id"),
    Column("UNITS", "units", right=True),
    Column("RESOURCES", lambda row: _held(row["resources"])),
    Column("EXPIRES IN", lambda row: span(row["expires_in_ms"]), right=True),
)
DECISIONS: Final = (
    Column("NUMBER", "number", right=True),
    Column("ROLE", "role"),
    Column("FRAMEWORK", "framework_id"),
    Column("CLASS", "class_id"),
    Column("AGENT", "agent_id"),
    Column("UNITS", "units", right=True),
    Column("KEY BEFORE", _share("key_before"), right=True),
    Column("KEY AFTER", _share("key_after"), right=True),
    Column("POLICY", "policy"),
)


def market_line(rows: Sequence[Row]) -> str:
    """What the whole of each resource costs, or which are bottlenecks, under a policy that knows; else empty."""
    if not rows:
        return ""
    prices, bottlenecks = rows[0]["prices"], rows[0]["bottlenecks"]
    if bottlenecks is not None:
        return f"bottlenecks: {', '.join(bottlenecks) or 'none'}"
    if prices is None:
        return ""
    costs = ", ".join(f"{name} {price:.3g}" for name, price in prices.items())
    return (
        f"price of all there is: {costs} (supply and demand differ by {rows[0]['price_error']:.1g} at most)"
    )


def plain_table(rows: Sequence[Row], columns: Sequence[Column], footer: str = "") -> str:
    """Text in aligned columns, two blanks apart; an absent value is ``-``, and nothing is ever cut."""
    shown = [column for column in columns if column.is_shown(rows) and not column.terminal_only]
    lines = [[column.title for column in shown], *([_text(column, row) for column in shown] for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(shown))]
    printed = [
        "  ".join(
            text.rjust(width) if column.right else text.ljust(width)
            for text, width, column in zip(line, widths, shown, strict=True)
        ).rstrip()
        for line in lines
    ]
    return "\n".join([*printed, footer] if footer else printed)


def drawn_table(rows: Sequence[Row], columns: Sequence[Column], *, width: int, footer: str = "") -> Any:
    """A rich table; where ``width`` is too little titles fold between their words, then cells, and nothing is cut."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.caption, table.caption_justify = footer or None, "left"
    shown = [column for column in columns if column.is_shown(rows)]
    cells = [[_text(column, row) for column in shown] for row in rows]
    widths = [max((len(line[index]) for line in cells), default=0) for index in range(len(shown))]
    natural = sum(max(len(column.title), cell) + _GAP for column, cell in zip(shown, widths, strict=True))
    for column, cell in zip(shown, widths, strict=True):
        title = column.title if natural <= width else folded_title(column.title, cell)
        table.add_column(title, justify="right" if column.right else "left", overflow="fold", no_wrap=False)
    for row, line in zip(rows, cells, strict=True):
        table.add_row(*map(escape, line), style=_STATE_STYLES.get(row.get("state", "")))
    return table


def folded_title(title: str, width: int) -> str:
    """A title in lines that break at a blank or after a ``/`` only, within ``width`` if its words are."""
    lines: list[str] = []
    for word in re.findall(r"[^ /]+/?|/", title):
        glue = "" if lines and lines[-1].endswith("/") else " "
        if lines and len(lines[-1] + glue + word) <= width:
            lines[-1] += glue + word
        else:
            lines.append(word)
    return "\n".join(lines)


def _text(column: Column, row: Row) -> str:
    value = row[column.cell] if isinstance(column.cell, str) else column.cell(row)
    return "-" if value is None or value == "" else printable(str(value))


def printable(text: str, keep: str = "") -> str:
    """A text of somebody else's, such as a message, with what would steer a terminal escaped as in Python; ``keep`` stays."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in keep else ascii(sign)[1:-1] for sign in text)
