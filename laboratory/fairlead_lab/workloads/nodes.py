"""The nodes a workload is simulated on: a file of them, or a few words such as ``20:cpus=80,mem=505GiB``.

Files are CSV, one node a row, with the columns ``node, cpus, mem_mb, gpus``; every further column is an attribute that
placement constraints may ask for. The node list of the Alibaba GPU trace is read as published. Words are groups joined by
``+``, each ``COUNT:RESOURCES`` with attributes after an ``@``: ``20:cpus=80,mem=505GiB@model=zewura+48:cpus=12,mem=90GiB``.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fairlead_lab.workloads.csv_rows import Row, bad_place, read_lines, read_rows
from fairlead_lab.workloads.traces import CORES_MAX, GPUS_MAX, MEM_MB_MAX, read_demand
from fairlead_proto.limits import ID_LENGTH_MAX
from fairlead_proto.resources import ResourceError, ResourceKinds
from fairlead_sim.node import Node
from fairlead_sim.workload import WorkloadError

NODE_COLUMNS: Final = ("node", "cpus", "mem_mb", "gpus")
OPENB_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
"""The node list of the Alibaba GPU trace of 2023."""

NODES_MAX: Final = 1_000_000
"""Ten times the largest cluster known; more is another kind of file, or a count that slipped."""

_GROUP: Final = re.compile(r"\s*([0-9]+)\s*:\s*(.*?)\s*", re.DOTALL)
_LOOKS_LIKE_WORDS: Final = re.compile(r"\s*[-+]?[0-9.]*\s*:")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def parse_nodes(text_or_path: str | Path) -> list[Node]:
    """The nodes that a file or some words describe, in their order.

    A string that names no file and has the form of words is words.

    Raises:
        TraceError: a file that cannot be used, or one without nodes.
        WorkloadError: words that cannot be read, or no nodes.
    """
    path = Path(text_or_path)
    # Words without their count are no file's name either, and deserve the better message.
    looks_like_words = isinstance(text_or_path, str) and bool(
        _LOOKS_LIKE_WORDS.match(text_or_path) or "=" in text_or_path
    )
    if looks_like_words and not path.exists():
        return _from_words(str(text_or_path))
    return read_nodes(path)


def read_nodes(path: Path) -> list[Node]:
    """The nodes of a file, in its order.

    Raises:
        TraceError: as for a trace; or a name used twice, no nodes, more than ``NODES_MAX`` of them.
    """
    nodes: list[Node] = []
    lines: dict[str, int] = {}
    for row, node in _rows(path):
        if node.name in lines:
            first = f"each name once, {node.name!r} is already in line {lines[node.name]}"
            raise row.bad(_name_column(row), first)
        if len(nodes) == NODES_MAX:
            raise row.bad(_name_column(row), f"at most {NODES_MAX} nodes")
        lines[node.name] = row.line
        nodes.append(node)
    if not nodes:
        raise bad_place(path, 0, "", "at least one row after the header", "none")
    return nodes


def _rows(path: Path) -> Iterator[tuple[Row, Node]]:
    header = next(read_lines(path), "")
    is_openb = all(name in header for name in OPENB_COLUMNS)
    for row in read_rows(path, OPENB_COLUMNS if is_openb else NODE_COLUMNS):
        yield row, _openb_node(row) if is_openb else _node(row)


def _node(row: Row) -> Node:
    attributes = {
        name: row.text(name) for name in row.cells if name not in NODE_COLUMNS and name and row.text(name)
    }
    return Node(name=_name(row, "node"), total=read_demand(row), attributes=attributes)


def _openb_node(row: Row) -> Node:
    amounts = {
        "cpus": row.whole("cpu_milli", least=0, most=CORES_MAX * 1000, unit="thousandths of a core"),
        "mem": round(row.number("memory_mib", most=MEM_MB_MAX, unit="MiB") * 2**20),
        "gpus": row.whole("gpu", least=0, most=GPUS_MAX, unit="GPUs") * 1000,
    }
    if not any(amounts.values()):
        raise row.bad(
            "cpu_milli", "an amount above zero in cpu_milli, memory_mib or gpu", "zero in all three"
        )
    model = row.text("model")
    attributes = {"model": model} if model else {}
    return Node(name=_name(row, "sn"), total=ResourceKinds().vector(amounts), attributes=attributes)


def _name_column(row: Row) -> str:
    return "node" if "node" in row.cells else "sn"


def _name(row: Row, column: str) -> str:
    name = row.text(column)
    if not _NAME.fullmatch(name) or len(name) > ID_LENGTH_MAX:
        raise row.bad(column, f"a name of letters, digits and . _ -, at most {ID_LENGTH_MAX} of them")
    return name


def _from_words(text: str) -> list[Node]:
    nodes: list[Node] = []
    for group in text.split("+"):
        nodes += _group(group, first=len(nodes))
    return nodes


def _group(text: str, *, first: int) -> list[Node]:
    match = _GROUP.fullmatch(text)
    if match is None:
        raise WorkloadError(f"nodes: expected COUNT:cpus=N,mem=N such as 20:cpus=16,mem=32GiB, got {text!r}")
    count = int(match.group(1))
    if not 1 <= count <= NODES_MAX - first:
        raise WorkloadError(f"nodes: expected 1 to {NODES_MAX} of them, got {count} in {text!r}")
    resources, _, words = match.group(2).partition("@")
    try:
        total = ResourceKinds().parse(resources)
    except ResourceError as error:
        raise WorkloadError(f"nodes: {error}, in {text!r}") from None
    if not any(total):
        raise WorkloadError(f"nodes: expected an amount above zero, got none in {text!r}")
    attributes = _attributes(words, text)
    return [Node(name=f"n{first + number}", total=total, attributes=attributes) for number in range(count)]


def _attributes(words: str, group: str) -> dict[str, str]:
    attributes: dict[str, str] = {}
    for word in filter(None, (piece.strip() for piece in words.split(","))):
        name, equals, value = word.partition("=")
        if not equals or not name or not value or name in attributes:
            raise WorkloadError(
                f"nodes: expected attributes as name=value, each once, got {word!r} in {group!r}"
            )
        attributes[name] = value
    return attributes
