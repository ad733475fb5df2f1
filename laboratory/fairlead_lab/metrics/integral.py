"""Integrals over time of what changes in steps."""


class Integral:
    """The integral over time of a level that changes in steps: O(1) a change, and no work while nothing changes.

    With changes d_i at times t_i the level is L = sum d_i and the integral up to t is t L - sum d_i t_i. Whole numbers
    throughout, so nothing is lost to rounding however long the run. Time begins at 0 and never goes back.
    """

    __slots__ = ("_moment", "level")

    def __init__(self) -> None:
        self.level = 0
        self._moment = 0

    def change(self, amount: int, now_ms: int) -> None:
        """The level is higher by ``amount`` from now on."""
        self.level += amount
        self._moment += amount * now_ms

    def until(self, now_ms: int) -> int:
        """The integral from 0 to now, in level-milliseconds."""
        return self.level * now_ms - self._moment
