"""`fairlead run` at a terminal or in a script: state, live output, exit code, Ctrl-C."""

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from fairlead_cli.display import Screen, make_display, progress_text
from fairlead_cli.errors import EXIT_INTERRUPTED
from fairlead_cli.output_directory import OutputDirectory
from fairlead_cli.printing import print_json
from fairlead_cli.rows import Row, usage
from fairlead_cli.run_request import RunRequest
from fairlead_cli.running import Run, explain, open_run, outcome_text
from fairlead_cli.sandbox import AsyncConnection, async_connected
from fairlead_cli.tables import printable
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import member_index
from fairlead_proto.v1.operator_pb2 import ListTasksRequest
from fairlead_sdk.calls import Launch
from fairlead_sdk.framework import Framework
from fairlead_sdk.task import TaskResult

EXPLAIN_AFTER_S: Final = 2.0
"""Waiting this long is worth a reason: most tasks start within milliseconds."""

EXPLAIN_INTERVAL_S: Final = 5.0
"""Between questions while it still waits; each is one small call."""

RECONNECT_TIMEOUT_MS: Final = 30_000
"""A master that is started again is back in seconds; a person who waits longer should decide whether to."""

LEAVE_S: Final = 1.0
"""How long a second signal lets the master answer that it ends the tasks: it needs milliseconds, and who waits longer for a
master that hangs does not leave at once."""

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_attached(request: RunRequest, *, is_json: bool, is_quiet: bool) -> int:
    """Run the request to its end and return the exit code of the command.

    Raises:
        Unreachable, Refused, Invalid, Failed: as their names say; nothing is left running.
    """
    return asyncio.run(_run(request, is_json=is_json, is_quiet=is_quiet))


async def _run(request: RunRequest, *, is_json: bool, is_quiet: bool) -> int:
    request.check()
    directory = OutputDirectory(Path(request.output)) if request.output else None
    if directory is not None:
        directory.check_free(request.task_names())
    if request.reconnect_timeout_ms is None:
        request = replace(request, reconnect_timeout_ms=RECONNECT_TIMEOUT_MS)
    display = make_display(has_prefix=request.is_array, is_quiet=is_quiet, is_json=is_json)
    notes = _Notes()
    async with (
        async_connected(request.master) as connection,
        open_run(request, connection, notes.say) as run,
    ):
        screen = notes.screen = Screen(display, run.framework.follow_output(), directory)
        try:
            with _interrupts(run, screen) as interrupted:
                explaining = asyncio.create_task(_explain_waiting(run, screen, connection))
                try:
                    await _finish(run, screen, connection)
                finally:
                    explaining.cancel()
                await screen.drain()
                text = final_text(run.results, run.count)
                if is_quiet and not interrupted.is_set() and _needs_words(run):
                    await screen.note(text)
                else:
                    await screen.show(text, is_final=True)
                if remark := finished_remark(run.results):
                    await screen.note(remark)
        finally:
            await notes.finish()
            await screen.close()
        if is_json:
            print_json([result_row(result, run.framework) for result in run.results_in_order()])
        return EXIT_INTERRUPTED if interrupted.is_set() else exit_code(run)


class _Notes:
    """Lines a person must see: in order with the output once there is output."""

    def __init__(self) -> None:
        self.screen: Screen | None = None
        self._shown: list[asyncio.Task[None]] = []

    def say(self, text: str) -> None:
        """Print a line on stderr."""
        text = printable(text, keep="\n")
        if self.screen is None:
            print(f"fairlead: {text}", file=sys.stderr, flush=True)
        else:
            self._shown.append(asyncio.create_task(self.screen.note(f"fairlead: {text}")))

    async def finish(self) -> None:
        """Return when all of them are printed; later ones go to stderr directly."""
        self.screen = None
        await asyncio.gather(*self._shown, return_exceptions=True)


async def _finish(run: Run, screen: Screen, connection: AsyncConnection) -> None:
    """Run to the end, or until nobody reads the output any more: then the tasks are killed as by a signal."""
    shown: set[asyncio.Task[None]] = set()
    is_bar = sys.stderr.isatty()

    def later(work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        shown.add(task)
        task.add_done_callback(shown.discard)

    def launched(launch: Launch) -> None:
        if run.count == 1:
            later(_show_place(run, screen, connection, launch.task_id))

    def retried(result: TaskResult) -> None:
        if run.count == 1:
            later(screen.note(f"fairlead: {outcome_text(result)}; the task is run again"))

    def progressed() -> None:
        # If none can be run, the refusal that follows says all there is to say.
        if run.count > 1 and run.progress.refused < run.progress.total:
            later(screen.show(progress_text(run.progress, is_bar=is_bar)))

    if is_bar:
        later(screen.show("waiting"))
    finishing = asyncio.create_task(run.finish(launched, lambda _: None, retried, progressed))
    first: set[asyncio.Future[Any]] = {finishing, screen.broken}
    await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
    if not finishing.done():
        run.kill()
    try:
        await finishing
    finally:
        await asyncio.gather(*shown, return_exceptions=True)
    if screen.broken.done():
        raise screen.broken.result()


async def _show_place(run: Run, screen: Screen, connection: AsyncConnection, attempt_id: str) -> None:
    """Show which agent has the task, unless it is over by the time that is known."""
    request = ListTasksRequest(framework_id=run.framework.framework_id, task_ids=[attempt_id])
    with suppress(click.ClickException):  # it is only for information
        answer = await connection.call(connection.operator.ListTasks, request)
        agents = [task.agent_id for task in answer.tasks]
        if agents and not run.results:
            await screen.show(f"on agent {agents[0]}")


async def _explain_waiting(run: Run, screen: Screen, connection: AsyncConnection) -> None:
    await asyncio.sleep(EXPLAIN_AFTER_S)
    while True:
        if run.progress.waiting and not run.progress.running:
            answer = await explain(connection, run.framework.framework_id)
            if answer is not None and run.progress.waiting and not run.progress.running:
                await screen.show(f"waiting: {answer.sentence}")
        await asyncio.sleep(EXPLAIN_INTERVAL_S)


@contextmanager
def _interrupts(run: Run, screen: Screen) -> Iterator[asyncio.Event]:
    """Make the first signal kill the tasks, and the second leave at once."""
    loop = asyncio.get_running_loop()
    interrupted = asyncio.Event()
    notes: list[asyncio.Task[None]] = []
    leaving: list[asyncio.Task[None]] = []

    def on_signal() -> None:
        if leaving:
            os._exit(EXIT_INTERRUPTED)
        if interrupted.is_set():
            leaving.append(asyncio.create_task(_leave(run)))
            return
        interrupted.set()
        left = run.count - len(run.results)
        run.kill()
        text = f"killing {left} task{'s' * (left != 1)}; Ctrl-C again leaves at once"
        notes.append(asyncio.create_task(screen.note(text)))

    for number in SIGNALS:
        loop.add_signal_handler(number, on_signal)
    try:
        yield interrupted
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


async def _leave(run: Run) -> None:
    """Exit as soon as the master has the framework's end, and with it sees to that of the tasks."""
    # Without it the kill may not have left this process yet, and the tasks would run until the master misses the framework.
    with suppress(TimeoutError):
        async with asyncio.timeout(LEAVE_S):
            await run.framework.close()
    # Not sys.exit: a thread may be stuck in a write to a reader who never reads, and exit waits for threads.
    os._exit(EXIT_INTERRUPTED)


def exit_code(run: Run) -> int:
    """A single task's own code, 128 + N for signal N; for several 0 if all finished, else 1."""
    if run.count > 1:
        return 0 if len(run.results) == run.count and all(result.ok for result in run.results) else 1
    if not run.results:
        return 1
    (result,) = run.results
    if result.state is TaskState.FINISHED:
        return 0
    if result.signal is not None:
        return 128 + result.signal
    return result.exit_code or 1


def final_text(results: Sequence[TaskResult], count: int) -> str:
    """What became of ``count`` tasks of which there are these results; after an interrupt some may be missing."""
    left = count - len(results)
    if left:
        were = "task was" if left == 1 else "tasks were"
        return f"{left} {were} not over in time; the master goes on killing what still runs"
    if count == 1:
        return outcome_text(results[0])
    killed = [result for result in results if result.state is TaskState.KILLED]
    failed = [result for result in results if not result.ok and result.state is not TaskState.KILLED]
    text = f"{count - len(failed) - len(killed)} of {count} tasks finished"
    text += f", {len(killed)} killed" if killed else ""
    first = next(iter([*failed, *killed]), None)
    return f"{text}; first: {first.name} {outcome_text(first)}" if first is not None else text


def finished_remark(results: Iterable[TaskResult]) -> str:
    """What the agent has to say about tasks that FINISHED nevertheless, such as output it lost; empty if nothing."""
    remarks = [
        f"{result.name}: {result.message}"
        for result in results
        if result.state is TaskState.FINISHED and result.message
    ]
    more = f" (and {len(remarks) - 1} more such tasks; see `fairlead tasks`)" if len(remarks) > 1 else ""
    return f"fairlead: {remarks[0]}{more}" if remarks else ""


def _needs_words(run: Run) -> bool:
    """Whether a single task ended in a way that its exit code does not tell."""
    ends = [result.reason for result in run.results if not result.ok]
    return run.count == 1 and any(reason not in (Reason.EXITED, Reason.NONE) for reason in ends)


def result_row(ended: TaskResult, framework: Framework) -> Row:
    """A row of ``fairlead run --json``: the keys of ``task``, from what the framework itself knows."""
    demand = ended.task.demand
    return {
        "id": ended.task_id,
        "index": member_index(ended.task_id),
        "name": ended.name,
        "framework_id": framework.framework_id,
        "framework": framework.name,
        "role": framework.role,
        "agent_id": ended.agent_id or None,
        "state": ended.state.value,
        "cpus": demand.cpus_milli / 1000,
        "mem_bytes": demand.mem_bytes,
        "disk_bytes": demand.disk_bytes,
        "gpus": demand.gpus_milli / 1000,
        "submitted_ms": ended.submitted_ms or None,
        "started_ms": ended.started_ms or None,
        "finished_ms": ended.finished_ms or None,
        "exit_code": ended.exit_code,
        "signal": ended.signal,
        "reason": ended.reason.value,
        "message": ended.message,
        "command": list(ended.command),
        "labels": dict(sorted(ended.task.labels.items())),
        "usage": None if ended.usage is None else usage(ended.usage),
    }
