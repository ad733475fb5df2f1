"""The stream beside a session that files and followed output go by: a MiB of a file delays no status."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

import grpc.aio

from fairlead_proto.limits import BATCH_BYTES_MAX
from fairlead_proto.v1 import agent_pb2

CHUNKS_MAX: Final = 256
"""Waiting to be written, of at most a MiB each: as many as are answered at once. A master that asks and does not read loses
the stream."""

OnFileRequest = Callable[[agent_pb2.FileRequest], None]
OnFollow = Callable[[agent_pb2.FileRequests], None]
_Call = grpc.aio.StreamStreamCall[agent_pb2.FileAnswers, agent_pb2.FileRequests]


class FileStream:
    """One such stream."""

    def __init__(self, call: _Call, on_request: OnFileRequest, on_follow: OnFollow) -> None:
        """Begin; ``on_request`` takes what the master asks, ``on_follow`` batches with what it says about followers."""
        self._call = call
        self._on_request = on_request
        self._on_follow = on_follow
        self._followed: deque[agent_pb2.FollowedOutput] = deque()
        """At most one for each follower."""
        self._chunks: deque[agent_pb2.FileChunk] = deque()
        self._queued = asyncio.Event()

    def send(self, chunk: agent_pb2.FileChunk) -> None:
        """Queue an answer."""
        if len(self._chunks) >= CHUNKS_MAX:
            self._call.cancel()
            return
        self._chunks.append(chunk)
        self._queued.set()

    def send_followed(self, output: agent_pb2.FollowedOutput) -> None:
        """Queue output for a follower."""
        self._followed.append(output)
        self._queued.set()

    async def serve(self, token: str) -> None:
        """Say whose the stream is, then read and write until it ends.

        Raises:
            grpc.aio.AioRpcError: the master's or the transport's reason, if it is not a good one.
        """
        read = asyncio.create_task(self._read(), name="files-read")
        write = asyncio.create_task(self._write(token), name="files-write")
        try:
            await asyncio.wait((read, write), return_when=asyncio.FIRST_COMPLETED)
            # An error of the reader says more than the one it causes in the writer.
            ended = read if read.done() else write
            if not ended.cancelled():
                ended.result()
        finally:
            self._call.cancel()
            for part in (read, write):
                part.cancel()
            await asyncio.gather(read, write, return_exceptions=True)

    async def _read(self) -> None:
        while isinstance(batch := await self._call.read(), agent_pb2.FileRequests):
            for request in batch.requests:
                self._on_request(request)
            if batch.follow or batch.taken or batch.unfollow:
                self._on_follow(batch)

    async def _write(self, token: str) -> None:
        await self._call.write(agent_pb2.FileAnswers(token=token))
        while True:
            while not self._chunks and not self._followed:
                self._queued.clear()
                await self._queued.wait()
            answers = agent_pb2.FileAnswers()
            if self._chunks:
                answers.chunks.append(self._chunks.popleft())
            size_bytes = 0
            while self._followed and size_bytes < BATCH_BYTES_MAX:
                answers.followed.append(self._followed.popleft())
                size_bytes += answers.followed[-1].ByteSize()
            await self._call.write(answers)
