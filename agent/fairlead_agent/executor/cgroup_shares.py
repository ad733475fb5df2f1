"""Who owns which of the groups that agents have beside one another: an executor locks its share of them.

An executor that was killed leaves its share, with groups for dozens of later tasks. The next one in its work directory takes
them over; where there is none, as for the temporary directory of a local cluster, they would stay until the host is booted,
and the kernel walks through all groups whenever a quota is written. So each executor, when it starts, removes what is beside
its own share, held by nobody, and without processes. The kernel lets go of a lock however its holder ends, and keeps it
across containers.
"""

import contextlib
import fcntl
import os
import zlib
from typing import Final

from fairlead_agent.executor import cgroup_tree
from fairlead_agent.executor.cgroup_tree import Tree

_PREFIX: Final = "agent-"
"""Of a share's name. Nothing else is ever removed; shares of versions that held no lock had no prefix."""

_CLAIM_ATTEMPTS: Final = 10
"""Another executor may remove a share just when we have made ours and before it is locked: once, as a rule."""


def share_name(work_dir: str) -> str:
    """Give the name of the share of the agent with that work directory, below the parent."""
    return f"fairlead/{_PREFIX}{zlib.crc32(os.fsencode(work_dir)):08x}"


def claim(tree: Tree, directory: str) -> int:
    """Make a share, and give a descriptor that holds it until it is closed.

    Raises:
        OSError: it cannot be made.
    """
    for _ in range(_CLAIM_ATTEMPTS):
        cgroup_tree.make_path(tree, directory)
        with contextlib.suppress(FileNotFoundError):  # it is gone again
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            # This waits for whoever removes it just now.
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            try:
                if os.path.samestat(os.fstat(descriptor), os.stat(directory)):
                    return descriptor
            except FileNotFoundError:
                pass
            os.close(descriptor)
    raise FileNotFoundError(f"{directory}: expected it to stay, was removed {_CLAIM_ATTEMPTS} times")


def remove_unowned(tree: Tree, directory: str) -> None:
    """Remove the shares beside this one that nobody holds and nothing runs in; what cannot be removed stays."""
    parent = os.path.dirname(directory)
    for name in sorted(os.listdir(parent)):
        path = f"{parent}/{name}"
        if path != directory and name.startswith(_PREFIX):
            with contextlib.suppress(
                OSError
            ):  # its owner, or somebody else, removes it; or it is another user's
                _remove_if_unowned(tree, path)


def _remove_if_unowned(tree: Tree, share: str) -> None:
    descriptor = os.open(share, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        groups = [path for path, _, _ in os.walk(share, topdown=False)]
        # What still runs is for the next executor of its work directory to end, which may know the tasks.
        if not any(cgroup_tree.read_pids(path) for path in groups):
            for path in groups:
                cgroup_tree.try_remove(tree, path)
    finally:
        os.close(descriptor)
