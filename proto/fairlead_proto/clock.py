"""Milliseconds since 1970, as the host has them and such that never go backwards."""

import time


def wall_ms() -> int:
    """The host's time."""
    return time.time_ns() // 1_000_000


class SteadyClock:
    """Reads as the wall clock did when it was made, and from then on counts the time that passes.

    A wall clock that is set back or forth by an operator would otherwise fire every deadline at once, or none for an
    hour. The small difference that grows between the two does not matter: times of two hosts are never compared.
    """

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.monotonic_ns()

    def now_ms(self) -> int:
        """The current time."""
        return (time.monotonic_ns() + self._offset_ns) // 1_000_000
