"""A task that cannot be started says why, in one line and with the right reason."""

import contextlib
import errno
import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_agent.executor.isolation import Limits
from fairlead_agent.executor.launch import Launcher, LaunchFailed
from fairlead_agent.executor.processes import is_running
from fairlead_agent.executor.protocol import Measurement, Start, StartFailed
from fairlead_proto.task_state import Reason
from tests.agent.executor.conftest import Connect, key_of

pytestmark = pytest.mark.shell


async def test_command_that_does_not_exist_is_not_found(connect: Connect, isolation: str) -> None:
    agent = await connect(isolation)

    by_name = await agent.failed(agent.start("a", "no-such-program", environment={"PATH": "/usr/bin:/bin"}))
    by_path = await agent.failed(agent.start("b", "/no/such/program"))

    assert by_name.reason is by_path.reason is Reason.COMMAND_NOT_FOUND
    assert by_name.message == "command: 'no-such-program' not found in PATH /usr/bin:/bin"
    assert by_path.message == "command: '/no/such/program' not found"


@pytest.mark.parametrize(
    ("content", "mode", "complaint"),
    [
        (b"#!/bin/sh\n", 0o644, "is not executable"),
        (b"no program\n", 0o755, "neither a binary for this host nor a script with #!"),
        (b"#!/no/such/interpreter\n", 0o755, "the interpreter"),
        (None, 0o755, "is a directory"),
    ],
)
async def test_file_that_is_no_program_is_not_executable(
    connect: Connect, tmp_path: Path, content: bytes | None, mode: int, complaint: str
) -> None:
    program = tmp_path / "program"
    if content is None:
        program.mkdir()
    else:
        program.write_bytes(content)
    program.chmod(mode)
    agent = await connect()

    failure = await agent.failed(agent.start("a", str(program)))

    assert failure.reason is Reason.COMMAND_NOT_EXECUTABLE
    assert complaint in failure.message


async def test_program_of_that_name_later_in_the_path_is_taken(connect: Connect, tmp_path: Path) -> None:
    (tmp_path / "true").write_text("not a program")
    agent = await connect()

    ended = await agent.exited(agent.start("a", "true", environment={"PATH": f"{tmp_path}:/usr/bin:/bin"}))

    assert ended.exit_code == 0


async def test_arguments_the_kernel_does_not_take_are_counted(connect: Connect) -> None:
    agent = await connect()

    failure = await agent.failed(agent.start("a", "true", *["x" * 100_000] * 40))

    assert failure.reason is Reason.COMMAND_NOT_EXECUTABLE
    assert "bytes of arguments and environment are more than this host takes" in failure.message


@pytest.mark.parametrize(
    ("argv", "fields"),
    [
        ((), {}),
        (("",), {}),
        (("true", "a\0b"), {}),
        (("true",), {"environment": {"A=B": "x"}}),
        (("true",), {"working_directory": "a\0b"}),
    ],
)
async def test_what_no_process_can_be_given_is_an_invalid_task(
    connect: Connect, argv: tuple[str, ...], fields: dict[str, object]
) -> None:
    agent = await connect()

    failure = await agent.failed(agent.start("a", *argv, **fields))

    assert failure.reason is Reason.INVALID_TASK


async def test_missing_working_directory_is_named(connect: Connect, isolation: str) -> None:
    agent = await connect(isolation)

    failure = await agent.failed(agent.start("a", "true", working_directory="missing"))

    assert failure.reason is Reason.SANDBOX_FAILED
    assert failure.message == (
        f"working_directory: expected a directory, got '{agent.sandbox('a')}/missing': No such file or directory"
    )


async def test_sandbox_that_cannot_be_made_is_a_sandbox_failure(connect: Connect, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    agent = await connect()

    failure = await agent.failed(agent.start("a", "true", sandbox=str(tmp_path / "file" / "sandbox")))

    assert failure.reason is Reason.SANDBOX_FAILED
    assert failure.message == f"sandbox: cannot make {tmp_path}/file/sandbox: Not a directory"


async def test_failed_start_is_repeated_until_it_is_forgotten(connect: Connect) -> None:
    agent = await connect()
    failure = await agent.failed(agent.start("a", "no-such-program"))
    await agent.client.close()

    second = await connect()
    assert second.client.hello.ended == (failure,)
    second.client.forget(failure.key)
    await second.exited(second.start("b", "true"))
    await second.client.close()

    assert [end.key for end in (await connect()).client.hello.ended] == [("framework", "b")]


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    place = tmp_path / "tiny"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k,nr_inodes=12", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting a small file system needs root")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.root
async def test_full_disk_in_the_sandbox_drops_output_and_lets_the_task_run(
    connect: Connect, tiny_disk: Path
) -> None:
    agent = await connect()

    key = agent.shell(
        "a", "head -c 1000000 /dev/zero; echo done > /dev/null; exit 4", sandbox=str(tiny_disk / "s")
    )

    ended = await agent.exited(key)
    assert ended.exit_code == 4
    stored = (tiny_disk / "s" / "stdout").stat().st_size
    assert 0 < stored <= 256 * 1024
    assert ended.message == f"stdout: {1000000 - stored} bytes could not be written: No space left on device"


@pytest.mark.root
async def test_task_that_cannot_be_written_down_is_not_started_and_no_end_is_lost(
    tiny_disk: Path, connect: Connect, tmp_path: Path
) -> None:
    agent = await connect(work_dir=tiny_disk)
    before = agent.shell(
        "before", "while [ ! -e go ]; do sleep 0.01; done; exit 6", sandbox=str(tmp_path / "s")
    )
    await agent.started(before)
    filler = tiny_disk / "filler"
    with contextlib.suppress(OSError):
        filler.write_bytes(bytes(1 << 20))

    # What is left of the journal's last page is soon used up.
    refused: list[StartFailed] = []
    while not refused:
        key = agent.start(f"t{len(agent.seen)}", "true", sandbox=str(tmp_path / "t"))
        await agent.until(lambda event, key=key: getattr(event, "key", None) == key)  # type: ignore[misc]
        refused = [event for event in agent.seen if isinstance(event, StartFailed)]

    assert refused[0].reason is Reason.EXECUTOR_FAILED
    assert "cannot write down what is started: [Errno 28] No space left on device" in refused[0].message
    (tmp_path / "s" / "go").touch()
    ended = await agent.exited(before)
    assert ended.exit_code == 6
    filler.unlink()
    await agent.exited(agent.start("after", "true", sandbox=str(tmp_path / "after")))
    os.kill(agent.pid, signal.SIGKILL)
    await agent.lost()
    ends = (await connect(work_dir=tiny_disk)).client.hello.ended
    assert ended in ends
    assert refused[0] in ends


class BrokenGroup:
    """A group whose limits cannot be set."""

    def __init__(self) -> None:
        self.adopted: list[int] = []
        self.removed = False

    def enter(self) -> None: ...
    def leave(self) -> None: ...
    def main_ended(self) -> None: ...
    def adopt(self, pid: int) -> None:
        self.adopted.append(pid)

    def limit(self, limits: Limits) -> None:
        raise OSError(errno.EIO, "Input/output error")

    def pids(self) -> list[int]:
        return [pid for pid in self.adopted if is_running(pid)]

    def kill(self) -> None:
        for pid in self.pids():
            os.kill(pid, signal.SIGKILL)

    def measure(self) -> Measurement:
        return Measurement()

    def measure_ended(self) -> Measurement:
        return Measurement()

    def free(self) -> None:
        pass

    def memory_kills(self) -> int:
        return 0

    def remove(self) -> bool:
        self.removed = True
        return True


class BrokenIsolation:
    name = "broken"
    note = ""

    def __init__(self) -> None:
        self.directories: list[str] = []
        self.group = BrokenGroup()

    def create(self, name: str, sandbox: str, /) -> BrokenGroup:
        return self.group

    def refresh(self) -> None: ...
    def settle(self) -> None: ...

    def close(self) -> bool:
        return True


def test_task_that_cannot_be_limited_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a launch changes the directory of its process
    isolation = BrokenIsolation()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    launcher = Launcher(isolation, path="/usr/bin:/bin")
    try:
        with pytest.raises(LaunchFailed, match="cannot limit the task") as caught:
            launcher.launch(Start(key_of("a"), str(tmp_path / "s"), ("sleep", "1000"), {}), "t1")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, files)
        launcher.close()

    assert caught.value.reason is Reason.EXECUTOR_FAILED
    assert len(isolation.group.adopted) == 1
    assert isolation.group.pids() == []
    assert isolation.group.removed


@pytest.mark.root
async def test_sandbox_on_a_full_disk_is_a_sandbox_failure(connect: Connect, tiny_disk: Path) -> None:
    for number in range(20):
        try:
            (tiny_disk / str(number)).touch()
        except OSError:
            break
    agent = await connect()

    failure = await agent.failed(agent.start("a", "true", sandbox=str(tiny_disk / "s")))

    assert failure.reason is Reason.SANDBOX_FAILED
    assert failure.message == f"sandbox: cannot make {tiny_disk}/s: No space left on device"
