"""Plays agents whose tasks finish at once, and frameworks that have work without end, over real streams of their own.

A process of its own: ``python -m fairlead_bench.load_generator`` reads a ``Load`` and then orders from standard
input, one a line, and answers each with one line of JSON. It ends when its input does, so it never outlives its
parent. Orders: ``snapshot``; ``drain``, which wants no more, waits for what is in flight and answers as a snapshot
does.

The peers are as cheap as good ones can be, because they share the machine with the master: each answers a message it
reads with at most one message, and keeps what the protocol asks for and no more (statuses until they are
acknowledged, offers until they are answered).
"""

import asyncio
import os
import sys
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final

import grpc

from fairlead_bench.traffic import LATENCIES_KEPT, Load, Snapshot, Traffic
from fairlead_proto.agent_messages import write_statuses
from fairlead_proto.array_messages import task_ids
from fairlead_proto.columns import fill_acknowledgements, read_statuses
from fairlead_proto.ids import AgentId, FrameworkId, TaskId
from fairlead_proto.peers import ARRAYS, COLUMNS, Unknowns
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import TaskStatus, TaskUsage
from fairlead_proto.v1 import agent_pb2, framework_pb2, types_pb2

DRAIN_TIMEOUT_S: Final = 20.0
_HEARTBEAT_S: Final = 5.0
_LOOK_S: Final = 0.02
_CHANNEL: Final = (
    # Each peer has a connection of its own, as on real hosts; by default channels of one process share one.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
)
_CLASS_ID: Final = "unit"
_UNIT: Final = types_pb2.Resources(cpus_milli=1000, mem_bytes=1 << 30)


_STREAM_ERRORS: Final = (grpc.aio.AioRpcError, grpc.aio.BaseError, asyncio.InvalidStateError)
"""What an operation on a stream raises that is over, or is ending just now."""


class StreamEnded(Exception):
    """The master, or the transport, ended the stream of a peer; the text says whose and why."""


class _Stream:
    """A stream of ready bytes, counted."""

    def __init__(self, who: str, address: str, method: str, traffic: Traffic) -> None:
        self._who = who
        self._channel = grpc.aio.insecure_channel(address, options=_CHANNEL)
        self._call: Any = self._channel.stream_stream(method)()
        self._traffic = traffic
        self._writing = asyncio.Lock()
        """A call takes one write at a time, and answers and heartbeats are written by two tasks."""

    async def write(self, data: bytes) -> None:
        """Send one message. On a stream that is over it goes nowhere: what ended the stream is told by ``messages``."""
        self._traffic.sent += 1
        self._traffic.sent_bytes += len(data)
        async with self._writing:
            with suppress(*_STREAM_ERRORS):
                await self._call.write(data)

    async def messages(self) -> AsyncIterator[bytes]:
        """What comes.

        Raises:
            StreamEnded: by and by; the peers of a benchmark never end theirs.
        """
        with suppress(*_STREAM_ERRORS):
            while (data := await self._call.read()) is not grpc.aio.EOF:
                self._traffic.received += 1
                self._traffic.received_bytes += len(data)
                yield data
        code, details = await self._call.code(), await self._call.details()
        # A stream that the master ends well, while it is written to, grpc reports as its own internal error.
        by = "by the master" if code is grpc.StatusCode.OK else f"{code.name}: {details}"
        raise StreamEnded(f"the stream of {self._who} was ended: {by}")

    async def close(self) -> None:
        """Break off."""
        await self._channel.close()


class _Agent:
    """Reports every launched task as RUNNING and FINISHED in one message."""

    def __init__(self, load: Load, number: int, counts: Snapshot) -> None:
        self._cpus = load.cpus_per_agent
        self._number = number
        self._stream = _Stream(
            f"agent {number}", load.address, "/fairlead.v1.AgentService/Session", counts.agents
        )
        self._unacknowledged: dict[tuple[str, str], int] = {}
        self._agent_id = ""
        self._peer = tuple(load.capabilities)

    @property
    def unacknowledged_count(self) -> int:
        return len(self._unacknowledged)

    async def play(self) -> None:
        """Register, then answer until the stream ends."""
        register = agent_pb2.Register(
            incarnation=1,
            hostname=f"bench-{self._number}",
            total=types_pb2.Resources(cpus_milli=1000 * self._cpus, mem_bytes=self._cpus << 30),
            attributes={"rack": f"r{self._number % 10}"},
            isolation="none",
            version="bench",
            capabilities=self._peer,
        )
        try:
            await self._send(agent_pb2.AgentMessage(register=register))
            async for data in self._stream.messages():
                statuses = self._take(agent_pb2.MasterMessages.FromString(data))
                for message in write_statuses(statuses, self._peer):
                    await self._send(message)
        finally:
            await self._stream.close()

    async def beat(self) -> None:
        """Send heartbeats until cancelled."""
        while True:
            await asyncio.sleep(_HEARTBEAT_S)
            beat = agent_pb2.AgentHeartbeat(agent_time_ms=time.time_ns() // 1_000_000)
            await self._send(agent_pb2.AgentMessage(heartbeat=beat))

    async def _send(self, message: agent_pb2.AgentMessage) -> None:
        await self._stream.write(agent_pb2.AgentMessages(messages=[message]).SerializeToString())

    def _take(self, batch: agent_pb2.MasterMessages) -> list[TaskStatus]:
        statuses: list[TaskStatus] = []
        for message in batch.messages:
            match message.WhichOneof("message"):
                case "launch":
                    for launch in message.launch.tasks:
                        statuses += self._run(launch.framework_id, launch.task.task_id)
                    for ordered in message.launch.arrays:
                        for task_id in task_ids(ordered.array):
                            statuses += self._run(ordered.framework_id, task_id)
                case "acknowledge":
                    for item in message.acknowledge.items:
                        self._acknowledged((item.framework_id, item.task_id), item.sequence)
                    for part in message.acknowledge.columns:
                        for task_id, sequence in zip(part.task_ids, part.sequences, strict=True):
                            self._acknowledged((part.framework_id, task_id), sequence)
                case "registered":
                    self._agent_id = message.registered.agent_id
                case which:
                    raise RuntimeError(f"agent {self._agent_id}: expected launches only, got {which}")
        return statuses

    def _acknowledged(self, key: tuple[str, str], sequence: int) -> None:
        if self._unacknowledged.get(key) == sequence:
            del self._unacknowledged[key]

    def _run(self, framework: str, task: str) -> list[TaskStatus]:
        self._unacknowledged[framework, task] = 2
        now_ms = time.time_ns() // 1_000_000
        framework_id, task_id, agent_id = FrameworkId(framework), TaskId(task), AgentId(self._agent_id)
        running = TaskStatus(
            framework_id=framework_id,
            task_id=task_id,
            agent_id=agent_id,
            sequence=1,
            state=TaskState.RUNNING,
            timestamp_ms=now_ms,
        )
        finished = TaskStatus(
            framework_id=framework_id,
            task_id=task_id,
            agent_id=agent_id,
            sequence=2,
            state=TaskState.FINISHED,
            reason=Reason.EXITED,
            timestamp_ms=now_ms,
            exit_code=0,
            usage=TaskUsage(cpu_time_ms=1, mem_peak_bytes=1 << 20),
        )
        return [running, finished]


class _Framework:
    """Takes every offer whole, acknowledges every status, asks for more when it is time."""

    def __init__(self, load: Load, number: int, counts: Snapshot, latencies_ms: deque[float]) -> None:
        self._load = load
        self._number = number
        self._counts = counts
        self._latencies_ms = latencies_ms
        self._stream = _Stream(
            f"framework {number}", load.address, "/fairlead.v1.FrameworkService/Connect", counts.frameworks
        )
        self._wanted = 0
        self._demand_version = 0
        self._tasks_made = 0
        self._requests_made = 0
        self._since: dict[str, float] = {}
        """When the offer of each task in flight arrived."""
        self._is_draining = False

    @property
    def in_flight(self) -> int:
        return len(self._since)

    async def play(self) -> None:
        """Say hello, then answer until the stream ends."""
        hello = framework_pb2.Hello(
            name=f"bench-{self._number}",
            role=f"bench-{self._number % self._load.roles}",
            capabilities=self._load.capabilities,
        )
        try:
            await self._send([framework_pb2.FrameworkCall(request_id=self._request_id(), hello=hello)])
            async for data in self._stream.messages():
                calls = self._take(framework_pb2.FrameworkEvents.FromString(data))
                if calls:
                    await self._send(calls)
        finally:
            await self._stream.close()

    async def want_steadily(self) -> None:
        """Want more at even intervals until cancelled."""
        interval_s = self._load.demand_interval_s
        # The first turns come after the hello, and those of the frameworks one after the other.
        due = time.monotonic() + interval_s * (1 + (self._number - self._load.first) / self._load.frameworks)
        while True:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            if not self._is_draining:
                await self._send([self._demand(self._wanted + self._load.demand)])
            due += interval_s

    async def drain(self) -> None:
        """Want nothing more."""
        self._is_draining = True
        await self._send([self._demand(0)])

    async def _send(self, calls: list[framework_pb2.FrameworkCall]) -> None:
        await self._stream.write(framework_pb2.FrameworkCalls(calls=calls).SerializeToString())

    def _request_id(self) -> int:
        self._requests_made += 1
        return self._requests_made

    def _take(self, batch: framework_pb2.FrameworkEvents) -> list[framework_pb2.FrameworkCall]:
        calls: list[framework_pb2.FrameworkCall] = []
        now = time.monotonic()
        for event in batch.events:
            match event.WhichOneof("event"):
                case "statuses":
                    calls.append(self._acknowledge(read_statuses("", event.statuses, Unknowns()), now))
                case "offers":
                    calls += [self._accept(offer, now) for offer in event.offers.offers]
                case "accept_result":
                    self._take_answer(event.accept_result)
                case "error":
                    raise RuntimeError(f"framework {self._number}: {event.error.detail}")
                case "result" if event.result.code != framework_pb2.CALL_CODE_OK:
                    raise RuntimeError(f"framework {self._number}: {event.result.detail}")
        if not self._is_draining and not self._load.demand_interval_s and self._is_due():
            calls.append(self._demand(self._load.demand))
        return calls

    def _is_due(self) -> bool:
        if self._load.is_steady:
            return self._wanted <= self._load.demand // 2
        return self._wanted == 0 and not self._since

    def _demand(self, units: int) -> framework_pb2.FrameworkCall:
        self._wanted = units
        self._demand_version += 1
        wanted = framework_pb2.DemandClass(class_id=_CLASS_ID, unit=_UNIT, units=units)
        demand = framework_pb2.SetDemand(version=self._demand_version, classes=[wanted] if units else [])
        return framework_pb2.FrameworkCall(request_id=self._request_id(), set_demand=demand)

    def _accept(self, offer: framework_pb2.Offer, now: float) -> framework_pb2.FrameworkCall:
        self._counts.offers += 1
        units = 0 if self._is_draining else offer.units
        first = self._tasks_made
        self._tasks_made += units
        self._wanted -= units
        accept = framework_pb2.Accept(offer_id=offer.offer_id)
        if ARRAYS in self._load.capabilities:
            template = types_pb2.TaskSpec(task_id="a", resources=_UNIT, command=["/bin/true"])
            array = accept.arrays.add(template=template, indices=range(first, first + units), attempt=1)
            found = task_ids(array)
        else:
            found = [f"t{number}" for number in range(first, first + units)]
            for task_id in found:
                accept.tasks.add(task_id=task_id, resources=_UNIT, command=["/bin/true"])
        self._since.update(dict.fromkeys(found, now))
        return framework_pb2.FrameworkCall(request_id=self._request_id(), accept=accept)

    def _take_answer(self, answer: framework_pb2.AcceptResult) -> None:
        self._counts.launched += len(answer.launched)
        for item in answer.items:
            if item.launched:
                self._counts.launched += 1
            else:
                self._counts.unfinished += 1
                self._since.pop(item.task_id, None)

    def _acknowledge(self, statuses: list[TaskStatus], now: float) -> framework_pb2.FrameworkCall:
        latest: dict[str, TaskStatus] = {}
        for status in statuses:
            latest[status.task_id] = status  # Acknowledgements are cumulative: the last one is enough.
            if status.state is TaskState.FINISHED:
                self._counts.finished += 1
                self._latencies_ms.append((now - self._since.pop(status.task_id)) * 1000)
            elif status.state is not TaskState.RUNNING:
                self._counts.unfinished += 1
                self._since.pop(status.task_id, None)
        acknowledge = framework_pb2.Acknowledge()
        if COLUMNS in self._load.capabilities:
            by_agent: dict[str, list[tuple[TaskId, int]]] = {}
            for status in latest.values():
                by_agent.setdefault(status.agent_id, []).append((status.task_id, status.sequence))
            for agent_id, items in by_agent.items():
                fill_acknowledgements(acknowledge.columns.add(agent_id=agent_id), items)
        else:
            for status in latest.values():
                acknowledge.items.add(
                    task_id=status.task_id, sequence=status.sequence, agent_id=status.agent_id
                )
        return framework_pb2.FrameworkCall(request_id=self._request_id(), acknowledge=acknowledge)


class _Generator:
    """Made on the loop it runs on, to which its streams are bound."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._counts = Snapshot()
        self._latencies_ms: deque[float] = deque(maxlen=LATENCIES_KEPT)
        numbers = range(load.first, load.first + load.agents)
        self._agents = [_Agent(load, number, self._counts) for number in numbers]
        numbers = range(load.first, load.first + load.frameworks)
        self._frameworks = [_Framework(load, number, self._counts, self._latencies_ms) for number in numbers]

    async def play(self) -> None:
        """Play everybody, and take orders until they end."""
        peers = [
            asyncio.ensure_future(part)
            for part in (
                *(agent.play() for agent in self._agents),
                *(agent.beat() for agent in self._agents),
                *(framework.play() for framework in self._frameworks),
                *(
                    framework.want_steadily()
                    for framework in self._frameworks
                    if self._load.demand_interval_s
                ),
            )
        ]
        orders = asyncio.ensure_future(self._take_orders())
        ended, others = await asyncio.wait([orders, *peers], return_when=asyncio.FIRST_COMPLETED)
        for other in others:
            other.cancel()
        # What they raise now comes of being cancelled, and would hide what ended the first of them.
        await asyncio.gather(*others, return_exceptions=True)
        for failure in [part.exception() for part in ended]:
            if failure is not None:
                raise failure

    async def _take_orders(self) -> None:
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
        )
        while line := await reader.readline():
            if line.strip() == b"drain":
                await self._drain()
            sys.stdout.write(self._snapshot().to_json() + "\n")
            sys.stdout.flush()

    async def _drain(self) -> None:
        for framework in self._frameworks:
            await framework.drain()
        looks = int(DRAIN_TIMEOUT_S / _LOOK_S)
        for _ in range(looks):
            if self._is_quiet():
                break
            await asyncio.sleep(_LOOK_S)

    def _is_quiet(self) -> bool:
        return not any(framework.in_flight for framework in self._frameworks) and not any(
            agent.unacknowledged_count for agent in self._agents
        )

    def _snapshot(self) -> Snapshot:
        counts = self._counts
        counts.cpu_s = time.process_time()
        counts.in_flight = sum(framework.in_flight for framework in self._frameworks)
        counts.unacknowledged = sum(agent.unacknowledged_count for agent in self._agents)
        counts.latencies_ms = list(self._latencies_ms)
        self._latencies_ms.clear()
        return counts


async def _play(load: Load) -> None:
    await _Generator(load).play()


def main() -> None:
    """Play the load named on standard input's first line."""
    # Read from the descriptor itself, so that no buffer swallows the orders behind the first line.
    first = bytearray()
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        first += byte
    try:
        asyncio.run(_play(Load.from_json(first.decode())))
    except StreamEnded as error:
        sys.exit(f"load generator: {error}")


if __name__ == "__main__":
    main()
