"""Which output is asked for: none that is known to be empty, and all that comes while a task runs."""

import asyncio
import io
from typing import Any, cast

import pytest

from fairlead_cli.display import Display, OutputFollower
from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import TaskUsage
from fairlead_proto.v1.files_pb2 import ReadRequest, ReadResponse
from fairlead_sdk import Task, TaskResult


class Sandboxes:
    """A connection to a master whose agents have the same output of every task; counts who asks."""

    patience_s = 0.0

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.was_asked = asyncio.Event()
        self.files = self
        self.Read = None

    async def call(self, method: Any, request: ReadRequest, *, timeout_s: float) -> ReadResponse:
        self.asked.append((request.task_id, request.path))
        self.was_asked.set()
        data = request.path.encode() + b"\n"
        return ReadResponse(data=data, size=len(data), complete=True)


def a_result(usage: TaskUsage | None, *, attempts: int = 1) -> TaskResult:
    task = Task(["true"], name="t")
    return TaskResult(task=task, task_id="t1", state=TaskState.FINISHED, usage=usage, attempts=attempts)


def a_follower(sandboxes: Sandboxes, stdout: io.BytesIO) -> OutputFollower:
    display = Display(has_prefix=False, is_quiet=True, stdout=stdout, stderr=io.BytesIO())
    return OutputFollower(cast("Any", sandboxes), display, "f1-1")


@pytest.mark.parametrize(
    ("usage", "asked"),
    [
        (TaskUsage(stdout_bytes=0, stderr_bytes=0), []),
        (TaskUsage(stdout_bytes=7, stderr_bytes=0), ["stdout"]),
        (TaskUsage(stdout_bytes=0, stderr_bytes=7), ["stderr"]),
        # The figure of an older agent, which says less than it seems: also a lost task's is 0.
        (TaskUsage(sandbox_bytes=0), ["stdout", "stderr"]),
        (None, ["stdout", "stderr"]),
    ],
)
async def test_of_a_task_that_is_over_only_what_it_wrote_is_asked_for(
    usage: TaskUsage | None, asked: list[str]
) -> None:
    sandboxes, stdout = Sandboxes(), io.BytesIO()
    follower = a_follower(sandboxes, stdout)

    follower.follow("t1", "t")
    follower.is_over(a_result(usage))
    follower.follow("t1", "t")
    await follower.drain()
    await follower.close()

    assert sandboxes.asked == [("t1", path) for path in asked]
    assert stdout.getvalue() == (b"stdout\n" if "stdout" in asked else b"")


async def test_a_task_that_runs_is_followed_and_not_asked_again_at_its_end() -> None:
    sandboxes, stdout = Sandboxes(), io.BytesIO()
    follower = a_follower(sandboxes, stdout)

    follower.follow("t1", "t")
    await sandboxes.was_asked.wait()
    follower.is_over(a_result(None))
    await follower.drain()
    await follower.close()

    assert sandboxes.asked == [("t1", "stdout"), ("t1", "stderr")]
    assert stdout.getvalue() == b"stdout\n"


async def test_a_task_that_was_never_launched_has_no_output() -> None:
    sandboxes = Sandboxes()
    follower = a_follower(sandboxes, io.BytesIO())

    follower.is_over(a_result(None, attempts=0))
    await follower.drain()
    await follower.close()

    assert sandboxes.asked == []
