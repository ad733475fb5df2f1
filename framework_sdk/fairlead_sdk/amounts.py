"""What a task needs, parsed from what people write into whole numbers.

The SDK names custom resources and does not number them: their order is the cluster's, known only once the master has
said Welcome, and demands are sent before that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from math import inf
from typing import Final

from fairlead_proto.limits import DURATION_MS_MAX
from fairlead_proto.resources import STANDARD_NAMES, format_bytes, format_milli, parse_bytes, parse_milli

Number = int | float | Decimal | str
"""A quantity as written by a person: ``1.5``, ``"1.5"``, ``"512MiB"``."""

_DURATION_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class Amounts:
    """An amount of each resource: cpus, gpus and custom kinds in thousandths, memory and disk in bytes."""

    cpus_milli: int = 0
    mem_bytes: int = 0
    disk_bytes: int = 0
    gpus_milli: int = 0
    custom_milli: tuple[tuple[str, int], ...] = ()
    """(name, thousandths), by name, none of them zero."""

    def as_dict(self) -> dict[str, int]:
        """Resource name to whole amount, zeros left out."""
        standard = zip(
            STANDARD_NAMES, (self.cpus_milli, self.mem_bytes, self.disk_bytes, self.gpus_milli), strict=True
        )
        return {name: amount for name, amount in (*standard, *self.custom_milli) if amount}

    def __str__(self) -> str:
        parts = (
            f"{name}={format_bytes(amount) if name in ('mem', 'disk') else format_milli(amount)}"
            for name, amount in self.as_dict().items()
        )
        return ",".join(parts) or "nothing"


def parse_amounts(
    *, cpus: Number = 0, mem: Number = 0, disk: Number = 0, gpus: Number = 0, custom: Mapping[str, Number]
) -> Amounts:
    """Amounts from numbers or texts.

    Raises:
        ValueError: not a number, negative, not finite, too many decimals, beyond 2^53, or zero everywhere.
    """
    amounts = Amounts(
        cpus_milli=_parse("cpus", cpus),
        mem_bytes=_parse("mem", mem),
        disk_bytes=_parse("disk", disk),
        gpus_milli=_parse("gpus", gpus),
        custom_milli=_parse_custom(custom) if custom else (),
    )
    if amounts == _NOTHING:
        raise ValueError("task: expected at least one resource above zero, got none")
    return amounts


_NOTHING: Final = Amounts()


def _parse_custom(custom: Mapping[str, Number]) -> tuple[tuple[str, int], ...]:
    for name in custom:
        if name in STANDARD_NAMES:
            raise ValueError(f"custom: expected a resource of the cluster's own, got {name!r}")
    parsed = ((name, _parse(name, custom[name])) for name in sorted(custom))
    return tuple((name, amount) for name, amount in parsed if amount)


# A hundred thousand tasks of one sweep have a handful of different amounts between them.
@lru_cache(maxsize=1024, typed=True)
def _parse(name: str, value: Number) -> int:
    text = value if isinstance(value, str) else str(value)
    if name in ("mem", "disk") and isinstance(value, float | Decimal) and value % 1:
        raise ValueError(f"{name}: expected whole bytes, or a text such as 1.5GiB, got {value!r}")
    return parse_bytes(name, text) if name in ("mem", "disk") else parse_milli(name, text)


def parse_duration(name: str, value: float | str | None) -> int:
    """Milliseconds in a number of seconds or a text such as ``500ms``, ``5s``, ``5m``, ``2h``; None is 0.

    Raises:
        ValueError: not of that form, negative, not finite, or longer than about a year.
    """
    if value is None:
        return 0
    text = str(value).strip()
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = _DURATION_UNITS.get(text[len(number) :] or "s")
    try:
        duration = float(number) * unit if unit else -1.0
    except ValueError:
        duration = -1.0
    if DURATION_MS_MAX < duration < inf:
        raise ValueError(f"{name}: expected at most {DURATION_MS_MAX // 86_400_000} days, got {value!r}")
    if not 0 <= duration <= DURATION_MS_MAX:
        raise ValueError(f"{name}: expected seconds, or a time such as 500ms, 5s, 5m, 2h, got {value!r}")
    return round(duration)
