"""What `fairlead up` does with its cluster: start, greet, keep alive, stop."""

import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from fairlead_cli.addresses import DEFAULT_MASTER
from fairlead_cli.errors import EXIT_INTERRUPTED, Failed, Invalid
from fairlead_local.child_process import ChildProcess
from fairlead_local.cluster import ClusterFailed, InvalidCluster, LocalCluster, StartCancelled
from fairlead_local.end_signals import END_SIGNALS, handled

LOOK_INTERVAL_S: Final = 0.25
"""Between looks whether a child has died: a person does not notice, and it costs some microseconds."""

RESTART_WAITS_S: Final = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Before the first, second, … restart of a process; the last one repeats. One that dies at once, whatever the reason,
must not take the host with it."""

STEADY_S: Final = 30.0
"""A process that lived this long died for a new reason: its count of restarts begins again."""


def run_until_signal(cluster: LocalCluster) -> int:
    """Start the cluster, supervise it until SIGINT, SIGTERM or SIGHUP, stop it, and return the exit code.

    Raises:
        Invalid, Failed: it did not start; nothing is left of it.
    """
    stopped = threading.Event()
    received: list[int] = []

    def stop(number: int, _frame: object) -> None:
        if received:
            cluster.hurry()
        received.append(number)
        cluster.cancel_start()
        stopped.set()

    begun = time.monotonic()
    with handled(stop, *END_SIGNALS):
        try:
            with suppress(StartCancelled):
                cluster.start()
                _greet(cluster, time.monotonic() - begun)
                Supervisor(cluster).run(stopped)
                _say("stopping: tasks end within their grace periods; Ctrl-C again kills them at once")
        except InvalidCluster as error:
            raise Invalid(str(error)) from error
        except ClusterFailed as error:
            raise Failed(str(error)) from error
        finally:
            cluster.stop()
    # A service manager's SIGTERM is the ordinary end; Ctrl-C is reported as every shell command reports it.
    return EXIT_INTERRUPTED if received[:1] == [signal.SIGINT] else 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _greet(cluster: LocalCluster, took_s: float) -> None:
    is_default = cluster.address == DEFAULT_MASTER
    export = "" if is_default else f"export FAIRLEAD_MASTER={cluster.address}\n  "
    agents = f"{len(cluster.agents)} agent{'s' * (len(cluster.agents) != 1)}"
    of = " and ".join(dict.fromkeys(cluster.resources))
    print(
        f"master at {cluster.address} with {agents} of {of}, up in {took_s:.1f} s\n"
        f"logs and sandboxes in {cluster.directory}\n"
        f"{limits_notice(cluster.isolations)}"
        f"try, in another shell:\n"
        f"  {export}fairlead run -- echo hello\n"
        f"  fairlead run -n 10 --cpus 0.5 -- sh -c 'sleep 3; hostname'\n"
        f"  fairlead agents --watch\n"
        f"  fairlead shares\n"
        f"Ctrl-C stops everything.",
        flush=True,
    )


def limits_notice(isolations: Sequence[str]) -> str:
    """A line that says so if agents enforce no limits, for people who would trust in them; else empty."""
    unlimited = isolations.count("none")
    if not unlimited:
        return ""
    who = "" if unlimited == len(isolations) else f" by {unlimited} of {len(isolations)} agents"
    return (
        f"isolation none: CPU and memory limits of tasks are not enforced{who} "
        f"(needs cgroups that may be written to, as root has; the agents' logs say why)\n"
    )


@dataclass(slots=True)
class _History:
    """Of one process: how often in a row it died soon, and when to start it again."""

    restarts: int = 0
    started_s: float = 0.0
    restart_at_s: float | None = None


class Supervisor:
    """Starts dead processes of a cluster again, ever more slowly if they keep dying."""

    def __init__(self, cluster: LocalCluster) -> None:
        """Args: a started cluster."""
        self._histories = [(process, _History(started_s=time.monotonic())) for process in cluster.processes]

    def run(self, stopped: threading.Event) -> None:
        """Supervise until ``stopped`` is set."""
        while not stopped.wait(LOOK_INTERVAL_S):
            self.look(time.monotonic())

    def look(self, now_s: float) -> None:
        """Look at each process once: note a death, or restart one whose wait is over."""
        for process, history in self._histories:
            if process.is_alive:
                continue
            if history.restart_at_s is None:
                self._note_death(process, history, now_s)
            if history.restart_at_s is not None and now_s >= history.restart_at_s:
                try:
                    process.start()
                except OSError as error:
                    self._note_failure(process, history, now_s, error)
                    continue
                history.restart_at_s, history.started_s = None, now_s
                _say(f"{process.name} started again, pid {process.pid}")

    @staticmethod
    def _note_failure(process: ChildProcess, history: _History, now_s: float, error: OSError) -> None:
        wait_s = _next_wait_s(history)
        history.restart_at_s = now_s + wait_s
        _say(f"{process.name} cannot be started ({error}), trying again in {wait_s:g} s")

    @staticmethod
    def _note_death(process: ChildProcess, history: _History, now_s: float) -> None:
        if now_s - history.started_s >= STEADY_S:
            history.restarts = 0
        wait_s = _next_wait_s(history)
        history.restart_at_s = now_s + wait_s
        when = f"in {wait_s:g} s" if wait_s else "at once"
        _say(f"{process.name} died ({_how(process.exit_code)}), starting it again {when}; log: {process.log}")


def _next_wait_s(history: _History) -> float:
    wait_s = RESTART_WAITS_S[min(history.restarts, len(RESTART_WAITS_S) - 1)]
    history.restarts += 1
    return wait_s


def _how(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"signal {-exit_code}"
    return f"exit code {exit_code}"
