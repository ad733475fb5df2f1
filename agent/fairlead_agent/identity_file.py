"""The identity that an agent has last made durable, in a file of its own: how a first start is told from a loss.

A journal that is empty, missing or cut short looks like one that was never longer. This file says what it must contain
at least. It is written after the journal has been synced and before anything that the identity allows leaves the
process, so a journal behind it has lost something; one ahead of it has not, for a crash may come in between.
"""

import json
import os
import zlib
from pathlib import Path
from typing import Final

from fairlead_agent.core.records import IdentityTaken
from fairlead_proto.ids import AgentId

_BYTES: Final = 512
"""A sector, which disks write whole or not at all; written over in place, so that a full disk does not matter."""


class IdentityDamaged(ValueError):
    """The file does not say who the agent was."""


class IdentityFile:
    """The file at one path, which need not exist."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> IdentityTaken | None:
        """Give the identity that was written last; None if there never was one.

        Raises:
            IdentityDamaged: the file is damaged.
            OSError: it cannot be read.
        """
        try:
            checksum, _, payload = self.path.read_bytes().partition(b" ")
        except FileNotFoundError:
            return None
        try:
            if int(checksum, 16) != zlib.crc32(payload):
                raise ValueError("wrong checksum")
            agent_id, boot_id, incarnation, epoch = json.loads(payload)
        except (TypeError, ValueError) as error:
            raise IdentityDamaged(f"{self.path}: damaged: {error}") from error
        return IdentityTaken(
            agent_id=AgentId(agent_id), boot_id=boot_id, incarnation=incarnation, epoch=epoch
        )

    def write(self, identity: IdentityTaken) -> None:
        """Make it durable. Blocks.

        Raises:
            OSError: the disk is failing, or full when the file is made.
        """
        fields = [identity.agent_id, identity.boot_id, identity.incarnation, identity.epoch]
        payload = json.dumps(fields).encode().ljust(_BYTES - len("12345678 \n")) + b"\n"
        is_new = not self.path.exists()
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(file, b"%08x %b" % (zlib.crc32(payload), payload), 0)
            os.fdatasync(file)
        finally:
            os.close(file)
        if is_new:
            sync_directory(self.path.parent)


def sync_directory(path: Path) -> None:
    """Wait until the names in a directory are on disk. Blocks."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
