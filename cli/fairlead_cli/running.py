"""Runs a request's tasks through the SDK and says what happens to them, and to their master; attached and detached runs build on it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from fairlead_cli.errors import EXIT_UNREACHABLE, Failed, Refused, Unreachable
from fairlead_cli.run_request import RunRequest
from fairlead_cli.sandbox import AsyncConnection
from fairlead_proto.task_state import TaskState
from fairlead_proto.v1.operator_pb2 import (
    ExplainRequest,
    Explanation,
    GetClusterRequest,
    ListRequest,
    WaitReason,
)
from fairlead_sdk import errors as sdk_errors
from fairlead_sdk.arrays import Array
from fairlead_sdk.clock import Clock, LoopClock, sleep
from fairlead_sdk.errors import MasterUnreachable
from fairlead_sdk.events import Connected, Disconnected
from fairlead_sdk.framework import Framework
from fairlead_sdk.handles import OnLaunch
from fairlead_sdk.task import Progress, Task, TaskResult

Say = Callable[[str], object]
"""Is given a line for a person."""

GRACE_DEFAULT_MS: Final = 5_000
"""Of tasks that say nothing: the agents' own, as the schema states it."""

KILL_MARGIN_S: Final = 10.0
"""Beyond the grace period: how long interrupted tasks may take to be over."""

RETRY_MS: Final = 250
"""Between tries: a master that restarts is back in less than a second, and a try costs a packet."""


_FOR_PROGRAMS: Final = "; start a new one without an id"
"""What a master adds where a framework comes back that is over."""


class FrameworkLost(Failed):
    """The master was away, and does not know the framework now."""

    def __init__(self, framework_id: str) -> None:
        """Args: which framework."""
        super().__init__(
            f"framework {framework_id} ended: the master that answers now does not know it. It may have been started without the "
            "state of the one before (`fairlead master --state`). Agents end the tasks; run them again"
        )


class MasterLost(Failed):
    """A master that was there went away, and was not back in time."""

    exit_code = EXIT_UNREACHABLE

    def __init__(self, framework_id: str, error: MasterUnreachable) -> None:
        """Args: whose master it was, and what the session said at last."""
        super().__init__(
            f"framework {framework_id} ended: {error}; tasks that run go on until the master has missed the framework "
            f"for an hour: `fairlead kill --framework {framework_id}` ends them"
        )


async def reach(ask: Callable[[], Awaitable[object]], *, wait_ms: int, clock: Clock, say: Say) -> None:
    """Return when the master answers; a call that was begun in time is waited for.

    Args:
        ask: one call to the master.
        wait_ms: for how long to try again; 0 is once.
        clock: the time that is waited by.
        say: told once that the master does not answer and is tried again.

    Raises:
        Unreachable: it did not answer in that time.
    """
    deadline_ms = clock.now_ms() + wait_ms
    is_told = False
    while True:
        try:
            await ask()
        except Unreachable as error:
            left_ms = deadline_ms - clock.now_ms()
            if left_ms <= 0:
                raise
            if not is_told:
                say(
                    f"cannot reach the master at {error.address} ({error.detail}); trying for {seconds(wait_ms)}"
                )
                is_told = True
            await sleep(clock, min(RETRY_MS, left_ms))
        else:
            return


def session_text(event: Connected | Disconnected, address: str, patience_ms: int | None) -> str:
    """What a person is told when the session breaks or stands again; empty for its first beginning.

    Args:
        event: what happened.
        address: of the master.
        patience_ms: how long it is tried from now on; None is as long as the master keeps the framework.
    """
    if isinstance(event, Disconnected):
        limit = "" if patience_ms is None else f" for {seconds(patience_ms)}"
        return f"lost the master at {address} ({event.reason}); trying{limit} to reach it again, tasks run on meanwhile"
    return f"the master at {address} is back" if event.resumed else ""


def seconds(duration_ms: int) -> str:
    """``3 s``, ``0.2 s``."""
    return f"{duration_ms / 1000:g} s"


class Run:
    """The tasks of one request in one framework. Made by ``open_run``.

    Attributes:
        framework: that they run in.
        work: one task, or an array of them.
        count: of the tasks.
        results: so far, as they came.
        progress: how many are where.
    """

    def __init__(self, framework: Framework, work: Task | Array) -> None:
        self.framework = framework
        self.work = work
        self.count = (work.count or 0) if isinstance(work, Array) else 1
        self.results: list[TaskResult] = []
        self.progress = Progress(waiting=self.count, running=0, finished=0, failed=0, retried=0)
        self._killed = asyncio.Event()

    def results_in_order(self) -> list[TaskResult]:
        """Those there are, in the order of the indices."""
        indices = self.work.indices if isinstance(self.work, Array) else None
        place = {index: place for place, index in enumerate(indices or ())}
        by_index = [(result.member.index if result.member else 0, result) for result in self.results]
        return [result for _, result in sorted(by_index, key=lambda item: place.get(item[0], item[0]))]

    async def finish(
        self,
        on_launched: OnLaunch,
        on_result: Callable[[TaskResult], None],
        on_retry: Callable[[TaskResult], None],
        on_progress: Callable[[], None],
    ) -> None:
        """Return when every task is over; after ``kill`` in bounded time.

        Args:
            on_launched: given an attempt that an agent has.
            on_result: given what became of a task.
            on_retry: given what became of an attempt whose task is run again for it.
            on_progress: called after changes.

        Raises:
            Refused: no task fits on any agent, or the master will not have the demand.
            MasterLost: the master stayed away for too long.
            FrameworkLost: the master does not know the framework any more.
        """

        def progressed(progress: Progress) -> None:
            self.progress = progress
            on_progress()

        async def collect() -> None:
            framework, work = self.framework, self.work
            arriving = (
                framework.submit_array(work, on_launch=on_launched, on_progress=progressed, on_retry=on_retry)
                if isinstance(work, Array)
                else framework.as_completed(
                    [work], on_launch=on_launched, on_progress=progressed, on_retry=on_retry
                )
            )
            async for result in arriving:
                self.results.append(result)
                on_result(result)

        collecting = asyncio.create_task(collect())
        killed = asyncio.create_task(self._killed.wait())
        try:
            await asyncio.wait({collecting, killed}, return_when=asyncio.FIRST_COMPLETED)
            if not collecting.done():
                grace_ms = self._template.grace_period_ms or GRACE_DEFAULT_MS
                await asyncio.wait({collecting}, timeout=grace_ms / 1000 + KILL_MARGIN_S)
        finally:
            killed.cancel()
            if not collecting.done():
                collecting.cancel()
                await asyncio.wait({collecting}, timeout=KILL_MARGIN_S)
        if not collecting.cancelled() and collecting.done():
            _raise_expected(collecting.exception(), self.framework.framework_id)
        _raise_if_none_fits(self.results)

    def kill(self) -> None:
        """Have all tasks that are not over ended; ``finish`` goes on until they are."""
        self._killed.set()
        if isinstance(self.work, Array):
            self.framework.request_array_kill(self.work.template.task_id)
        else:
            self.framework.request_kill([self.work.task_id])

    @property
    def _template(self) -> Task:
        return self.work.template if isinstance(self.work, Array) else self.work


def outcome_text(result: TaskResult) -> str:
    """How an attempt ended, and where: ``failed on agent a1-1 after 0.2 s: exit code 3``."""
    where = f" on agent {result.agent_id}" if result.agent_id else ""
    took_ms = result.finished_ms - result.started_ms
    took = f" after {took_ms / 1000:.1f} s" if result.started_ms and took_ms >= 0 else ""
    if result.state is TaskState.FINISHED:
        return f"finished{where}{took}"
    why = result.message or (f"exit code {result.exit_code}" if result.exit_code is not None else "")
    reason = result.reason.value.lower().replace("_", " ")
    return f"{result.state.value.lower()}{where}{took}: {why or reason}"


def _raise_if_none_fits(results: Sequence[TaskResult]) -> None:
    """When all were refused, a person is told once what is missing, and not what became of each."""
    refusals = [result.refusal for result in results if result.refusal is not None]
    if refusals and len(refusals) == len(results):
        raise Refused(refusals[0].detail)


def _raise_expected(error: BaseException | None, framework_id: str) -> None:
    match error:
        case None:
            return
        case sdk_errors.Refused():
            raise Refused(error.detail or str(error)) from error
        case sdk_errors.MasterUnreachable():
            raise MasterLost(framework_id, error) from error
        case sdk_errors.FrameworkExpired():
            text = str(error)
            if text.startswith(f"framework {framework_id} is not known"):
                raise FrameworkLost(framework_id) from error
            raise Failed(text.removesuffix(_FOR_PROGRAMS)) from error
        case sdk_errors.FairleadError():
            text = str(error)
            raise Failed(
                text if framework_id in text else f"framework {framework_id} ended: {text}"
            ) from error
        case _:
            raise error


@asynccontextmanager
async def open_run(request: RunRequest, connection: AsyncConnection, say: Say) -> AsyncIterator[Run]:
    """A framework with the request's tasks, not started yet; leaving the context ends it with all that still runs.

    Args:
        request: what to run.
        connection: with its master.
        say: told when the master is away, and when it is back.

    Raises:
        Unreachable: no master answers in the time that the request allows.
        Refused: the master will not have the framework.
        Invalid: the request cannot be.
    """

    def told(event: Connected | Disconnected) -> None:
        if text := session_text(event, request.master, request.reconnect_timeout_ms):
            say(text)

    # By calls of ours and not by the session's own tries, which say nothing meanwhile.
    await reach(
        lambda: connection.call(connection.operator.GetCluster, GetClusterRequest()),
        wait_ms=request.wait_ms,
        clock=LoopClock(),
        say=say,
    )
    patience_ms = request.reconnect_timeout_ms
    framework = Framework(
        request.framework_name,
        master=request.master,
        role=request.role,
        weight=request.weight,
        reconnect_timeout=None
        if patience_ms is None
        else max(1, patience_ms) / 1000,  # 0 would be the default
        on_session=told,
    )
    try:
        await framework.start()
    except sdk_errors.MasterUnreachable as error:
        raise Unreachable(request.master, error.cause) from error
    except sdk_errors.Refused as error:
        raise Refused(error.detail or str(error)) from error
    try:
        if request.weight is not None:
            await _say_if_weight_is_ignored(framework.role, request.weight, connection, say)
        yield Run(framework, request.make_work(framework.framework_id))
    finally:
        await framework.close()


async def _say_if_weight_is_ignored(role: str, weight: float, connection: AsyncConnection, say: Say) -> None:
    """A framework's weight counts for a role that has none; what an operator or another framework has set stands."""
    request = ListRequest()
    while True:
        answer = await connection.call(connection.operator.ListRoles, request)
        for info in answer.roles:
            if info.role == role and info.weight != weight:
                say(
                    f"role {role} has weight {info.weight:g} already, and --weight {weight:g} does not count; "
                    f"`fairlead weight set {role} {weight:g}` changes it"
                )
        if not answer.next_page_token:
            return
        request = ListRequest(page_token=answer.next_page_token)


async def explain(connection: AsyncConnection, id: str) -> Explanation | None:
    """Why a framework or task waits; None if it does not, or if nobody can say now."""
    try:
        answer = await connection.call(connection.operator.Explain, ExplainRequest(id=id))
    except (Unreachable, Refused, Failed):
        return None
    assert isinstance(answer, Explanation)
    idle = (WaitReason.WAIT_REASON_NOT_WAITING, WaitReason.WAIT_REASON_FRAMEWORK_AWAY)
    return None if answer.reason in idle else answer
