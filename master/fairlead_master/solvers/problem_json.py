"""Static problems as JSON documents: the format that ``fairlead allocate`` reads, checked field by field.

    {"capacity": {"cpus": 9, "mem": 18},
     "users": [{"name": "A", "demand": {"cpus": 1, "mem": 4}, "weight": 1, "max_tasks": null}, ...],
     "nodes": [{"count": 48, "cpus": 4, "mem": 14}, ...],
     "entitlements": {"A": {"cpus": 0.5, "mem": 0.5}, ...}}

Either ``capacity`` or ``nodes`` is needed; where both are given they must agree. A resource that a demand, a kind of node or
an entitlement does not name is 0 there, and 1 in a weight. Whatever is wrong is refused with the place in the document,
what was expected and what came: ``users[2].demand.cpus: expected a finite number above or equal to 0, got NaN``.

An allocation that somebody made of a problem is a document as well, such as ``fairlead allocate --json`` prints:

    {"tasks": {"A": 3, "B": 2}, "mode": "discrete"}

``mode`` may be missing, and whatever else is there is not looked at.
"""

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import inf, isclose, isfinite
from typing import Any, Final

from fairlead_master.allocation.weights import exact
from fairlead_master.solvers.problem import Amounts, Nodes, Problem, SolverError, User
from fairlead_proto.limits import WEIGHT_MAX, WEIGHT_MIN

BYTES_MAX: Final = 16 * 2**20
"""Of a document: 100,000 users with four resources each. A worse document of that size, all of empty objects, takes some
600 MB to read."""

AMOUNT_MIN: Final = 1e-30
AMOUNT_MAX: Final = 1e30
"""Amounts other than zero lie between these: every unit of anything does, and ratios of ratios stay far from overflow."""

NODES_MAX: Final = 10**9
"""Machines of one kind."""

NAME_LENGTH_MAX: Final = 128

_KEYS: Final = ("capacity", "users", "nodes", "entitlements")
_USER_KEYS: Final = ("name", "demand", "weight", "max_tasks")
_AGREEMENT: Final = 1e-9
"""Relative: what rounding in a sum written by hand or by a program may amount to."""


class ProblemError(SolverError):
    """A document that is no problem; the message begins with the place in it."""


class _Object(dict[str, Any]):
    """A JSON object that remembers a key that came twice, of which a plain dict would keep the last."""

    __slots__ = ("repeated",)

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        seen: set[str] = set()
        self.repeated = next((key for key, _ in pairs if key in seen or seen.add(key)), None)  # type: ignore[func-returns-value]  # add gives None


def read_problem(document: bytes) -> Problem:
    """The problem written in a JSON document, in UTF-8.

    Raises:
        ProblemError: anything in it is not as it should be.
    """
    fields = _fields("document", _decode(document), _KEYS, required=("users",))
    capacity, nodes = _capacity(fields)
    resources = tuple(capacity)
    totals = tuple(capacity.values())
    users = _users(fields["users"], capacity)
    entitlements = None
    if fields.get("entitlements") is not None:
        entitlements = _entitlements(fields["entitlements"], [user.name for user in users], resources)
    return Problem(resources, totals, users, nodes, entitlements)


def read_tasks(
    document: bytes, problem: Problem, *, whole_tasks: bool = False
) -> tuple[tuple[float, ...], bool]:
    """How many tasks each user of the problem is given in a JSON document, and whether they are whole.

    They are where the document says so by its mode, and with ``whole_tasks`` whatever it says.

    Raises:
        ProblemError: it is no allocation of the problem's users, or gives parts of whole tasks.
    """
    fields = _fields("document", _decode(document), None, required=("tasks",))
    names = [user.name for user in problem.users]
    counts = _fields("tasks", fields["tasks"], names, required=names)
    mode = fields.get("mode", "fluid")
    if mode not in ("fluid", "discrete"):
        raise _unlike("mode", '"fluid" or "discrete"', mode)
    is_whole = whole_tasks or mode == "discrete"
    kind = "whole" if is_whole else "finite"
    for name, count in counts.items():
        if not _is_number(count) or count < 0 or (is_whole and not float(count).is_integer()):
            raise _unlike(_at("tasks", name), f"a {kind} number above or equal to 0", count)
    return tuple([float(counts[name]) for name in names]), is_whole


def _decode(document: bytes) -> Any:
    if len(document) > BYTES_MAX:
        raise ProblemError(f"document: expected at most {BYTES_MAX} bytes, got {len(document)}")
    try:
        text = document.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProblemError(
            f"document: expected UTF-8, got byte 0x{document[error.start]:02x} at {error.start}"
        ) from None
    if not text.strip():
        raise ProblemError("document: expected JSON, got nothing")
    try:
        return json.loads(text, object_pairs_hook=_Object, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise ProblemError(
            f"document: expected JSON, got {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except RecursionError:
        raise ProblemError("document: expected at most four levels of nesting, got hundreds") from None


def _integer(text: str) -> float:
    """Read an integer; one of hundreds of digits, which Python may refuse, becomes a float and is refused later."""
    return int(text) if len(text) <= 300 else float(text)


def _capacity(fields: Mapping[str, Any]) -> tuple[dict[str, float], tuple[Nodes, ...]]:
    """The capacity by resource, in the order of the document, and the machines if there are any."""
    capacity = None
    if fields.get("capacity") is not None:
        capacity = _amounts("capacity", _object("capacity", fields["capacity"]), None)
        if not capacity:
            raise ProblemError("capacity: expected at least one resource, got none")
    if fields.get("nodes") is None:
        if capacity is None:
            raise ProblemError("document: expected the key 'capacity' or 'nodes', got neither")
        return capacity, ()
    kinds = _list("nodes", fields["nodes"])
    counts = [_count(f"nodes[{place}]", kind) for place, kind in enumerate(kinds)]
    amounts = [
        _amounts(f"nodes[{place}]", {name: kind[name] for name in kind if name != "count"}, capacity)
        for place, kind in enumerate(kinds)
    ]
    resources = tuple(
        capacity if capacity is not None else dict.fromkeys(name for kind in amounts for name in kind)
    )
    if not resources:
        raise ProblemError("nodes[0]: expected at least one resource beside 'count', got none")
    nodes = tuple(
        Nodes(count, tuple([kind.get(name, 0.0) for name in resources]))
        for count, kind in zip(counts, amounts, strict=True)
    )
    sums = {
        name: sum((kind.count * exact(kind.capacity[place]) for kind in nodes), Fraction(0))
        for place, name in enumerate(resources)
    }
    for name, total in (capacity or {}).items():
        if not isclose(total, sums[name], rel_tol=_AGREEMENT):
            raise _unlike(_at("capacity", name), f"{float(sums[name]):.12g}, the sum over nodes", total)
    return {name: float(total) for name, total in sums.items()}, nodes


def _count(path: str, kind: Any) -> int:
    count = _fields(path, kind, None, required=("count",))["count"]
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= NODES_MAX:
        raise _unlike(f"{path}.count", f"a whole number from 1 to {NODES_MAX}", count)
    return count


def _users(value: Any, capacity: Mapping[str, float]) -> tuple[User, ...]:
    users = []
    place_of: dict[str, int] = {}
    for place, entry in enumerate(_list("users", value)):
        path = f"users[{place}]"
        fields = _fields(path, entry, _USER_KEYS, required=("name", "demand"))
        name = _name(f"{path}.name", fields["name"])
        if name in place_of:
            raise ProblemError(
                f"{path}.name: expected a name of its own, got {_shown(name)} as in users[{place_of[name]}]"
            )
        place_of[name] = place
        users.append(
            User(
                name,
                _demand(f"{path}.demand", fields["demand"], capacity),
                _weights(f"{path}.weight", fields.get("weight"), capacity),
                _max_tasks(f"{path}.max_tasks", fields.get("max_tasks")),
            )
        )
    return tuple(users)


def _demand(path: str, value: Any, capacity: Mapping[str, float]) -> Amounts:
    demand = _amounts(path, _object(path, value), capacity)
    if not any(demand.values()):
        raise ProblemError(f"{path}: expected some resource above 0, got none")
    for name, amount in demand.items():
        if amount and not capacity[name]:
            raise _unlike(_at(path, name), "0, since there is no capacity of it", amount)
    return tuple([demand.get(name, 0.0) for name in capacity])


def _amounts(path: str, fields: Mapping[str, Any], resources: Mapping[str, Any] | None) -> dict[str, float]:
    """Amounts of some of the resources, none of another; of any where None says which there are."""
    amounts = {}
    for name, amount in fields.items():
        if resources is None:
            _resource_name(_at(path, name), name)
        elif name not in resources:
            raise _unknown(_at(path, name), resources)
        amounts[name] = _amount(_at(path, name), amount)
    return amounts


def _weights(path: str, value: Any, resources: Mapping[str, Any]) -> Amounts:
    if value is None:
        return (1.0,) * len(resources)
    if not isinstance(value, dict):
        return (_weight(path, value, ", or an object of such"),) * len(resources)
    weights = dict.fromkeys(resources, 1.0)
    for name, weight in _object(path, value).items():
        if name not in resources:
            raise _unknown(_at(path, name), resources)
        weights[name] = _weight(_at(path, name), weight, "")
    return tuple(weights.values())


def _weight(path: str, value: Any, alternative: str) -> float:
    expected = f"a number from {WEIGHT_MIN:g} to {WEIGHT_MAX:g}{alternative}"
    return _number(path, value, WEIGHT_MIN, WEIGHT_MAX, expected)


def _max_tasks(path: str, value: Any) -> float:
    expected = f"null or a number from {AMOUNT_MIN:g} to {AMOUNT_MAX:g}"
    return inf if value is None else _number(path, value, AMOUNT_MIN, AMOUNT_MAX, expected)


def _number(path: str, value: Any, least: float, most: float, expected: str) -> float:
    if not _is_number(value) or not least <= value <= most:
        raise _unlike(path, expected, value)
    return float(value)


def _entitlements(value: Any, users: Sequence[str], resources: Sequence[str]) -> tuple[Amounts, ...]:
    """Each user's fraction of each resource; one number stands for all resources."""
    fields = _fields("entitlements", value, users, required=users)
    rows = [_entitlement(_at("entitlements", name), fields[name], resources) for name in users]
    for name, column in zip(resources, zip(*rows, strict=True), strict=True):
        if sum(column) > 1 + _AGREEMENT:
            raise ProblemError(
                f"entitlements: expected at most 1 of {name} over all users, got {sum(column):g}"
            )
    return tuple(rows)


def _entitlement(path: str, value: Any, resources: Sequence[str]) -> Amounts:
    fields = _object(path, value) if isinstance(value, dict) else dict.fromkeys(resources, value)
    fractions = _amounts(path, fields, dict.fromkeys(resources))
    for name, fraction in fractions.items():
        if fraction > 1:
            raise _unlike(_at(path, name), "a fraction from 0 to 1", fraction)
    return tuple([fractions.get(name, 0.0) for name in resources])


def _at(path: str, key: str) -> str:
    """The place of a key within an object."""
    return f"{path}.{key}" if len(key) <= NAME_LENGTH_MAX and key.isprintable() else f"{path}[{_shown(key)}]"


def _object(path: str, value: Any) -> _Object:
    if not isinstance(value, _Object):
        raise _unlike(path, "an object", value)
    if value.repeated is not None:
        raise ProblemError(f"{path}: expected each key once, got {_shown(value.repeated)} twice")
    return value


def _fields(path: str, value: Any, known: Sequence[str] | None, *, required: Sequence[str]) -> _Object:
    """An object with the required keys, and none that is not known."""
    fields = _object(path, value)
    if known is not None:
        allowed = set(known)
        for key in fields:
            if key not in allowed:
                raise _unlike(path, f"no keys but {_listed(known)}", key)
    for key in required:
        if key not in fields:
            raise ProblemError(f"{path}: expected the key {_shown(key)}, got none")
    return fields


def _list(path: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _unlike(path, "an array", value)
    if not value:
        raise ProblemError(f"{path}: expected at least one entry, got none")
    return value


def _name(path: str, value: Any) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= NAME_LENGTH_MAX or not value.isprintable():
        raise _unlike(path, f"text of 1 to {NAME_LENGTH_MAX} printable characters", value)
    return value


def _resource_name(path: str, name: str) -> None:
    if name == "count":
        raise ProblemError(f"{path}: expected another name of a resource, got the one that counts nodes")
    _name(path, name)


def _amount(path: str, value: Any) -> float:
    if not _is_number(value) or value < 0:
        raise _unlike(path, "a finite number above or equal to 0", value)
    if value and not AMOUNT_MIN <= value <= AMOUNT_MAX:
        raise ProblemError(
            f"{path}: expected 0, or a number from {AMOUNT_MIN:g} to {AMOUNT_MAX:g}, got {_shown(value)}; choose another unit"
        )
    return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _unlike(path: str, expected: str, value: Any) -> ProblemError:
    return ProblemError(f"{path}: expected {expected}, got {_shown(value)}")


def _unknown(path: str, resources: Mapping[str, Any]) -> ProblemError:
    return ProblemError(f"{path}: expected one of the resources {_listed(tuple(resources))}, got another")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def _shown(value: Any) -> str:
    """A value as JSON on one line, cut where it is long."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
