"""What agents have left, the log of those that gained, and how the window of a shape is filled from it.

Decides which agents a shape looks at and in what order, and nothing of when: see ``search``, which says how the whole works.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from heapq import heapify
from typing import Final

from fairlead_master.allocation.agents import CONSTRAINT_EFFORT, HIDDEN, Agent, Fit, load
from fairlead_master.allocation.api import Counters
from fairlead_master.allocation.placement import Rule
from fairlead_master.allocation.rooms import Rooms
from fairlead_master.allocation.shape import Shape
from fairlead_master.allocation.sizes import Sizes
from fairlead_master.allocation.turns import Turns
from fairlead_proto.resources import Vector, add, fits
from fairlead_proto.tasks import Operator

_READ_CHUNK: Final = 64
"""Log entries filtered at once: few enough to be wasted, many enough that the filter runs at its own speed."""

_READ_CHUNK_MAX: Final = 1_024
"""Chunks are doubled up to this while little is found, so that a full cluster is not read in many small pieces."""

SCORE_EFFORT: Final = 4
"""What it takes to score an agent and give it a place in a window, in looks at one column of it."""

CUT_SHORT: Final = -2
"""In place of an index: the cycle has looked at enough agents before it found one."""

_RARELY: Final = 8
"""Where fewer than one in so many had room of those that were read, few may have on the whole cluster."""

_CELLS_FROM: Final = 1_000
"""Entries still to be read from which on it is cheaper to ask who has room at all."""

_RANGES_MAX: Final = 8
"""Unread ranges of a shape before they are made one again."""

_GOLDEN: Final = 618_033_989
"""The golden section in 10^9: its multiples lie evenly in the unit interval however many there are, so shapes begin apart."""

_LOG_SLACK: Final = 1_024
"""The log is compacted at twice the number of agents and this, so that small clusters do not compact all the time."""

FREED_PER_CYCLE: Final = 100
"""Shapes that are freed when a cycle begins: 10 µs each, for what their windows hold. A demand drops up to a thousand at once."""

UNFREED_MAX: Final = 2_000
"""Of those that nobody uses and that are not freed yet, some 20 MB. Beyond it each that is dropped frees one."""

_ANYTHING: Final = -(2**80)
"""The least of a column that is scored and not needed: an agent may be below zero there."""


class Candidates:
    """Agents by index, in columns, and the log of gains."""

    def __init__(self, fit: Fit, rule: Rule, counters: Counters, window: int) -> None:
        self.columns: list[list[int]] = [[] for _ in range(fit.width + rule.weighs_load)]
        """Of each resource of the view, what each agent has left; ``HIDDEN`` where nothing may be placed. Where the rule weighs
        load that comes last, as whole billionths."""
        self._used: list[Vector] = []
        """Of each index, what is used there if the rule weighs load."""
        self.log: list[int] = []
        """Indexes of agents that gained or joined, in order."""
        self._places: list[int] = []
        """Of each entry, its place in the log, which it keeps: where others are dropped there are gaps."""
        self.end = 0
        """The place of the next entry."""
        self.unfreed: deque[Shape] = deque()
        """Shapes that nobody uses, held so that what their windows hold is not freed all at once."""
        self.sizes = Sizes(fit.width)
        self.rooms = Rooms(self.columns[: fit.width], counters)
        self._fit = fit
        self._rule = rule
        self._counters = counters
        self._window = window
        self._agents: list[Agent | None] = []
        self.effort_max, self.look_effort = 2.0**63, 0.0
        """How far agents examined, and looks that count for so many, may go before matching stops."""
        self._logged_at: list[int] = []
        """Of each index, its last place in the log; -1 for an agent that left."""
        self.smallest: Vector = ()
        """Of each resource, at most what any agent has in all."""

    def add(self, agent: Agent) -> None:
        """A new agent, whose index is the next free one; nothing may be placed on it yet."""
        assert agent.index == len(self._agents), f"index of {agent.agent_id}: expected {len(self._agents)}"
        self._agents.append(agent)
        self._logged_at.append(-1)
        self._used.append(())
        for column in self.columns:
            column.append(HIDDEN)
        self.sizes.add()
        self.resize(agent)

    def resize(self, agent: Agent) -> None:
        """The agent's total is another than before."""
        self.sizes.set(agent.index, self._fit.size(agent))
        self.smallest = tuple(map(min, self.smallest or agent.total, agent.total))

    def remove(self, agent: Agent) -> None:
        """The agent left. Its index is not used again."""
        if agent.index < 0:
            return
        self._agents[agent.index] = None
        self._logged_at[agent.index] = -1
        for column in self.columns:
            column[agent.index] = HIDDEN
        self.rooms.changed[agent.index] = None
        self.sizes.forget(agent.index)

    @property
    def examined_max(self) -> float:
        """How far the counter of agents examined may go, as many looks as there were by now."""
        return self.effort_max - self.look_effort * self._counters.looks

    def agents(self) -> Iterator[Agent]:
        """All agents there are, in the order of their indexes."""
        return filter(None, self._agents)

    def update(self, agent: Agent) -> None:
        """The agent has more or less left than before; nothing is known of one that waits to be numbered."""
        if agent.index < 0:
            return
        for column, amount in zip(self.columns, self.row(agent), strict=True):
            column[agent.index] = amount
        self._used[agent.index] = agent.charged
        self.rooms.changed[agent.index] = None

    def row(self, agent: Agent) -> Vector:
        """What columns say of the agent, by its books."""
        if not agent.visible:
            return (HIDDEN,) * len(self.columns)
        available = self._fit.available(agent)
        return (*available, load(agent.charged, agent.total)) if self._rule.weighs_load else available

    def add_load(self, index: int, unit: Vector) -> None:
        """A unit more is used on the agent than its books say yet, where the rule weighs load."""
        agent = self._agents[index]
        assert agent is not None, f"a unit was placed on agent number {index}, which left"
        self._used[index] = used = add(self._used[index], unit)
        self.columns[-1][index] = load(used, agent.total)

    def note_gain(self, index: int, read_to: int) -> None:
        """The agent gained; nobody has read the log beyond the place ``read_to``."""
        if self._logged_at[index] >= read_to:
            return  # Its entry is still ahead of every reader.
        self._logged_at[index] = self.end
        self.log.append(index)
        self._places.append(self.end)
        self.end += 1
        if len(self.log) > 2 * len(self._agents) + _LOG_SLACK:
            self._compact()

    def gained_since(self, index: int, read_to: int) -> bool:
        """Whether the agent stands in the log at the place ``read_to`` or later."""
        return self._logged_at[index] >= read_to

    def log_since(self, place: int) -> list[int]:
        """What stands in the log at this place and later."""
        return self.log[bisect_left(self._places, place) :]

    def _compact(self) -> None:
        """Drop the entries of agents that stand in the log again later."""
        logged_at = self._logged_at
        kept = [
            (index, place)
            for index, place in zip(self.log, self._places, strict=True)
            if logged_at[index] == place
        ]
        self.log, self._places = [index for index, _ in kept], [place for _, place in kept]

    def rescore(self, shape: Shape, stamp: int) -> None:
        """Leave out of the window what does not fit any more, and score the rest for the cycle ``stamp``."""
        if shape.scale != self.sizes.epoch:
            self._weigh(shape)
        shape.stamp = stamp
        if shape.window:
            shape.found = [index for _, index in shape.window]
            shape.window, shape.members = [], set()
        if shape.found:
            shape.found = self.fitting(shape, shape.found)
            shape.scores = self._scores(shape, shape.found)

    @staticmethod
    def heap_up(shape: Shape) -> None:
        """The window is looked at once more as it was scored: make a heap of it."""
        shape.window = list(zip(shape.scores, shape.found, strict=True))
        shape.members = set(shape.found)
        shape.found, shape.scores = [], []
        heapify(shape.window)

    def begin_window(self, shape: Shape, gained: Sequence[tuple[int, Vector]], stamp: int) -> None:
        """Fill an empty window as in the cycle ``stamp`` when these agents had so much to give; they may have less by now."""
        self._counters.agents_examined += len(gained)
        if shape.scale != self.sizes.epoch:
            self._weigh(shape)
        shape.stamp = stamp
        for index, had in gained:
            for place, least in shape.needs:
                if had[place] < least:
                    break
            else:
                score = 0.0
                for place, factor in shape.factors:
                    score -= factor * had[place]
                shape.found.append(index)
                shape.scores.append(score)

    def refill_as_of(self, shape: Shape, then: list[list[int]], stamp: int) -> None:
        """Fill an empty window from what the shape has not read, as in the cycle ``stamp`` when columns were ``then``."""
        self._weigh(shape)
        shape.stamp = stamp
        takes, checks = shape.takes, shape.checks
        shape.takes = tuple([(then[place], amount) for place, amount in shape.needs])
        shape.checks = tuple(
            [
                (then[place], least, factor)
                for (place, factor), (_, least, _) in zip(shape.factors, checks, strict=True)
            ]
        )
        self.refill(shape)
        shape.takes, shape.checks = takes, checks

    def let_go(self, shape: Shape) -> None:
        """Nobody uses the shape any more."""
        self.unfreed.append(shape)
        if len(self.unfreed) > UNFREED_MAX:
            self.unfreed.popleft()

    def free_some(self) -> None:
        """A cycle begins: free so many of the shapes that nobody uses."""
        for _ in range(min(len(self.unfreed), FREED_PER_CYCLE)):
            self.unfreed.popleft()

    @staticmethod
    def end_window(shape: Shape) -> None:
        """Let a shape have no candidates, read or not."""
        shape.window, shape.members, shape.spare, shape.unread = [], set(), [], []
        shape.found, shape.scores = [], []

    @staticmethod
    def _scores(shape: Shape, indexes: list[int]) -> list[float]:
        """Of each of them minus its score."""
        if len(shape.checks) == 2:
            (column, _, factor), (other, _, other_factor) = shape.checks
            return [-factor * column[index] - other_factor * other[index] for index in indexes]
        scores = [0.0] * len(indexes)
        for column, _, factor in shape.checks:
            scores = [score - factor * column[index] for score, index in zip(scores, indexes, strict=True)]
        return scores

    def fitting(self, shape: Shape, indexes: list[int]) -> list[int]:
        """Those that have room for a unit now."""
        self._counters.agents_examined += len(indexes)
        if len(shape.takes) == 2:  # Cores and memory, as nearly always: one pass instead of two.
            (column, least), (other, other_least) = shape.takes
            return [index for index in indexes if column[index] >= least and other[index] >= other_least]
        for column, least in shape.takes:
            indexes = [index for index in indexes if column[index] >= least]
        return indexes

    def _weigh(self, shape: Shape) -> None:
        factors = dict(self._rule.terms(shape.view, self.sizes.largest))
        view = (*shape.view, 0) if self._rule.weighs_load else shape.view
        places = [place for place, need in enumerate(view) if need or place in factors]
        shape.checks = tuple(
            [(self.columns[place], view[place] or _ANYTHING, factors.get(place, 0.0)) for place in places]
        )
        shape.factors = tuple([(place, factors.get(place, 0.0)) for place in places])
        shape.scale = self.sizes.epoch

    def refill(self, shape: Shape) -> bool:
        """Fill the window up to its size from what the shape has not read, as far as that goes.

        False if matching stopped before: the window is as it was then, and another call carries on.
        """
        if shape.scale != self.sizes.epoch:
            self.rescore(shape, shape.stamp)
        room = self._window - len(shape.window) - len(shape.found)
        if shape.is_choosy:
            matched = self._match_for(shape, room)
            if matched is None:
                return False
            fresh = matched
        elif shape.spare or shape.unread or self._unread_count(shape) > room:
            fresh = self._read_for(shape, room)
        elif shape.noted_to < self.end:
            # There is room for all that is new, which is how it is on a full cluster, so no order matters.
            start, shape.noted_to = shape.noted_to, self.end
            hits = self.fitting(shape, self.log_since(start))
            members = shape.members or shape.found
            fresh = dict.fromkeys([index for index in hits if index not in members])
        else:
            return True
        if fresh:
            self._counters.agents_examined += SCORE_EFFORT * len(fresh)
            indexes = list(fresh)
            scores = self._scores(shape, indexes)
            if shape.window:
                shape.window += zip(scores, indexes, strict=True)
                shape.members.update(fresh)
                heapify(shape.window)
            else:
                shape.found += indexes
                shape.scores += scores
        return True

    def _match_for(self, shape: Shape, room: int) -> dict[int, None] | None:
        """So many agents that fit, may have a unit and are not in the window, or all that are left to be read.

        None if matching stopped before. What was found by then is kept as spare, and the rest stays to be read: agents are read
        one by one, so that it makes no difference where matching stops. At least one is matched each time.
        """
        fresh = dict.fromkeys(self.fitting(shape, shape.spare))
        shape.spare = []
        may_stop = False
        members, counters, examined_max = shape.members or set(shape.found), self._counters, self.examined_max
        while len(fresh) < room and self._has_unread(shape):
            start, end = self._next_unread(shape, _READ_CHUNK)
            for index in dict.fromkeys(self.fitting(shape, self.log[start:end])):
                if index in members or index in fresh:
                    continue
                is_over = may_stop and counters.agents_examined >= examined_max
                if is_over or len(fresh) == room:
                    self._put_back(shape, self.log.index(index, start, end), end)
                    if is_over:
                        shape.spare = list(fresh)
                        return None
                    break
                may_stop = True
                if self._asks(shape, index):
                    fresh[index] = None
        return fresh

    def _read_for(self, shape: Shape, room: int) -> dict[int, None]:
        """So many agents that fit and are not in the window, or all that are left to be read."""
        members = shape.members or set(shape.found)
        chunk = _READ_CHUNK
        spare = self.fitting(shape, shape.spare)
        # An agent that gained twice stands in the log twice, hence a dict and not a list.
        fresh: dict[int, None] = {}
        # A shape that has read the log before has little left to read. Cells say what agents have now, and not what they had
        # as ``refill_as_of`` wants it.
        is_new = not (shape.noted_to or members or spare or shape.unread)
        may_ask = is_new and shape.takes[0][0] is self.columns[shape.needs[0][0]]
        while True:
            if len(fresh) + len(spare) <= room:
                fresh.update(dict.fromkeys([index for index in spare if index not in members]))
                spare = []
            while spare and len(fresh) < room:
                index = spare.pop()
                if index not in members:
                    fresh[index] = None
            if len(fresh) == room or not self._has_unread(shape):
                break
            if may_ask and chunk > _READ_CHUNK and len(fresh) * _RARELY < room:
                may_ask = False
                # The order in which agents are read matters only if not all of them have a place.
                everywhere = self._all_with_room(shape)
                if everywhere is not None and len(everywhere) < room:
                    fresh, shape.unread = dict.fromkeys([i for i in everywhere if i not in members]), []
                    break
            spare = self._read(shape, chunk)
            chunk = min(2 * chunk, _READ_CHUNK_MAX)
        shape.spare = spare
        return fresh

    def _all_with_room(self, shape: Shape) -> list[int] | None:
        """All agents that have room for a unit; None if it is dearer to find them than to read on, or perhaps so."""
        places = self._places
        left = sum(bisect_left(places, to) - bisect_left(places, start) for start, to in shape.unread)
        if left < min(_CELLS_FROM, 2 * len(self._agents)):
            return None
        perhaps = self.rooms.perhaps(shape.needs)
        return None if perhaps is None else self.fitting(shape, perhaps)

    def first_to_try(self, shape: Shape, order: Turns) -> int:
        """The first agent that is tried and has room, in the window or not; -1 if none has, or no two could."""
        if len(shape.found) < 2 and not self._is_behind(shape):
            return -1  # On a full cluster, of which one task ended.
        for index in order.tries():
            self._counters.agents_examined += 1
            for column, least in shape.takes:
                if column[index] < least:
                    break
            else:
                if not shape.is_choosy or self._asks(shape, index):
                    return index
        return -1

    def first_of_window(self, shape: Shape, order: Turns, low: int) -> int:
        """Of the candidates that still have room, the one whose turn comes first; -1 if there is none and nothing left to read.

        ``CUT_SHORT`` if matching stopped before.
        """
        while True:
            if len(shape.found) < low and not self.refill(shape):
                return CUT_SHORT
            shape.found = fitting = self.fitting(shape, shape.found)
            shape.scores = [0.0] * len(fitting)
            if len(fitting) >= low or not self._is_behind(shape):
                return order.first(fitting) if fitting else -1

    def _is_behind(self, shape: Shape) -> bool:
        """Whether agents that fit may be outside of the window."""
        return bool(shape.spare or shape.unread) or shape.noted_to < self.end

    def _has_unread(self, shape: Shape) -> bool:
        if shape.noted_to < self.end:
            self._note_unread(shape)
        while shape.unread:
            start, end = shape.unread[-1]
            if bisect_left(self._places, start) < bisect_left(self._places, end):
                return True
            shape.unread.pop()  # All entries there have been dropped.
        return False

    def _unread_count(self, shape: Shape) -> int:
        """How many entries a shape without unread ranges has still to read."""
        count = self.end - shape.noted_to
        return count if count <= self._window else len(self.log) - bisect_left(self._places, shape.noted_to)

    def _next_unread(self, shape: Shape, chunk: int) -> tuple[int, int]:
        """Take the next ``chunk`` entries that the shape has not read, or fewer; gives where in the log they stand now."""
        first, last = shape.unread.pop()
        start, end = bisect_left(self._places, first), bisect_left(self._places, last)
        if end - start > chunk:
            shape.unread.append((self._places[start + chunk], last))
            end = start + chunk
        return start, end

    def _put_back(self, shape: Shape, start: int, end: int) -> None:
        """Entries that stand there in the log are to be read next again."""
        shape.unread.append((self._places[start], self._places[end - 1] + 1))

    def _read(self, shape: Shape, chunk: int) -> list[int]:
        """What fits among the next ``chunk`` entries of the log, or fewer, the first one last."""
        start, end = self._next_unread(shape, chunk)
        hits = self.fitting(shape, self.log[start:end])
        hits.reverse()
        return hits

    def _asks(self, shape: Shape, index: int) -> bool:
        """As ``admits``, and counts it."""
        agent = self._agents[index]
        if agent is None:
            return False
        effort = shape.effort
        if effort is None:
            effort = CONSTRAINT_EFFORT + agent.effort(shape.constraints)
            if all(constraint.operator is not Operator.MATCHES for constraint in shape.constraints):
                shape.effort = effort
        self._counters.agents_examined += effort
        return self.admits(shape, index)

    def _note_unread(self, shape: Shape) -> None:
        first, shape.noted_to = shape.noted_to, self.end
        if len(shape.unread) >= _RANGES_MAX:
            # What was read in between is read again, which does no harm.
            first = min(start for start, _ in shape.unread)
            shape.unread = []
        start, end = bisect_left(self._places, first), len(self.log)
        middle = start + shape.number * _GOLDEN % 10**9 * (end - start) // 10**9
        if start < middle:
            shape.unread.append((first, self._places[middle]))
        if middle < end:
            shape.unread.append((self._places[middle], self.end))

    def admits(self, shape: Shape, index: int) -> bool:
        """Whether the agent may have a unit, if it has room."""
        agent = self._agents[index]
        if agent is None or (shape.excluded is not None and agent.agent_id in shape.excluded):
            return False
        return agent.meets(shape.constraints) and self._fit.large_enough(agent, shape.unit)

    def judge(self, shape: Shape) -> None:
        """Find out whether the shape is choosy. That may change whenever ``smallest`` does."""
        shape.is_choosy = (
            bool(shape.constraints)
            or shape.excluded is not None
            or (self._fit.slots is not None and not fits(shape.unit, self.smallest))
        )

    def drop(self, shape: Shape, index: int) -> None:
        """The agent is no candidate any more until it is read again."""
        if index in shape.members:
            shape.members.discard(index)
            shape.window = [entry for entry in shape.window if entry[1] != index]
            heapify(shape.window)
        if index in shape.found:
            shape.note(index, None)
        if index in shape.spare:
            shape.spare = [other for other in shape.spare if other != index]
