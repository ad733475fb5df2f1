"""What of the schema other versions rely on, as lines, and which changes of it would break them.

`schema.txt` beside this file is the record of what has been promised: a line for each field, value of an enum, method and
reservation. `make protos` adds to it what is new, and refuses to write over a promise.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from google.protobuf import descriptor_pb2

from fairlead_proto.v1 import agent_pb2, files_pb2, framework_pb2, operator_pb2, types_pb2

RECORD: Final = Path(__file__).with_name("schema.txt")
_MODULES: Final = (agent_pb2, files_pb2, framework_pb2, operator_pb2, types_pb2)
_TYPES: Final = descriptor_pb2.FieldDescriptorProto.Type
_RESERVED: Final = "reserved"

Record = dict[str, str]
"""What has a number or a name on the wire, such as `Register.2`, and what it means: a name and a type."""


def files_of_schema() -> list[descriptor_pb2.FileDescriptorProto]:
    """The schema as the committed stubs have it."""
    files = []
    for module in _MODULES:
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        files.append(file)
    return files


def record_of(files: Iterable[descriptor_pb2.FileDescriptorProto]) -> Record:
    """The record of a schema."""
    record: Record = {}
    for file in files:
        for message in file.message_type:
            record.update(_message(message, ""))
        for enum in file.enum_type:
            record.update(_enum(enum, ""))
        for service in file.service:
            for method in service.method:
                request = f"{'stream ' * method.client_streaming}{_short(method.input_type)}"
                response = f"{'stream ' * method.server_streaming}{_short(method.output_type)}"
                record[f"{service.name}.{method.name}"] = f"rpc {request} -> {response}"
    return dict(sorted(record.items(), key=lambda item: _sort_key(item[0])))


def _message(message: descriptor_pb2.DescriptorProto, prefix: str) -> Iterator[tuple[str, str]]:
    name = prefix + message.name
    for field in message.field:
        kind = _short(field.type_name) or _TYPES.Name(field.type).removeprefix("TYPE_").lower()
        words = [field.name, kind]
        if field.label == field.LABEL_REPEATED:
            words.append("repeated")
        if field.proto3_optional:
            words.append("optional")
        elif field.HasField("oneof_index"):
            words.append(f"oneof {message.oneof_decl[field.oneof_index].name}")
        yield f"{name}.{field.number}", " ".join(words)
    for span in message.reserved_range:
        for number in range(span.start, span.end):
            yield f"{name}.{number}", _RESERVED
    for nested in message.nested_type:
        yield from _message(nested, f"{name}.")
    for enum in message.enum_type:
        yield from _enum(enum, f"{name}.")


def _enum(enum: descriptor_pb2.EnumDescriptorProto, prefix: str) -> Iterator[tuple[str, str]]:
    name = prefix + enum.name
    for value in enum.value:
        yield f"{name}.{value.number}", value.name
    for span in enum.reserved_range:
        for number in range(span.start, span.end + 1):
            yield f"{name}.{number}", _RESERVED


def _short(type_name: str) -> str:
    return type_name.removeprefix(".fairlead.v1.")


def _sort_key(name: str) -> tuple[str, int, str]:
    owner, last = _owner(name), name.rpartition(".")[2]
    return (owner, int(last), "") if last.isdigit() else (owner, -1, last)


def breaking_changes(promised: Record, present: Record) -> list[str]:
    """What was promised and is not so any more: a sentence for each, none if every old peer is understood as before.

    A field or a value may go if its number stays reserved, so that nothing else ever gets it. A whole message goes with the
    last field that held it, and an enum likewise.
    """
    found = []
    owners = {_owner(name) for name in present}
    for name, meaning in promised.items():
        if _owner(name) not in owners and not meaning.startswith("rpc "):
            continue
        got = present.get(name, "nothing")
        may_go = name.rpartition(".")[2].isdigit() and meaning != _RESERVED
        if got != meaning and not (may_go and got == _RESERVED):
            expected = f"{meaning!r} or its number reserved" if may_go else repr(meaning)
            found.append(f"{name}: expected {expected}, got {got!r}")
    return found


def _owner(name: str) -> str:
    return name.rpartition(".")[0]


def read_record(text: str) -> Record:
    """The record that `write_record` wrote."""
    record = {}
    for line in text.splitlines():
        name, meaning = line.split(": ", maxsplit=1)
        record[name] = meaning
    return record


def write_record(record: Record) -> str:
    """A line for each promise."""
    return "".join(f"{name}: {meaning}\n" for name, meaning in record.items())


def main() -> str | None:
    """Add what is new to the record; the text that says why not, if something was broken."""
    present = record_of(files_of_schema())
    promised = read_record(RECORD.read_text()) if RECORD.exists() else {}
    if broken := breaking_changes(promised, present):
        return "\n".join(["the schema breaks what other versions rely on:", *broken])
    RECORD.write_text(write_record(present))
    return None


if __name__ == "__main__":
    sys.exit(main())
