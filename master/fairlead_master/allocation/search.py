"""Finds the agent a unit goes to; knows nothing of accounts, shares or time.

Demand classes are interned cluster-wide by unit and constraints into a ``Shape``: a thousand frameworks that want the same kind of task
search once. A shape finds its agents through the *gain log*, an append-only list of agents whose free part grew or that joined. The shape
reads each entry once, keeps what fits as candidates, and looks at no agent again until that agent gains; within a cycle free parts only
shrink, so "does not fit" stays true until then. A release therefore costs one append, and each shape sees it when it next needs an agent.

The window rule: a unit goes to the candidate with the best score among the shape's window. Before each choice, and whenever a candidate is
dropped, a window that holds less than half of the rule's ``window`` is filled up to it from the unread part of the log, as far as that
goes. Equal scores go to the agent that was added first. Where the rule goes by turns, a few agents are tried in their order first, whether
or not they are in the window. Each shape starts to read what is new at a different offset and comes round, so that a hundred shapes do not
contend for the same few agents. A shape whose candidates are exhausted is *parked* and takes no part until an agent that gained fits it.

When agents gain, many parked shapes would take what they gained. Those are *woken*: they take part again, and are given their candidates,
the agents they fitted then, once they are asked. When the agents that gained have room for none of them any more, all that were woken are
parked at once. A task that ends so costs a comparison for each parked shape and a search for the first. Where so many are parked that
comparing them is too much for one cycle, the next ones carry on; agents that gain meanwhile have their turn when all have been compared and
some have been served.
"""

from collections.abc import Container, Sequence
from heapq import heappop, heapreplace
from typing import Final

from fairlead_master.allocation import turns
from fairlead_master.allocation.agents import Agent, Fit
from fairlead_master.allocation.api import Counters
from fairlead_master.allocation.candidates import CUT_SHORT, SCORE_EFFORT, Candidates
from fairlead_master.allocation.placement import Rule
from fairlead_master.allocation.shape import Shape, ShapeKey
from fairlead_master.allocation.turns import Turns
from fairlead_proto.ids import AgentId
from fairlead_proto.resources import Vector
from fairlead_proto.tasks import Constraint

WAKE_EFFORT: Final = 10
"""What it takes to wake a shape, without those who sleep over it, in looks at one column of an agent."""

SHAPES_LISTED: Final = 4
"""Shapes that are noted in a list, or in another one, in the time of one look."""


class AgentSearch:
    """All shapes and what each agent has left, under one meaning of "fits" and one placement rule."""

    def __init__(self, fit: Fit, rule: Rule, counters: Counters, *, window: int | None = None) -> None:
        self.fit = fit
        self.changed = False
        """Whether an agent gained or a shape is wanted more since this was last set to False."""
        self.live_count = 0
        """Shapes that are wanted and not parked: while it is zero there is nothing a cycle could place."""
        self._counters = counters
        self._window = window = window or rule.window
        self._low = max(1, window // 2)
        self._candidates = Candidates(fit, rule, counters, window)
        self._columns, self._changed = self._candidates.columns, self._candidates.rooms.changed
        # Handed on as they are, since a call between costs as much as some of them.
        self._rescore = self._candidates.rescore
        self._refill = self._candidates.refill
        self._shapes: dict[ShapeKey, Shape] = {}
        self._private: dict[Shape, None] = {}
        self._parked_wanted: dict[Shape, None] = {}
        self._woken: dict[Shape, None] = {}
        """Shapes that were parked and might fit, which have not been asked."""
        self._to_compare: list[Shape] = []
        """Shapes that were parked when the cycle began and have not been compared with the agents that gained, the last one first."""
        self._asked: list[Shape] = []
        """Those that have been: their candidates are no others than ``_gained``."""
        self._gained: list[tuple[int, Vector]] = []
        """Agents that gained, with what they had to give when shapes were woken."""
        self._most: list[int] = []
        """Of each column, the most that any of them had."""
        self._then: list[list[int]] = []
        """What all agents had then, by column, if those that gained may not all have a place in a window; else empty."""
        self._gainers: set[int] = set()
        """Those that have room for the least of what woken shapes need."""
        self._gainers_floor: list[tuple[list[int], int]] = []
        """That least: columns and amounts."""
        self.is_spent = False
        """Whether they have room for none any more, so that ``park_woken`` should be called."""
        self._floor: list[int] = []
        """At most the least of each column that any parked and wanted shape needs; empty if none is."""
        self._floor_of_compared: list[int] = []
        """The same of the shapes that have been compared since the cycle was opened, and of those parked since."""
        self._is_open = self._is_stale = self._is_served = False
        """Whether a cycle is under way; an agent gained since it was opened; anybody was served in it."""
        self._woken_to = 0
        """Where the log ended when the last cycle began: with the agents before that parked shapes are compared."""
        self._read_to = 0
        """No shape has read the log further."""
        self._parked_to = 0
        """To where parked and wanted shapes have read the log at least, whatever they say."""
        self._woken_from = 0
        """To where they had before the last waking."""
        self._stamp = 0
        self._falls, self._weighs_load = rule.falls, rule.weighs_load
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
        """The agent has less to give than before, or is hidden now. Until it is added nothing need be told of an agent."""
        self._candidates.update(agent)

    def gained(self, agent: Agent) -> None:
        """The agent has more to give than before, or is to be seen now."""
        if agent.index < 0:
            return
        self._candidates.update(agent)
        self.note_change()
        self._candidates.note_gain(agent.index, self._read_to)

    def note_change(self) -> None:
        """More may fit than before, or somebody else may be next: the cycle that is under way is not to be carried on."""
        self.changed = self._is_stale = True

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
            self._candidates.let_go(shape)
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
        if shape.parked and shape.noted_to < self._candidates.end:
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
                self._woken.pop(shape, None)

    def work_until(self, effort_max: float, look_effort: float) -> None:
        """Stop waking, and matching agents, once so many have been examined and looked for; a look counts for ``look_effort``."""
        self._candidates.effort_max, self._candidates.look_effort = effort_max, look_effort

    def open_cycle(self) -> None:
        """Begin a cycle: parked shapes that an agent that gained might fit are to be woken, by ``wake_some``."""
        self._is_open, self._is_stale, self._is_served = True, False, False
        self._candidates.free_some()
        self._end_waking()
        self._stamp += 1
        fresh = list(dict.fromkeys(self._candidates.log_since(self._woken_to)))
        self._woken_to = self._read_to = self._candidates.end
        gainers = self._reach_floor(fresh) if self._parked_wanted else []
        if gainers:
            self._begin_waking(gainers)

    @property
    def is_open(self) -> bool:
        """Whether a cycle is under way that is to be carried on: no agent gained since it was opened, or nobody was served."""
        return self._is_open and not (self._is_stale and self._is_served)

    def begin_serving(self) -> None:
        """Those who might fit have been woken: some of them are served now."""
        self.changed, self._is_served = self._is_stale, True
        self._read_to = self._candidates.end

    def close_cycle(self) -> None:
        """All have been served that can be."""
        self._is_open = False

    @property
    def is_waking(self) -> bool:
        """Whether there are parked shapes that have not been compared with the agents that gained before this cycle."""
        return bool(self._to_compare)

    def wake_some(self) -> list[Shape]:
        """Let parked shapes that may fit on an agent that gained take part, and give them; to be called while ``is_waking``."""
        woken = self._wake(self._candidates.examined_max)
        if not self._to_compare:
            self._parked_to = self._woken_to
            self._floor = self._floor_of_compared
        return woken

    def place(self, shape: Shape, *, takes: bool = True) -> int:
        """Take room for one unit on the best agent, or only look; its index, or -1 if none fits, which parks the shape.

        ``CUT_SHORT`` if matching stopped before that was known: asked again, it carries on.
        """
        if self._turns is not None:
            return self._place_by_turns(shape, self._turns, takes=takes)
        if (shape.stamp != self._stamp or not self._falls) and shape in self._woken:
            self._look(shape)
        if shape.stamp != self._stamp or not self._falls:
            self._rescore(shape, self._stamp)
        elif shape.found:
            self._candidates.heap_up(shape)
        if len(shape.window) + len(shape.found) < self._low and not self._refill(shape):
            return CUT_SHORT
        window = shape.window
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
                examined += SCORE_EFFORT
        self._counters.agents_examined += examined + bool(shape.found)
        if not shape.found:
            self._park(shape)
            return -1
        # All of these were scored just now, and may never be looked at again.
        _, index = min(zip(shape.scores, shape.found, strict=True))
        if takes:
            self._take_first(shape, index)
        return index

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
        self._changed[index] = None
        for column, amount in shape.takes:
            column[index] -= amount
        if self._weighs_load:
            self._candidates.add_load(index, shape.unit)

    def _take_first(self, shape: Shape, index: int) -> None:
        """Take room on the best agent of the window, and bring its entry up to date while it is at hand."""
        if self._weighs_load:
            self._candidates.add_load(index, shape.unit)
        self._changed[index] = None
        now, fits_again = 0.0, True
        for column, least, factor in shape.checks:
            have = column[index]
            if least > 0:
                column[index] = have = have - least
                fits_again = fits_again and have >= least
            now -= factor * have
        if shape.found:
            shape.note(index, now if fits_again else None)
        elif fits_again:
            heapreplace(shape.window, (now, index))
        else:
            heappop(shape.window)
            shape.members.discard(index)
        if index in self._gainers:
            self._note_taken(index)

    def _new_shape(self, key: ShapeKey, excluded: Container[AgentId] | None) -> Shape:
        self._shape_count += 1
        shape = Shape(key, excluded, self._shape_count)
        shape.home = self
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

    def _park(self, shape: Shape) -> None:
        shape.parked = True
        self.live_count -= 1
        self._note_parked(shape)

    def _note_parked(self, shape: Shape) -> None:
        self._parked_wanted[shape] = None
        self._floor = _least(self._floor, [shape.view])
        if self._to_compare:
            self._floor_of_compared = _least(self._floor_of_compared, [shape.view])

    def _reach_floor(self, indexes: list[int]) -> list[int]:
        """Those that have room for the least that parked shapes need of each column."""
        for place, least in enumerate(self._floor):
            if least > 0:  # Where nothing is needed an agent may even be below zero.
                column = self._columns[place]
                indexes = [index for index in indexes if column[index] >= least]
        return indexes

    def _begin_waking(self, gainers: list[int]) -> None:
        gained = list(zip(*[[column[index] for index in gainers] for column in self._columns], strict=True))
        self._most = list(map(max, *gained)) if len(gained) > 1 else list(gained[0])
        self._gained = list(zip(gainers, gained, strict=True))
        self._gainers = set(gainers)
        self._gainers_floor = [
            (self._columns[place], least) for place, least in enumerate(self._floor) if least > 0
        ]
        # More might not all have a place in a window, and then it matters which of them are read first.
        self._then = [] if len(gainers) < self._window else [list(column) for column in self._columns]
        self._to_compare = list(reversed(self._parked_wanted))
        self._counters.agents_examined += len(self._to_compare) // SHAPES_LISTED
        self._floor_of_compared = []
        self._woken_from = self._parked_to

    def _wake(self, examined_max: float) -> list[Shape]:
        most, parked, to_compare = self._most, self._parked_wanted, self._to_compare
        examined = self._counters.agents_examined
        woken = []
        views = []
        while to_compare:
            shape = to_compare.pop()
            views.append(shape.view)
            examined += 1
            for place, least in shape.needs:
                if most[place] < least:
                    break
            else:
                if shape not in parked:
                    continue  # Nobody wants it any more, or it looks for itself.
                del parked[shape]
                woken.append(shape)
                shape.parked = False
                shape.noted_to = max(shape.noted_to, self._parked_to)
                if not shape.is_choosy:  # Whose agents have to be matched is asked in its turn.
                    self._woken[shape] = None
                examined += WAKE_EFFORT
            if examined >= examined_max:
                break
        self._counters.agents_examined = examined
        self._floor_of_compared = _least(self._floor_of_compared, views)
        self.live_count += len(woken)
        return woken

    def _look(self, shape: Shape) -> None:
        """A woken shape is asked: it gets the candidates it would have found when it was woken."""
        del self._woken[shape]
        if self._is_stale:
            return  # Others have gained since: it reads the log, as those do that were not parked.
        self._asked.append(shape)
        if self._then:
            self._candidates.refill_as_of(shape, self._then, self._stamp)
        else:
            self._candidates.begin_window(shape, self._gained, self._stamp)
            shape.noted_to = self._woken_to

    def _end_waking(self) -> None:
        """The next cycle begins. If the last one was cut short, shapes may be woken still: they are compared again."""
        if self._woken:
            self._woken_to = self._parked_to = self._woken_from
            self._counters.agents_examined += len(self._woken) // SHAPES_LISTED
            self._park_woken()
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
        self._park_woken()
        exhausted = [shape for shape in self._asked if shape.wanting and not shape.parked]
        for shape in exhausted:
            self._candidates.end_window(shape)
            self._park(shape)
        self._asked = []
        return exhausted

    def _park_woken(self) -> None:
        for shape in self._woken:
            shape.parked = True
        self._parked_wanted.update(self._woken)
        self.live_count -= len(self._woken)
        self._woken = {}

    def shapes(self) -> list[Shape]:
        """All shapes in use."""
        return [*self._shapes.values(), *self._private]

    def check(self) -> None:
        """Raise AssertionError unless columns, counts and parked shapes are what a full recomputation says."""
        for agent in self._candidates.agents():
            expected, row = self._candidates.row(agent), tuple(each[agent.index] for each in self._columns)
            assert row == expected, f"agent {agent.agent_id}: columns say {row}, books {expected}"
        live = sum(1 for shape in self.shapes() if shape.wanting and not shape.parked)
        assert self.live_count == live, f"{live} shapes are alive, {self.live_count} counted"
        parked = [shape for shape in self.shapes() if shape.wanting and shape.parked]
        assert set(parked) == set(self._parked_wanted), "parked shapes miscounted"
        for shape in parked:
            assert not [*shape.window, *shape.found], f"shape {shape.unit} is parked with candidates"
            read_to = max(shape.noted_to, self._parked_to)
            assert read_to <= self._read_to, f"shape {shape.unit} read outside of a cycle"
            assert not shape.unread, f"shape {shape.unit} is parked before it read the log"
            for index in self._candidates.fitting(shape, list(range(len(self._columns[0])))):
                unread = self._candidates.gained_since(index, read_to)
                assert unread or not self._candidates.admits(shape, index), (
                    f"shape {shape.unit} is parked though it fits {index}"
                )


def _least(floor: list[int], views: Sequence[Vector]) -> list[int]:
    """The least of each column in any of them."""
    return [min(column) for column in zip(*([floor] if floor else []), *views, strict=True)]
