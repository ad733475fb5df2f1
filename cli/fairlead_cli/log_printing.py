"""What `fairlead logs` does: find the task, wait for its start if asked to follow, print."""

import sys
from collections.abc import AsyncIterator
from contextlib import suppress

import grpc

from fairlead_cli import rows
from fairlead_cli.connection import as_expected
from fairlead_cli.errors import Refused, Unreachable
from fairlead_cli.sandbox import AsyncConnection, Chunk, Output, async_connected, read_output, tail_offset
from fairlead_cli.tables import printable
from fairlead_proto.tasks import ATTEMPTS_LOOKED_FOR, attempt_name
from fairlead_proto.v1.operator_pb2 import ListTasksRequest, ListTasksResponse, WatchRequest

UNSTARTED = ("PENDING", "STAGING", "STARTING")


async def print_log(
    master: str, task_id: str, path: str, *, framework_id: str, follow: bool, lines: int | None
) -> None:
    """Print output of a task to stdout.

    Raises:
        Refused: the task is unknown, ambiguous, or has not started and is not to be waited for.
        Unreachable: no master answers.
    """
    async with async_connected(master) as connection:
        task, version = await _find(connection, task_id, framework_id)
        while follow and task["state"] in UNSTARTED:
            await _await_change(connection, version)
            task, version = await _find(connection, task_id, task["framework_id"])
        if task["state"] == "PENDING":
            raise Refused(
                f"task {task_id} has not started; -f waits for it, and `fairlead explain {task_id}` says why"
            )
        output = Output(task["framework_id"], task_id, path)
        offset = 0 if lines is None else await tail_offset(connection, output, lines)
        await print_chunks(read_output(connection, output, offset=offset, follow=follow))
        with suppress(
            Refused, Unreachable
        ):  # the output is whole: whether there is a remark on it is an extra
            task, _ = await _find(connection, task_id, task["framework_id"])
            if (latest := await _latest_attempt(connection, task)) != task_id:
                text = f"{task_id} is {task['state']}, and was run again: `fairlead logs {latest}` prints its latest attempt"
                print(printable(f"fairlead: {text}"), file=sys.stderr)
        if task["state"] == "FINISHED" and task["message"]:
            print(printable(f"fairlead: {task_id}: {task['message']}"), file=sys.stderr)


async def print_chunks(chunks: AsyncIterator[Chunk]) -> None:
    """Print them to stdout, with the line ended wherever something is missing: halves of two lines would look like one."""
    stdout, last = sys.stdout.buffer, b"\n"
    async for chunk in chunks:
        if chunk.lost_bytes:
            if last != b"\n":
                stdout.write(b"\n")
                stdout.flush()
            last = b"\n"
            print(f"fairlead: {chunk.lost_bytes} bytes were rotated away", file=sys.stderr)
        stdout.write(chunk.data)
        stdout.flush()
        last = chunk.data[-1:] or last


async def _find(connection: AsyncConnection, task_id: str, framework_id: str) -> tuple[rows.Row, int]:
    request = ListTasksRequest(task_ids=[task_id], framework_id=framework_id)
    answer = await connection.call(connection.operator.ListTasks, request)
    assert isinstance(answer, ListTasksResponse)
    found = [rows.task(info) for info in answer.tasks]
    if not found:
        raise Refused(
            f"task {task_id} is unknown" + (f" in framework {framework_id}" if framework_id else "")
        )
    if len(found) > 1:
        owners = ", ".join(sorted(row["framework_id"] for row in found))
        raise Refused(f"task {task_id} exists in several frameworks, choose one by --framework: {owners}")
    return found[0], answer.version


async def _latest_attempt(connection: AsyncConnection, task: rows.Row) -> str:
    """The id of the last attempt the master knows of a task that did not finish; its own if there is none."""
    task_id: str = task["id"]
    if task["state"] in (*UNSTARTED, "RUNNING", "FINISHED"):
        return task_id
    names = [attempt_name(task_id, number) for number in range(2, ATTEMPTS_LOOKED_FOR + 1)]
    request = ListTasksRequest(task_ids=names, framework_id=task["framework_id"])
    answer = await connection.call(connection.operator.ListTasks, request)
    assert isinstance(answer, ListTasksResponse)
    # Ids are the framework's own: a task of another command may be called so and be no attempt of this one.
    alike = {info.task_id for info in answer.tasks if list(info.command) == task["command"]}
    return max(alike, key=names.index, default=task_id)


async def _await_change(connection: AsyncConnection, version: int) -> None:
    """Return after something happened to tasks since ``version``, or after half a minute."""
    stream = connection.operator.Watch(WatchRequest(from_version=version, kinds=["task"]), timeout=30)
    try:
        async for changes in stream:
            if changes.resync or changes.changes:
                return
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
            raise as_expected(error, connection.address) from error
    finally:
        stream.cancel()
