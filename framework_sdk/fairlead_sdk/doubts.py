"""Launches whose fate a broken stream left open, until somebody says what became of them."""

from fairlead_proto.codes import Rejection
from fairlead_proto.framework_events import AnswerAccept
from fairlead_proto.ids import OfferId
from fairlead_sdk.calls import Accept
from fairlead_sdk.events import AcceptItem


class Doubts:
    """The tasks of accepts that were sent and not answered."""

    def __init__(self) -> None:
        self.agent_by_task: dict[str, str] = {}
        """Task id to the agent it may run on."""
        self._accept_by_task: dict[str, tuple[int, str]] = {}

    def add(self, request_id: int, accept: Accept) -> None:
        """Every task of this accept is in doubt."""
        for launch in accept.launches:
            self.agent_by_task[launch.task_id] = accept.agent_id
            self._accept_by_task[launch.task_id] = (request_id, accept.offer_id)

    def settle(self, task_id: str, *, launched: bool) -> AnswerAccept:
        """End the doubt about one task, and return the answer its accept would have had."""
        del self.agent_by_task[task_id]
        request_id, offer_id = self._accept_by_task.pop(task_id)
        item = (
            AcceptItem(task_id=task_id)
            if launched
            else AcceptItem(
                task_id=task_id, rejection=Rejection.EXPIRED, detail="the stream broke and it never arrived"
            )
        )
        return AnswerAccept(request_id=request_id, offer_id=OfferId(offer_id), answers=(item,))
