"""Where an executor keeps its own files inside the agent's work directory.

Paths are plain strings: importing pathlib costs the executor as much as the rest of its start.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager


class ExecutorPaths:
    """The files of one executor. The sandboxes of its tasks are wherever the agent says."""

    def __init__(self, work_dir: str) -> None:
        self.work_dir = os.path.abspath(work_dir)
        self.directory = f"{self.work_dir}/executor"
        self.lock = f"{self.directory}/lock"
        """Held (flock) by the living executor; contains its pid."""
        self.socket = f"{self.directory}/socket"
        self.journal = f"{self.directory}/journal"
        self.log = f"{self.directory}/log"

    @contextmanager
    def socket_address(self) -> Iterator[str]:
        """Give an address to bind or connect to, good for as long as the context.

        A socket's path may have 107 bytes and a work directory may be longer, so it goes by a descriptor.
        """
        directory = os.open(self.directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield f"/proc/self/fd/{directory}/{os.path.basename(self.socket)}"
        finally:
            os.close(directory)
