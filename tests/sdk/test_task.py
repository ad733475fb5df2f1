"""What a task may be made of, and how bad arguments are refused."""

from typing import Any

import pytest

from fairlead_cli.run import run
from fairlead_cli.run_request import RunRequest
from fairlead_proto.tasks import Constraint, Operator
from fairlead_sdk import Amounts, Task, parse_constraint
from fairlead_sdk.amounts import parse_duration


def test_amounts_become_whole_numbers() -> None:
    task = Task(["x"], cpus=0.1, mem="512MiB", gpus="0.5", disk=10**9, custom={"licenses": 2, "none": 0})

    assert task.demand == Amounts(
        cpus_milli=100,
        mem_bytes=512 * 2**20,
        gpus_milli=500,
        disk_bytes=10**9,
        custom_milli=(("licenses", 2000),),
    )
    assert str(task.demand) == "cpus=0.1,mem=512MiB,disk=976562.5KiB,gpus=0.5,licenses=2"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"command": []}, "command: expected at least one word"),
        ({"command": "ls -l"}, "expected a list of words"),
        ({"command": ["x", 3]}, "expected texts without NUL, got 3"),
        ({"command": ["a\0b"]}, "expected texts without NUL"),
        ({"command": ["x" * 200_000]}, "at most 131072 bytes, got 200000"),
        ({"cpus": -1}, "cpus: expected a finite number that is not negative, got '-1'"),
        ({"cpus": float("nan")}, "cpus: expected a finite number"),
        ({"cpus": 1 / 3}, "cpus: expected at most three decimals"),
        ({"cpus": "many"}, "cpus: expected a number such as 1.5, got 'many'"),
        ({"mem": "1 parsec"}, "mem: expected bytes such as 512MiB"),
        ({"mem": 2**54}, "mem: expected at most"),
        ({"cpus": 0, "mem": 0}, "expected at least one resource above zero"),
        ({"custom": {"cpus": 1}}, "custom: expected a resource of the cluster's own, got 'cpus'"),
        ({"env": {"A=B": "c"}}, "env: expected names without ="),
        ({"retries": -1}, "retries: expected 0 or more, got -1"),
        ({"grace_period": "soon"}, "grace_period: expected seconds, or a time such as"),
        ({"max_runtime": float("inf")}, "max_runtime: expected seconds"),
        ({"max_runtime": "0s"}, "max_runtime: expected more than 0, or none for no limit, got '0s'"),
        ({"max_runtime": "9999d"}, "max_runtime: expected at most 366 days, got '9999d'"),
        ({"max_runtime": "1e30"}, "max_runtime: expected at most 366 days, got '1e30'"),
        ({"constraints": ["=a"]}, "constraint: expected attr=v1"),
        ({"constraints": [3]}, "constraints: expected texts such as rack=a, or Constraint, got 3"),
        ({"constraints": "rack=a"}, "constraints: expected a list of them, got 'rack=a'"),
        ({"constraints": ["rack=\ud800"]}, "constraints: expected text that can be written in UTF-8"),
        ({"env": {"A": 1}}, "env: expected a text by a name, got 1 by 'A'"),
        ({"env": ["A"]}, "env: expected texts by name, got ['A']"),
        ({"labels": {"a": 1}}, "labels: expected a text by a name, got 1 by 'a'"),
        ({"task_id": 3}, "task_id: expected a text, got 3"),
        ({"retries": "x"}, "retries: expected a whole number, got 'x'"),
        ({"mem": 1.5}, "mem: expected whole bytes, or a text such as 1.5GiB, got 1.5"),
        ({"task_id": "a" * 200}, "task_id: expected 1 to 200 letters"),
    ],
)
def test_a_bad_argument_is_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="expected") as refusal:
        Task(**{"command": ["x"], **options})

    assert message in str(refusal.value)


def test_memory_that_is_not_said_is_what_the_command_line_gives() -> None:
    shell = RunRequest(master="127.0.0.1:5050", command=["x"]).make_work("f")
    [option] = [parameter for parameter in run.params if parameter.name == "mem"]

    assert Task(["x"]).demand.mem_bytes == 512 * 2**20
    assert isinstance(shell, Task)
    assert shell.demand.mem_bytes == 512 * 2**20
    assert Task(["x"], mem=option.default).demand.mem_bytes == 512 * 2**20  # type: ignore[arg-type]  # untyped


@pytest.mark.parametrize(
    ("text", "constraint"),
    [
        ("rack=a", Constraint("rack", Operator.EQUALS, ("a",))),
        ("rack=a|b", Constraint("rack", Operator.EQUALS, ("a", "b"))),
        ("rack!=a", Constraint("rack", Operator.NOT_EQUALS, ("a",))),
        ("rack~a|b", Constraint("rack", Operator.MATCHES, ("a|b",))),
        ("ssd", Constraint("ssd", Operator.EXISTS)),
        ("!ssd", Constraint("ssd", Operator.NOT_EXISTS)),
    ],
)
def test_constraints_are_read_in_five_forms_and_written_back(text: str, constraint: Constraint) -> None:
    assert parse_constraint(text) == constraint
    assert str(constraint) == text


@pytest.mark.parametrize("text", ["", "=a", "rack=", "rack=a|", "!rack=a", "rack~(", "1a=b", "a b"])
def test_other_constraints_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="constraint: expected"):
        parse_constraint(text)


@pytest.mark.parametrize(
    ("value", "duration_ms"),
    [(None, 0), (1.5, 1500), (2, 2000), ("3", 3000), ("250ms", 250), ("5m", 300_000), ("2h", 7_200_000)],
)
def test_durations_are_seconds_or_have_a_unit(value: float | str | None, duration_ms: int) -> None:
    assert parse_duration("x", value) == duration_ms


@pytest.mark.parametrize("value", ["", "s", "5y", "-1", float("nan"), "5 5"])
def test_other_durations_are_refused(value: float | str) -> None:
    with pytest.raises(ValueError, match="x: expected seconds"):
        parse_duration("x", value)


def test_two_tasks_are_never_the_same_work() -> None:
    assert Task(["x"]) != Task(["x"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"env": {"A": "\N{GRINNING FACE}" * 131_072}}, r"env: expected at most 524288 bytes, got 524289"),
        ({"command": ["\N{GRINNING FACE}" * 32_768, "x"]}, r"command: expected at most 131072 bytes, got 131073"),
        ({"working_directory": "\N{GRINNING FACE}" * 1025}, "working_directory: expected a path of at most 4096 bytes"),
        ({"working_directory": "a\0"}, "working_directory: expected a path without NUL"),
        ({"working_directory": "a", "files": False}, "working_directory: expected an absolute path, since there is no sandbox"),
        ({"files": 0}, "files: expected True or False, got 0"),
        ({"env": {"A": "\udc80"}}, "env: expected text that can be written in UTF-8"),
        ({"command": ["\udc80"]}, "command: expected text that can be written in UTF-8"),
        ({"name": "a\nb"}, "name: expected at most 256 printable characters"),
        ({"task_id": "a/b"}, "task_id: expected 1 to 200 letters"),
        ({"labels": {"a b": "c"}}, "labels: expected names of letters"),
        ({"labels": {f"k{n}": "" for n in range(65)}}, "labels: expected at most 64"),
        ({"cpus": 0, "mem": 0}, "task: expected at least one resource above zero"),
    ],
)  # fmt: skip
def test_what_a_master_would_refuse_is_refused_where_it_is_written(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Task(**{"command": ["x"], **options})


def test_the_size_of_a_task_is_in_bytes() -> None:
    wide = Task(["\N{GRINNING FACE}" * 100], env={"A": "\N{GRINNING FACE}" * 100})

    assert wide.size_bytes >= 800
