"""The simple path without ``await``: the same names, for scripts and notebooks.

    from fairlead_sdk import Task
    from fairlead_sdk.sync import Framework

    with Framework("sweep") as framework:
        results = framework.run([Task(["job", str(i)]) for i in range(100)])

Each framework has an event loop on a thread of its own, so it works inside programs that have a loop already, as notebooks
do. Ctrl-C while waiting kills the tasks that were waited for, waits until they are over, and then raises KeyboardInterrupt; a
second Ctrl-C waits no longer. Progress callbacks are called on the framework's thread.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from types import TracebackType
from typing import Any, Self, TypeVar

from fairlead_proto.task_state import TaskState
from fairlead_sdk import framework as asynchronous
from fairlead_sdk.amounts import parse_duration
from fairlead_sdk.arrays import Array
from fairlead_sdk.calls import Launch
from fairlead_sdk.errors import Closed
from fairlead_sdk.handles import ArrayHandle as AsyncArrayHandle
from fairlead_sdk.handles import OnLaunch, OnProgress, OnRetry
from fairlead_sdk.handles import TaskHandle as AsyncTaskHandle
from fairlead_sdk.jobs import Phase
from fairlead_sdk.output import OutputFollower as AsyncOutputFollower
from fairlead_sdk.output import TaskOutput
from fairlead_sdk.task import Progress, Task, TaskResult

_T = TypeVar("_T")


class TaskHandle:
    """One submitted task."""

    def __init__(self, owner: "Framework", handle: AsyncTaskHandle) -> None:
        self.task = handle.task
        self.task_id = handle.task_id
        """Of the first attempt."""
        self._owner = owner
        self._handle = handle

    @property
    def done(self) -> bool:
        """Whether the task is over."""
        return self._handle.done

    @property
    def state(self) -> str:
        """The task's state as listings show it: ``PENDING`` before it is launched."""
        return self._owner.call(_returning(lambda: self._handle.state))

    def result(self, timeout: float | str | None = None) -> TaskResult:
        """Wait for the task to be over.

        Args:
            timeout: seconds or text; None waits for ever.

        Raises:
            TimeoutError: it is not over yet; it runs on.
            FairleadError: there will be no result; the kind says why.
        """
        return self._owner.call(_within(timeout, self._handle))

    def kill(self) -> None:
        """Have the task ended; ``result`` then waits for that."""
        self._owner.call(_returning(self._handle.kill))


class ArrayHandle:
    """One submitted array: looping over it gives its members' results as they come."""

    def __init__(self, owner: "Framework", handle: AsyncArrayHandle) -> None:
        self.array = handle.array
        self.task_id = handle.task_id
        """Of the array; its members have the index behind it."""
        self._owner = owner
        self._handle = handle

    def __iter__(self) -> Iterator[TaskResult]:
        return self._owner.iterate(aiter(self._handle))

    @property
    def done(self) -> bool:
        """Whether all members are over."""
        return self._handle.done

    @property
    def progress(self) -> Progress:
        """How many members are where."""
        return self._owner.call(_returning(lambda: self._handle.progress))

    def results(self, timeout: float | str | None = None) -> list[TaskResult]:
        """Wait for all members to be over, and give their results in order; but for the timeout as awaiting it is.

        Args:
            timeout: seconds or text; None waits for ever.

        Raises:
            TimeoutError: they are not over yet; they run on.
            FairleadError: there will be no results; the kind says why.
        """
        return self._owner.call(_within(timeout, self._handle))

    def kill(self, index: int | None = None) -> None:
        """Have all members ended, or the one with this index; raises as ``fairlead_sdk.ArrayHandle.kill``."""
        self._owner.call(_returning(lambda: self._handle.kill(index)))


class Framework:
    """A framework that runs tasks and gives their results. Use it as a context manager.

    Takes the arguments of ``fairlead_sdk.Framework``; its methods may be called from any thread.
    """

    def __init__(self, name: str, **options: Any) -> None:
        self._framework = asynchronous.Framework(name, **options)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Connect to the master; raises as ``fairlead_sdk.Framework.start``."""
        assert self._thread is None, "a framework is started once"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fairlead", daemon=True)
        self._thread.start()
        try:
            self.call(self._framework.start())
        except BaseException:
            self._stop_loop()
            raise

    def close(self) -> None:
        """End the session, by default with all its tasks; a second call does nothing."""
        if self._thread is None or not self._thread.is_alive():
            return
        try:
            self.call(self._framework.close())
        finally:
            self._stop_loop()

    @property
    def name(self) -> str:
        """As given."""
        return self._framework.name

    @property
    def on_exit(self) -> asynchronous.OnExit:
        """As given; may be changed until the context is left."""
        return self._framework.on_exit

    @on_exit.setter
    def on_exit(self, choice: asynchronous.OnExit) -> None:
        self._framework.on_exit = choice

    @property
    def framework_id(self) -> str:
        """The id the master gave; empty before the session stands."""
        return self._framework.framework_id

    @property
    def role(self) -> str:
        """The role as the master has it; empty before the session stands."""
        return self._framework.role

    def submit(self, task: Task) -> TaskHandle:
        """Have one task run, and return a handle; raises as ``fairlead_sdk.Framework.submit``."""
        return TaskHandle(self, self.call(_returning(lambda: self._framework.submit(task))))

    def run(
        self,
        tasks: Iterable[Task],
        *,
        on_launch: OnLaunch | None = None,
        on_progress: OnProgress | None = None,
        on_retry: OnRetry | None = None,
    ) -> list[TaskResult]:
        """Run all tasks and return their results, in order; raises as ``fairlead_sdk.Framework.run``."""
        return self.call(
            self._framework.run(tasks, on_launch=on_launch, on_progress=on_progress, on_retry=on_retry)
        )

    def as_completed(
        self,
        tasks: Iterable[Task],
        *,
        on_launch: OnLaunch | None = None,
        on_progress: OnProgress | None = None,
        on_retry: OnRetry | None = None,
    ) -> Iterator[TaskResult]:
        """Run all tasks and give each result as it comes; leaving the loop early kills the rest."""
        return self.iterate(
            self._framework.as_completed(
                tasks, on_launch=on_launch, on_progress=on_progress, on_retry=on_retry
            )
        )

    def submit_array(
        self,
        array: Array,
        *,
        on_launch: OnLaunch | None = None,
        on_progress: OnProgress | None = None,
        on_retry: OnRetry | None = None,
    ) -> ArrayHandle:
        """Have an array's tasks run, and return a handle; raises as ``fairlead_sdk.Framework.submit_array``."""
        submit = self._framework.submit_array
        work = _returning(
            lambda: submit(array, on_launch=on_launch, on_progress=on_progress, on_retry=on_retry)
        )
        return ArrayHandle(self, self.call(work))

    def request_array_kill(self, array_id: str, index: int | None = None) -> None:
        """Have one member of an array ended, or all."""
        self.call(_returning(lambda: self._framework.request_array_kill(array_id, index)))

    def kill(self, handles: Iterable[TaskHandle]) -> None:
        """End these tasks and wait until they are over."""
        self.call(self._framework.kill([handle._handle for handle in handles]))  # noqa: SLF001 - its own kind

    def request_kill(self, job_ids: Sequence[str]) -> None:
        """Have tasks ended, by the ids of their first attempts; those that are over are left out."""
        self.call(_returning(lambda: self._framework.request_kill(job_ids)))

    def state_of(self, job_id: str) -> tuple[Phase, TaskState] | None:
        """Where a task is, by the id of its first attempt; None if it is over."""
        return self.call(_returning(lambda: self._framework.state_of(job_id)))

    def stdout(self, task: Task | TaskHandle | TaskResult | Launch) -> str:
        """What the task wrote to its standard output so far."""
        return self.call(self._framework.stdout(_unwrapped(task)))

    def stderr(self, task: Task | TaskHandle | TaskResult | Launch) -> str:
        """What the task wrote to its standard error so far."""
        return self.call(self._framework.stderr(_unwrapped(task)))

    def read_file(self, task: Task | TaskHandle | TaskResult | Launch, path: str) -> bytes:
        """A file of the task's sandbox, whole."""
        return self.call(self._framework.read_file(_unwrapped(task), path))

    def logs(self, task: Task | TaskHandle | TaskResult | Launch, *, path: str = "stdout") -> Iterator[bytes]:
        """What the task writes, as it writes it, until it is over."""
        return self.iterate(self._framework.logs(_unwrapped(task), path=path))

    def follow_output(self) -> "OutputFollower":
        """What tasks launched from now on write, as they write it; to be read in a thread of its own."""
        return OutputFollower(self, self.call(_returning(self._framework.follow_output)))

    def call(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine on the framework's loop and wait for it; Ctrl-C cancels it and waits for its cleaning up."""
        loop = self._loop
        if loop is None or loop.is_closed():
            coroutine.close()
            raise Closed("the framework is not open: use `with Framework(...)`")
        done: Future[_T] = Future()
        started: list[asyncio.Task[_T]] = []

        def end() -> None:
            if started:
                # Not `done.cancel()`: that would return before the cancelled task has killed what it started.
                started[0].cancel()
            else:  # Ctrl-C came before it was handed over.
                coroutine.close()
                done.set_exception(KeyboardInterrupt())

        try:
            # Within the try, as the signal may come before the wait has begun.
            loop.call_soon_threadsafe(lambda: started.append(_begin(loop, coroutine, done)))
            return done.result()
        except KeyboardInterrupt:
            loop.call_soon_threadsafe(end)
            wait({done})
            raise

    def iterate(self, items: AsyncIterator[_T]) -> Iterator[_T]:
        """Give what the framework's loop gives; leaving early ends that."""

        async def next_or_none() -> tuple[_T] | None:
            async for item in items:
                return (item,)
            return None

        try:
            while (found := self.call(next_or_none())) is not None:
                yield found[0]
        finally:
            close = getattr(items, "aclose", None)
            if close is not None:
                self.call(close())

    def _stop_loop(self) -> None:
        if self._loop is None or self._thread is None:
            return
        # What a start that was refused has begun is still on its way out.
        asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class OutputFollower:
    """An iterator over ``TaskOutput``, with ``finish`` to end it once all of the tasks that are over was given."""

    def __init__(self, framework: Framework, follower: AsyncOutputFollower) -> None:
        self._framework = framework
        self._follower = follower

    def __iter__(self) -> Iterator[TaskOutput]:
        """Begin."""
        return self._framework.iterate(aiter(self._follower))

    def finish(self) -> None:
        """End the iteration once the output of all tasks that are over was given."""
        self._framework.call(_returning(self._follower.finish))


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _begin(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, _T], done: "Future[_T]"
) -> "asyncio.Task[_T]":
    task = loop.create_task(coroutine)
    task.add_done_callback(lambda task: _hand_over(task, done))
    return task


def _hand_over(task: "asyncio.Task[_T]", done: "Future[_T]") -> None:
    if task.cancelled():
        done.set_exception(asyncio.CancelledError())
    elif (error := task.exception()) is not None:
        done.set_exception(error)
    else:
        done.set_result(task.result())


async def _within(timeout: float | str | None, awaited: Awaitable[_T]) -> _T:
    limit_ms = parse_duration("timeout", timeout)
    async with asyncio.timeout(limit_ms / 1000 if timeout is not None else None):
        return await awaited


async def _returning(function: Callable[[], _T]) -> _T:
    return function()


def _unwrapped(task: Task | TaskHandle | TaskResult | Launch) -> asynchronous.Sandboxed:
    return task._handle if isinstance(task, TaskHandle) else task  # noqa: SLF001 - its own kind
