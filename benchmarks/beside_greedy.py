"""How long an honest client waits beside greedy ones: `PYTHONPATH=. .venv/bin/python benchmarks/beside_greedy.py`.

A real master with 20 agents of a million cores. For so many seconds a framework says every 5 ms that it wants nothing, and
waits for the answer: first beside an idle cluster (`idle`), then on another master beside two frameworks that want ten million
units of a thousandth of a core each (`greedy`). The times include this client's own.
"""

import argparse
import asyncio
import os
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from fairlead_bench.control_path import start_master
from fairlead_bench.rows import percentile
from fairlead_proto.v1 import agent_pb2, framework_pb2, types_pb2
from tests.builders.peers import RawAgent, RawFramework, resources

AGENTS = 20
GREEDY = 2


async def beat(agent: RawAgent) -> None:
    while True:
        await asyncio.sleep(4)
        await agent.send(heartbeat=agent_pb2.AgentHeartbeat(used=resources()))


async def read_on(framework: RawFramework) -> None:
    while await framework.expect("offers"):
        pass


async def wait_times_ms(port: int, *, is_greedy: bool, seconds: float) -> list[float]:
    others: list[asyncio.Task[None]] = []
    peers: list[RawAgent | RawFramework] = []
    for _ in range(AGENTS):
        agent = RawAgent(port)
        peers.append(agent)
        await agent.register(total=types_pb2.Resources(cpus_milli=10**9, mem_bytes=2**50))
        others.append(asyncio.create_task(beat(agent)))
    honest = RawFramework(port)
    await honest.hello(role="honest")
    for number in range(GREEDY if is_greedy else 0):
        greedy = RawFramework(port)
        peers.append(greedy)
        await greedy.hello(role=f"greedy{number}")
        await greedy.want(10**7, unit=types_pb2.Resources(cpus_milli=1 + number, mem_bytes=2**20))
        others.append(asyncio.create_task(read_on(greedy)))
    waited = []
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        asked_s = time.monotonic()
        answer = await honest.want(0)
        waited.append((time.monotonic() - asked_s) * 1000)
        assert answer.code == framework_pb2.CALL_CODE_OK
        await asyncio.sleep(0.005)
    for other in others:
        other.cancel()
    for peer in [*peers, honest]:
        await peer.close()
    return sorted(waited)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15)
    seconds = parser.parse_args().seconds
    print("load average", *[round(load, 1) for load in os.getloadavg()])
    for name in ("idle", "greedy"):
        with ExitStack() as stack:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            _, address = start_master(stack, directory)
            port = int(address.rpartition(":")[2])
            waited = await wait_times_ms(port, is_greedy=name == "greedy", seconds=seconds)
        figures = ", ".join(f"p{q:g} {percentile(waited, q / 100):.1f} ms" for q in (50, 99, 99.9))
        print(f"{name}: {figures}, max {waited[-1]:.1f} ms of {len(waited)} answers", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
