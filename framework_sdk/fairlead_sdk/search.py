"""Which attempts of a job an earlier session of the framework left behind: what the master answers about each id.

Attempts are known by their ids alone, which follow from the task's: the first has the task's own, the second ``<id>.2``.
"""

from collections.abc import Sequence
from typing import Final

from fairlead_proto.framework_events import AnswerCall, FinishReconciliation
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import TaskStatus, attempt_name

UNCLAIMED_MAX: Final = 10_000
"""Reports kept until their tasks are submitted: as many as a master remembers of tasks that ended, and can repeat."""


class Search:
    """What is known of the attempts one job may have had."""

    def __init__(self, job_id: str, attempts_max: int) -> None:
        self.job_id = job_id
        self.numbers = {attempt_name(job_id, number): number for number in range(1, attempts_max + 1)}
        """Attempt id to its number."""
        self._answers: dict[int, TaskStatus | None] = {}
        self.questions_open = 0
        """How many of the attempts the master has been asked about and has not answered yet."""

    def note(self, status: TaskStatus) -> None:
        """A report on one of the attempts; a later one counts."""
        is_unknown = status.state is TaskState.LOST and status.reason is Reason.UNKNOWN_TASK
        self._answers[self.numbers[status.task_id]] = None if is_unknown else status

    def note_silence(self, attempt_id: str) -> None:
        """The master was asked and has nothing to say about this attempt."""
        self._answers.setdefault(self.numbers[attempt_id], None)

    def open_ids(self) -> list[str]:
        """The attempts after the last known one that may be on agents that are away, or of which nothing was said yet."""
        last = self.last()
        known = 0 if last is None else self.numbers[last.task_id]
        return [
            attempt_id
            for attempt_id, number in self.numbers.items()
            if number > known and (number not in self._answers or _is_away(self._answers[number]))
        ]

    def last(self) -> TaskStatus | None:
        """The last attempt of which anything is known. An earlier one was given up before, even if it runs on."""
        return next(iter(self._known()), None)

    def before(self, number: int) -> list[TaskStatus]:
        """The attempts before this one, as far as they are remembered."""
        return [status for status in self._known() if self.numbers[status.task_id] < number]

    def _known(self) -> list[TaskStatus]:
        """What agents or the master said of attempts, the last attempt first."""
        return [
            status
            for _, status in sorted(self._answers.items(), reverse=True, key=lambda item: item[0])
            if status is not None and not _is_away(status)
        ]


class Finder:
    """All searches that are under way, and the reports on attempts nobody has submitted a task for yet."""

    def __init__(self) -> None:
        self._searches: dict[str, Search] = {}
        self._job_of: dict[str, str] = {}
        """Attempt id to the job it may belong to."""
        self._unclaimed: dict[str, TaskStatus] = {}
        self._questions: dict[str, None] = {}
        self._asked: dict[int, dict[str, Search]] = {}
        """The attempts each open request is about, with the search it was sent for: by the answer, the job may be sought anew."""
        self._again: dict[str, None] = {}

    @property
    def sought_count(self) -> int:
        """How many jobs are sought."""
        return len(self._searches)

    def seek(self, job_id: str, *, attempts_max: int) -> None:
        """Find out whether attempts of this job are anywhere."""
        self._searches[job_id] = search = Search(job_id, attempts_max)
        for attempt_id in search.numbers:
            self._job_of[attempt_id] = job_id
            self._questions[attempt_id] = None
            if attempt_id in self._unclaimed:
                search.note(self._unclaimed.pop(attempt_id))

    def stop(self, job_id: str) -> None:
        """The job's search is over."""
        search = self._searches.pop(job_id, None)
        for attempt_id in () if search is None else search.numbers:
            self._job_of.pop(attempt_id, None)
            self._questions.pop(attempt_id, None)
            self._again.pop(attempt_id, None)

    def note(self, status: TaskStatus) -> bool:
        """Keep a report for the search it belongs to; False if the attempt is not sought."""
        job_id = self._job_of.get(status.task_id)
        if job_id is not None:
            self._searches[job_id].note(status)
            return True
        return False

    def keep(self, status: TaskStatus) -> None:
        """Keep a report on an attempt of which no task was submitted: the task may still come."""
        self._unclaimed.pop(status.task_id, None)
        self._unclaimed[status.task_id] = status
        if len(self._unclaimed) > UNCLAIMED_MAX:
            del self._unclaimed[next(iter(self._unclaimed))]

    def search_of(self, job_id: str) -> Search:
        """The search for a job, which is under way."""
        return self._searches[job_id]

    def take_questions(self) -> list[str]:
        """The attempts to ask the master about now."""
        questions, self._questions = self._questions, {}
        return list(questions)

    def asked(self, request_id: int, attempt_ids: Sequence[str]) -> None:
        """The master is asked about these attempts."""
        searches = {it: self._searches[self._job_of[it]] for it in attempt_ids if it in self._job_of}
        for search in searches.values():
            search.questions_open += 1
        self._asked[request_id] = searches

    def ask_again(self) -> None:
        """Time has passed: agents that were away may be back."""
        self._questions.update(self._again)
        self._again = {}

    def answered(self, answer: FinishReconciliation | AnswerCall) -> dict[str, Search]:
        """The searches a request of ours was about, by job, of which no other request is under way.

        The attempts of one job may be asked about by two requests: the first one's answer says nothing about the last attempt.
        """
        found: dict[str, Search] = {}
        is_whole = isinstance(answer, FinishReconciliation) and not answer.recovering_agent_ids
        for attempt_id, search in self._asked.pop(answer.request_id, {}).items():
            search.questions_open -= 1
            if is_whole:
                search.note_silence(attempt_id)
            if not search.questions_open and self._searches.get(search.job_id) is search:
                found[search.job_id] = search
        for search in found.values():
            self._again.update(dict.fromkeys(search.open_ids()))
        return found


def _is_away(status: TaskStatus | None) -> bool:
    """Whether the master cannot say, because agents that may have the task have not come back to it."""
    return status is not None and status.state is TaskState.UNREACHABLE and not status.agent_id
