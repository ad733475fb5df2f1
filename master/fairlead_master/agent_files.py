"""Questions to one agent about files in its sandboxes, and the stream that their answers and followed output come by."""

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from fairlead_master.output_follows import Follows
from fairlead_master.sessions import Outbox, Reading, Traffic, converse
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.v1 import agent_pb2 as pb

Context = Any
"""grpc.aio.ServicerContext of the two batch messages; the stubs make it generic, the class is not at run time."""


class AgentAwayError(Exception):
    """The agent that has the file is not connected, or left before it answered."""


class AgentFiles:
    """The questions of one session.

    They go by the agent's stream of files, so that a chunk delays no status; by the session while there is no such stream, as
    with an agent of before there was one.
    """

    def __init__(
        self, traffic: Traffic, follows: Follows, ask_by_session: Callable[[pb.FileRequest], None]
    ) -> None:
        self.token = secrets.token_hex(16)
        """Says whose a stream is: told to the agent of this session only."""
        self.is_following = False
        """Whether the agent says that it sends output to followers."""
        self._traffic = traffic
        self._follows = follows
        self._ask_by_session = ask_by_session
        self._outbox: Outbox[pb.FileRequests] | None = None
        self._questions: dict[int, tuple[asyncio.Future[pb.FileChunk], Outbox[pb.FileRequests] | None]] = {}
        """By number, each with the stream it was asked by."""
        self._asked_count = 0

    @property
    def has_stream(self) -> bool:
        """Whether the agent has opened its stream of files."""
        return self._outbox is not None

    @property
    def can_follow(self) -> bool:
        """Whether output can be followed now; see ``output_follows.Source``."""
        return self.is_following and self._outbox is not None

    def put(self, requests: pb.FileRequests) -> None:
        """Queue a message; without a stream it is dropped."""
        if self._outbox is not None:
            self._outbox.put(requests)

    async def ask(self, request: pb.FileRequest) -> pb.FileChunk:
        """Ask, and wait for the answer.

        Raises:
            AgentAwayError: the agent, or the stream it was asked by, is gone.
        """
        self._asked_count += 1
        number, outbox = self._asked_count, self._outbox
        question: asyncio.Future[pb.FileChunk] = asyncio.get_running_loop().create_future()
        self._questions[number] = question, outbox
        numbered = pb.FileRequest()
        numbered.CopyFrom(request)
        numbered.request_id = number
        if outbox is None:
            self._ask_by_session(numbered)
        else:
            outbox.put(pb.FileRequests(requests=[numbered]))
        try:
            return await question
        finally:
            del self._questions[number]

    def take(self, chunk: pb.FileChunk) -> None:
        """Take an answer, by whatever stream it came."""
        question, _ = self._questions.get(chunk.request_id, (None, None))
        if question is not None and not question.done():
            question.set_result(chunk)

    async def serve(self, context: Context) -> None:
        """Serve a stream of files to its end; a later one takes its place."""
        if self._outbox is not None:
            self._outbox.close()
            self._follows.left(self)
        outbox = self._outbox = Outbox[pb.FileRequests](self._traffic)
        self._follows.joined(self)
        try:
            await converse(context, outbox, lambda: self._read(context))
        finally:
            if self._outbox is outbox:
                self._outbox = None
                self._follows.left(self)
            self._give_up(outbox)

    async def _read(self, context: Context) -> None:
        with suppress(InvalidFieldError):
            async for batch in Reading(self._traffic).batches(context, pb.FileAnswers):
                for chunk in batch.chunks:
                    self.take(chunk)
                if batch.followed:
                    self._follows.sent(self, batch.followed)

    def end(self) -> None:
        """The session is over, and with it the stream."""
        if self._outbox is not None:
            self._outbox.close()
        for _, outbox in tuple(self._questions.values()):
            self._give_up(outbox)

    def _give_up(self, outbox: Outbox[pb.FileRequests] | None) -> None:
        for question, asked_by in self._questions.values():
            if asked_by is outbox and not question.done():
                question.set_exception(AgentAwayError("the agent left before it answered"))
