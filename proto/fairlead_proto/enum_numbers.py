"""The numbers that our enums have in the schema: one table for each, for whoever reads or writes one."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, Generic, TypeVar

from fairlead_proto.codes import CallCode, DeclineScope, ErrorCode, RefusalCode, Rejection
from fairlead_proto.fields import refusal
from fairlead_proto.peers import Unknowns
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import Operator
from fairlead_proto.v1 import agent_pb2, framework_pb2, types_pb2

Member = TypeVar("Member", bound=Enum)


class Numbers(Generic[Member]):
    """The numbers that the members of an enum have in the schema, where their names begin with a prefix."""

    def __init__(self, schema: Any, prefix: str, members: type[Member]) -> None:
        self.by_number: Final = {
            number: members[name.removeprefix(prefix)] for name, number in schema.items() if number
        }
        """Without the number of what was not set."""
        self.of: Final[Mapping[Member, Any]] = {member: number for number, member in self.by_number.items()}
        """Of any type, since the stubs type numbers of enums as their own."""


STATES: Final = Numbers(types_pb2.TaskState, "TASK_STATE_", TaskState)
REASONS: Final = Numbers(types_pb2.Reason, "REASON_", Reason)
OPERATORS: Final = Numbers(types_pb2.Constraint.Operator, "OPERATOR_", Operator)
DECLINE_SCOPES: Final = Numbers(framework_pb2.Decline.Scope, "SCOPE_", DeclineScope)
CALL_CODES: Final = Numbers(framework_pb2.CallCode, "CALL_CODE_", CallCode)
REJECTIONS: Final = Numbers(framework_pb2.Rejection, "REJECTION_", Rejection)
ERROR_CODES: Final = Numbers(framework_pb2.ErrorCode, "ERROR_CODE_", ErrorCode)
REFUSAL_CODES: Final = Numbers(agent_pb2.RefusalCode, "REFUSAL_CODE_", RefusalCode)


def read_code(
    field: str, codes: Numbers[Member], number: int, unknowns: Unknowns, *, otherwise: Member
) -> Member:
    """A code of an answer, or ``otherwise`` in place of one that only a newer peer knows."""
    code = codes.by_number.get(number)
    if code is not None:
        return code
    error = refusal(field, f"1 to {max(codes.by_number)}", number)
    if number == 0:
        raise error
    unknowns.note("code", str(error))
    return otherwise
