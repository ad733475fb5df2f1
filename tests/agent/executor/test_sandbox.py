"""The reader gives what is in the sandbox, nothing from outside, and never waits."""

import os
import socket
from pathlib import Path

import pytest

from fairlead_agent.executor.sandbox import (
    LENGTH_MAX,
    FileNotThere,
    FileUnreadable,
    OutsideSandbox,
    SandboxReader,
    SandboxRefused,
)


@pytest.fixture
def sandbox(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("secret")
    path = tmp_path / "sandbox"
    (path / "results").mkdir(parents=True)
    (path / "results" / "data.bin").write_bytes(bytes(range(100)))
    return path


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [
        (0, 3, (0, b"\x00\x01\x02", 100)),
        (98, 10, (98, b"\x62\x63", 100)),
        (-2, 10, (98, b"\x62\x63", 100)),
        (-1000, 1, (0, b"\x00", 100)),
        (100, 10, (100, b"", 100)),
        (1000, 10, (100, b"", 100)),
        (5, 0, (5, b"", 100)),
        (5, -1, (5, b"", 100)),
    ],
)
def test_piece_of_a_file_says_where_it_is(
    sandbox: Path, offset: int, length: int, expected: tuple[int, bytes, int]
) -> None:
    assert SandboxReader(sandbox).read("results/data.bin", offset, length) == expected


def test_one_read_is_bounded(sandbox: Path) -> None:
    (sandbox / "large").write_bytes(bytes(LENGTH_MAX + 10))

    part = SandboxReader(sandbox).read("large", 0, 1 << 40)

    assert (len(part.data), part.size) == (LENGTH_MAX, LENGTH_MAX + 10)


@pytest.mark.parametrize(
    "path", ["../secret", "results/../../secret", "/etc/passwd", "link", "results/up/secret"]
)
def test_path_that_leads_outside_is_refused(sandbox: Path, path: str) -> None:
    (sandbox / "link").symlink_to("../secret")
    (sandbox / "results" / "up").symlink_to(sandbox.parent)

    with pytest.raises(OutsideSandbox, match=path):
        SandboxReader(sandbox).read(path, 0, 10)


def test_neighbour_whose_name_begins_the_same_is_outside(sandbox: Path) -> None:
    sandbox.with_name("sandbox2").mkdir()
    (sandbox.parent / "sandbox2" / "file").touch()

    with pytest.raises(OutsideSandbox):
        SandboxReader(sandbox).read("../sandbox2/file", 0, 10)


def test_link_inside_is_followed(sandbox: Path) -> None:
    (sandbox / "link").symlink_to("results/data.bin")

    assert SandboxReader(sandbox).read("link", 0, 2).data == b"\x00\x01"


@pytest.mark.parametrize("path", ["missing", "results/data.bin/x", "missing/stdout"])
def test_missing_file_is_not_there(sandbox: Path, path: str) -> None:
    with pytest.raises(FileNotThere):
        SandboxReader(sandbox).read(path, 0, 10)


def test_output_that_is_not_written_yet_is_empty_unless_there_is_no_sandbox(sandbox: Path) -> None:
    assert SandboxReader(sandbox).read("stdout", -10, 10) == (0, b"", 0)
    with pytest.raises(FileNotThere, match="no sandbox"):
        SandboxReader(sandbox / "missing").read("stdout", 0, 10)


def test_pipe_socket_device_and_directory_are_refused_at_once(sandbox: Path) -> None:
    os.mkfifo(sandbox / "pipe")
    os.mkfifo(sandbox / "stdout")
    (sandbox / "stderr").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(sandbox / "socket"))
        for path in ("pipe", "socket", "results", "stdout", ""):
            with pytest.raises(FileUnreadable, match="expected a regular file"):
                SandboxReader(sandbox).read(path, 0, 10)
    with pytest.raises(OutsideSandbox):
        SandboxReader(sandbox).read("stderr", 0, 10)


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000])
def test_path_no_file_can_have_is_refused(sandbox: Path, path: str) -> None:
    with pytest.raises(SandboxRefused):
        SandboxReader(sandbox).read(path, 0, 10)


def test_listing_is_by_name_with_output_as_one_file(sandbox: Path) -> None:
    (sandbox / "stdout.1").write_bytes(b"456")
    (sandbox / "stdout").write_bytes(b"7")
    inode = (sandbox / "stdout").stat().st_ino
    (sandbox / ".stdout.offset").write_text(f"{inode} 7 3")
    (sandbox / "link").symlink_to("/etc/passwd")

    entries = SandboxReader(sandbox).list()

    assert [(entry.path, entry.is_directory) for entry in entries] == [
        ("link", False),
        ("results", True),
        ("stdout", False),
    ]
    assert entries[2].size == 8
    assert [entry.path for entry in SandboxReader(sandbox).list("results")] == ["results/data.bin"]


@pytest.mark.parametrize(
    ("path", "refusal"),
    [("..", OutsideSandbox), ("missing", FileNotThere), ("results/data.bin", FileNotThere)],
)
def test_listing_of_what_is_no_directory_inside_is_refused(
    sandbox: Path, path: str, refusal: type[SandboxRefused]
) -> None:
    with pytest.raises(refusal):
        SandboxReader(sandbox).list(path)


def test_file_of_the_older_parts_name_that_the_task_made_does_not_hide_its_output(sandbox: Path) -> None:
    (sandbox / "stdout").write_text("out")
    (sandbox / "stdout.1").write_text("something else")

    assert SandboxReader(sandbox).read("stdout", 0, 10) == (0, b"out", 3)
