"""`fairlead run --detach`: the framework lives in a process of its own that outlives the shell.

The parent starts it, waits for the line on a pipe that says what became of the request, and leaves. The child keeps
a log in the state directory of its user, ``${XDG_STATE_HOME:-~/.local/state}/fairlead/detached``, named after its
framework and master: ids of frameworks are one master's own.
"""

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from fairlead_cli.errors import EXIT_REFUSED, EXIT_UNREACHABLE, Failed, Invalid
from fairlead_cli.printing import print_json
from fairlead_cli.run_request import RunRequest
from fairlead_cli.running import Run, explain, open_run, outcome_text
from fairlead_cli.sandbox import AsyncConnection, async_connected
from fairlead_cli.state_directory import state_directory
from fairlead_sdk.calls import Launch
from fairlead_sdk.task import TaskResult

ACCEPTED_TIMEOUT_S: Final = 60.0
"""For the child to start, register, and have its demand answered: a second, on a host that swaps many."""

LOOK_INTERVAL_S: Final = 0.03
"""Between looks whether the demand is in force: a person waits for it."""

_UNFIT_FOR_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]+")

_log = logging.getLogger(__name__)


def log_directory() -> Path:
    """Where detached runs of this user keep their logs."""
    return state_directory() / "detached"


def log_name(framework_id: str, master: str) -> str:
    """File name of a detached run's log: ``f1-2@127.0.0.1-5050.log``."""
    return f"{framework_id}@{_UNFIT_FOR_NAMES.sub('-', master)}.log"


def run_detached(request: RunRequest, *, is_json: bool) -> int:
    """Start the request in a process of its own and print its framework's id once its demand is in force.

    Returns:
        0, or the exit code of the error that the child found and that was printed; then nothing is left running.

    Raises:
        Failed: the child could not start, or said nothing in time.
    """
    request.check()
    answer = _start_child(request)
    if "error" in answer:
        print(f"fairlead: {answer['error']}", file=sys.stderr)
        code = answer["exit_code"]
        assert isinstance(code, int)
        return code
    if is_json:
        print_json({"framework_id": answer["framework_id"], "log": answer["log"]})
    else:
        print(answer["framework_id"])
        print(f"fairlead: goes on in the background of this host; log: {answer['log']}", file=sys.stderr)
    return 0


def _start_child(request: RunRequest) -> dict[str, Any]:
    try:
        log_directory().mkdir(parents=True, exist_ok=True, mode=0o700)
        log = tempfile.NamedTemporaryFile(  # noqa: SIM115 - the child goes on writing to it
            dir=log_directory(), prefix="starting-", suffix=".log", delete=False
        )
    except OSError as error:
        raise Failed(f"cannot write the log of a detached run: {error}; set XDG_STATE_HOME") from error
    reader, writer = os.pipe()
    with log, os.fdopen(reader) as answers:
        child = subprocess.Popen(
            [sys.executable, "-m", "fairlead_cli.detached_run", str(writer), log.name],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            pass_fds=[writer],
            start_new_session=True,
            cwd="/",
            env={**os.environ, "GRPC_ENABLE_FORK_SUPPORT": "0"},
        )
        os.close(writer)
        assert child.stdin is not None
        with suppress(BrokenPipeError), child.stdin:
            # By a pipe and not as arguments: what is in the environment of a task is not for everyone's eyes.
            child.stdin.write(json.dumps(asdict(request)).encode())
        for line in answers:
            answer = json.loads(line)
            assert isinstance(answer, dict)
            if "note" not in answer:
                # The child is init's from now on; nobody here will wait for it.
                child.returncode = 0
                return answer
            print(f"fairlead: {answer['note']}", file=sys.stderr, flush=True)
    raise Failed(f"the detached run died at its start; see {log.name}")


class Parent:
    """The process that waits to hear how the run began."""

    def __init__(self, pipe: int) -> None:
        """Args: the descriptor to write to; it is ours from now on."""
        self._pipe: int | None = pipe
        self.is_gone = False
        """Whether it ended before it was told: nobody has heard of the run then, and nobody will end it."""
        os.set_inheritable(pipe, False)

    def watch(self, task: asyncio.Task[None]) -> None:
        """Cancel a task of the running loop when the parent ends before it was told how the run began."""
        pipe = self._pipe
        assert pipe is not None, "it is told only later"
        loop = asyncio.get_running_loop()

        def ended() -> None:
            loop.remove_reader(pipe)
            self.is_gone = True
            task.cancel()

        # There is nothing to read from this end of a pipe: it becomes readable when the other one is closed.
        loop.add_reader(pipe, ended)

    def note(self, text: str) -> None:
        """Log a line for people, and have it printed by the parent as long as that waits."""
        _log.warning("%s", text)
        self._write({"note": text})

    def tell(self, answer: dict[str, Any]) -> None:
        """Say how the run began, the first time; the parent does not wait for a second."""
        self._write(answer)
        if self._pipe is not None:
            asyncio.get_running_loop().remove_reader(self._pipe)
            os.close(self._pipe)
            self._pipe = None

    def _write(self, answer: dict[str, Any]) -> None:
        if self._pipe is not None:
            with suppress(OSError):  # the parent is gone
                os.write(self._pipe, json.dumps(answer).encode() + b"\n")


async def run_child(request: RunRequest, parent: Parent, log: Path) -> None:
    """The child's life: run the request to its end, having told the parent how it began; none if that has ended.

    Args:
        request: what to run.
        parent: told how it began.
        log: our log, renamed after the framework once that has an id.
    """
    living = asyncio.current_task()
    assert living is not None
    parent.watch(living)
    async with async_connected(request.master) as connection:
        try:
            async with open_run(request, connection, parent.note) as run:
                framework_id = run.framework.framework_id
                log = log.rename(log.with_name(log_name(framework_id, request.master)))
                await _finish(
                    run, connection, lambda: parent.tell({"framework_id": framework_id, "log": str(log)})
                )
                _log.info("over: %d task%s", len(run.results), "s" * (len(run.results) != 1))
        except click.ClickException as error:
            _log.error("%s", error.format_message())
            parent.tell({"error": error.format_message(), "exit_code": error.exit_code})
            if error.exit_code in (EXIT_REFUSED, EXIT_UNREACHABLE) or isinstance(error, Invalid):
                _remove_if_unborn(log)
        except asyncio.CancelledError:
            if not parent.is_gone:
                raise
            _log.error(
                "given up: the command that started this run ended before it could be told how the run began"
            )


async def _finish(run: Run, connection: AsyncConnection, on_accepted: Callable[[], None]) -> None:
    finishing = asyncio.create_task(run.finish(_log_launch, _log_result, _log_retry, lambda: None))
    try:
        await _await_acceptance(run, connection, finishing)
        on_accepted()
        await finishing
    finally:
        finishing.cancel()
        await asyncio.gather(finishing, return_exceptions=True)


async def _await_acceptance(run: Run, connection: AsyncConnection, finishing: asyncio.Task[None]) -> None:
    """Return when the demand is in force; raises what ``finishing`` raised if that came first.

    Raises:
        Failed: it was neither taken nor refused in time.
    """
    try:
        async with asyncio.timeout(ACCEPTED_TIMEOUT_S):
            while not finishing.done():
                now = run.progress
                if now.done == now.total:
                    break  # Be it that all fit nowhere, which `finishing` says.
                if now.running or now.done or await explain(connection, run.framework.framework_id):
                    return
                await asyncio.sleep(LOOK_INTERVAL_S)
    except TimeoutError:
        raise Failed(
            f"the master at {connection.address} did not answer the demand of framework "
            f"{run.framework.framework_id} within {ACCEPTED_TIMEOUT_S:g} s"
        ) from None
    await finishing


def _log_launch(launch: Launch) -> None:
    _log.info("launched: %s as %s", launch.name, launch.task_id)


def _log_result(result: TaskResult) -> None:
    _log.info("%s", f"{result.state.value.lower()}: {result.task_id} {result.message}".rstrip())


def _log_retry(result: TaskResult) -> None:
    _log.warning("%s: %s, run again: %s", result.reason.value, result.task_id, outcome_text(result))


def _remove_if_unborn(log: Path) -> None:
    """A run that never was leaves no log: its error was told to the person who asked."""
    if log.name.startswith("starting-"):
        log.unlink(missing_ok=True)


def main() -> None:
    """Entry of the child: the pipe's number and the log's name as arguments, the request on stdin."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        request = RunRequest(**json.load(sys.stdin))
    except ValueError:
        _log.error("given up: the command that started this run ended before it could say what to run")
        return
    asyncio.run(run_child(request, Parent(int(sys.argv[1])), Path(sys.argv[2])))


if __name__ == "__main__":
    main()
