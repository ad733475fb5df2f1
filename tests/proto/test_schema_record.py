"""Old and new peers meet in one cluster, so nothing of the schema that was once promised changes its meaning."""

from collections.abc import Callable

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorProto

from tests.proto.schema_record import (
    RECORD,
    Record,
    breaking_changes,
    files_of_schema,
    read_record,
    record_of,
    write_record,
)


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


def add_field(owner: DescriptorProto) -> None:
    owner.field.add(name="x", number=1, type=9)


def test_nothing_promised_was_broken() -> None:
    promised = read_record(RECORD.read_text())

    assert not breaking_changes(promised, record_of(files_of_schema()))


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

    assert complaint in breaking_changes(promised, a_changed_schema(change))


def test_a_field_may_go_if_its_number_stays_reserved() -> None:
    before = record_of(files_of_schema())
    after = a_changed_schema(lambda agent, _: remove(agent, "Register", 4, is_reserved=True))

    assert breaking_changes(before, after) == []
    assert breaking_changes(after, before) == ["Register.4: expected 'reserved', got 'hostname string'"]


def test_a_message_goes_with_the_last_field_that_held_it() -> None:
    before = record_of(files_of_schema())

    def change(agent: FileDescriptorProto, _: FileDescriptorProto) -> None:
        remove(agent, "AgentMessage", 5, is_reserved=True)
        (index,) = (at for at, found in enumerate(agent.message_type) if found.name == "Goodbye")
        del agent.message_type[index]

    after = a_changed_schema(change)

    assert "Goodbye.1" in before
    assert "Goodbye.1" not in after
    assert breaking_changes(before, after) == []


def test_a_service_does_not_go() -> None:
    before = record_of(files_of_schema())

    after = {name: meaning for name, meaning in before.items() if not name.startswith("FilesService.")}

    assert [line.partition(":")[0] for line in breaking_changes(before, after)] == [
        "FilesService.List",
        "FilesService.Read",
    ]


def test_what_is_added_breaks_nothing() -> None:
    before = record_of(files_of_schema())

    after = a_changed_schema(lambda agent, _: add_field(message(agent, "Ping")))

    assert breaking_changes(before, after) == []
    assert after["Ping.1"] == "x string"


def test_record_is_read_as_it_was_written() -> None:
    record = record_of(files_of_schema())

    assert read_record(write_record(record)) == record
