"""Calls to a master that has no room for a connection just now."""

from typing import Any

import grpc
import pytest

from fairlead_cli import connection
from fairlead_cli.connection import Connection
from fairlead_cli.errors import Unreachable


class _Failure(grpc.RpcError):
    def __init__(self, details: str) -> None:
        super().__init__(details)
        self._details = details

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE

    def details(self) -> str:
        return self._details


def a_method(*failures: str) -> Any:
    """A call that fails in these ways, one after the other, and then answers."""
    left = list(failures)

    def method(_request: object, *, timeout: float) -> str:
        if left:
            raise _Failure(left.pop(0))
        return "answer"

    return method


@pytest.fixture
def master(monkeypatch: pytest.MonkeyPatch) -> Connection:
    monkeypatch.setattr(connection, "TURNED_AWAY_PAUSE_S", 0)
    return Connection("127.0.0.1:1", grpc.insecure_channel("127.0.0.1:1"))


def test_a_master_that_turns_a_connection_away_is_asked_again(master: Connection) -> None:
    method = a_method("Socket closed", "recvmsg:Connection reset by peer")

    assert master.call(method, None) == "answer"


def test_a_master_that_is_not_there_is_not_waited_for(master: Connection) -> None:
    method = a_method("failed to connect to all addresses; last error: Connection refused")

    with pytest.raises(Unreachable):
        master.call(method, None)
    assert master.call(method, None) == "answer"


def test_a_master_that_keeps_turning_away_is_given_up_when_the_time_is_over(master: Connection) -> None:
    with pytest.raises(Unreachable):
        master.call(a_method("Socket closed"), None, timeout_s=0)
