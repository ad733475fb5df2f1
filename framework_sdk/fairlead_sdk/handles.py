"""Waiting for tasks: a handle on one, the group a run makes of many, and a handle on an array."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from typing import Protocol, TypeVar

from fairlead_proto.task_state import TaskState
from fairlead_sdk.arrays import Array
from fairlead_sdk.calls import Launch
from fairlead_sdk.errors import FairleadError
from fairlead_sdk.jobs import Phase
from fairlead_sdk.task import Progress, Task, TaskResult
from fairlead_sdk.workload_actions import JobMoved

News = TypeVar("News")

OnLaunch = Callable[[Launch], object]
"""Is given each attempt that an agent has."""

OnProgress = Callable[[Progress], object]

OnRetry = Callable[[TaskResult], object]
"""Is given the result of an attempt whose task is run again for it."""


class Listener(Protocol):
    """Whoever waits for jobs, or for an array; called with the job's id."""

    def moved(self, move: JobMoved) -> None:
        """A job's attempt runs, or waits again."""

    def ended(self, job_id: str, outcome: TaskResult | FairleadError) -> None:
        """A job is over."""


class Owner(Protocol):
    """What a handle asks of its framework."""

    def request_kill(self, job_ids: Sequence[str]) -> None:
        """Have jobs ended."""

    def request_array_kill(self, array_id: str, index: int | None = None) -> None:
        """Have one member of an array ended, or all."""

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


class Tally:
    """How many tasks of a run are where, and who wants to know."""

    def __init__(
        self, on_launch: OnLaunch | None, on_progress: OnProgress | None, on_retry: OnRetry | None
    ) -> None:
        self.error: BaseException | None = None
        """What was raised by somebody who was told."""
        self._on_launch = on_launch
        self._on_progress = on_progress
        self._on_retry = on_retry
        self._progress_due = False
        self._is_running: dict[str, None] = {}
        self._ok = self._failed = self._killed = self._refused = self._retried = 0

    @property
    def done(self) -> int:
        """How many are over."""
        return self._ok + self._failed

    @property
    def known(self) -> int:
        """How many were launched, or are over."""
        return len(self._is_running) + self.done

    def moved(self, move: JobMoved) -> None:
        """Count, and tell; see ``Listener``."""
        self._progress_due = True
        if move.launch is not None:
            self._is_running[move.job_id] = None
            self._tell(self._on_launch, move.launch)
        else:
            self._is_running.pop(move.job_id, None)
        if move.given_up is not None:
            self._retried += 1
            self._tell(self._on_retry, move.given_up)

    def ended(self, job_id: str, outcome: TaskResult | FairleadError) -> None:
        """Count; see ``Listener``."""
        self._is_running.pop(job_id, None)
        self._progress_due = True
        if isinstance(outcome, TaskResult):
            self._ok += outcome.ok
            self._failed += not outcome.ok
            self._killed += outcome.state is TaskState.KILLED
            self._refused += outcome.refusal is not None
        else:
            self._failed += 1

    def tell_progress(self, total: int) -> None:
        """Call the progress callback if something changed since it was last called."""
        if self._progress_due:
            self._progress_due = False
            self._tell(self._on_progress, self.progress(total))

    def progress(self, total: int) -> Progress:
        """How far a run of so many tasks is."""
        return Progress(
            waiting=total - len(self._is_running) - self._ok - self._failed,
            running=len(self._is_running),
            finished=self._ok,
            failed=self._failed,
            retried=self._retried,
            killed=self._killed,
            refused=self._refused,
        )

    def _tell(self, tell: Callable[[News], object] | None, news: News) -> None:
        """Tell the application; its error ends the run, and not the session of others."""
        if tell is not None:
            try:
                tell(news)
            except Exception as error:
                self.error = self.error or error


class RunGroup:
    """The tasks of one run: their results in order, how far they are, and who wants to know."""

    def __init__(self, size: int, tally: Tally) -> None:
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
        self._tally = tally
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
        self._tally.moved(move)
        self._check()

    def ended(self, job_id: str, outcome: TaskResult | FairleadError) -> None:
        """Keep the result, or give the run up; see ``Listener``."""
        index = self._index.pop(job_id)
        self._tally.ended(job_id, outcome)
        if isinstance(outcome, TaskResult):
            self.results[index] = outcome
            self.finished.put_nowait(outcome)
        else:
            self._give_up(outcome)
        if not self._index and self._is_filled:
            self._conclude()

    def tell_progress(self) -> None:
        """Call the progress callback if something changed since it was last called."""
        self._tally.tell_progress(len(self.results))
        self._check()

    def _check(self) -> None:
        if self._tally.error is not None:
            self._give_up(self._tally.error)

    def _conclude(self) -> None:
        for future in (self.over, self.settled):
            if not future.done():
                future.set_result(None)

    def _give_up(self, error: BaseException) -> None:
        self.error = self.error or error
        if not self.over.done():
            self.over.set_result(None)


class ArrayHandle:
    """One submitted array. ``async for`` gives its members' results as they come, ``await`` all in the order of ``over``.

    Neither touches the tasks when it is left early or cancelled; ``kill()`` does. A result that a loop was given is not kept:
    another loop, or ``await``, goes on behind it. Both raise, after the results there are, what kept further members from
    being made: what the arguments' iterator or a callback raised, or the end of the session.
    """

    def __init__(self, owner: Owner, array_id: str, array: Array, tally: Tally) -> None:
        self.array = array
        self.task_id = array_id
        """Of the array; its members have the index behind it."""
        self._owner = owner
        self._tally = tally
        self._results: deque[TaskResult] = deque()
        self._changed = asyncio.Event()
        self._is_over = False
        self._error: BaseException | None = None

    @property
    def done(self) -> bool:
        """Whether all members are over."""
        return self._is_over

    @property
    def progress(self) -> Progress:
        """How many members are where; those that wait for their turn are known only if the arguments have a length."""
        return self._tally.progress(self._total)

    def kill(self, index: int | None = None) -> None:
        """Have all members ended, or the one with this index; also before their turn has come. Each has a result still.

        Raises:
            ValueError: no member has this index; of arguments without a length, none can have it.
        """
        if index is not None:
            self.array.check_index(index)
        self._owner.request_array_kill(self.task_id, index)

    def __await__(self) -> Generator[object, None, list[TaskResult]]:
        return self._all().__await__()

    async def __aiter__(self) -> AsyncIterator[TaskResult]:
        while True:
            while self._results:
                yield self._results.popleft()
            if self._is_over:
                break
            await self._news()
        self._raise()

    async def _all(self) -> list[TaskResult]:
        while not self._is_over:
            await self._news()
        self._raise()
        place = {index: place for place, index in enumerate(self.array.indices or ())}
        by_index = [(result.member.index if result.member else 0, result) for result in self._results]
        return [result for _, result in sorted(by_index, key=lambda item: place.get(item[0], item[0]))]

    async def _news(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def moved(self, move: JobMoved) -> None:
        """Count; see ``Listener``."""
        self._tally.moved(move)

    def ended(self, job_id: str, outcome: TaskResult | FairleadError) -> None:
        """Keep the result; see ``Listener``."""
        self._tally.ended(job_id, outcome)
        if isinstance(outcome, TaskResult):
            self._results.append(outcome)
            self._changed.set()
        else:
            self._error = self._error or outcome

    def over(self, error: Exception | None) -> None:
        """All members are over, or the session is: why further ones were not made, if that was not their end."""
        self._is_over = True
        self._error = self._error or error
        self._changed.set()

    def tell_progress(self) -> None:
        """Call the progress callback if something changed since it was last called."""
        self._tally.tell_progress(self._total)
        if self._tally.error is not None and self._error is None:
            self._error = self._tally.error
            self.kill()

    @property
    def _total(self) -> int:
        return self.array.count if self.array.count is not None else self._tally.known
