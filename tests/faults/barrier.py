"""The oracles of durability: nothing that depends on what is to be durable is seen outside before that is durable.

They know in what order a master or an agent decided, what its disk has and what leaves, and nothing of how the one waits for
the other.
"""

from collections.abc import Sequence

from fairlead_agent.core import actions as agent_actions
from fairlead_agent.core.records import IdentityTaken, Record, StatusMade, TaskLaunched, TaskRemembered
from fairlead_master.core.actions import Action, Durable
from fairlead_master.core.durability import Subject, subject
from fairlead_master.core.machine import Machine
from fairlead_proto.framework_events import WelcomeFramework
from fairlead_proto.orders import ConfirmAgent
from fairlead_proto.tasks import TaskStatus
from fairlead_sim.virtual_cluster.agent import SimulatedAgent


class Barrier:
    """Watches the masters of one run, one after the other."""

    def __init__(self) -> None:
        self._machine: Machine | None = None
        self._undurable: list[Durable] = []
        """What was decided and is not on the disk, in order."""
        self._excused: dict[Subject, Durable] = {}
        """What there was no room for, and what followed before there was: it is not waited for."""
        self._known: set[Subject] = set()
        """What has ever been on the disk. An id that never was is told to nobody, room or not."""
        self._behind: dict[int, tuple[Action, tuple[Durable, ...]]] = {}
        """By identity, what was decided and has not left, with what was not durable then."""

    def note(self, machine: Machine, decided: Sequence[Action]) -> None:
        """A step has decided this."""
        if machine is not self._machine:
            self._machine = machine
            self._undurable, self._excused, self._behind = [], {}, {}
        for action in decided:
            if isinstance(action, Durable):
                if self._excused:
                    self._excused[subject(action)] = action
                else:
                    self._undurable.append(action)
            self._behind[id(action)] = (action, tuple(self._undurable))

    def wrote(self, batch: Sequence[Durable]) -> None:
        """The disk has this."""
        written = set(map(id, batch))
        self._undurable = [action for action in self._undurable if id(action) not in written]
        for action in batch:
            self._known.add(subject(action))
            if self._excused.get(subject(action)) is action:
                del self._excused[subject(action)]

    def excuse(self) -> None:
        """The disk has no room for what is to be written."""
        self._excused.update((subject(action), action) for action in self._undurable)
        self._undurable = []

    def check(self, action: Action) -> None:
        """Raise if this may not leave yet."""
        _, waits_for = self._behind.pop(id(action), (action, ()))
        early = [durable for durable in waits_for if any(durable is other for other in self._undurable)]
        assert not early, f"left before it was durable that {early}: {action}"
        told = _told(action)
        assert told is None or told in self._known, f"told, and never written: {action}"


def _told(action: Action) -> Subject | None:
    match action:
        case WelcomeFramework():
            return "framework", action.framework_id
        case ConfirmAgent():
            return "agent", action.agent_id
        case _:
            return None


class AgentBarrier:
    """Watches the agents of one run: a status that a master was told, and who told it, outlive a crash of the host."""

    def __init__(self) -> None:
        self._identities: dict[str, IdentityTaken] = {}
        """The last decided, by agent."""
        self._on_disk: dict[str, IdentityTaken] = {}
        self._statuses: set[TaskStatus] = set()
        """On some disk."""

    def note(self, agent: SimulatedAgent, decided: Sequence[agent_actions.Action]) -> None:
        """A turn has decided this."""
        for action in decided:
            if isinstance(action, agent_actions.Checkpoint):
                for record in action.records:
                    if isinstance(record, IdentityTaken):
                        self._identities[agent.name] = record

    def wrote(self, agent: SimulatedAgent, records: Sequence[Record]) -> None:
        """The disk has this."""
        for record in records:
            if isinstance(record, IdentityTaken):
                self._on_disk[agent.name] = record
            elif isinstance(record, StatusMade | TaskRemembered):
                self._statuses.add(record.status)

    def check(self, agent: SimulatedAgent, action: agent_actions.Action) -> None:
        """Raise if this may not leave yet."""
        identity = self._identities[agent.name]
        assert self._on_disk.get(agent.name) == identity, (
            f"{agent.name} acts before it is durable that {identity}: {action}"
        )
        told: Sequence[TaskStatus] = ()
        if isinstance(action, agent_actions.SendStatuses):
            told = action.statuses
        elif isinstance(action, agent_actions.SendRegistration):
            told = action.report.unacknowledged
        early = [status for status in told if status not in self._statuses]
        assert not early, f"{agent.name} tells before it is durable: {early}"
        if isinstance(action, agent_actions.StartProcess):
            known = any(
                isinstance(record, TaskLaunched) and record.spec.task_id == action.spec.task_id
                for record in agent.journal.records
            )
            assert known, f"{agent.name} starts what it has not written down: {action}"
