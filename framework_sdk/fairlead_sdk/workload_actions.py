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
    array_id: str = ""
    """The array it is of, if it is of one."""
    launch: Launch | None = None
    """The attempt that runs; None if the job waits."""
    given_up: TaskResult | None = None
    """How the attempt before ended, if the job is run again for that."""


@dataclass(frozen=True, slots=True)
class JobEnded:
    """A job is over: its result, or why there is none."""

    job_id: str
    outcome: TaskResult | FairleadError
    array_id: str = ""
    """The array it is of, if it is of one."""


@dataclass(frozen=True, slots=True)
class ArrayEnded:
    """All members of an array are over."""

    array_id: str
    error: Exception | None = None
    """Why further ones were not made, if that was not their end."""


Action = TakeOffer | GiveBack | EndTasks | JobMoved | JobEnded | ArrayEnded
