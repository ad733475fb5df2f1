"""The state of a cluster at one moment, as far as it decides what happens next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fairlead_master.allocation.api import AllocationSettings
from fairlead_master.allocation.weights import Weight
from fairlead_proto.ids import Role
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_proto.tasks import Constraint


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """An agent that is there, or may be back in a moment."""

    agent_id: str
    hostname: str
    total: Vector
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Without ``hostname`` and ``agent_id``."""
    takes_work: bool = True
    """False while it is disconnected: its tasks run on, and nothing new is started there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkState:
    """A framework that runs or wants something."""

    framework_id: str
    name: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingClass:
    """Units of a demand class that wait; those in offers are among them, as nobody has taken them yet."""

    framework_id: str
    class_id: str
    unit: Vector
    units: int
    """1 or more."""
    constraints: tuple[Constraint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTask:
    """A task that holds resources of a host."""

    framework_id: str
    agent_id: str
    """Of one of the hosts."""
    unit: Vector
    ran_ms: int
    """For how long; 0 before its process has started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedTask:
    """A task that ended well and is remembered."""

    framework_id: str
    name: str
    """Of its framework."""
    role: str
    unit: Vector
    duration_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All of it. Listings of a working cluster are no single instant: a task may be missing or counted twice."""

    kinds: ResourceKinds
    settings: AllocationSettings
    hosts: Sequence[Host]
    frameworks: Mapping[str, FrameworkState]
    """By id; those of every task and class below."""
    weights: Mapping[Role, Weight]
    waiting: Sequence[WaitingClass]
    running: Sequence[RunningTask]
    finished: Sequence[FinishedTask] = ()
    tasks_left_out: int = 0
    """That hold nothing here, because their agents are gone or not back yet."""
    is_measured: bool = False
    """Whether the cluster counts what tasks were measured to use. Here what they declare counts, whatever it counts."""
