"""AgentService: sessions of agents, and questions to them about files in their sandboxes."""

import asyncio
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import grpc
import structlog

from fairlead_master import sessions
from fairlead_master.agent_files import AgentAwayError, AgentFiles
from fairlead_master.core import events
from fairlead_master.core.actions import Action
from fairlead_master.output_follows import Follows
from fairlead_master.runner import Runner, Session
from fairlead_master.sessions import Outbox, Reading, Traffic, in_parts
from fairlead_proto.agent_messages import read_heartbeat, read_register, read_statuses, write_orders
from fairlead_proto.codes import RefusalCode
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.ids import AgentId, TaskKey
from fairlead_proto.orders import ConfirmAgent, EndAgentSession, LaunchTasks
from fairlead_proto.peers import FOLLOWS_OUTPUT, Unknowns
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
        self.follows = Follows(runner.machine.master, self._files_of)
        self.unknowns = Unknowns(_tell_of_unknown)

    async def Session(self, _request_iterator: object, context: Context) -> None:
        """Serve one session to its end."""
        session = _Session(self._runner, self._kinds, context, self.traffic, self.unknowns)
        session.follows = self.follows
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
        files = self._files_of(agent_id)
        if files is None:
            raise AgentAwayError(f"agent {agent_id} is not connected")
        try:
            return await asyncio.wait_for(files.ask(request), timeout_s)
        except TimeoutError:
            raise AgentAwayError(f"agent {agent_id} did not answer within {timeout_s:g} s") from None

    def _files_of(self, agent_id: AgentId) -> AgentFiles | None:
        agent = self._runner.machine.master.agents.get(agent_id)
        session = (
            self._sessions.get(agent.session) if agent is not None and agent.session is not None else None
        )
        return None if session is None else session.files

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


class _Session(Session[pb.MasterMessages]):
    _arm = "message"
    _first = "register"
    _batch = pb.AgentMessages
    _log = log
    _end_reason = "the stream ended"
    follows: Follows

    @cached_property
    def files(self) -> AgentFiles:
        """Questions to the agent about its sandboxes."""
        # Without this session, which it would keep in a circle with itself.
        return AgentFiles(self._traffic, self.follows, partial(_ask_file, self._runner, self.outbox))

    def _open(self, message: pb.AgentMessage) -> events.Event:
        self.files.is_following = FOLLOWS_OUTPUT in self._peer
        return read_register(self.number, message, self._kinds, self._unknowns)

    def _ended(self) -> events.Event:
        if self.outbox.overflown.is_set():
            self._end_reason = "its messages were not read"
        self.files.end()
        self._log.info("agent.disconnected", session=self.number, reason=self._end_reason)
        return events.AgentDisconnected(session=self.number, reason=self._end_reason)

    def _end(self, *, is_slow: bool, detail: str) -> None:
        code = RefusalCode.TOO_SLOW if is_slow else RefusalCode.INVALID
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
            case None:
                self._unknowns.note("message", "a message of a kind that this version does not know")
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
            elif isinstance(order, LaunchTasks):
                # Before the launch is written: what a task writes at once is then asked for in time.
                self.follows.launched(order.framework_id, self.files)
            elif isinstance(order, EndAgentSession):
                is_over = True
                self._log.warning("agent.session_ended", code=order.code.value, detail=order.detail)
        epoch = self._runner.machine.master.epoch
        # The runner routes only orders of this session here.
        self._write(write_orders(orders, self._kinds, epoch=epoch, peer=self._peer))  # type: ignore[arg-type]
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
