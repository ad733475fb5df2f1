"""FrameworkService: one task reads a framework's calls, one writes its events; neither waits for the other."""

from functools import partial
from typing import Any

import structlog

from fairlead_master import framework_wire
from fairlead_master.core import events
from fairlead_master.core.actions import Action
from fairlead_master.runner import Runner, Session
from fairlead_master.sessions import Traffic, host_of
from fairlead_proto import framework_messages
from fairlead_proto.codes import ErrorCode
from fairlead_proto.fields import InvalidFieldError, UnknownValueError
from fairlead_proto.framework_call_messages import read_hello
from fairlead_proto.framework_events import EndFrameworkSession, WelcomeFramework
from fairlead_proto.peers import Unknowns
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.v1 import framework_pb2 as pb
from fairlead_proto.v1 import framework_pb2_grpc

log = structlog.get_logger()

Context = Any
"""grpc.aio.ServicerContext of the two batch messages; the stubs make it generic, the class is not at run time."""


class FrameworkService(framework_pb2_grpc.FrameworkServiceServicer):
    """Sessions of frameworks."""

    def __init__(self, runner: Runner, kinds: ResourceKinds) -> None:
        self._runner = runner
        self._kinds = kinds
        self._sessions: set[_Session] = set()
        self.traffic = Traffic()
        self.unknowns = Unknowns(_tell_of_unknown)

    async def Connect(self, _request_iterator: object, context: Context) -> None:
        """Serve one session to its end."""
        session = _Session(self._runner, self._kinds, context, self.traffic, self.unknowns)
        self._sessions.add(session)
        try:
            await session.serve()
        finally:
            self._sessions.discard(session)

    def beat(self, now_ms: int) -> None:
        """Send a heartbeat to every session, so that silence means a broken connection."""
        event = pb.FrameworkEvent(heartbeat=pb.Heartbeat(master_time_ms=now_ms))
        for session in tuple(self._sessions):
            session.tell(event)

    def shut_down(self) -> None:
        """Tell every session to reconnect later, and end it."""
        error = pb.Error(code=pb.ERROR_CODE_SHUTTING_DOWN, detail="the master shuts down")
        for session in tuple(self._sessions):
            session.tell(pb.FrameworkEvent(error=error))
            session.outbox.close()


def _tell_of_unknown(what: str, detail: str) -> None:
    log.warning("framework.unknown_refused", what=what, detail=detail)


class _Session(Session[pb.FrameworkEvents]):
    _arm = "call"
    _first = "hello"
    _batch = pb.FrameworkCalls
    _log = log

    def _open(self, call: pb.FrameworkCall) -> events.Event:
        return read_hello(self.number, call, host_of(self._context.peer()))

    def _ended(self) -> events.Event:
        was_cut_off = self.outbox.overflown.is_set()
        self._log.info("framework.disconnected", session=self.number, was_cut_off=was_cut_off)
        return events.FrameworkDisconnected(session=self.number)

    def _end(self, *, is_slow: bool, detail: str) -> None:
        code = ErrorCode.TOO_SLOW if is_slow else ErrorCode.INVALID
        self._send([EndFrameworkSession(session=self.number, code=code, detail=detail)])

    async def _take(self, call: pb.FrameworkCall) -> None:
        try:
            read = partial(framework_wire.read_call, self.number, call, self._kinds)
            for event in await self._reading.read(call, read):
                self._runner.post(event)
        except InvalidFieldError as error:
            self._log.warning("framework.call_invalid", session=self.number, detail=str(error))
            if isinstance(error, UnknownValueError):
                self._unknowns.note(error.what, str(error))
            self.tell(framework_wire.write_invalid(call, error))

    def tell(self, event: pb.FrameworkEvent) -> None:
        """Queue one event that is not the core's."""
        self.outbox.put(pb.FrameworkEvents(epoch=self._runner.machine.master.epoch, events=[event]))

    def _send(self, orders: list[Action]) -> None:
        epoch = self._runner.machine.master.epoch
        # The runner routes only actions of this session here.
        self._write(
            framework_messages.write_events(
                orders,  # type: ignore[arg-type]
                self._kinds,
                epoch=epoch,
                peer=self._peer,
            )
        )
        for order in orders:
            if isinstance(order, WelcomeFramework):
                self._log = log.bind(framework_id=order.framework_id)
                self._log.info("framework.connected", session=self.number, role=order.role)
            elif isinstance(order, EndFrameworkSession):
                self._log.warning("framework.session_ended", code=order.code.value, detail=order.detail)
                self.outbox.close()
