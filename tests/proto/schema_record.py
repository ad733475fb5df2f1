"""What of the schema other versions rely on, as lines, and which changes of it would break them.

`schema.txt` beside this file is the record of what has been promised: a line for each field, value of an enum, method and
reservation. `make protos` adds to it what is new, and refuses to write over a promise. `baseline.txt` is that record at
the commit that its first line names (CONTRIBUTING.md): nothing of it goes at all, since peers of that commit are served.
`planned.txt` says which reservations may become a field or a value, and which one: those for what comes (docs/adr/0023).
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from google.protobuf import descriptor_pb2

from fairlead_proto.v1 import agent_pb2, files_pb2, framework_pb2, operator_pb2, types_pb2

RECORD: Final = Path(__file__).with_name("schema.txt")
BASELINE: Final = Path(__file__).with_name("baseline.txt")
PLANNED: Final = Path(__file__).with_name("planned.txt")
_COMMIT: Final = "commit"
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
    for reserved in message.reserved_name:
        yield f"{name}.{reserved}", _RESERVED
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
    for reserved in enum.reserved_name:
        yield f"{name}.{reserved}", _RESERVED


def _short(type_name: str) -> str:
    return type_name.removeprefix(".fairlead.v1.")


def _sort_key(name: str) -> tuple[str, int, str]:
    owner, last = _owner(name), name.rpartition(".")[2]
    return (owner, int(last), "") if last.isdigit() else (owner, -1, last)


def breaking_changes(
    promised: Record, present: Record, planned: Record, *, nothing_goes: bool = False
) -> list[str]:
    """What was promised and is not so any more: a sentence for each, none if every old peer is understood as before.

    A field or a value may go if its number stays reserved, so that nothing else ever gets it. A whole message goes with the
    last field that held it, and an enum likewise. With `nothing_goes` neither may: the promise is a baseline.
    """
    found = []
    owners = {_owner(name) for name in present}
    names_planned = {f"{_owner(name)}.{meaning.split()[0]}" for name, meaning in planned.items()}
    for name, meaning in promised.items():
        is_reservation = meaning == _RESERVED
        may_go = not nothing_goes and not is_reservation and name.rpartition(".")[2].isdigit()
        got = present.get(name, "nothing")
        if _owner(name) not in owners and not nothing_goes and not meaning.startswith("rpc "):
            continue
        if got == meaning or (may_go and got == _RESERVED):
            continue
        if is_reservation and (got == planned.get(name) or name in names_planned):
            continue
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


def read_baseline() -> tuple[str, Record]:
    """The commit of the baseline, and its record."""
    line, _, rest = BASELINE.read_text().partition("\n")
    return line.removeprefix(f"{_COMMIT} "), read_record(rest)


def write_baseline(commit: str, record: Record) -> str:
    """What `read_baseline` reads."""
    return f"{_COMMIT} {commit}\n{write_record(record)}"


def broken_promises(present: Record) -> list[str]:
    """The breaking changes since the baseline, and of what was added since."""
    planned = read_record(PLANNED.read_text())
    promised = read_record(RECORD.read_text())
    _, baseline = read_baseline()
    since_baseline = breaking_changes(baseline, present, planned, nothing_goes=True)
    # What the baseline has is told once, by the stricter rule.
    added = {name: meaning for name, meaning in promised.items() if name not in baseline}
    return since_baseline + breaking_changes(added, present, planned)


def main(arguments: list[str]) -> str | None:
    """Add what is new to the record; the text that says why not, if something was broken."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--print-baseline", metavar="COMMIT", help="only print a baseline of the schema found"
    )
    commit = parser.parse_args(arguments).print_baseline
    present = record_of(files_of_schema())
    if commit:
        sys.stdout.write(write_baseline(commit, present))
        return None
    if broken := broken_promises(present):
        return "\n".join(["the schema breaks what other versions rely on:", *broken])
    RECORD.write_text(write_record(present))
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
