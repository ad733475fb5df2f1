"""A kind of unit that is looked for, shared by all who want it; ``search`` says how its candidates are found."""

from collections.abc import Container

from fairlead_proto.ids import AgentId
from fairlead_proto.resources import Vector
from fairlead_proto.tasks import Constraint

ShapeKey = tuple[Vector, tuple[Constraint, ...]]


class Shape:
    """A unit vector with its constraints, and where it might go."""

    __slots__ = (
        "checks", "constraints", "effort", "excluded", "factors", "found", "home", "is_choosy", "key", "members", "needs", "noted_to", "number", "parked", "references", "scale",
        "scores", "spare", "stamp", "takes", "unit", "unread", "view", "wanting", "window",
    )  # fmt: skip

    def __init__(self, key: ShapeKey, excluded: Container[AgentId] | None, number: int) -> None:
        self.key = key
        self.number = number
        self.unit, self.constraints = key
        self.home: object = None
        """The search that made it: another one neither finds it agents nor counts who wants it."""
        self.excluded = excluded
        """Agents its only user declined; None for a shape anyone shares."""
        self.is_choosy = False
        """Whether there may be agents with room for a unit that it may not go to."""
        self.effort: int | None = None
        """What it takes to match an agent, where that is the same for all; None if it is not, or not known yet."""
        self.references = 0
        self.wanting = 0
        """Demands that want a unit of it now."""
        self.parked = False
        self.view: Vector = ()
        """The unit as a need of every column."""
        self.needs: tuple[tuple[int, int], ...] = ()
        """The columns it needs something of, and how much; those that refuse most come first."""
        self.takes: tuple[tuple[list[int], int], ...] = ()
        """The columns a unit takes something from, and how much."""
        self.checks: tuple[tuple[list[int], int, float], ...] = ()
        """Of each column that is needed or scored: the column, the least it must hold, its factor in the score."""
        self.factors: tuple[tuple[int, float], ...] = ()
        """Of each of these columns: its place, and the factor."""
        self.scale = -1
        """By which ``Sizes.epoch`` the factors were made."""
        self.found: list[int] = []
        self.scores: list[float] = []
        """The window until it is looked at a second time in the cycle in which it was scored: indexes, and minus the score of each. Most
        shapes of one unit never have a heap."""
        self.window: list[tuple[float, int]] = []
        """The window from then on: a heap of (minus score, index)."""
        self.members: set[int] = set()
        """Indexes in the heap. Asked for membership only, never iterated."""
        self.spare: list[int] = []
        """Read from the log and found to fit then, the earliest last."""
        self.unread: list[tuple[int, int]] = []
        """Ranges of places in the log it has still to read, the next one last."""
        self.noted_to = 0
        """The place in the log where the part begins that is in no range yet. While it is parked and wanted the search may know better."""
        self.stamp = -1
        """The cycle in which the window was scored."""

    def note(self, index: int, score: float | None) -> None:
        """Of an agent that is ``found``: minus its score now; None if it is no candidate any more."""
        place = self.found.index(index)
        if score is not None:
            self.scores[place] = score
        else:
            del self.found[place], self.scores[place]
