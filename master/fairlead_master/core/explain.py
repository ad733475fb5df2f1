"""Why work waits: one dominant reason from a closed list, the numbers behind it, what would help.

The allocator knows why a class of a framework that is there gets nothing; this file adds what only the master knows:
recovery, frameworks that are away, offers that are out, and work that does not wait at all.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from fairlead_master.allocation.api import RoleRow
from fairlead_master.allocation.explain import WaitReason
from fairlead_master.allocation.parts import Parts
from fairlead_master.core import operations
from fairlead_master.core.state import Framework, FrameworkState, Master, Task
from fairlead_proto.ids import ClassId, FrameworkId, TaskId
from fairlead_proto.task_state import is_terminal
from fairlead_proto.tasks import DemandClass

_PRECEDENCE = (
    WaitReason.INFEASIBLE,
    WaitReason.CONSTRAINT,
    WaitReason.NO_AGENTS,
    WaitReason.FROZEN,
    WaitReason.RESERVED,
    WaitReason.DECLINED,
    WaitReason.FULL,
    WaitReason.FRAGMENTED,
    WaitReason.SHARE,
    WaitReason.OFFERED,
)
"""Of several waiting classes of one framework, the reason nearest the front speaks for it: the most final first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The answer to "why does this wait?"."""

    identity: str
    kind: str
    """``task``, ``class`` or ``framework``."""
    reason: WaitReason
    sentence: str
    evidence: Mapping[str, str]
    next_steps: tuple[str, ...] = ()


def explain(master: Master, identity: str) -> Parts[Explanation | None]:
    """Explain a framework, a class (``framework/class``) or a task, by id; None if nothing has this id."""
    framework = master.frameworks.get(FrameworkId(identity)) or master.completed_frameworks.get(
        FrameworkId(identity)
    )
    if framework is not None:
        return (yield from _framework(master, framework))
    owner, slash, rest = identity.partition("/")
    if slash and (framework := master.frameworks.get(FrameworkId(owner))) is not None:
        if (demand := framework.demand.get(ClassId(rest))) is not None:
            return (yield from _class(master, framework, demand, identity, "class", []))
        return (yield from _task(master, TaskId(rest), framework.framework_id, identity))
    return (yield from _task(master, TaskId(identity), None, identity))


def _task(
    master: Master, task_id: TaskId, framework_id: FrameworkId | None, identity: str
) -> Parts[Explanation | None]:
    found = operations.find_by_id(master, task_id, framework_id)
    if found:
        return _launched(found[0], identity)
    for framework in list(master.frameworks.values()):
        yield
        if framework_id not in (None, framework.framework_id):
            continue
        for demand in framework.demand.values():
            if task_id in demand.waiting_task_ids:
                return (yield from _class(master, framework, demand, identity, "task", []))
    return None


def _launched(task: Task, identity: str) -> Explanation:
    where = f"on agent {task.agent_id}"
    if is_terminal(task.state):
        sentence = f"it is over: {task.state.value} {where}" + (f", {task.message}" if task.message else "")
    else:
        sentence = f"it does not wait: {task.state.value} {where}"
    evidence = {"state": task.state.value, "agent_id": task.agent_id, "reason": task.reason.value}
    return Explanation(
        identity=identity, kind="task", reason=WaitReason.NOT_WAITING, sentence=sentence, evidence=evidence
    )


def _framework(master: Master, framework: Framework) -> Parts[Explanation]:
    identity = framework.framework_id
    if framework.state is FrameworkState.COMPLETED:
        return _not_waiting(identity, "the framework is over")
    if framework.state is FrameworkState.DISCONNECTED:
        return _away(framework, identity, "framework")
    verdicts, rows = [], list[RoleRow]()
    for demand in list(framework.demand.values()):
        if demand.units:
            name = f"{identity}/{demand.class_id}"
            verdicts.append((yield from _class(master, framework, demand, name, "framework", rows)))
            yield
    waiting = [verdict for verdict in verdicts if verdict.reason is not WaitReason.NOT_WAITING]
    if not waiting:
        return _not_waiting(identity, "the framework wants nothing beyond what it has")
    return min(waiting, key=lambda verdict: _rank(verdict.reason))


def _rank(reason: WaitReason) -> int:
    return _PRECEDENCE.index(reason) if reason in _PRECEDENCE else -1


def _not_waiting(identity: str, sentence: str) -> Explanation:
    return Explanation(
        identity=identity, kind="framework", reason=WaitReason.NOT_WAITING, sentence=sentence, evidence={}
    )


def _away(framework: Framework, identity: str, kind: str) -> Explanation:
    return Explanation(
        identity=identity,
        kind=kind,
        reason=WaitReason.FRAMEWORK_AWAY,
        sentence=f"framework {framework.framework_id} is disconnected; what it wanted is sent again when it is back",
        evidence={"framework": framework.framework_id, "tasks_running": str(len(framework.tasks))},
        next_steps=(
            "start the framework again under the same id",
            f"or end it: fairlead kill --framework {framework.framework_id}",
        ),
    )


def _class(
    master: Master,
    framework: Framework,
    demand: DemandClass,
    identity: str,
    kind: str,
    rows: list[RoleRow],
) -> Parts[Explanation]:
    if master.frameworks.get(framework.framework_id) is not framework:
        return _not_waiting(identity, "the framework is over")
    if framework.session is None:
        return _away(framework, identity, kind)
    if master.recovery_until_ms is not None:
        awaited = len(master.recovering)
        return Explanation(
            identity=identity,
            kind=kind,
            reason=WaitReason.RECOVERING,
            sentence=f"the master has restarted and waits for {awaited} agent{'s' * (awaited != 1)} it knows",
            evidence={"agents": ", ".join(list(master.recovering)[:10])},
            next_steps=("wait a few seconds", "start the missing agents"),
        )
    diagnosis = yield from master.allocator.diagnose(framework.framework_id, demand.class_id, rows)
    return Explanation(
        identity=identity,
        kind=kind,
        reason=diagnosis.reason,
        sentence=diagnosis.sentence,
        evidence=diagnosis.evidence,
        next_steps=tuple(diagnosis.next_steps),
    )
