"""Calls to the master: one channel, a deadline on every call, and every failure turned into an expected error."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import grpc

from fairlead_cli.errors import AgentAway, Failed, Invalid, Refused, Unreachable
from fairlead_proto.limits import CLIENT_IDLE_MS, MESSAGE_BYTES_MAX
from fairlead_proto.v1.files_pb2_grpc import FilesServiceStub
from fairlead_proto.v1.operator_pb2_grpc import OperatorServiceStub

DEADLINE_S: Final = 10.0
"""Of one call. A master answers in milliseconds; a person gives up after some ten seconds, a host that swaps needs them."""

CHANNEL_OPTIONS: Final = (
    # A proxy for the web is no way to a cluster, and grpc would take it from the environment even for loopback.
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.client_idle_timeout_ms", CLIENT_IDLE_MS),
    # Who waits for a master that restarts decides when to try; grpc's own pauses grow to minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)

_REFUSALS: Final = (
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.OUT_OF_RANGE,
)
TURNED_AWAY_PAUSE_S: Final = 0.5
"""Between two attempts. A master that has as many connections as it may closes idle ones after five seconds."""

_TURNED_AWAY: Final = ("Socket closed", "Connection reset by peer")
# The network has no code for "who answered": these are the master's own words for an agent that is not there.
_AGENT_AWAY: Final = ("agent ", "the agent ")
_INVALID: Final = grpc.StatusCode.INVALID_ARGUMENT
_AWAY: Final = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNIMPLEMENTED)


class Connection:
    """The services of one master."""

    def __init__(self, address: str, channel: grpc.Channel) -> None:
        self.address = address
        self.channel = channel
        self.operator = OperatorServiceStub(channel)
        self.files = FilesServiceStub(channel)

    def call(self, method: Callable[..., Any], request: Any, *, timeout_s: float = DEADLINE_S) -> Any:
        """The answer to one unary call. A master that has no room for a connection is asked again until the time is over.

        Raises:
            Unreachable: nobody answers there, or not a master.
            Refused: the master said no, e.g. to an unknown id.
            Invalid: the master could not use a value.
            Failed: the master failed at it.
        """
        deadline_s = time.monotonic() + timeout_s
        while True:
            try:
                return method(request, timeout=deadline_s - time.monotonic())
            except grpc.RpcError as error:
                if not _was_turned_away(error) or time.monotonic() + TURNED_AWAY_PAUSE_S >= deadline_s:
                    raise as_expected(error, self.address) from error
            time.sleep(TURNED_AWAY_PAUSE_S)


@contextmanager
def connected(address: str) -> Iterator[Connection]:
    """A connection for as long as the context; nothing is sent before the first call."""
    with grpc.insecure_channel(address, options=CHANNEL_OPTIONS) as channel:
        yield Connection(address, channel)


def _was_turned_away(error: grpc.RpcError) -> bool:
    """Whether somebody listens there and closed the connection before a word was said."""
    details = error.details() or ""
    return error.code() is grpc.StatusCode.UNAVAILABLE and any(word in details for word in _TURNED_AWAY)


def as_expected(error: grpc.RpcError, address: str) -> Exception:
    """The expected error that a failed call at ``address`` amounts to."""
    code, details = error.code(), error.details() or ""
    if code is grpc.StatusCode.UNAVAILABLE and details.startswith(_AGENT_AWAY):
        return AgentAway(details)
    if code in _AWAY:
        return Unreachable(address, _network_cause(code, details))
    if code is _INVALID:
        return Invalid(details)
    if code in _REFUSALS:
        return Refused(details)
    return Failed(f"the master at {address} failed: {code.name}: {details}")


def _network_cause(code: grpc.StatusCode, details: str) -> str:
    """The last part of grpc's chain of causes, without its error number."""
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return "no answer in time"
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return "what answers there is no Fairlead master of this version"
    return details.rpartition(": ")[2].partition(" (")[0].rstrip("])") or code.name.lower()
