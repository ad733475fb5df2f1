"""A run and its master that is away, as during a restart: how long it is tried, and what a person is told meanwhile."""

from collections.abc import Awaitable, Callable
from typing import Final

from fairlead_cli.errors import EXIT_UNREACHABLE, Failed, Unreachable
from fairlead_sdk.clock import Clock, sleep
from fairlead_sdk.errors import MasterUnreachable
from fairlead_sdk.events import Connected, Disconnected

Say = Callable[[str], object]
"""Is given a line for a person."""

RETRY_MS: Final = 250
"""Between tries: a master that restarts is back in less than a second, and a try costs a packet."""


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
        return f"lost the master at {address} ({event.reason}); trying{limit} to reach it again, tasks run on"
    return f"the master at {address} is back" if event.resumed else ""


def seconds(duration_ms: int) -> str:
    """``3 s``, ``0.2 s``."""
    return f"{duration_ms / 1000:g} s"
