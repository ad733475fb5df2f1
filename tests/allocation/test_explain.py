"""One scripted history for each reason to wait."""

from fairlead_master.allocation.allocator import Allocator
from fairlead_master.allocation.explain import Diagnosis, WaitReason
from fairlead_master.allocation.parts import at_once
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, Role
from fairlead_proto.tasks import Constraint, Operator
from fairlead_proto.v1 import operator_pb2
from tests.allocation.builders import (
    TASKS,
    add_agent,
    add_framework,
    an_allocator,
    cpus_and_mem,
    launch,
    take_back,
    want,
)

ONE = cpus_and_mem(1, 1)
TWO = cpus_and_mem(2, 2)
SSD = (Constraint("ssd", Operator.EXISTS),)


def why(allocator: Allocator, framework_id: str = "f") -> Diagnosis:
    diagnosis = at_once(allocator.diagnose(FrameworkId(framework_id), TASKS, []))
    assert diagnosis.sentence
    assert all(isinstance(value, str) for value in diagnosis.evidence.values())
    if diagnosis.reason is not WaitReason.NOT_WAITING:
        assert diagnosis.evidence
        assert diagnosis.next_steps
    return diagnosis


def test_the_reasons_are_those_of_the_schema() -> None:
    names = [name.removeprefix("WAIT_REASON_") for name in operator_pb2.WaitReason.keys()]  # noqa: SIM118 - an enum wrapper is no dict

    assert sorted([reason.value for reason in WaitReason] + ["UNSPECIFIED"]) == sorted(names)


def test_nothing_wanted_is_no_waiting() -> None:
    allocator = an_allocator()
    add_framework(allocator, "f", ONE, 0)

    assert why(allocator).reason is WaitReason.NOT_WAITING
    unknown = at_once(allocator.diagnose(FrameworkId("f"), ClassId("other"), []))
    assert unknown.reason is WaitReason.NOT_WAITING


def test_no_agent_is_registered() -> None:
    allocator = an_allocator()
    add_framework(allocator, "f", ONE)

    assert why(allocator).reason is WaitReason.NO_AGENTS


def test_the_only_large_agent_is_not_active() -> None:
    allocator = an_allocator()
    add_agent(allocator, "small", ONE)
    add_agent(allocator, "large", TWO, active=False)
    add_framework(allocator, "f", TWO)

    diagnosis = why(allocator)

    assert diagnosis.reason is WaitReason.NO_AGENTS
    assert diagnosis.evidence["inactive"] == "large"


def test_only_agents_that_meet_the_constraints_are_said_to_be_away() -> None:
    allocator = an_allocator()
    add_agent(allocator, "plain", TWO)
    add_agent(allocator, "plain and away", TWO, active=False)
    add_agent(allocator, "fast", TWO, {"ssd": "1"}, active=False)
    add_framework(allocator, "f", ONE, constraints=SSD)

    diagnosis = why(allocator)

    assert diagnosis.reason is WaitReason.NO_AGENTS
    assert diagnosis.sentence == (
        "no active agent that meets ssd can hold cpus=1,mem=1GiB; 1 that could is registered but not active"
    )
    assert diagnosis.evidence == {
        "agents": "3",
        "agents_active": "1",
        "inactive": "fast",
        "constraints": "ssd",
    }


def test_no_agent_is_large_enough() -> None:
    allocator = an_allocator()
    add_agent(allocator, "small", cpus_and_mem(1, 1))
    add_agent(allocator, "better", cpus_and_mem(3, 2))
    add_framework(allocator, "f", cpus_and_mem(4, 4))

    diagnosis = why(allocator)

    assert diagnosis.reason is WaitReason.INFEASIBLE
    assert diagnosis.evidence["best_agent"] == "better"
    assert diagnosis.evidence["missing"] == "cpus=1,mem=2GiB"


def test_constraints_leave_out_the_agent_that_is_large_enough() -> None:
    allocator = an_allocator()
    add_agent(allocator, "plain", TWO)
    add_agent(allocator, "fast", ONE, {"ssd": "1"})
    add_framework(allocator, "f", TWO, constraints=SSD)

    diagnosis = why(allocator)

    assert diagnosis.reason is WaitReason.CONSTRAINT
    assert diagnosis.evidence["constraints"] == "ssd"
    assert diagnosis.evidence["agents_matching"] == "1"


def test_an_offer_is_out() -> None:
    allocator = an_allocator()
    add_agent(allocator, "host", TWO)
    add_framework(allocator, "f", ONE, 2)
    allocator.cycle(0)

    diagnosis = why(allocator)

    assert diagnosis.reason is WaitReason.OFFERED
    assert diagnosis.evidence["units_offered"] == "2"


def test_its_framework_declined_it() -> None:
    for agent_id in (AgentId("host"), None):
        allocator = an_allocator()
        add_agent(allocator, "host", TWO)
        framework_id = add_framework(allocator, "f", ONE, 1)
        (grant,) = allocator.cycle(0)
        take_back(allocator, grant)
        allocator.refuse(framework_id, TASKS, agent_id, 60_000)

        assert why(allocator).reason is WaitReason.DECLINED


def test_the_head_of_the_queue_freezes_it() -> None:
    allocator = an_allocator(head="freeze")
    host = add_agent(allocator, "host", TWO)
    holder = add_framework(allocator, "f")
    allocator.charge(holder, host, ONE)
    add_framework(allocator, "head", TWO, 1)
    want(allocator, holder, ONE, 1)
    allocator.cycle(0)

    diagnosis = why(allocator)

    assert diagnosis.reason is WaitReason.FROZEN
    assert diagnosis.evidence["head_role"] == "head"


def test_what_fits_is_kept_for_another() -> None:
    allocator = an_allocator(reservation_after_ms=1_000)
    host = add_agent(allocator, "host", TWO)
    holder = add_framework(allocator, "f")
    allocator.charge(holder, host, ONE)
    add_framework(allocator, "large", TWO, 1)
    allocator.cycle(0)
    allocator.cycle(1_000)
    want(allocator, holder, ONE, 1)
    allocator.cycle(1_001)

    diagnosis = why(allocator)

    assert diagnosis.reason is WaitReason.RESERVED
    assert diagnosis.evidence["agents_reserved"] == "host"
    assert "reserved_agent" in why(allocator, "large").evidence


def test_other_roles_are_next() -> None:
    allocator = an_allocator()
    host = add_agent(allocator, "host", TWO)
    holder = add_framework(allocator, "f")
    allocator.charge(holder, host, TWO)
    want(allocator, holder, ONE, 1)
    add_framework(allocator, "next", ONE, 1)
    allocator.cycle(0)

    diagnosis = why(allocator)

    assert diagnosis.reason is WaitReason.SHARE
    assert diagnosis.evidence["next_role"] == "next"
    assert diagnosis.evidence["rank"] == "2"


def test_others_hold_more_than_their_fair_share() -> None:
    allocator = an_allocator()
    host = add_agent(allocator, "host", TWO)
    greedy = add_framework(allocator, "greedy")
    allocator.charge(greedy, host, TWO)
    add_framework(allocator, "f", ONE, 1)
    allocator.cycle(0)

    diagnosis = why(allocator)

    assert diagnosis.reason is WaitReason.SHARE
    assert diagnosis.evidence["over_fair_share"] == "greedy 1.0000"


def test_enough_is_free_but_on_no_single_agent() -> None:
    allocator = an_allocator()
    holder = add_framework(allocator, "holder")
    for name in ("a", "b"):
        allocator.charge(holder, add_agent(allocator, name, TWO), ONE)
    add_framework(allocator, "f", TWO, 1)
    allocator.cycle(0)

    diagnosis = why(allocator)

    assert diagnosis.reason is WaitReason.FRAGMENTED
    assert diagnosis.evidence["free_total"] == "cpus=2,mem=2GiB"
    assert diagnosis.evidence["nearest_lacks"] == "cpus=1,mem=1GiB"


def test_all_is_taken_and_shared_evenly() -> None:
    allocator = an_allocator()
    add_agent(allocator, "host", TWO)
    for name in ("f", "other"):
        add_framework(allocator, name, ONE, 5)
    for grant in allocator.cycle(0):
        launch(allocator, grant)

    assert why(allocator).reason is WaitReason.FULL


def test_all_slots_are_taken() -> None:
    allocator = an_allocator(policy="slots:1")
    add_agent(allocator, "host", TWO)
    add_framework(allocator, "f", ONE, 2)
    allocator.cycle(0)

    diagnosis = why(allocator)

    assert diagnosis.reason is WaitReason.FULL
    assert diagnosis.evidence["nearest_lacks"] == "a slot (1 of 1 taken)"


def test_between_cycles_its_turn_is_still_to_come() -> None:
    allocator = an_allocator()
    add_agent(allocator, "host", TWO)
    add_framework(allocator, "f", ONE, 2)

    assert why(allocator).reason is WaitReason.SHARE


def test_an_answer_is_found_at_whatever_moment_all_agents_leave() -> None:
    moments = 0
    while True:
        allocator = an_allocator()
        for name in ("a", "b"):
            add_agent(allocator, name, TWO)
            allocator.add_framework(FrameworkId(name), Role(name))
            allocator.charge(FrameworkId(name), AgentId(name), ONE)
        add_framework(allocator, "f", TWO)
        parts = allocator.diagnose(FrameworkId("f"), TASKS, [])
        try:
            for _ in range(moments):
                next(parts)
        except StopIteration:
            break

        for name in ("a", "b"):
            allocator.release(FrameworkId(name), AgentId(name), ONE)
            allocator.remove_agent(AgentId(name))

        assert at_once(parts).reason is WaitReason.NO_AGENTS
        moments += 1
    assert moments > 5
