"""From grants to offers, and what frameworks make of them.

The allocator decides who is offered what; this file gives each decision an id and a lease, and keeps the promise that
every unit is in exactly one of free, offered and held: each way an offer can end passes through ``_end``.

A framework or an agent that leaves may have ten thousand offers. All of them are over at once, which is one number, and end in
parts: until then what they promised is held as before, and who tries to use one is told why it is over.
"""

from collections.abc import Iterable
from itertools import islice, takewhile

from fairlead_master.core import settings as bounds
from fairlead_master.core.events import InvalidTask, OfferAccepted
from fairlead_master.core.state import Agent, Framework, Master, Offer, Task, remember, status_of
from fairlead_master.core.tasks import close_account_if_over, forward, kept_labels, shortened
from fairlead_proto.codes import CallCode, DeclineScope, Rejection
from fairlead_proto.framework_calls import OffersDeclined
from fairlead_proto.framework_events import (
    AnswerAccept,
    AnswerCall,
    LaunchAnswer,
    OfferTerms,
    RescindOffers,
    SendOffers,
)
from fairlead_proto.ids import OfferId, TaskId
from fairlead_proto.limits import RECORDS_PER_ACTION_MAX
from fairlead_proto.orders import LaunchTasks
from fairlead_proto.resources import Vector, add, fits, scale
from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import TaskSpec

USED = "it was used"
DECLINED = "it was declined"
LEASE_ENDED = "its lease ended"
AGENT_LEFT = "its agent left"
SESSION_ENDED = "its framework's session ended"
POLICY_CHANGED = "the policy changed and its agent is too full"


def next_cycle_ms(master: Master, now_ms: int) -> int | None:
    """When the next allocation cycle is due; None while there is nothing to allocate.

    One that was cut short is carried on after the same time as any other: whoever wants millions of units leaves half of the
    loop's time to others so, and 60,000 units a second are more than tasks can be launched.
    """
    if master.recovery_until_ms is not None or not master.allocator.needs_cycle:
        return None
    settings = master.settings
    window_ms = settings.busy_window_ms if master.pace.is_busy(now_ms) else settings.allocation_window_ms
    return max(now_ms, master.last_cycle_ms + window_ms)


def run_cycle(master: Master, now_ms: int) -> None:
    """Ask the allocator, and make an offer of every grant."""
    master.last_cycle_ms = now_ms
    terms: dict[int, list[OfferTerms]] = {}
    lease_ms, life = master.settings.offer_lease_ms, master.life
    granted = 0
    for grant in master.allocator.cycle(now_ms):
        granted += grant.units
        framework = master.frameworks[grant.framework_id]
        agent = master.agents[grant.agent_id]
        assert framework.session is not None, f"{grant.framework_id} was granted resources while it is away"
        master.offers_made += 1
        offer_id = OfferId(f"o{life}-{master.offers_made}")
        offer = Offer(
            offer_id=offer_id,
            number=master.offers_made,
            framework=framework,
            agent=agent,
            class_id=grant.class_id,
            unit=grant.unit,
            units=grant.units,
            expires_ms=now_ms + lease_ms,
        )
        master.offers[offer_id] = framework.offers[offer_id] = agent.offers[offer_id] = offer
        framework.offers_sent += 1
        master.note("offer", offer_id, "made")
        terms.setdefault(framework.session, []).append(
            OfferTerms(
                offer_id=offer_id,
                agent_id=agent.agent_id,
                hostname=agent.hostname,
                attributes=agent.attributes,
                class_id=grant.class_id,
                demand_version=framework.demand_version,
                unit=grant.unit,
                units=grant.units,
                lease_ms=lease_ms,
            )
        )
    master.pace.note(granted, now_ms)
    for session, offers in terms.items():
        for start in range(0, len(offers), RECORDS_PER_ACTION_MAX):
            some = tuple(offers[start : start + RECORDS_PER_ACTION_MAX])
            master.out.append(SendOffers(session=session, offers=some))


def _end(master: Master, offer: Offer, how: str) -> None:
    """The offer is over. The caller has told, or tells, the allocator what became of its units."""
    del master.offers[offer.offer_id]
    del offer.framework.offers[offer.offer_id]
    del offer.agent.offers[offer.offer_id]
    remember(master.ended_offers, offer.offer_id, how)
    master.tallies.offers_ended[how] += 1
    master.note("offer", offer.offer_id, how)


def take_back(master: Master, offer: Offer, how: str) -> None:
    """End an offer that was not used; its units are free, and wanted again."""
    _end(master, offer, how)
    master.allocator.take_back(
        offer.framework.framework_id, offer.agent.agent_id, offer.class_id, offer.unit, offer.units
    )
    close_account_if_over(master, offer.framework)


def _why_over(offer: Offer) -> str | None:
    """Why nobody may use an offer that has not ended; None if its framework may."""
    if offer.number <= offer.framework.offers_over:
        return SESSION_ENDED
    return offer.agent.offers_over_how if offer.number <= offer.agent.offers_over else None


def _rescind(master: Master, offers: Iterable[Offer], reason: str) -> None:
    """Take offers back, for this reason unless they are over for another, and tell the sessions that have them."""
    told: dict[tuple[int, str], list[OfferId]] = {}
    for offer in offers:
        how = _why_over(offer) or reason
        take_back(master, offer, how)
        if how is not SESSION_ENDED and offer.framework.session is not None:
            told.setdefault((offer.framework.session, how), []).append(offer.offer_id)
    for (session, how), offer_ids in told.items():
        master.out.append(RescindOffers(session=session, offer_ids=tuple(offer_ids), reason=how))


def leave(master: Master, holder: Framework | Agent, how: str, most: int) -> int:
    """All offers of a framework or an agent are over: so many end now, the rest in parts. Gives how many ended."""
    last = next(reversed(holder.offers.values()), None)
    if last is None or last.number <= holder.offers_over:
        return 0
    holder.offers_over = last.number
    if isinstance(holder, Agent):
        holder.offers_over_how = how
    master.leaving[holder] = None
    return _end_some(master, holder, most)


def _end_some(master: Master, holder: Framework | Agent, most: int) -> int:
    over = takewhile(lambda offer: offer.number <= holder.offers_over, holder.offers.values())
    some = list(islice(over, most))
    _rescind(master, some, SESSION_ENDED)
    if len(some) < most:
        del master.leaving[holder]
    return len(some)


def end_due(master: Master, most: int, now_ms: int) -> int:
    """End so many of the offers whose lease is over, or whose framework or agent left; gives how many."""
    most = min(most, bounds.OFFERS_ENDED_PER_STEP_MAX)
    done = _expire(master, most, now_ms)
    while master.leaving and done < most:
        done += _end_some(master, next(iter(master.leaving)), most - done)
    return done


def _expire(master: Master, most: int, now_ms: int) -> int:
    """All leases are equally long, so the oldest end first."""
    due: list[Offer] = []
    hoarders = master.hoarders
    for offer in master.offers.values():
        if offer.expires_ms > now_ms or len(due) == most:
            break
        due.append(offer)
        if _why_over(offer):
            continue
        offer.framework.offers_expired += 1
        if offer.framework.framework_id not in hoarders:
            hoarders[offer.framework.framework_id] = None
            offer.framework.unanswered += 1
    expired = [offer for offer in due if not _why_over(offer)]
    _rescind(master, due, LEASE_ENDED)
    for offer in expired:
        # Who does not answer holds others' resources for a lease. Once may be an accident; after that he is asked
        # half as often each time.
        if offer.framework.unanswered > 1:
            pause_ms = master.settings.offer_lease_ms * 2 ** min(offer.framework.unanswered - 2, 10)
            _pause(master, offer, now_ms + min(pause_ms, master.settings.unanswered_pause_max_ms))
    if len(due) < most:
        hoarders.clear()
    return len(due)


def _pause(master: Master, offer: Offer, until_ms: int) -> None:
    """Do not offer the class of an offer again for a while, on any agent."""
    master.allocator.refuse(offer.framework.framework_id, offer.class_id, None, until_ms)


def offer_accepted(master: Master, event: OfferAccepted, now_ms: int) -> None:
    """Launch what fits the offer, answer task by task, free what is left over."""
    framework = master.framework_by_session.get(event.session)
    if framework is None:
        return
    offer = _usable(master, framework, event.offer_id)
    if offer is None:
        answers = tuple(
            _answer_without_offer(master, framework, event.offer_id, task) for task in event.tasks
        )
    else:
        answers = _launch(master, framework, offer, event.tasks, now_ms)
    master.out.append(
        AnswerAccept(
            session=event.session, request_id=event.request_id, offer_id=event.offer_id, answers=answers
        )
    )
    master.tallies.launches.update(
        "LAUNCHED" if answer.rejection is None else answer.rejection.value for answer in answers
    )
    if offer is None:
        _tell_moves(master, framework, answers, now_ms)


def _usable(master: Master, framework: Framework, offer_id: OfferId) -> Offer | None:
    """The framework's offer; None if there is none. One that is over ends before its turn, so that the answer says why."""
    offer = framework.offers.get(offer_id)
    if offer is not None and _why_over(offer):
        _rescind(master, [offer], SESSION_ENDED)
        return None
    return offer


def _answer_without_offer(
    master: Master, framework: Framework, offer_id: OfferId, task: TaskSpec | InvalidTask
) -> LaunchAnswer:
    """An offer that is not there: perhaps this very call was carried out before and its answer was lost."""
    if isinstance(task, InvalidTask):
        return LaunchAnswer(task.task_id, Rejection.INVALID, task.detail)
    known = master.find_task((framework.framework_id, task.task_id))
    if known is not None and known.offer_id in (offer_id, None):
        # None: an agent brought it from before this master started, and with which offer nobody knows any more.
        return LaunchAnswer(task.task_id)
    offer = master.offers.get(offer_id)
    if offer is not None:
        return LaunchAnswer(
            task.task_id, Rejection.UNAUTHORIZED, f"offer {offer_id} was made to another framework"
        )
    how = master.ended_offers.get(offer_id)
    rejection = Rejection.AGENT_GONE if how == AGENT_LEFT else Rejection.EXPIRED
    return LaunchAnswer(
        task.task_id, rejection, f"offer {offer_id} is over: {how or 'it is not known any more'}"
    )


def _tell_moves(master: Master, framework: Framework, answers: tuple[LaunchAnswer, ...], now_ms: int) -> None:
    """Who repeats a call may have missed more than its answer: an end the master judged is told only once."""
    launched = [
        master.find_task((framework.framework_id, TaskId(a.task_id))) for a in answers if a.rejection is None
    ]
    moved = [status_of(task, now_ms) for task in launched if task and task.state is not TaskState.STAGING]
    if moved:
        forward(master, framework, moved)


def _launch(
    master: Master, framework: Framework, offer: Offer, specs: tuple[TaskSpec | InvalidTask, ...], now_ms: int
) -> tuple[LaunchAnswer, ...]:
    answers, launched = _judge(master, framework, offer, specs)
    _end(master, offer, USED)
    framework.offers_accepted += 1
    framework.unanswered = 0
    agent = offer.agent
    master.allocator.settle(
        framework.framework_id,
        agent.agent_id,
        offer.class_id,
        offer.unit,
        offer.units,
        [spec.resources for spec in launched],
    )
    if len(launched) < len(specs):
        _pause(master, offer, now_ms + master.settings.rejected_pause_ms)
    if launched:
        deadline_ms = now_ms + master.settings.staging_timeout_ms
        for spec in launched:
            _stage(master, framework, offer, spec, now_ms, deadline_ms)
        assert agent.session is not None, (
            f"offer {offer.offer_id} outlived the session of agent {agent.agent_id}"
        )
        master.out.append(
            LaunchTasks(
                session=agent.session,
                framework_id=framework.framework_id,
                tasks=tuple(launched),
            )
        )
    return tuple(answers)


def _judge(
    master: Master, framework: Framework, offer: Offer, specs: tuple[TaskSpec | InvalidTask, ...]
) -> tuple[list[LaunchAnswer], list[TaskSpec]]:
    """Take tasks in their order as long as they fit into what is left of the offer."""
    answers: list[LaunchAnswer] = []
    launched: list[TaskSpec] = []
    new_ids: set[str] = set()
    framework_id, live, finished = framework.framework_id, framework.tasks, master.finished
    room = scale(offer.unit, offer.units)
    used: Vector | None = None
    """None as long as each takes just a unit, and there is room while there are units."""
    for spec in specs:
        if isinstance(spec, InvalidTask):
            answers.append(LaunchAnswer(spec.task_id, Rejection.INVALID, spec.detail))
            continue
        task_id = spec.task_id
        if task_id in new_ids or task_id in live or (framework_id, task_id) in finished:
            detail = f"task id {task_id}: expected one that was not used before"
            answers.append(LaunchAnswer(task_id, Rejection.INVALID, detail))
            continue
        wanted = None
        if used is not None or spec.resources != offer.unit:
            used = used or scale(offer.unit, len(launched))
            wanted = add(used, spec.resources)
        if len(launched) == offer.units or (wanted is not None and not fits(wanted, room)):
            used = used or scale(offer.unit, len(launched))
            answers.append(
                LaunchAnswer(spec.task_id, Rejection.NO_FIT, _no_fit(master, offer, spec, used, room))
            )
            continue
        used = wanted
        new_ids.add(task_id)
        launched.append(spec)
        answers.append(LaunchAnswer(task_id))
    return answers, launched


def _no_fit(master: Master, offer: Offer, spec: TaskSpec, used: Vector, room: Vector) -> str:
    kinds = master.kinds
    left = tuple([a - b for a, b in zip(room, used, strict=True)])
    return (
        f"task needs {kinds.format(spec.resources)}, offer {offer.offer_id} of {offer.units} x "
        f"{kinds.format(offer.unit)} has {kinds.format(left)} left"
    )


def _stage(
    master: Master, framework: Framework, offer: Offer, spec: TaskSpec, now_ms: int, deadline_ms: int
) -> None:
    task = Task(
        framework_id=framework.framework_id,
        task_id=spec.task_id,
        role=framework.role,
        agent_id=offer.agent.agent_id,
        name=spec.name,
        command=shortened(spec.command),
        labels=kept_labels(spec.labels),
        resources=spec.resources,
        state=TaskState.STAGING,
        submitted_ms=now_ms,
        offer_id=offer.offer_id,
    )
    key = (framework.framework_id, spec.task_id)
    framework.tasks[spec.task_id] = task
    offer.agent.tasks[key] = task
    master.staging[key] = deadline_ms
    master.note("task", key, "STAGING")


def offers_declined(master: Master, event: OffersDeclined, now_ms: int) -> None:
    """Take offers back and keep what was refused from being offered again for a while."""
    framework = master.framework_by_session.get(event.session)
    if framework is None:
        return
    framework.unanswered = 0
    foreign = [offer_id for offer_id in event.offer_ids if _is_foreign(master, framework, offer_id)]
    framework.remarks = [*framework.remarks, *foreign][: bounds.IDS_PER_ANSWER_MAX]
    until_ms = now_ms + (event.ttl_ms or master.settings.decline_ttl_ms)
    for offer_id in event.offer_ids:
        offer = _usable(master, framework, offer_id)
        if offer is None:
            continue
        framework.offers_declined += 1
        take_back(master, offer, DECLINED)
        if event.scope is not DeclineScope.NOTHING:
            agent_id = offer.agent.agent_id if event.scope is DeclineScope.AGENT else None
            master.allocator.refuse(framework.framework_id, offer.class_id, agent_id, until_ms)
    if not event.is_last:
        return
    code, detail = CallCode.OK, ""
    if framework.remarks:
        code, detail = CallCode.UNAUTHORIZED, f"offers of another framework: {', '.join(framework.remarks)}"
        framework.remarks = []
    master.out.append(
        AnswerCall(session=event.session, request_id=event.request_id, code=code, detail=detail)
    )


def _is_foreign(master: Master, framework: Framework, offer_id: OfferId) -> bool:
    offer = master.offers.get(offer_id)
    return offer is not None and offer.framework is not framework
