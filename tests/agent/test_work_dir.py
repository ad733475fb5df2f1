"""The work directory belongs to one agent at a time."""

import os
import shutil
from pathlib import Path

import pytest

from fairlead_agent.work_dir import WorkDir, WorkDirUnusable
from tests.agent.builders import a_key


def test_second_agent_is_refused_and_told_by_whom(tmp_path: Path) -> None:
    first = WorkDir.open(tmp_path / "work")

    with pytest.raises(WorkDirUnusable) as raised:
        WorkDir.open(tmp_path / "work")

    assert (
        str(raised.value)
        == f"work directory {tmp_path}/work: in use by another agent (process {os.getpid()})"
    )
    first.close()
    WorkDir.open(tmp_path / "work").close()


def test_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(WorkDirUnusable, match="file/work: cannot be written: Not a directory"):
        WorkDir.open(tmp_path / "file" / "work")


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_directories_of_an_older_agent_are_closed_to_others(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "sandboxes").mkdir(parents=True)
    (work / "agent.lock").touch()
    for path in (work, work / "sandboxes"):
        path.chmod(0o755)

    WorkDir.open(work).close()

    assert [mode_of(path) for path in (work, work / "sandboxes")] == [0o700, 0o700]


def test_directory_that_has_other_things_in_it_keeps_its_mode(tmp_path: Path) -> None:
    """It may be somebody's home; what the agent makes in it is closed all the same."""
    tmp_path.chmod(0o755)
    (tmp_path / "notes").touch()

    WorkDir.open(tmp_path).close()

    assert mode_of(tmp_path) == 0o755
    assert mode_of(tmp_path / "sandboxes") == 0o700
    tmp_path.chmod(0o1777)
    WorkDir.open(tmp_path).close()
    assert mode_of(tmp_path) == 0o1777


def test_sandboxes_are_found_and_empty_frameworks_tidied(tmp_path: Path) -> None:
    work_dir = WorkDir.open(tmp_path)
    for key in (a_key("t2", "f1"), a_key("t1", "f1"), a_key("t1", "f2")):
        Path(work_dir.sandbox(key)).mkdir(parents=True)
    (tmp_path / "sandboxes" / "f3").mkdir()

    assert work_dir.find_sandboxes() == [a_key("t1", "f1"), a_key("t2", "f1"), a_key("t1", "f2")]
    assert not (tmp_path / "sandboxes" / "f3").exists()
    work_dir.close()


def test_stray_file_among_the_sandboxes_does_no_harm(tmp_path: Path) -> None:
    work_dir = WorkDir.open(tmp_path)
    (tmp_path / "sandboxes" / "notes").write_text("")

    assert work_dir.find_sandboxes() == []
    work_dir.close()


def test_removal_takes_everything_but_follows_no_link(tmp_path: Path) -> None:
    work_dir = WorkDir.open(tmp_path / "work")
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("keep")
    sandbox = Path(work_dir.sandbox(a_key()))
    (sandbox / "deep").mkdir(parents=True)
    (sandbox / "deep" / "link").symlink_to(precious)
    (sandbox / "deep" / "closed").mkdir(mode=0o000)

    assert work_dir.remove_sandboxes([a_key(), a_key("t9")]) == []

    assert not sandbox.exists()
    assert (precious / "file").read_text() == "keep"
    work_dir.close()


def test_directories_a_task_has_closed_are_opened_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work_dir = WorkDir.open(tmp_path / "work")
    sandbox = Path(work_dir.sandbox(a_key()))
    closed = sandbox / "closed"
    (closed / "inner").mkdir(parents=True)
    (closed / "link").symlink_to(tmp_path, target_is_directory=True)
    closed.chmod(0o000)
    rmtree = shutil.rmtree

    def refuse_closed(path: Path) -> None:
        # What happens to an ordinary user; root is never refused.
        if not closed.stat().st_mode & 0o700:
            raise PermissionError(13, "Permission denied")
        rmtree(path)

    monkeypatch.setattr(shutil, "rmtree", refuse_closed)

    assert work_dir.remove_sandboxes([a_key()]) == []
    assert not sandbox.exists()
    assert tmp_path.exists()
    work_dir.close()


def test_removal_says_what_it_could_not_remove(tmp_path: Path) -> None:
    work_dir = WorkDir.open(tmp_path)
    sandbox = Path(work_dir.sandbox(a_key()))
    sandbox.parent.mkdir()
    sandbox.write_text("not a directory")

    (failure,) = work_dir.remove_sandboxes([a_key()])

    assert failure == f"{sandbox}: Not a directory"
    work_dir.close()


def test_sizes_of_the_disk_are_plausible(tmp_path: Path) -> None:
    work_dir = WorkDir.open(tmp_path)

    total_bytes, free_bytes = work_dir.disk_bytes()

    assert 0 <= free_bytes <= total_bytes
    work_dir.close()
