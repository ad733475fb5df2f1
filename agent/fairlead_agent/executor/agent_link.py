"""The executor's side of the socket: at most one agent, the newest; never waits for it."""

import contextlib
import os
import select
import socket
from typing import Final

from fairlead_agent.executor.protocol import (
    Command,
    Event,
    LineBuffer,
    ProtocolError,
    decode_commands,
    encode,
)

_READ_BYTES: Final = 256 * 1024
_UNREAD_BYTES_MAX: Final = 64 * 1024 * 1024
"""Events an agent has not read, some 200,000. It is then cut off; nothing is lost, for ends are kept until forgotten."""


class AgentLink:
    """One connection. Registered with the loop's epoll under its own descriptor."""

    def __init__(self, connection: socket.socket, epoll: select.epoll) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._epoll = epoll
        self._lines = LineBuffer()
        self._unsent = bytearray()
        self._is_waiting = False
        self.is_open = True
        self.descriptor = connection.fileno()
        epoll.register(self.descriptor, select.EPOLLIN)

    def receive(self) -> list[Command]:
        """Give the commands that have come; closes the link when the agent has hung up or sends something else."""
        try:
            data = self._connection.recv(_READ_BYTES)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self.close()
            return []
        try:
            return [command for line in self._lines.feed(data) for command in decode_commands(line)]
        except ProtocolError as error:
            complain(f"agent: {error}")
            self.close()
            return []

    def send(self, events: list[Event]) -> None:
        """Send, or keep what the socket does not take now."""
        self._unsent += encode(events)
        self.flush()

    def flush(self) -> None:
        """Send what is kept, as far as the socket takes it."""
        try:
            while self._unsent:
                del self._unsent[: self._connection.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self.close()
        if len(self._unsent) > _UNREAD_BYTES_MAX:
            complain(f"agent: more than {_UNREAD_BYTES_MAX} bytes unread, cut off")
            self.close()
        if self.is_open and self._is_waiting != bool(self._unsent):
            self._is_waiting = bool(self._unsent)
            self._epoll.modify(self.descriptor, select.EPOLLIN | (select.EPOLLOUT if self._is_waiting else 0))

    def close(self) -> None:
        """Hang up; harmless when done twice."""
        if self.is_open:
            self.is_open = False
            self._connection.close()


def complain(line: str) -> None:
    """Write a line to the executor's log, which is its stderr; a full disk is no reason to stop."""
    with contextlib.suppress(OSError):
        os.write(2, f"{line}\n".encode(errors="backslashreplace"))
