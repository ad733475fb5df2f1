"""Bounds on calls: how many are under way at once (listings, watchers, orders, files, health), and how long their requests are.

A call holds memory, and may hold its connection for itself. Sessions of frameworks and agents are not counted here: one
that does not say who it is ends within seconds, and of those that do the core admits so many and no more.
"""

import inspect
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError

from fairlead_master.sessions import host_of

CALLS_MAX: Final = 1_024
CALLS_PER_PEER_MAX: Final = 256
"""From one host: a screen or a script has a few under way. A quarter of all, so that three hosts do not use them up."""

REQUEST_BYTES_MAX: Final = 256 * 1024
"""Of a request, which is parsed in one piece: 4 ms at worst. A thousand of the longest ids are shorter."""

_SESSIONS: Final = frozenset(
    {
        "/fairlead.v1.FrameworkService/Connect",
        "/fairlead.v1.AgentService/Session",
        "/fairlead.v1.AgentService/Files",
    }
)

Handler = Any
"""grpc.RpcMethodHandler; its fields are not declared."""


class CallBounds(grpc.aio.ServerInterceptor):
    """Refuses the call that is one too many, and the request that is too long, with RESOURCE_EXHAUSTED."""

    def __init__(self) -> None:
        self._under_way: Counter[str] = Counter()
        """By host."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        """Hand on the handler of a session, which gets bytes, and any other with the bounds around it."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return handler
        if handler_call_details.method in _SESSIONS:
            # Whose messages may be long, and are parsed in parts.
            return grpc.stream_stream_rpc_method_handler(
                handler.stream_stream, None, handler.response_serializer
            )
        # Exactly one of these is there.
        kinds = {
            "unary_unary": grpc.unary_unary_rpc_method_handler,
            "unary_stream": grpc.unary_stream_rpc_method_handler,
            "stream_unary": grpc.stream_unary_rpc_method_handler,
            "stream_stream": grpc.stream_stream_rpc_method_handler,
        }
        kind = next(kind for kind in kinds if getattr(handler, kind) is not None)
        bounded = self._bounded(getattr(handler, kind), handler.request_deserializer)
        make: Any = kinds[kind]
        return make(bounded, None, handler.response_serializer)

    def _bounded(
        self, serve: Callable[[Any, Any], Any], deserialize: Callable[[bytes], Any]
    ) -> Callable[[Any, Any], Any]:
        """The same handler of bytes, or of a stream of them."""

        async def read(request: Any, context: Any) -> Any:
            return (
                await _read(request, deserialize, context)
                if isinstance(request, bytes)
                else _read_each(request, deserialize, context)
            )

        async def answer(request: Any, context: Any) -> Any:
            await self._check(context)
            with self._counted(context):
                return await serve(await read(request, context), context)

        async def stream(request: Any, context: Any) -> AsyncIterator[Any]:
            await self._check(context)
            with self._counted(context):
                async for response in serve(await read(request, context), context):
                    yield response

        return stream if inspect.isasyncgenfunction(serve) else answer

    async def _check(self, context: Any) -> None:
        host = host_of(context.peer())
        if self._under_way[host] >= CALLS_PER_PEER_MAX:
            detail = (
                f"calls: expected at most {CALLS_PER_PEER_MAX} at once from one host, got another from {host}"
            )
        elif self._under_way.total() >= CALLS_MAX:
            detail = f"calls: expected at most {CALLS_MAX} at once, got another"
        else:
            return
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{detail}: end some, or try again later")

    @contextmanager
    def _counted(self, context: Any) -> Iterator[None]:
        host = host_of(context.peer())
        self._under_way[host] += 1
        try:
            yield
        finally:
            self._under_way[host] -= 1
            if not self._under_way[host]:
                del self._under_way[host]


async def _read(raw: bytes, deserialize: Callable[[bytes], Any], context: Any) -> Any:
    if len(raw) > REQUEST_BYTES_MAX:
        detail = (
            f"request: expected at most {REQUEST_BYTES_MAX} bytes, got {len(raw)}: ask about fewer at once"
        )
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, detail)
    try:
        return deserialize(raw)
    except DecodeError:
        detail = "request: expected a message of this call, got something else"
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, detail)


async def _read_each(
    requests: AsyncIterator[bytes], deserialize: Callable[[bytes], Any], context: Any
) -> AsyncIterator[Any]:
    async for raw in requests:
        yield await _read(raw, deserialize, context)
