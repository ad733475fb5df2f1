"""A framework of a simulated cluster: the session and the workload of the SDK, and a program that keeps a table of its jobs.

The table is written down as a careful program would keep it: a crash loses the session and the workload, and neither the
framework's id nor what the jobs have come to. Started again, it resumes by that id; when the master has given it up for
good, it does what is left as a new framework. What chance may have it do to offers is what programs do that are slow,
choosy, or hang.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from fairlead_proto.peers import Unknowns
from fairlead_proto.resources import ResourceKinds, Vector
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.v1 import framework_pb2
from fairlead_sdk.calls import Scope, greeting
from fairlead_sdk.client import ACKNOWLEDGE_MS
from fairlead_sdk.errors import FrameworkExpired, LinkBroken, Refused
from fairlead_sdk.events import Event, Offer, OffersReceived, SessionOver
from fairlead_sdk.session_state import Phase, SessionState
from fairlead_sdk.task import Task, TaskResult
from fairlead_sdk.wire import read_events, write_batches
from fairlead_sdk.work_session import WorkSession
from fairlead_sdk.workload import Workload
from fairlead_sdk.workload_actions import Action, JobEnded
from fairlead_sim.engine import Alarm
from fairlead_sim.virtual_cluster.framework_stream import FrameworkStream
from fairlead_sim.virtual_cluster.network import Network

RETRIES: Final = 30
"""Of a job whose tasks get lost: more than a run has faults that hit one."""

RETRIED_REASONS: Final = (
    Reason.KILLED_BY_OPERATOR,
    Reason.FRAMEWORK_REMOVED,
    Reason.AGENT_REMOVED,
    Reason.INFEASIBLE,
    # Here, processes die of signals only when somebody asks for it; an agent that crashed may have forgotten who.
    Reason.SIGNALED,
)
"""Ends that others brought about, and that say nothing of the job: it is done again, under a name of its own."""

AGAIN_MS: Final = 1_000
"""Until then."""


@dataclass(slots=True, eq=False, kw_only=True)
class Job:
    """A piece of work, and what has become of it."""

    name: str
    unit: Vector
    command: tuple[str, ...]
    repeats: int = 0
    """How often it was done again."""
    result: TaskResult | None = None
    """Of the job; set once."""

    @property
    def task_id(self) -> str:
        """Of its first attempt."""
        return f"{self.name}-{self.repeats}" if self.repeats else self.name

    @property
    def end(self) -> TaskState | None:
        """Where it ended; None before."""
        return None if self.result is None else self.result.state

    def task(self) -> Task:
        """The task that does it."""
        cpus, mem, disk, gpus = self.unit
        return Task(
            self.command,
            cpus=cpus / 1000,
            mem=mem,
            disk=disk,
            gpus=gpus / 1000,
            name=self.name,
            task_id=self.task_id,
            retries=RETRIES,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkOptions:
    """How a framework behaves, in milliseconds and fractions of offers."""

    think_max_ms: int = 0
    """From an offer to the answer; longer than a lease, some answers come too late."""
    decline_fraction: float = 0.0
    ignore_fraction: float = 0.0
    decline_ttl_ms: int = 500
    failover_timeout_ms: int = 0
    """0: the master's default."""
    unreachable_timeout_ms: int = 15_000
    """Then the task is given up and replaced."""


class SimulatedFramework:
    """A framework's program, which can crash and come back."""

    def __init__(
        self,
        name: str,
        network: Network,
        kinds: ResourceKinds,
        options: FrameworkOptions,
        *,
        role: str,
        jobs: Iterable[Job],
        tell: Callable[[str, Event], None],
    ) -> None:
        self.name = name
        self.jobs = {job.name: job for job in jobs}
        self.framework_id = ""
        self.former_ids: list[str] = []
        """Under which it was given up by the master."""
        self.crashes = 0
        self.is_up = False
        self._role = role
        self._network = network
        self._engine = network.engine
        self._kinds = kinds
        self._options = options
        self._tell = tell
        self._life = 0
        self._work = self._begin()
        self._by_task: dict[str, Job] = {}
        self._stream: FrameworkStream | None = None
        self._is_acknowledging = False
        self._alarm = Alarm(self._engine, self._expire)

    @property
    def is_done(self) -> bool:
        """Whether every job has ended."""
        return all(job.result is not None for job in self.jobs.values())

    def state_of(self, name: str) -> tuple[str, TaskState] | None:
        """Where a job is, in the SDK's words, with the task state last heard of; None if it is over."""
        state = self._work.workload.state_of(self.jobs[name].task_id)
        return None if state is None else (state[0].value, state[1])

    def start(self) -> None:
        """Start the program."""
        assert not self.is_up, f"framework {self.name} is running"
        self._life += 1
        self.is_up = True
        self._resume()

    def crash(self) -> None:
        """Kill the program."""
        self._life += 1
        self.crashes += 1
        self.is_up = False
        self._is_acknowledging = False
        self._alarm.move(None)
        self._drop_stream()

    def add(self, job: Job) -> None:
        """One more job."""
        self.jobs[job.name] = job
        if self.is_up:
            self._submit(job)
            self._settle([])

    # --- the program ---

    def _begin(self) -> WorkSession:
        hello = greeting(
            framework_id=self.framework_id,
            name=self.name,
            role=self._role,
            failover_timeout_ms=self._options.failover_timeout_ms,
        )
        workload = Workload(
            unreachable_timeout_ms=self._options.unreachable_timeout_ms,
            is_resumed=bool(self.framework_id),
        )
        return WorkSession(SessionState(hello), workload)

    def _resume(self) -> None:
        """Take up all work, under the framework's id if it has one, and connect."""
        self._work = self._begin()
        for job in self.jobs.values():
            if job.result is None:
                self._submit(job)
        self._settle([])
        self._later(self._network.reconnect_ms(), self._dial)

    def _submit(self, job: Job) -> None:
        self._by_task[job.task_id] = job
        self._work.workload.submit(job.task_id, job.task(), unix_ms=self._engine.now_ms)

    def _ended(self, ended: JobEnded) -> None:
        job = self._by_task[ended.job_id]
        result = ended.outcome
        assert isinstance(result, TaskResult), f"job {job.name} ended without a result: {result}"
        assert job.result is None, f"job {job.name} ended twice: {job.result}, {result}"
        if result.reason in RETRIED_REASONS:
            job.repeats += 1
            self._later(AGAIN_MS, partial(self._do_again, job))
        else:
            job.result = result

    def _do_again(self, job: Job) -> None:
        # Resumed meanwhile, it was submitted with the others.
        if job.result is None and job.task_id not in self._work.workload:
            self._submit(job)
            self._settle([])

    def _later(self, delay_ms: int, happen: Callable[[], None]) -> None:
        life = self._life
        self._engine.after(delay_ms, lambda: happen() if life == self._life else None)

    # --- the session ---

    def _dial(self) -> None:
        if self._stream is not None:
            return
        stream = FrameworkStream(
            self._network,
            self.name,
            self._kinds,
            received=self._received,
            ended=lambda: self._broken("the stream broke"),
        )
        if not stream.is_open:
            self._later(self._network.reconnect_ms(), self._dial)
            return
        self._stream = stream
        self._work.session.link_opened()
        self._write()

    def _drop_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.break_off()

    def _broken(self, reason: str) -> None:
        self._drop_stream()
        self._happened(self._work.session.link_broken(reason))
        self._later(self._network.reconnect_ms(), self._dial)

    def _received(self, message: framework_pb2.FrameworkEvents) -> None:
        if self._stream is None:
            return
        try:
            happened = self._work.session.receive(message.epoch, read_events(message, Unknowns()))
        except LinkBroken as trouble:
            self._broken(str(trouble))
            return
        self.framework_id = self._work.session.framework_id
        self._happened(happened)

    def _happened(self, happened: Iterable[Event]) -> None:
        decided: list[Action] = []
        for event in happened:
            self._tell(self.name, event)
            if isinstance(event, SessionOver):
                self._settle(decided)
                self._over(event)
                return
            decided += self._work.happened(self._seen(event), self._engine.now_ms)
        self._settle(decided)

    def _over(self, over: SessionOver) -> None:
        self._life += 1
        self._is_acknowledging = False
        self._drop_stream()
        if isinstance(over.error, FrameworkExpired):
            self.former_ids.append(self.framework_id)
            self.framework_id = ""
            self._resume()
        else:
            # A master without room to write takes nobody new. As whoever supervises programs would, after a moment.
            assert isinstance(over.error, Refused), f"framework {self.name}: {over.error}"
            self._later(AGAIN_MS, self._resume)

    def _seen(self, event: Event) -> Event:
        if not isinstance(event, OffersReceived):
            return event
        return OffersReceived(tuple([offer for offer in event.offers if self._is_looked_at(offer)]))

    def _is_looked_at(self, offer: Offer) -> bool:
        """Whether the workload decides on an offer now; chance may have it ignored, declined, or put off."""
        options, network = self._options, self._network
        if network.happens(options.ignore_fraction):
            return False
        if network.happens(options.decline_fraction):
            scope = self._engine.random.choice(list(Scope))
            self._work.session.decline(
                (offer.offer_id,), reason="no use for it now", scope=scope, ttl_ms=options.decline_ttl_ms
            )
            return False
        think_ms = network.draw(0, options.think_max_ms)
        if think_ms:
            self._later(think_ms, partial(self._look_at, offer, self._stream))
        return not think_ms

    def _look_at(self, offer: Offer, stream: FrameworkStream | None) -> None:
        # Taken back meanwhile it is answered all the same: the master must know what to say.
        if stream is self._stream and self._work.session.phase is Phase.OPEN:
            self._settle(self._work.happened(OffersReceived((offer,)), self._engine.now_ms))

    def _settle(self, decided: Iterable[Action]) -> None:
        """Carry out what was decided, and say what is wanted."""
        decided = list(decided)
        self._work.call(decided)
        for action in decided:
            if isinstance(action, JobEnded):
                self._ended(action)
        self._work.say_what_is_wanted()
        self._write()
        self._alarm.move(self._work.workload.next_deadline_ms())

    def _write(self) -> None:
        """Send what waits; acknowledgements alone wait for company, as live."""
        session = self._work.session
        if session.outgoing_count:
            self._send()
        elif session.has_outgoing() and not self._is_acknowledging:
            self._is_acknowledging = True
            self._later(ACKNOWLEDGE_MS, self._acknowledge)

    def _acknowledge(self) -> None:
        self._is_acknowledging = False
        self._send()

    def _send(self) -> None:
        stream = self._stream
        if stream is not None:
            for batch in write_batches(self._work.session.take_outgoing(), self._work.session.peer):
                stream.send(batch)

    def _expire(self) -> None:
        self._settle(self._work.workload.expire(self._engine.now_ms))
