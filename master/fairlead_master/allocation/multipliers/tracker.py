"""The multipliers of a changing population, followed by a model instead of being solved for anew.

The dual of the market (``AlphaRule`` with alpha = 1; other alphas alike) is

    minimise over nu >= 0   sum_j room_j nu_j - sum_k S_k log(a_k . nu)

with S_k the weight of the open members of class k, and room_j what sated members leave of resource j. Its gradient is
room - load, load_j = sum_k S_k a_kj / f_k, and its Hessian H = sum_k S_k a_k a_k^T / (alpha f_k c_k). Kept are load and
H *at a reference point* nu0: there an arrival or departure is an exact rank-one update of both. The multipliers in force
are the minimum of the quadratic model these make. When the cost of some class is then further from that at the reference
than ``LOAD_ERROR`` allows, the sums are made again at the new point (O(K J^2)) and the minimum is taken anew; where the
norm of H says that the model holds no more, nu is solved for from cold. The error is of the order of the drift squared.

Along the ray through nu0 everything is known in closed form, load(t nu0) = t^(-1/alpha) load(nu0), so the reference is
first moved to the best point of its ray, and the growth of the population as a whole costs no relinearisation.
"""

from collections.abc import Collection, Sequence
from math import sqrt
from operator import mul
from typing import Final

from fairlead_master.allocation.multipliers import interior_point
from fairlead_master.allocation.multipliers.classes import AlphaRule, DemandClass
from fairlead_master.allocation.multipliers.quadratic import minimise

LOAD_ERROR: Final = 4e-4
"""Part by which the load of a class may be off in the model before the reference is moved: below what one task is of a
share. The load of a class goes with cost^-p, p = 1 / alpha, of which the model keeps the first two terms, so that a cost
that has drifted by the part d puts it off by p (p + 1) d^2 / 2: d may be 0.02 if alpha is 1. At ten times as much error
reports would show it; at a hundredth most events would cost a pass over all classes. Each class is looked at and not the
local norm: that is an average by weight, under which a light class may be off by much more."""

MODEL_HOLDS: Final = 0.25
"""Local norm up to which Newton's step on a self-concordant function is safe to take in full."""

_EXACT: Final = 1e-9
"""Local norm of a Newton step after which the next one would be about its square: below rounding."""

_PROXIMAL: Final = 1e-7
"""Weight of staying where it is, relative to the Hessian's diagonal. It makes the model's minimum unique where there are
fewer directions than scarce resources, and biases nothing, since it is zero at the point the steps end at."""

_COST_MIN: Final = 1e-12
"""Of the sum of prices: a class whose multiple costs less than this part of its row needs only what is free."""


class Tracker:
    """Multipliers for classes that come, go and change."""

    def __init__(self, rule: AlphaRule) -> None:
        self._rule = rule
        self._drift = sqrt(2.0 * LOAD_ERROR / (rule.power * (rule.power + 1.0)))
        self.nu: list[float] = []
        self.relinearisations = 0
        self.cold_starts = 0
        self.classes_scanned = 0
        """By relinearisations."""
        self._reference: list[float] = []
        self._load: list[float] = []
        self._hessian: list[list[float]] = []
        self._scale = 1.0
        """How far along its ray the reference has moved since costs were taken down in the classes."""
        self._is_lost = True
        """Whether there is no reference that can be trusted."""

    def reset(self, width: int) -> None:
        """A market of ``width`` resources about which nothing is known."""
        self.nu = [0.0] * width
        self._is_lost = True

    def lose(self) -> None:
        """The reference is worth nothing any more: rows, not only members, have changed."""
        self._is_lost = True

    def enter(self, demand_class: DemandClass) -> None:
        """A class that has no open members yet."""
        if not self._is_lost:
            demand_class.reference = sum(map(mul, demand_class.row, self._reference)) / self._scale

    def shift(self, demand_class: DemandClass, entitlement: float) -> None:
        """The open members of the class are entitled to ``entitlement`` more, or less."""
        if self._is_lost:
            return
        row = demand_class.row
        cost = demand_class.reference * self._scale
        if cost <= _COST_MIN * demand_class.total * sum(self._reference):
            self._is_lost = True
            return
        taken = entitlement / self._rule.factor(demand_class.gain, cost)
        self._load = [load + taken * a for load, a in zip(self._load, row, strict=True)]
        bend = taken * self._rule.power / cost
        for entry, a in zip(self._hessian, row, strict=True):
            if a:
                step = bend * a
                entry[:] = [h + step * b for h, b in zip(entry, row, strict=True)]

    def follow(self, classes: Collection[DemandClass], room: Sequence[float]) -> bool:
        """Bring ``nu`` and the costs of classes up to date to ``LOAD_ERROR``; False if that must be done from cold."""
        if self._is_lost or not self._move_along_ray(room):
            return False
        for _ in range(6):
            step = self._step(room)
            if step is None or step[1] > MODEL_HOLDS:
                return False
            self.nu = step[0]
            if not self._price(classes):
                return True
            if not self._linearise(classes, self.nu):
                return False
        return False

    def sharpen(self, classes: Collection[DemandClass], room: Sequence[float]) -> bool:
        """Newton steps from ``nu`` until they are below rounding; False if they do not get there."""
        for _ in range(12):
            if not self._linearise(classes, self.nu) or not self._move_along_ray(room):
                return False
            step = self._step(room)
            if step is None or step[1] > MODEL_HOLDS:
                return False
            self.nu, norm = step
            if norm <= _EXACT:
                self._price(classes)
                return True
        return False

    def price(self, classes: Collection[DemandClass]) -> None:
        """What a multiple costs at ``nu``, for each class."""
        self._price(classes)

    def start(self, classes: Collection[DemandClass], room: Sequence[float]) -> None:
        """Solve for ``nu`` from cold; there must be open members, and room for each of them."""
        self.cold_starts += 1
        rows = []
        for demand_class in classes:
            if demand_class.entitlement:
                size = self._rule.size(demand_class.row)
                row = [a / (size * left) for a, left in zip(demand_class.row, room, strict=True)]
                rows.append((row, demand_class.entitlement))
        found = interior_point.solve(rows, alpha=self._rule.alpha).values
        self.nu = [price / left for price, left in zip(found, room, strict=True)]
        self._linearise(classes, self.nu)
        self._price(classes)

    def _price(self, classes: Collection[DemandClass]) -> bool:
        """Price each class; whether the cost of one with open members has drifted too far."""
        nu, rule, scale, drift = self.nu, self._rule, self._scale, self._drift
        self.classes_scanned += len(classes)
        is_linear = rule.alpha == 1.0
        has_moved = False
        for demand_class in classes:
            demand_class.cost = cost = sum(map(mul, demand_class.row, nu))
            demand_class.factor = cost if is_linear else rule.factor(demand_class.gain, cost)
            before = demand_class.reference * scale
            if not -drift * before <= cost - before <= drift * before:
                has_moved = has_moved or demand_class.entitlement > 0.0
        return has_moved

    def _linearise(self, classes: Collection[DemandClass], point: Sequence[float]) -> bool:
        """Make the sums at ``point``; False if some class pays nothing there, so that its load would be infinite."""
        self.relinearisations += 1
        self.classes_scanned += len(classes)
        rule, free = self._rule, _COST_MIN * sum(point)
        rows, taken, bends = [], [], []
        for demand_class in classes:
            demand_class.reference = cost = sum(map(mul, demand_class.row, point))
            entitlement = demand_class.entitlement
            if entitlement:
                if cost <= free * demand_class.total:
                    self._is_lost = True
                    return False
                volume = entitlement / rule.factor(demand_class.gain, cost)
                rows.append(demand_class.row)
                taken.append(volume)
                bends.append(volume * rule.power / cost)
        # Sums over columns by map stay within the interpreter's own C code: a third of the time of a loop over classes.
        columns = list(zip(*rows, strict=True)) or [()] * len(point)
        load = [sum(map(mul, column, taken)) for column in columns]
        hessian = [[0.0] * len(point) for _ in point]
        for place, column in enumerate(columns):
            bent = list(map(mul, column, bends))
            for other in range(place + 1):
                entry = sum(map(mul, bent, columns[other]))
                hessian[place][other] = hessian[other][place] = entry
        self._reference, self._load, self._hessian = list(point), load, hessian
        self._scale = 1.0
        self._is_lost = False
        return True

    def _move_along_ray(self, room: Sequence[float]) -> bool:
        """Move the reference to the best point of its ray; False if there is none."""
        paid = sum(map(mul, self._reference, self._load))
        worth = sum(map(mul, self._reference, room))
        if paid <= 0.0 or worth <= 0.0:
            return False
        power = self._rule.power
        times = (paid / worth) ** self._rule.alpha
        self._scale *= times
        self._reference = [price * times for price in self._reference]
        shrink = times**-power
        self._load = [load * shrink for load in self._load]
        shrink /= times
        self._hessian = [[entry * shrink for entry in row] for row in self._hessian]
        return True

    def _step(self, room: Sequence[float]) -> tuple[list[float], float] | None:
        """The model's minimum and how far it is from the reference in the local norm; None if it has none."""
        reference, hessian = self._reference, self._hessian
        near = [list(row) for row in hessian]
        linear = []
        for place, row in enumerate(near):
            stay = _PROXIMAL * row[place]
            pull = sum(map(mul, hessian[place], reference)) + stay * reference[place]
            row[place] += stay
            linear.append(room[place] - self._load[place] - pull)
        point = minimise(near, linear, reference)
        if point is None:
            return None
        way = [new - old for new, old in zip(point, reference, strict=True)]
        bent = sum(step * sum(map(mul, row, way)) for step, row in zip(way, hessian, strict=True))
        paid = sum(map(mul, reference, self._load))
        return point, sqrt(max(0.0, bent) / paid)
