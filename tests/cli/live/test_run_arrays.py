"""`fairlead run -n`, `--array` and `--each` on a real local cluster."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke
from tests.cli.live.conftest import Start, eventually, listing

pytestmark = pytest.mark.shell


def piped(*arguments: str) -> str:
    """What a command line prints that is given the lines ``a`` and ``b``."""
    command = [sys.executable, "-m", "fairlead_cli.main", *arguments]
    return subprocess.run(
        command, input="a\nb\n", text=True, capture_output=True, check=True, timeout=60
    ).stdout


def test_array_runs_a_task_for_each_index(invoke: Invoke) -> None:
    command = "echo $FAIRLEAD_TASK_INDEX of $FAIRLEAD_TASK_COUNT {} {#}"

    outcome = invoke(
        "run", "--json", "--array", "8,1-5:2%2", "--mem", "64MiB", "--name", "w", "--", "sh", "-c", command
    )

    assert outcome.code == 0
    assert sorted(line for line in outcome.err.splitlines() if "| " in line) == [
        f"w-{index}| {index} of 4 {{}} {{#}}" for index in (1, 3, 5, 8)
    ]
    tasks = json.loads(outcome.out)
    assert [(task["index"], task["name"]) for task in tasks] == [
        (8, "w-8"),
        (1, "w-1"),
        (3, "w-3"),
        (5, "w-5"),
    ]
    assert [task["id"] for task in tasks] == [f"{task['framework_id']}:{task['index']}" for task in tasks]
    listed = {task["id"]: task["index"] for task in listing(invoke, "tasks")}
    assert {task["id"]: task["index"] for task in tasks}.items() <= listed.items()
    assert invoke("logs", tasks[1]["id"]).out == "1 of 4 {} {#}\n"


def test_array_of_one_task_is_a_single_task_with_an_index(invoke: Invoke) -> None:
    outcome = invoke("run", "--array", "5", "--mem", "64MiB", "--", "sh", "-c", "exit $FAIRLEAD_TASK_INDEX")

    assert outcome.code == 5


def test_each_line_is_a_task_with_the_line_in_its_command(invoke: Invoke, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_bytes(b"one\r\n\r\n two words\nlast")

    placed = invoke(
        "run", "-q", "--each", str(lines), "--mem", "64MiB", "--name", "w", "--", "echo", "{#}", "<{}>"
    )
    behind = invoke("run", "--json", "--each", str(lines), "--mem", "64MiB", "--", "echo")

    assert placed.code == 0
    assert sorted(placed.out.splitlines()) == ["w-0| 0 <one>", "w-1| 1 < two words>", "w-2| 2 <last>"]
    assert [task["command"] for task in json.loads(behind.out)] == [
        ["echo", "one"],
        ["echo", " two words"],
        ["echo", "last"],
    ]


def test_lines_come_by_standard_input_too_also_of_a_detached_run(invoke: Invoke) -> None:
    attached = piped("run", "-q", "--each", "-", "--at-once", "1", "--mem", "64MiB", "--", "echo")
    assert sorted(attached.splitlines()) == ["echo-0| a", "echo-1| b"]

    framework_id = piped("run", "--detach", "--each", "-", "--mem", "64MiB", "--", "echo").strip()
    wanted = ("tasks", "--framework", framework_id, "--state", "FINISHED")
    eventually(lambda: len(listing(invoke, *wanted)) == 2)
    assert invoke("logs", f"{framework_id}:1").out == "b\n"


def test_each_without_a_line_runs_nothing(invoke: Invoke, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("\n")

    outcome = invoke("run", "--json", "--each", str(lines), "--", "echo")

    assert (outcome.code, outcome.out) == (0, "[]\n")
    assert "there is no line" in outcome.err


def test_member_of_an_array_is_killed_by_its_id(invoke: Invoke, started: Start) -> None:
    process = started(
        "run", "--json", "--array", "1-2", "--name", "pair", "--mem", "64MiB", "--", "sleep", "60"
    )

    def running() -> list[str]:
        return [task["id"] for task in listing(invoke, "tasks", "--state", "RUNNING")]

    eventually(lambda: len(running()) == 2)
    for task_id in running():
        assert invoke("kill", task_id).code == 0
    out, _ = process.communicate(timeout=30)
    assert [task["state"] for task in json.loads(out)] == ["KILLED", "KILLED"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--array", "9-0"], "'--array': expected a range that goes up, to at most 2147483647, got '9-0'"),
        (["--array", "0-9:0"], "'--array': expected a stride above 0, got '0-9:0'"),
        (["--array", "0-9%0"], "'--array': expected a number above 0 behind %, got '0-9%0'"),
        (["--array", "a"], "'--array': expected indices such as 7, 0-99, 0-99:2 or 1,3,7-9"),
        (["--array", "٣"], "'--array': expected indices such as 7"),
        (["--array", "0-9%٣"], "'--array': expected a number above 0 behind %, got '0-9%٣'"),
        (["--array", "1,"], "'--array': expected indices such as 7"),
        (["--array", "1-3,2"], "'--array': expected each index once, got one of them twice in '1-3,2'"),
        (["--array", "0-99999999"], "'--array': expected at most 1000000 tasks, got 100000000"),
        (["--array", "1-3", "-n", "2"], "-n, --array, --each: expected one of them, got several"),
        (
            ["--array", "1-3%2", "--at-once", "2"],
            "--at-once: expected it here or in --array, got both 2 and '1-3%2'",
        ),
        (["--at-once", "2"], "--at-once: expected -n, --array or --each beside it, got a single task"),
        (["--each", "/no/such/file"], "--each /no/such/file: No such file or directory"),
    ],
)
def test_bad_array_is_one_line_and_code_2(invoke: Invoke, arguments: list[str], expected: str) -> None:
    outcome = invoke("run", *arguments, "--", "true")

    assert outcome.code == 2
    assert expected in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a\nb\xff\n", "expected UTF-8, got another thing in line 2"),
        (b"\0", "expected text without NUL, got one in line 1"),
        (b"a\n\n" + b"x" * 131_072, "command with line 3: expected at most 131072 bytes, got 131076"),
    ],
)
def test_bad_line_is_named(invoke: Invoke, tmp_path: Path, content: bytes, expected: str) -> None:
    lines = tmp_path / "lines"
    lines.write_bytes(content)

    outcome = invoke("run", "--each", str(lines), "--", "true")

    assert outcome.code == 2
    assert f"--each {lines}: {expected}" in outcome.err


def test_lines_are_not_asked_of_a_terminal(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)

    outcome = invoke("run", "--each", "-", "--", "true")

    assert outcome.code == 2
    assert "--each -: expected lines from a pipe or a file, got a terminal" in outcome.err
