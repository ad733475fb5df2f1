"""AgentService: sessions of agents, and questions to them about files in their sandboxes."""

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any

import grpc
import structlog

from fairlead_master import sessions
from fairlead_master.agent_files import AgentAwayError, AgentFiles
from fairlead_master.core import events
from fairlead_master.core.actions import Action
from fairlead_master.runner import Runner
from fairlead_master.sessions import Outbox, Reading, Traffic, converse, in_parts
from fairlead_proto.agent_messages import read_heartbeat, read_register, read_statuses, write_orders
from fairlead_proto.codes import RefusalCode
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.ids import AgentId, TaskKey
from fairlead_proto.orders import ConfirmAgent, EndAgentSession
from fairlead_proto.peers import Unknowns
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_proto.tasks import TaskStatus, TaskUsage
from fairlead_proto.v1 import agent_pb2 as pb
from fairlead_proto.v1 import agent_pb2_grpc

log = structlog.get_logger()

Context = Any
"""grpc.aio.ServicerContext of the two batch messages; the stubs make it generic, the class is not at run time."""


class AgentService(agent_pb2_grpc.AgentServiceServicer):
    """Sessions of agents."""

    def __init__(self, runner: Runner, kinds: ResourceKinds) -> None:
        self._runner = runner
        self._kinds = kinds
        self._sessions: dict[int, _Session] = {}
        self._files: dict[str, AgentFiles] = {}
        """By the token of their streams."""
        self.traffic = Traffic()
        self.unknowns = Unknowns(_tell_of_unknown)

    async def Session(self, _request_iterator: object, context: Context) -> None:
        """Serve one session to its end."""
        session = _Session(self._runner, self._kinds, context, self.traffic, self.unknowns)
        self._sessions[session.number] = session
        self._files[session.files.token] = session.files
        try:
            await session.serve()
        finally:
            del self._sessions[session.number]
            del self._files[session.files.token]

    async def Files(self, _request_iterator: object, context: Context) -> None:
        """Serve the stream of files of one session to its end."""
        try:
            async with asyncio.timeout(sessions.FIRST_MESSAGE_SECONDS_MAX):
                first = await context.read()
        except TimeoutError:
            first = grpc.aio.EOF
        files = self._files.get(await _token_of(first)) if isinstance(first, bytes) else None
        if files is None:
            detail = "token: expected the files_token of a session that stands"
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, detail)
            return
        await files.serve(context)

    async def ask_file(self, agent_id: AgentId, request: pb.FileRequest, timeout_s: float) -> pb.FileChunk:
        """Ask an agent about a sandbox.

        Raises:
            AgentAwayError: it is not connected, leaves, or does not answer in time.
        """
        agent = self._runner.machine.master.agents.get(agent_id)
        session = (
            self._sessions.get(agent.session) if agent is not None and agent.session is not None else None
        )
        if session is None:
            raise AgentAwayError(f"agent {agent_id} is not connected")
        try:
            return await asyncio.wait_for(session.files.ask(request), timeout_s)
        except TimeoutError:
            raise AgentAwayError(f"agent {agent_id} did not answer within {timeout_s:g} s") from None

    def shut_down(self) -> None:
        """End every session; agents keep their tasks and look for a master."""
        for session in tuple(self._sessions.values()):
            session.outbox.close()


async def _token_of(first: bytes) -> str:
    """Of the session that a stream of files belongs to; empty if that is not said."""
    try:
        return (await Reading().parse(first, pb.FileAnswers)).token
    except InvalidFieldError:
        return ""


def _tell_of_unknown(what: str, detail: str) -> None:
    log.warning("agent.unknown_skipped", what=what, detail=detail)


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
        self._log = log
        self.outbox: Outbox[pb.MasterMessages] = Outbox(traffic)
        self._traffic = traffic
        self._unknowns = unknowns
        self._reading = Reading()
        # Without this session, which it would keep in a circle with itself.
        self.files = AgentFiles(traffic, partial(_ask_file, runner, self.outbox))
        self._end_reason = "the stream ended"
        self.number = runner.open_session(self._send)
        self._unopened = asyncio.get_running_loop().call_later(
            sessions.FIRST_MESSAGE_SECONDS_MAX, self._end_unopened
        )

    async def serve(self) -> None:
        try:
            await converse(self._context, self.outbox, self._read)
        finally:
            self._unopened.cancel()
            if self.outbox.overflown.is_set():
                self._end_reason = "its messages were not read"
            self.files.end()
            self._runner.close_session(self.number)
            self._runner.post(events.AgentDisconnected(session=self.number, reason=self._end_reason))
            self._log.info("agent.disconnected", session=self.number, reason=self._end_reason)

    async def _read(self) -> None:
        try:
            is_first = True
            while (raw := await self._context.read()) is not grpc.aio.EOF:
                self._traffic.received_bytes += len(raw)
                batch = await self._reading.parse(raw, pb.AgentMessages)
                for message in batch.messages:
                    if message.WhichOneof("message") is None:
                        # Before the registration too: an agent that never registers is ended by the timer.
                        self._unknowns.note("message", "a message of a kind that this version does not know")
                    elif is_first:
                        self._unopened.cancel()
                        read = partial(read_register, self.number, message, self._kinds, self._unknowns)
                        self._runner.post(await self._reading.read(message, read))
                        is_first = False
                    else:
                        await self._take(message)
        except InvalidFieldError as error:
            self._refuse(RefusalCode.INVALID, str(error))

    def _end_unopened(self) -> None:
        expected = f"register within {sessions.FIRST_MESSAGE_SECONDS_MAX:g} s"
        self._refuse(RefusalCode.TOO_SLOW, f"first message: expected {expected}, got nothing")

    def _refuse(self, code: RefusalCode, detail: str) -> None:
        self._send([EndAgentSession(session=self.number, code=code, detail=detail)])

    async def _take(self, message: pb.AgentMessage) -> None:
        match message.WhichOneof("message"):
            case "statuses":
                read = partial(read_statuses, message.statuses, self._unknowns)
                for event in status_events(self.number, await self._reading.read(message, read)):
                    self._runner.post(event)
            case "heartbeat":
                read_beat = partial(read_heartbeat, message.heartbeat, self._kinds)
                used, tasks = await self._reading.read(message, read_beat)
                for beat in beat_events(self.number, used, tasks):
                    self._runner.post(beat)
            case "file_chunk":
                self.files.take(message.file_chunk)
            case "goodbye":
                self._end_reason = message.goodbye.reason[:200]
            case which:
                expected = "statuses, heartbeat, file_chunk or goodbye"
                raise InvalidFieldError(f"message: expected {expected}, got {which}")

    def _send(self, orders: list[Action]) -> None:
        is_over = False
        for index, order in enumerate(orders):
            if isinstance(order, ConfirmAgent):
                orders[index] = replace(order, files_token=self.files.token)
                self._log = log.bind(agent_id=order.agent_id)
                self._log.info("agent.registered", session=self.number)
            elif isinstance(order, EndAgentSession):
                is_over = True
                self._log.warning("agent.session_ended", code=order.code.value, detail=order.detail)
        epoch = self._runner.machine.master.epoch
        # The runner routes only orders of this session here.
        for batch in write_orders(orders, self._kinds, epoch=epoch):  # type: ignore[arg-type]
            self.outbox.put(batch)
        if is_over:
            self.outbox.close()


def _ask_file(runner: Runner, outbox: Outbox[pb.MasterMessages], request: pb.FileRequest) -> None:
    epoch = runner.machine.master.epoch
    outbox.put(pb.MasterMessages(epoch=epoch, messages=[pb.MasterMessage(file_request=request)]))


def status_events(session: int, statuses: tuple[TaskStatus, ...]) -> list[events.StatusesReported]:
    """Reports of an agent, so many an event."""
    return [events.StatusesReported(session=session, statuses=part) for part in in_parts(statuses)]


def beat_events(
    session: int, used: Vector, tasks: tuple[tuple[TaskKey, TaskUsage], ...]
) -> list[events.AgentBeat]:
    """A sign of life with what is used, so many tasks an event."""
    *parts, last = in_parts(tasks)
    return [
        *(events.AgentBeat(session=session, used=used, tasks=part, is_last=False) for part in parts),
        events.AgentBeat(session=session, used=used, tasks=last),
    ]
