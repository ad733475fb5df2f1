"""Conditions on an agent's attributes, as people write them.

Five forms: ``rack=a|b`` (one of these), ``rack!=a`` (absent or another), ``rack~a[0-9]+`` (matches in full), ``ssd``
(is there), ``!ssd`` (is not there). Patterns are RE2's: no look-around, no references to groups.
"""

import re
from collections.abc import Iterable
from typing import Final

from fairlead_proto.fields import size_bytes
from fairlead_proto.limits import PATTERN_LENGTH_MAX
from fairlead_proto.patterns import fault_in
from fairlead_proto.tasks import Constraint, Operator

_FORM: Final = re.compile(
    r"(?P<absent>!)?(?P<name>[A-Za-z][A-Za-z0-9_.-]{0,62})(?:(?P<sign>!=|=|~)(?P<value>.*))?"
)
_OPERATORS: Final = {"=": Operator.EQUALS, "!=": Operator.NOT_EQUALS, "~": Operator.MATCHES}


def parse_constraint(text: str) -> Constraint:
    """The constraint written as one of the five forms.

    Raises:
        ValueError: of none of the forms, without a value, or with a pattern that no master takes.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None or (match["absent"] and match["sign"]):
        raise ValueError(f"constraint: expected attr=v1|v2, attr!=v, attr~regex, attr or !attr, got {text!r}")
    if not match["sign"]:
        return Constraint(match["name"], Operator.NOT_EXISTS if match["absent"] else Operator.EXISTS)
    operator = _OPERATORS[match["sign"]]
    values = (match["value"],) if operator is Operator.MATCHES else tuple(match["value"].split("|"))
    if not all(values):
        raise ValueError(f"constraint: expected a value after {match['sign']}, got {text!r}")
    if operator is Operator.MATCHES:
        _check_pattern(text, values[0])
    return Constraint(match["name"], operator, values)


def _check_pattern(text: str, pattern: str) -> None:
    if len(pattern) > PATTERN_LENGTH_MAX:
        raise ValueError(
            f"constraint: expected a pattern of at most {PATTERN_LENGTH_MAX} characters, got {len(pattern)}"
        )
    if fault := fault_in(pattern):
        raise ValueError(f"constraint: expected {fault}, got {text!r}")


def parse_constraints(constraints: Iterable[Constraint | str]) -> tuple[Constraint, ...]:
    """Constraints in their order, those given as text parsed.

    Raises:
        ValueError: one of them is neither, or none that a master takes.
    """
    if isinstance(constraints, str):
        raise ValueError(f"constraints: expected a list of them, got {constraints!r}")  # noqa: TRY004 - one kind of error
    parsed = []
    for constraint in constraints:
        if isinstance(constraint, str):
            parsed.append(parse_constraint(constraint))
        elif isinstance(constraint, Constraint):
            parsed.append(constraint)
        else:
            raise ValueError(f"constraints: expected texts such as rack=a, or Constraint, got {constraint!r}")  # noqa: TRY004
    for constraint in parsed:
        for value in constraint.values:
            size_bytes("constraints", value)
    return tuple(parsed)
