"""The sizes of the agents of a search, and the largest of each column, by which needs are weighed."""

from fairlead_proto.resources import Vector


class Sizes:
    """Views of agents if they were empty, by index, with the largest of each column."""

    def __init__(self, width: int) -> None:
        self.largest: list[int] = [0] * width
        """Of each column, the largest size of an agent."""
        self.epoch = 0
        """Counts the changes of ``largest``."""
        self._counts: list[dict[int, int]] = [{} for _ in range(width)]
        """Of each column, how many agents have which size."""
        self._sizes: list[Vector] = []
        """Of each index, the size of the agent; empty for one that left."""

    def add(self) -> None:
        """An agent of the next index, of which no size is known."""
        self._sizes.append(())

    def set(self, index: int, size: Vector) -> None:
        """The agent has this size from now on."""
        if size == self._sizes[index]:
            return
        self.forget(index)
        self._sizes[index] = size
        for place, amount in enumerate(size):
            counts = self._counts[place]
            counts[amount] = counts.get(amount, 0) + 1
            if amount > self.largest[place]:
                self._set_largest(place, amount)

    def forget(self, index: int) -> None:
        """The agent left, or has another size now."""
        size, self._sizes[index] = self._sizes[index], ()
        for place, amount in enumerate(size):
            counts = self._counts[place]
            counts[amount] -= 1
            if counts[amount] == 0:
                del counts[amount]
                if amount == self.largest[place]:
                    self._set_largest(place, max(counts, default=0))

    def _set_largest(self, place: int, amount: int) -> None:
        if amount != self.largest[place]:
            self.largest[place] = amount
            self.epoch += 1
