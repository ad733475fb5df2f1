"""A whole cluster on this host: one master and some agents as child processes, for `up`, demos, benchmarks and tests.

    with LocalCluster(agents=3, resources="cpus=4,mem=8GiB") as cluster:
        ...  # talk to cluster.address

The agents do not share out the host: each believes in the resources it is told, so that a cluster larger or
smaller than the host can be played through. Nothing needs root.
"""

import asyncio
import contextlib
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from signal import SIGKILL, SIGTERM, raise_signal
from typing import Final, Self

from fairlead_local.child_process import ChildProcess
from fairlead_local.end_signals import END_SIGNALS, handled

START_TIMEOUT_S: Final = 30.0
START_TIMEOUT_AN_AGENT_S: Final = 2.0
"""Until all agents are registered, and so much more for each: a start takes about a second of CPU time, and many seconds on
a host that swaps."""

LOOK_INTERVAL_S: Final = 0.02
"""Between looks at a cluster that starts or stops: small against the time either takes."""

ROOM_BYTES_MIN: Final = 1 << 20
"""On the disk at the start, for logs, journals and the registry: on a full one processes die and cannot write why."""

TEARDOWN_TIMEOUT_S: Final = 1.0
"""For the master to end all frameworks when the cluster stops. It is a courtesy to them: the agents end the tasks anyway."""

AGENT_STOP_TIMEOUT_S: Final = 60.0
"""From SIGTERM to SIGKILL for an agent. It ends by itself when its tasks have, a second after their longest grace period at the
latest; this is for one that hangs, and bounds grace periods as well. Whoever cannot wait presses Ctrl-C again."""

MASTER_STOP_TIMEOUT_S: Final = 2.0
"""From SIGTERM to SIGKILL for a master, which has neither agents nor frameworks left by then."""

PORT_ATTEMPTS: Final = 3
"""Between choosing a free port and the master's bind another process may take it."""


class ClusterFailed(Exception):
    """A cluster did not start: a process died, or the time was not enough."""


class InvalidCluster(ValueError):
    """A cluster that cannot be; the message names what is wrong, what was expected and what came."""


class StartCancelled(Exception):
    """``cancel_start`` was called before the cluster was ready; nothing is left of it."""


class LocalCluster:
    """A master and agents on loopback. A context manager, for `with` and for `async with`; methods block.

    Attributes:
        address: of the master, HOST:PORT; known once started.
        directory: state, sandboxes and logs; a temporary one is removed at the end.
        master: the master's process.
        agents: the agents' processes.
        resources: of each agent, as text.
        isolations: what holds tasks to their limits, of each agent; known once started.
    """

    def __init__(
        self,
        *,
        agents: int = 3,
        resources: str | Sequence[str] | None = None,
        attributes: Mapping[str, str] | Sequence[Mapping[str, str]] = (),
        policy: str | None = None,
        demand: str | None = None,
        port: int = 0,
        directory: Path | None = None,
        isolation: str | None = None,
        cgroup_parents: Sequence[str] = (),
        master_arguments: Sequence[str] = (),
        agent_arguments: Sequence[str] = (),
    ) -> None:
        """Describe a cluster; nothing is started.

        Args:
            agents: how many.
            resources: of each agent, ``cpus=4,mem=8GiB``; or one text for each; None is ``default_resources``.
            attributes: of each agent; or one mapping for each.
            policy: the master's, or its default.
            demand: which demand the policy counts, "declared" or "measured"; the master's default if None.
            port: of the master on 127.0.0.1; 0 chooses a free one.
            directory: kept at the end; None makes a temporary one.
            isolation: of the agents, or their default.
            cgroup_parents: of each agent, the group its tasks' groups are made in; none: its own.
            master_arguments: further words for `fairlead master`.
            agent_arguments: further words for `fairlead agent`.

        Raises:
            InvalidCluster: a number of agents that is not positive, or not one text or mapping for each agent.
        """
        if agents < 1:
            raise InvalidCluster(f"agents: expected at least 1, got {agents}")
        resources = resources or default_resources(agents)
        self.resources = [resources] * agents if isinstance(resources, str) else list(resources)
        _check_one_each("resources", len(self.resources), agents)
        attributes = attributes or {}
        self._attributes = [attributes] * agents if isinstance(attributes, Mapping) else list(attributes)
        _check_one_each("attributes", len(self._attributes), agents)
        self._port = port
        self._policy = policy
        self._demand = demand
        self._isolation = isolation
        self._cgroup_parents = list(cgroup_parents) or [""] * agents
        _check_one_each("cgroup parents", len(self._cgroup_parents), agents)
        self._master_arguments = tuple(master_arguments)
        self._agent_arguments = tuple(agent_arguments)
        self._given_directory = directory
        self._temporary: Path | None = None
        """The directory to remove at the end: only ever one that we made."""
        self._lock: int | None = None
        """On the directory, as long as it is ours."""
        self.directory = directory or Path()
        self.address = ""
        self.master = ChildProcess("master", (), Path())
        self.agents: list[ChildProcess] = []
        self.isolations: list[str] = []
        self._is_start_cancelled = self._is_hurried = False

    # --- life ---------------------------------------------------------------------------------------------------

    def start(self, timeout_s: float | None = None) -> None:
        """Start everything at once and return when all agents are registered, by default in a time that grows with them.

        Raises:
            InvalidCluster: the port is in use, or the directory cannot be.
            ClusterFailed: a process died, with the end of its log; or the time was not enough.
            StartCancelled: ``cancel_start`` was called.
        """
        try:
            self._make_directory()
            for attempt in range(1, PORT_ATTEMPTS + 1):
                self._start_processes()
                try:
                    self.wait_until_ready(timeout_s)
                except ClusterFailed:
                    if self._port or attempt == PORT_ATTEMPTS or _is_free(self.address):
                        raise
                    self._stop_processes()
                else:
                    return
        except BaseException as error:
            self._stop_processes()
            self._remove_directory()
            if isinstance(error, OSError):
                where = error.filename or self.directory
                raise InvalidCluster(
                    f"{where}: expected to write to it, got: {error.strerror or error}"
                ) from error
            raise

    def cancel_start(self) -> None:
        """Make a ``start`` under way, or to come, clean up and raise; harmless once it has returned.

        For signal handlers and other threads. An exception out of a handler would do for most moments, but one that
        comes while a process is being made loses track of it.
        """
        self._is_start_cancelled = True

    def stop(self) -> None:
        """End all tasks within their grace periods, then agents and master; harmless when it is down.

        A signal that comes meanwhile, such as a second Ctrl-C, is a ``hurry``.
        """
        with self._hurried_by_signals():
            self._end_frameworks()
            self._stop_processes()
            self._remove_directory()

    def hurry(self) -> None:
        """Have a ``stop`` under way, or to come, kill everything at once. For signal handlers and other threads."""
        if not self._is_hurried:
            # Not by print: a handler may have interrupted one.
            with contextlib.suppress(OSError):
                os.write(2, b"killing everything\n")
        self._is_hurried = True

    def wait_until_ready(self, timeout_s: float | None = None) -> None:
        """Return when the master serves and has as many active agents as there are alive here.

        Raises:
            ClusterFailed: a process is dead, with the end of its log; or the time was not enough.
        """
        timeout_s = timeout_s or START_TIMEOUT_S + START_TIMEOUT_AN_AGENT_S * len(self.agents)
        deadline = time.monotonic() + timeout_s
        registered = 0

        def look() -> None:
            self._look_for_dead()
            if time.monotonic() > deadline:
                raise ClusterFailed(
                    f"the cluster was not ready within {timeout_s:g} s: "
                    f"{registered} of {len(self.agents)} agents had registered"
                )
            time.sleep(LOOK_INTERVAL_S)

        while not _answers(self.address):
            look()
        # Imports grpc, which takes as long as the children need to start.
        from fairlead_local import operator_calls

        with operator_calls.operator_at(self.address) as operator:
            while True:
                isolations = operator_calls.isolations(operator)
                registered = len(isolations)
                if registered >= len(self.agents):
                    self.isolations = isolations
                    return
                look()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        starting = asyncio.create_task(asyncio.to_thread(self.start))
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            # The thread goes on whatever becomes of its task.
            self.cancel_start()
            with contextlib.suppress(StartCancelled, ClusterFailed, InvalidCluster):
                await starting
            await self._stop_in_thread()
            raise
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._stop_in_thread()

    async def _stop_in_thread(self) -> None:
        with self._hurried_by_signals():
            await asyncio.to_thread(self.stop)

    @contextlib.contextmanager
    def _hurried_by_signals(self) -> Iterator[None]:
        """Take signals as a wish to be done at once, and do afterwards what they do else; threads cannot, and need not."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        received: list[int] = []

        def hurry(number: int, _frame: object) -> None:
            received.append(number)
            self.hurry()

        with handled(hurry, *END_SIGNALS):
            yield
        for number in received[:1]:
            raise_signal(number)

    # --- parts --------------------------------------------------------------------------------------------------

    @property
    def processes(self) -> list[ChildProcess]:
        """The master, then the agents."""
        return [self.master, *self.agents]

    def agent_directory(self, index: int) -> Path:
        """Work directory of an agent, from 0."""
        return self.directory / f"agent-{index + 1}"

    def kill_agent(self, index: int, signal: int = SIGKILL) -> None:
        """Send a signal to an agent, from 0, and wait for its end; its tasks are another matter."""
        self.agents[index].signal(signal)
        self.agents[index].wait(None)

    def restart_agent(self, index: int) -> None:
        """Start a dead agent again in its old work directory; it registers by itself."""
        self.agents[index].start()

    def kill_master(self, signal: int = SIGKILL) -> None:
        """Send a signal to the master and wait for its end."""
        self.master.signal(signal)
        self.master.wait(None)

    def restart_master(self) -> None:
        """Start a dead master again at its old address, with its old state."""
        self.master.start()

    # --- steps --------------------------------------------------------------------------------------------------

    def _make_directory(self) -> None:
        from fairlead_local import leftovers  # not for commands that start no cluster

        if self._given_directory is None:
            leftovers.remove_temporary_directories()
            self._temporary, self._lock = leftovers.make_temporary_directory()
            self.directory = self._temporary
        else:
            self.directory = self._given_directory.resolve()
            # Only what is missing is made private: a directory that was there before may be shared on purpose.
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                self._lock = leftovers.hold_directory(self.directory)
            except leftovers.DirectoryInUse as error:
                raise InvalidCluster(str(error)) from error
        (self.directory / "logs").mkdir(exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=self.directory) as room:
            os.posix_fallocate(room.fileno(), 0, ROOM_BYTES_MIN)

    def _start_processes(self) -> None:
        port = self._port or _free_port()
        self.address = f"127.0.0.1:{port}"
        if not _is_free(self.address):
            raise InvalidCluster(f"port {port} is in use: expected a free one, or 0 to have one chosen")
        logs = self.directory / "logs"
        self.master = ChildProcess("master", self._master_command(), logs / "master.log")
        self.agents = [
            ChildProcess(f"agent-{index + 1}", self._agent_command(index), logs / f"agent-{index + 1}.log")
            for index in range(len(self.resources))
        ]
        # All at once: agents try again every few milliseconds until the master listens.
        for process in self.processes:
            self._check_cancelled()
            process.start()

    def _master_command(self) -> list[str]:
        command = ["master", "--listen", self.address, "--state", str(self.directory / "master")]
        if self._policy:
            command += ["--policy", self._policy]
        if self._demand:
            command += ["--demand", self._demand]
        return [*command, "--stop-with-parent", *self._master_arguments]

    def _agent_command(self, index: int) -> list[str]:
        command = ["agent", "--master", self.address, "--hostname", f"local-{index + 1}"]
        command += ["--work-dir", str(self.agent_directory(index)), "--resources", self.resources[index]]
        for name, value in self._attributes[index].items():
            command += ["--attribute", f"{name}={value}"]
        if self._isolation:
            command += ["--isolation", self._isolation]
        if self._cgroup_parents[index]:
            command += ["--cgroup-parent", self._cgroup_parents[index]]
        return [*command, "--stop-tasks-on-exit", "--stop-with-parent", *self._agent_arguments]

    def _check_cancelled(self) -> None:
        if self._is_start_cancelled:
            raise StartCancelled("the cluster was to be started no longer")

    def _look_for_dead(self) -> None:
        self._check_cancelled()
        for process in self.processes:
            if not process.is_alive:
                raise ClusterFailed(
                    f"{process.name} ended at its start with code {process.exit_code}{process.last_words()}"
                )

    def _end_frameworks(self) -> None:
        """Have the master end all frameworks, so that they hear of it and nothing is launched any more; bounded."""
        if self._is_hurried or not (self.master.is_alive and _answers(self.address)):
            return
        from fairlead_local import operator_calls

        with operator_calls.operator_at(self.address) as operator:
            operator_calls.end_frameworks(operator, TEARDOWN_TIMEOUT_S)

    def _stop_processes(self) -> None:
        self._stop_all(self.agents, AGENT_STOP_TIMEOUT_S)
        # After the agents, so that it hears how the tasks ended.
        self._stop_all([self.master], MASTER_STOP_TIMEOUT_S)
        if self._lock is not None:
            # Of agents that died before they could end their executors themselves.
            from fairlead_local.leftovers import end_executors

            end_executors([self.agent_directory(index) for index in range(len(self.agents))])

    def _stop_all(self, processes: Sequence[ChildProcess], timeout_s: float) -> None:
        """Ask processes to end, wait for all of them, kill those that have not ended in time or when there is a hurry."""
        for process in processes:
            process.signal(SIGTERM)
        deadline = time.monotonic() + timeout_s
        while any(process.is_alive for process in processes):
            if self._is_hurried or time.monotonic() > deadline:
                for process in processes:
                    process.signal(SIGKILL)
            time.sleep(LOOK_INTERVAL_S)
        for process in processes:
            process.close()

    def _remove_directory(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def default_resources(agents: int) -> str:
    """What each of so many agents offers: its part of this host, but never less than two cores and 1 GiB.

    On a small host that is more in all than there is: a cluster on which no task of one core and some memory fits
    would be of no use to try things out.
    """
    cores = max(2, (os.cpu_count() or 1) // agents)
    host_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**30
    return f"cpus={cores},mem={max(1, host_gib // agents)}GiB,disk=10GiB"


def _check_one_each(name: str, given: int, agents: int) -> None:
    if given != agents:
        raise InvalidCluster(f"{name}: expected one for all agents or one for each of {agents}, got {given}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert isinstance(port, int)
        return port


def _is_free(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_server((host, int(port))):
            return True
    except OSError:
        return False


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=1):
            return True
    except OSError:
        return False
