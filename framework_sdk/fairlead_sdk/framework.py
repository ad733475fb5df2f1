"""The simple path: give tasks, get results.

The shell around ``Workload``: it feeds session events in, carries actions out, and lets people wait. Offers nobody
needs are declined in the turn they arrive, so that a framework of this kind never sits on resources.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Final, Literal, Self, assert_never
from weakref import WeakKeyDictionary

from fairlead_proto.task_state import TaskState
from fairlead_sdk import sandbox_files
from fairlead_sdk.address import check_master, make_transport
from fairlead_sdk.amounts import parse_duration
from fairlead_sdk.arrays import MEMBER_SUFFIX_LENGTH, Array
from fairlead_sdk.calls import Launch, greeting
from fairlead_sdk.client import MasterClient
from fairlead_sdk.clock import Alarm, wait_until
from fairlead_sdk.errors import Closed, FairleadError, Refused
from fairlead_sdk.events import Connected, Disconnected, Event, SessionOver, Welcome
from fairlead_sdk.handles import (
    ArrayHandle,
    Listener,
    OnLaunch,
    OnProgress,
    OnRetry,
    RunGroup,
    Tally,
    TaskHandle,
)
from fairlead_sdk.jobs import Phase
from fairlead_sdk.output import OutputFollower, OutputFollowers
from fairlead_sdk.task import ATTEMPT_SUFFIX_LENGTH, Task, TaskResult, check_submittable, check_tasks
from fairlead_sdk.transport import Transport
from fairlead_sdk.work_session import WorkSession
from fairlead_sdk.workload import Workload
from fairlead_sdk.workload_actions import (
    Action,
    ArrayEnded,
    EndTasks,
    GiveBack,
    JobEnded,
    JobMoved,
    TakeOffer,
)

UNREACHABLE_TIMEOUT_S: Final = 60.0
"""How long an agent may be away before its tasks are run elsewhere. A host reboots, and a switch restarts, within it."""

CANCEL_MARGIN_MS: Final = 10_000
"""Beyond the longest grace period: how long a cancelled run waits for its tasks to be over."""

GRACE_PERIOD_DEFAULT_MS: Final = 5_000
"""The agents' own default, as the schema states it."""

OnExit = Literal["teardown", "leave"]
Sandboxed = Task | TaskHandle | TaskResult | Launch
"""What names an attempt of a task, whose output may be read: of the first two the latest."""

OnSession = Callable[[Connected | Disconnected], object]


class Framework:
    """A framework that runs tasks and gives their results. Use it as an async context manager.

    Args:
        name: for people.
        master: HOST:PORT, a transport such as ``fairlead_sim.testing.VirtualMaster``, or None for ``FAIRLEAD_MASTER`` and
            then 127.0.0.1:5050.
        role: the account its share is counted on, like ``research/vision``; empty is ``default``.
        weight: of the role, if the role has none yet.
        framework_id: resume this framework, as after a crash of this program; by default a new one is made. What its
            earlier session left running is taken up by the tasks' ids: see ``run``.
        failover_timeout: how long its tasks outlive a lost session, in seconds or text; None is the master's hour.
        principal: who asks, if the master authenticates.
        on_exit: ``teardown`` kills what still runs when the context is left, ``leave`` lets it run on.
        unreachable_timeout: how long a task's agent may be away before the task is run elsewhere.
        connect_timeout: how long to try for the first connection.
        reconnect_timeout: how long to try for a lost one; None is the failover timeout.
        on_session: called on the event loop when the session stands (``Connected``) and when it breaks and is tried
            again (``Disconnected``); must not raise.
    """

    def __init__(
        self,
        name: str,
        *,
        master: str | Transport | None = None,
        role: str = "",
        weight: float | None = None,
        framework_id: str = "",
        failover_timeout: float | str | None = None,
        principal: str = "",
        on_exit: OnExit = "teardown",
        unreachable_timeout: float | str = UNREACHABLE_TIMEOUT_S,
        connect_timeout: float | str = 10.0,
        reconnect_timeout: float | str | None = None,
        on_session: OnSession | None = None,
    ) -> None:
        if on_exit not in ("teardown", "leave"):
            raise ValueError(f"on_exit: expected teardown or leave, got {on_exit!r}")
        check_master(master)
        if on_session is not None and not callable(on_session):
            raise ValueError(f"on_session: expected a function of one event, got {on_session!r}")
        self.name = name
        self.on_exit: OnExit = on_exit
        self._hello = greeting(
            framework_id=framework_id,
            name=name,
            role=role,
            weight=weight or 0.0,
            principal=principal,
            failover_timeout_ms=parse_duration("failover_timeout", failover_timeout),
        )
        self._master = master
        self._on_session = on_session
        self._connect_timeout_ms = parse_duration("connect_timeout", connect_timeout)
        self._reconnect_timeout_ms = parse_duration("reconnect_timeout", reconnect_timeout)
        self._workload = Workload(
            unreachable_timeout_ms=parse_duration("unreachable_timeout", unreachable_timeout),
            is_resumed=bool(framework_id),
        )
        self._client: MasterClient | None = None
        self._work: WorkSession | None = None
        self._welcome: Welcome | None = None
        self._listeners: dict[str, Listener] = {}
        self._groups: dict[RunGroup, None] = {}
        self._arrays: dict[str, ArrayHandle] = {}
        self._attempt_ids: WeakKeyDictionary[Task, str] = WeakKeyDictionary()
        self._outputs = OutputFollowers()
        self._id_prefix = ""
        self._ids_made = 0
        self._over: FairleadError | None = None
        self._deadline = Alarm(self._on_deadline)

    # --- life ----------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Connect to the master.

        Raises:
            MasterUnreachable: nobody answered in time.
            Refused: the master will not have this framework; the text says why.
            FrameworkExpired: the framework id given is not known any more.
        """
        assert self._client is None, "a framework is started once"
        transport = make_transport(self._master)
        self._client = MasterClient(
            transport,
            self._hello,
            self._on_events,
            connect_timeout_ms=self._connect_timeout_ms,
            reconnect_timeout_ms=self._reconnect_timeout_ms,
        )
        self._work = WorkSession(self._client.state, self._workload)
        self._welcome = await self._client.start()
        self._id_prefix = f"{self._welcome.framework_id}-"

    async def close(self) -> None:
        """End the session, by default with all its tasks; a second call does nothing."""
        if self._client is None:
            return
        try:
            await self._client.close(teardown=self.on_exit == "teardown")
        finally:
            self._end_session(Closed(f"framework {self.framework_id} was closed"))

    @property
    def framework_id(self) -> str:
        """The id the master gave; empty before the session stands."""
        return "" if self._welcome is None else self._welcome.framework_id

    @property
    def role(self) -> str:
        """The role as the master has it; empty before the session stands."""
        return "" if self._welcome is None else self._welcome.role

    # --- work ----------------------------------------------------------------------------------------------------

    def submit(self, task: Task) -> TaskHandle:
        """Have one task run, and return a handle to await.

        Raises:
            ValueError: the task's id is in use or too long, or a custom resource is unknown to this cluster.
            FairleadError: the session is over; the kind says why.
        """
        job_id = self._new_id(task)
        handle = TaskHandle(self, job_id, task)
        self._take_on(job_id, task, handle)
        self._settle([])
        return handle

    def submit_array(
        self,
        array: Array,
        *,
        on_launch: OnLaunch | None = None,
        on_progress: OnProgress | None = None,
        on_retry: OnRetry | None = None,
    ) -> ArrayHandle:
        """Have the tasks of an array run, and return a handle that gives their results; callbacks as of ``run``.

        Raises:
            ValueError: as ``submit``.
            FairleadError: the session is over; the kind says why.
        """
        if type(array) is not Array:
            raise ValueError(f"array: expected an Array, got {array!r}")
        array_id = self._new_id(array.template, MEMBER_SUFFIX_LENGTH)
        handle = ArrayHandle(self, array_id, array, Tally(on_launch, on_progress, on_retry))
        clock = self._session.transport.clock
        actions = self._workload.submit_array(array_id, array, unix_ms=clock.unix_ms())
        self._listeners[array_id] = self._arrays[array_id] = handle
        self._settle(actions)
        return handle

    async def run(
        self,
        tasks: Iterable[Task],
        *,
        on_launch: OnLaunch | None = None,
        on_progress: OnProgress | None = None,
        on_retry: OnRetry | None = None,
    ) -> list[TaskResult]:
        """Run all tasks and return their results, in the tasks' order.

        A task that fails is a result, not an error, and so is one that is larger than every agent: its state is ERROR,
        its reason INFEASIBLE. With no agent registered yet, it waits. If the awaiting task is cancelled, or an error is
        raised, the tasks that are not over are killed first, and waited for as long as their grace periods allow.

        A framework that is resumed (``framework_id``) first asks where each task is, by its ``task_id``: one that runs is
        waited for, one that ended meanwhile gives its result, and only one nobody knows is launched. So a program that
        wants to take up its work keeps the framework's id and the ids of its tasks, says the same tasks again, and keeps
        results it was given: a master remembers the last 10,000 ends, and none over its own restart.

        Args:
            tasks: what to run; they may differ in their demands.
            on_launch: called with the ``Launch`` of each attempt that an agent has; what it writes may be read by it.
            on_progress: called with a ``Progress`` after changes, at most once for each message of the master.
            on_retry: called with the ``TaskResult`` of each attempt after which its task is run again.

        Raises:
            Refused: the master will not have the demand.
            FairleadError: the session ended for good; the kind says why.
        """
        group = self._start_group(tasks, Tally(on_launch, on_progress, on_retry))
        try:
            await asyncio.shield(group.over)
            if group.error is not None:
                raise group.error
        except BaseException:
            await self._abandon(group)
            raise
        finally:
            del self._groups[group]
        return [result for result in group.results if result is not None]

    async def as_completed(
        self,
        tasks: Iterable[Task],
        *,
        on_launch: OnLaunch | None = None,
        on_progress: OnProgress | None = None,
        on_retry: OnRetry | None = None,
    ) -> AsyncIterator[TaskResult]:
        """Run all tasks and give each result as it comes; leaving the loop early kills the rest. Arguments as ``run``.

        Raises:
            Refused, FairleadError: as ``run``.
        """
        group = self._start_group(tasks, Tally(on_launch, on_progress, on_retry))
        try:
            for _ in range(len(group.results)):
                next_result = asyncio.ensure_future(group.finished.get())
                waited_for: set[asyncio.Future[Any]] = {next_result, group.over}
                try:
                    await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
                    if group.error is not None:
                        raise group.error
                    yield await next_result
                finally:
                    next_result.cancel()
        except BaseException:
            await self._abandon(group)
            raise
        finally:
            del self._groups[group]

    async def kill(self, handles: Iterable[TaskHandle]) -> None:
        """End these tasks and wait until they are over."""
        handles = list(handles)
        self.request_kill([handle.task_id for handle in handles])
        await asyncio.gather(*handles, return_exceptions=True)

    def request_kill(self, job_ids: Sequence[str]) -> None:
        """Have tasks ended, by the ids of their first attempts; those that are over are left out."""
        self._settle(self._workload.kill(job_ids))

    def request_array_kill(self, array_id: str, index: int | None = None) -> None:
        """Have one member of an array ended, or all; those that are over are left out."""
        self._settle(self._workload.kill_array(array_id, index))

    def state_of(self, job_id: str) -> tuple[Phase, TaskState] | None:
        """Where a task is, by the id of its first attempt; None if it is over."""
        return self._workload.state_of(job_id)

    # --- sandboxes -----------------------------------------------------------------------------------------------

    async def stdout(self, task: Sandboxed) -> str:
        """What the task wrote to its standard output so far, undecodable bytes replaced.

        Raises:
            Refused: its sandbox is gone, or it never had one.
            MasterUnreachable: no master there.
        """
        return (await self.read_file(task, "stdout")).decode(errors="replace")

    async def stderr(self, task: Sandboxed) -> str:
        """What the task wrote to its standard error so far; as ``stdout``."""
        return (await self.read_file(task, "stderr")).decode(errors="replace")

    async def read_file(self, task: Sandboxed, path: str) -> bytes:
        """A file of the task's sandbox, whole; as ``stdout``. Asks nobody if the result says that nothing was written."""
        if isinstance(task, TaskResult) and task.usage is not None and task.usage.written_bytes(path) == 0:
            return b""
        transport = self._session.transport
        file = self._sandbox_file(task, path)
        return await sandbox_files.read_whole(transport.read_file, file, address=transport.address)

    def logs(self, task: Sandboxed, *, path: str = "stdout") -> AsyncIterator[bytes]:
        """What the task writes, as it writes it, until it is over; follows the attempt that is current now."""
        transport = self._session.transport
        file = self._sandbox_file(task, path)
        return sandbox_files.follow(transport.read_file, file, clock=transport.clock, jitter=transport.jitter)

    def follow_output(self) -> OutputFollower:
        """What tasks launched from now on write, as they write it, until the framework ends: see ``OutputFollower``."""
        return self._outputs.add(self._session.transport, self.framework_id)

    def _sandbox_file(self, task: Sandboxed, path: str) -> sandbox_files.SandboxFile:
        return sandbox_files.SandboxFile(
            framework_id=self.framework_id,
            task_id=self._attempt_id(task),
            path=path,
            agent_id=task.agent_id if isinstance(task, TaskResult) else "",
        )

    def _attempt_id(self, task: Sandboxed) -> str:
        if isinstance(task, TaskResult | Launch):
            return task.task_id
        wanted = task.task if isinstance(task, TaskHandle) else task
        attempt_id = self._attempt_ids.get(wanted)
        if attempt_id is None:
            raise Refused("UNKNOWN", "the task was never launched, so it has no sandbox")
        return attempt_id

    # --- inside --------------------------------------------------------------------------------------------------

    @property
    def _session(self) -> MasterClient:
        if self._client is None:
            raise Closed("the framework was not started: use `async with Framework(...)`")
        if self._over is not None:
            raise self._over
        return self._client

    def _new_id(self, task: Task, suffix_length: int = ATTEMPT_SUFFIX_LENGTH) -> str:
        assert self._session is self._client
        welcome = self._welcome
        assert welcome is not None, "a session without a Welcome"
        check_submittable(task, welcome.custom_resources, suffix_length)
        if task.task_id:
            return task.task_id
        if self._hello.framework_id:
            raise ValueError(
                f"task_id: expected one, got none for {task.name or task.command[0]}: framework {self.framework_id} is "
                "resumed, and only by the id it had a task that still runs is known, instead of being run twice"
            )
        self._ids_made += 1
        return f"{self._id_prefix}{self._ids_made}"

    def _take_on(self, job_id: str, task: Task, listener: Listener) -> None:
        self._workload.submit(job_id, task, unix_ms=self._session.transport.clock.unix_ms())
        self._listeners[job_id] = listener

    def _start_group(self, tasks: Iterable[Task], tally: Tally) -> RunGroup:
        tasks = check_tasks(tasks)
        group = RunGroup(len(tasks), tally)
        ids = [self._new_id(task) for task in tasks]
        taken = {task_id for task_id in ids if task_id in self._workload}
        if taken or len(set(ids)) < len(ids):
            raise ValueError(
                f"task_id: expected ids not in use, each once, got {sorted(taken) or 'one of them twice'}"
            )
        self._groups[group] = None
        for job_id, task in zip(ids, tasks, strict=True):
            group.add(job_id)
            self._take_on(job_id, task, group)
        group.filled()
        self._settle([])
        return group

    async def _abandon(self, group: RunGroup) -> None:
        """Kill what is left of a run and wait for it, bounded; cancelled again while waiting, wait no longer."""
        job_ids = group.job_ids
        if not job_ids or self._over is not None:
            return
        tasks = map(self._workload.task_of, job_ids)
        grace_ms = max(task.grace_period_ms or GRACE_PERIOD_DEFAULT_MS for task in tasks)
        self.request_kill(job_ids)
        await wait_until(self._session.transport.clock, group.settled, grace_ms + CANCEL_MARGIN_MS)

    def _on_events(self, events: Sequence[Event]) -> None:
        assert self._work is not None, "an event before the session"
        now_ms, work = self._now_ms(), self._work
        actions: list[Action] = []
        for event in events:
            if isinstance(event, SessionOver):
                self._settle(actions)
                self._end_session(event.error)
                return
            actions.extend(work.happened(event, now_ms))
            self._outputs.heard(event)
            if isinstance(event, Connected | Disconnected) and self._on_session is not None:
                self._on_session(event)
        self._settle(actions)

    def _settle(self, actions: Sequence[Action]) -> None:
        """Carry actions out, announce the demand they leave, and tell whoever waits."""
        if self._work is not None:
            self._work.call(actions)
        self._outputs.happened(actions)
        for action in actions:
            self._tell(action)
        if self._client is None or self._work is None or self._over is not None:
            return
        self._work.say_what_is_wanted()
        self._client.flush()
        self._deadline.set(self._session.transport.clock, self._workload.next_deadline_ms())
        waiting: list[RunGroup | ArrayHandle] = [*self._groups, *self._arrays.values()]
        for each in waiting:
            each.tell_progress()

    def _tell(self, action: Action) -> None:
        """Note what an action means to whoever waits here; what it means to the master is said elsewhere."""
        match action:
            case TakeOffer():
                for launch in action.launches:
                    self._note_attempt(launch)
            case GiveBack() | EndTasks():
                pass
            case JobMoved():
                if action.launch is not None:
                    self._note_attempt(action.launch)
                self._listeners[action.array_id or action.job_id].moved(action)
            case JobEnded() if action.array_id:
                self._listeners[action.array_id].ended(action.job_id, action.outcome)
            case JobEnded():
                self._listeners.pop(action.job_id).ended(action.job_id, action.outcome)
            case ArrayEnded():
                del self._listeners[action.array_id]
                handle = self._arrays.pop(action.array_id)
                handle.over(action.error)
                handle.tell_progress()
            case _:
                assert_never(action)

    def _note_attempt(self, launch: Launch) -> None:
        if launch.member is None:
            self._attempt_ids[launch.task] = launch.task_id

    def _end_session(self, error: FairleadError) -> None:
        if self._over is not None:
            return
        self._over = error
        self._deadline.cancel()
        for action in self._workload.fail_all(error):
            self._tell(action)
        self._outputs.close()

    def _on_deadline(self) -> None:
        self._settle(self._workload.expire(self._now_ms()))

    def _now_ms(self) -> int:
        assert self._client is not None, "an event before the session"
        return self._client.transport.clock.now_ms()
