"""What becomes of tasks on a virtual agent, as a test scripts it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from fairlead_proto.task_state import Reason, TaskState, is_terminal
from fairlead_proto.tasks import TaskSpec, TaskStatus, TaskUsage
from fairlead_sim.virtual_cluster.processes import Program


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

    def program(self) -> Program:
        """What the process does, as far as processes can."""
        if self.state in (TaskState.DROPPED, TaskState.ERROR):
            return Program(is_missing=True, message=self.message)
        is_unseen = self.state is TaskState.LOST
        return Program(
            duration_ms=self.duration_ms,
            exit_code=None if is_unseen or self.signal else self.exit_code,
            signal=None if is_unseen else self.signal,
            message=self.message,
            usage=self.usage,
            is_stubborn=self.ignores_sigterm,
        )

    def retold(self, status: TaskStatus) -> TaskStatus:
        """The agent's word on a task, with the end that no process of its own could have."""
        if not is_terminal(status.state) or status.state is TaskState.KILLED:
            return status
        state = self.state or status.state
        reason = self.reason or (_REASONS.get(state, status.reason) if self.state else status.reason)
        # What never ran, or is said not to have, was played by a command that is missing.
        code = None if self.program().is_missing else status.exit_code
        return replace(status, state=state, reason=reason, exit_code=code)


_REASONS: Final = {
    TaskState.DROPPED: Reason.AGENT_REMOVED,
    TaskState.GONE: Reason.AGENT_REMOVED,
    TaskState.ERROR: Reason.INVALID_TASK,
    TaskState.KILLED: Reason.KILLED_BY_OPERATOR,
}
"""Of scripted ends that do not say why; others are told with the agent's own reason."""

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
