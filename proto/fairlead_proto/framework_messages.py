"""The border between the messages of a framework's session and their values: what a master tells a framework.

As in ``convert``, what is read is checked, and what is written is trusted. A welcome, offers and statuses are read by
``fairlead_sdk.wire``, as values of its own.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from fairlead_proto import columns, convert, enum_numbers
from fairlead_proto.batches import Batches, joined
from fairlead_proto.codes import CallCode, ErrorCode, Rejection
from fairlead_proto.fields import read_count, read_id, read_time
from fairlead_proto.framework_events import (
    AnnounceAgentGone,
    AnswerAccept,
    AnswerCall,
    EndFrameworkSession,
    FinishReconciliation,
    ForwardStatuses,
    Heartbeat,
    InfeasibleClass,
    LaunchAnswer,
    OfferTerms,
    RescindOffers,
    SendOffers,
    ToFramework,
    WelcomeFramework,
)
from fairlead_proto.ids import AgentId, ClassId, OfferId
from fairlead_proto.peers import COLUMNS, NONE, Capabilities, Unknowns
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.v1 import framework_pb2 as pb

_ATTRIBUTES_OF_OUR_OWN: Final = ("hostname", "agent_id")


def write_events(
    orders: Sequence[ToFramework | Heartbeat],
    kinds: ResourceKinds,
    *,
    epoch: int,
    peer: Capabilities = NONE,
) -> list[pb.FrameworkEvents]:
    """The batches for one framework of what it is told, in order; statuses that follow one another share an event."""
    batches = Batches(lambda: pb.FrameworkEvents(epoch=epoch), attrgetter("events"))
    for action in joined(orders, ForwardStatuses, "statuses"):
        _fill_event(batches.message(), action, kinds, epoch, in_columns=COLUMNS in peer)
    return batches.made


# Parts are written where they belong: giving a message to another one's constructor copies it.


def _fill_event(
    event: pb.FrameworkEvent,
    action: ToFramework | Heartbeat,
    kinds: ResourceKinds,
    epoch: int,
    *,
    in_columns: bool,
) -> None:
    match action:
        case ForwardStatuses():
            columns.fill_statuses(event.statuses, action.statuses, in_columns=in_columns)
        case AnswerAccept():
            _fill_accept_result(event.accept_result, action, in_columns=in_columns)
        case SendOffers():
            offers = event.offers.offers
            for terms in action.offers:
                _fill_offer(offers.add(), terms, kinds)
        case AnswerCall():
            _fill_result(event.result, action, kinds)
        case RescindOffers():
            event.rescind.offer_ids.extend(action.offer_ids)
            event.rescind.reason = action.reason
        case WelcomeFramework():
            _fill_welcome(event.welcome, action, kinds, epoch)
        case FinishReconciliation():
            event.reconcile_done.request_id = action.request_id
            event.reconcile_done.recovering_agent_ids.extend(action.recovering_agent_ids)
        case AnnounceAgentGone():
            event.agent_gone.agent_id = action.agent_id
            event.agent_gone.reason = action.reason
        case EndFrameworkSession():
            event.error.code = enum_numbers.ERROR_CODES.of[action.code]
            event.error.detail = action.detail
        case Heartbeat():
            event.heartbeat.master_time_ms = action.master_time_ms


def _fill_welcome(welcome: pb.Welcome, action: WelcomeFramework, kinds: ResourceKinds, epoch: int) -> None:
    welcome.framework_id = action.framework_id
    welcome.epoch = epoch
    welcome.heartbeat_interval_ms = action.heartbeat_interval_ms
    welcome.failover_timeout_ms = action.failover_timeout_ms
    welcome.role = action.role
    welcome.custom_resources.extend(kinds.custom)
    convert.introduce(welcome)


def _fill_accept_result(result: pb.AcceptResult, action: AnswerAccept, *, in_columns: bool) -> None:
    result.request_id = action.request_id
    result.offer_id = action.offer_id
    if in_columns and all(answer.rejection is None for answer in action.answers):
        result.launched.extend([answer.task_id for answer in action.answers])
        return
    items = result.items
    for answer in action.answers:
        item = items.add()
        item.task_id = answer.task_id
        if answer.rejection is None:
            item.launched = True
        else:
            item.rejection = enum_numbers.REJECTIONS.of[answer.rejection]
            item.detail = answer.detail


def _fill_offer(offer: pb.Offer, terms: OfferTerms, kinds: ResourceKinds) -> None:
    offer.offer_id = terms.offer_id
    offer.agent_id = terms.agent_id
    offer.hostname = terms.hostname
    offer.class_id = terms.class_id
    offer.demand_version = terms.demand_version
    offer.units = terms.units
    convert.fill_resources(offer.unit, terms.unit, kinds)
    offer.lease_ms = terms.lease_ms
    for name, value in terms.attributes.items():
        if name not in _ATTRIBUTES_OF_OUR_OWN:
            offer.attributes[name] = value


def _fill_result(result: pb.CallResult, action: AnswerCall, kinds: ResourceKinds) -> None:
    result.request_id = action.request_id
    result.code = enum_numbers.CALL_CODES.of[action.code]
    result.detail = action.detail
    result.demand_version = action.demand_version
    for verdict in action.infeasible:
        message = result.infeasible.add()
        message.class_id = verdict.class_id
        message.best_agent_id = verdict.best_agent_id or ""
        convert.fill_resources(message.missing, kinds.vector(verdict.missing), kinds)
        message.detail = verdict.detail


def read_event(
    field: str, which: str, event: pb.FrameworkEvent, unknowns: Unknowns
) -> (
    AnswerCall
    | AnswerAccept
    | RescindOffers
    | FinishReconciliation
    | AnnounceAgentGone
    | EndFrameworkSession
    | Heartbeat
):
    """An event of a kind that both sides hold alike.

    Of a no for a reason that only a newer master knows the no is kept.

    Raises:
        InvalidFieldError: a field cannot be used.
    """
    match which:
        case "result":
            return _read_result(f"{field}.result", event.result, unknowns)
        case "accept_result":
            return _read_accept_result(f"{field}.accept_result", event.accept_result, unknowns)
        case "rescind":
            offer_ids = [read_id(f"{field}.rescind.offer_ids", text) for text in event.rescind.offer_ids]
            return RescindOffers(offer_ids=tuple(map(OfferId, offer_ids)), reason=event.rescind.reason)
        case "reconcile_done":
            done = event.reconcile_done
            agent_ids = [read_id(f"{field}.recovering_agent_ids", text) for text in done.recovering_agent_ids]
            return FinishReconciliation(
                request_id=done.request_id, recovering_agent_ids=tuple(map(AgentId, agent_ids))
            )
        case "agent_gone":
            agent_id = read_id(f"{field}.agent_gone.agent_id", event.agent_gone.agent_id)
            return AnnounceAgentGone(agent_id=AgentId(agent_id), reason=event.agent_gone.reason)
        case "error":
            return _read_error(f"{field}.error", event.error, unknowns)
        case "heartbeat":
            return Heartbeat(read_time(f"{field}.heartbeat.master_time_ms", event.heartbeat.master_time_ms))
        case _:
            raise AssertionError(f"{field}: expected an event of the schema, got {which}")


def _read_error(field: str, message: pb.Error, unknowns: Unknowns) -> EndFrameworkSession:
    # Whatever it is, another stream may mend it; a session that is over for good is refused by the next one too.
    again = ErrorCode.SHUTTING_DOWN
    code = enum_numbers.read_code(
        f"{field}.code", enum_numbers.ERROR_CODES, message.code, unknowns, otherwise=again
    )
    return EndFrameworkSession(code=code, detail=message.detail)


def _read_result(field: str, message: pb.CallResult, unknowns: Unknowns) -> AnswerCall:
    # Only OK is a yes.
    no = CallCode.INVALID
    return AnswerCall(
        request_id=message.request_id,
        code=enum_numbers.read_code(
            f"{field}.code", enum_numbers.CALL_CODES, message.code, unknowns, otherwise=no
        ),
        detail=message.detail,
        demand_version=read_count(f"{field}.demand_version", message.demand_version),
        infeasible=tuple(_read_infeasible(f"{field}.infeasible", verdict) for verdict in message.infeasible),
    )


def _read_infeasible(field: str, message: pb.Infeasible) -> InfeasibleClass:
    return InfeasibleClass(
        class_id=ClassId(message.class_id),
        best_agent_id=AgentId(message.best_agent_id) if message.best_agent_id else None,
        missing=convert.read_named(f"{field}.missing", message.missing),
        detail=message.detail,
    )


def _read_accept_result(field: str, message: pb.AcceptResult, unknowns: Unknowns) -> AnswerAccept:
    answers = (
        *map(LaunchAnswer, message.launched),
        *[
            LaunchAnswer(
                task_id=item.task_id,
                rejection=None
                if item.launched
                # It may fit another offer.
                else enum_numbers.read_code(
                    f"{field}.items.rejection",
                    enum_numbers.REJECTIONS,
                    item.rejection,
                    unknowns,
                    otherwise=Rejection.EXPIRED,
                ),
                detail=item.detail,
            )
            for item in message.items
        ],
    )
    return AnswerAccept(request_id=message.request_id, offer_id=OfferId(message.offer_id), answers=answers)
