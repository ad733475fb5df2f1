"""A task that cannot be started says why, in one line and with the right reason."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_proto.task_state import Reason
from tests.agent.executor.conftest import Connect

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
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k,nr_inodes=8", "tmpfs", str(place)]
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
