"""A scenario file: what work arrives, on which nodes it runs, and under which policies it is to be looked at.

TOML (``.toml``) or YAML (``.yaml``, ``.yml``; needs PyYAML, the extra ``yaml``). The work is either described, by classes
of jobs with arrivals (``generating``), or a trace file with its options. ``docs/scenarios.md`` has the keys with an example,
``data/scenario.schema.json`` the same for editors. An unknown key is an error, so that a misspelt one cannot pass for a
default; files named in it are relative to its folder.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from fairlead_lab.workloads.csv_rows import TraceError, bad_place
from fairlead_lab.workloads.dividing import divide
from fairlead_lab.workloads.loading import AUTO, FORMATS
from fairlead_lab.workloads.loading import load as load_trace
from fairlead_lab.workloads.nodes import parse_nodes
from fairlead_lab.workloads.swim_model import SwimModel
from fairlead_lab.workloads.synthetic.arrivals import JOBS_MAX, read_arrivals
from fairlead_lab.workloads.synthetic.classes import Generator, User, read_class, read_user
from fairlead_lab.workloads.synthetic.table import Table, text_item
from fairlead_lab.workloads.traces import TraceOptions
from fairlead_master.allocation import placement
from fairlead_master.allocation.api import AllocationError
from fairlead_master.allocation.policies import names
from fairlead_proto.resources import STANDARD_NAMES, ResourceError, ResourceKinds, Vector
from fairlead_sim.node import Node
from fairlead_sim.pool.hosts import Slowdown
from fairlead_sim.workload import Job, Selection, Work, WorkloadError

SCHEMA: Final = Path(__file__).parent / "data" / "scenario.schema.json"
"""The keys and their values as JSON Schema, for editors."""

WHEN_HEAD_DOES_NOT_FIT: Final = ("skip", "freeze")
SEEDS_MAX: Final = 1000
_DIVISOR_MAX: Final = 100_000
_BYTES_MAX: Final = 2**20
"""Written by people; a trace has a file of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSource:
    """Work that a file has."""

    path: Path
    format: str
    options: TraceOptions
    selection: Selection
    divisor: int = 1
    """By which tasks are divided, for a cluster with that much fewer nodes: ``dividing``."""

    def jobs(self, seed: int) -> list[Job]:
        """The jobs, by arrival; a trace that is not divided is the same under every seed."""
        return self.work(seed).jobs

    def work(self, seed: int) -> Work:
        """The jobs, and what was left out of the trace."""
        loaded = load_trace(self.path, format=self.format, selection=self.selection, options=self.options)
        jobs = divide(loaded.jobs, self.divisor, seed=seed)
        remarks = loaded.remarks(self.options)
        if len(jobs) < len(loaded.jobs):
            left = len(loaded.jobs) - len(jobs)
            remarks.append(
                f"{left:,} of {len(loaded.jobs):,} jobs left out: none of their tasks is left when divided by {self.divisor}"
            )
        return Work(jobs, tuple(remarks))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What a scenario file says."""

    name: str
    description: str
    work: Generator | TraceSource
    nodes: tuple[Node, ...]
    """Empty if the file names none: they are to be said elsewhere."""
    weights: Mapping[str, float]
    """Of users who have another than 1; what a policy is told before the work begins."""
    policies: tuple[str, ...]
    """As an operator writes them; may be empty."""
    seeds: tuple[int, ...]
    """One run each; at least one."""
    placement: str
    when_head_does_not_fit: str
    slowdown: float
    """How steeply memory thrashes where a policy promises more than there is (``pool.hosts.Slowdown.memory``)."""

    def jobs(self, seed: int | None = None) -> list[Job]:
        """The jobs of a seed, by arrival; None is the first seed of the file.

        Raises:
            TraceError, WorkloadError: the trace cannot be used, or nothing arrives.
        """
        return self.work.jobs(self.seeds[0] if seed is None else seed)


def load(path: str | Path) -> Scenario:
    """The scenario of a file.

    Raises:
        TraceError: the file, or the file of nodes, cannot be read.
        WorkloadError: it says what makes no sense; the message begins with the file and the path of the key.
    """
    path = Path(path)
    try:
        return parse(read_file(path), folder=path.parent, name=path.stem)
    except TraceError:
        raise
    except WorkloadError as error:
        raise WorkloadError(f"{path}: {error}") from None


def parse(values: Any, *, folder: Path, name: str = "scenario") -> Scenario:
    """The scenario that plain values describe, as a TOML or YAML file has them.

    Args:
        values: A mapping.
        folder: What relative paths in it start from.
        name: If it does not name itself.

    Raises:
        TraceError, WorkloadError: as for ``load``.
    """
    table = Table(values, "")
    users = table.items("users", "users", read_user)
    _check_names("users", [user.name for user in users])
    scenario = Scenario(
        name=table.text("name", name),
        description=table.text("description", ""),
        work=_read_work(table, users, folder),
        nodes=_read_nodes(table, folder),
        weights={user.name: user.weight for user in users if user.weight != 1.0},
        policies=tuple(table.items("policies", "policies such as drf", _policy)),
        seeds=_read_seeds(table),
        placement=_placement(table.text("placement", placement.NAMES[0])),
        when_head_does_not_fit=table.one_of(
            "when_head_does_not_fit", WHEN_HEAD_DOES_NOT_FIT, WHEN_HEAD_DOES_NOT_FIT[0]
        ),
        slowdown=table.number("slowdown", least=0, most=1e6, default=Slowdown().memory),
    )
    table.done()
    return scenario


def read_file(path: Path) -> Any:
    """The plain values of a TOML or YAML file, unchecked.

    Raises:
        TraceError: it cannot be read, or is not what its name says.
        WorkloadError: it is YAML and PyYAML is not installed.
    """
    readers: dict[str, Callable[[str], Any]] = {".toml": _toml, ".yaml": _yaml, ".yml": _yaml}
    read = readers.get(path.suffix.lower())
    if read is None:
        raise bad_place(path, 0, "", "a name that ends in .toml, .yaml or .yml", path.name)
    try:
        with path.open("rb") as file:
            content = file.read(_BYTES_MAX + 1)
        if len(content) > _BYTES_MAX:
            raise bad_place(path, 0, "", f"at most {_BYTES_MAX} bytes", "more")
        return read(content.decode("utf-8-sig"))
    except OSError as error:
        raise bad_place(path, 0, "", "a file that can be read", error.strerror or str(error)) from None
    except UnicodeDecodeError as error:
        raise bad_place(path, 0, "", "text in UTF-8", f"byte {error.object[error.start]:#04x}") from None
    except ValueError as error:
        if isinstance(error, TraceError | WorkloadError):
            raise
        got = " ".join(str(error).split())
        raise bad_place(path, 0, "", path.suffix[1:].upper(), f"a file that is not: {got}") from None


def _toml(text: str) -> Any:
    return tomllib.loads(text)


def _yaml(text: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise WorkloadError(
            "expected PyYAML to be installed (the extra yaml) to read YAML; TOML needs nothing"
        ) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def _check_names(key: str, given: list[str]) -> None:
    for number, name in enumerate(given):
        if name in given[:number]:
            raise WorkloadError(f"{key}[{number}].name: expected each name once, got {name!r} twice")


def _read_work(table: Table, users: list[User], folder: Path) -> Generator | TraceSource:
    trace = table.table("trace")
    classes = tuple(table.items("classes", "classes of jobs", read_class(users)))
    shared = table.table("arrivals")
    arrivals = read_arrivals(shared) if shared is not None else None
    if trace is not None:
        if classes or arrivals is not None:
            raise WorkloadError("trace: expected either a trace or classes with arrivals, got both")
        return _read_trace(trace, folder)
    if not classes:
        raise WorkloadError("scenario: expected classes of jobs or a trace, got neither")
    _check_names("classes", [each.name for each in classes])
    without = [each.name for each in classes if each.arrivals is None]
    if without and arrivals is None:
        raise WorkloadError(f"arrivals: expected how jobs of class {without[0]} arrive, got nothing")
    if arrivals is not None and not without:
        raise WorkloadError("arrivals: expected a class without arrivals of its own, got none")
    return Generator(classes=classes, arrivals=arrivals)


def _read_trace(table: Table, folder: Path) -> TraceSource:
    table.require("path", "the trace's file")
    path = folder / table.text("path", "")
    default_ms = table.duration_ms("default_duration", None)
    options = TraceOptions(
        user_column=table.text("user_column", "user_id"),
        default_duration_ms=default_ms,
        skip_without_duration=table.flag("skip_without_duration", default=False),
        with_gangs=table.flag("gangs", default=True),
        with_constraints=table.flag("constraints", default=True),
        accepts_any_order=table.flag("any_order", default=False),
        swim=_read_swim(table.table("swim")),
    )
    largest = table.raw("largest_machine")
    if largest is not None:
        options = replace(options, largest_machine=_vector(largest, table.at("largest_machine")))
    selection = Selection(
        jobs_max=table.whole("limit", least=1, most=JOBS_MAX, default=None),
        from_ms=table.duration_ms("from", 0) or 0,
        until_ms=table.duration_ms("until", None),
    )
    source = TraceSource(
        path=path,
        format=table.one_of("format", (AUTO, *FORMATS), AUTO),
        options=options,
        selection=selection,
        divisor=table.whole("divide", least=1, most=_DIVISOR_MAX, default=1) or 1,
    )
    table.done()
    return source


def _read_swim(table: Table | None) -> SwimModel | None:
    if table is None:
        return None
    usual = SwimModel()
    model = SwimModel(
        name=table.text("name", usual.name),
        map_heavy_share=table.number("map_heavy_share", least=0, most=1, default=usual.map_heavy_share),
        reduce_heavy_share=table.number(
            "reduce_heavy_share", least=0, most=1, default=usual.reduce_heavy_share
        ),
        spread=table.number("spread", least=0, most=10, default=usual.spread),
        users=table.whole("users", least=1, most=100_000, default=usual.users) or usual.users,
    )
    table.done()
    return model


def _vector(value: Any, path: str) -> Vector:
    try:
        return ResourceKinds().parse(text_item(value, path))
    except ResourceError as error:
        raise WorkloadError(f"{path}: {error}") from None


def _read_nodes(table: Table, folder: Path) -> tuple[Node, ...]:
    """Words, or a file relative to the scenario's folder."""
    value = table.raw("nodes")
    if "nodes" not in table:
        return ()
    text = text_item(value, "nodes")
    try:
        return tuple(parse_nodes(text if "=" in text else folder / text))
    except WorkloadError as error:
        raise WorkloadError(f"nodes: {str(error).removeprefix('nodes: ')}") from None


def _read_seeds(table: Table) -> tuple[int, ...]:
    """A number of them, from 0, or a list."""
    value = table.raw("seeds")
    if "seeds" not in table:
        return (0,)
    if isinstance(value, list):
        seeds = tuple(table.items("seeds", "whole numbers", _seed))
        if len(set(seeds)) != len(seeds):
            raise table.bad("seeds", "each seed once")
        return seeds
    return tuple(range(table.whole("seeds", least=1, most=SEEDS_MAX, default=1) or 1))


def _policy(value: Any, path: str) -> str:
    try:
        names.parse(text_item(value, path), STANDARD_NAMES)
    except AllocationError as error:
        raise WorkloadError(f"{path}: {error}") from None
    return str(value)


def _placement(text: str) -> str:
    try:
        placement.parse(text)
    except AllocationError as error:
        raise WorkloadError(str(error)) from None
    return text


def _seed(value: Any, path: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise WorkloadError(f"{path}: expected a whole number from 0 to 2^63 - 1, got {value!r}")
    return value
