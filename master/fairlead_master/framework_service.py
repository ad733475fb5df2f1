"""FrameworkService: one task reads a framework's calls, one writes its events; neither waits for the other."""

import asyncio
from functools import partial
from typing import Any

import grpc
import structlog

from fairlead_master import framework_wire, sessions
from fairlead_master.core import actions, events
from fairlead_master.core.actions import Action, EndFrameworkSession, WelcomeFramework
from fairlead_master.runner import Runner
from fairlead_master.sessions import Outbox, Reading, Traffic, converse, host_of
from fairlead_proto.codes import ErrorCode
from fairlead_proto.fields import InvalidFieldError, UnknownValueError
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


class _Session:
    def __init__(
        self,
        runner: Runner,
        kinds: ResourceKinds,
        context: Context,
        traffic: Traffic,
        unknowns: Unknowns,
    ) -> None:
        self._runner = runner
        self._kinds = kinds
        self._context = context
        self._host = host_of(context.peer())
        self._log = log
        self.outbox: Outbox[pb.FrameworkEvents] = Outbox(traffic)
        self._traffic = traffic
        self._unknowns = unknowns
        self._reading = Reading()
        self.number = runner.open_session(self._send)
        self._unopened = asyncio.get_running_loop().call_later(
            sessions.FIRST_MESSAGE_SECONDS_MAX, self._end_unopened
        )

    async def serve(self) -> None:
        try:
            await converse(self._context, self.outbox, self._read)
        finally:
            self._unopened.cancel()
            self._runner.close_session(self.number)
            self._runner.post(events.FrameworkDisconnected(session=self.number))
            was_cut_off = self.outbox.overflown.is_set()
            self._log.info("framework.disconnected", session=self.number, was_cut_off=was_cut_off)

    async def _read(self) -> None:
        """Read until the peer ends."""
        try:
            is_first = True
            while (raw := await self._context.read()) is not grpc.aio.EOF:
                self._traffic.received_bytes += len(raw)
                message = await self._reading.parse(raw, pb.FrameworkCalls)
                for call in message.calls:
                    # An unknown call is answered, before the Hello too: a framework that never says it is ended by the timer.
                    if is_first and call.WhichOneof("call") is not None:
                        self._unopened.cancel()
                        self._runner.post(framework_wire.read_hello(self.number, call, self._host))
                        is_first = False
                    else:
                        await self._take(call)
        except InvalidFieldError as error:
            self._end(ErrorCode.INVALID, str(error))

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
        master = self._runner.machine.master
        batches = framework_wire.write_actions(
            orders,  # type: ignore[arg-type]  # the runner routes only actions of this session here
            self._kinds,
            epoch=master.epoch,
        )
        for batch in batches:
            self.outbox.put(batch)
        for order in orders:
            if isinstance(order, WelcomeFramework):
                self._log = log.bind(framework_id=order.framework_id)
                self._log.info("framework.connected", session=self.number, role=order.role)
            elif isinstance(order, EndFrameworkSession):
                self._log.warning("framework.session_ended", code=order.code.value, detail=order.detail)
                self.outbox.close()

    def _end_unopened(self) -> None:
        expected = f"hello within {sessions.FIRST_MESSAGE_SECONDS_MAX:g} s"
        self._end(ErrorCode.TOO_SLOW, f"first call: expected {expected}, got nothing")

    def _end(self, code: ErrorCode, detail: str) -> None:
        self._send([actions.EndFrameworkSession(session=self.number, code=code, detail=detail)])
