"""Amounts of resources as tuples of integers, and the names their places stand for.

A *vector* is a ``tuple[int, ...]`` with one place for each kind of the cluster, in the order of ``ResourceKinds``:
cpus, mem, disk, gpus, then the cluster's own kinds by name. cpus, gpus and custom kinds are in thousandths, memory and
disk in bytes. Integers, because sums and differences of floats drift and the books must balance exactly; tuples,
because an allocation cycle handles tens of thousands of them and a class of our own costs several times as much.
All vectors of one master have the same length; mixing lengths is a bug.
"""

import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

QUANTITY_MAX: Final = 2**53
"""Largest amount of one resource. Above it a double no longer tells neighbours apart, and JSON readers round."""


Vector = tuple[int, ...]

CPUS: Final = 0
MEM: Final = 1
DISK: Final = 2
GPUS: Final = 3
STANDARD_NAMES: Final = ("cpus", "mem", "disk", "gpus")
KEPT_NAMES: Final = ("ports",)
"""For kinds that will be more than an amount (docs/adr/0023), so that no cluster gives them another meaning."""

_BYTE_UNITS: Final = {
    "": 1, "B": 1,
    "K": 10**3, "KB": 10**3, "M": 10**6, "MB": 10**6, "G": 10**9, "GB": 10**9, "T": 10**12, "TB": 10**12, "P": 10**15, "PB": 10**15,
    "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40, "PIB": 2**50,
}  # fmt: skip
_AMOUNT: Final = re.compile(r"([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)")
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")


class ResourceError(ValueError):
    """An amount or a name of a resource that cannot be used; the message says what was expected and what came."""


@dataclass(frozen=True, slots=True)
class ResourceKinds:
    """The resources a cluster knows: the four standard ones and the operator's own, in the order of every vector."""

    custom: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.custom:
            if not _NAME.fullmatch(name) or name in STANDARD_NAMES + KEPT_NAMES:
                raise ResourceError(
                    f"custom resource name: expected a new name like 'licenses', got {name!r}"
                )
        if len(set(self.custom)) != len(self.custom):
            raise ResourceError(
                f"custom resource names: expected no name twice, got {', '.join(self.custom)}"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Names in vector order."""
        return STANDARD_NAMES + self.custom

    @property
    def zero(self) -> Vector:
        """The vector of nothing."""
        return (0,) * (len(STANDARD_NAMES) + len(self.custom))

    def vector(self, amounts: Mapping[str, int]) -> Vector:
        """The vector of named integer amounts; absent names are zero.

        Raises:
            ResourceError: a name is unknown here, or an amount is negative or above ``QUANTITY_MAX``.
        """
        for name, amount in amounts.items():
            if name not in self.names:
                raise ResourceError(f"resource {name!r}: expected one of {', '.join(self.names)}")
            check_amount(name, amount)
        return tuple(amounts.get(name, 0) for name in self.names)

    def parse(self, text: str) -> Vector:
        """The vector written as ``cpus=4,mem=8GiB``. Cores, GPUs and custom kinds may have three decimals.

        Raises:
            ResourceError: not of that form, an unknown name, a name twice, or an amount out of range.
        """
        amounts: dict[str, int] = {}
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            name, equals, value = part.partition("=")
            if not equals:
                raise ResourceError(f"resources: expected name=amount, got {part!r}")
            if name in amounts:
                raise ResourceError(f"resources: expected each name once, got {name!r} twice")
            amounts[name] = parse_bytes(name, value) if name in ("mem", "disk") else parse_milli(name, value)
        return self.vector(amounts)

    def as_dict(self, vector: Vector) -> dict[str, int]:
        """Name to integer amount, in vector order, zeros left out."""
        return {name: amount for name, amount in zip(self.names, vector, strict=True) if amount}

    def as_units(self, vector: Vector) -> dict[str, float]:
        """Name to amount in the units people use: cores, GPUs, bytes; zeros left out."""
        return {
            name: amount if name in ("mem", "disk") else amount / 1000
            for name, amount in self.as_dict(vector).items()
        }

    def format(self, vector: Vector) -> str:
        """Text such as ``cpus=1.5,mem=512MiB``, which ``parse`` reads back; ``nothing`` for the zero vector."""
        parts = (
            f"{name}={format_bytes(amount) if name in ('mem', 'disk') else format_milli(amount)}"
            for name, amount in self.as_dict(vector).items()
        )
        return ",".join(parts) or "nothing"


def check_amount(name: str, amount: int) -> None:
    """Raise ``ResourceError`` unless ``0 <= amount <= QUANTITY_MAX``."""
    if amount < 0 or amount > QUANTITY_MAX:
        raise ResourceError(f"{name}: expected 0 to {QUANTITY_MAX} (2^53), got {amount}")


def fits(need: Vector, free: Vector) -> bool:
    """Whether ``need`` is at most ``free`` in every place."""
    # A loop that stops early beats all() over a generator by a factor of three, and this is the hottest line we have.
    for wanted, available in zip(need, free):  # noqa: B905 - lengths are equal by construction; strict costs a third
        if wanted > available:
            return False
    return True


# Sums and differences are taken by map, which costs a third of a comprehension over zip: they are most of what a
# grant, a launch and an end do to the books.


def add(left: Vector, right: Vector) -> Vector:
    """The sum, place by place."""
    if len(left) != len(right):
        raise _lengths_differ(left, right)
    return tuple(map(operator.add, left, right))


def subtract(left: Vector, right: Vector) -> Vector:
    """The difference, place by place; places may become negative."""
    if len(left) != len(right):
        raise _lengths_differ(left, right)
    return tuple(map(operator.sub, left, right))


def _lengths_differ(left: Vector, right: Vector) -> ValueError:
    return ValueError(f"vectors: expected two of one length, got {left} and {right}")


def scale(vector: Vector, units: int) -> Vector:
    """``units`` times the vector."""
    return vector if units == 1 else tuple([a * units for a in vector])


def sum_vectors(vectors: Iterable[Vector], zero: Vector) -> Vector:
    """The sum of all vectors; ``zero`` if there are none."""
    result = zero
    for vector in vectors:
        result = add(result, vector)
    return result


def units_that_fit(unit: Vector, free: Vector) -> int:
    """How many times ``unit`` fits into ``free``: 0 if not once.

    Raises:
        ValueError: ``unit`` is zero everywhere, so there is no largest number.
    """
    counts = [available // wanted for wanted, available in zip(unit, free, strict=True) if wanted > 0]
    if not counts:
        raise ValueError("units_that_fit: the unit is zero in every place")
    return max(0, min(counts))


def missing(need: Vector, free: Vector) -> Vector:
    """What ``free`` lacks to hold ``need``, zero where it is enough."""
    return tuple([max(0, wanted - available) for wanted, available in zip(need, free, strict=True)])


def parse_milli(name: str, text: str) -> int:
    """Thousandths in a decimal such as ``1.5`` (cores, GPUs, custom kinds).

    Raises:
        ResourceError: not a finite, non-negative decimal with at most three decimals.
    """
    try:
        milli = Decimal(text.strip()) * 1000
    except ArithmeticError:  # Not a number, or an exponent beyond what decimals hold.
        raise ResourceError(f"{name}: expected a number such as 1.5, got {text!r}") from None
    if not milli.is_finite() or milli < 0:
        raise ResourceError(f"{name}: expected a finite number that is not negative, got {text!r}")
    if milli > QUANTITY_MAX:
        raise ResourceError(f"{name}: expected at most {QUANTITY_MAX} thousandths (2^53), got {text!r}")
    if milli != milli.to_integral_value():
        raise ResourceError(f"{name}: expected at most three decimals, got {text!r}")
    return int(milli)


def parse_bytes(name: str, text: str) -> int:
    """Bytes in a text such as ``512MiB``, ``8G`` or ``1073741824``; KiB is 1024, KB and K are 1000.

    Raises:
        ResourceError: not of that form, or out of range.
    """
    match = _AMOUNT.fullmatch(text.strip())
    unit = _BYTE_UNITS.get(match.group(2).upper()) if match else None
    if match is None or unit is None:
        raise ResourceError(f"{name}: expected bytes such as 512MiB or 8GiB, got {text!r}")
    try:
        amount = Decimal(match.group(1)) * unit
    except ArithmeticError:  # An exponent beyond what decimals hold.
        amount = Decimal("inf")
    if amount > QUANTITY_MAX:
        raise ResourceError(f"{name}: expected at most {QUANTITY_MAX} bytes (8PiB), got {text!r}")
    return int(amount)


def format_milli(amount: int) -> str:
    """Thousandths as the shortest decimal: 1500 is ``1.5``."""
    # Not by a float: above 2^52 / 1000 it no longer tells neighbouring thousandths apart.
    whole, thousandths = divmod(abs(amount), 1000)
    return f"{'-' if amount < 0 else ''}{whole}.{thousandths:03}".rstrip("0").rstrip(".")


def format_bytes(amount: int) -> str:
    """Bytes in the largest binary unit that is exact to one decimal, else plain bytes."""
    for suffix, size in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        tenths, rest = divmod(abs(amount) * 10, size)
        if tenths >= 10 and rest == 0:
            return f"{amount / size:.1f}".removesuffix(".0") + suffix
    return str(amount)
