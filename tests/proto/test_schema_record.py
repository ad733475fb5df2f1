"""Old and new peers meet in one cluster, so nothing of the schema that was once promised changes its meaning."""

from collections.abc import Callable

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorProto

from tests.proto.schema_record import (
    BASELINE,
    PLANNED,
    RECORD,
    Record,
    breaking_changes,
    broken_promises,
    files_of_schema,
    read_baseline,
    read_record,
    record_of,
    write_baseline,
    write_record,
)

NOTHING_PLANNED: Record = {}


def a_changed_schema(change: Callable[[FileDescriptorProto, FileDescriptorProto], None]) -> Record:
    """The record after `change` was made to the files of agents and of types."""
    files = files_of_schema()
    by_name = {file.name.rpartition("/")[2]: file for file in files}
    change(by_name["agent.proto"], by_name["types.proto"])
    return record_of(files)


def message(file: FileDescriptorProto, name: str) -> DescriptorProto:
    return next(found for found in file.message_type if found.name == name)


def enum(file: FileDescriptorProto, name: str) -> EnumDescriptorProto:
    return next(found for found in file.enum_type if found.name == name)


def remove(file: FileDescriptorProto, name: str, number: int, *, is_reserved: bool) -> None:
    owner = message(file, name)
    (index,) = (at for at, field in enumerate(owner.field) if field.number == number)
    del owner.field[index]
    if is_reserved:
        owner.reserved_range.add(start=number, end=number + 1)


def remove_value(file: FileDescriptorProto, name: str, number: int) -> None:
    owner = enum(file, name)
    (index,) = (at for at, value in enumerate(owner.value) if value.number == number)
    del owner.value[index]
    owner.reserved_range.add(start=number, end=number)


def reuse(owner: DescriptorProto, number: int) -> None:
    (span,) = (span for span in owner.reserved_range if span.start <= number < span.end)
    owner.reserved_range.remove(span)
    owner.field.add(name="boot", number=number, type=9)


def add_field(owner: DescriptorProto) -> None:
    owner.field.add(name="x", number=1, type=9)


def test_nothing_promised_was_broken() -> None:
    assert not broken_promises(record_of(files_of_schema()))


def test_record_holds_all_of_the_schema() -> None:
    assert RECORD.read_text() == write_record(record_of(files_of_schema())), "run `make protos` and commit"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            lambda agent, _: setattr(message(agent, "Register").field[0], "number", 99),
            "Register.1: expected 'agent_id string' or its number reserved, got 'nothing'",
        ),
        (
            lambda agent, _: setattr(message(agent, "Register").field[0], "type", 12),
            "Register.1: expected 'agent_id string' or its number reserved, got 'agent_id bytes'",
        ),
        (
            lambda agent, _: setattr(message(agent, "Launch").field[0], "label", 1),
            "Launch.1: expected 'tasks LaunchTask repeated' or its number reserved, got 'tasks LaunchTask'",
        ),
        (
            lambda agent, _: message(agent, "AgentMessage").field[0].ClearField("oneof_index"),
            "AgentMessage.1: expected 'register Register oneof message' or its number reserved, got 'register Register'",
        ),
        (
            lambda agent, _: remove(agent, "Register", 4, is_reserved=False),
            "Register.4: expected 'hostname string' or its number reserved, got 'nothing'",
        ),
        (
            lambda _, types: setattr(enum(types, "TaskState").value[3], "number", 99),
            "TaskState.3: expected 'TASK_STATE_RUNNING' or its number reserved, got 'nothing'",
        ),
        (
            lambda _, types: setattr(message(types, "Constraint").enum_type[0].value[1], "name", "OTHER"),
            "Constraint.Operator.1: expected 'OPERATOR_EQUALS' or its number reserved, got 'OTHER'",
        ),
        (
            lambda agent, _: setattr(agent.service[0].method[0], "server_streaming", False),
            "AgentService.Session: expected 'rpc stream AgentMessages -> stream MasterMessages', got 'rpc stream AgentMessages -> MasterMessages'",
        ),
    ],
)
def test_a_breaking_change_is_refused_by_name(
    change: Callable[[FileDescriptorProto, FileDescriptorProto], None], complaint: str
) -> None:
    promised = record_of(files_of_schema())

    assert complaint in breaking_changes(promised, a_changed_schema(change), NOTHING_PLANNED)


def test_a_field_may_go_if_its_number_stays_reserved() -> None:
    before = record_of(files_of_schema())
    after = a_changed_schema(lambda agent, _: remove(agent, "Register", 4, is_reserved=True))

    assert breaking_changes(before, after, NOTHING_PLANNED) == []
    assert breaking_changes(after, before, NOTHING_PLANNED) == [
        "Register.4: expected 'reserved', got 'hostname string'"
    ]


def test_a_message_goes_with_the_last_field_that_held_it() -> None:
    before = record_of(files_of_schema())

    def change(agent: FileDescriptorProto, _: FileDescriptorProto) -> None:
        remove(agent, "AgentMessage", 5, is_reserved=True)
        (index,) = (at for at, found in enumerate(agent.message_type) if found.name == "Goodbye")
        del agent.message_type[index]

    after = a_changed_schema(change)

    assert "Goodbye.1" in before
    assert "Goodbye.1" not in after
    assert breaking_changes(before, after, NOTHING_PLANNED) == []
    assert breaking_changes(before, after, NOTHING_PLANNED, nothing_goes=True) == [
        "AgentMessage.5: expected 'goodbye Goodbye oneof message', got 'reserved'",
        "Goodbye.1: expected 'reason string', got 'nothing'",
    ]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            lambda agent, _: remove(agent, "Register", 4, is_reserved=True),
            "Register.4: expected 'hostname string', got 'reserved'",
        ),
        (
            lambda agent, _: setattr(message(agent, "Register").field[0], "number", 99),
            "Register.1: expected 'agent_id string', got 'nothing'",
        ),
        (
            lambda agent, _: setattr(message(agent, "Register").field[0], "type", 12),
            "Register.1: expected 'agent_id string', got 'agent_id bytes'",
        ),
        (
            lambda agent, _: setattr(message(agent, "Launch").field[0], "label", 1),
            "Launch.1: expected 'tasks LaunchTask repeated', got 'tasks LaunchTask'",
        ),
        (
            lambda agent, _: reuse(message(agent, "Register"), 3),
            "Register.3: expected 'reserved', got 'boot string'",
        ),
        (
            lambda agent, _: message(agent, "Register").reserved_name.remove("boot_id"),
            "Register.boot_id: expected 'reserved', got 'nothing'",
        ),
        (
            lambda _, types: remove_value(types, "TaskState", 3),
            "TaskState.3: expected 'TASK_STATE_RUNNING', got 'reserved'",
        ),
        (
            lambda agent, _: agent.service[0].method.pop(1),
            "AgentService.Files: expected 'rpc stream FileAnswers -> stream FileRequests', got 'nothing'",
        ),
        (
            lambda agent, _: setattr(agent.service[0].method[0], "client_streaming", False),
            "AgentService.Session: expected 'rpc stream AgentMessages -> stream MasterMessages', got 'rpc AgentMessages -> stream MasterMessages'",
        ),
        (
            lambda agent, _: setattr(agent.service[0].method[0], "input_type", ".fairlead.v1.Ping"),
            "AgentService.Session: expected 'rpc stream AgentMessages -> stream MasterMessages', got 'rpc stream Ping -> stream MasterMessages'",
        ),
    ],
)
def test_nothing_that_peers_of_the_baseline_use_goes_or_changes(
    change: Callable[[FileDescriptorProto, FileDescriptorProto], None], complaint: str
) -> None:
    assert complaint in broken_promises(a_changed_schema(change))


def test_what_a_number_is_kept_for_it_may_become_and_nothing_else() -> None:
    planned = {"Register.16": "address string", "Reason.22": "REASON_PREEMPTED"}

    kept = ("Reason.22", "Reason.REASON_PREEMPTED", "Register.16", "Register.address")
    before, after = dict.fromkeys(kept, "reserved"), planned

    assert breaking_changes(before, after, planned) == []
    assert breaking_changes(before, {**after, "Register.16": "address bytes"}, planned) == [
        "Register.16: expected 'reserved', got 'address bytes'"
    ]
    assert breaking_changes(before, after, NOTHING_PLANNED) == [
        "Reason.22: expected 'reserved', got 'REASON_PREEMPTED'",
        "Reason.REASON_PREEMPTED: expected 'reserved', got 'nothing'",
        "Register.16: expected 'reserved', got 'address string'",
        "Register.address: expected 'reserved', got 'nothing'",
    ]


def test_what_is_planned_is_kept_free_by_number_and_name_until_it_is_there() -> None:
    present = record_of(files_of_schema())

    for name, meaning in read_record(PLANNED.read_text()).items():
        owner = name.rpartition(".")[0]
        kept = (present.get(name), present.get(f"{owner}.{meaning.split()[0]}"))
        assert kept in {("reserved", "reserved"), (meaning, None)}, name


def test_a_service_does_not_go() -> None:
    before = record_of(files_of_schema())

    after = {name: meaning for name, meaning in before.items() if not name.startswith("FilesService.")}

    assert [line.partition(":")[0] for line in breaking_changes(before, after, NOTHING_PLANNED)] == [
        "FilesService.Follow",
        "FilesService.List",
        "FilesService.Read",
    ]


def test_what_is_added_breaks_nothing() -> None:
    before = record_of(files_of_schema())

    after = a_changed_schema(lambda agent, _: add_field(message(agent, "Ping")))

    assert breaking_changes(before, after, NOTHING_PLANNED) == []
    assert not broken_promises(after)
    assert after["Ping.1"] == "x string"


def test_record_is_read_as_it_was_written() -> None:
    record = record_of(files_of_schema())

    assert read_record(write_record(record)) == record
    assert BASELINE.read_text() == write_baseline(*read_baseline())
