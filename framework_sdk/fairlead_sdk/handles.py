"""Waiting for tasks: a handle on one, and the group a run makes of many."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from typing import Protocol, TypeVar

from fairlead_proto.task_state import TaskState
from fairlead_sdk.errors import FairleadError
from fairlead_sdk.task import Progress, Task, TaskResult
from fairlead_sdk.workload import Phase
from fairlead_sdk.workload_actions import JobMoved

News = TypeVar("News")

OnProgress = Callable[[Progress], object]

OnRetry = Callable[[TaskResult], object]
"""Is given the result of an attempt whose task is run again for it."""


class Listener(Protocol):
    """Whoever waits for jobs; called with the job's id."""

    def moved(self, move: JobMoved) -> None:
        """A job's attempt runs, or waits again."""

    def ended(self, job_id: str, outcome: TaskResult | FairleadError) -> None:
        """A job is over."""


class Owner(Protocol):
    """What a handle asks of its framework."""

    def request_kill(self, job_ids: Sequence[str]) -> None:
        """Have jobs ended."""

    def state_of(self, job_id: str) -> tuple[Phase, TaskState] | None:
        """Where a job is; None if it is over."""


class TaskHandle:
    """One submitted task. ``await handle`` gives its ``TaskResult``.

    Awaiting may be cancelled and repeated: it does not touch the task. ``kill()`` does.
    """

    def __init__(self, owner: Owner, job_id: str, task: Task) -> None:
        self.task = task
        self.task_id = job_id
        """Of the first attempt."""
        self._owner = owner
        self._future: asyncio.Future[TaskResult] = asyncio.get_running_loop().create_future()

    def __await__(self) -> Generator[object, None, TaskResult]:
        return asyncio.shield(self._future).__await__()

    @property
    def done(self) -> bool:
        """Whether the task is over."""
        return self._future.done()

    @property
    def state(self) -> str:
        """The task's state as listings show it: ``PENDING`` before it is launched."""
        where = self._owner.state_of(self.task_id)
        if where is not None:
            phase, state = where
            return state.value if phase is Phase.LIVE else "PENDING"
        error = self._future.exception() if self._future.done() else None
        return "UNKNOWN" if error is not None else self._future.result().state.value

    def kill(self) -> None:
        """Have the task ended; a second call, or one after its end, does nothing. Await the handle for the outcome."""
        self._owner.request_kill([self.task_id])

    def moved(self, move: JobMoved) -> None:
        """Nothing to note; see ``Listener``."""

    def ended(self, job_id: str, outcome: TaskResult | FairleadError) -> None:
        """Hand the outcome to whoever awaits; see ``Listener``."""
        assert job_id == self.task_id, f"the outcome of {job_id} came to the handle of {self.task_id}"
        if self._future.done():
            return
        if isinstance(outcome, TaskResult):
            self._future.set_result(outcome)
        else:
            self._future.set_exception(outcome)
            # A handle nobody awaits is no reason for a warning when it is collected.
            self._future.exception()


class RunGroup:
    """The tasks of one run: their results in order, how far they are, and who wants to know."""

    def __init__(
        self, size: int, on_progress: OnProgress | None = None, on_retry: OnRetry | None = None
    ) -> None:
        self.results: list[TaskResult | None] = [None] * size
        self.finished: asyncio.Queue[TaskResult] = asyncio.Queue()
        """Results as they come, for whoever takes them one by one."""
        self.error: BaseException | None = None
        """The first reason the run cannot go on."""
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when every task is over, or the run cannot go on."""
        self.settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when every task is over, whatever happened."""
        self._index: dict[str, int] = {}
        self._on_progress = on_progress
        self._on_retry = on_retry
        self._progress_due = False
        self._is_running: dict[str, None] = {}
        self._ok = self._failed = self._killed = self._refused = self._retried = 0
        self._added = 0
        self._is_filled = False

    def add(self, job_id: str) -> None:
        """The next task in order has this job id."""
        self._index[job_id] = self._added
        self._added += 1

    def filled(self) -> None:
        """All tasks were added."""
        self._is_filled = True
        if not self._index:
            self._conclude()

    @property
    def job_ids(self) -> list[str]:
        """The jobs of this run that are not over."""
        return list(self._index)

    def moved(self, move: JobMoved) -> None:
        """Count; see ``Listener``."""
        if move.is_running:
            self._is_running[move.job_id] = None
        else:
            self._is_running.pop(move.job_id, None)
        self._progress_due = True
        if move.given_up is not None:
            self._retried += 1
            if self._on_retry is not None:
                self._guarded(self._on_retry, move.given_up)

    def ended(self, job_id: str, outcome: TaskResult | FairleadError) -> None:
        """Keep the result, or give the run up; see ``Listener``."""
        index = self._index.pop(job_id)
        self._is_running.pop(job_id, None)
        self._progress_due = True
        if isinstance(outcome, TaskResult):
            self.results[index] = outcome
            self._ok += outcome.ok
            self._failed += not outcome.ok
            self._killed += outcome.state is TaskState.KILLED
            self._refused += outcome.refusal is not None
            self.finished.put_nowait(outcome)
        else:
            self._failed += 1
            self._give_up(outcome)
        if not self._index and self._is_filled:
            self._conclude()

    def tell_progress(self) -> None:
        """Call the progress callback if something changed since it was last called."""
        if not self._progress_due or self._on_progress is None:
            return
        self._progress_due = False
        self._guarded(self._on_progress, self.progress)

    def _guarded(self, tell: Callable[[News], object], news: News) -> None:
        """Tell the application; its error ends the run, and not the session of others."""
        try:
            tell(news)
        except Exception as error:
            self._give_up(error)

    @property
    def progress(self) -> Progress:
        """How far the run is."""
        waiting = len(self.results) - len(self._is_running) - self._ok - self._failed
        return Progress(
            waiting=waiting,
            running=len(self._is_running),
            finished=self._ok,
            failed=self._failed,
            retried=self._retried,
            killed=self._killed,
            refused=self._refused,
        )

    def _conclude(self) -> None:
        for future in (self.over, self.settled):
            if not future.done():
                future.set_result(None)

    def _give_up(self, error: BaseException) -> None:
        self.error = self.error or error
        if not self.over.done():
            self.over.set_result(None)
