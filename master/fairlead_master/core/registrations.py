"""What an agent brings when it registers: its tasks, and the statuses nobody has acknowledged.

Agents keep the truth about their tasks; the master compares what it believes with what a registration says:
known and running goes on, unknown but of a known framework is adopted, given up or nobody's is killed, expected but
absent is LOST (or DROPPED, if the agent never spoke of it).

An agent may bring ten thousand tasks, so all this is done in parts. Until the last of them the agent has a session and
nothing is offered of it; what it says meanwhile waits behind what it brought. A session that breaks before leaves the
rest to the next registration: a task that is not settled is as it was.
"""

from collections import deque

from fairlead_master.core import tasks
from fairlead_master.core.state import Agent, AgentState, FrameworkState, Master, Registration, Task
from fairlead_proto.orders import KillTask
from fairlead_proto.reports import AgentConnected
from fairlead_proto.task_state import Reason, TaskState, can_move, is_terminal
from fairlead_proto.tasks import RunningTask, TaskStatus


def begin(master: Master, agent: Agent, event: AgentConnected, *, was_known: bool) -> None:
    """Take note of what is to be settled.

    Of an agent that nobody knew nothing is adopted. It is written down before it is told its id, so it was forgotten: its
    tasks are GONE, which is final, and others may run in their place. Or it comes from another cluster.
    """
    was_given_up = agent.state is AgentState.UNREACHABLE
    is_awaited = agent.agent_id in master.recovering
    # Adoption comes first, or a report on a task launched before this master started would be nobody's. Then the ends the
    # agent could not deliver: they explain why a task is not among the running ones.
    left: deque[RunningTask | TaskStatus | Task] = deque(event.tasks)
    left.extend(event.unacknowledged)
    left.extend(agent.tasks.values())
    agent.registration = Registration(
        left=left,
        was_known=was_known,
        may_be_called_unreachable=was_given_up or not (agent.has_registered or is_awaited),
    )
    master.registering[agent.agent_id] = agent


def settle_some(master: Master, agent: Agent, most: int, now_ms: int) -> int:
    """Settle so much of what an agent brought; gives how much that was. It is all if ``left`` is empty then."""
    registration = agent.registration
    assert registration is not None, f"agent {agent.agent_id} brought nothing that is not settled"
    left = registration.left
    done = min(most, len(left))
    reports: list[TaskStatus] = []
    for _ in range(done):
        item = left.popleft()
        if isinstance(item, TaskStatus):
            reports.append(item)
            continue
        if reports:
            tasks.take_reports(master, agent, reports, now_ms)
            reports = []
        if isinstance(item, Task):
            if item.key not in registration.reported and not is_terminal(item.state):
                _settle_absent(master, agent, item, now_ms)
        elif registration.was_known:
            if not is_terminal(item.state):
                registration.reported.add(item.key)
            _settle_reported(master, agent, item, now_ms)
        else:
            _end_unwanted(master, agent, item, Reason.AGENT_REMOVED)
    if reports:
        tasks.take_reports(master, agent, reports, now_ms)
    return done


def _settle_reported(master: Master, agent: Agent, running: RunningTask, now_ms: int) -> None:
    task = master.find_task(running.key)
    if running.framework_id not in master.frameworks:
        _end_unwanted(master, agent, running, Reason.FRAMEWORK_REMOVED)
        return
    is_over = is_terminal(running.state) or (task is not None and is_terminal(task.state))
    if is_over or (task is not None and task.agent_id != agent.agent_id):
        _end_unwanted(master, agent, running, Reason.UNKNOWN_TASK)
        return
    if task is None:
        task = _adopt(master, agent, running, now_ms)
        if agent.registration is not None and agent.registration.may_be_called_unreachable:
            _tell_returned(master, task, running.state, now_ms)
    elif task.state is TaskState.UNREACHABLE and can_move(task.state, running.state):
        _resume(master, task, running, now_ms)
    if not task.started_ms:
        task.started_ms = _started_ms(running, now_ms)
    # Any other move comes with its own status, which is unacknowledged as long as this master has not seen it.
    if task.kill_reason is not None:
        tasks.send_kill(master, task, now_ms)


def _end_unwanted(master: Master, agent: Agent, running: RunningTask, reason: Reason) -> None:
    assert agent.session is not None, "tasks are settled within a session"
    master.out.append(
        KillTask(
            session=agent.session,
            framework_id=running.framework_id,
            task_id=running.spec.task_id,
            grace_period_ms=0,
            reason=reason,
        )
    )


def _adopt(master: Master, agent: Agent, running: RunningTask, now_ms: int) -> Task:
    """A task launched before this master started."""
    framework = master.frameworks[running.framework_id]
    started_ms = _started_ms(running, now_ms)
    task = Task(
        framework_id=running.framework_id,
        task_id=running.spec.task_id,
        role=framework.role,
        agent_id=agent.agent_id,
        name=running.spec.name,
        command=tasks.shortened(running.spec.command),
        labels=tasks.kept_labels(running.spec.labels),
        resources=running.spec.resources,
        state=running.state,
        submitted_ms=started_ms or now_ms,
        started_ms=started_ms,
        sequence=running.sequence,
        state_sequence=running.sequence,
    )
    if framework.state is FrameworkState.COMPLETED:
        task.kill_reason = Reason.FRAMEWORK_REMOVED
    framework.tasks[task.task_id] = task
    agent.tasks[task.key] = task
    master.allocator.charge(task.framework_id, agent.agent_id, task.resources)
    master.note("task", task.key, task.state.value)
    return task


def _started_ms(running: RunningTask, now_ms: int) -> int:
    """When a task that an agent has began to run, by our clock; 0 if it did not, or nobody knows.

    Of one that runs and whose agent does not say since when, we know that it runs now.
    """
    has_started = running.ran_ms > 0 or running.state is TaskState.RUNNING
    return max(1, now_ms - running.ran_ms) if has_started else 0


def _resume(master: Master, task: Task, running: RunningTask, now_ms: int) -> None:
    """A task that was thought unreachable is where the agent says."""
    status = _returned(task, running.state, now_ms)
    tasks.apply(master, task, status, now_ms)
    task.state_sequence = running.sequence
    tasks.forward(master, master.frameworks[task.framework_id], [status])


def _tell_returned(master: Master, task: Task, state: TaskState, now_ms: int) -> None:
    """A reconciliation may have called the task unreachable."""
    tasks.forward(master, master.frameworks[task.framework_id], [_returned(task, state, now_ms)])


def _returned(task: Task, state: TaskState, now_ms: int) -> TaskStatus:
    return TaskStatus(
        framework_id=task.framework_id,
        task_id=task.task_id,
        agent_id=task.agent_id,
        sequence=0,
        state=state,
        reason=Reason.AGENT_RETURNED,
        message=f"agent {task.agent_id} is back with the task",
        timestamp_ms=now_ms,
    )


def _settle_absent(master: Master, agent: Agent, task: Task, now_ms: int) -> None:
    if task.state is TaskState.STAGING:
        message = f"the launch did not reach agent {agent.agent_id} before its session broke"
        tasks.conclude(master, task, TaskState.DROPPED, Reason.AGENT_DISCONNECTED, message, now_ms)
    else:
        message = f"agent {agent.agent_id} is back without the task"
        tasks.conclude(master, task, TaskState.LOST, Reason.AGENT_RESTARTED, message, now_ms)
