"""Chooses the isolation: the best that works here, or the one that was asked for."""

from typing import Final

from fairlead_agent.executor import cgroup_v1, cgroup_v2
from fairlead_agent.executor.cgroup_shares import share_name
from fairlead_agent.executor.cgroup_tree import CgroupPlaces, read_places
from fairlead_agent.executor.cgroup_v1 import CgroupV1
from fairlead_agent.executor.cgroup_v2 import CgroupV2
from fairlead_agent.executor.isolation import Isolation, IsolationError
from fairlead_agent.executor.no_isolation import NoIsolation

CHOICES: Final = ("auto", "cgroup v2", "cgroup v1", "none")
_NOT_ENFORCED: Final = "cpu and memory limits are not enforced"


def choose(wanted: str, *, parent: str, work_dir: str, agent_pid: int) -> Isolation:
    """Give the isolation to use.

    Args:
        wanted: one of CHOICES.
        parent: group to work in, from the root of each hierarchy; empty is the executor's own.
        work_dir: distinguishes the groups of several agents in one parent.
        agent_pid: the agent that started us, or 0.

    Raises:
        IsolationError: ``wanted`` is unknown, or is not "auto" and does not work here.
    """
    if wanted not in CHOICES:
        raise IsolationError(f"isolation: expected one of {', '.join(CHOICES)}, got {wanted!r}")
    if wanted == "none":
        return NoIsolation(f"{_NOT_ENFORCED}: isolation none was asked for", work_dir)
    name = share_name(work_dir)
    places = _places()
    reasons = []
    for choice in CHOICES[1:3]:
        if wanted not in {"auto", choice}:
            continue
        try:
            if choice == "cgroup v2":
                return CgroupV2(places, parent=parent, name=name, agent_pid=agent_pid)
            return CgroupV1(places, parent=parent, name=name)
        except IsolationError as error:
            reasons.append(str(error))
    if wanted != "auto":
        raise IsolationError(reasons[0])
    return NoIsolation(f"{_NOT_ENFORCED} ({'; '.join(reasons)})", work_dir)


def group_directories(*, parent: str, work_dir: str) -> list[str]:
    """Give where any executor of that work directory makes its groups, under whichever isolation; see ``choose``."""
    places, name = _places(), share_name(work_dir)
    unified = cgroup_v2.share(places, parent=parent, name=name)
    return [*([unified] if unified else []), *cgroup_v1.shares(places, parent=parent, name=name).values()]


def _places() -> CgroupPlaces:
    with (
        open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts,
        open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as groups,
    ):
        return read_places(mounts.read(), groups.read())
