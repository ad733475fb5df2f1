"""What happens to tasks after their launch: reports, ends, kills, staging deadlines.

Every move of a task goes through ``apply`` and so through the one transition table. Reports come from outside and may
be late, repeated or about tasks nobody knows; those are answered, not trusted.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from fairlead_master.core import measurements
from fairlead_master.core import settings as bounds
from fairlead_master.core.state import Agent, Framework, FrameworkState, Master, Task
from fairlead_proto.framework_calls import StatusesAcknowledged
from fairlead_proto.framework_events import ForwardStatuses
from fairlead_proto.ids import AgentId, FrameworkId, TaskKey
from fairlead_proto.limits import RECORDS_PER_ACTION_MAX
from fairlead_proto.orders import AcknowledgeStatuses, KillTask
from fairlead_proto.resources import Vector
from fairlead_proto.task_state import TERMINAL, Reason, TaskState, can_move, is_terminal
from fairlead_proto.tasks import TaskStatus

_COMMAND_WORDS_KEPT = 16
_WORD_LENGTH_KEPT = 256
_LABELS_LENGTH_KEPT = 1024

_WORDS: Final = {state: state.value for state in TaskState}
"""Looked up, as an enum finds the value of a member by calling a function of Python."""


def shortened(command: tuple[str, ...]) -> tuple[str, ...]:
    """The part of a command that is kept for listings; the agent got all of it."""
    if len(command) <= _COMMAND_WORDS_KEPT and sum(map(len, command)) <= _WORD_LENGTH_KEPT:
        return command
    return tuple(word[:_WORD_LENGTH_KEPT] for word in command[:_COMMAND_WORDS_KEPT])


def kept_labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    """The labels that are kept for listings, as many as fit into a KiB; the agent got all of them."""
    if not labels or sum(map(len, labels)) + sum(map(len, labels.values())) <= _LABELS_LENGTH_KEPT:
        return labels
    kept = {}
    room = _LABELS_LENGTH_KEPT
    for name, value in labels.items():
        room -= len(name) + len(value)
        if room < 0:
            break
        kept[name] = value
    return kept


class _Freed:
    """What tasks of one agent that end in one event give back: each framework's books are opened once for all of them.

    Nothing between the reports of an event reads those books.
    """

    def __init__(self, agent_id: AgentId) -> None:
        self._agent_id = agent_id
        self.tasks: dict[tuple[FrameworkId, Vector], int] = {}
        """How many of each framework and size are over and held something."""
        self.measured: dict[FrameworkId, Framework] = {}
        """Whose measured use is another."""

    def settle(self, master: Master) -> None:
        """Write it into the books."""
        for (framework_id, resources), count in self.tasks.items():
            master.allocator.release(framework_id, self._agent_id, resources, count)
        for framework_id, framework in self.measured.items():
            master.allocator.observe(framework_id, framework.used, framework.measured_held)
        self.tasks.clear()
        self.measured.clear()


def take_reports(master: Master, agent: Agent, statuses: Iterable[TaskStatus], now_ms: int) -> None:
    """Move tasks as their agent says, forward what is news, acknowledge what nobody waits for."""
    forwards: dict[FrameworkId, list[TaskStatus]] = {}
    acknowledged: list[tuple[TaskKey, int]] = []
    agent_id = agent.agent_id
    freed = _Freed(agent_id)
    for status in statuses:
        key = (status.framework_id, status.task_id)
        framework = master.frameworks.get(key[0])
        task = framework.tasks.get(key[1]) if framework is not None else None
        if task is None:
            task = master.finished.get(key)
        # Each task has one owner, and only the owner is believed.
        is_foreign = task is not None and task.agent_id != agent_id
        if framework is None or is_foreign:
            if status.state not in TERMINAL:
                reason = Reason.UNKNOWN_TASK if is_foreign else Reason.FRAMEWORK_REMOVED
                _kill_on(master, agent, key, reason)
            is_news = False
        elif task is None:
            task = _take_unknown(master, agent, framework, status, now_ms)
            is_news = task is not None
        else:
            is_news = _take_report(master, agent, task, key, status, now_ms, freed)
        if (
            framework is None
            or is_foreign
            or framework.state is FrameworkState.COMPLETED
            or (task is not None and status.sequence <= task.acknowledged)
        ):
            # Nobody else will acknowledge it.
            acknowledged.append((key, status.sequence))
        elif is_news:
            forwards.setdefault(key[0], []).append(status)
    freed.settle(master)
    if acknowledged and agent.session is not None:
        master.out.append(AcknowledgeStatuses(session=agent.session, items=tuple(acknowledged)))
    for framework_id, items in forwards.items():
        forward(master, master.frameworks[framework_id], items)


def _take_unknown(
    master: Master, agent: Agent, framework: Framework, status: TaskStatus, now_ms: int
) -> Task | None:
    """The memory of a task that ended unknown to this master; None if it has not ended, which is no news."""
    if not is_terminal(status.state):
        # Launched by nobody this master knows of; the registration is where running tasks are adopted.
        _kill_on(master, agent, status.key, Reason.UNKNOWN_TASK)
        return None
    return _remember_unknown(master, agent, framework, status, now_ms)


def _take_report(
    master: Master, agent: Agent, task: Task, key: TaskKey, status: TaskStatus, now_ms: int, freed: _Freed
) -> bool:
    """Whether the framework should hear of it."""
    if status.sequence <= task.sequence:
        # Repeated, or overtaken. A repeat that is not acknowledged yet means that its forward may have been lost.
        return status.sequence > task.acknowledged and status.sequence == task.sequence
    if task.state in TERMINAL:
        return _after_the_end(master, agent, task, status)
    task.sequence = status.sequence
    if status.state is not task.state:
        if not can_move(task.state, status.state):
            # Only a state before the end can be overtaken, and nobody needs to hear of it any more.
            task.acknowledged = status.sequence
            return False
        _move(master, task, key, status, now_ms, freed)
    return True


def _after_the_end(master: Master, agent: Agent, task: Task, status: TaskStatus) -> bool:
    """A report on a task that was given up (LOST, DROPPED, GONE): it may not live on, and the end stands."""
    task.sequence = status.sequence
    task.acknowledged = status.sequence
    if not is_terminal(status.state):
        _kill_on(master, agent, task.key, Reason.UNKNOWN_TASK)
    return False


def _kill_on(master: Master, agent: Agent, key: TaskKey, reason: Reason) -> None:
    if agent.session is not None:
        master.out.append(
            KillTask(
                session=agent.session, framework_id=key[0], task_id=key[1], grace_period_ms=0, reason=reason
            )
        )


def _remember_unknown(
    master: Master, agent: Agent, framework: Framework, status: TaskStatus, now_ms: int
) -> Task:
    """A task that ended while no master watched: its framework still has to hear of it, and nobody says what it was."""
    task = Task(
        framework_id=status.framework_id,
        task_id=status.task_id,
        role=framework.role,
        agent_id=agent.agent_id,
        name=status.task_id,
        command=(),
        labels={},
        resources=(),
        state=status.state,
        submitted_ms=0,
        sequence=status.sequence,
        finished_ms=_ended_ms(agent, status, now_ms),
    )
    if not agent.has_registered:
        # Once: later it can only be one that the bounded history has forgotten, told again until it is acknowledged.
        framework.tasks_finished += 1
        master.tasks_ended += 1
    _copy_outcome(task, status)
    _to_history(master, status.key, task)
    return task


def _ended_ms(agent: Agent, status: TaskStatus, now_ms: int) -> int:
    """When a task ended, as its agent says, by this master's clock; now if the agent does not say."""
    if not status.timestamp_ms:
        return now_ms
    return max(1, min(now_ms, status.timestamp_ms - agent.clock_skew_ms))


def _copy_outcome(task: Task, status: TaskStatus) -> None:
    task.state = status.state
    task.state_sequence = status.sequence
    task.reason = status.reason
    task.message = status.message
    task.exit_code = status.exit_code
    task.signal = status.signal
    if status.usage is not None:
        task.usage = status.usage


def apply(master: Master, task: Task, status: TaskStatus, now_ms: int) -> None:
    """Move a task to the state of a status; the table must allow it."""
    assert can_move(task.state, status.state), (
        f"{task.key}: {task.state.value} -> {status.state.value} is no move"
    )
    freed = _Freed(task.agent_id)
    _move(master, task, task.key, status, now_ms, freed)
    freed.settle(master)


def _move(master: Master, task: Task, key: TaskKey, status: TaskStatus, now_ms: int, freed: _Freed) -> None:
    if task.state is TaskState.STAGING:
        master.staging.pop(key, None)
    was_held = task.is_held
    _copy_outcome(task, status)
    if status.state in TERMINAL:
        task.finished_ms = now_ms
        framework = master.frameworks.get(key[0])
        if framework is not None and (task.measured is not None or status.usage is not None):
            has_last_word = status.usage is not None
            if measurements.ended(master, framework, task, now_ms, has_last_word=has_last_word):
                freed.measured[framework.framework_id] = framework
        _drop(master, key, task, framework, freed, was_held=was_held)
        _to_history(master, key, task)
    elif status.state is TaskState.RUNNING and not task.started_ms:
        task.started_ms = now_ms
    if task.is_held != was_held:
        _count(master, task)
    word = _WORDS[status.state]
    master.tallies.moves[word] += 1
    master.note("task", key, word)


def _count(master: Master, task: Task) -> None:
    """Resources nobody can reach count for nobody."""
    if task.is_held:
        master.allocator.charge(task.framework_id, task.agent_id, task.resources)
    elif not is_terminal(task.state):
        master.allocator.release(task.framework_id, task.agent_id, task.resources)


def _drop(
    master: Master, key: TaskKey, task: Task, framework: Framework | None, freed: _Freed, *, was_held: bool
) -> None:
    """Take a task out of the books; what it held is free."""
    agent = master.agents.get(task.agent_id)
    if agent is not None and agent.tasks.pop(key, None) is not None and was_held:
        freed.tasks[task.framework_id, task.resources] = (
            freed.tasks.get((task.framework_id, task.resources), 0) + 1
        )
    if framework is not None and framework.tasks.pop(task.task_id, None) is not None:
        framework.tasks_finished += 1
        master.tasks_ended += 1
        if framework.state is FrameworkState.COMPLETED:
            freed.settle(master)
            close_account_if_over(master, framework)
    if master.killing:
        master.killing.pop(key, None)


def close_account_if_over(master: Master, framework: Framework) -> None:
    """Forget a framework that is over once its last task and its last offer have ended."""
    if framework.state is not FrameworkState.COMPLETED or framework.tasks or framework.offers:
        return
    master.allocator.remove_framework(framework.framework_id)
    del master.frameworks[framework.framework_id]
    master.completed_frameworks[framework.framework_id] = framework
    if len(master.completed_frameworks) > bounds.COMPLETED_FRAMEWORKS_KEPT:
        master.completed_frameworks.popitem(last=False)


def _to_history(master: Master, key: TaskKey, task: Task) -> None:
    master.finished[key] = task
    if len(master.finished) > bounds.FINISHED_TASKS_KEPT:
        master.finished.popitem(last=False)


def conclude(
    master: Master,
    task: Task,
    state: TaskState,
    reason: Reason,
    message: str,
    now_ms: int,
    *,
    tell: bool = True,
) -> None:
    """Move a task by the master's own judgement and tell its framework."""
    status = TaskStatus(
        framework_id=task.framework_id,
        task_id=task.task_id,
        agent_id=task.agent_id,
        sequence=0,
        state=state,
        reason=reason,
        message=message,
        timestamp_ms=now_ms,
    )
    apply(master, task, status, now_ms)
    framework = master.frameworks.get(task.framework_id)
    if tell and framework is not None:
        forward(master, framework, [status])


def forward(master: Master, framework: Framework, statuses: list[TaskStatus]) -> None:
    """Send statuses to a framework that is there; one that is away asks when it is back."""
    session = framework.session
    if session is None:
        return
    while len(statuses) > RECORDS_PER_ACTION_MAX:
        some, statuses = statuses[:RECORDS_PER_ACTION_MAX], statuses[RECORDS_PER_ACTION_MAX:]
        master.out.append(ForwardStatuses(session=session, statuses=tuple(some)))
    master.out.append(ForwardStatuses(session=session, statuses=tuple(statuses)))


def statuses_acknowledged(master: Master, event: StatusesAcknowledged, _now_ms: int) -> None:
    """Pass acknowledgements on to the agents that wait for them."""
    framework = master.framework_by_session.get(event.session)
    if framework is None:
        return
    by_agent: dict[int, list[tuple[TaskKey, int]]] = {}
    framework_id, live = framework.framework_id, framework.tasks
    for task_id, sequence, agent_id in event.items:
        key = (framework_id, task_id)
        task = live.get(task_id) or master.finished.get(key)
        if task is not None:
            agent_id = task.agent_id  # noqa: PLW2901 - who ran it is known better here
            if sequence > task.acknowledged:
                task.acknowledged = min(sequence, task.sequence)
        agent = master.agents.get(agent_id)
        if agent is not None and agent.session is not None and sequence > 0:
            by_agent.setdefault(agent.session, []).append((key, sequence))
    for session, items in by_agent.items():
        master.out.append(AcknowledgeStatuses(session=session, items=tuple(items)))


def kill(master: Master, task: Task, reason: Reason, grace_period_ms: int, now_ms: int) -> None:
    """Ask for a task's end; asked again until it has ended."""
    if task.kill_reason is None:
        task.kill_reason = reason
    task.kill_grace_ms = grace_period_ms
    send_kill(master, task, now_ms)


def send_kill(master: Master, task: Task, now_ms: int) -> None:
    """Send the kill of a task if its agent is there, and note when to send it again."""
    master.killing[task.key] = now_ms + master.settings.kill_retry_ms
    master.killing.move_to_end(task.key)
    agent = master.agents.get(task.agent_id)
    if agent is not None and agent.session is not None and task.kill_reason is not None:
        master.out.append(
            KillTask(
                session=agent.session,
                framework_id=task.framework_id,
                task_id=task.task_id,
                grace_period_ms=task.kill_grace_ms,
                reason=task.kill_reason,
            )
        )


def end_overdue(master: Master, most: int, now_ms: int) -> int:
    """Give up launches no agent spoke of, and repeat kills without effect: so many together, gives how many."""
    staging = _due(master.staging, most, now_ms)
    for key in staging:
        _staging_overdue(master, key, now_ms)
    killing = _due(master.killing, most - len(staging), now_ms)
    for key in killing:
        task = master.find_task(key)
        if task is None or is_terminal(task.state):
            del master.killing[key]
        else:
            send_kill(master, task, now_ms)
    return len(staging) + len(killing)


def _due(deadlines: dict[TaskKey, int], most: int, now_ms: int) -> list[TaskKey]:
    due: list[TaskKey] = []
    for key, deadline_ms in deadlines.items():
        if deadline_ms > now_ms or len(due) == most:
            break
        due.append(key)
    return due


def _staging_overdue(master: Master, key: TaskKey, now_ms: int) -> None:
    del master.staging[key]
    task = master.find_task(key)
    if task is None or task.state is not TaskState.STAGING:
        return
    agent = master.agents[task.agent_id]
    if agent.session is None or agent.registration is not None:
        # It is away: its registration, or its timeout, says what became of the task.
        return
    _kill_on(master, agent, key, Reason.STAGING_TIMEOUT)
    message = (
        f"agent {agent.agent_id} did not confirm the launch within {master.settings.staging_timeout_ms} ms"
    )
    conclude(master, task, TaskState.DROPPED, Reason.STAGING_TIMEOUT, message, now_ms)


def free_of(agent: Agent) -> Vector:
    """What an agent's tasks leave of its total; negative where they exceed it."""
    held = [task.resources for task in agent.tasks.values()]
    return tuple([total - sum(places) for total, *places in zip(agent.total, *held, strict=True)])
