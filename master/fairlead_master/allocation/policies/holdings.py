"""What a policy with prices knows of an account, and of the accounts that hold multiples of one vector."""

from fairlead_master.allocation.multipliers.classes import DemandClass, Direction
from fairlead_master.allocation.policies.tournament import Contender
from fairlead_master.allocation.ranking import Ranked, Ranking
from fairlead_master.allocation.weights import Weight
from fairlead_proto.resources import Vector


class Queue(Contender):
    """Accounts that hold multiples of one direction, the one with the fewest for its entitlement first."""

    __slots__ = ("count", "direction", "factor", "head", "kind", "ranking")

    def __init__(self, direction: Direction, kind: DemandClass) -> None:
        super().__init__()
        self.direction = direction
        self.kind = kind
        """The market's class of the direction, or one of our own if nobody in the market has that direction."""
        self.factor = 0.0
        self.ranking = Ranking()
        self.head: Ranked | None = None
        """The first of those that take part."""
        self.count = 0
        """Accounts, those that rest included."""


class Account(Ranked):
    """``key`` of the ranking is the user part: multiples of the queue's direction over the entitlement."""

    __slots__ = (
        "direction",
        "grains",
        "multiples",
        "over",
        "queue",
        "step",
        "unit",
        "units",
        "used",
        "weight",
        "wish",
        "wish_units",
    )

    def __init__(self, name: str, weight: Weight, used: Vector, units: int) -> None:
        super().__init__(name, 0.0)
        self.weigh(weight)
        self.used = used
        self.units = units
        self.wish: Vector = (0,) * len(used)
        self.wish_units = 0
        self.direction: Direction | None = None
        """Of the last wish that was not zero."""
        self.queue: Queue | None = None
        self.multiples = 0
        """Of the queue's direction, in grains."""
        self.unit: Vector | None = None
        """The last unit that was charged, if what the account held stayed in its queue's direction."""
        self.step = 0
        """How many multiples of the direction that unit is, in grains."""

    def weigh(self, weight: Weight) -> None:
        """The account has this weight from now on: multiples in grains over ``over`` are multiples for it."""
        self.weight = weight
        self.over, self.grains = weight.ratio_of_all
