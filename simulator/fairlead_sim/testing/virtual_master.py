"""A live master's core with agents' cores in memory: give it to ``Framework`` or ``run_scheduler`` as ``master``, and drive its clock."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final, TypeVar

from fairlead_agent.core.records import IdentityTaken
from fairlead_master.core import events
from fairlead_master.core.settings import CoreSettings
from fairlead_master.core.state import Framework, FrameworkState
from fairlead_proto.codes import DeclineScope, ErrorCode, Rejection
from fairlead_proto.framework_calls import OffersDeclined
from fairlead_proto.framework_events import AnswerAccept, LaunchAnswer
from fairlead_proto.ids import AgentId, FrameworkId, TaskId
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.v1 import files_pb2
from fairlead_sdk.amounts import Number, parse_amounts
from fairlead_sdk.clock import wait_until
from fairlead_sdk.errors import LinkBroken, Refused
from fairlead_sim.testing.memory_link import MemoryLink
from fairlead_sim.testing.outcomes import Matcher, Outcome, Script
from fairlead_sim.testing.virtual_clock import VirtualClock
from fairlead_sim.testing.virtual_tasks import TaskBook, VirtualAgent, VirtualTask
from fairlead_sim.virtual_cluster.agent import AgentObservers
from fairlead_sim.virtual_cluster.cluster import Cluster, Observers
from fairlead_sim.virtual_cluster.master import MasterObservers
from fairlead_sim.virtual_cluster.network import NetworkOptions
from fairlead_sim.virtual_cluster.processes import HostOptions

_T = TypeVar("_T")

FINISH_LIMIT_MS: Final = 24 * 3600 * 1000
"""How far ``finish`` moves the clock before it says that this will never end."""

CANCEL_LIMIT_MS: Final = 120_000
"""How far the clock is moved for a cancelled task to clean up."""

AT_ONCE: Final = CoreSettings(allocation_window_ms=0, busy_window_ms=0)
"""A live master's defaults, but for the milliseconds it gathers events for: what needs no time takes none."""

_REDIAL: Final = NetworkOptions(delay_max_ms=0, reconnect_min_ms=500, reconnect_max_ms=500)
_DIAL_NOW: Final = replace(_REDIAL, reconnect_min_ms=0, reconnect_max_ms=0)
_FOR_EVER_MS: Final = 10 * 365 * 24 * 3600 * 1000


class VirtualMaster:
    """A small cluster with a clock of its own, as a transport of the SDK.

    Args:
        custom_resources: names this cluster knows beyond cpus, mem, disk and gpus.
        settings: of the master's core: leases, timeouts, the policy.
        seed: of the jitter in waiting times.
    """

    def __init__(
        self, *, custom_resources: Sequence[str] = (), settings: CoreSettings = AT_ONCE, seed: int = 0
    ) -> None:
        self.clock = VirtualClock()
        self.jitter: Callable[[], float] = random.Random(seed).random  # noqa: S311 - chance that repeats
        self.address = "memory"
        self._kinds = ResourceKinds(tuple(sorted(custom_resources)))
        self._settings = settings
        self._script = Script()
        self._agents: dict[str, VirtualAgent] = {}
        self._tasks = TaskBook(self.clock, self._script, self._agents)
        self._cluster = Cluster(
            self.clock.engine,
            kinds=self._kinds,
            settings=settings,
            network=_REDIAL,
            observers=Observers(
                MasterObservers(self._tasks.saw_master), AgentObservers(self._tasks.saw_agent)
            ),
        )
        self._cluster.start()
        self._links: list[MemoryLink] = []
        self._rejections: list[Rejection] = []
        self._lost_answers: list[bool] = []

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
    ) -> VirtualAgent:
        """Let a host join, with resources as a ``Task`` states them."""
        if agent_id in self._cluster.agents:
            raise ValueError(f"agent_id: expected a new one, got {agent_id!r}")
        amounts = parse_amounts(cpus=cpus, mem=mem, gpus=gpus, disk=disk, custom=custom or {})
        total = self._kinds.vector(amounts.as_dict())
        options = HostOptions(start_min_ms=0, start_max_ms=0, end_ms=0, executor_ms=0)
        host = self._cluster.add_agent(agent_id, total, attributes=attributes, options=options)
        # As one whose id was given by an earlier master: tests want to name it.
        identity = IdentityTaken(agent_id=AgentId(agent_id), boot_id="boot-1", incarnation=0, epoch=0)
        host.journal.replace([identity])
        self._cluster.processes[agent_id].program_of = self._tasks.program_of
        host.retell = self._tasks.retold
        named = {**(attributes or {}), "hostname": agent_id, "agent_id": agent_id}
        agent = VirtualAgent(agent_id=agent_id, total=total, attributes=named, host=host)
        self._agents[agent_id] = agent
        self._cluster.network.options = _DIAL_NOW
        host.start()
        self._cluster.network.options = _REDIAL
        return agent

    def script(self, which: Matcher, *outcomes: Outcome) -> None:
        """Say how tasks go: their id, name or a function of their description; then one outcome a launch.

        The last outcome holds for every later launch. Earlier rules come first; without one, ``Outcome()`` holds.
        """
        self._script.add(which, outcomes)

    @property
    def agents(self) -> Mapping[str, VirtualAgent]:
        """The agents that joined and were not lost, by id."""
        return {agent_id: agent for agent_id, agent in self._agents.items() if agent.host.machine is not None}

    @property
    def tasks(self) -> list[VirtualTask]:
        """Every task ever launched, in order."""
        return list(self._tasks.by_key.values())

    @property
    def frameworks(self) -> Mapping[str, Framework]:
        """Every framework the master knows and that is not over, by id; none while it is down."""
        machine = self._cluster.master.machine
        known = machine.master.frameworks if machine is not None else {}
        return {i: known[i] for i in known if known[i].state is not FrameworkState.COMPLETED}

    def task(self, task_id: str) -> VirtualTask:
        """The task launched under this id.

        Raises:
            KeyError: none was.
        """
        for task in self.tasks:
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

    def reject_next_accept(self, rejection: Rejection = Rejection.EXPIRED) -> None:
        """Have every task of the next accept rejected; a second call is for the accept after it."""
        self._rejections.append(rejection)

    def lose_next_accept(self, *, launched: bool) -> None:
        """Break the stream instead of answering the next accept, before or after its tasks were launched."""
        self._lost_answers.append(launched)

    def cut_agent(self, agent_id: str) -> None:
        """Part an agent, with its tasks, from the master, until ``return_agent``."""
        self._cluster.network.cut(agent_id, _FOR_EVER_MS)
        self._cluster.network.break_all(agent_id)

    def return_agent(self, agent_id: str) -> None:
        """Let an agent that was cut off reach the master again; it dials twice a second."""
        self._cluster.network.cut(agent_id, 0)

    def lose_agent(self, agent_id: str) -> None:
        """Have an agent's host burn down; the master gives it up when its settings say so."""
        agent = self._agents[agent_id]
        agent.host.reboot()
        self._tasks.lose_all_on(agent)

    def break_links(self, reason: str = "the test broke the stream") -> None:
        """Break every stream of a framework; the master stays up."""
        links, self._links = self._links, []
        for link in links:
            link.break_off(reason)

    def restart(self, *, down_ms: int = 0, agents_away_ms: int = 0) -> None:
        """Restart the master: streams break, offers are void, the epoch grows, tasks run on.

        Args:
            down_ms: how long it cannot be reached.
            agents_away_ms: how long after that its agents cannot reach it.
        """
        self.break_links("the master went away")
        self._cluster.crash_master(down_ms)
        for agent_id in self._cluster.agents:
            self._cluster.network.cut(agent_id, down_ms + agents_away_ms)

    def refuse(self, code: ErrorCode, detail: str = "as the test asked") -> None:
        """End every session of a framework with this error."""
        links, self._links = self._links, []
        for link in links:
            link.refuse(code, detail)

    # --- what a test may want to be sure of ----------------------------------------------------------------------

    def assert_at_rest(self) -> None:
        """Fail unless nothing runs or is offered, all reports are acknowledged, and every agent's resources are free.

        Acknowledgements wait up to 20 ms for company, so advance the clock by that first. Reports to frameworks that are
        over are the master's to acknowledge, when they are repeated, and are left out.
        """
        assert not self.running(), f"still running: {self.running()}"
        known = self.frameworks
        for task in self.tasks:
            assert task.framework_id not in known or not task.unacknowledged, (
                f"{task.task_id} has unacknowledged reports"
            )
        machine = self._cluster.master.machine
        assert machine is not None, "the master is down"
        for offer in machine.master.offers.values():
            raise AssertionError(f"{offer.framework.framework_id} still holds {offer.offer_id}")
        for agent in machine.master.agents.values():
            free = machine.master.allocator.free(agent.agent_id)
            held = self._kinds.format(tuple(a - b for a, b in zip(agent.total, free, strict=True)))
            assert free == agent.total or agent.session is None, f"{agent.agent_id} still holds {held}"

    def assert_launched_once(self) -> None:
        """Fail if two attempts of one task ran at the same time (``x`` and ``x.2`` are attempts of one task)."""
        spans: dict[tuple[str, str], list[VirtualTask]] = {}
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
        link = MemoryLink(self._cluster, self.clock, self._take_accept)
        self._links = [other for other in self._links if not other.broken]
        self._links.append(link)
        return link

    def follow_output(self, request: files_pb2.FollowRequest) -> AsyncIterator[files_pb2.Output]:
        """Refuse, as a master that knows no such streams: what scripted tasks write is read when they are over."""
        raise Refused("INVALID", f"framework {request.framework_id}: a cluster in memory pushes no output")

    async def read_file(self, request: files_pb2.ReadRequest) -> files_pb2.ReadResponse:
        """Read a scripted task's standard output or error; see ``Transport``."""
        if self._cluster.master.machine is None:
            raise LinkBroken("the master is down")
        task = self._tasks.by_key.get((FrameworkId(request.framework_id), TaskId(request.task_id)))
        if task is None or request.path not in ("stdout", "stderr"):
            raise Refused("UNKNOWN", f"{request.task_id}: no file {request.path!r}")
        if not task.is_over and request.wait_ms:
            await wait_until(self.clock, task.when_over(), request.wait_ms)
        data = task.read(request.path)
        start = min(request.offset, len(data)) if request.offset >= 0 else max(0, len(data) + request.offset)
        piece = data[start : start + (request.length or 64 * 1024)]
        return files_pb2.ReadResponse(
            offset=start,
            data=piece,
            size=len(data),
            complete=task.is_over and start + len(piece) == len(data),
        )

    async def close(self) -> None:
        """Nothing to let go of: one virtual master serves many frameworks; see ``Transport``."""

    # --- inside --------------------------------------------------------------------------------------------------

    def _take_accept(self, link: MemoryLink, accept: events.OfferAccepted) -> bool:
        """Do with an accept what the test asked for; False if it asked for nothing."""
        if self._rejections:
            self._reject(link, accept, self._rejections.pop(0))
            return True
        if not self._lost_answers:
            return False
        if self._lost_answers.pop(0):
            link.stream.send_up(accept)
            link.abort("the test lost the answer to an accept")
        else:
            link.break_off("the test lost an accept")
        return True

    def _reject(self, link: MemoryLink, accept: events.OfferAccepted, rejection: Rejection) -> None:
        """Answer for the master, which takes the offer for declined and pauses the class as after a rejection."""
        decline = OffersDeclined(
            session=accept.session,
            request_id=accept.request_id,
            offer_ids=(accept.offer_id,),
            reason="as the test asked",
            scope=DeclineScope.CLASS,
            ttl_ms=self._settings.rejected_pause_ms,
        )
        answers = tuple(LaunchAnswer(task.task_id, rejection, "as the test asked") for task in accept.tasks)
        link.stream.send_up(decline)
        link.stream.push(
            AnswerAccept(
                session=accept.session,
                request_id=accept.request_id,
                offer_id=accept.offer_id,
                answers=answers,
            )
        )
