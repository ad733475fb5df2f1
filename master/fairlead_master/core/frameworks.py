"""Frameworks: who is there, what they want, and when they are over.

A framework that loses its session keeps its tasks until its failover timeout; its demand and its offers go at once,
because nobody is there to use them, and come back with the demand it sends when it returns. Of frameworks that are away
without tasks so many are kept and no more (``peers``).
"""

from collections import deque
from dataclasses import replace

from fairlead_master.allocation.weights import Weight
from fairlead_master.core import offers, tasks
from fairlead_master.core import settings as bounds
from fairlead_master.core.actions import ForgetFramework, StoreFramework, StoreWeight
from fairlead_master.core.events import DemandSet, FrameworkDisconnected
from fairlead_master.core.state import Framework, FrameworkState, Master
from fairlead_proto.codes import CallCode, ErrorCode
from fairlead_proto.framework_calls import FrameworkConnected, KillAsked, TeardownAsked
from fairlead_proto.framework_events import AnswerCall, EndFrameworkSession, InfeasibleClass, WelcomeFramework
from fairlead_proto.ids import FrameworkId
from fairlead_proto.task_state import Reason, is_terminal
from fairlead_proto.tasks import DemandClass

_IDS_MAX = bounds.IDS_PER_ANSWER_MAX


def framework_connected(master: Master, event: FrameworkConnected, now_ms: int) -> None:
    """Admit a new framework, or give a known one its new session."""
    refusal = _refusal(master, event)
    if refusal is not None:
        master.out.append(EndFrameworkSession(session=event.session, code=refusal[0], detail=refusal[1]))
        return
    if event.framework_id is None:
        framework = _admit(master, event, now_ms)
    else:
        framework = master.frameworks[event.framework_id]
        _leave_session(master, framework, now_ms, superseded=True)
        master.peers.come_back(framework.peer, framework.framework_id)
        master.peers.dismiss(framework.peer)
        master.peers.admit(event.peer)
        framework.peer = event.peer
    framework.session = event.session
    framework.state = FrameworkState.CONNECTED
    framework.away_until_ms = None
    master.frameworks_away.pop(framework.framework_id, None)
    master.failover_deadlines.drop(framework.framework_id)
    master.framework_by_session[event.session] = framework
    framework.version = event.version
    _adopt_weight(master, event)
    master.out.append(
        WelcomeFramework(
            session=event.session,
            framework_id=framework.framework_id,
            role=framework.role,
            failover_timeout_ms=framework.failover_timeout_ms,
            heartbeat_interval_ms=master.settings.heartbeat_interval_ms,
        )
    )
    master.note("framework", framework.framework_id, framework.state.value)


def adds(master: Master, event: FrameworkConnected) -> bool:
    """Whether the event, stepped now, would have something written down."""
    return _refusal(master, event) is None and (event.framework_id is None or _brings_weight(master, event))


def _refusal(master: Master, event: FrameworkConnected) -> tuple[ErrorCode, str] | None:
    if event.last_epoch > master.epoch:
        return ErrorCode.OLD_EPOCH, f"this master has epoch {master.epoch}, you have seen {event.last_epoch}"
    if event.framework_id is None:
        if len(master.frameworks) >= bounds.FRAMEWORKS_MAX:
            detail = f"frameworks: expected at most {bounds.FRAMEWORKS_MAX}, got another: tear down those that are over"
            return ErrorCode.LIMIT, detail
        refusal = master.peers.frameworks_refusal(event.peer)
        return (ErrorCode.LIMIT, refusal) if refusal else None
    framework = master.frameworks.get(event.framework_id)
    if framework is None or framework.state is FrameworkState.COMPLETED:
        over = framework is not None or event.framework_id in master.completed_frameworks
        how = "is over" if over else "is not known here, or is over"
        return (
            ErrorCode.UNKNOWN_FRAMEWORK,
            f"framework {event.framework_id} {how}; start a new one without an id",
        )
    if framework.principal != event.principal:
        return ErrorCode.UNAUTHORIZED, f"framework {event.framework_id} belongs to another principal"
    if framework.role != event.role:
        return ErrorCode.INVALID, f"role: expected {framework.role} as before, got {event.role}"
    return None


def _admit(master: Master, event: FrameworkConnected, now_ms: int) -> Framework:
    master.frameworks_made += 1
    timeout_ms = event.failover_timeout_ms or master.settings.failover_timeout_ms
    framework = Framework(
        framework_id=FrameworkId(f"f{master.life}-{master.frameworks_made}"),
        name=event.name,
        role=event.role,
        principal=event.principal,
        failover_timeout_ms=min(timeout_ms, master.settings.failover_timeout_max_ms),
        registered_ms=now_ms,
        peer=event.peer,
    )
    master.frameworks[framework.framework_id] = framework
    master.peers.admit(framework.peer)
    master.allocator.add_framework(framework.framework_id, framework.role)
    master.out.append(
        StoreFramework(
            framework_id=framework.framework_id,
            name=framework.name,
            role=framework.role,
            principal=framework.principal,
            failover_timeout_ms=framework.failover_timeout_ms,
        )
    )
    return framework


def _adopt_weight(master: Master, event: FrameworkConnected) -> None:
    """A framework may bring a weight for a role that has none; an operator's word is not overridden."""
    if event.weight is None or not _brings_weight(master, event):
        return
    weight = Weight(event.weight)
    master.weights[event.role] = weight
    master.allocator.set_weight(event.role, weight)
    master.out.append(StoreWeight(role=event.role, weight=weight))
    master.note("role", event.role, "changed")


def _brings_weight(master: Master, event: FrameworkConnected) -> bool:
    is_new = event.weight is not None and event.role not in master.weights
    return is_new and master.has_room_for_weight(event.role)


def _leave_session(master: Master, framework: Framework, now_ms: int, *, superseded: bool) -> None:
    """Whatever hung on the old session goes: its demand and its offers."""
    if framework.session is not None:
        del master.framework_by_session[framework.session]
        if superseded:
            master.out.append(
                EndFrameworkSession(
                    session=framework.session,
                    code=ErrorCode.SUPERSEDED,
                    detail=f"a newer session took over framework {framework.framework_id}",
                )
            )
        framework.session = None
    framework.demand = {}
    framework.demand_version = 0
    framework.remarks = []
    master.reconciling.pop(framework.framework_id, None)
    _set_demand_bytes(master, framework, 0)
    master.allocator.set_demand(framework.framework_id, (), now_ms)
    # After its demand, which would want each unit of an offer again.
    offers.leave(master, framework, offers.SESSION_ENDED, bounds.OFFERS_ENDED_PER_STEP_MAX)


def framework_disconnected(master: Master, event: FrameworkDisconnected, now_ms: int) -> None:
    """Start the failover timeout."""
    framework = master.framework_by_session.get(event.session)
    if framework is None:
        return
    _leave_session(master, framework, now_ms, superseded=False)
    framework.state = FrameworkState.DISCONNECTED
    framework.away_until_ms = now_ms + framework.failover_timeout_ms
    master.frameworks_away[framework.framework_id] = framework
    master.failover_deadlines.set(framework.framework_id, framework.away_until_ms)
    master.peers.leave(framework.peer, framework.framework_id)
    master.note("framework", framework.framework_id, framework.state.value)
    _end_one_too_many(master, framework.peer, now_ms)


def _end_one_too_many(master: Master, peer: str, now_ms: int) -> None:
    """If too many are away, end the one that has been longest and has no tasks, should there be one."""
    candidates = master.peers.away_too_many(peer, len(master.frameworks_away))
    if not candidates:
        return
    is_anybody_unheard = master.registering or any(
        not agent.has_registered for agent in master.agents_away.values()
    )
    for framework_id in candidates:
        framework = master.frameworks[framework_id]
        if not framework.tasks and not (framework.is_remembered and is_anybody_unheard):
            remove(master, framework, now_ms)
            return


def end_overdue(master: Master, most: int, now_ms: int) -> int:
    """Remove frameworks that stayed away too long, with their tasks: so many together, gives how many."""
    ended = 0
    while ended < most:
        first = master.failover_deadlines.first()
        if first is None or first[0] > now_ms:
            break
        ended += 1 + remove(master, master.frameworks[first[1]], now_ms)
    return ended


def remove(master: Master, framework: Framework, now_ms: int) -> int:
    """End a framework and its tasks; gives the number of tasks asked to end.

    Its account stays until the last of them, and of its offers, has ended, because what they hold is held.
    """
    _leave_session(master, framework, now_ms, superseded=False)
    master.peers.come_back(framework.peer, framework.framework_id)
    master.peers.dismiss(framework.peer)
    framework.state = FrameworkState.COMPLETED
    master.frameworks_away.pop(framework.framework_id, None)
    master.failover_deadlines.drop(framework.framework_id)
    live = len(framework.tasks)
    master.ending[framework.framework_id] = deque(framework.tasks.values())
    _end_some(master, framework.framework_id, bounds.TASKS_PER_STEP_MAX, now_ms)
    master.out.append(ForgetFramework(framework_id=framework.framework_id))
    master.note("framework", framework.framework_id, framework.state.value)
    tasks.close_account_if_over(master, framework)
    return live


def end_in_parts(master: Master, most: int, now_ms: int) -> int:
    """Ask for the end of so many tasks of frameworks that are over; gives how many were looked at."""
    done = 0
    while master.ending and done < most:
        done += _end_some(master, next(iter(master.ending)), most - done, now_ms)
    return done


def _end_some(master: Master, framework_id: FrameworkId, most: int, now_ms: int) -> int:
    left = master.ending[framework_id]
    done = min(most, len(left))
    for _ in range(done):
        task = left.popleft()
        if not is_terminal(task.state):
            tasks.kill(master, task, Reason.FRAMEWORK_REMOVED, 0, now_ms)
    if not left:
        del master.ending[framework_id]
    return done


def end_by_operator(master: Master, framework: Framework, why: str, now_ms: int) -> int:
    """End a framework from outside: its session is closed, having been told why, and its id never works again."""
    if framework.session is not None:
        how = f": {why}" if why else " by an operator"
        detail = f"framework {framework.framework_id} was ended{how}"
        master.out.append(
            EndFrameworkSession(session=framework.session, code=ErrorCode.UNKNOWN_FRAMEWORK, detail=detail)
        )
    return remove(master, framework, now_ms)


def demand_set(master: Master, event: DemandSet, now_ms: int) -> None:
    """Replace what a framework wants, unless some class can never be had: then nothing changes."""
    framework = master.framework_by_session.get(event.session)
    if framework is None:
        return
    code, detail = CallCode.OK, ""
    infeasible: tuple[InfeasibleClass, ...] = ()
    if event.version <= framework.demand_version:
        code = CallCode.INVALID
        detail = f"version: expected above {framework.demand_version}, got {event.version}"
    else:
        classes = tuple([_in_quanta(master, demand) for demand in event.classes])
        infeasible = _find_infeasible(master, classes)
        if infeasible:
            code, detail = CallCode.INFEASIBLE, infeasible[0].detail
        elif refusal := master.peers.demand_refusal(
            framework.peer, event.cost_bytes - framework.demand_bytes
        ):
            code, detail = CallCode.LIMIT, refusal
        else:
            _set_demand_bytes(master, framework, event.cost_bytes)
            framework.demand_version = event.version
            framework.demand = {demand.class_id: demand for demand in classes}
            framework.demand_since_ms = now_ms
            master.allocator.set_demand(framework.framework_id, classes, now_ms, lift=event.lift_declines)
            master.note("framework", framework.framework_id, "demand")
    master.out.append(
        AnswerCall(
            session=event.session,
            request_id=event.request_id,
            code=code,
            detail=detail,
            demand_version=framework.demand_version,
            infeasible=infeasible,
        )
    )


def _set_demand_bytes(master: Master, framework: Framework, cost_bytes: int) -> None:
    master.peers.change_demand(framework.peer, cost_bytes - framework.demand_bytes)
    framework.demand_bytes = cost_bytes


def _in_quanta(master: Master, demand: DemandClass) -> DemandClass:
    """The class itself, or one of quanta where the framework did not say what its tasks need."""
    if demand.is_declared:
        return demand
    settings = master.settings
    quantum = {"cpus": settings.quantum_cpus_milli, "mem": settings.quantum_mem_bytes}
    return replace(demand, unit=master.kinds.vector(quantum))


def _find_infeasible(master: Master, classes: tuple[DemandClass, ...]) -> tuple[InfeasibleClass, ...]:
    """Classes no agent could ever hold, as far as that is found out with so many looks."""
    counters, found = master.allocator.counters, []
    most = counters.agents_asked + bounds.AGENTS_ASKED_MAX
    for demand in classes:
        verdict = _infeasible(master, demand, most)
        if verdict is not None:
            found.append(verdict)
        if counters.agents_asked >= most:
            break
    return tuple(found)


def _infeasible(master: Master, demand: DemandClass, asked_max: int) -> InfeasibleClass | None:
    verdict = master.allocator.feasibility(demand.unit, demand.constraints, asked_max)
    if verdict is None:
        return None
    unit = master.kinds.format(demand.unit)
    if verdict.best_agent_id is None:
        where = " and ".join(map(str, demand.constraints))
        where = where if len(where) <= bounds.DETAIL_LENGTH_MAX else f"{where[: bounds.DETAIL_LENGTH_MAX]}..."
        detail = f"class {demand.class_id}: no registered agent meets {where}"
    else:
        detail = (
            f"class {demand.class_id} needs {unit}: no registered agent is large enough; the nearest, "
            f"{verdict.best_agent_id}, lacks {master.kinds.format(verdict.missing)}"
        )
    return InfeasibleClass(
        class_id=demand.class_id,
        best_agent_id=verdict.best_agent_id,
        missing=master.kinds.as_dict(verdict.missing),
        detail=detail,
    )


def kill_asked(master: Master, event: KillAsked, now_ms: int) -> None:
    """End tasks of the framework; ids it does not have are named in the answer."""
    framework = master.framework_by_session.get(event.session)
    if framework is None:
        return
    unknown = framework.remarks
    for task_id in event.task_ids:
        task = framework.tasks.get(task_id)
        if task is not None:
            tasks.kill(master, task, Reason.KILLED_BY_FRAMEWORK, event.grace_period_ms, now_ms)
        elif (framework.framework_id, task_id) not in master.finished and len(unknown) < _IDS_MAX:
            unknown.append(task_id)
    if not event.is_last:
        return
    framework.remarks = []
    code = CallCode.UNKNOWN if unknown else CallCode.OK
    detail = f"tasks not known: {', '.join(unknown)}" if unknown else ""
    master.out.append(
        AnswerCall(session=event.session, request_id=event.request_id, code=code, detail=detail)
    )


def teardown_asked(master: Master, event: TeardownAsked, now_ms: int) -> None:
    """End the framework; its session gets its answer once that is written down, and is closed by the framework."""
    framework = master.framework_by_session.get(event.session)
    if framework is None:
        return
    remove(master, framework, now_ms)
    master.out.append(AnswerCall(session=event.session, request_id=event.request_id, code=CallCode.OK))
