"""Problems from JSON: what is read, and that whatever is wrong is one line with its place."""

import json
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_master.solvers import problem_json
from fairlead_master.solvers.problem import Nodes, Problem, User
from fairlead_master.solvers.problem_json import ProblemError, read_problem

A = {"name": "A", "demand": {"cpus": 1, "mem": 4}}
B = {"name": "B", "demand": {"cpus": 3, "mem": 1}}
POOL = {"cpus": 9, "mem": 18}


def read(document: Any) -> Problem:
    return read_problem(json.dumps(document).encode())


def test_the_contract_is_read_field_by_field() -> None:
    problem = read(
        {
            "capacity": {"cpus": 9, "mem": 18.5},
            "users": [
                {"name": "A", "demand": {"mem": 4, "cpus": 1}, "weight": 2, "max_tasks": None},
                {"name": "B", "demand": {"cpus": 0.5}, "weight": {"mem": 3}, "max_tasks": 2.5},
            ],
            "entitlements": {"B": 0.25, "A": {"cpus": 0.75}},
        }
    )

    assert problem == Problem(
        resources=("cpus", "mem"),
        capacity=(9.0, 18.5),
        users=(User("A", (1.0, 4.0), (2.0, 2.0), inf), User("B", (0.5, 0.0), (1.0, 3.0), 2.5)),
        entitlements=((0.75, 0.0), (0.25, 0.25)),
    )


def test_without_capacity_it_is_the_sum_of_the_nodes() -> None:
    problem = read(
        {
            "users": [A],
            "nodes": [{"count": 3, "cpus": 0.1, "mem": 14}, {"count": 2, "gpus": 1, "cpus": 1, "mem": 1}],
        }
    )

    assert problem.resources == ("cpus", "mem", "gpus")
    assert problem.nodes == (Nodes(3, (0.1, 14.0, 0.0)), Nodes(2, (1.0, 1.0, 1.0)))
    assert problem.capacity == (2.3, 44.0, 2.0)


def test_capacity_and_nodes_may_both_be_given_if_they_agree() -> None:
    problem = read(
        {
            "capacity": {"mem": 28, "cpus": 0.3},
            "users": [A],
            "nodes": [{"count": 3, "cpus": 0.1, "mem": 28 / 3}],
        }
    )

    assert problem.resources == ("mem", "cpus")
    assert problem.capacity == pytest.approx((28, 0.3))


def test_a_byte_order_mark_is_no_fault() -> None:
    assert read_problem(
        b"\xef\xbb\xbf" + json.dumps({"capacity": POOL, "users": [A]}).encode()
    ).resources == ("cpus", "mem")


NOT_JSON = [
    (b"", "document: expected JSON, got nothing"),
    (
        b'{"capacity": {"cpus": 1},\n "users": [,]}',
        "document: expected JSON, got Expecting value at line 2, column 12",
    ),
    (b"\xff\xfe{", "document: expected UTF-8, got byte 0xff at 0"),
    (b'{"users": "\xc3("}', "document: expected UTF-8, got byte 0xc3 at 11"),
    (b"[" * 200_000, "document: expected at most four levels of nesting, got hundreds"),
    (b'{"a":' * 200_000, "document: expected at most four levels of nesting, got hundreds"),
    (b"[]", "document: expected an object, got an array"),
    (b"null", "document: expected an object, got null"),
    (b'{"users": [], "users": []}', 'document: expected each key once, got "users" twice'),
]


@pytest.mark.parametrize(("document", "message"), NOT_JSON)
def test_what_is_no_json_object_is_refused(document: bytes, message: str) -> None:
    with pytest.raises(ProblemError) as raised:
        read_problem(document)

    assert str(raised.value) == message


def test_a_large_document_is_refused_by_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problem_json, "BYTES_MAX", 100)

    with pytest.raises(ProblemError, match=r"^document: expected at most 100 bytes, got 101$"):
        read_problem(b" " * 101)


AMOUNT = "expected a finite number above or equal to 0"
NUMBERS = [
    ("NaN", f"{AMOUNT}, got NaN"),
    ("Infinity", f"{AMOUNT}, got Infinity"),
    ("-Infinity", f"{AMOUNT}, got -Infinity"),
    ("1e999", f"{AMOUNT}, got Infinity"),
    ("9" * 5_000, f"{AMOUNT}, got Infinity"),
    ("-1", f"{AMOUNT}, got -1"),
    ("true", f"{AMOUNT}, got true"),
    ("null", f"{AMOUNT}, got null"),
    ('"1"', f'{AMOUNT}, got "1"'),
    ("[1]", f"{AMOUNT}, got an array"),
    ("1e31", "expected 0, or a number from 1e-30 to 1e+30, got 1e+31; choose another unit"),
    ("1e-31", "expected 0, or a number from 1e-30 to 1e+30, got 1e-31; choose another unit"),
]


@pytest.mark.parametrize(("number", "message"), NUMBERS)
@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("capacity.mem", '{"capacity": {"cpus": 9, "mem": X}, "users": []}'),
        ("nodes[1].cpus", '{"nodes": [{"count": 1, "cpus": 1}, {"count": 1, "cpus": X}], "users": []}'),
        (
            "users[1].demand.cpus",
            '{"capacity": {"cpus": 9}, "users": [{"name": "A", "demand": {"cpus": 1}}, {"name": "B", "demand": {"cpus": X}}]}',
        ),
        (
            "entitlements.A.cpus",
            '{"capacity": {"cpus": 9}, "users": [{"name": "A", "demand": {"cpus": 1}}], "entitlements": {"A": {"cpus": X}}}',
        ),
    ],
)
def test_a_number_that_is_none_is_refused_with_its_place(
    path: str, document: str, number: str, message: str
) -> None:
    with pytest.raises(ProblemError) as raised:
        read_problem(document.replace("X", number).encode())

    assert str(raised.value) == f"{path}: {message}"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"users": [A]}, "document: expected the key 'capacity' or 'nodes', got neither"),
    ({"capacity": POOL}, 'document: expected the key "users", got none'),
    ({"capacity": POOL, "users": []}, "users: expected at least one entry, got none"),
    ({"capacity": POOL, "users": {"A": 1}}, "users: expected an array, got an object"),
    ({"capacity": {}, "users": [A]}, "capacity: expected at least one resource, got none"),
    ({"capacity": [9], "users": [A]}, "capacity: expected an object, got an array"),
    (
        {"capacity": POOL, "users": [A], "user": 1},
        'document: expected no keys but capacity, users, nodes, entitlements, got "user"',
    ),
    ({"capacity": POOL, "users": [A, 7]}, "users[1]: expected an object, got 7"),
    ({"capacity": POOL, "users": [{"demand": {}}]}, 'users[0]: expected the key "name", got none'),
    ({"capacity": POOL, "users": [{"name": "A"}]}, 'users[0]: expected the key "demand", got none'),
    (
        {"capacity": POOL, "users": [{**A, "wieght": 1}]},
        'users[0]: expected no keys but name, demand, weight, max_tasks, got "wieght"',
    ),
    (
        {"capacity": POOL, "users": [{**A, "name": ""}]},
        'users[0].name: expected text of 1 to 128 printable characters, got ""',
    ),
    (
        {"capacity": POOL, "users": [{**A, "name": "a\nb"}]},
        'users[0].name: expected text of 1 to 128 printable characters, got "a\\nb"',
    ),
    (
        {"capacity": POOL, "users": [{**A, "name": "\ud800"}]},
        'users[0].name: expected text of 1 to 128 printable characters, got "\\ud800"',
    ),
    (
        {"capacity": POOL, "users": [{**A, "name": 3}]},
        "users[0].name: expected text of 1 to 128 printable characters, got 3",
    ),
    (
        {"capacity": POOL, "users": [A, B, A]},
        'users[2].name: expected a name of its own, got "A" as in users[0]',
    ),
    (
        {"capacity": POOL, "users": [A, {"name": "B", "demand": {}}]},
        "users[1].demand: expected some resource above 0, got none",
    ),
    (
        {"capacity": POOL, "users": [{"name": "A", "demand": {"cpus": 0, "mem": 0.0}}]},
        "users[0].demand: expected some resource above 0, got none",
    ),
    (
        {"capacity": POOL, "users": [{"name": "A", "demand": {"cpu": 1}}]},
        "users[0].demand.cpu: expected one of the resources cpus, mem, got another",
    ),
    (
        {"capacity": POOL, "users": [{"name": "A", "demand": {"c\n": 1}}]},
        'users[0].demand["c\\n"]: expected one of the resources cpus, mem, got another',
    ),
    (
        {"capacity": {**POOL, "gpus": 0}, "users": [{"name": "A", "demand": {"cpus": 1, "gpus": 1}}]},
        "users[0].demand.gpus: expected 0, since there is no capacity of it, got 1.0",
    ),
    (
        {"capacity": {"cpus": 1, "count": 1}, "users": [A]},
        "capacity.count: expected another name of a resource, got the one that counts nodes",
    ),
    (
        {"capacity": {"cpus": 1, "": 1}, "users": [A]},
        'capacity.: expected text of 1 to 128 printable characters, got ""',
    ),
    (
        {"capacity": POOL, "users": [{**A, "weight": 0}]},
        "users[0].weight: expected a number from 1e-06 to 1e+06, or an object of such, got 0",
    ),
    (
        {"capacity": POOL, "users": [{**A, "weight": True}]},
        "users[0].weight: expected a number from 1e-06 to 1e+06, or an object of such, got true",
    ),
    (
        {"capacity": POOL, "users": [{**A, "weight": {"mem": -1}}]},
        "users[0].weight.mem: expected a number from 1e-06 to 1e+06, got -1",
    ),
    (
        {"capacity": POOL, "users": [{**A, "weight": {"gpus": 1}}]},
        "users[0].weight.gpus: expected one of the resources cpus, mem, got another",
    ),
    (
        {"capacity": POOL, "users": [{**A, "max_tasks": 0}]},
        "users[0].max_tasks: expected null or a number from 1e-30 to 1e+30, got 0",
    ),
    (
        {"capacity": POOL, "users": [{**A, "max_tasks": float("nan")}]},
        "users[0].max_tasks: expected null or a number from 1e-30 to 1e+30, got NaN",
    ),
    ({"nodes": [], "users": [A]}, "nodes: expected at least one entry, got none"),
    ({"nodes": [{"cpus": 1}], "users": [A]}, 'nodes[0]: expected the key "count", got none'),
    (
        {"nodes": [{"count": 1}], "users": [A]},
        "nodes[0]: expected at least one resource beside 'count', got none",
    ),
    (
        {"nodes": [{"count": 1.5, "cpus": 1}], "users": [A]},
        "nodes[0].count: expected a whole number from 1 to 1000000000, got 1.5",
    ),
    (
        {"nodes": [{"count": True, "cpus": 1}], "users": [A]},
        "nodes[0].count: expected a whole number from 1 to 1000000000, got true",
    ),
    (
        {"capacity": POOL, "nodes": [{"count": 2, "cpus": 4.5, "gpus": 9}], "users": [A]},
        "nodes[0].gpus: expected one of the resources cpus, mem, got another",
    ),
    (
        {"capacity": POOL, "nodes": [{"count": 2, "cpus": 4.5, "mem": 10}], "users": [A]},
        "capacity.mem: expected 20, the sum over nodes, got 18.0",
    ),
    (
        {"capacity": POOL, "users": [A], "entitlements": {"B": 1}},
        'entitlements: expected no keys but A, got "B"',
    ),
    (
        {"capacity": POOL, "users": [A, B], "entitlements": {"B": 1}},
        'entitlements: expected the key "A", got none',
    ),
    (
        {"capacity": POOL, "users": [A], "entitlements": {"A": {"mem": 1.5}}},
        "entitlements.A.mem: expected a fraction from 0 to 1, got 1.5",
    ),
    (
        {"capacity": POOL, "users": [A, B], "entitlements": {"A": 0.6, "B": {"mem": 0.5}}},
        "entitlements: expected at most 1 of mem over all users, got 1.1",
    ),
    ({"capacity": POOL, "users": [A], "entitlements": []}, "entitlements: expected an object, got an array"),
]


@pytest.mark.parametrize(("document", "message"), WRONG)
def test_a_wrong_field_is_refused_with_its_place(document: dict[str, Any], message: str) -> None:
    with pytest.raises(ProblemError) as raised:
        read(document)

    assert str(raised.value) == message


@pytest.mark.parametrize("where", ["capacity", "users[0]", "users[0].demand", "nodes[0]"])
def test_a_key_that_comes_twice_is_refused_where_it_is(where: str) -> None:
    document = json.dumps({"capacity": POOL, "users": [A], "nodes": [{"count": 1, **POOL}]})
    twice = {
        "capacity": ('"capacity": {', '"capacity": {"mem": 1, '),
        "users[0]": ('"name"', '"demand": {}, "name"'),
        "users[0].demand": ('"demand": {', '"demand": {"mem": 4, '),
        "nodes[0]": ('{"count": 1', '{"mem": 18, "count": 1'),
    }[where]

    with pytest.raises(ProblemError, match=r"expected each key once, got .* twice") as raised:
        read_problem(document.replace(*twice).encode())

    assert str(raised.value).startswith(f"{where}: ")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["capacity", "users", "nodes", "name", "demand", "weight", "cpus", "count", "x\n"]
            ),
            inner,
        )
    ),
    max_leaves=12,
)


@given(
    document=json_values,
    users=json_values,
    key=st.sampled_from(["users", "capacity", "nodes", "entitlements"]),
)
def test_whatever_comes_is_a_problem_or_one_line(document: Any, users: Any, key: str) -> None:
    for candidate in (
        document,
        {"capacity": POOL, "users": [A], key: users},
        {"capacity": POOL, "users": [{**A, "demand": users}]},
    ):
        message = ""
        try:
            assert read(candidate).users
        except ProblemError as error:
            message = str(error)
        assert "\n" not in message
        assert len(message) < 600


@given(st.binary(max_size=60))
def test_whatever_bytes_come_are_refused_in_one_line(document: bytes) -> None:
    with pytest.raises(ProblemError) as raised:
        read_problem(document)

    assert "\n" not in str(raised.value)
