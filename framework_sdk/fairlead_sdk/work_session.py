"""A session and the workload it serves: what happens in one is told to the other. Plain state, as both are.

Whoever owns it has the stream, the clock and the people who wait: it reports events, carries out what only it can, and
calls ``say_what_is_wanted`` when it is done with the news of a moment.
"""

from collections.abc import Sequence

from fairlead_sdk.calls import Scope
from fairlead_sdk.events import Event, StatusReceived
from fairlead_sdk.session_state import RECONCILE_TASKS_MAX, SessionState
from fairlead_sdk.workload import Workload
from fairlead_sdk.workload_actions import Action, EndTasks, GiveBack, TakeOffer


class WorkSession:
    """Tells a workload what happens in a session, and the session what the workload decides."""

    def __init__(self, session: SessionState, workload: Workload) -> None:
        self.session = session
        self.workload = workload

    def happened(self, event: Event, now_ms: int) -> list[Action]:
        """What follows from an event; to be carried out in this order."""
        decided = self.workload.step(event, now_ms)
        if isinstance(event, StatusReceived):
            # What there is to write down of a report is in the workload now.
            self.session.acknowledge(event.status)
        return decided

    def call(self, actions: Sequence[Action]) -> None:
        """Ask the master for what it has to do of these actions."""
        for action in actions:
            match action:
                case TakeOffer():
                    self.session.accept(action.offer, action.launches)
                case GiveBack():
                    self.session.decline(
                        action.offer_ids, reason="nothing waits for it", scope=Scope.NOTHING, ttl_ms=0
                    )
                case EndTasks():
                    self.session.kill(action.task_ids)
                case _:
                    pass

    def say_what_is_wanted(self) -> None:
        """Announce the demand if it changed, and ask about tasks an earlier session may have left."""
        demand = self.workload.take_demand()
        if demand is not None:
            self.session.set_demand(demand)
        questions = self.workload.take_questions()
        for start in range(0, len(questions), RECONCILE_TASKS_MAX):
            asked = questions[start : start + RECONCILE_TASKS_MAX]
            self.workload.asked(self.session.reconcile(asked), asked)
