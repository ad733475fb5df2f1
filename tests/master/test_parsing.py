"""Long messages are parsed in pieces, and come out as they would in one."""

from random import Random
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead_master.parsing import PIECE_BYTES, parse, pieces
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.v1 import agent_pb2, framework_pb2
from tests.builders.messages import any_message


def a_long_demand() -> framework_pb2.FrameworkCalls:
    """One call of a megabyte between two short ones."""
    demand = framework_pb2.SetDemand(version=7)
    for number in range(1_000):
        constraints = [{"attribute": "rack", "values": [f"rack-{number}-{each}" for each in range(90)]}]
        demand.classes.add(class_id=f"c{number}", units=number, constraints=constraints)
    calls = framework_pb2.FrameworkCalls()
    calls.calls.add(request_id=1).kill.task_ids.append("before")
    calls.calls.add(request_id=2).set_demand.CopyFrom(demand)
    calls.calls.add(request_id=3).kill.task_ids.append("after")
    return calls


def a_long_registration() -> agent_pb2.AgentMessages:
    """Ten thousand tasks and a file's content of several pieces."""
    batch = agent_pb2.AgentMessages()
    register = batch.messages.add().register
    register.attributes["rack"] = "r1"
    for number in range(10_000):
        register.tasks.add(framework_id="f1-1", sequence=number).task.task_id = f"task-{number}"
    batch.messages.add().file_chunk.data = b"x" * 300_000
    return batch


@pytest.mark.parametrize("message", [a_long_demand(), a_long_registration()])
def test_long_messages_are_parsed_in_short_pieces_as_in_one(message: Any) -> None:
    raw = message.SerializeToString()
    found = type(message)()
    sizes = []

    for part, piece in pieces(found, memoryview(raw)):
        part.MergeFromString(piece.tobytes())
        sizes.append(len(piece))

    assert found == message
    assert len(raw) > 5 * PIECE_BYTES
    single = 300_000 if "register" in str(message)[:200] else 0
    assert all(size <= 2 * PIECE_BYTES or single <= size <= single + 2 * PIECE_BYTES for size in sizes)


def test_a_message_of_too_many_fields_is_refused_before_all_are_looked_at() -> None:
    with pytest.raises(InvalidFieldError, match="expected at most 500000 fields"):
        parse(framework_pb2.FrameworkCalls(), b"\x0a\x00" * 600_000)


def test_many_small_fields_are_parsed_in_short_pieces() -> None:
    raw = b"\x0a\x00" * 200_000
    message = framework_pb2.FrameworkCalls()

    sizes = [len(piece) for _, piece in pieces(message, memoryview(raw))]

    assert sum(sizes) == len(raw)
    assert max(sizes) <= PIECE_BYTES + 2


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(message=any_message(agent_pb2.AgentMessages) | any_message(framework_pb2.FrameworkCalls))
def test_whatever_a_message_says_it_says_in_pieces_too(
    message: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead_master.parsing.PIECE_BYTES", 3)
    found = type(message)()

    parse(found, message.SerializeToString(deterministic=True))

    assert found.SerializeToString(deterministic=True) == message.SerializeToString(deterministic=True)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(message=any_message(agent_pb2.AgentMessages), random=st.randoms(use_true_random=False))
def test_what_is_no_message_is_refused_by_name(
    message: Message, random: Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = bytearray(message.SerializeToString())
    raw = raw[: random.randrange(len(raw) + 1)]
    for _ in range(min(len(raw), 2)):
        raw[random.randrange(len(raw))] = random.randrange(256)
    monkeypatch.setattr("fairlead_master.parsing.PIECE_BYTES", 3)
    expected, found = agent_pb2.AgentMessages(), agent_pb2.AgentMessages()

    try:
        parse(found, bytes(raw))
    except InvalidFieldError as error:
        assert "expected a fairlead.v1.AgentMessages" in str(error)  # noqa: PT017 - it need not be raised
    else:
        expected.ParseFromString(bytes(raw))
        assert found.SerializeToString(deterministic=True) == expected.SerializeToString(deterministic=True)
