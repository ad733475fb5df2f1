"""What the allocator keeps of one agent, and what "fits" means under the policy at hand.

Two answers to "fits": by vectors, a unit fits where every resource of it is free; by slots, where fewer than K tasks
are. Placement works on the *view* a ``Fit`` gives of an agent and of a unit, so that it is one piece of code for both.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fairlead_master.allocation.api import AgentBooks
from fairlead_proto.ids import AgentId, ClassId, FrameworkId
from fairlead_proto.patterns import steps
from fairlead_proto.resources import Vector, fits, subtract
from fairlead_proto.tasks import Constraint, Operator

HIDDEN: int = -1
"""What a column says of an agent nothing may be placed on: no need is that small."""

CONSTRAINT_EFFORT: Final = 5
"""What it takes to ask an agent for one constraint, in looks at one column of it: some 0.5 µs. Values, which are compared one by
one, and patterns come on top."""

_FINENESS: Final = 10**9
"""Parts of an agent that loads are told in."""

_VALUES_PER_LOOK: Final = 5
_PATTERN_EFFORT: Final = 40
_STEPS_PER_LOOK: Final = 12
"""Steps of a pattern, each taken for each byte of a value, if it comes to the worst."""


@dataclass(slots=True, eq=False)
class Agent:
    """An agent and its books."""

    index: int
    """Its place in every column; -1 while it waits to be numbered anew. Indexes grow with arrival, so the order by index is the
    order of arrival."""
    agent_id: AgentId
    total: Vector
    attributes: Mapping[str, str]
    charged: Vector
    """Offered or held, in all."""
    tasks: int = 0
    """Units offered or held."""
    active: bool = False
    reserved_for: tuple[FrameworkId, ClassId] | None = None
    floor: Vector = ()
    """How far below zero the free vector may be: zero, or lower where an agent shrank, reported more tasks than it
    holds, or was filled by slots."""
    tasks_ceiling: int = 0
    """How many tasks it may hold under slots although K is less: those it had when K became so."""

    def books(self) -> AgentBooks:
        """The same as a value."""
        return AgentBooks(
            total=self.total,
            charged=self.charged,
            free=self.free,
            tasks=self.tasks,
            active=self.active,
            reserved_for=self.reserved_for[0] if self.reserved_for is not None else None,
        )

    @property
    def free(self) -> Vector:
        """``total - charged``."""
        return subtract(self.total, self.charged)

    @property
    def visible(self) -> bool:
        """Whether anyone's unit may be placed on it."""
        return self.active and self.reserved_for is None

    def excuse(self) -> None:
        """What it holds now beyond what it has is no fault of a later decision."""
        self.floor = tuple(map(min, self.floor, self.free))
        self.tasks_ceiling = max(self.tasks_ceiling, self.tasks)

    def meets(self, constraints: tuple[Constraint, ...]) -> bool:
        """Whether its attributes meet them all."""
        for constraint in constraints:
            if not constraint.holds(self.attributes):
                return False
        return True

    def effort(self, constraints: tuple[Constraint, ...]) -> int:
        """What ``meets`` takes at most, in looks at one column of an agent; whatever is remembered of earlier matches."""
        effort = 0
        for constraint in constraints:
            effort += CONSTRAINT_EFFORT + len(constraint.values) // _VALUES_PER_LOOK
            if constraint.operator is Operator.MATCHES:
                length = len(self.attributes.get(constraint.attribute, "").encode())
                effort += _PATTERN_EFFORT + steps(constraint.values[0]) * length // _STEPS_PER_LOOK
        return effort

    def could_hold(self, unit: Vector, constraints: tuple[Constraint, ...]) -> bool:
        """Whether a unit might be placed on it if it were empty and reserved for nobody."""
        return self.active and self.could_hold_if_active(unit, constraints)

    def could_hold_if_active(self, unit: Vector, constraints: tuple[Constraint, ...]) -> bool:
        """The same, whether or not it is active."""
        return fits(unit, self.total) and self.meets(constraints)


class Fit:
    """The meaning of "fits": by vectors if ``slots`` is None, else by that many slots an agent."""

    def __init__(self, width: int, slots: int | None) -> None:
        self.slots = slots
        self.width = width if slots is None else 1
        """Columns of the view."""

    def size(self, agent: Agent) -> Vector:
        """The agent's view if it were empty."""
        return agent.total if self.slots is None else (self.slots,)

    def available(self, agent: Agent) -> Vector:
        """The agent's view now, whoever may use it."""
        return agent.free if self.slots is None else (self.slots - agent.tasks,)

    def view(self, unit: Vector) -> Vector:
        """The unit as a need of columns."""
        return unit if self.slots is None else (1,)

    def large_enough(self, agent: Agent, unit: Vector) -> bool:
        """Whether the agent could hold the unit if it were empty.

        Slots know no sizes, but a unit larger than the whole host cannot run there whatever the scheduler believes.
        """
        return fits(unit, agent.total)

    def fits_now(self, agent: Agent, unit: Vector) -> bool:
        """Whether the unit fits beside what the agent holds, whoever the agent is reserved for."""
        return fits(self.view(unit), self.available(agent)) and self.large_enough(agent, unit)


def load(used: Vector, total: Vector) -> int:
    """The largest used part of what there is, in billionths."""
    return max(
        [_FINENESS * amount // size for amount, size in zip(used, total, strict=True) if size > 0], default=0
    )
