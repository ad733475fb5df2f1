"""`fairlead simulate --from-cluster`: what may be asked, and how the answer is printed."""

import json

import pytest

from fairlead_proto.v1 import operator_pb2, types_pb2
from tests.cli.canned_master import GIB, CannedMaster, a_task, an_agent
from tests.cli.conftest import Invoke

ASK = ("simulate", "--from-cluster")


@pytest.fixture(autouse=True)
def busy(master: CannedMaster) -> None:
    """Two of four cores held for a second so far, and four tasks that want one core each."""
    core = types_pb2.Resources(cpus_milli=1000, mem_bytes=GIB)
    master.time_ms = 10_000
    master.agents = [an_agent()]
    master.tasks = [
        a_task("t-1", resources=core, started_ms=9_000),
        a_task("t-2", resources=core, started_ms=9_000),
        a_task("t-3", resources=core, state="FINISHED", started_ms=2_000, finished_ms=6_000),
    ]
    master.classes = [
        operator_pb2.ClassInfo(framework_id="fw-1", class_id="c", unit=core, pending=3, offered=1)
    ]


def test_each_case_is_a_table_with_what_it_rests_on(invoke: Invoke) -> None:
    outcome = invoke(*ASK, "--add", "1:cpus=2,mem=8GiB")

    assert outcome.code == 0, outcome.err
    assert outcome.out.splitlines() == [
        "as it is: drf, 1 host, held: cpus 100% mem 50%",
        "",
        "ROLE    RUNS        SHARE  WAITS  ANEW        SHARE  MEAN WAIT  LONGEST  DONE IN",
        "eng        4  100.0% cpus      2     4  100.0% cpus       1.5s     3.0s     7.0s",
        "eng/ml     4  100.0% cpus      2     4  100.0% cpus       1.5s     3.0s     7.0s",
        "all: mean wait 1.5s, done in 7.0s",
        "",
        "1 host more: drf, 2 hosts, held: cpus 100% mem 38%",
        "",
        "ROLE    RUNS        SHARE  WAITS  ANEW        SHARE  MEAN WAIT  LONGEST  DONE IN",
        "eng        6  100.0% cpus      0     6  100.0% cpus       0.0s     0.0s     4.0s",
        "eng/ml     6  100.0% cpus      0     6  100.0% cpus       0.0s     0.0s     4.0s",
        "all: mean wait 0.0s, done in 4.0s",
        "",
        "RUNS and WAITS: after the next decisions. ANEW: if all that runs were handed out again as well.",
        "Assumed: tasks run as long as those like them that finished did on average (1 is remembered).",
    ]


def test_json_is_the_whole_answer(invoke: Invoke) -> None:
    found = json.loads(invoke(*ASK, "--json", "--policy", "pf", "--policy", "slots:2").out)

    assert [case["name"] for case in found["cases"]] == ["as it is", "pf", "slots:2"]
    assert found["cases"][0]["roles"][0] == {
        "role": "eng",
        "now": {"tasks": 4, "dominant_share": 1.0, "dominant_resource": "cpus"},
        "waiting": 2,
        "anew": {"tasks": 4, "dominant_share": 1.0, "dominant_resource": "cpus"},
        "wait_mean_ms": 1500.0,
        "wait_max_ms": 3000,
        "finish_ms": 7000,
    }


def test_what_is_not_started_by_the_horizon_is_counted(invoke: Invoke) -> None:
    outcome = invoke(*ASK, "--horizon", "2s")

    assert "not started by then: 2" in outcome.out
    assert "all: mean wait 0.0s, done in -" in outcome.out


def test_tasks_on_a_drained_host_are_said_to_count_in_shares(invoke: Invoke) -> None:
    outcome = invoke(*ASK, "--add", "1:cpus=1,mem=8GiB", "--drain", "host-1")

    after = outcome.out.partition("1 host more, host-1 drained")[2]
    assert "300.0% cpus" in after
    assert (
        "on hosts that take no work: 2 tasks; a SHARE has what they hold, over the other hosts' resources, and may be above 100%"
        in after
    )


def test_what_can_never_run_is_named(invoke: Invoke, master: CannedMaster) -> None:
    large = types_pb2.Resources(cpus_milli=5000)
    master.classes.append(
        operator_pb2.ClassInfo(framework_id="fw-1", class_id="large", unit=large, pending=2)
    )

    outcome = invoke(*ASK)

    assert (
        "fw-1/large: 2 tasks never run: no host has cpus=5: the nearest, agent-1, lacks cpus=1" in outcome.out
    )


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("simulate", "--drain", "a"), 2, "--add, --drain and --task-duration go with --from-cluster"),
        ((*ASK, "--seeds", "3"), 2, "--seeds and --from-cluster do not go together"),
        ((*ASK, "--nodes", "1:cpus=1"), 2, "--nodes and --from-cluster do not go together"),
        ((*ASK, "--policy", "lottery"), 2, "policy: expected one of drf"),
        ((*ASK, "--policy", "max-min:glue"), 2, "glue"),
        ((*ASK, "--add", "two"), 2, "two"),
        ((*ASK, "--task-duration", "0"), 2, "--task-duration: expected a duration above 0, got 0"),
        ((*ASK, "--drain", "nobody"), 4, "drain: expected the id or host name of an agent"),
        ((*ASK, "--master", "127.0.0.1:1"), 3, "cannot reach the master at 127.0.0.1:1"),
    ],
)
def test_a_bad_question_is_one_line(
    invoke: Invoke, arguments: tuple[str, ...], code: int, expected: str
) -> None:
    outcome = invoke(*arguments)

    assert outcome.code == code
    assert expected in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_policy_may_name_a_resource_of_the_clusters_own(invoke: Invoke) -> None:
    outcome = invoke(*ASK, "--policy", "max-min:licenses")

    assert outcome.code == 0, outcome.err
    assert "max-min:licenses: 1 host" in outcome.out
