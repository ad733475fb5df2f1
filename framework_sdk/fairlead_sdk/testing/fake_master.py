"""A master in memory: give it to ``Framework`` or ``run_scheduler`` as ``master``, and drive its clock."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, TypeVar

from fairlead_proto.resources import ResourceKinds
from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import TaskStatus
from fairlead_proto.v1 import files_pb2, framework_pb2
from fairlead_sdk.amounts import Amounts, Number, parse_amounts
from fairlead_sdk.clock import wait_until
from fairlead_sdk.errors import LinkBroken, Refused
from fairlead_sdk.events import ErrorCode, Rejection
from fairlead_sdk.testing import fake_wire
from fairlead_sdk.testing.fake_cluster import FakeAgent, FakeCluster, FakeTask
from fairlead_sdk.testing.fake_sessions import FakeFramework, FakeSessions, Refusal
from fairlead_sdk.testing.memory_link import MemoryLink
from fairlead_sdk.testing.outcomes import Matcher, Outcome, Script
from fairlead_sdk.testing.virtual_clock import VirtualClock

_T = TypeVar("_T")

FINISH_LIMIT_MS: Final = 24 * 3600 * 1000
"""How far ``finish`` moves the clock before it says that this will never end."""

CANCEL_LIMIT_MS: Final = 120_000
"""How far the clock is moved for a cancelled task to clean up."""

RESEND_MS: Final = 5_000
"""How long an agent waits for an acknowledgement before it reports again."""


class FakeMaster:
    """A small cluster with a clock of its own, as a transport of the SDK.

    Args:
        custom_resources: names this cluster knows beyond cpus, mem, disk and gpus.
        heartbeat_interval_ms: how often sessions hear from the master.
        lease_ms: how long an offer is good.
        failover_timeout_ms: granted to every framework.
        seed: of the jitter in waiting times.
    """

    def __init__(
        self,
        *,
        custom_resources: Sequence[str] = (),
        heartbeat_interval_ms: int = 15_000,
        lease_ms: int = 10_000,
        failover_timeout_ms: int = 3_600_000,
        seed: int = 0,
    ) -> None:
        self.clock = VirtualClock()
        self.jitter: Callable[[], float] = random.Random(seed).random  # noqa: S311 - chance that repeats
        self.address = "memory"
        self.epoch = 1
        self.is_down = False
        self._kinds = ResourceKinds(tuple(sorted(custom_resources)))
        self._heartbeat_ms = heartbeat_interval_ms
        self._failover_ms = failover_timeout_ms
        self._script = Script()
        self._cluster = FakeCluster(self.clock, self._kinds, self._on_report, self._allocate_soon)
        self._sessions = FakeSessions(self._cluster, self._script, self._kinds, self.clock.now_ms, lease_ms)
        self._links: dict[MemoryLink, FakeFramework | None] = {}
        self._is_allocating = False
        self._is_flushing = False
        self._lost_answers: list[bool] = []
        self._readers: dict[str, list[asyncio.Future[None]]] = {}

    # --- the cluster ---------------------------------------------------------------------------------------------

    def add_agent(
        self,
        agent_id: str,
        *,
        cpus: Number = 1,
        mem: Number = "1GiB",
        gpus: Number = 0,
        disk: Number = 0,
        custom: Mapping[str, Number] | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> FakeAgent:
        """Let a host join, with resources as a ``Task`` states them."""
        amounts = parse_amounts(cpus=cpus, mem=mem, gpus=gpus, disk=disk, custom=custom or {})
        return self._cluster.add_agent(agent_id, self._vector(amounts), attributes or {})

    def _vector(self, amounts: Amounts) -> tuple[int, ...]:
        return self._kinds.vector(amounts.as_dict())

    def script(self, which: Matcher, *outcomes: Outcome) -> None:
        """Say how tasks go: their id, name or a function of their description; then one outcome a launch.

        The last outcome holds for every later launch. Earlier rules come first; without one, ``Outcome()`` holds.
        """
        self._script.add(which, outcomes)

    @property
    def agents(self) -> Mapping[str, FakeAgent]:
        """The agents that joined and were not lost, by id."""
        return self._cluster.agents

    @property
    def tasks(self) -> list[FakeTask]:
        """Every task ever launched, in order."""
        return list(self._cluster.tasks.values())

    @property
    def frameworks(self) -> Mapping[str, FakeFramework]:
        """Every framework known, by id."""
        return self._sessions.frameworks

    def task(self, task_id: str) -> FakeTask:
        """The task launched under this id.

        Raises:
            KeyError: none was.
        """
        for task in self._cluster.tasks.values():
            if task.task_id == task_id:
                return task
        raise KeyError(f"no task {task_id!r} was launched; there are {[task.task_id for task in self.tasks]}")

    def running(self) -> list[str]:
        """The ids of the tasks that are not over, in launch order."""
        return [task.task_id for task in self.tasks if not task.is_over]

    # --- time ----------------------------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Let everything happen that needs no time."""
        await self.clock.advance(0)

    async def advance(self, duration_ms: int) -> None:
        """Move the clock, letting everything happen on the way."""
        await self.clock.advance(duration_ms)

    async def finish(self, awaitable: Awaitable[_T], *, limit_ms: int = FINISH_LIMIT_MS) -> _T:
        """Move the clock until this is done, and return or raise what it does.

        Raises:
            AssertionError: it was not done within ``limit_ms`` of the fake's time.
        """
        task = asyncio.ensure_future(awaitable)
        if not await self._move_until_done(task, limit_ms):
            running = self.running()
            task.cancel()
            # Cleaning up after a cancellation takes the fake's time too: grace periods, for one.
            await self._move_until_done(task, CANCEL_LIMIT_MS)
            raise AssertionError(f"not done after {limit_ms} ms; running: {running}")
        return task.result()

    async def _move_until_done(self, task: "asyncio.Future[Any]", limit_ms: int) -> bool:
        deadline_ms = self.clock.now_ms() + limit_ms
        await self.clock.settle()
        while not task.done():
            due_ms = self.clock.next_due_ms()
            if due_ms is None or due_ms > deadline_ms:
                return False
            await self.clock.advance(due_ms - self.clock.now_ms())
        return True

    # --- faults --------------------------------------------------------------------------------------------------

    def rescind_offers(self, reason: str = "the test took it back") -> None:
        """Take every outstanding offer back; what they held is offered anew."""
        for framework in self._sessions.frameworks.values():
            self._sessions.rescind(framework, list(framework.offers.values()), reason)
        self._flush_soon()
        self._allocate_soon()

    def reject_next_accept(self, rejection: Rejection = Rejection.EXPIRED) -> None:
        """Have every task of the next accept rejected; a second call is for the accept after it."""
        self._sessions.rejections.append(rejection)

    def lose_next_accept(self, *, launched: bool) -> None:
        """Break the stream instead of answering the next accept, before or after its tasks were launched."""
        self._lost_answers.append(launched)

    def cut_agent(self, agent_id: str) -> None:
        """Let an agent be away with its tasks, until ``return_agent``."""
        agent = self._cluster.agents[agent_id]
        self._rescind_of(agent)
        self._cluster.cut_off(agent)

    def return_agent(self, agent_id: str) -> None:
        """Bring an agent back that was cut off."""
        self._cluster.come_back(self._cluster.agents[agent_id])

    def lose_agent(self, agent_id: str, reason: str = "its host burnt down") -> None:
        """Have an agent gone for good: its tasks are GONE."""
        agent = self._cluster.agents[agent_id]
        self._rescind_of(agent)
        self._cluster.lose(agent)
        for framework in self._sessions.frameworks.values():
            self._sessions.tell(framework, fake_wire.agent_gone(agent_id, reason))
        self._flush_soon()

    def _rescind_of(self, agent: FakeAgent) -> None:
        for framework in self._sessions.frameworks.values():
            lost = [offer for offer in framework.offers.values() if offer.agent is agent]
            self._sessions.rescind(framework, lost, "agent disconnected")
        self._flush_soon()

    def break_links(self, reason: str = "the test broke the stream") -> None:
        """Break every stream; the master stays up."""
        for link in list(self._links):
            self._on_end(link)
            link.cut(reason)

    def restart(self, *, down_ms: int = 0, agents_away_ms: int = 0) -> None:
        """Restart the master: streams break, offers are void, the epoch grows, tasks run on.

        Args:
            down_ms: how long it cannot be reached.
            agents_away_ms: how long after that its agents take to come back, unknown to it until then.
        """
        self.is_down = True
        self.break_links("the master went away")
        self.epoch += 1
        for agent in self._cluster.agents.values():
            agent.is_present = False
            agent.is_recovering = True
        self.clock.call_later(down_ms, self._come_up)
        self.clock.call_later(down_ms + agents_away_ms, self._agents_return)

    def _come_up(self) -> None:
        self.is_down = False

    def _agents_return(self) -> None:
        for agent in self._cluster.agents.values():
            if agent.is_recovering:
                self._cluster.come_back(agent)

    def refuse(self, code: ErrorCode, detail: str = "as the test asked") -> None:
        """End every session with this error."""
        for link, framework in list(self._links.items()):
            if framework is not None:
                self._end_session(link, code, detail)

    # --- what a test may want to be sure of ----------------------------------------------------------------------

    def assert_at_rest(self) -> None:
        """Fail unless nothing runs or is offered, all reports are acknowledged, and every agent's resources are free.

        Acknowledgements wait up to 20 ms for company, so advance the clock by that first. Reports to frameworks that were
        torn down are nobody's to acknowledge, and are left out.
        """
        assert not self.running(), f"still running: {self.running()}"
        for task in self.tasks:
            if task.framework_id in self._sessions.frameworks:
                assert not task.unacknowledged, f"{task.task_id} has unacknowledged reports"
        for framework in self._sessions.frameworks.values():
            assert not framework.offers, f"{framework.framework_id} still holds {list(framework.offers)}"
        for agent in self._cluster.agents.values():
            held = self._kinds.format(tuple(a - b for a, b in zip(agent.total, agent.free, strict=True)))
            assert agent.free == agent.total, f"{agent.agent_id} still holds {held}"

    def assert_launched_once(self) -> None:
        """Fail if two attempts of one task ran at the same time (``x`` and ``x.2`` are attempts of one task)."""
        spans: dict[tuple[str, str], list[FakeTask]] = {}
        for task in self.tasks:
            stem, dot, attempt = task.task_id.rpartition(".")
            job = stem if dot and attempt.isdigit() else task.task_id
            spans.setdefault((task.framework_id, job), []).append(task)
        for (_, job), attempts in spans.items():
            for earlier, later in pairwise(attempts):
                over = earlier.ended_ms is not None and earlier.ended_ms <= later.launched_ms
                assert over, f"{later.task_id} was launched while {earlier.task_id} of {job} ran"

    # --- the transport -------------------------------------------------------------------------------------------

    async def open(self) -> MemoryLink:
        """Start a stream; see ``Transport``."""
        if self.is_down:
            raise LinkBroken("the master is down")
        link = MemoryLink(self.clock, self._on_calls, self._on_end)
        self._links[link] = None
        return link

    async def read_file(self, request: files_pb2.ReadRequest) -> files_pb2.ReadResponse:
        """Read a scripted task's standard output or error; see ``Transport``."""
        if self.is_down:
            raise LinkBroken("the master is down")
        task = self._cluster.tasks.get((request.framework_id, request.task_id))
        if task is None or request.path not in ("stdout", "stderr"):
            raise Refused("UNKNOWN", f"{request.task_id}: no file {request.path!r}")
        if not task.is_over and request.wait_ms:
            over = asyncio.get_running_loop().create_future()
            self._readers.setdefault(task.task_id, []).append(over)
            await wait_until(self.clock, over, request.wait_ms)
        text = task.outcome.stdout if request.path == "stdout" else task.outcome.stderr
        data = text.encode() if task.is_over or task.state is TaskState.RUNNING else b""
        start = min(request.offset, len(data)) if request.offset >= 0 else max(0, len(data) + request.offset)
        piece = data[start : start + (request.length or 64 * 1024)]
        return files_pb2.ReadResponse(
            offset=start,
            data=piece,
            size=len(data),
            complete=task.is_over and start + len(piece) == len(data),
        )

    async def close(self) -> None:
        """Nothing to let go of: one fake serves many frameworks; see ``Transport``."""

    # --- inside --------------------------------------------------------------------------------------------------

    def _on_calls(self, link: MemoryLink, message: framework_pb2.FrameworkCalls) -> None:
        for call in message.calls:
            if link.broken or link not in self._links:
                break
            self._on_call(link, call)
        self._flush()
        self._allocate_soon()

    def _on_call(self, link: MemoryLink, call: framework_pb2.FrameworkCall) -> None:
        framework = self._links[link]
        kind = call.WhichOneof("call")
        if framework is None:
            self._on_hello(link, call.hello if kind == "hello" else None)
            return
        match kind:
            case "set_demand":
                self._sessions.set_demand(framework, call.request_id, call.set_demand)
            case "accept":
                self._on_accept(link, framework, call)
            case "decline":
                self._sessions.decline(framework, call.request_id, call.decline)
            case "kill":
                self._sessions.kill(framework, call.request_id, call.kill)
            case "acknowledge":
                self._sessions.acknowledge(framework, call.acknowledge)
            case "reconcile":
                self._sessions.reconcile(framework, call.request_id, call.reconcile)
            case "teardown":
                self._on_teardown(framework, call.request_id)
            case _:
                self._end_session(link, ErrorCode.INVALID, f"expected a call after Hello, got {kind}")

    def _on_hello(self, link: MemoryLink, hello: framework_pb2.Hello | None) -> None:
        try:
            if hello is None:
                raise Refusal(ErrorCode.INVALID, "expected Hello first")
            if hello.last_epoch > self.epoch:
                raise Refusal(ErrorCode.OLD_EPOCH, f"this master has epoch {self.epoch}")
            framework = self._sessions.greet(hello)
        except Refusal as refusal:
            self._end_session(link, refusal.code, refusal.detail)
            return
        if framework.link is not None:
            self._end_session(framework.link, ErrorCode.SUPERSEDED, "a newer session took over")
        framework.link = link
        self._links[link] = framework
        event = fake_wire.welcome(
            framework.framework_id,
            epoch=self.epoch,
            heartbeat_ms=self._heartbeat_ms,
            failover_ms=hello.failover_timeout_ms or self._failover_ms,
            role=framework.role,
            custom=self._kinds.custom,
        )
        self._sessions.tell(framework, event)
        self.clock.call_later(self._heartbeat_ms, lambda: self._beat(link))
        self.clock.call_later(0, lambda: self._resend(framework))

    def _on_accept(
        self, link: MemoryLink, framework: FakeFramework, call: framework_pb2.FrameworkCall
    ) -> None:
        launched_first = self._lost_answers.pop(0) if self._lost_answers else None
        if launched_first is False:
            self._on_end(link)
            link.cut("the test lost an accept")
            return
        tasks = self._sessions.accept(framework, call.request_id, call.accept)
        if launched_first:
            self._sessions.outbox = [item for item in self._sessions.outbox if item[0] is not framework]
            self._on_end(link)
            link.cut("the test lost the answer to an accept")
        for task in tasks:
            self._cluster.start(task)

    def _on_teardown(self, framework: FakeFramework, request_id: int) -> None:
        for task in self.tasks:
            if task.framework_id == framework.framework_id:
                self._cluster.kill(task, 0)
        self._sessions.tell(framework, fake_wire.result(request_id))
        self._flush()
        self._sessions.disconnect(framework)
        del self._sessions.frameworks[framework.framework_id]

    def _on_end(self, link: MemoryLink) -> None:
        framework = self._links.pop(link, None)
        if framework is not None and framework.link is link:
            self._sessions.disconnect(framework)
            self._allocate_soon()

    def _end_session(self, link: MemoryLink, code: ErrorCode, detail: str) -> None:
        link.push(framework_pb2.FrameworkEvents(epoch=self.epoch, events=[fake_wire.error(code, detail)]))
        self._on_end(link)
        link.cut(f"{code.value.lower()}: {detail}")

    def _beat(self, link: MemoryLink) -> None:
        framework = self._links.get(link)
        if framework is not None:
            self._sessions.tell(framework, fake_wire.heartbeat(self.clock.unix_ms()))
            self._flush()
            self.clock.call_later(self._heartbeat_ms, lambda: self._beat(link))

    def _resend(self, framework: FakeFramework) -> None:
        """What agents do about statuses nobody acknowledged."""
        waiting = [
            status
            for task in self.tasks
            if task.framework_id == framework.framework_id and task.agent.is_present
            for status in task.unacknowledged
        ]
        if waiting and framework.link is not None:
            self._sessions.tell(framework, fake_wire.statuses(waiting))
            self._flush()
            self.clock.call_later(RESEND_MS, lambda: self._resend(framework))

    def _on_report(self, task: FakeTask, status: TaskStatus) -> None:
        framework = self._sessions.frameworks.get(task.framework_id)
        if framework is not None:
            self._sessions.tell(framework, fake_wire.statuses([status]))
            self._flush_soon()
        if task.is_over:
            for reader in self._readers.pop(task.task_id, ()):
                if not reader.done():
                    reader.set_result(None)

    def _allocate_soon(self) -> None:
        """One cycle for everything that happened at this moment, as a real master batches."""
        if not self._is_allocating:
            self._is_allocating = True
            self.clock.call_later(0, self._allocate)

    def _allocate(self) -> None:
        self._is_allocating = False
        opens_ms = self._sessions.allocate()
        if opens_ms is not None:
            self.clock.call_later(opens_ms - self.clock.now_ms(), self._allocate_soon)
        for framework in self._sessions.frameworks.values():
            if framework.offers:
                self.clock.call_later(self._sessions.lease_ms, self._end_leases)
                break
        self._flush()

    def _end_leases(self) -> None:
        now_ms = self.clock.now_ms()
        for framework in self._sessions.frameworks.values():
            due = [offer for offer in framework.offers.values() if offer.expires_ms <= now_ms]
            self._sessions.rescind(framework, due, "lease ended")
        self._flush()

    def _flush_soon(self) -> None:
        if not self._is_flushing:
            self._is_flushing = True
            self.clock.call_later(0, self._flush)

    def _flush(self) -> None:
        self._is_flushing = False
        outbox, self._sessions.outbox = self._sessions.outbox, []
        batches: dict[MemoryLink, list[framework_pb2.FrameworkEvent]] = {}
        for framework, event in outbox:
            if framework.link is not None:
                batches.setdefault(framework.link, []).append(event)
        for link, events in batches.items():
            link.push(framework_pb2.FrameworkEvents(epoch=self.epoch, events=events))
