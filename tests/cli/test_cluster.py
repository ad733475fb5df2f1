"""The command line against a real local cluster: real master, agents and processes, started once for all tests here."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from fairlead_local.cluster import LocalCluster
from tests.cli.conftest import Invoke, Outcome

pytestmark = pytest.mark.shell


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    local = LocalCluster(
        agents=2,
        resources=["cpus=2,mem=1GiB", "cpus=4,mem=2GiB"],
        attributes=[{"rack": "a"}, {"rack": "b"}],
        # The same on every host; limits are tested with the agent.
        isolation="none",
    )
    with local:
        yield local


@pytest.fixture(autouse=True)
def quiet_cluster(
    cluster: LocalCluster, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[None]:
    """Point the command line at the cluster, and end what a test leaves running before the next one begins."""
    monkeypatch.setenv("FAIRLEAD_MASTER", cluster.address)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    yield
    for framework in listing(invoke, "frameworks"):
        if framework["state"] != "COMPLETED":
            invoke("kill", "--framework", framework["id"])
    eventually(lambda: not any(agent["tasks"] for agent in listing(invoke, "agents")))


def listing(invoke: Invoke, *arguments: str) -> list[dict[str, Any]]:
    outcome = invoke(*arguments, "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert isinstance(found, list)
    return found


def holder(invoke: Invoke, *arguments: str) -> str:
    """Start a detached task that holds resources, and return its framework's id once it runs."""
    outcome = invoke("run", "--detach", "--mem", "64MiB", *arguments, "--", "sleep", "60")
    assert outcome.code == 0, outcome.err
    framework_id = outcome.out.strip()
    eventually(lambda: listing(invoke, "tasks", "--framework", framework_id, "--state", "RUNNING"))
    return framework_id


def eventually(probe: Callable[[], Any], *, limit_s: float = 10) -> Any:
    """Return the first true value of ``probe``; fail after a limit that only a hang reaches."""
    deadline = time.monotonic() + limit_s
    while not (value := probe()):
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)
    return value


Process = subprocess.Popen[str]
Start = Callable[..., Process]


@pytest.fixture
def started() -> Iterator[Start]:
    """Start a command line in a process of its own, which does not outlive the test."""
    processes: list[Process] = []

    def start(*arguments: str) -> Process:
        command = [sys.executable, "-m", "fairlead_cli.main", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def ended(process: Process) -> Outcome:
    out, err = process.communicate(timeout=30)
    return Outcome(process.returncode, out, err)


# --- run ---------------------------------------------------------------------------------------------------------


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
    assert outcome.err.count("fairlead: the task was lost or failed, and is run again\n") == 1


def test_run_of_a_command_that_does_not_exist_says_so(invoke: Invoke) -> None:
    outcome = invoke("run", "--", "no-such-program-anywhere")

    assert outcome.code not in (0, 2, 3, 4)
    assert "no-such-program-anywhere" in outcome.err


def test_quiet_run_prints_output_only(invoke: Invoke) -> None:
    outcome = invoke("run", "-q", "--", "echo", "hi")

    assert (outcome.out, outcome.err) == ("hi\n", "")
    assert invoke("run", "-q", "--", "false").err == "", "its exit code says it all"
    assert "no-such-program" in invoke("run", "-q", "--", "no-such-program").err


def test_run_of_many_names_each_line_and_adds_the_exit_codes_up(invoke: Invoke) -> None:
    command = 'echo one; echo two; printf rest; test "${FAIRLEAD_TASK_ID##*-}" != 2'

    outcome = invoke(
        "run", "-n", "3", "--cpus", "0.5", "--mem", "64MiB", "--name", "w", "--", "sh", "-c", command
    )

    assert outcome.code == 1
    wanted = [f"w-{number}| {word}" for number in (1, 2, 3) for word in ("one", "two", "rest")]
    assert sorted(outcome.out.splitlines()) == sorted(wanted)
    assert "2 of 3 tasks finished; first: w-2 failed" in outcome.err


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


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--cpus", "x"], "cpus: expected a number such as 1.5, got 'x'"),
        (["--cpus", "nan"], "cpus: expected"),
        (["--cpus", "-1"], "cpus: expected"),
        (["--mem", "1Q"], "mem: expected bytes such as 512MiB"),
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_kills_the_tasks_and_exits_with_130(invoke: Invoke, number: int, started: Start) -> None:
    process = started("run", "--name", f"victim-{number}", "--", "sh", "-c", "echo begun; exec sleep 60")
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"

    process.send_signal(number)
    outcome = ended(process)

    assert outcome.code == 130
    assert "killing 1 task" in outcome.err
    (task,) = [task for task in listing(invoke, "tasks") if task["name"] == f"victim-{number}"]
    assert task["state"] == "KILLED"


def test_second_interrupt_leaves_at_once(invoke: Invoke, started: Start) -> None:
    stubborn = "trap '' TERM; echo begun; while :; do sleep 0.1; done"
    process = started("run", "--grace", "2s", "--name", "stubborn", "--", "sh", "-c", stubborn)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == "begun\n"

    process.send_signal(signal.SIGINT)
    while "killing" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)

    assert process.wait(timeout=30) == 130
    (task,) = [task for task in listing(invoke, "tasks") if task["name"] == "stubborn"]
    assert task["state"] == "KILLING", "nobody waited for the end of its grace period"


def test_reader_that_leaves_ends_the_run(invoke: Invoke, started: Start) -> None:
    process = started("run", "--name", "yes-man", "--", "yes")
    assert process.stdout is not None
    assert process.stdout.readline() == "y\n"

    process.stdout.close()

    assert process.wait(timeout=30) == 1
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    (task,) = [task for task in listing(invoke, "tasks") if task["name"] == "yes-man"]
    assert task["state"] == "KILLED"


# --- detach, kill, logs, explain ---------------------------------------------------------------------------------


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
    eventually(lambda: "ERROR" in log.read_text(), limit_s=20)


def test_detached_run_finishes_on_its_own(invoke: Invoke, tmp_path: Path) -> None:
    outcome = invoke("run", "--detach", "--json", "--", "echo", "from afar")

    answer = json.loads(outcome.out)
    log = Path(answer["log"])
    eventually(lambda: "over: 1 task\n" in log.read_text())
    assert [path.stat().st_mode & 0o777 for path in (log.parent, log)] == [0o700, 0o600]
    (task,) = listing(invoke, "tasks", "--framework", answer["framework_id"])
    assert task["state"] == "FINISHED"
    assert invoke("logs", task["id"]).out == "from afar\n"


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


def test_logs_follow_tail_and_choose_the_stream(invoke: Invoke) -> None:
    script = "for i in 1 2 3; do echo line $i; done; echo trouble >&2"
    run = json.loads(invoke("run", "--json", "--", "sh", "-c", script).out)
    task_id = run[0]["id"]

    assert invoke("logs", task_id).out == "line 1\nline 2\nline 3\n"
    assert invoke("logs", task_id, "-f").out == "line 1\nline 2\nline 3\n"
    assert invoke("logs", task_id, "--tail", "2").out == "line 2\nline 3\n"
    assert invoke("logs", task_id, "--stderr").out == "trouble\n"


def test_followed_logs_appear_while_the_task_runs(invoke: Invoke, started: Start) -> None:
    framework_id = invoke("run", "--detach", "--", "sh", "-c", "echo first; sleep 60").out.strip()
    (task,) = listing(invoke, "tasks", "--framework", framework_id)

    process = started("logs", "-f", task["id"])
    assert process.stdout is not None
    assert process.stdout.readline() == "first\n"

    assert invoke("kill", task["id"], "--grace", "1s").out == f"{task['id']}: killing\n"
    assert ended(process).code == 0


def test_unknown_ids_are_refused(invoke: Invoke) -> None:
    for command in (["logs", "nope"], ["explain", "nope"], ["kill", "nope"], ["kill", "--framework", "nope"]):
        outcome = invoke(*command)
        assert outcome.code == 4, command
        assert "nope" in outcome.err


def test_pending_task_is_listed_and_explained(invoke: Invoke) -> None:
    holder(invoke, "--cpus", "4")
    waiter = invoke("run", "--detach", "--cpus", "4", "--mem", "64MiB", "--", "sleep", "60").out.strip()

    (task,) = listing(invoke, "tasks", "--framework", waiter)
    assert task["state"] == "PENDING"
    explanation = invoke("explain", waiter, "--json")

    answer = json.loads(explanation.out)
    assert answer["reason"] in ("FULL", "FRAGMENTED", "SHARE")
    assert answer["sentence"]
    assert answer["evidence"]
    assert invoke("explain", task["id"]).out.startswith(f"task {task['id']}: {answer['reason']}\n")
    assert invoke("logs", task["id"]).code == 4
    assert invoke("kill", task["id"]).code == 4, "it waits in its framework's queue"


def test_waiting_run_says_why(invoke: Invoke, started: Start) -> None:
    framework_id = holder(invoke, "--cpus", "4")
    process = started("run", "--cpus", "4", "--mem", "64MiB", "--", "true")
    assert process.stderr is not None

    line = process.stderr.readline()
    invoke("kill", "--framework", framework_id)

    assert line.startswith("waiting: ")
    assert ended(process).code == 0


# --- operating ---------------------------------------------------------------------------------------------------


def test_shares_and_weights_show_who_holds_what(invoke: Invoke) -> None:
    assert invoke("weight", "set", "eng/ml", "2", "--resource", "mem=3").code == 0
    framework_id = holder(invoke, "--role", "eng/ml", "--cpus", "3")

    (share,) = [row for row in listing(invoke, "shares") if row["role"] == "eng/ml"]

    assert share["weight"] == 2.0
    assert share["dominant_resource"] == "cpus"
    assert share["dominant_share"] == pytest.approx(0.5)
    assert share["running"] == 1
    (role,) = [row for row in listing(invoke, "roles") if row["role"] == "eng/ml"]
    assert role["resource_weights"] == {"mem": 3.0}
    assert role["allocated"]["cpus"] == 3.0
    decisions = listing(invoke, "shares", "--log")
    assert decisions[0]["framework_id"] == framework_id


def test_shares_show_what_resources_cost_where_there_are_prices(invoke: Invoke) -> None:
    """All want CPUs, of which there are too few, and memory is left over: it costs nothing, and CPUs what all pay."""
    for role, weight in (("heavy", "2"), ("light", "1")):
        wishes = ("--role", role, "--weight", weight, "--mem", "64MiB", "-n", "10")
        assert invoke("run", "--detach", *wishes, "--", "sleep", "60").code == 0
    assert [row["prices"] for row in listing(invoke, "shares") if row["pending"]] == [None, None]

    assert invoke("policy", "set", "pf").code == 0
    rows = listing(invoke, "shares")
    exact = eventually(
        lambda: [row for row in listing(invoke, "shares") if row["price_error"] < 1e-9], limit_s=30
    )
    shown = invoke("shares").out.splitlines()[-1]
    assert invoke("policy", "set", "drf").code == 0

    assert all(row["price_error"] <= 1e-3 for row in rows)
    prices = exact[0]["prices"]
    assert (prices["cpus"], prices["mem"]) == (pytest.approx(3, rel=1e-9), 0)
    assert shown.startswith("price of all there is: cpus 3, ")


def test_what_another_policy_or_other_hosts_would_do_is_simulated_from_the_cluster(invoke: Invoke) -> None:
    """Memory for three of six tasks; three hosts more hold the others, though one is drained."""
    finished = invoke("run", "-q", "--role", "a", "--mem", "64MiB", "--", "sleep", "0.2")
    assert finished.code == 0, finished.err
    framework_id = holder(invoke, "--role", "a", "-n", "6", "--cpus", "0.1", "--mem", "1GiB")
    eventually(lambda: len(listing(invoke, "tasks", "--framework", framework_id, "--state", "RUNNING")) == 3)
    (one, *_) = listing(invoke, "agents")

    ask = ["simulate", "--from-cluster", "--json"]
    found = json.loads(
        invoke(*ask, "--policy", "pf", "--add", "3:cpus=1,mem=1GiB", "--drain", one["hostname"]).out
    )
    timed = json.loads(invoke(*ask, "--task-duration", "1h", "--horizon", "30m").out)

    before, after = found["cases"]
    assert (before["name"], after["name"]) == ("as it is", f"pf, 3 hosts more, {one['hostname']} drained")
    assert [(case["hosts"], case["roles"][0]["now"]["tasks"]) for case in (before, after)] == [(2, 3), (4, 6)]
    assert before["wait_mean_ms"] > 0
    assert after["wait_mean_ms"] == 0
    assert "every task runs for 3600 s" in timed["assumption"]
    assert (timed["cases"][0]["not_started"], timed["cases"][0]["finish_ms"]) == (3, None)
    assert len(listing(invoke, "tasks", "--framework", framework_id, "--state", "RUNNING")) == 3, "only asked"


def test_policy_is_changed_at_run_time(invoke: Invoke) -> None:
    assert json.loads(invoke("policy", "get", "--json").out)["policy"] == "drf"

    assert (
        json.loads(invoke("policy", "set", "slots:4", "--placement", "pack", "--json").out)["policy"]
        == "slots:4"
    )
    run = invoke("run", "--", "true")
    refused = invoke("policy", "set", "luck")
    placed = invoke("policy", "set", "--placement", "heartbeat:7", "--json").out
    assert json.loads(placed)["placement"] == "heartbeat:7"
    mistyped = invoke("policy", "set", "--placement", "random:x")
    assert (mistyped.code, "placement: expected random:SEED" in mistyped.err) == (2, True)
    assert invoke("policy", "set", "drf", "--placement", "align").code == 0

    assert run.code == 0, run.err
    assert refused.code == 2
    assert "luck" in refused.err


def test_health_is_0_for_a_master_that_serves(invoke: Invoke, cluster: LocalCluster) -> None:
    assert invoke("health").out == f"{cluster.address} SERVING\n"


def test_watch_prints_a_line_for_each_change(invoke: Invoke, started: Start) -> None:
    process = started("frameworks", "--watch", "--json")
    assert process.stdout is not None
    before = json.loads(process.stdout.readline())

    invoke("run", "-q", "--name", "news", "--", "true")
    names: set[str] = set()
    while "news" not in names:
        names = {row["name"] for row in json.loads(process.stdout.readline())}

    assert "news" not in {row["name"] for row in before}
    process.send_signal(signal.SIGINT)
    assert ended(process).code == 130


def test_killed_agent_comes_back_with_its_task(invoke: Invoke, cluster: LocalCluster, started: Start) -> None:
    process = started(
        "run", "--constraint", "rack=a", "--", "sh", "-c", "echo begun; sleep 1.5; echo over; exit 5"
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"

    cluster.kill_agent(0)
    cluster.restart_agent(0)
    outcome = ended(process)

    assert outcome.code == 5, outcome.err
    assert outcome.out == "over\n"
    cluster.wait_until_ready()


def test_killed_master_comes_back_and_a_run_goes_on(
    invoke: Invoke, cluster: LocalCluster, started: Start
) -> None:
    process = started("run", "--", "sh", "-c", "echo begun; sleep 1.5; echo over; exit 6")
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"

    cluster.kill_master()
    cluster.restart_master()
    outcome = ended(process)

    assert outcome.code == 6, outcome.err
    assert outcome.out == "over\n"
    cluster.wait_until_ready()
