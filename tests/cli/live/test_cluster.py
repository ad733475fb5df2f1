"""What other commands show and change of a real local cluster."""

import json
import signal

import pytest

from fairlead_local.cluster import LocalCluster
from tests.cli.conftest import Invoke
from tests.cli.live.conftest import Start, ended, eventually, holder, listing

pytestmark = pytest.mark.shell


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


def test_a_weight_that_does_not_count_is_told(invoke: Invoke) -> None:
    run = ("run", "--role", "weighed", "--mem", "64MiB", "--quiet", "--weight")
    assert (invoke(*run, "2", "--", "true").err, invoke(*run, "2", "--", "true").err) == ("", "")

    assert invoke(*run, "5", "--", "true").err == (
        "fairlead: role weighed has weight 2 already, and --weight 5 does not count; "
        "`fairlead weight set weighed 5` changes it\n"
    )


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
