"""Shows the output of many tasks while they run: each attempt's two files, followed until they are complete."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from fairlead_cli.display import Display
from fairlead_cli.errors import Refused, Unreachable
from fairlead_cli.sandbox import AsyncConnection, Output, read_output

FOLLOWED_MAX: Final = 64
"""Attempts followed at once. Each holds two calls open on the master; the output of others is shown when these end."""

NOT_THERE_YET_S: Final = 0.05
"""Between looks for a sandbox that its agent has not made yet."""

REST_TIMEOUT_S: Final = 10.0
"""For the last output to arrive once all tasks are over."""


class OutputFollower:
    """Follows attempts and writes what they print to a display. Used from one event loop; close it at the end."""

    def __init__(self, connection: AsyncConnection, display: Display, framework_id: str) -> None:
        self._connection = connection
        self._display = display
        self._framework_id = framework_id
        self._slots = asyncio.Semaphore(FOLLOWED_MAX)
        self._following: dict[str, asyncio.Task[None]] = {}
        self._over: dict[str, None] = {}
        # One thread, so that what is shown keeps its order; a thread, so that a reader who pauses stops nothing else.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="display")
        self.broken: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        """Done when nothing can be shown any more, with the reason: the reader of a pipe has left."""

    def follow(self, attempt_id: str, name: str) -> None:
        """Begin to show an attempt's output under a task's name; nothing happens if that was begun before."""
        if attempt_id not in self._following:
            task = asyncio.create_task(self._follow(attempt_id, name))
            task.add_done_callback(self._check)
            self._following[attempt_id] = task

    def is_over(self, attempt_id: str) -> None:
        """Say that an attempt is over, so that a sandbox that is not there will not come."""
        self._over[attempt_id] = None

    async def show(self, text: str, *, is_final: bool = False) -> None:
        """Show a state, in order with the output."""
        await self._in_thread(lambda: self._display.state(text, is_final=is_final))

    async def note(self, text: str) -> None:
        """Print a line a person must see, in order with the output."""
        await self._in_thread(lambda: self._display.note(text))

    async def drain(self) -> None:
        """Return when everything that was begun is shown, or after a bounded time."""
        if self._following:
            _, late = await asyncio.wait(self._following.values(), timeout=REST_TIMEOUT_S)
            if late:
                tasks = f"{len(late)} task{'s' * (len(late) != 1)}"
                await self.note(f"fairlead: the output of {tasks} did not arrive in time")

    async def close(self) -> None:
        """Stop following."""
        for task in self._following.values():
            task.cancel()
        await asyncio.gather(*self._following.values(), return_exceptions=True)
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _follow(self, attempt_id: str, name: str) -> None:
        async with self._slots:
            await asyncio.gather(
                *(self._follow_file(attempt_id, name, path) for path in ("stdout", "stderr"))
            )

    async def _follow_file(self, attempt_id: str, name: str, path: str) -> None:
        output, offset = Output(self._framework_id, attempt_id, path), 0
        while True:
            is_over = attempt_id in self._over
            try:
                async for chunk in read_output(self._connection, output, offset=offset, follow=True):
                    if chunk.lost_bytes:
                        await self.note(
                            f"fairlead: {chunk.lost_bytes} bytes of {name}'s {path} were rotated away"
                        )
                    offset += chunk.lost_bytes + len(chunk.data)
                    await self._in_thread(self._display.output, name, path, chunk.data)
                await self._in_thread(self._display.end_output, name, path)
            except Refused:
                if is_over:
                    return  # it never had a sandbox
                await asyncio.sleep(NOT_THERE_YET_S)
            except Unreachable as error:
                await self.note(f"fairlead: no more output of {name}: {error.message}")
                return
            else:
                return

    def _check(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not self.broken.done():
            self.broken.set_result(error)

    async def _in_thread(self, function: Callable[..., None], *arguments: object) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
