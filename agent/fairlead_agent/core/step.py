"""What one step has decided so far, and the order in which it is handed out."""

from dataclasses import dataclass, field

from fairlead_agent.core.actions import Action, Checkpoint, SendStatuses
from fairlead_agent.core.records import IdentityTaken, Record
from fairlead_agent.core.state import AgentSettings, AgentState
from fairlead_proto.tasks import TaskStatus


@dataclass(slots=True, kw_only=True)
class Step:
    """Collects the outcome of one event.

    A machine has one and uses it for each of its steps: ``finish`` leaves it empty. Most events lead to one or two of these
    things, and to make all anew for each would cost as much as what follows from it.
    """

    settings: AgentSettings
    state: AgentState
    now_ms: int = 0
    records: list[Record] = field(default_factory=list)
    is_identity_new: bool = False
    actions: list[Action] = field(default_factory=list)
    statuses: list[TaskStatus] = field(default_factory=list)
    endings: list[Action] = field(default_factory=list)

    def write(self, record: Record) -> None:
        """Have ``record`` in the journal before any action of this step is carried out."""
        self.records.append(record)

    def write_identity(self) -> None:
        """Have the agent's id and epoch on disk, whatever happens to the host."""
        self.is_identity_new = True

    def do(self, action: Action) -> None:
        """Order ``action``, after all that was ordered before."""
        self.actions.append(action)

    def do_last(self, action: Action) -> None:
        """Order ``action`` after the statuses of this step: what it ends is what carries them."""
        self.endings.append(action)

    def finish(self) -> list[Action]:
        """Give the actions of the step, and be ready for the next one.

        The records come first: a status that is sent, or a process that is started, before it is written down could be
        contradicted by the agent's next life. Statuses come after the other actions, in one message, so that a start
        is not held up by encoding them.
        """
        if self.is_identity_new:
            self.records.insert(0, identity_of(self.state))
        actions: list[Action] = []
        records, statuses = self.records, self.statuses
        if records:
            actions.append(Checkpoint(records=tuple(records), is_durable=self.is_identity_new))
            records.clear()
            self.is_identity_new = False
        if self.actions:
            actions += self.actions
            self.actions.clear()
        if statuses:
            actions.append(SendStatuses(statuses=tuple(statuses)))
            statuses.clear()
        if self.endings:
            actions += self.endings
            self.endings.clear()
        return actions


def identity_of(state: AgentState) -> IdentityTaken:
    """The record of who the agent is now."""
    return IdentityTaken(
        agent_id=state.agent_id, boot_id=state.boot_id, incarnation=state.incarnation, epoch=state.epoch
    )
