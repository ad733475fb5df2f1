import json
from typing import Any

import grpc
import pytest

from fairlead_cli import main
from tests.cli.canned_master import GIB, CannedMaster, a_task
from tests.cli.conftest import Invoke


def rows(invoke: Invoke, *arguments: str) -> list[dict[str, Any]]:
    outcome = invoke(*arguments, "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("\n") == 1, "one JSON array on one line"
    found = json.loads(outcome.out)
    assert isinstance(found, list)
    return found


def test_tasks_have_the_keys_scripts_rely_on(invoke: Invoke, master: CannedMaster) -> None:
    master.tasks = [
        a_task("t-1", state="FAILED", finished_ms=9_000, exit_code=0, reason="EXITED", message="why"),
        a_task("t-2", state="PENDING", agent_id="", started_ms=0),
    ]

    over, pending = rows(invoke, "tasks")

    contract = {
        "id": "t-1", "name": "name of t-1", "framework_id": "fw-1", "framework": "sweep", "role": "eng/ml",
        "agent_id": "agent-1", "state": "FAILED", "cpus": 1.5, "mem_bytes": GIB, "gpus": 0.5,
        "submitted_ms": 1_000, "started_ms": 2_000, "finished_ms": 9_000, "exit_code": 0, "reason": "EXITED",
        "message": "why",
    }  # fmt: skip
    assert over.items() >= contract.items()
    assert pending.keys() == over.keys()
    assert {key for key in contract if pending[key] is None} == {
        "agent_id", "started_ms", "finished_ms", "exit_code",
    }  # fmt: skip


def test_agents_have_the_keys_scripts_rely_on(invoke: Invoke, master: CannedMaster) -> None:
    (agent,) = rows(invoke, "agents")

    contract = {
        "id": "agent-1",
        "hostname": "host-1",
        "state": "ACTIVE",
        "attributes": {"disk": "ssd", "rack": "a"},
        "total": {"cpus": 4.0, "mem": 8 * GIB, "disk": 0, "gpus": 0.0, "licenses": 2.0},
        "allocated": {"cpus": 2.5, "mem": 2 * GIB, "disk": 0, "gpus": 0.0},
        "used": {"cpus": 0.1, "mem": GIB // 2, "disk": 0, "gpus": 0.0},
    }
    assert agent.items() >= contract.items()


def test_frameworks_have_the_keys_scripts_rely_on(invoke: Invoke, master: CannedMaster) -> None:
    (framework,) = rows(invoke, "frameworks")

    contract = {
        "id": "fw-1", "name": "sweep", "role": "eng/ml", "state": "CONNECTED",
        "pending": 3, "running": 2, "finished": 9,
    }  # fmt: skip
    assert framework.items() >= contract.items()


def test_shares_have_the_keys_scripts_rely_on(invoke: Invoke, master: CannedMaster) -> None:
    busy, idle = rows(invoke, "shares")

    contract = {
        "role": "eng/ml", "weight": 2.0, "dominant_share": 0.625, "dominant_resource": "cpus", "key": 0.3125,
        "fair_share": 0.5, "pending": 3, "running": 2,
    }  # fmt: skip
    assert busy.items() >= contract.items()
    assert idle["key"] is None, "JSON has no infinity"


def test_shares_show_prices_under_a_policy_that_has_them(invoke: Invoke, master: CannedMaster) -> None:
    unpriced = rows(invoke, "shares")
    table = invoke("shares").out
    master.prices = {"mem": 0.0, "cpus": 2.5}

    priced = rows(invoke, "shares")
    below = invoke("shares").out

    assert [(row["prices"], row["price_error"]) for row in unpriced] == [(None, None)] * 2
    assert [(row["prices"], row["price_error"]) for row in priced] == [({"cpus": 2.5, "mem": 0}, 3e-7)] * 2
    assert below == table + (
        "price of all there is: cpus 2.5, mem 0 (supply and demand differ by 3e-07 at most)\n"
    )


def test_shares_show_bottlenecks_under_a_policy_that_looks_for_them(
    invoke: Invoke, master: CannedMaster
) -> None:
    elsewhere = rows(invoke, "shares")
    master.policy.policy = "bbf:60"
    table = invoke("shares").out
    nothing_contended = rows(invoke, "shares")
    master.bottlenecks = ["cpus", "mem"]

    contended = rows(invoke, "shares")
    below = invoke("shares").out

    found = [[row["bottlenecks"] for row in each] for each in (elsewhere, nothing_contended, contended)]
    assert found == [[None] * 2, [[]] * 2, [["cpus", "mem"]] * 2]
    assert table.endswith("\nbottlenecks: none\n")
    assert below.endswith("\nbottlenecks: cpus, mem\n")


def test_roles_and_offers_are_listed(invoke: Invoke, master: CannedMaster) -> None:
    role = rows(invoke, "roles")[0]
    (offer,) = rows(invoke, "offers")

    assert role["role"] == "eng/ml"
    assert role["resource_weights"] == {"cpus": 3.0}
    assert role["allocated"]["cpus"] == 2.5
    assert offer.items() >= {"id": "o-1", "framework_id": "fw-1", "units": 2, "expires_in_ms": 4000}.items()


def test_decisions_are_listed_with_their_keys(invoke: Invoke, master: CannedMaster) -> None:
    (decision,) = rows(invoke, "shares", "--log", "--limit", "5")

    assert master.requests[-1].limit == 5
    assert decision.items() >= {"number": 5, "key_before": 0.1, "key_after": 0.2}.items()


def test_empty_listing_is_an_empty_array(invoke: Invoke, master: CannedMaster) -> None:
    master.tasks = []

    assert rows(invoke, "tasks") == []


def test_every_page_is_read(invoke: Invoke, master: CannedMaster) -> None:
    master.tasks = [a_task(f"t-{number}") for number in range(7)]
    master.page_size = 3

    assert [row["id"] for row in rows(invoke, "tasks")] == [f"t-{number}" for number in range(7)]
    assert [request.page_token for request in master.requests] == ["", "3", "6"]


def test_numbers_in_ids_are_sorted_as_numbers(invoke: Invoke, master: CannedMaster) -> None:
    master.tasks = [a_task(f"f1-{number}") for number in (1, 10, 11, 2)] + [a_task("sweep"), a_task("7")]

    found = [row["id"] for row in rows(invoke, "tasks")]

    assert found == ["7", "f1-1", "f1-2", "f1-10", "f1-11", "sweep"]


def test_waiting_tasks_that_are_not_named_are_counted(invoke: Invoke, master: CannedMaster) -> None:
    """The framework has three that wait, and has named one of them."""
    said = "fairlead: 2 more tasks wait; `fairlead explain fw-1` says why\n"

    assert invoke("tasks").err == said
    assert invoke("tasks", "--state", "pending", "--framework", "fw-1").err == said
    assert invoke("tasks", "--framework", "fw-2").err == ""
    assert invoke("tasks", "--state", "running").err == ""
    assert invoke("tasks", "--json").err == ""
    master.tasks += [a_task(f"t-{number}", state="PENDING") for number in (3, 4)]
    assert invoke("tasks").err == ""


def test_tasks_are_filtered_by_the_master(invoke: Invoke, master: CannedMaster) -> None:
    assert [row["id"] for row in rows(invoke, "tasks", "--state", "pending", "--framework", "fw-1")] == [
        "t-2"
    ]

    assert list(master.requests[0].states) == ["PENDING"]
    assert master.requests[0].framework_id == "fw-1"


@pytest.mark.parametrize("name", ["tasks", "agents", "frameworks", "roles", "offers", "shares"])
def test_plain_table_has_a_line_for_each_row_and_cuts_nothing(
    invoke: Invoke, master: CannedMaster, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    master.tasks = [a_task("a-task-id-that-is-rather-long-" * 5)]

    found = rows(invoke, name)
    outcome = invoke(name)

    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert len(lines) == 1 + len(found)
    for line, row in zip(lines[1:], found, strict=True):
        assert (row.get("id") or row["role"]) in line


def test_agents_table_shows_the_three_numbers_side_by_side(invoke: Invoke, master: CannedMaster) -> None:
    outcome = invoke("agents")

    assert "CPUS TOTAL/ALLOCATED/USED" in outcome.out
    assert "4/2.5/0.1" in outcome.out
    assert "8GiB/2GiB/512MiB" in outcome.out


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (grpc.StatusCode.NOT_FOUND, 4),
        (grpc.StatusCode.PERMISSION_DENIED, 4),
        (grpc.StatusCode.FAILED_PRECONDITION, 4),
        (grpc.StatusCode.INVALID_ARGUMENT, 2),
        (grpc.StatusCode.INTERNAL, 1),
    ],
)
def test_refusal_is_one_line_and_has_its_exit_code(
    invoke: Invoke, master: CannedMaster, code: grpc.StatusCode, expected: int
) -> None:
    master.refusal = code, "framework 'x' is unknown"

    outcome = invoke("tasks", "--framework", "x")

    assert outcome.code == expected
    assert "framework 'x' is unknown" in outcome.err
    assert outcome.err.count("\n") == 1


def test_something_else_at_the_address_is_no_master(invoke: Invoke, master: CannedMaster) -> None:
    master.refusal = grpc.StatusCode.UNIMPLEMENTED, "Method not found!"

    outcome = invoke("tasks")

    assert outcome.code == 3
    assert "what answers there is no Fairlead master of this version" in outcome.err


def test_watch_prints_one_array_for_each_change(
    master: CannedMaster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed: list[Any] = []

    def take(text: str, **_options: Any) -> None:
        printed.append(json.loads(text))
        if len(printed) == 3:
            raise KeyboardInterrupt
        master.tasks[0].state = ("FINISHED", "LOST")[len(printed) - 1]
        master.change()

    monkeypatch.setattr("builtins.print", take)

    assert main.run(["tasks", "--watch", "--json"]) == 130

    assert [rows[0]["state"] for rows in printed] == ["RUNNING", "FINISHED", "LOST"]


def test_watch_asks_for_what_came_after_its_listing(
    master: CannedMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairlead_proto.v1.operator_pb2 import WatchRequest

    def take(_text: str, **_options: Any) -> None:
        if any(isinstance(request, WatchRequest) for request in master.requests):
            raise KeyboardInterrupt
        master.tasks.pop()
        master.change()

    monkeypatch.setattr("builtins.print", take)
    main.run(["tasks", "--watch", "--json"])

    watches = [request for request in master.requests if isinstance(request, WatchRequest)]
    assert [watch.from_version for watch in watches] == [7]
    assert list(watches[0].kinds) == ["task", "framework"]
