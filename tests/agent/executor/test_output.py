"""Output is bounded on disk, and each byte keeps its number however much is written after it."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_agent.executor.output import CappedLog, mark_path
from fairlead_agent.executor.sandbox import SandboxReader
from tests.agent.executor.conftest import Connect

MIB = 1 << 20


@pytest.mark.shell
async def test_gigabyte_of_output_is_capped_and_the_newest_is_kept(connect: Connect) -> None:
    agent = await connect()

    key = agent.shell("a", "head -c 1G /dev/zero; echo the end; echo done >&2")

    ended = await agent.exited(key)
    assert (ended.exit_code, ended.message) == (0, "")
    size = (1 << 30) + len("the end\n")
    on_disk = sum(path.stat().st_size for path in agent.sandbox("a").glob("stdout*"))
    assert 10 * MIB <= on_disk <= 20 * MIB
    assert ended.usage.sandbox_bytes == on_disk + len("done\n")
    assert (ended.usage.stdout_bytes, ended.usage.stderr_bytes) == (size, len("done\n"))
    reader = SandboxReader(agent.sandbox("a"))
    assert reader.read("stdout", -8, 100) == (size - 8, b"the end\n", size)
    first_left = reader.read("stdout", 0, 4)
    assert first_left == (size - on_disk, bytes(4), size)
    assert first_left.offset % (10 * MIB) == 0


@pytest.mark.shell
async def test_task_that_floods_its_output_does_not_hold_up_others(connect: Connect) -> None:
    agent = await connect()
    flood = agent.start("flood", "cat", "/dev/zero")
    await agent.started(flood)

    for number in range(20):
        assert (await agent.exited(agent.shell(f"t{number}", "echo x"))).exit_code == 0

    agent.client.kill_all(flood)
    ended = await agent.exited(flood)
    assert 0 < ended.usage.sandbox_bytes <= 20 * MIB


@pytest.mark.shell
async def test_cap_of_a_task_is_its_own(connect: Connect) -> None:
    agent = await connect()

    await agent.exited(agent.shell("a", "seq 1 1000", log_bytes_max=1000))

    assert (agent.sandbox("a") / "stdout").stat().st_size <= 1000
    assert (agent.sandbox("a") / "stdout.1").stat().st_size == 1000
    assert SandboxReader(agent.sandbox("a")).read("stdout", -9, 9).data == b"999\n1000\n"


@settings(max_examples=50)  # each makes files
@given(
    cap=st.integers(4, 40),
    chunks=st.lists(st.integers(0, 60), max_size=6),
    offset=st.integers(-200, 400),
    length=st.integers(0, 300),
)
def test_rotated_output_reads_like_one_file_whose_beginning_is_lost(
    tmp_path_factory: pytest.TempPathFactory, cap: int, chunks: list[int], offset: int, length: int
) -> None:
    directory = tmp_path_factory.mktemp("sandbox")
    whole = bytes(number % 251 for number in range(sum(chunks)))
    log = CappedLog(str(directory / "stdout"), cap)
    position = 0
    for size in chunks:
        log.write(whole[position : position + size])
        position += size
    log.close()

    part = SandboxReader(directory).read("stdout", offset, length)

    assert log.written_bytes == len(whole)
    assert log.disk_bytes <= 2 * cap
    assert log.disk_bytes >= min(len(whole), cap)
    begin = len(whole) + offset if offset < 0 else offset
    begin = min(max(begin, len(whole) - log.disk_bytes), len(whole))
    assert part == (begin, whole[begin : begin + length], len(whole))


async def test_reader_beside_a_writer_never_sees_a_byte_in_the_wrong_place(tmp_path: Path) -> None:
    log = CappedLog(str(tmp_path / "stdout"), 16_000)
    reader = SandboxReader(tmp_path)

    def write() -> None:
        for number in range(200_000):
            log.write(b"%07d\n" % number)

    writer = asyncio.create_task(asyncio.to_thread(write))
    looks = 0
    while not writer.done():
        part = await asyncio.to_thread(reader.read, "stdout", -400, 400)
        for start in range(-part.offset % 8, len(part.data) - 7, 8):
            assert part.data[start : start + 8] == b"%07d\n" % ((part.offset + start) // 8)
            looks += 1
    await writer

    assert looks > 0
    assert reader.read("stdout", -8, 8).data == b"0199999\n"


def test_what_a_full_device_does_not_take_is_dropped_and_counted() -> None:
    log = CappedLog("/dev/full", 100)

    log.write(b"x" * 10)
    log.write(b"y" * 5)

    assert (log.dropped_bytes, log.error) == (15, "No space left on device")
    assert log.written_bytes == 0
    log.close()


def test_log_that_the_task_replaced_by_a_link_or_pipe_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "stdout").symlink_to(tmp_path / "victim")
    log = CappedLog(str(tmp_path / "stdout"), 100)

    log.write(b"x")

    assert log.dropped_bytes == 1
    assert (tmp_path / "victim").read_text() == "mine"


def test_rotation_goes_on_where_a_full_disk_interrupted_it(tmp_path: Path) -> None:
    log = CappedLog(str(tmp_path / "stdout"), 4)
    log.write(b"0123")
    mark = Path(f"{mark_path(str(tmp_path / 'stdout'))}.new")
    mark.mkdir()  # stands for what cannot be written now

    log.write(b"lost")
    mark.rmdir()
    log.write(b"4567")

    assert log.dropped_bytes == 4
    assert SandboxReader(tmp_path).read("stdout", 0, 100) == (0, b"01234567", 8)
    assert log.written_bytes == 8
    log.close()
