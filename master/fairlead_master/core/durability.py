"""What goes on while the registry cannot be written, as on a full disk, and what is refused until it can.

What needs no write goes on: tasks, offers, statuses, kills, and frameworks and agents that are known and come back. A
request that adds something to remember is refused before it changes anything. Two kinds of durable actions come all
the same: those of the steps that were taken before anybody knew, and those of time and of ends. They wait, the newest of
each subject, so they are bounded by what the core keeps; and what leaves meanwhile promises nothing they have not kept:

- A new id is not told before it is written: who was to be told one is refused instead, and what it came with is undone.
- A change or an end that is not written is not answered as done.
- An end's kills leave, for a full disk is a reason to end tasks. Should the master be killed before the end is written,
  the next one knows the framework again, without tasks and without a session, and its failover timeout ends it.
- That an agent was given up, has returned or has changed is told: the next master learns it from the agent, or by waiting.
- Allocations follow a changed weight or policy at once. Offers promise nothing about either.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final, assert_never

from fairlead_master.core import agents, events, frameworks
from fairlead_master.core.actions import (
    DURABLE,
    Action,
    AnswerOperator,
    Durable,
    ForgetAgent,
    ForgetFramework,
    StoreAgent,
    StoreFramework,
    StorePolicy,
    StoreWeight,
)
from fairlead_master.core.state import Master
from fairlead_proto.codes import CallCode, ErrorCode, RefusalCode
from fairlead_proto.framework_calls import FrameworkConnected, TeardownAsked
from fairlead_proto.framework_events import AnswerCall, EndFrameworkSession, SendOffers, WelcomeFramework
from fairlead_proto.orders import ConfirmAgent, EndAgentSession
from fairlead_proto.reports import AgentConnected

Subject = tuple[str, str]
"""What a durable action is about: a later one about the same takes its place."""

ADDING: Final = frozenset({FrameworkConnected, AgentConnected, events.WeightSet, events.PolicySet})
"""The kinds of events that may add something to remember. Ends are not among them, so that they can always be asked for."""


_NOT_WRITTEN: Final = "in force, but not written down yet, which is tried again until it is: "


@dataclass(frozen=True, slots=True)
class Released:
    """What of a step leaves although its durable actions wait, and what must happen to what was refused."""

    orders: list[Action]
    undoing: list[events.Event]


def refusal(master: Master, event: events.Event, why: str) -> Action | None:
    """The answer to an event that would add something to remember; None if it adds nothing, or is refused anyway."""
    match event:
        case FrameworkConnected():
            if frameworks.adds(master, event):
                return EndFrameworkSession(session=event.session, code=ErrorCode.LIMIT, detail=why)
        case AgentConnected():
            if agents.adds(master, event):
                return EndAgentSession(session=event.session, code=RefusalCode.LIMIT, detail=why)
        case events.WeightSet() | events.PolicySet():
            return AnswerOperator(request=event.request, code=CallCode.LIMIT, error=why)
        case _:
            pass
    return None


def subject(action: Durable) -> Subject:
    """What the action is about."""
    match action:
        case StoreFramework() | ForgetFramework():
            return "framework", action.framework_id
        case StoreAgent() | ForgetAgent():
            return "agent", action.agent_id
        case StoreWeight():
            return "weight", action.role
        case StorePolicy():
            return "policy", ""
        case _:
            assert_never(action)


def untold(durable: Iterable[Durable]) -> frozenset[Subject]:
    """The subjects of which nobody may hear before these actions are written: ids that may be new."""
    return frozenset(
        subject(action)
        for action in durable
        if isinstance(action, StoreFramework) or (isinstance(action, StoreAgent) and not action.is_away)
    )


def release(orders: Sequence[Action], unheard_of: AbstractSet[Subject], why: str) -> Released:
    """What may leave of the actions of one step, given the subjects of which nobody may hear."""
    leaving: list[Action] = []
    undoing: list[events.Event] = []
    is_behind = False
    for order in orders:
        if type(order) in DURABLE:
            is_behind = True
        elif (
            is_behind
            and isinstance(order, WelcomeFramework)
            and ("framework", order.framework_id) in unheard_of
        ):
            leaving.append(EndFrameworkSession(session=order.session, code=ErrorCode.LIMIT, detail=why))
            undoing.append(TeardownAsked(session=order.session, request_id=0))
        elif is_behind and isinstance(order, ConfirmAgent) and ("agent", order.agent_id) in unheard_of:
            leaving.append(EndAgentSession(session=order.session, code=RefusalCode.LIMIT, detail=why))
            undoing.append(events.AgentDisconnected(session=order.session, reason=why))
        else:
            leaving += _without_promises(order, unheard_of, why, is_behind=is_behind)
    return Released(leaving, undoing)


def _without_promises(
    order: Action, unheard_of: AbstractSet[Subject], why: str, *, is_behind: bool
) -> list[Action]:
    match order:
        case AnswerCall() if is_behind:
            return [replace(order, code=CallCode.LIMIT, detail=_NOT_WRITTEN + why)]
        case AnswerOperator() if is_behind:
            return [replace(order, code=CallCode.LIMIT, error=_NOT_WRITTEN + why)]
        case SendOffers():
            offers = tuple([terms for terms in order.offers if ("agent", terms.agent_id) not in unheard_of])
            return [replace(order, offers=offers)] if offers else []
        case _:
            return [order]
