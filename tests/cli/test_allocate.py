"""`fairlead allocate` as a person and a script see it."""

import io
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from fairlead_cli import allocation_tables
from fairlead_master.allocation.policies.names import EXAMPLES
from fairlead_master.solvers import discrete, problem_json
from tests.cli.conftest import Invoke

A = {"name": "A", "demand": {"cpus": 1, "mem": 4}}
B = {"name": "B", "demand": {"cpus": 3, "mem": 1}}
DRF_EXAMPLE = {"capacity": {"cpus": 9, "mem": 18}, "users": [A, B]}
"""DRF paper, section 4.1."""


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Write a document, as it is or as JSON, and give its path."""

    def to_file(document: Any, name: str = "problem.json") -> str:
        path = tmp_path / name
        path.write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
        return str(path)

    return to_file


def test_the_drf_example_as_a_table(invoke: Invoke, write: Any) -> None:
    outcome = invoke("allocate", write(DRF_EXAMPLE))

    assert outcome.code == 0
    assert outcome.err == ""
    assert outcome.out == (
        "drf, tasks may be split, one pool, 2 users\n"
        "\n"
        "USER  TASKS       CPUS         MEM  DOMINANT SHARE  RESOURCE  HELD BACK BY\n"
        "A         3  3 (33.3%)  12 (66.7%)          0.6667  mem       cpus\n"
        "B         2  6 (66.7%)   2 (11.1%)          0.6667  cpus      cpus\n"
        "\n"
        "RESOURCE  CAPACITY  HELD  UTILISATION\n"
        "cpus             9     9       100.0%\n"
        "mem             18    14        77.8%\n"
    )


def test_json_has_the_keys_that_scripts_rely_on(invoke: Invoke, write: Any) -> None:
    fluid = json.loads(invoke("allocate", write(DRF_EXAMPLE), "--json").out)
    whole = json.loads(invoke("allocate", write(DRF_EXAMPLE), "--discrete", "--json").out)
    priced = json.loads(invoke("allocate", write(DRF_EXAMPLE), "--policy", "pf", "--json").out)

    assert fluid == {
        "policy": "drf",
        "mode": "fluid",
        "tasks": {"A": 3, "B": 2},
        "allocated": {"A": {"cpus": 3, "mem": 12}, "B": {"cpus": 6, "mem": 2}},
        "dominant_share": {"A": pytest.approx(2 / 3), "B": pytest.approx(2 / 3)},
        "dominant_resource": {"A": "mem", "B": "cpus"},
        "utilization": {"cpus": 1, "mem": pytest.approx(14 / 18)},
        "saturated": ["cpus"],
    }
    assert whole["mode"] == "discrete"
    assert whole["steps"] == ["A", "B", "A", "B", "A"]
    # Both resources are full: x + 3y = 9 and 4x + y = 18; each pays 1, so that nu1 x / 9 + nu2 4x / 18 = 1.
    assert priced["tasks"] == {"A": pytest.approx(45 / 11, rel=1e-9), "B": pytest.approx(18 / 11, rel=1e-9)}
    assert priced["multipliers"] == {"cpus": pytest.approx(1.8), "mem": pytest.approx(0.2)}
    assert priced["relative_error"] <= 1e-9


@pytest.mark.parametrize("policy", EXAMPLES)
@pytest.mark.parametrize("flags", [(), ("--discrete",)])
def test_every_policy_of_a_live_cluster_can_be_asked(
    invoke: Invoke, write: Any, policy: str, flags: tuple[str, ...]
) -> None:
    shown = invoke("allocate", write(DRF_EXAMPLE), "--policy", policy, *flags)
    document = json.loads(invoke("allocate", write(DRF_EXAMPLE), "--policy", policy, "--json", *flags).out)

    assert shown.code == 0
    assert shown.err == ""
    assert shown.out.startswith(
        f"{policy}, {'whole tasks' if flags else 'tasks may be split'}, one pool, 2 users\n"
    )
    assert document["policy"] == policy
    assert document["mode"] == ("discrete" if flags else "fluid")
    assert ("steps" in document) == bool(flags)


def test_prices_and_certificates_are_shown_where_there_are_any(invoke: Invoke, write: Any) -> None:
    priced = invoke("allocate", write(DRF_EXAMPLE), "--policy", "pf").out
    fair = invoke("allocate", write(DRF_EXAMPLE), "--policy", "bbf").out
    crowded = invoke("allocate", write(DRF_EXAMPLE), "--policy", "slots:8").out

    assert "PRICE\ncpus             9     9       100.0%    1.8\n" in priced
    assert "Certified: nobody below its limit is off by more than 1e-" in priced
    assert "No justified complaints (bottlenecks: cpus, mem)." in fair
    assert "More than there is of cpus, mem: slots do not look at what a task needs." in crowded
    assert all(line.endswith(" slots") for line in crowded.splitlines()[3:5])


def test_weights_limits_and_machines_are_shown_where_there_are_any(invoke: Invoke, write: Any) -> None:
    problem = {
        "nodes": [{"count": 2, "cpus": 2, "mem": 9}, {"count": 1, "cpus": 5, "mem": 0}],
        "users": [{**A, "weight": {"mem": 2}}, {**B, "max_tasks": 0.5}],
    }

    lines = invoke("allocate", write(problem)).out.splitlines()

    assert lines[0] == "drf, tasks may be split, 3 machines of 2 kinds, 2 users"
    assert lines[2].split()[:4] == ["USER", "WEIGHT", "TASKS", "OF"]
    assert lines[3].split()[:4] == ["A", "1/2", "2.5", "-"]
    assert lines[3].endswith(" machines")
    assert lines[4].split()[:4] == ["B", "1", "0.5", "0.5"]
    assert lines[4].endswith(" wants no more")


def test_a_long_order_of_serving_is_cut_for_people_only(
    invoke: Invoke, write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allocation_tables, "STEPS_SHOWN", 3)

    outcome = invoke("allocate", write(DRF_EXAMPLE), "--discrete")

    assert outcome.out.endswith("\nServed in order: A B A and 2 more\n")


def test_a_problem_may_come_from_standard_input(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(json.dumps(DRF_EXAMPLE).encode()))
    monkeypatch.setattr(sys, "stdin", stream)

    assert json.loads(invoke("allocate", "-", "--json").out)["tasks"] == {"A": 3, "B": 2}


def test_a_name_that_the_terminal_cannot_show_is_escaped(write: Any) -> None:
    problem = {"capacity": {"cpus": 9}, "users": [{"name": "Zoë", "demand": {"cpus": 1}}]}

    done = subprocess.run(
        [sys.executable, "-m", "fairlead_cli.main", "allocate", write(problem)],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
        timeout=60,
    )

    assert b"\nZo\\xeb     " in done.stdout
    assert done.stderr == b""


def with_user(**fields: Any) -> dict[str, Any]:
    return {**DRF_EXAMPLE, "users": [A, {**B, **fields}]}


BAD = [
    (b"", "document: expected JSON, got nothing"),
    (b"users: []", "document: expected JSON, got Expecting value at line 1, column 1"),
    (b"\x80", "document: expected UTF-8, got byte 0x80 at 0"),
    ([], "document: expected an object, got an array"),
    ({"capacity": {"cpus": 9}}, 'document: expected the key "users", got none'),
    ({**DRF_EXAMPLE, "user": []}, "document: expected no keys but capacity, users, nodes, entitlements, got"),
    ({**DRF_EXAMPLE, "users": []}, "users: expected at least one entry, got none"),
    ({**DRF_EXAMPLE, "users": [A, B, A]}, 'users[2].name: expected a name of its own, got "A" as in users[0]'),
    (with_user(demands={}), "users[1]: expected no keys but name, demand, weight, max_tasks, got"),
    (with_user(demand={}), "users[1].demand: expected some resource above 0, got none"),
    (with_user(demand={"cpus": 0}), "users[1].demand: expected some resource above 0, got none"),
    (with_user(demand={"gpus": 1}), "users[1].demand.gpus: expected one of the resources cpus, mem, got"),
    (
        {"capacity": {"cpus": 9, "mem": 0}, "users": [A]},
        "users[0].demand.mem: expected 0, since there is no capacity of it, got 4",
    ),
    (with_user(demand={"cpus": float("nan")}), "users[1].demand.cpus: expected a finite number"),
    (with_user(demand={"cpus": float("inf")}), "users[1].demand.cpus: expected a finite number"),
    (with_user(weight=-1), "users[1].weight: expected a number from 1e-06 to 1e+06"),
    (with_user(max_tasks=0), "users[1].max_tasks: expected null or a number"),
    ({"nodes": [], "users": [A]}, "nodes: expected at least one entry, got none"),
    ({"nodes": [{"count": 0, "cpus": 1}], "users": [A]}, "nodes[0].count: expected a whole number from 1"),
    ({**DRF_EXAMPLE, "entitlements": {"A": 2, "B": 0}}, "entitlements.A.cpus: expected a fraction from 0 to 1"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "message"), BAD)
@pytest.mark.parametrize("flags", [(), ("--json",), ("--discrete", "--policy", "pf")])
def test_bad_input_is_one_line_with_its_place_and_code_2(
    invoke: Invoke, write: Any, document: Any, message: str, flags: tuple[str, ...]
) -> None:
    path = write(document)

    outcome = invoke("allocate", path, *flags)

    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith(f"fairlead: {path}: {message}")
    assert outcome.err.count("\n") == 1


def test_a_huge_file_is_refused_by_its_size_without_reading_it(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(100_000_000)

    tracemalloc.start()
    outcome = invoke("allocate", str(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert outcome == (
        2,
        "",
        f"fairlead: {path}: expected at most {problem_json.BYTES_MAX} bytes, got more\n",
    )
    assert peak < 2.5 * problem_json.BYTES_MAX


def test_what_cannot_be_read_is_one_line_and_code_2(invoke: Invoke, write: Any, tmp_path: Path) -> None:
    absent = str(tmp_path / "absent.json")

    assert invoke("allocate", absent) == (2, "", f"fairlead: {absent}: No such file or directory\n")
    assert invoke("allocate", str(tmp_path)) == (2, "", f"fairlead: {tmp_path}: Is a directory\n")
    if os.geteuid() != 0:  # root reads everything
        path = write(DRF_EXAMPLE)
        Path(path).chmod(0)
        assert invoke("allocate", path) == (2, "", f"fairlead: {path}: Permission denied\n")


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("best", "policy: expected one of drf, asset, max-min,"),
        ("max-min:gpus", "policy: expected max-min:RES with RES one of cpus, mem, got 'max-min:gpus'"),
        ("slots:0", "policy: expected slots:K with K from 1 to 1000, got 'slots:0'"),
        ("alpha:-1", "policy: expected alpha:A with A from 0.1"),
        ("", "policy: expected one of drf"),
    ],
)
def test_a_policy_that_is_none_is_one_line_and_code_2(
    invoke: Invoke, write: Any, policy: str, message: str
) -> None:
    outcome = invoke("allocate", write(DRF_EXAMPLE), "--policy", policy)

    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith(f"fairlead: {message}")
    assert outcome.err.count("\n") == 1


def test_more_tasks_than_anybody_reads_are_refused_in_whole_tasks_only(
    invoke: Invoke, write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discrete, "TASKS_MAX", 1_000)
    problem = {"capacity": {"cpus": 1e9}, "users": [{"name": "A", "demand": {"cpus": 1}}]}

    outcome = invoke("allocate", write(problem), "--discrete")

    assert outcome.code == 2
    assert outcome.err.startswith("fairlead: users: expected at most 1000 tasks in all")
    assert invoke("allocate", write(problem)).code == 0


def test_an_allocation_that_is_fair_is_verified_with_code_0(invoke: Invoke, write: Any) -> None:
    """What the solver of proportional fairness gives leaves nobody a justified complaint."""
    problem = write(DRF_EXAMPLE)
    solved = invoke("allocate", problem, "--policy", "pf", "--json").out
    allocation = write(solved.encode(), "allocation.json")

    outcome = invoke("allocate", problem, "--verify", allocation)
    verdict = json.loads(invoke("allocate", problem, "--verify", allocation, "--json").out)

    assert outcome.code == 0
    assert outcome.out.startswith("as given, tasks may be split, one pool, 2 users\n")
    assert outcome.out.endswith("\nNo justified complaints (bottlenecks: cpus, mem).\n")
    assert verdict == {
        "mode": "fluid",
        "fair": True,
        "feasible": True,
        "efficient": True,
        "bottlenecks": ["cpus", "mem"],
        "overdrawn": [],
        "overserved": [],
        "improvable": [],
        "complaints": [],
    }


def test_who_complains_with_justice_is_named_with_code_1(invoke: Invoke, write: Any) -> None:
    """B is entitled to half of the CPUs, which are used up, and has a third."""
    problem = write(DRF_EXAMPLE)
    allocation = write({"tasks": {"A": 4.2, "B": 1.6}}, "allocation.json")
    unfair = {"users": [B, {"name": "C", "demand": {"cpus": 1}}], "capacity": {"cpus": 9, "mem": 18}}
    taken = write({"tasks": {"B": 1, "C": 6}}, "taken.json")

    assert invoke("allocate", problem, "--verify", allocation).code == 1
    outcome = invoke("allocate", write(unfair, "unfair.json"), "--verify", taken)
    document = json.loads(invoke("allocate", write(unfair, "unfair.json"), "--verify", taken, "--json").out)

    assert outcome.code == 1
    assert "1 justified complaint (bottlenecks: cpus):\n" in outcome.out
    assert "  B wants more and has 33.3333% of cpus and is entitled to 50.0000%\n" in outcome.out
    assert document["fair"] is False
    assert document["efficient"] is True
    assert document["complaints"] == [
        {
            "user": "B",
            "tasks": 1.0,
            "wants": None,
            "standings": [
                {"resource": "cpus", "has_share": pytest.approx(1 / 3), "entitled_share": pytest.approx(0.5)}
            ],
        }
    ]


def test_what_is_impossible_or_not_wanted_is_said(invoke: Invoke, write: Any) -> None:
    problem = write({**DRF_EXAMPLE, "users": [A, {**B, "max_tasks": 1}]})

    over = invoke("allocate", problem, "--verify", write({"tasks": {"A": 5, "B": 2}}, "a.json"))
    idle = invoke("allocate", problem, "--verify", write({"tasks": {"A": 1, "B": 1}}, "b.json"))

    assert over.code == 1
    assert "Not possible: more is given than there is of cpus, mem." in over.out
    assert "Not wanted: more tasks than they want are given to B." in over.out
    assert idle.code == 1
    assert "A has 1 task and wants more, and nothing it needs is used up" in idle.out
    assert "Not efficient: at nobody's cost more could be given to A." in idle.out


def test_that_machines_are_not_looked_at_is_said(invoke: Invoke, write: Any) -> None:
    nodes = [{"count": 1, "cpus": 8, "mem": 2}, {"count": 1, "cpus": 1, "mem": 16}]
    allocation = write({"tasks": {"A": 45 / 11, "B": 18 / 11}}, "allocation.json")

    outcome = invoke("allocate", write({"nodes": nodes, "users": [A, B]}), "--verify", allocation)

    assert outcome.code == 0
    assert "Machines of different kinds are taken as one pool here" in outcome.out


def test_whole_tasks_are_verified_as_such(invoke: Invoke, write: Any) -> None:
    """<3, 2> leaves 4 GB of memory that no whole task can use; split tasks could."""
    problem = write(DRF_EXAMPLE)
    called_whole = write({"tasks": {"A": 4, "B": 1}, "mode": "discrete"}, "whole.json")
    fluid = write({"tasks": {"A": 4, "B": 1}}, "fluid.json")

    assert invoke("allocate", problem, "--verify", called_whole).code == 0
    assert invoke("allocate", problem, "--verify", fluid).code == 1
    assert invoke("allocate", problem, "--verify", fluid, "--discrete").code == 0


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "document: expected an object, got an array"),
        ({}, 'document: expected the key "tasks", got none'),
        ({"tasks": {"A": 1}}, 'tasks: expected the key "B", got none'),
        ({"tasks": {"A": 1, "B": 1, "C": 1}}, 'tasks: expected no keys but A, B, got "C"'),
        ({"tasks": {"A": 1, "B": -1}}, "tasks.B: expected a finite number above or equal to 0, got -1"),
        ({"tasks": {"A": float("nan"), "B": 1}}, "tasks.A: expected a finite number above or equal to 0, got NaN"),
        ({"tasks": {"A": 1, "B": 1}, "mode": "x"}, 'mode: expected "fluid" or "discrete", got "x"'),
        (
            {"tasks": {"A": 1, "B": 2.5}, "mode": "discrete"},
            "tasks.B: expected a whole number above or equal to 0, got 2.5",
        ),
    ],
)  # fmt: skip
def test_a_bad_allocation_is_one_line_with_its_place_and_code_2(
    invoke: Invoke, write: Any, document: Any, message: str
) -> None:
    path = write(document, "allocation.json")

    outcome = invoke("allocate", write(DRF_EXAMPLE), "--verify", path)

    assert outcome == (2, "", f"fairlead: {path}: {message}\n")


def test_parts_of_tasks_are_refused_where_the_command_line_calls_them_whole(
    invoke: Invoke, write: Any
) -> None:
    problem = write(DRF_EXAMPLE)
    path = write({"tasks": {"A": 2.5, "B": 1.0}, "mode": "fluid"}, "allocation.json")

    outcome = invoke("allocate", problem, "--verify", path, "--discrete")

    assert outcome == (
        2,
        "",
        f"fairlead: {path}: tasks.A: expected a whole number above or equal to 0, got 2.5\n",
    )


def test_options_that_do_not_go_together_are_refused(invoke: Invoke, write: Any) -> None:
    problem = write(DRF_EXAMPLE)

    assert (
        "--policy and --verify do not go together"
        in invoke("allocate", problem, "--policy", "drf", "--verify", problem).err
    )
    assert "got both" in invoke("allocate", "-", "--verify", "-").err
    assert invoke("allocate").code == 2
