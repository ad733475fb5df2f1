"""Verbs that ask the master one thing, against canned answers."""

import json
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2

from tests.cli.canned_master import CannedMaster, a_task
from tests.cli.conftest import Invoke


def test_kill_sends_ids_framework_and_grace(invoke: Invoke, master: CannedMaster) -> None:
    outcome = invoke("kill", "t-1", "t-2", "--framework", "fw-1", "--grace", "1.5s")

    assert outcome.code == 0
    assert outcome.out == "t-1: killing\nt-2: killing\n"
    (request,) = master.requests
    assert list(request.task_ids) == ["t-1", "t-2"]
    assert (request.framework_id, request.grace_period_ms) == ("fw-1", 1500)


def test_kill_at_once_is_not_the_tasks_own_grace(invoke: Invoke, master: CannedMaster) -> None:
    invoke("kill", "t-1", "--grace", "0")
    invoke("kill", "t-1")

    assert [request.grace_period_ms for request in master.requests] == [1, 0]


def test_kill_of_an_unknown_task_kills_the_others_and_exits_with_4(
    invoke: Invoke, master: CannedMaster
) -> None:
    outcome = invoke("kill", "t-1", "t-9")

    assert outcome.code == 4
    assert outcome.out == "t-1: killing\n"
    assert outcome.err == "t-9: unknown\n"
    items = json.loads(invoke("kill", "t-1", "t-9", "--json").out)
    assert [(item["task_id"], item["outcome"]) for item in items] == [("t-1", "killing"), ("t-9", "unknown")]


def test_kill_of_a_framework_says_how_many_tasks_died(invoke: Invoke, master: CannedMaster) -> None:
    assert invoke("kill", "--framework", "fw-1").out == "fw-1: ended, 2 tasks killed\n"
    assert json.loads(invoke("kill", "--framework", "fw-1", "--json").out)["tasks_killed"] == 2


def test_explain_names_reason_numbers_and_next_steps(invoke: Invoke, master: CannedMaster) -> None:
    outcome = invoke("explain", "t-2")

    assert outcome.out == (
        "task t-2: FULL\n"
        "  it needs 4 cpus and 1.5 are free in all\n"
        "  cpus free    1.5\n"
        "  cpus wanted  4\n"
        "  -> wait for a task to end\n"
        "  -> add an agent\n"
    )


def test_explain_as_json_has_the_same(invoke: Invoke, master: CannedMaster) -> None:
    answer: dict[str, Any] = json.loads(invoke("explain", "t-2", "--json").out)

    assert answer == {
        "id": "t-2",
        "kind": "task",
        "reason": "FULL",
        "sentence": "it needs 4 cpus and 1.5 are free in all",
        "evidence": {"cpus free": "1.5", "cpus wanted": "4"},
        "next_steps": ["wait for a task to end", "add an agent"],
        "epoch": 3,
        "version": 7,
    }


def test_policy_is_shown_and_set(invoke: Invoke, master: CannedMaster) -> None:
    assert "drf  (of drf, fifo, slots:K)" in invoke("policy", "get").out

    outcome = invoke(
        "policy", "set", "fifo", "--placement", "pack", "--when-head-does-not-fit", "freeze", "--json"
    )

    assert json.loads(outcome.out)["policy"] == "fifo"
    request = master.requests[-1]
    assert (request.policy, request.placement, request.when_head_does_not_fit) == ("fifo", "pack", "freeze")


def test_weight_is_set_with_its_exceptions(invoke: Invoke, master: CannedMaster) -> None:
    outcome = invoke("weight", "set", "eng/ml", "2.5", "--resource", "cpus=3", "--resource", "mem=0.5")

    assert (outcome.code, outcome.err) == (0, "")
    request = master.requests[0]
    assert (request.role, request.weight) == ("eng/ml", 2.5)
    assert dict(request.resource_weights) == {"cpus": 3.0, "mem": 0.5}


@pytest.mark.parametrize(("role", "is_told"), [("eng", False), ("idle", True), ("en", True), ("eng/m", True)])
@pytest.mark.usefixtures("master")
def test_a_weight_of_a_role_that_nobody_is_in_is_kept_with_a_word(
    invoke: Invoke, role: str, *, is_told: bool
) -> None:
    outcome = invoke("weight", "set", role, "2")

    assert (outcome.code, outcome.out) == (0, f"{role}: weight 2\n")
    said = f"fairlead: the weight is kept, but nobody is in role {role} yet\n"
    assert outcome.err == (said if is_told else "")


def test_weights_are_listed_with_their_exceptions(invoke: Invoke, master: CannedMaster) -> None:
    first, idle = json.loads(invoke("weight", "get", "--json").out)

    assert first == {
        "role": "eng/ml", "parent": None, "weight": 2.0, "resource_weights": {"cpus": 3.0}, "frameworks": 1,
    }  # fmt: skip
    assert idle == {"role": "idle", "parent": None, "weight": 1.0, "resource_weights": {}, "frameworks": 0}
    assert invoke("weight", "get").out.splitlines()[1].split() == ["eng/ml", "2", "cpus=3", "1"]


def test_health_is_0_or_3(invoke: Invoke, master: CannedMaster) -> None:
    assert invoke("health", "--json").code == 0

    master.health = health_pb2.HealthCheckResponse.NOT_SERVING
    outcome = invoke("health")

    assert outcome.code == 3
    assert "it answers NOT_SERVING" in outcome.err


def test_logs_print_what_there_is(invoke: Invoke, master: CannedMaster) -> None:
    assert invoke("logs", "t-1").out == "one\ntwo\nthree\n"
    assert invoke("logs", "t-1", "--stderr").out == "oops\n"


@pytest.mark.parametrize("flags", [[], ["--follow"]])
def test_logs_end_with_what_the_agent_remarked(
    invoke: Invoke, master: CannedMaster, flags: list[str]
) -> None:
    master.tasks.append(a_task("t-3", state="FINISHED", message="stdout: 6 bytes could not be written"))

    outcome = invoke("logs", "t-3", *flags)

    assert outcome.out == "one\ntwo\nthree\n"
    assert outcome.err == "fairlead: t-3: stdout: 6 bytes could not be written\n"


def test_logs_of_an_attempt_that_failed_name_the_latest_one(invoke: Invoke, master: CannedMaster) -> None:
    for attempt in ("t-4", "t-4.2", "t-4.3"):
        master.tasks.append(a_task(attempt, state="RUNNING" if attempt == "t-4.3" else "FAILED"))

    outcome = invoke("logs", "t-4")

    assert outcome.out == "one\ntwo\nthree\n"
    assert (
        outcome.err
        == "fairlead: t-4 is FAILED, and was run again: `fairlead logs t-4.3` prints its latest attempt\n"
    )


def test_logs_of_a_waiting_task_are_refused_with_what_to_do(invoke: Invoke, master: CannedMaster) -> None:
    outcome = invoke("logs", "t-2")

    assert outcome.code == 4
    assert outcome.err == (
        "fairlead: task t-2 has not started; -f waits for it, and `fairlead explain t-2` says why\n"
    )


def test_logs_of_an_ambiguous_task_ask_for_its_framework(invoke: Invoke, master: CannedMaster) -> None:
    master.tasks.append(a_task("t-1", framework_id="fw-2"))

    outcome = invoke("logs", "t-1")

    assert outcome.code == 4
    assert "choose one by --framework: fw-1, fw-2" in outcome.err
    assert invoke("logs", "t-1", "--framework", "fw-2").code == 0


def test_agent_that_is_away_is_not_a_master_that_is(invoke: Invoke, master: CannedMaster) -> None:
    master.refusal = grpc.StatusCode.UNAVAILABLE, "agent a-1 is not connected"

    outcome = invoke("logs", "t-1")

    assert outcome.code == 1
    assert outcome.err == "fairlead: agent a-1 is not connected\n"
