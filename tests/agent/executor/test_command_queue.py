"""In which order an executor does what it is asked for."""

import signal
import subprocess
import sys
from pathlib import Path

from fairlead_agent.executor.command_queue import COMMANDS_PER_TURN, ENDS_PER_TURN, CommandQueue
from fairlead_agent.executor.protocol import Command, Forget, KillAll, MeasureUsage, Shutdown, Signal, Start
from tests.agent.executor.conftest import key_of

STARTS = [Start(key_of(f"new-{number}"), "/sandbox", ("true",), {}) for number in range(1_000)]


def test_running_tasks_are_ended_before_waiting_starts_and_measurements() -> None:
    """A host short of CPU takes a minute for a thousand starts, which is longer than grace periods."""
    running = [key_of(f"old-{number}") for number in range(3)]
    queue = CommandQueue(running)
    ends: list[Command] = [Signal(running[0], signal.SIGTERM), KillAll(running[1]), KillAll(running[0])]

    queue.add([*STARTS, MeasureUsage(), *ends])

    assert queue.take() == [*ends, *STARTS[:COMMANDS_PER_TURN]]


def test_ends_are_taken_some_at_a_time() -> None:
    running = [key_of(f"old-{number}") for number in range(3 * ENDS_PER_TURN)]
    queue = CommandQueue(running)
    queue.add([KillAll(key) for key in running])

    turns = [queue.take(), queue.take(), queue.take(), queue.take()]

    assert [len(turn) for turn in turns] == [ENDS_PER_TURN] * 3 + [0]


def test_start_that_was_put_back_is_first_and_can_still_be_called_off() -> None:
    queue = CommandQueue(())
    queue.add([*STARTS[:3], Forget(key_of("old"))])
    assert queue.take() == STARTS[:3]

    queue.put_back(STARTS[1:3])
    queue.add([KillAll(STARTS[2].key)])

    assert queue.take() == STARTS[1:3]
    assert [queue.take_unwanted(start.key) for start in STARTS[1:3]] == [False, True]
    assert queue.take() == [Forget(key_of("old"))]


def test_executor_that_kills_all_does_nothing_else_but_forget() -> None:
    running = [key_of("old")]
    queue = CommandQueue(running)
    queue.add([*STARTS, MeasureUsage(), Forget(key_of("gone")), KillAll(running[0])])

    queue.add([Shutdown(kill_tasks=True)])

    assert queue.take() == [Shutdown(kill_tasks=True), Forget(key_of("gone"))]
    assert len(queue) == 0


def test_turn_ends_when_starts_take_long(tmp_path: Path) -> None:
    """Thirty-two of them took five seconds on a host with ten processes for each CPU; an order to kill waited behind."""
    script = """
import sys
from fairlead_agent.executor import server
from fairlead_agent.executor.journal import Journal
from fairlead_agent.executor.no_isolation import NoIsolation
from fairlead_agent.executor.protocol import Start
now_ms = 0
server._monotonic_ms = lambda: now_ms
class Slow(server.Launcher):
    def launch(self, start, group_name):
        global now_ms
        now_ms += 30
        return super().launch(start, group_name)
server.Launcher = Slow
journal = Journal(f"{sys.argv[1]}/journal")
journal.open(boot_id="boot", directories=[])
executor = server.Server(NoIsolation("", sys.argv[1]), journal, {"path": "/usr/bin:/bin", "alone_timeout_ms": 0})
keys = [("framework", f"t{number}") for number in range(5)]
executor._commands.add([Start(key, f"{sys.argv[1]}/{key[1]}", ("true",), {}) for key in keys])
while len(executor._tasks) < len(keys):
    executor._start_all(executor._commands.take())
    print(*[key[1] for key in executor._tasks], "answered", len(executor._events))
"""

    said = subprocess.check_output([sys.executable, "-c", script, str(tmp_path)], text=True, timeout=30)

    assert said.splitlines() == ["t0 t1 answered 2", "t0 t1 t2 t3 answered 4", "t0 t1 t2 t3 t4 answered 5"]


def test_measurement_of_many_tasks_takes_many_turns(tmp_path: Path) -> None:
    """One of a thousand tasks took four seconds at once; an order to kill waited behind."""
    script = """
import sys
from fairlead_agent.executor import server
from fairlead_agent.executor.journal import Journal
from fairlead_agent.executor.no_isolation import NoIsolation
from fairlead_agent.executor.protocol import MeasureUsage, Start
journal = Journal(f"{sys.argv[1]}/journal")
journal.open(boot_id="boot", directories=[])
executor = server.Server(NoIsolation("", sys.argv[1]), journal, {"path": "/usr/bin:/bin", "alone_timeout_ms": 0})
for number in range(40):
    executor._launch(Start(("framework", f"t{number}"), f"{sys.argv[1]}/{number}", ("true",), {}))
executor._commands.add([MeasureUsage(), MeasureUsage()])
sent = []
executor._link = type("Link", (), {"is_open": True, "send": lambda self, events: sent.extend(events)})()
for _ in range(5):
    executor._turn()
    print(*[len(event.measurements) for event in sent])
"""

    said = subprocess.check_output([sys.executable, "-c", script, str(tmp_path)], text=True, timeout=30)

    assert said.splitlines() == ["", "40", "40", "40 40", "40 40"]
