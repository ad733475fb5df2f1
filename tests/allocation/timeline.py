"""Tasks of known length on an allocator in virtual time, and who consumed how much meanwhile."""

import random
from dataclasses import dataclass, field
from heapq import heappop, heappush

from fairlead_master.allocation.allocator import Allocator
from fairlead_master.allocation.weights import Weight
from fairlead_proto.ids import AgentId, FrameworkId, Role
from fairlead_proto.resources import Vector
from tests.allocation.builders import add_agent, an_allocator, launch, want

HOST = AgentId("host")


@dataclass
class Client:
    framework_id: FrameworkId
    unit: Vector
    length_ms: int
    parallel_max: int
    """Tasks it runs at a time at most."""
    running: int = 0
    consumed: list[int] = field(default_factory=list)


class Timeline:
    """One host, and clients that start the next task when one ends, as long as they are there."""

    def __init__(self, policy: str, total: Vector, *, seed: int = 0, jitter: float = 0.0) -> None:
        self.allocator: Allocator = an_allocator(policy=policy)
        self.total = total
        self.now_ms = 0
        self.clients: dict[str, Client] = {}
        self._jitter = jitter
        self._random = random.Random(seed)
        self._ends: list[tuple[int, int, str, Vector]] = []
        self._count = 0
        self.allocator.advance(0)
        add_agent(self.allocator, HOST, total)

    def join(
        self,
        name: str,
        unit: Vector,
        *,
        weight: float = 1.0,
        length_ms: int = 500,
        parallel_max: int = 10_000,
    ) -> None:
        """A client comes."""
        framework_id = FrameworkId(name)
        self.allocator.set_weight(Role(name), Weight(weight))
        self.allocator.add_framework(framework_id, Role(name))
        self.clients[name] = Client(framework_id, unit, length_ms, parallel_max, consumed=[0] * len(unit))
        self._declare(self.clients[name])

    def reshape(self, name: str, unit: Vector) -> None:
        """The client's tasks need something else from now on."""
        self.clients[name].unit = unit
        self._declare(self.clients[name])

    def suspend(self, name: str) -> None:
        """The client wants nothing more for now."""
        self.clients[name].parallel_max = 0
        self._declare(self.clients[name])

    def resume(self, name: str, parallel_max: int = 10_000) -> None:
        """And again as much as it can get."""
        self.clients[name].parallel_max = parallel_max
        self._declare(self.clients[name])

    def run_until(self, until_ms: int) -> dict[str, list[float]]:
        """Let time pass; gives what part of each resource each client consumed meanwhile."""
        began_ms = self.now_ms
        for client in self.clients.values():
            client.consumed = [0] * len(self.total)
        self._cycle()
        while self._ends and self._ends[0][0] <= until_ms:
            self._pass_to(self._ends[0][0])
            while self._ends and self._ends[0][0] == self.now_ms:
                _, _, name, unit = heappop(self._ends)
                client = self.clients[name]
                client.running -= 1
                self.allocator.release(client.framework_id, HOST, unit)
                self._declare(client)
            self._cycle()
        self._pass_to(until_ms)
        passed_ms = until_ms - began_ms
        return {
            name: [
                amount / (total * passed_ms) if total else 0.0
                for amount, total in zip(client.consumed, self.total, strict=True)
            ]
            for name, client in self.clients.items()
        }

    def _declare(self, client: Client) -> None:
        want(self.allocator, client.framework_id, client.unit, max(0, client.parallel_max - client.running))

    def _pass_to(self, now_ms: int) -> None:
        charged = {row.role: row.charged for row in self.allocator.role_report()}
        for name, client in self.clients.items():
            for place, amount in enumerate(charged[Role(name)]):
                client.consumed[place] += amount * (now_ms - self.now_ms)
        self.now_ms = now_ms
        self.allocator.advance(now_ms)

    def _cycle(self) -> None:
        for grant in self.allocator.cycle(self.now_ms):
            launch(self.allocator, grant)
            client = self.clients[grant.framework_id]
            client.running += grant.units
            for _ in range(grant.units):
                self._count += 1
                spread = 1.0 + self._jitter * self._random.uniform(-1.0, 1.0)
                end_ms = self.now_ms + max(1, round(client.length_ms * spread))
                heappush(self._ends, (end_ms, self._count, grant.framework_id, grant.unit))
