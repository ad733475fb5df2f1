"""Finds the agent a unit goes to; knows nothing of accounts, shares or time.

Demand classes are interned cluster-wide by unit and constraints into a ``Shape``: a thousand frameworks that want the
same kind of task search once. A shape finds its agents through the *gain log*, an append-only list of agents whose free
part grew or that joined. The shape reads each entry once, keeps what fits as candidates, and looks at no agent again
until that agent gains; within a cycle free parts only shrink, so "does not fit" stays true until then. A release
therefore costs one append, and each shape sees it when it next needs an agent.

The window rule: a unit goes to the candidate with the best score among the shape's window. Before each choice, and
whenever a candidate is dropped, a window that holds less than half of the rule's ``window`` is filled up to it from the
unread part of the log, as far as that goes. Equal scores go to the agent that was added first. Where the rule goes by turns, a few agents are tried
in their order first, whether or not they are in the window. Each shape starts to read what is new at a different offset
and comes round, so that a hundred shapes do not contend for the same few agents. A shape whose candidates are exhausted is *parked* and takes no part until an agent
that gained fits it.

On a full cluster few agents gain at a time, and many parked shapes would take what they gained. Those are *woken*: they take
part again, and are given their candidates, the agents they fitted then, once they are asked. When the agents that gained
have room for none of them any more, all that were woken are parked at once. A task that ends so costs a comparison for
each parked shape and a search for the first.
"""

from bisect import bisect_left
from collections.abc import Container
from heapq import heappop, heapreplace

from fairlead_master.allocation import turns
from fairlead_master.allocation.agents import Agent, Fit
from fairlead_master.allocation.api import Counters
from fairlead_master.allocation.candidates import CUT_SHORT, Candidates
from fairlead_master.allocation.placement import Rule
from fairlead_master.allocation.shape import Shape, ShapeKey
from fairlead_master.allocation.turns import Turns
from fairlead_proto.ids import AgentId
from fairlead_proto.resources import Vector
from fairlead_proto.tasks import Constraint


class AgentSearch:
    """All shapes and what each agent has left, under one meaning of "fits" and one placement rule."""

    def __init__(self, fit: Fit, rule: Rule, counters: Counters, *, window: int | None = None) -> None:
        self.fit = fit
        self.rule = rule
        self.changed = False
        """Whether an agent gained or a shape is wanted more since this was last set to False."""
        self.is_open = False
        """Whether a cycle is under way that may be carried on: no agent has gained since it was opened."""
        self.live_count = 0
        """Shapes that are wanted and not parked: while it is zero there is nothing a cycle could place."""
        self._counters = counters
        window = window or rule.window
        self._window = window
        self._low = max(1, window // 2)
        self._candidates = Candidates(fit, rule, counters, window)
        self._columns = self._candidates.columns
        # Handed on as they are, since a call between costs as much as some of them.
        self._rescore = self._candidates.rescore
        self._refill = self._candidates.refill
        self._shapes: dict[ShapeKey, Shape] = {}
        self._private: dict[Shape, None] = {}
        self._parked_wanted: dict[Shape, None] = {}
        self._woken: dict[Shape, None] = {}
        """Shapes that were parked and might fit, which have not been asked."""
        self._asked: list[Shape] = []
        """Those that have been: their candidates are no others than ``_gained``."""
        self._gained: list[tuple[int, Vector]] = []
        """Agents that gained, with what they had to give when shapes were woken."""
        self._gainers: set[int] = set()
        """Those that have room for the least of what woken shapes need."""
        self._gainers_floor: list[tuple[list[int], int]] = []
        """That least: columns and amounts."""
        self.is_spent = False
        """Whether they have room for none any more, so that ``park_woken`` should be called."""
        self._floor: list[int] = []
        """At most the least of each column that any parked and wanted shape needs; empty if unknown."""
        self._woken_to = 0
        """Where the log ended when the last cycle began; no shape has read further."""
        self._parked_to = 0
        """To where parked and wanted shapes have read the log at least, whatever they say."""
        self._stamp = 0
        self._falls = rule.falls
        self._weighs_load = rule.weighs_load
        self._turns = turns.make(rule)
        self._shape_count = 0

    @property
    def is_wanted(self) -> bool:
        """Whether any shape is wanted, parked or not."""
        return self.live_count > 0 or bool(self._parked_wanted)

    def add(self, agent: Agent) -> None:
        """A new agent, whose index is the next free one."""
        smallest = self._candidates.smallest
        self._candidates.add(agent)
        if self._turns is not None:
            self._turns.add(agent.index)
        self._judge_again(smallest)
        self.gained(agent)

    def remove(self, agent: Agent) -> None:
        """The agent left. Its index is not used again."""
        self._candidates.remove(agent)

    def shrank(self, agent: Agent) -> None:
        """The agent has less to give than before, or is hidden now."""
        self._candidates.update(agent)

    def gained(self, agent: Agent) -> None:
        """The agent has more to give than before, or is to be seen now."""
        self._candidates.update(agent)
        self.changed, self.is_open = True, False
        if self._candidates.note_gain(agent.index, self._woken_to):
            self._compact()

    def redescribed(self, agent: Agent) -> None:
        """The agent's total or attributes changed: nobody's candidate any more until it is read again."""
        smallest = self._candidates.smallest
        self._candidates.resize(agent)
        self._judge_again(smallest)
        for shape in self.shapes():
            self._candidates.drop(shape, agent.index)
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
        self._candidates.drop(shape, agent.index)

    def want(self, shape: Shape) -> None:
        """One demand more wants a unit of it."""
        shape.wanting += 1
        self.changed = True
        if shape.wanting > 1:
            return
        if shape.parked and shape.noted_to < len(self._candidates.log):
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
                shape.noted_to = max(shape.noted_to, self._parked_to)
            else:
                self.live_count -= 1
                if shape in self._woken:
                    self._look(shape)

    def match_until(self, agents_examined: int) -> None:
        """Stop matching agents once the counter of those examined has come so far."""
        self._candidates.examined_max = agents_examined

    def open_cycle(self) -> list[Shape]:
        """Begin a cycle; gives the parked shapes that an agent that gained might fit, parked no longer."""
        self.is_open = True
        self._end_waking()
        self._stamp += 1
        fresh = self._candidates.log[self._woken_to :]
        self._woken_to = len(self._candidates.log)
        if not self._parked_wanted:
            return []
        gainers = self._reach_floor(fresh)
        if not gainers:
            return []
        woken = self._wake(gainers)
        self._floor = []
        return woken

    def place(self, shape: Shape, *, takes: bool = True) -> int:
        """Take room for one unit on the best agent, or only look; its index, or -1 if none fits, which parks the shape.

        ``CUT_SHORT`` if matching stopped before that was known: asked again, it carries on.
        """
        if self._turns is not None:
            return self._place_by_turns(shape, self._turns, takes=takes)
        if shape.stamp != self._stamp or not self._falls:
            if shape in self._woken:
                self._look(shape)
            if shape.stamp != self._stamp or not self._falls:
                self._rescore(shape, self._stamp)
        window = shape.window
        if len(window) < self._low and not self._refill(shape):
            return CUT_SHORT
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
                    if len(window) < self._low and not self._refill(shape):
                        self._counters.agents_examined += examined
                        return CUT_SHORT
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

    def _place_by_turns(self, shape: Shape, order: Turns, *, takes: bool) -> int:
        """As ``place``, on the agent whose turn it is."""
        if shape in self._woken:
            self._look(shape)
        index = self._candidates.first_to_try(shape, order)
        if index < 0:
            index = self._candidates.first_of_window(shape, order, self._low)
        if index == CUT_SHORT:
            return index
        if index < 0:
            self._park(shape)
        elif takes:
            self.take(shape, index)
            order.took(index)
            if index in self._gainers:
                self._note_taken(index)
        return index

    def take(self, shape: Shape, index: int) -> None:
        """Take room for one unit on an agent that ``place`` did not choose."""
        for column, amount in shape.takes:
            column[index] -= amount
        if self._weighs_load:
            self._candidates.add_load(index, shape.unit)

    def _take_first(self, shape: Shape, index: int) -> None:
        """Take room on the agent on top of the window, and bring its entry up to date while it is at hand."""
        if self._weighs_load:
            self._candidates.add_load(index, shape.unit)
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
        if index in self._gainers:
            self._note_taken(index)

    def _new_shape(self, key: ShapeKey, excluded: Container[AgentId] | None) -> Shape:
        self._shape_count += 1
        shape = Shape(key, excluded, self._shape_count)
        shape.view = view = self.fit.view(shape.unit)
        size = self._candidates.sizes.largest
        # The place that needs most of a whole agent refuses most agents, so it is asked first.
        places = sorted(
            (place for place, amount in enumerate(view) if amount), key=lambda p: -view[p] / (size[p] or 1)
        )
        shape.needs = tuple([(place, view[place]) for place in places])
        shape.takes = tuple([(self._columns[place], view[place]) for place in places])
        self._candidates.judge(shape)
        return shape

    def _judge_again(self, smallest: Vector) -> None:
        """After agents changed: the smallest sizes were these before."""
        if smallest != self._candidates.smallest:
            for shape in self.shapes():
                self._candidates.judge(shape)

    # --- parked and woken shapes --------------------------------------------------------------------------------

    def _park(self, shape: Shape) -> None:
        shape.parked = True
        self.live_count -= 1
        self._note_parked(shape)

    def _note_parked(self, shape: Shape) -> None:
        self._parked_wanted[shape] = None
        if self._floor:
            self._floor = list(map(min, self._floor, shape.view))

    def _reach_floor(self, indexes: list[int]) -> list[int]:
        """Those that have room for the least that parked shapes need of each column."""
        if not self._floor:
            views = [shape.view for shape in self._parked_wanted]
            self._floor = list(map(min, *views)) if len(views) > 1 else list(views[0])
        for place, least in enumerate(self._floor):
            if least > 0:  # Where nothing is needed an agent may even be below zero.
                column = self._columns[place]
                indexes = [index for index in indexes if column[index] >= least]
        return indexes

    def _wake(self, gainers: list[int]) -> list[Shape]:
        """Let parked shapes that may fit on one of the agents take part; gives them."""
        parked, self._parked_wanted = self._parked_wanted, {}
        self._counters.agents_examined += len(parked)
        read_to, self._parked_to = self._parked_to, self._woken_to
        # More might not all have a place in a window, and then it matters which of them are read first.
        may_wait = len(gainers) < self._window
        gained = list(zip(*[[column[index] for index in gainers] for column in self._columns], strict=True))
        most = list(map(max, *gained)) if len(gained) > 1 else gained[0]
        found = []
        for shape in parked:
            for place, least in shape.needs:
                if most[place] < least:
                    break
            else:
                if may_wait and not shape.is_choosy:
                    self._woken[shape] = None
                    shape.parked = False
                    continue
                shape.noted_to = max(shape.noted_to, read_to)
                if not shape.is_choosy:
                    self._refill(
                        shape
                    )  # A parked shape's window is empty, so all it holds now was scored now.
                    shape.stamp = self._stamp
                if shape.is_choosy or shape.window:  # Whose agents have to be matched is asked in its turn.
                    found.append(shape)
                    shape.parked = False
                    continue
            self._parked_wanted[shape] = None
        self.live_count += len(found) + len(self._woken)
        if self._woken:
            self._gained = list(zip(gainers, gained, strict=True))
            self._gainers = set(gainers)
            self._gainers_floor = [
                (self._columns[place], least) for place, least in enumerate(self._floor) if least > 0
            ]
        return [*found, *self._woken]

    def _look(self, shape: Shape) -> None:
        """A woken shape is asked: it gets the candidates it would have found when it was woken."""
        del self._woken[shape]
        self._asked.append(shape)
        self._candidates.begin_window(shape, self._gained, self._stamp)
        shape.noted_to = self._woken_to

    def _end_waking(self) -> None:
        """The next cycle begins. Shapes are still woken if the last one was cut short."""
        for shape in list(self._woken):
            self._look(shape)
        self._asked = []
        self._gained = []
        self._gainers = set()
        self.is_spent = False

    def _note_taken(self, index: int) -> None:
        for column, least in self._gainers_floor:
            if column[index] < least:
                self._gainers.discard(index)
                self.is_spent = not self._gainers
                return

    def park_woken(self) -> list[Shape]:
        """Park all shapes that were woken, since nothing is left for them; gives those that had found something before."""
        self.is_spent = False
        for shape in self._woken:
            shape.parked = True
        self._parked_wanted.update(self._woken)
        self.live_count -= len(self._woken)
        self._woken = {}
        exhausted = [shape for shape in self._asked if shape.wanting and not shape.parked]
        for shape in exhausted:
            self._candidates.end_window(shape)
            self._park(shape)
        self._asked = []
        return exhausted

    def _compact(self) -> None:
        kept = self._candidates.compact()
        for shape in self.shapes():
            self._candidates.follow(shape, kept)
        self._woken_to = bisect_left(kept, self._woken_to)
        self._parked_to = bisect_left(kept, self._parked_to)

    def shapes(self) -> list[Shape]:
        """All shapes in use."""
        return [*self._shapes.values(), *self._private]

    def check(self) -> None:
        """Raise AssertionError unless columns, counts and parked shapes are what a full recomputation says."""
        for agent in self._candidates.agents():
            expected = self._candidates.row(agent)
            column = tuple(column[agent.index] for column in self._columns)
            assert column == expected, f"agent {agent.agent_id}: columns say {column}, books {expected}"
        live = [shape for shape in self.shapes() if shape.wanting and not shape.parked]
        assert self.live_count == len(live), f"{len(live)} shapes are alive, {self.live_count} counted"
        parked = [shape for shape in self.shapes() if shape.wanting and shape.parked]
        assert set(parked) == set(self._parked_wanted), "parked shapes miscounted"
        for shape in parked:
            assert not shape.window, f"shape {shape.unit} is parked with candidates"
            read_to = max(shape.noted_to, self._parked_to)
            assert read_to <= self._woken_to, f"shape {shape.unit} read outside of a cycle"
            assert not shape.unread, f"shape {shape.unit} is parked before it read the log"
            for index in self._candidates.fitting(shape, list(range(len(self._columns[0])))):
                unread = self._candidates.gained_since(index, read_to)
                assert unread or not self._candidates.admits(shape, index), (
                    f"shape {shape.unit} is parked though it fits {index}"
                )
