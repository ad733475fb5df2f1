"""What becomes of tasks on a fake agent, as a test scripts it."""

from collections.abc import Callable
from dataclasses import dataclass

from fairlead_proto.task_state import Reason, TaskState, is_terminal
from fairlead_proto.tasks import TaskSpec, TaskUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one launch of a task goes.

    By default it runs 100 ms and ends with exit code 0. ``state`` replaces the ending by another, such as
    ``TaskState.LOST``; ``duration_ms`` None lets it run until it is killed.
    """

    duration_ms: int | None = 100
    exit_code: int = 0
    signal: int | None = None
    state: TaskState | None = None
    reason: Reason | None = None
    message: str = ""
    stdout: str = ""
    stderr: str = ""
    ignores_sigterm: bool = False
    """Killed at the end of its grace period instead of at once."""
    usage: TaskUsage | None = None

    def __post_init__(self) -> None:
        if self.state is not None and not is_terminal(self.state):
            raise ValueError(f"state: expected a terminal one, got {self.state.value}")

    @property
    def final_state(self) -> TaskState:
        """The state it ends in."""
        if self.state is not None:
            return self.state
        return TaskState.FAILED if self.exit_code or self.signal else TaskState.FINISHED

    @property
    def final_reason(self) -> Reason:
        """Why it ends so."""
        if self.reason is not None:
            return self.reason
        if self.state in (TaskState.LOST, TaskState.DROPPED, TaskState.GONE):
            return Reason.AGENT_REMOVED
        return Reason.SIGNALED if self.signal else Reason.EXITED


Matcher = str | Callable[[TaskSpec], bool]
"""Which tasks a script is for: a task id, a name, or a function of the description."""


class Script:
    """Outcomes by task: the first rule that matches gives the next of its outcomes, the last one for ever."""

    def __init__(self) -> None:
        self.default = Outcome()
        self._rules: list[tuple[Matcher, list[Outcome]]] = []

    def add(self, which: Matcher, outcomes: tuple[Outcome, ...]) -> None:
        """Give the tasks that match these outcomes, one a launch."""
        if not outcomes:
            raise ValueError("script: expected at least one outcome, got none")
        self._rules.append((which, list(outcomes)))

    def next(self, spec: TaskSpec) -> Outcome:
        """The outcome of this launch."""
        for which, outcomes in self._rules:
            if which(spec) if callable(which) else which in (spec.task_id, spec.name):
                return outcomes.pop(0) if len(outcomes) > 1 else outcomes[0]
        return self.default
