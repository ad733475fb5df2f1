"""What a refusal of the master means: an error for the application, or a reason to try again."""

from dataclasses import dataclass, field
from typing import Final

from fairlead_proto.codes import CallCode, ErrorCode
from fairlead_proto.framework_events import AnswerCall, EndFrameworkSession, InfeasibleClass
from fairlead_sdk.errors import FairleadError, FrameworkExpired, Infeasible, Refused, Superseded

_AGAIN: Final = frozenset({ErrorCode.TOO_SLOW, ErrorCode.OLD_EPOCH, ErrorCode.SHUTTING_DOWN})
"""A new stream mends these: we read faster now, the newer master takes the address, the next one starts."""


def session_failure(error: EndFrameworkSession) -> FairleadError | None:
    """The error that ends the session for good; None if another stream may mend it."""
    if error.code in _AGAIN:
        return None
    if error.code is ErrorCode.SUPERSEDED:
        return Superseded(error.detail or "a newer session holds this framework id")
    if error.code is ErrorCode.UNKNOWN_FRAMEWORK:
        return FrameworkExpired(error.detail or "the framework id is unknown to the master")
    return Refused(error.code.value, error.detail)


def call_failure(result: AnswerCall) -> Refused | None:
    """The error of an answer that says no; None if it says yes."""
    if result.code is CallCode.OK:
        return None
    if result.infeasible:
        return infeasible_error(result.infeasible[0])
    return Refused(result.code.value, result.detail)


def infeasible_error(item: InfeasibleClass) -> Infeasible:
    """The error of one demand class no agent can hold."""
    missing = dict(item.missing)
    detail = (
        item.detail
        or f"no agent is large enough; nearest is {item.best_agent_id or 'none'}, missing {missing}"
    )
    return Infeasible(detail, class_id=item.class_id, best_agent=item.best_agent_id or "", missing=missing)


@dataclass(slots=True)
class Refusals:
    """Since when each class, once accepted, is refused as infeasible; and which were ever accepted."""

    proven: dict[str, None] = field(default_factory=dict)
    since_ms: dict[str, int] = field(default_factory=dict)
