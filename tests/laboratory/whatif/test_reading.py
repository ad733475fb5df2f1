"""What is taken from a master's listings, and what is not."""

import asyncio
from typing import Any

import pytest

from fairlead_lab.whatif.reading import read_snapshot
from fairlead_lab.whatif.snapshot import FrameworkState, Snapshot
from fairlead_master.allocation.weights import Weight
from fairlead_proto.tasks import Constraint, Operator
from fairlead_proto.v1 import operator_pb2, types_pb2
from fairlead_sdk.errors import MasterUnreachable
from fairlead_sdk.operator_client import OperatorClient
from tests.cli.canned_master import GIB, CannedMaster, ServedMaster, a_task, an_agent

pytestmark = pytest.mark.shell

CORE = types_pb2.Resources(cpus_milli=1000, mem_bytes=GIB)


def read(address: str) -> Snapshot:
    async def ask() -> Snapshot:
        async with OperatorClient(address) as client:
            return await read_snapshot(client)

    return asyncio.run(ask())


def a_class(class_id: str, pending: int, offered: int = 0, **fields: Any) -> operator_pb2.ClassInfo:
    return operator_pb2.ClassInfo(
        framework_id="fw-1", class_id=class_id, unit=CORE, pending=pending, offered=offered, **fields
    )


@pytest.fixture
def served() -> ServedMaster:
    return ServedMaster()


def snapshot_of(served: ServedMaster, *, page_size: int = 2) -> Snapshot:
    served.master.page_size = page_size
    with served:
        return read(served.address)


def an_agent_in(state: str, agent_id: str) -> operator_pb2.AgentInfo:
    agent = an_agent(agent_id)
    agent.state = state
    return agent


def fill(master: CannedMaster) -> None:
    """A bit of everything, at 10 s of the master's clock."""
    states = {
        "a1": "ACTIVE",
        "a2": "OVERCOMMITTED",
        "a3": "DISCONNECTED",
        "a4": "UNREACHABLE",
        "a5": "RECOVERING",
    }
    master.agents = [an_agent_in(state, agent_id) for agent_id, state in states.items()]
    master.tasks = [
        a_task("old", resources=CORE, agent_id="a1", started_ms=4_000),
        a_task("new", resources=CORE, agent_id="a2", state="STAGING", started_ms=0),
        a_task("leaving", resources=CORE, agent_id="a3", state="KILLING", started_ms=9_500),
        a_task("lost from sight", resources=CORE, agent_id="a4", state="UNREACHABLE"),
        a_task("done", resources=CORE, state="FINISHED", started_ms=1_000, finished_ms=3_500),
        a_task("broken", resources=CORE, state="FAILED", started_ms=1_000, finished_ms=1_001),
        a_task("waits", resources=CORE, state="PENDING", agent_id="", started_ms=0),
        a_task("of nobody", framework_id="gone", resources=CORE, agent_id="a1", started_ms=1_000),
    ]
    rack = types_pb2.Constraint(attribute="rack", operator="OPERATOR_EQUALS", values=["a"])
    master.classes = [
        a_class("both", 2, 1),
        a_class("none", 0),
        a_class("picky", 4, constraints=[rack]),
        a_class("offered", 0, 5),
    ]


def test_agents_that_run_tasks_are_hosts_and_those_that_are_away_take_no_work(served: ServedMaster) -> None:
    fill(served.master)

    found = snapshot_of(served)

    assert [(host.agent_id, host.takes_work) for host in found.hosts] == [
        ("a1", True),
        ("a2", True),
        ("a3", False),
    ]
    assert found.hosts[0].hostname == "host-1"
    assert found.hosts[0].attributes == {"rack": "a", "disk": "ssd"}
    assert found.kinds.names == ("cpus", "mem", "disk", "gpus", "licenses")
    assert found.hosts[0].total == (4000, 8 * GIB, 0, 0, 2000)


def test_tasks_that_hold_something_run_for_as_long_as_the_masters_clock_says(served: ServedMaster) -> None:
    fill(served.master)

    found = snapshot_of(served)

    assert [(task.agent_id, task.ran_ms) for task in found.running] == [("a1", 6_000), ("a2", 0), ("a3", 500)]
    assert found.tasks_left_out == 1
    (done,) = found.finished
    assert (done.framework_id, done.name, done.role, done.duration_ms) == ("fw-1", "sweep", "eng/ml", 2_500)


def test_units_in_offers_wait_like_those_that_are_not(served: ServedMaster) -> None:
    fill(served.master)

    found = snapshot_of(served)

    assert [(row.class_id, row.units) for row in found.waiting] == [("both", 3), ("picky", 4), ("offered", 5)]
    assert found.waiting[1].constraints == (Constraint("rack", Operator.EQUALS, ("a",)),)
    assert found.frameworks == {"fw-1": FrameworkState(framework_id="fw-1", name="sweep", role="eng/ml")}


def test_the_policy_and_the_weights_are_those_in_force(served: ServedMaster) -> None:
    served.master.policy.policy = "slots:4"
    served.master.policy.placement = "pack"
    served.master.policy.demand = "measured"

    found = snapshot_of(served)

    assert (found.settings.policy, found.settings.placement) == ("slots:4", "pack")
    assert found.settings.when_head_does_not_fit == "skip"
    assert found.is_measured
    assert found.weights == {"eng/ml": Weight(2.0, {0: 3.0}), "idle": Weight(1.0)}


def test_without_a_master_there_is_nothing_to_read() -> None:
    with pytest.raises(MasterUnreachable):
        read("127.0.0.1:1")
