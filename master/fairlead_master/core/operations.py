"""What operators order: ends of tasks and frameworks, weights, the policy."""

from collections import deque
from dataclasses import replace

from fairlead_master.allocation.api import AllocationError
from fairlead_master.allocation.hierarchy import WEIGHTS_MAX
from fairlead_master.allocation.settings import check_settings
from fairlead_master.core import agents, frameworks, tasks
from fairlead_master.core import settings as bounds
from fairlead_master.core.actions import AnswerOperator, KillOutcome, StorePolicy, StoreWeight
from fairlead_master.core.events import OperatorKillAsked, OperatorTeardownAsked, PolicySet, WeightSet
from fairlead_master.core.state import FrameworkState, Master, Task
from fairlead_proto.codes import CallCode
from fairlead_proto.ids import FrameworkId, TaskId
from fairlead_proto.task_state import Reason, TaskState, is_terminal
from fairlead_proto.tasks import ATTEMPTS_LOOKED_FOR, attempt_name


def operator_kill_asked(master: Master, event: OperatorKillAsked, now_ms: int) -> None:
    """End tasks by id; each id gets its own outcome."""
    outcomes = tuple(
        _kill(master, task_id, event.framework_id, event.grace_period_ms, now_ms)
        for task_id in event.task_ids
    )
    master.out.append(AnswerOperator(request=event.request, outcomes=outcomes))


def _kill(
    master: Master, task_id: TaskId, framework_id: FrameworkId | None, grace_period_ms: int, now_ms: int
) -> KillOutcome:
    found = find_by_id(master, task_id, framework_id)
    if len(found) > 1:
        owners = ", ".join(task.framework_id for task in found[:5])
        return KillOutcome(
            task_id=task_id,
            framework_id=None,
            outcome="ambiguous",
            detail=f"frameworks {owners} have such a task",
        )
    if not found:
        return _kill_of_unlaunched(master, task_id, framework_id)
    task = found[0]
    if is_terminal(task.state):
        return _kill_later_attempt(master, task, grace_period_ms, now_ms)
    tasks.kill(master, task, Reason.KILLED_BY_OPERATOR, grace_period_ms, now_ms)
    return KillOutcome(task_id=task_id, framework_id=task.framework_id, outcome="killing")


def _kill_later_attempt(master: Master, over: Task, grace_period_ms: int, now_ms: int) -> KillOutcome:
    """End the last attempt of a task whose given attempt is over: a dictionary look an attempt there may be."""
    framework_id = over.framework_id
    framework = master.frameworks.get(framework_id)
    if framework is not None and over.state is not TaskState.FINISHED:
        names = [TaskId(attempt_name(over.task_id, number)) for number in range(ATTEMPTS_LOOKED_FOR, 1, -1)]
        for name in names:
            later = framework.tasks.get(name)
            # Ids are the framework's own: a task of another command may be called so and be no attempt of this one.
            if later is None or is_terminal(later.state) or over.command not in ((), later.command):
                continue
            tasks.kill(master, later, Reason.KILLED_BY_OPERATOR, grace_period_ms, now_ms)
            return KillOutcome(
                task_id=over.task_id,
                framework_id=framework_id,
                outcome="killing",
                detail=f"its attempt {name}",
            )
        waiting = {task_id for demand in framework.demand.values() for task_id in demand.waiting_task_ids}
        for name in names:
            if name in waiting and master.find_task((framework_id, name)) is None:
                detail = f"its attempt {name} waits in framework {framework_id}, which alone can withdraw it"
                return KillOutcome(
                    task_id=over.task_id, framework_id=framework_id, outcome="pending", detail=detail
                )
    return KillOutcome(
        task_id=over.task_id, framework_id=framework_id, outcome="already over", detail=over.state.value
    )


def _kill_of_unlaunched(master: Master, task_id: TaskId, framework_id: FrameworkId | None) -> KillOutcome:
    asked = master.frameworks.values() if framework_id is None else [master.frameworks.get(framework_id)]
    for framework in asked:
        if framework is None:
            continue
        for demand in framework.demand.values():
            if task_id in demand.waiting_task_ids:
                detail = f"it waits in framework {framework.framework_id}, which alone can withdraw it"
                return KillOutcome(
                    task_id=task_id, framework_id=framework.framework_id, outcome="pending", detail=detail
                )
    owner = master.frameworks.get(framework_id or FrameworkId(task_id.partition(":")[0]))
    if owner is None or owner.state is FrameworkState.COMPLETED:
        return KillOutcome(task_id=task_id, framework_id=framework_id, outcome="unknown")
    # A framework names some of its waiting tasks, and none that it holds back so that not too many run at once.
    name = owner.framework_id
    detail = f"it may wait in framework {name}, which alone can withdraw it; `fairlead kill --framework {name}` ends all of it"
    return KillOutcome(task_id=task_id, framework_id=framework_id, outcome="unknown", detail=detail)


def find_by_id(master: Master, task_id: TaskId, framework_id: FrameworkId | None) -> list[Task]:
    """The tasks with this id, live ones first; with a framework id at most one. At most a few are looked for."""
    if framework_id is not None:
        task = master.find_task((framework_id, task_id))
        return [task] if task is not None else []
    live = [
        task for framework in master.frameworks.values() if (task := framework.tasks.get(task_id)) is not None
    ]
    if live:
        return live
    return [task for key, task in reversed(master.finished.items()) if key[1] == task_id][:10]


def operator_teardown_asked(master: Master, event: OperatorTeardownAsked, now_ms: int) -> None:
    """End a framework and its tasks; its session, if any, learns of it when it says Hello again."""
    framework = master.frameworks.get(event.framework_id)
    if framework is None or framework.state is FrameworkState.COMPLETED:
        error = f"framework {event.framework_id}: expected one that is registered, got none by that id"
        master.out.append(AnswerOperator(request=event.request, code=CallCode.UNKNOWN, error=error))
        return
    killed = frameworks.end_by_operator(master, framework, event.detail, now_ms)
    master.out.append(AnswerOperator(request=event.request, tasks_killed=killed))


def weight_set(master: Master, event: WeightSet, _now_ms: int) -> None:
    """Give a role its weight, now and after a restart."""
    if not master.has_room_for_weight(event.role):
        error = f"weights: expected at most {WEIGHTS_MAX} roles with one, got another for {event.role}"
        master.out.append(AnswerOperator(request=event.request, code=CallCode.LIMIT, error=error))
        return
    master.weights[event.role] = event.weight
    master.allocator.set_weight(event.role, event.weight)
    master.out.append(StoreWeight(role=event.role, weight=event.weight))
    master.out.append(AnswerOperator(request=event.request))
    master.note("role", event.role, "changed")


def policy_set(master: Master, event: PolicySet, now_ms: int) -> None:
    """Allocate differently from now on; tasks stay as they are, and so do offers that the agents have room for."""
    now = master.settings.allocation
    wanted = replace(
        now,
        policy=event.policy or now.policy,
        placement=event.placement or now.placement,
        when_head_does_not_fit=event.when_head_does_not_fit or now.when_head_does_not_fit,
        demand=event.demand or now.demand,
    )
    try:
        check_settings(wanted, master.kinds)
    except AllocationError as error:
        answer = AnswerOperator(request=event.request, code=CallCode.INVALID, error=str(error))
        master.out.append(answer)
        return
    master.settings = replace(master.settings, allocation=wanted)
    master.allocator.configure(wanted, now_ms)
    master.watches_time = master.allocator.watches_time
    master.judging = deque(master.agents)
    agents.judge_in_parts(master, bounds.TASKS_PER_STEP_MAX, now_ms)
    master.out.append(
        StorePolicy(
            policy=wanted.policy,
            placement=wanted.placement,
            when_head_does_not_fit=wanted.when_head_does_not_fit,
            demand=wanted.demand,
        )
    )
    master.out.append(AnswerOperator(request=event.request))
    master.note("policy", wanted.policy, "changed")
