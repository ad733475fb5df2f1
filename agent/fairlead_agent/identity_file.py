"""The identity that an agent has last made durable, in a file of its own: how a first start is told from a loss.

A journal that is empty, missing or cut short looks like one that was never longer. This file says what it must contain
at least. It is written after the journal has been synced and before anything that the identity allows leaves the
process, so a journal behind it has lost something; one ahead of it has not, for a crash may come in between.

The length of the journal is in it as well, written with each record behind it and not waited for: until the host's next
boot the kernel has both, so a journal that is shorter has been cut, be it between two records.
"""

import contextlib
import json
import os
import zlib
from pathlib import Path
from typing import Final, NamedTuple

from fairlead_agent.core.records import IdentityTaken
from fairlead_proto.ids import AgentId

_BYTES: Final = 512
"""A sector, which disks write whole or not at all; written over in place, so that a full disk does not matter."""


class IdentityDamaged(ValueError):
    """The file does not say who the agent was."""


class Known(NamedTuple):
    """What the file says."""

    identity: IdentityTaken
    journal_bytes: int
    """Length of the journal, which holds under the boot of ``identity`` only; 0 if an older agent wrote the file."""


class IdentityFile:
    """The file at one path, which need not exist."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._identity: IdentityTaken | None = None
        """What was written last here; None before that."""
        self._file = -1

    def read(self) -> Known | None:
        """Give what was written last; None if there never was anything.

        Raises:
            IdentityDamaged: the file is damaged.
            OSError: it cannot be read.
        """
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        checksum, _, payload = content.partition(b" ")
        try:
            if int(checksum, 16) != zlib.crc32(payload):
                raise ValueError("wrong checksum")
            agent_id, boot_id, incarnation, epoch, *more = json.loads(payload)
            (journal_bytes,) = more or [0]
        except (TypeError, ValueError) as error:
            raise IdentityDamaged(
                f"{self.path}: damaged: expected an agent's identity with its checksum, got {content[:40]!r}"
            ) from error
        identity = IdentityTaken(
            agent_id=AgentId(agent_id), boot_id=boot_id, incarnation=incarnation, epoch=epoch
        )
        return Known(identity, journal_bytes)

    def write(self, identity: IdentityTaken, journal_bytes: int) -> None:
        """Make it durable. Blocks.

        Raises:
            OSError: the disk is failing, or full when the file is made.
        """
        is_new = not self.path.exists()
        if self._file < 0:
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._identity = identity
        self._put(identity, journal_bytes)
        os.fdatasync(self._file)
        if is_new:
            sync_directory(self.path.parent)

    def note(self, journal_bytes: int) -> None:
        """Write the length of the journal over the one before, once an identity is there; not waited for."""
        if self._identity is not None:
            # One that is not written stays too small, which means less and nothing wrong.
            with contextlib.suppress(OSError):
                self._put(self._identity, journal_bytes)

    def _put(self, identity: IdentityTaken, journal_bytes: int) -> None:
        fields = [identity.agent_id, identity.boot_id, identity.incarnation, identity.epoch, journal_bytes]
        payload = json.dumps(fields).encode().ljust(_BYTES - len("12345678 \n")) + b"\n"
        os.pwrite(self._file, b"%08x %b" % (zlib.crc32(payload), payload), 0)

    def close(self) -> None:
        """Write no more."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def sync_directory(path: Path) -> None:
    """Wait until the names in a directory are on disk. Blocks."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
