"""The least that the control path's messages cost: bare gRPC streams that carry as many of them, as large, and do nothing.

A server answers what clients send on as many streams as the measured master had, in the same proportion and in the
same sizes, without reading a byte of it. What it needs a task is the part of the master's cost that is gRPC's and the
kernel's; the rest is ours. Both ends are processes of their own:
``python -m fairlead_bench.stream_floor serve|play`` with a ``FloorLoad`` as JSON.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

import grpc

from fairlead_bench.children import end_with_parent

_SERVICE: Final = "fairlead.bench.Floor"
_CHANNEL: Final = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorKind:
    """The streams of one kind."""

    streams: int
    sends: int
    """Messages each stream sends in all."""
    sent_bytes: int
    """Of each."""
    answers: float
    """Messages the server writes for one it reads, on average."""
    answer_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorLoad:
    """What is played, by all clients together or by one of them."""

    agents: FloorKind
    frameworks: FloorKind

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What ``to_json`` wrote."""
        return cls(**{name: FloorKind(**kind) for name, kind in json.loads(text).items()})

    def kinds(self) -> dict[str, FloorKind]:
        """By the name of the method that serves them."""
        return {"Agents": self.agents, "Frameworks": self.frameworks}


class _Answers:
    """How many answers are due after each message, so that the average is right and both ends count alike."""

    def __init__(self, kind: FloorKind) -> None:
        self._rate = kind.answers
        self._due = 0.0

    def next(self) -> int:
        self._due += self._rate
        whole = int(self._due)
        self._due -= whole
        return whole


def _handler(kind: FloorKind) -> Callable[[Any, Any], Any]:
    answer = bytes(kind.answer_bytes)

    async def serve(_requests: object, context: Any) -> None:
        answers = _Answers(kind)
        while await context.read() is not grpc.aio.EOF:
            for _ in range(answers.next()):
                await context.write(answer)

    return serve


async def _serve(load: FloorLoad, ready_file: Path) -> None:
    server = grpc.aio.server()
    handlers: dict[str, Any] = {
        name: grpc.stream_stream_rpc_method_handler(_handler(kind)) for name, kind in load.kinds().items()
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    ready_file.write_text(f"127.0.0.1:{port}\n")
    await server.wait_for_termination()


async def _play_stream(address: str, name: str, kind: FloorKind) -> None:
    channel = grpc.aio.insecure_channel(address, options=_CHANNEL)
    call: Any = channel.stream_stream(f"/{_SERVICE}/{name}")()
    answers = _Answers(kind)
    message = bytes(kind.sent_bytes)
    for _ in range(kind.sends):
        await call.write(message)
        for _ in range(answers.next()):
            await call.read()
    await call.done_writing()
    await channel.close()


async def _play(load: FloorLoad, address: str) -> None:
    began = time.monotonic()
    await asyncio.gather(
        *(
            _play_stream(address, name, kind)
            for name, kind in load.kinds().items()
            for _ in range(kind.streams)
        )
    )
    figures = {"wall_s": time.monotonic() - began, "cpu_s": time.process_time()}
    sys.stdout.write(json.dumps(figures) + "\n")


def main() -> None:
    """``serve LOAD READY_FILE`` or ``play LOAD ADDRESS``."""
    role, load, where = sys.argv[1:]
    end_with_parent()
    if role == "serve":
        asyncio.run(_serve(FloorLoad.from_json(load), Path(where)))
    else:
        asyncio.run(_play(FloorLoad.from_json(load), where))


if __name__ == "__main__":
    main()
