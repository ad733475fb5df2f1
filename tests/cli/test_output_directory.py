"""`run --output DIR`: files that hold what each task printed, and never what two runs did."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from fairlead_cli.errors import Failed, Invalid
from fairlead_cli.output_directory import OutputDirectory
from fairlead_sdk import Task, TaskOutput
from tests.cli.conftest import Invoke

TASK = Task(["t"], name="t")


def a_piece(
    data: bytes = b"",
    *,
    name: str = "t-1",
    task_id: str = "f1:1",
    is_last: bool = False,
    skipped_bytes: int = 0,
) -> TaskOutput:
    return TaskOutput(
        task=TASK,
        name=name,
        task_id=task_id,
        path="stdout",
        offset=0,
        data=data,
        is_last=is_last,
        skipped_bytes=skipped_bytes,
    )


def test_pieces_of_a_task_are_one_file_and_silence_is_none(tmp_path: Path) -> None:
    directory = OutputDirectory(tmp_path / "a" / "b")

    for piece in (
        a_piece(b"one "),
        a_piece(b"other", name="a/b-2", task_id="f1:2"),
        a_piece(b"again", task_id="f1:1.2"),
        a_piece(b"two"),
        a_piece(is_last=True),
    ):
        directory.write(piece)
    directory.write(a_piece(name="t-3", task_id="f1:3", is_last=True))

    files = {path.name: path.read_bytes() for path in (tmp_path / "a" / "b").iterdir()}
    assert files == {"t-1.stdout": b"one two", "a_b-2.stdout": b"other", "t-1.2.stdout": b"again"}


def test_halves_of_two_lines_around_a_gap_are_two_lines(tmp_path: Path) -> None:
    directory = OutputDirectory(tmp_path)

    for piece in (
        a_piece(b"one\nlast 12", skipped_bytes=5),
        a_piece(skipped_bytes=7),
        a_piece(b"34 rest\n"),
        a_piece(b"end", skipped_bytes=9),
    ):
        directory.write(piece)

    assert (tmp_path / "t-1.stdout").read_bytes() == b"one\nlast 12\n34 rest\nend"


def test_a_file_that_is_there_stops_the_run_before_it_begins(tmp_path: Path) -> None:
    (tmp_path / "t-2.stderr").write_text("mine")
    directory = OutputDirectory(tmp_path)
    directory.check_free(["t-1"])

    with pytest.raises(Invalid, match=r"--output .*: expected no file t-2\.stderr"):
        directory.check_free(["t-1", "t-2"])


def test_a_file_that_somebody_made_meanwhile_is_not_written_to(tmp_path: Path) -> None:
    directory = OutputDirectory(tmp_path)
    (tmp_path / "t-1.stdout").write_text("mine")

    with pytest.raises(Failed, match=r"t-1\.stdout: File exists"):
        directory.write(a_piece(b"x"))

    assert (tmp_path / "t-1.stdout").read_text() == "mine"


def test_a_full_disk_is_said_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = OutputDirectory(tmp_path)

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(Failed, match=r"--output .*: t-1\.stdout: No space left on device"):
        directory.write(a_piece(b"x"))


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(Invalid, match=r"--output .*: "):
        OutputDirectory(tmp_path / "file" / "out")


def test_a_directory_that_cannot_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may write wherever a mode forbids it, so the refusal is the file system's.
    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(Invalid, match=r"--output .*: Read-only file system"):
        OutputDirectory(tmp_path)


def test_the_trial_of_a_directory_leaves_nothing_there(tmp_path: Path) -> None:
    OutputDirectory(tmp_path)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("flag", "complaint"),
    [
        ("--detach", "an attached run, got --detach"),
        ("--no-files", "tasks whose output is kept, got --no-files"),
    ],
)
def test_a_run_that_has_no_output_here_is_refused(
    invoke: Invoke, tmp_path: Path, flag: str, complaint: str
) -> None:
    outcome = invoke("run", flag, "--output", str(tmp_path), "--", "true")

    assert outcome.code == 2
    assert f"--output: expected {complaint}" in outcome.err
