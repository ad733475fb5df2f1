"""Codes of calls and answers: how a call ended, why a task was not launched, why a session is over. Names are those of the schema."""

from enum import Enum, unique


@unique
class CallCode(Enum):
    """How a call of a framework or an operator ended."""

    OK = "OK"
    INVALID = "INVALID"
    INFEASIBLE = "INFEASIBLE"
    UNKNOWN = "UNKNOWN"
    UNAUTHORIZED = "UNAUTHORIZED"
    LIMIT = "LIMIT"


@unique
class DeclineScope(Enum):
    """What a declined offer keeps from coming back for a time."""

    AGENT = "AGENT"
    CLASS = "CLASS"
    NOTHING = "NOTHING"


@unique
class Rejection(Enum):
    """Why a task of an accept was not launched."""

    EXPIRED = "EXPIRED"
    NO_FIT = "NO_FIT"
    INVALID = "INVALID"
    UNAUTHORIZED = "UNAUTHORIZED"
    AGENT_GONE = "AGENT_GONE"


@unique
class ErrorCode(Enum):
    """Why the master ends a framework's session."""

    INVALID = "INVALID"
    SUPERSEDED = "SUPERSEDED"
    UNKNOWN_FRAMEWORK = "UNKNOWN_FRAMEWORK"
    TOO_SLOW = "TOO_SLOW"
    OLD_EPOCH = "OLD_EPOCH"
    UNAUTHORIZED = "UNAUTHORIZED"
    LIMIT = "LIMIT"
    SHUTTING_DOWN = "SHUTTING_DOWN"


@unique
class RefusalCode(Enum):
    """Why the master refuses an agent, or ends its session."""

    INVALID = "INVALID"
    OLD_EPOCH = "OLD_EPOCH"
    SUPERSEDED = "SUPERSEDED"
    TOO_SLOW = "TOO_SLOW"
    LIMIT = "LIMIT"
