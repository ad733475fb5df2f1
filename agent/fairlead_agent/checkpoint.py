"""The journal of an agent: one file, appended to, rewritten when it has grown too long.

Each write is one line: length and CRC-32 of the payload in hexadecimal, then the payload, a JSON array of records; all
records of a turn together cost a third of what they would cost one by one. What a crash
can do to the file is known: the end of the last write is missing, or the host wrote zeros there. That much is dropped.
Anything else that does not check out is damage, and the agent refuses to start rather than guess.

Appending does not wait for the disk. A crash of the agent loses nothing, since the kernel has the bytes; a crash of
the host ends the tasks anyway, and a task whose records went down with it is settled by the master, which knows that
the agent is back without it. What must not be contradicted is waited for: a status before it is told, for a framework may have acted
on an end by the time the host is back, and takes a second status of one number for a repeat; and the agent's id and epoch,
for an agent that forgot the epoch could obey a master that has been replaced. Id and epoch are also kept in ``checkpoint.identity``, so that a journal that has lost
them is not taken for that of a new agent, whose first act would be to end the tasks it does not know.
"""

import json
import os
import re
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, Self

from fairlead_agent import record_codec
from fairlead_agent.core.records import IdentityTaken, Record
from fairlead_agent.identity_file import IdentityDamaged, IdentityFile, sync_directory
from fairlead_proto.resources import ResourceKinds

FORMAT_VERSION: Final = 1
COMPACT_BYTES_MIN: Final = 4 * 1024 * 1024
"""Below this size rewriting gains nothing: reading 4 MiB at the start takes a tenth of a second."""

_LINE_RECORDS_MAX: Final = 1_000
"""Of one line of a compacted journal, so that damage is located to 200 KiB and the encoder gives way to other threads."""

_START_ANEW: Final = (
    "move checkpoint and checkpoint.identity away to start as a new agent, which ends the tasks of the old one and removes "
    "their sandboxes: copy what you need of sandboxes/ first (docs/operating.md, What is lost with what)"
)

_HEADER: Final = re.compile(rb"([0-9a-f]{8}) ([0-9a-f]{8}) ")
_HEADER_BYTES: Final = 18
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"))


class CheckpointCorrupt(ValueError):
    """The journal is damaged or has lost something; the message names the file and says what to do. It is left as it is."""


class Checkpoint:
    """The open journal of one agent; one writer at a time, which the lock of the work directory sees to."""

    def __init__(self, path: Path, kinds: ResourceKinds, file: int, size_bytes: int) -> None:
        self._path = path
        self._identity_file = _identity_file(path)
        self._kinds = kinds
        self._file = file
        self._size_bytes = size_bytes
        self._compacted_bytes = size_bytes

    @classmethod
    def open(cls, path: Path, kinds: ResourceKinds, boot_id: str = "") -> tuple[Self, list[Record]]:
        """Open or create the journal and give its records, oldest first.

        Args:
            path: where it is.
            kinds: of resources, that amounts in it are of.
            boot_id: the present boot of the host; under another one the journal may have lost its end. Empty: unknown.

        Raises:
            CheckpointCorrupt: it is damaged, or of another version, or has lost what an agent here had made durable.
            OSError: it cannot be read or written.
        """
        data = path.read_bytes() if path.exists() else b""
        payloads, good_bytes = read_lines(data, path)
        records = _decode(payloads, path, kinds)
        _check_complete(path, records, data, good_bytes=good_bytes, boot_id=boot_id)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.ftruncate(file, good_bytes)
        journal = cls(path, kinds, file, good_bytes)
        if not payloads:
            journal._write(_line(_version_line()))
            sync_directory(path.parent)
        return journal, records

    def append(self, records: Iterable[Record]) -> None:
        """Add records at the end; all of them are with the kernel when this returns.

        Raises:
            OSError: the disk is full or failing; nothing was added.
        """
        self._write(_line(self._payload(records)))

    def _payload(self, records: Iterable[Record]) -> bytes:
        return _ENCODER.encode([record_codec.encode(record, self._kinds) for record in records]).encode()

    def _write(self, data: bytes) -> None:
        written = 0
        try:
            while written < len(data):
                written += os.write(self._file, data[written:] if written else data)
        except OSError:
            # Half a record before a whole one would look like damage.
            os.ftruncate(self._file, self._size_bytes)
            raise
        self._size_bytes += written
        self._identity_file.note(self._size_bytes)

    def sync(self, identity: IdentityTaken | None) -> None:
        """Wait until everything appended is on disk, then note that ``identity`` is, the last one in it if it is new. Blocks.

        Raises:
            OSError: the disk is failing; what of the journal is on it is not known.
        """
        os.fdatasync(self._file)
        if identity is not None:
            self._identity_file.write(identity, self._size_bytes)

    def is_long(self) -> bool:
        """Whether ``compact`` is worth its cost."""
        return self._size_bytes > max(COMPACT_BYTES_MIN, 2 * self._compacted_bytes)

    def compact(self, records: Sequence[Record]) -> None:
        """Replace the journal by ``records``, which stand for all of it. Blocks; nothing may be appended meanwhile.

        Raises:
            OSError: the disk is full or failing; the journal is as it was, or is the new one.
        """
        parts = [
            records[start : start + _LINE_RECORDS_MAX] for start in range(0, len(records), _LINE_RECORDS_MAX)
        ]
        data = b"".join([_line(payload) for payload in [_version_line(), *map(self._payload, parts)]])
        beside = self._path.with_suffix(".new")
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            written = 0
            while written < len(data):
                written += os.write(file, data[written:] if written else data)
            os.fdatasync(file)
            # Before the shorter journal has the name, for a kill may come in between.
            self._identity_file.note(min(len(data), self._size_bytes))
            beside.rename(self._path)
        except OSError:
            # Not tried again before the journal has doubled once more.
            self._compacted_bytes = self._size_bytes
            os.close(file)
            beside.unlink(missing_ok=True)
            raise
        os.close(self._file)
        self._file = file
        self._size_bytes = self._compacted_bytes = len(data)
        # What is appended from now on is in the new file, and must not be lost with its name.
        sync_directory(self._path.parent)

    def close(self) -> None:
        """Close the file; the journal is not to be used after it."""
        os.close(self._file)
        self._identity_file.close()


def _version_line() -> bytes:
    return b'["fairlead agent checkpoint",%d]' % FORMAT_VERSION


def _line(payload: bytes) -> bytes:
    return b"%08x %08x %b\n" % (len(payload), zlib.crc32(payload), payload)


def read_lines(data: bytes, path: Path) -> tuple[list[bytes], int]:
    """Give the payloads in ``data`` and the length of the part that is whole.

    Raises:
        CheckpointCorrupt: something other than the end is wrong; ``path`` is named in the message.
    """
    payloads: list[bytes] = []
    offset = 0
    while offset < len(data):
        header = _HEADER.match(data, offset)
        start = offset + _HEADER_BYTES
        end = start + int(header[1], 16) if header else start
        if (
            header is None
            or data[end : end + 1] != b"\n"
            or zlib.crc32(data[start:end]) != int(header[2], 16)
        ):
            if _is_torn(data[offset:]):
                break
            raise CheckpointCorrupt(
                f"{path}: damaged at byte {offset}: expected a record with its checksum, got "
                f"{data[offset : offset + 40]!r}; {_START_ANEW}"
            )
        payloads.append(data[start:end])
        offset = end + 1
    return payloads, offset


def _is_torn(rest: bytes) -> bool:
    # A write that was cut off has no newline at its end, for payloads contain none; a file system that lost the last
    # pages has zeros from some point on.
    return b"\n" not in rest.rstrip(b"\0")


def _decode(payloads: list[bytes], path: Path, kinds: ResourceKinds) -> list[Record]:
    if not payloads:
        return []
    _check_version(path, payloads[0])
    records = []
    offset = len(_line(payloads[0]))
    for payload in payloads[1:]:
        try:
            records += [record_codec.decode(array, kinds) for array in json.loads(payload)]
        except (TypeError, ValueError) as error:
            raise CheckpointCorrupt(f"{path}: unreadable at byte {offset}: {error}") from error
        offset += len(payload) + _HEADER_BYTES + 1
    return records


def _check_version(path: Path, line: bytes) -> None:
    if line == _version_line():
        return
    if found := re.fullmatch(rb'\["fairlead agent checkpoint",([0-9]+)\]', line):
        raise CheckpointCorrupt(
            f"{path}: expected version {FORMAT_VERSION} of a checkpoint, got version {int(found[1])}: start the version of "
            "the agent that wrote it; nothing was changed"
        )
    raise CheckpointCorrupt(
        f"{path}: expected {_version_line().decode()} at byte 0, got {line[:60]!r}; {_START_ANEW}"
    )


def _identity_file(path: Path) -> IdentityFile:
    return IdentityFile(path.with_name(f"{path.name}.identity"))


def _check_complete(
    path: Path, records: Sequence[Record], data: bytes, *, good_bytes: int, boot_id: str
) -> None:
    """Refuse a journal that does not reach as far as what was made durable in it, or under this boot written to it."""
    try:
        read = _identity_file(path).read()
    except IdentityDamaged as error:
        raise CheckpointCorrupt(
            f"{error}, so nobody knows whether {path.name} is complete; if it is as its agent left it, remove "
            f"{path.name}.identity to use it as it is, else {_START_ANEW}"
        ) from error
    if read is None:
        return  # A first start, or an agent of before there was such a file.
    known, written_bytes = read
    found = next((record for record in reversed(records) if isinstance(record, IdentityTaken)), None)
    if (
        found is None
        or found.agent_id != (known.agent_id or found.agent_id)
        or found.incarnation < known.incarnation
        or found.epoch < known.epoch
    ):
        what = "no file" if not path.exists() else "an empty file" if not data else _described(found)
        raise CheckpointCorrupt(
            f"{path}: expected the journal of {_described(known)}, which was here, or of a later life of it, "
            f"found {what}; its tasks may run still: {_START_ANEW}"
        )
    if boot_id and boot_id == known.boot_id and good_bytes < written_bytes:
        raise CheckpointCorrupt(
            f"{path}: expected the {written_bytes} bytes that {path.name}.identity says were written, found {good_bytes}; "
            f"its tasks may run still: {_START_ANEW}"
        )


def _described(identity: IdentityTaken | None) -> str:
    if identity is None:
        return "one that names no agent"
    name = f"agent {identity.agent_id}" if identity.agent_id else "an agent without an id"
    return f"{name} in life {identity.incarnation}, epoch {identity.epoch}"
