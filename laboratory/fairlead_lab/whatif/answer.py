"""What comes out: for each case, who would hold what, and how long it would wait. Times in ms, shares as fractions."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What a role holds, the roles below it included."""

    tasks: int
    dominant_share: float
    """Of the capacity of the hosts that take work: above 1 is possible, with tasks on others."""
    dominant_resource: str
    """Empty if the share is 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleOutcome:
    """What becomes of one role."""

    role: str
    now: Holding
    """After one round of decisions; what ran before runs on."""
    waiting: int
    """Tasks that wait after it."""
    anew: Holding
    """If everything that runs were handed out again as well: what the policy is heading for."""
    wait_mean_ms: float | None
    """From now, over the tasks that wait now and start in time; None if nothing waits or nothing is known of the future."""
    wait_max_ms: int | None
    finish_ms: int | None
    """When the last of its present work is done; None: not in time, or not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeverRuns:
    """Tasks that wait and could never run on these hosts."""

    framework_id: str
    class_id: str
    tasks: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOutcome:
    """What becomes of one case."""

    name: str
    policy: str
    hosts: int
    """That take work."""
    utilization: Mapping[str, float]
    """By resource there is any of: what tasks hold after one round of decisions, as a fraction of the hosts that take
    work; above 1 is possible."""
    tasks_drained: int
    """Tasks that run on hosts that take no work. They count in shares, as they do on the cluster, and those hosts' resources
    do not, so that a share may be above 1."""
    roles: Sequence[RoleOutcome]
    """By name; each before those below it."""
    never: Sequence[NeverRuns]
    wait_mean_ms: float | None
    finish_ms: int | None
    """When all is done; None: not in time, or not known. What can never run is not counted."""
    not_started: int
    """Tasks that wait all the time that is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All cases of a question."""

    assumption: str
    """What the future rests on, in a sentence."""
    remarks: Sequence[str]
    """What the snapshot left out or counts otherwise than the cluster does."""
    horizon_ms: int | None
    cases: Sequence[CaseOutcome]
    """The first is the cluster as it is."""

    def as_json(self) -> dict[str, Any]:
        """Plain data, the same for the same snapshot and question."""
        return asdict(self)
