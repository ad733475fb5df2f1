"""What a workload asks of its shell: calls to the master, and news for whoever waits for a job."""

from dataclasses import dataclass

from fairlead_sdk.calls import Launch
from fairlead_sdk.errors import FairleadError
from fairlead_sdk.events import Offer
from fairlead_sdk.task import TaskResult


@dataclass(frozen=True, slots=True)
class TakeOffer:
    """Accept this offer for these attempts."""

    offer: Offer
    launches: tuple[Launch, ...]


@dataclass(frozen=True, slots=True)
class GiveBack:
    """Decline these offers: nothing here needs them."""

    offer_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EndTasks:
    """Kill these attempts."""

    task_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JobMoved:
    """A job's current attempt runs, or waits again."""

    job_id: str
    is_running: bool
    given_up: TaskResult | None = None
    """How the attempt before ended, if the job is run again for that."""
    found: Launch | None = None
    """The attempt, if an earlier session began it."""


@dataclass(frozen=True, slots=True)
class JobEnded:
    """A job is over: its result, or why there is none."""

    job_id: str
    outcome: TaskResult | FairleadError


Action = TakeOffer | GiveBack | EndTasks | JobMoved | JobEnded
