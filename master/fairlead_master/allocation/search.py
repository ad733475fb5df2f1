"""Finds the agent a unit goes to; knows nothing of accounts, shares or time.

Demand classes are interned cluster-wide by unit and constraints into a ``Shape``: a thousand frameworks that want the
same kind of task search once. A shape finds its agents through the *gain log*, an append-only list of agents whose free
part grew or that joined. The shape reads each entry once, keeps what fits as candidates, and looks at no agent again
until that agent gains; within a cycle free parts only shrink, so "does not fit" stays true until then. A release
therefore costs one append, and each shape sees it when it next needs an agent.

The window rule: a unit goes to the candidate with the best score among the shape's window. Before each choice, and
whenever a candidate is dropped, a window that holds less than half of the rule's ``window`` is filled up to it from the
unread part of the log, as far as that goes. Equal scores go to the agent that was added first. Each shape starts to read
what is new at a place of its own and comes round, since a hundred shapes that all began with the same few agents would
fill them under one another's feet. A shape whose candidates are exhausted is *parked* and takes no part until an agent
that gained fits it.
"""

from bisect import bisect_left
from collections.abc import Container
from heapq import heapify, heappop, heapreplace
from typing import Final

from fairlead_master.allocation.agents import HIDDEN, Agent, Fit
from fairlead_master.allocation.api import Counters
from fairlead_master.allocation.placement import Rule
from fairlead_master.allocation.shape import Shape, ShapeKey
from fairlead_master.allocation.sizes import Sizes
from fairlead_proto.ids import AgentId
from fairlead_proto.resources import Vector
from fairlead_proto.tasks import Constraint

_READ_CHUNK: Final = 64
"""Log entries filtered at once: few enough to be wasted, many enough that the filter runs at its own speed."""

_READ_CHUNK_MAX: Final = 1_024
"""Chunks are doubled up to this while little is found, so that a full cluster is not read in many small pieces."""

_RANGES_MAX: Final = 8
"""Unread ranges of a shape before they are made one again."""

_GOLDEN: Final = 618_033_989
"""The golden section in 10^9: its multiples lie evenly in the unit interval however many there are, so shapes begin apart."""

_LOG_SLACK: Final = 1_024
"""The log is compacted at twice the number of agents and this, so that small clusters do not compact all the time."""

_ANYTHING: Final = -(2**80)
"""The least of a column that is scored and not needed: an agent may be below zero there."""


class AgentSearch:
    """All shapes and what each agent has left, under one meaning of "fits" and one placement rule."""

    def __init__(self, fit: Fit, rule: Rule, counters: Counters, *, window: int | None = None) -> None:
        self.fit = fit
        self.rule = rule
        self.changed = False
        """Whether an agent gained or a shape is wanted more since this was last set to False."""
        self.live_count = 0
        """Shapes that are wanted and not parked: while it is zero there is nothing a cycle could place."""
        self._counters = counters
        self._window = window or rule.window
        self._low = max(1, self._window // 2)
        self._agents: list[Agent | None] = []
        self._columns: list[list[int]] = [[] for _ in range(fit.width)]
        self._shapes: dict[ShapeKey, Shape] = {}
        self._private: dict[Shape, None] = {}
        self._parked_wanted: dict[Shape, None] = {}
        self._floor: list[int] = []
        """At most the least of each column that any parked and wanted shape needs; empty if unknown."""
        self._log: list[int] = []
        self._logged_at: list[int] = []
        """Of each index, where in the log it stands last; -1 for an agent that left."""
        self._woken_to = 0
        """Where the log ended when the last cycle began; no shape has read further."""
        self._stamp = 0
        self._shape_count = 0
        self._sizes = Sizes(fit.width)

    @property
    def is_wanted(self) -> bool:
        """Whether any shape is wanted, parked or not."""
        return self.live_count > 0 or bool(self._parked_wanted)

    def add(self, agent: Agent) -> None:
        """A new agent, whose index is the next free one."""
        assert agent.index == len(self._agents), f"index of {agent.agent_id}: expected {len(self._agents)}"
        self._agents.append(agent)
        self._logged_at.append(-1)
        for column in self._columns:
            column.append(HIDDEN)
        self._sizes.add()
        self._sizes.set(agent.index, self.fit.size(agent))
        self.gained(agent)

    def remove(self, agent: Agent) -> None:
        """The agent left. Its index is not used again."""
        self._agents[agent.index] = None
        self._logged_at[agent.index] = -1
        for column in self._columns:
            column[agent.index] = HIDDEN
        self._sizes.forget(agent.index)

    def shrank(self, agent: Agent) -> None:
        """The agent has less to give than before, or is hidden now."""
        if agent.visible:
            for column, amount in zip(self._columns, self.fit.available(agent), strict=True):
                column[agent.index] = amount
        else:
            for column in self._columns:
                column[agent.index] = HIDDEN

    def gained(self, agent: Agent) -> None:
        """The agent has more to give than before, or is to be seen now."""
        self.shrank(agent)
        self.changed = True
        if self._logged_at[agent.index] >= self._woken_to:
            return  # Its entry is still ahead of every reader: shapes read in cycles only.
        self._logged_at[agent.index] = len(self._log)
        self._log.append(agent.index)
        if len(self._log) > 2 * len(self._agents) + _LOG_SLACK:
            self._compact()

    def redescribed(self, agent: Agent) -> None:
        """The agent's total or attributes changed: nobody's candidate any more until it is read again."""
        self._sizes.set(agent.index, self.fit.size(agent))
        for shape in self.shapes():
            self._drop(shape, agent.index)
        self.gained(agent)

    def acquire(self, unit: Vector, constraints: tuple[Constraint, ...]) -> Shape:
        """The shape shared by all who want ``unit`` under ``constraints``. Each acquire is matched by one drop."""
        key = (unit, constraints)
        shape = self._shapes.get(key)
        if shape is None:
            self._shapes[key] = shape = self._new_shape(key, None)
        shape.references += 1
        return shape

    def acquire_private(
        self, unit: Vector, constraints: tuple[Constraint, ...], declined: Container[AgentId]
    ) -> Shape:
        """A shape for one user that keeps away from the agents ``declined`` holds, now or later."""
        shape = self._new_shape((unit, constraints), declined)
        self._private[shape] = None
        shape.references = 1
        return shape

    def drop(self, shape: Shape) -> None:
        """One user less; the last one takes the shape with it."""
        shape.references -= 1
        if shape.references == 0:
            assert shape.wanting == 0, "a shape that is wanted was dropped"
            if shape.excluded is None:
                del self._shapes[shape.key]
            else:
                del self._private[shape]

    def exclude(self, shape: Shape, agent: Agent) -> None:
        """The user of a private shape declined one more agent."""
        self._drop(shape, agent.index)

    def want(self, shape: Shape) -> None:
        """One demand more wants a unit of it."""
        shape.wanting += 1
        self.changed = True
        if shape.wanting > 1:
            return
        if shape.parked and shape.noted_to < len(self._log):
            shape.parked = False  # Agents gained while nobody wanted it, so it has to look again.
        if shape.parked:
            self._note_parked(shape)
        else:
            self.live_count += 1

    def unwant(self, shape: Shape) -> None:
        """One demand less wants a unit of it."""
        shape.wanting -= 1
        if shape.wanting == 0:
            if shape.parked:
                del self._parked_wanted[shape]
            else:
                self.live_count -= 1

    def open_cycle(self) -> list[Shape]:
        """Begin a cycle; gives the parked shapes that an agent that gained fits, parked no longer."""
        self._stamp += 1
        fresh = self._log[self._woken_to :]
        self._woken_to = len(self._log)
        if not self._parked_wanted or not self._reach_floor(fresh):
            return []
        woken = []
        for shape in self._parked_wanted:
            self._refill(shape)  # A parked shape's window is empty, so all it holds now was scored now.
            shape.stamp = self._stamp
            if shape.window:
                woken.append(shape)
        for shape in woken:
            self._unpark(shape)
        self._floor = []
        return woken

    def place(self, shape: Shape, *, takes: bool = True) -> int:
        """Take room for one unit on the best agent, or only look; its index, or -1 if none fits, which parks the shape."""
        if shape.stamp != self._stamp or not self.rule.falls or shape.scale != self._sizes.epoch:
            self._rescore(shape)
        window = shape.window
        if len(window) < self._low:
            self._refill(shape)
        checks = shape.checks
        examined = 0
        while window:
            negated, index = window[0]
            examined += 1
            now = 0.0
            for column, least, factor in checks:
                have = column[index]
                if have < least:
                    heappop(window)
                    shape.members.discard(index)
                    if len(window) < self._low:
                        self._refill(shape)
                    break
                now -= factor * have
            else:
                if now == negated:
                    self._counters.agents_examined += examined
                    if takes:
                        self._take_first(shape, index)
                    return index
                heapreplace(window, (now, index))
        self._counters.agents_examined += examined
        self._park(shape)
        return -1

    def take(self, shape: Shape, index: int) -> None:
        """Take room for one unit on an agent that ``place`` did not choose."""
        for column, amount in shape.takes:
            column[index] -= amount

    def _take_first(self, shape: Shape, index: int) -> None:
        """Take room on the agent on top of the window, and bring its entry up to date while it is at hand."""
        now = 0.0
        fits_again = True
        for column, least, factor in shape.checks:
            have = column[index]
            if least > 0:
                column[index] = have = have - least
                fits_again = fits_again and have >= least
            now -= factor * have
        if fits_again:
            heapreplace(shape.window, (now, index))
        else:
            heappop(shape.window)
            shape.members.discard(index)

    def _new_shape(self, key: ShapeKey, excluded: Container[AgentId] | None) -> Shape:
        self._shape_count += 1
        shape = Shape(key, excluded, self._shape_count)
        view = self.fit.view(shape.unit)
        size = self._sizes.largest
        # The place that needs most of a whole agent refuses most agents, so it is asked first.
        places = sorted(
            (place for place, amount in enumerate(view) if amount), key=lambda p: -view[p] / (size[p] or 1)
        )
        shape.needs = tuple([(place, view[place]) for place in places])
        shape.takes = tuple([(self._columns[place], view[place]) for place in places])
        return shape

    def _rescore(self, shape: Shape) -> None:
        if shape.scale != self._sizes.epoch:
            self._weigh(shape)
        shape.stamp = self._stamp
        fitting = self._fitting(shape, [index for _, index in shape.window])
        shape.window = self._scored(shape, fitting)
        shape.members = set(fitting)
        heapify(shape.window)

    def _scored(self, shape: Shape, indexes: list[int]) -> list[tuple[float, int]]:
        scores = [0.0] * len(indexes)
        for column, _, factor in shape.checks:
            scores = [score - factor * column[index] for score, index in zip(scores, indexes, strict=True)]
        return list(zip(scores, indexes, strict=True))

    def _fitting(self, shape: Shape, indexes: list[int]) -> list[int]:
        self._counters.agents_examined += len(indexes)
        if len(shape.takes) == 2:  # Cores and memory, as nearly always: one pass instead of two.
            (column, least), (other, other_least) = shape.takes
            return [index for index in indexes if column[index] >= least and other[index] >= other_least]
        for column, least in shape.takes:
            indexes = [index for index in indexes if column[index] >= least]
        return indexes

    def _weigh(self, shape: Shape) -> None:
        view = self.fit.view(shape.unit)
        factors = dict(self.rule.terms(view, self._sizes.largest))
        places = [place for place in range(self.fit.width) if view[place] or place in factors]
        shape.checks = tuple(
            [(self._columns[place], view[place] or _ANYTHING, factors.get(place, 0.0)) for place in places]
        )
        shape.scale = self._sizes.epoch

    def _refill(self, shape: Shape) -> None:
        if shape.scale != self._sizes.epoch:
            self._rescore(shape)
        room = self._window - len(shape.window)
        if shape.spare or shape.unread or len(self._log) - shape.noted_to > room:
            fresh = self._read_for(shape, room)
        elif shape.noted_to < len(self._log):
            # There is room for all that is new, which is how it is on a full cluster, so no order matters.
            start, shape.noted_to = shape.noted_to, len(self._log)
            fresh = dict.fromkeys([index for index in self._hits(shape, start) if index not in shape.members])
        else:
            return
        if fresh:
            shape.window += self._scored(shape, list(fresh))
            shape.members.update(fresh)
            heapify(shape.window)

    def _read_for(self, shape: Shape, room: int) -> dict[int, None]:
        """So many agents that fit and are not in the window, or all that are left to be read."""
        members = shape.members
        chunk = _READ_CHUNK
        spare = self._fitting(shape, shape.spare)
        # An agent that gained twice stands in the log twice, hence a dict and not a list.
        fresh: dict[int, None] = {}
        while True:
            while spare and room:
                index = spare.pop()
                if index not in members and index not in fresh:
                    fresh[index] = None
                    room -= 1
            if not room or not self._has_unread(shape):
                break
            spare = self._read(shape, chunk)
            chunk = min(2 * chunk, _READ_CHUNK_MAX)
        shape.spare = spare
        return fresh

    def _has_unread(self, shape: Shape) -> bool:
        if shape.noted_to < len(self._log):
            self._note_unread(shape)
        return bool(shape.unread)

    def _read(self, shape: Shape, chunk: int) -> list[int]:
        """What fits among the next ``chunk`` entries of the log, or fewer, the first one last."""
        start, end = shape.unread.pop()
        if end - start > chunk:
            shape.unread.append((start + chunk, end))
            end = start + chunk
        hits = self._hits(shape, start, end)
        hits.reverse()
        return hits

    def _hits(self, shape: Shape, start: int, end: int | None = None) -> list[int]:
        """What fits among the entries of the log from ``start`` on."""
        hits = self._fitting(shape, self._log[start:end])
        if shape.constraints or shape.excluded is not None or self.fit.slots is not None:
            hits = [index for index in hits if self._admits(shape, index)]
        return hits

    def _note_unread(self, shape: Shape) -> None:
        start, end = shape.noted_to, len(self._log)
        if len(shape.unread) >= _RANGES_MAX:
            # What was read in between is read again, which does no harm.
            start = min(first for first, _ in shape.unread)
            shape.unread = []
        middle = start + shape.number * _GOLDEN % 10**9 * (end - start) // 10**9
        shape.unread += [piece for piece in ((start, middle), (middle, end)) if piece[0] < piece[1]]
        shape.noted_to = end

    def _admits(self, shape: Shape, index: int) -> bool:
        agent = self._agents[index]
        if agent is None or (shape.excluded is not None and agent.agent_id in shape.excluded):
            return False
        return agent.meets(shape.constraints) and self.fit.large_enough(agent, shape.unit)

    def _park(self, shape: Shape) -> None:
        shape.parked = True
        self.live_count -= 1
        self._note_parked(shape)

    def _note_parked(self, shape: Shape) -> None:
        self._parked_wanted[shape] = None
        if self._floor:
            needs = dict(shape.needs)
            self._floor = [min(least, needs.get(place, 0)) for place, least in enumerate(self._floor)]

    def _unpark(self, shape: Shape) -> None:
        shape.parked = False
        del self._parked_wanted[shape]
        self.live_count += 1

    def _reach_floor(self, indexes: list[int]) -> bool:
        if not self._floor:
            needs = [dict(shape.needs) for shape in self._parked_wanted]
            self._floor = [min(need.get(place, 0) for need in needs) for place in range(self.fit.width)]
        for place, least in enumerate(self._floor):
            if least > 0:  # Where nothing is needed an agent may even be below zero.
                column = self._columns[place]
                indexes = [index for index in indexes if column[index] >= least]
        return bool(indexes)

    def _drop(self, shape: Shape, index: int) -> None:
        if index in shape.members:
            shape.members.discard(index)
            shape.window = [entry for entry in shape.window if entry[1] != index]
            heapify(shape.window)
        if index in shape.spare:
            shape.spare = [other for other in shape.spare if other != index]

    def _compact(self) -> None:
        kept = [position for position, index in enumerate(self._log) if self._logged_at[index] == position]
        self._log = [self._log[position] for position in kept]
        for position, index in enumerate(self._log):
            self._logged_at[index] = position
        for shape in (*self._shapes.values(), *self._private):
            shape.noted_to = bisect_left(kept, shape.noted_to)
            ranges = [(bisect_left(kept, start), bisect_left(kept, end)) for start, end in shape.unread]
            shape.unread = [(start, end) for start, end in ranges if start < end]
        self._woken_to = bisect_left(kept, self._woken_to)

    def shapes(self) -> list[Shape]:
        """All shapes in use."""
        return [*self._shapes.values(), *self._private]

    def check(self) -> None:
        """Raise AssertionError unless columns, counts and parked shapes are what a full recomputation says."""
        for agent in filter(None, self._agents):
            expected = self.fit.available(agent) if agent.visible else (HIDDEN,) * self.fit.width
            column = tuple(column[agent.index] for column in self._columns)
            assert column == expected, f"agent {agent.agent_id}: columns say {column}, books {expected}"
        live = [shape for shape in self.shapes() if shape.wanting and not shape.parked]
        assert self.live_count == len(live), f"{len(live)} shapes are alive, {self.live_count} counted"
        parked = [shape for shape in self.shapes() if shape.wanting and shape.parked]
        assert set(parked) == set(self._parked_wanted), "parked shapes miscounted"
        for shape in parked:
            assert not shape.window, f"shape {shape.unit} is parked with candidates"
            assert shape.noted_to <= self._woken_to, f"shape {shape.unit} read outside of a cycle"
            assert not shape.unread, f"shape {shape.unit} is parked before it read the log"
            for index in self._fitting(shape, list(range(len(self._agents)))):
                unread = self._logged_at[index] >= shape.noted_to
                assert unread or not self._admits(shape, index), (
                    f"shape {shape.unit} is parked though it fits {index}"
                )
