"""`fairlead run`, attached and detached, on a real local cluster."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from fairlead_local.cluster import LocalCluster
from fairlead_proto.v1 import files_pb2
from fairlead_sdk import output
from fairlead_sdk.grpc_transport import GrpcTransport
from tests.cli.conftest import Invoke
from tests.cli.live.conftest import Start, ended, eventually, listing

pytestmark = pytest.mark.shell


def test_run_shows_output_and_passes_the_exit_code_through(invoke: Invoke) -> None:
    outcome = invoke("run", "--", "sh", "-c", "echo to-stdout; echo to-stderr >&2; exit 7")

    assert outcome.code == 7
    assert outcome.out == "to-stdout\n"
    assert "to-stderr\n" in outcome.err
    assert outcome.err.splitlines()[-1].endswith(": exit code 7")


def test_run_of_what_finishes_exits_with_0(invoke: Invoke) -> None:
    outcome = invoke("run", "--env", "GREETING=hi there", "--", "sh", "-c", 'echo "$GREETING"')

    assert (outcome.code, outcome.out) == (0, "hi there\n")


def test_run_of_what_a_signal_ends_exits_with_128_and_the_signal(invoke: Invoke) -> None:
    assert invoke("run", "--", "sh", "-c", "kill -9 $$").code == 137


def test_task_that_is_run_again_is_told(invoke: Invoke) -> None:
    outcome = invoke("run", "--retries", "1", "--", "sh", "-c", "exit 7")

    assert outcome.code == 7
    (told,) = [line for line in outcome.err.splitlines() if line.startswith("fairlead: ")]
    assert re.fullmatch(
        r"fairlead: failed on agent \S+ after \d+\.\d s: exit code 7; the task is run again", told
    )


def test_run_whose_output_the_shell_has_closed_exits_with_the_tasks_code() -> None:
    command = [sys.executable, "-m", "fairlead_cli.main", "run", "--", "sh", "-c", "echo unread; exit 5"]

    outcome = subprocess.run(
        ["sh", "-c", 'exec "$@" <&- >&-', "sh", *command],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=30,
    )

    assert outcome.returncode == 5, outcome.stderr
    assert "unread" not in outcome.stderr


def test_run_starts_in_the_working_directory_asked_for(invoke: Invoke, tmp_path: Path) -> None:
    assert invoke("run", "-q", "--workdir", str(tmp_path), "--", "pwd").out == f"{tmp_path}\n"

    missing = invoke("run", "--workdir", str(tmp_path / "missing"), "--", "pwd")
    no_directory = invoke("run", "-q", "--workdir", "/etc/hostname", "--", "pwd")
    relative = invoke("run", "--workdir", "here", "--", "pwd")

    assert (missing.code, missing.out) == (1, "")
    assert f"working_directory: expected a directory, got '{tmp_path}/missing': No such file" in missing.err
    assert "working_directory: expected a directory, got '/etc/hostname': Not a directory" in no_directory.err
    assert (relative.code, relative.err.count("\n")) == (2, 1)
    assert "--workdir: expected an absolute path on the agent's host, got 'here'" in relative.err


def test_run_without_files_starts_in_the_root_and_logs_say_that_there_are_none(
    invoke: Invoke, tmp_path: Path
) -> None:
    script = f"echo lost; pwd > {tmp_path}/said"

    outcome = invoke("run", "--no-files", "--", "sh", "-c", script)
    task = max(listing(invoke, "tasks"), key=lambda row: row["submitted_ms"] or 0)
    logs = invoke("logs", task["id"])

    assert (outcome.code, outcome.out) == (0, "")
    assert (tmp_path / "said").read_text() == "/\n"
    assert logs.code == 4
    assert "no files: the task was launched without any, so what it prints is not kept" in logs.err


def test_run_of_a_command_that_does_not_exist_says_so_and_exits_with_127(invoke: Invoke) -> None:
    outcome = invoke("run", "--", "no-such-program-anywhere")

    assert outcome.code == 127
    assert "command: 'no-such-program-anywhere' not found in PATH" in outcome.err


def test_run_of_what_cannot_be_executed_says_so_and_exits_with_126(invoke: Invoke, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")

    outcome = invoke("run", "--retries", "1", "--", str(plain))

    assert outcome.code == 126
    assert f"command: expected a program, but {plain} is not executable" in outcome.err
    assert invoke("run", "-q", "-n", "2", "--mem", "64MiB", "--", str(plain)).code == 1


def test_quiet_run_prints_output_only(invoke: Invoke) -> None:
    outcome = invoke("run", "-q", "--", "echo", "hi")

    assert (outcome.out, outcome.err) == ("hi\n", "")
    assert invoke("run", "-q", "--", "false").err == "", "its exit code says it all"
    assert "no-such-program" in invoke("run", "-q", "--", "no-such-program").err


def test_run_of_many_names_each_line_and_adds_the_exit_codes_up(invoke: Invoke) -> None:
    command = 'echo one; echo two; printf rest; test "$FAIRLEAD_TASK_INDEX" != 2'

    outcome = invoke(
        "run", "-n", "3", "--cpus", "0.5", "--mem", "64MiB", "--name", "w", "--", "sh", "-c", command
    )

    assert outcome.code == 1
    wanted = [f"w-{number}| {word}" for number in (1, 2, 3) for word in ("one", "two", "rest")]
    assert sorted(outcome.out.splitlines()) == sorted(wanted)
    assert "2 of 3 tasks finished; first: w-2 failed" in outcome.err


def test_run_reads_no_file(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    read = GrpcTransport.read_file

    async def counted(transport: GrpcTransport, request: files_pb2.ReadRequest) -> files_pb2.ReadResponse:
        asked.append(request.task_id)
        return await read(transport, request)

    monkeypatch.setattr(GrpcTransport, "read_file", counted)
    monkeypatch.setattr(output, "LATE_MS", 60_000)  # on however busy a machine
    command = 'test "$FAIRLEAD_TASK_INDEX" != 2 || echo words >&2'

    outcome = invoke("run", "-q", "-n", "3", "--name", "w", "--mem", "64MiB", "--", "sh", "-c", command)

    assert (outcome.code, outcome.err) == (0, "w-2| words\n")
    assert asked == []


def test_output_directory_has_a_file_for_each_stream_that_was_written_to(
    invoke: Invoke, tmp_path: Path
) -> None:
    out = tmp_path / "deep" / "out"
    command = "seq 20000; echo done >&2"

    outcome = invoke(
        "run", "-q", "-n", "2", "--mem", "64MiB", "--output", str(out), "--", "sh", "-c", command
    )
    silent = invoke("run", "-q", "--mem", "64MiB", "--output", str(out), "--", "true")

    assert (outcome.code, outcome.out, outcome.err, silent.code) == (0, "", "", 0)
    files = {path.name: path.read_text() for path in out.iterdir()}
    numbers = "".join(f"{number}\n" for number in range(1, 20_001))
    assert files == {
        "sh-1.stdout": numbers,
        "sh-1.stderr": "done\n",
        "sh-2.stdout": numbers,
        "sh-2.stderr": "done\n",
    }


def test_every_line_comes_once_whoever_is_killed_meanwhile(started: Start, tmp_path: Path) -> None:
    """Each is killed and back before the next, and the tasks go on until lines come that were written after that."""
    gate = tmp_path / "gate"
    count = "i=$((i+1)); echo $i; sleep 0.02"
    command = (
        f"i=0; until [ -e {gate} ]; do {count}; done; while [ $i != ${{last:=$((i+20))}} ]; do {count}; done"
    )
    seen: list[str] = []
    with LocalCluster(agents=1, resources="cpus=4,mem=1GiB", isolation="none") as fragile:
        flags = ["--master", fragile.address, "-q", "-n", "3", "--name", "w", "--mem", "64MiB"]
        process = started("run", *flags, "--", "sh", "-c", command)
        stdout = process.stdout
        assert stdout is not None

        def read_on() -> None:
            """Take lines until one comes that is not written yet."""
            files = list(fragile.directory.rglob("stdout"))
            written = max((len(file.read_text().splitlines()) for file in files), default=0)
            while not seen or int(seen[-1].partition("| ")[2]) <= written:
                seen.append(stdout.readline())

        read_on()
        fragile.kill_agent(0)
        fragile.restart_agent(0)
        read_on()
        fragile.kill_master()
        fragile.restart_master()
        read_on()
        gate.touch()
        seen += stdout
        outcome = ended(process)

    assert outcome.code == 0, outcome.err
    for name in ("w-1", "w-2", "w-3"):
        numbers = [line.removeprefix(f"{name}| ") for line in seen if line.startswith(name)]
        assert numbers == [f"{number}\n" for number in range(1, len(numbers) + 1)]
        assert len(numbers) > 20


def test_run_waits_its_turn_when_there_is_more_than_fits(invoke: Invoke) -> None:
    outcome = invoke("run", "-q", "-n", "8", "--cpus", "2", "--mem", "64MiB", "--", "sleep", "0.05")

    assert outcome.code == 0, outcome.err


def test_json_run_prints_the_tasks_and_nothing_else_on_stdout(invoke: Invoke) -> None:
    outcome = invoke("run", "--json", "-n", "2", "--mem", "64MiB", "--", "sh", "-c", "echo noise; exit 3")

    assert outcome.code == 1
    tasks = json.loads(outcome.out)
    assert [task["exit_code"] for task in tasks] == [3, 3]
    assert [task["state"] for task in tasks] == ["FAILED", "FAILED"]
    assert outcome.err.count("noise") == 2
    assert tasks[0].keys() == listing(invoke, "tasks")[0].keys(), (
        "one set of keys for tasks, wherever they come from"
    )


def test_infeasible_demand_is_refused_naming_agent_and_lack(invoke: Invoke) -> None:
    outcome = invoke("run", "--cpus", "5", "--", "true")

    assert outcome.code == 4
    assert not outcome.out
    agents = {agent["hostname"]: agent["id"] for agent in listing(invoke, "agents")}
    assert agents["local-2"] in outcome.err
    assert "cpus=1" in outcome.err


def test_constraint_nobody_meets_is_refused(invoke: Invoke) -> None:
    outcome = invoke("run", "-n", "3", "--constraint", "rack=z", "--", "true")

    assert outcome.code == 4
    assert "rack=z" in outcome.err
    assert "failed" not in outcome.err
    assert "done" not in outcome.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--cpus", "x"], "cpus: expected a number such as 1.5, got 'x'"),
        (["--cpus", "nan"], "cpus: expected"),
        (["--cpus", "-1"], "cpus: expected"),
        (["--mem", "1Q"], "value for '--mem': expected bytes such as 512MiB"),
        (["--cpus", "0", "--mem", "0"], "expected at least one resource above zero"),
        (["--constraint", "=x"], "constraint: expected"),
        (["--max-runtime", "soon"], "max_runtime: expected"),
        (["--env", "X"], "expected NAME=VALUE"),
        (["-n", "0"], "0 is not in the range"),
    ],
)
def test_bad_demand_is_one_line_and_code_2(invoke: Invoke, arguments: list[str], expected: str) -> None:
    outcome = invoke("run", *arguments, "--", "true")

    assert outcome.code == 2
    assert expected in outcome.err
    assert outcome.err.count("\n") == 1


def test_constraint_chooses_the_agent(invoke: Invoke) -> None:
    outcome = invoke("run", "--json", "-n", "3", "--mem", "64MiB", "--constraint", "rack=a", "--", "true")

    agents = {agent["id"]: agent["attributes"]["rack"] for agent in listing(invoke, "agents")}
    assert {agents[task["agent_id"]] for task in json.loads(outcome.out)} == {"a"}


def tasks_named(invoke: Invoke, name: str, *arguments: str) -> list[dict[str, Any]]:
    return [task for task in listing(invoke, "tasks", *arguments) if task["name"] == name]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_kills_the_tasks_and_exits_with_130(invoke: Invoke, number: int, started: Start) -> None:
    process = started("run", "--name", f"victim-{number}", "--", "sh", "-c", "echo begun; exec sleep 60")
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"

    process.send_signal(number)
    outcome = ended(process)

    assert outcome.code == 130
    assert "killing 1 task" in outcome.err
    (task,) = tasks_named(invoke, f"victim-{number}")
    assert task["state"] == "KILLED"


def test_second_interrupt_leaves_at_once(invoke: Invoke, started: Start) -> None:
    stubborn = "trap '' TERM; echo begun; while :; do sleep 0.1; done"
    process = started("run", "--grace", "60s", "--name", "stubborn", "--", "sh", "-c", stubborn)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == "begun\n"

    process.send_signal(signal.SIGINT)
    while "killing" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)

    assert process.wait(timeout=30) == 130
    # The master has been told; that the agent has begun to end the task comes by a report of the agent's.
    (task,) = eventually(lambda: tasks_named(invoke, "stubborn", "--state", "KILLING"))
    invoke("kill", "--grace", "10ms", task["id"])


def test_second_interrupt_right_behind_the_first_ends_the_tasks_too(invoke: Invoke, started: Start) -> None:
    process = started("run", "--name", "twice", "--", "sh", "-c", "echo begun; exec sleep 60")
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"

    # Two signals, for the second of a kind is dropped while the first waits.
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)

    outcome = ended(process)
    assert outcome.code == 130
    assert "lost the master" not in outcome.err
    eventually(lambda: tasks_named(invoke, "twice", "--state", "KILLED"))


def test_reader_that_leaves_ends_the_run(invoke: Invoke, started: Start) -> None:
    process = started("run", "--name", "yes-man", "--", "yes")
    assert process.stdout is not None
    assert process.stdout.readline() == "y\n"

    process.stdout.close()

    assert process.wait(timeout=30) == 1
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    (task,) = tasks_named(invoke, "yes-man")
    assert task["state"] == "KILLED"


def test_detached_run_survives_and_ends_with_its_framework(invoke: Invoke, tmp_path: Path) -> None:
    outcome = invoke("run", "--detach", "--name", "away", "-n", "2", "--mem", "64MiB", "--", "sleep", "60")
    assert outcome.code == 0, outcome.err
    framework_id = outcome.out.strip()
    eventually(lambda: len(listing(invoke, "tasks", "--framework", framework_id, "--state", "RUNNING")) == 2)

    kill = invoke("kill", "--framework", framework_id)

    assert kill.code == 0
    assert kill.out == f"{framework_id}: ended, 2 tasks killed\n"
    (log,) = (tmp_path / "fairlead" / "detached").iterdir()
    assert log.name.startswith(f"{framework_id}@127.0.0.1-")
    assert str(log) in outcome.err
    said = f"ERROR __main__ framework {framework_id} was ended by an operator\n"
    eventually(lambda: said in log.read_text(), limit_s=20)


def test_detached_run_finishes_on_its_own(invoke: Invoke, tmp_path: Path) -> None:
    outcome = invoke("run", "--detach", "--json", "--", "echo", "from afar")

    answer = json.loads(outcome.out)
    log = Path(answer["log"])
    eventually(lambda: "over: 1 task\n" in log.read_text())
    assert " \n" not in log.read_text()
    assert [path.stat().st_mode & 0o777 for path in (log.parent, log)] == [0o700, 0o600]
    (task,) = listing(invoke, "tasks", "--framework", answer["framework_id"])
    assert task["state"] == "FINISHED"
    assert invoke("logs", task["id"]).out == "from afar\n"


def test_log_of_a_detached_run_tells_what_was_run_again_and_why(invoke: Invoke) -> None:
    answer = json.loads(invoke("run", "--detach", "--json", "--retries", "1", "--", "sh", "-c", "exit 7").out)

    log = Path(answer["log"])
    eventually(lambda: "over: 1 task\n" in log.read_text())
    _, *told = [line.partition("__main__ ")[2] for line in log.read_text().splitlines()]
    task_id = f"{answer['framework_id']}-1"
    expected = (
        rf"launched: \S+ as {task_id}",
        rf"EXITED: {task_id}, run again: failed on agent \S+ after \d+\.\d s: exit code 7",
        rf"launched: \S+ as {task_id}\.2",
        rf"failed: {task_id}\.2 exit code 7",
        "over: 1 task",
    )
    assert len(told) == len(expected)
    assert all(re.fullmatch(pattern, line) for pattern, line in zip(expected, told, strict=True)), told


def test_detached_run_gives_up_on_a_master_that_stays_away(invoke: Invoke) -> None:
    with LocalCluster(agents=1, resources="cpus=1,mem=256MiB", isolation="none") as lost:
        flags = ["--master", lost.address, "--reconnect-timeout", "200ms", "--mem", "64MiB", "--json"]
        answer = json.loads(invoke("run", "--detach", *flags, "--", "sleep", "60").out)
        lost.kill_master()
        log = Path(answer["log"])
        said = f"framework {answer['framework_id']} ended: no master at {lost.address}"
        eventually(lambda: said in log.read_text(), limit_s=20)
        assert "Traceback" not in log.read_text(), "it gives up in words"


def test_detached_run_whose_command_was_killed_before_it_began_gives_up(
    started: Start, tmp_path: Path
) -> None:
    process = started("run", "--detach", "--master", "127.0.0.1:1", "--wait", "10m", "--", "true")
    assert process.stderr is not None
    assert "trying for 600 s" in process.stderr.readline()
    (child,) = psutil.Process(process.pid).children()
    (log,) = (tmp_path / "fairlead" / "detached").iterdir()

    process.kill()

    assert not psutil.wait_procs([child], timeout=10)[1]
    assert "given up: the command that started this run ended" in log.read_text()
    assert "Traceback" not in log.read_text()


def test_infeasible_detached_run_is_refused_and_leaves_nothing(invoke: Invoke, tmp_path: Path) -> None:
    outcome = invoke("run", "--detach", "--cpus", "100", "--", "true")

    assert outcome.code == 4
    assert "no registered agent is large enough" in outcome.err
    assert not outcome.out
