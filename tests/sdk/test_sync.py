"""The facade without await. Its loop lives on a thread, so the fake's clock is moved by a task on that loop."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import fairlead_sdk
from fairlead_sdk import Array, Closed, MasterUnreachable, Task, TaskState
from fairlead_sdk.handles import Listener
from fairlead_sdk.sync import Framework
from fairlead_sim.testing import Outcome, VirtualMaster

pytestmark = pytest.mark.shell


class _Pump:
    """Moves a fake's clock from inside the framework's loop whenever all is at rest."""

    def __init__(self, master: VirtualMaster) -> None:
        self._master = master
        self._over = False

    async def run(self) -> None:
        while not self._over:
            await self._master.advance(100)

    def stop(self) -> None:
        self._over = True


@pytest.fixture
def master() -> VirtualMaster:
    master = VirtualMaster()
    master.add_agent("a", cpus=2, mem="1GiB")
    return master


@pytest.fixture
def framework(master: VirtualMaster) -> Iterator[Framework]:
    with Framework("f", master=master) as framework:
        pump = _Pump(master)
        assert framework._loop is not None
        pumping = asyncio.run_coroutine_threadsafe(pump.run(), framework._loop)
        yield framework
        pump.stop()
        pumping.result()


def a_task(name: str = "", **options: object) -> Task:
    return Task(["x"], name=name, **options)  # type: ignore[arg-type]


def test_a_start_that_fails_leaves_nothing_running(monkeypatch: pytest.MonkeyPatch) -> None:
    """asyncio says of each task that is still there when its loop goes, on stderr, that it was destroyed."""
    begun: list[asyncio.Task[None]] = []

    async def start(_framework: fairlead_sdk.Framework) -> None:
        begun.append(asyncio.create_task(asyncio.sleep(3600)))
        raise OSError("refused")

    monkeypatch.setattr(fairlead_sdk.Framework, "start", start)

    with pytest.raises(OSError, match="refused"):
        Framework("f", master=VirtualMaster()).start()

    assert [task.cancelled() for task in begun] == [True]


@pytest.mark.parametrize("strange", [None, ["x"]])
def test_what_is_no_task_is_refused_by_name(framework: Framework, strange: Any) -> None:
    with pytest.raises(ValueError, match="tasks: expected each to be a Task, got"):
        framework.run([a_task("one"), strange])


def test_results_come_back_to_plain_code(master: VirtualMaster, framework: Framework) -> None:
    master.script("bad", Outcome(exit_code=3, stdout="why"))

    results = framework.run([a_task(), a_task("bad")])

    assert [result.exit_code for result in results] == [0, 3]
    assert framework.stdout(results[1]) == "why"
    assert framework.read_file(results[1], "stdout") == b"why"
    assert b"".join(framework.logs(results[1])) == b"why"
    assert framework.framework_id == "f1-1"


def public_names(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def test_every_name_of_the_class_with_await_is_there_without(master: VirtualMaster) -> None:
    missing = public_names(fairlead_sdk.Framework("f", master=master)) - public_names(Framework("f"))

    assert not missing


def test_every_name_of_a_handle_with_await_is_there_without(framework: Framework) -> None:
    handle = framework.submit(a_task())

    # What the session calls to tell a handle of its task is nothing for those who wait.
    missing = public_names(handle._handle) - public_names(Listener) - public_names(handle)

    assert not missing


def test_what_is_asked_of_a_framework_reaches_it(master: VirtualMaster, framework: Framework) -> None:
    master.script("long", Outcome(duration_ms=None))
    handle = framework.submit(a_task("long"))
    assert framework.state_of(handle.task_id) is not None

    framework.request_kill([handle.task_id])

    assert handle.result().state is TaskState.KILLED
    assert framework.state_of(handle.task_id) is None
    framework.on_exit = "leave"
    assert (framework.name, framework.on_exit, framework._framework.on_exit) == ("f", "leave", "leave")


def test_a_handle_waits_with_a_limit_and_kills(master: VirtualMaster, framework: Framework) -> None:
    master.script("long", Outcome(duration_ms=None))
    handle = framework.submit(a_task("long"))

    with pytest.raises(TimeoutError):
        handle.result(timeout="50ms")
    handle.kill()

    assert handle.result().state is TaskState.KILLED
    assert handle.done
    assert handle.state == "KILLED"


def test_results_can_be_taken_as_they_come(master: VirtualMaster, framework: Framework) -> None:
    master.script("slow", Outcome(duration_ms=5_000))

    names = [result.task.name for result in framework.as_completed([a_task("slow"), a_task("quick")])]

    assert names == ["quick", "slow"]


def test_leaving_the_loop_early_kills_the_rest(master: VirtualMaster, framework: Framework) -> None:
    master.script("long", Outcome(duration_ms=None))

    for _ in framework.as_completed([a_task("long"), a_task("quick")]):
        break

    assert not master.running()


def test_ctrl_c_kills_what_was_waited_for_before_it_is_raised(
    master: VirtualMaster, framework: Framework
) -> None:
    master.script("long", Outcome(duration_ms=None))
    running = threading.Event()
    main = threading.get_ident()

    def press(_: object) -> None:
        if not running.is_set():
            running.set()
            signal.pthread_kill(main, signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        framework.run([a_task("long")], on_progress=press)

    assert running.is_set()
    assert not master.running()
    assert master.tasks[0].state is TaskState.KILLED


def test_ctrl_c_before_the_wait_has_begun_kills_all_the_same(
    master: VirtualMaster, framework: Framework, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal may come when the work has been handed to the framework's thread and nobody waits for it yet."""
    master.script("long", Outcome(duration_ms=None))
    running, pressed = threading.Event(), threading.Event()
    loop = framework._loop
    assert loop is not None
    hand_over = loop.call_soon_threadsafe

    def press_on_the_way_back(*what: Any, **how: Any) -> asyncio.Handle:
        handle = hand_over(*what, **how)
        if threading.current_thread() is threading.main_thread() and not pressed.is_set():
            pressed.set()
            assert running.wait(30)
            raise KeyboardInterrupt
        return handle

    monkeypatch.setattr(loop, "call_soon_threadsafe", press_on_the_way_back)

    with pytest.raises(KeyboardInterrupt):
        framework.run([a_task("long")], on_progress=lambda _: running.set())

    assert not master.running()
    assert master.tasks[0].state is TaskState.KILLED


def test_ctrl_c_before_anything_was_begun_does_not_wait_for_it(
    framework: Framework, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = framework._loop
    assert loop is not None
    hand_over, pressed = loop.call_soon_threadsafe, threading.Event()

    def press_first(*what: Any, **how: Any) -> asyncio.Handle:
        if threading.current_thread() is threading.main_thread() and not pressed.is_set():
            pressed.set()
            raise KeyboardInterrupt
        return hand_over(*what, **how)

    monkeypatch.setattr(loop, "call_soon_threadsafe", press_first)

    with pytest.raises(KeyboardInterrupt):
        framework.run([a_task("never begun")])

    assert framework.run([a_task("quick")])[0].state is TaskState.FINISHED


def test_a_framework_that_is_not_open_says_so() -> None:
    framework = Framework("f", master="127.0.0.1:1")

    with pytest.raises(Closed, match="not open"):
        framework.run([a_task()])


def test_a_failed_start_leaves_no_thread() -> None:
    with pytest.raises(MasterUnreachable):
        Framework("f", master="127.0.0.1:1", connect_timeout="100ms").start()

    assert "fairlead" not in [thread.name for thread in threading.enumerate()]


def test_the_package_imports_without_grpc_and_lists_its_names() -> None:
    program = (
        "import os, sys, fairlead_sdk; fairlead_sdk.Task(['x']); "
        "print([name for name in ('grpc', 'google.protobuf') if name in sys.modules]); "
        "print([name for name in fairlead_sdk.__all__ if not hasattr(fairlead_sdk, name)]); "
        "print(os.environ['GRPC_ENABLE_FORK_SUPPORT'])"
    )

    ended = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin"},
    )

    imported, missing, forks = ended.stdout.splitlines()
    assert (imported, missing, forks) == ("[]", "[]", "0")


def test_an_array_gives_its_results_as_they_come_and_all_in_order(
    framework: Framework, master: VirtualMaster
) -> None:
    master.script("sweep-0", Outcome(duration_ms=500))
    first, second = (framework.submit_array(Array(a_task("sweep"), 3)) for _ in range(2))

    assert [result.name for result in first] == ["sweep-1", "sweep-2", "sweep-0"]
    assert [result.name for result in second.results(timeout="30s")] == ["sweep-0", "sweep-1", "sweep-2"]
    assert second.progress.finished == 3
    assert second.done


def test_a_member_of_an_array_is_killed_by_its_index(framework: Framework, master: VirtualMaster) -> None:
    master.script("sweep-1", Outcome(duration_ms=None))
    handle = framework.submit_array(Array(a_task("sweep"), 2))

    handle.kill(1)

    assert [result.state for result in handle.results(timeout="30s")] == [
        TaskState.FINISHED,
        TaskState.KILLED,
    ]
