"""A registry's files: whole or not there, private, and refused when what somebody was told is not in them."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fairlead_master.core.actions import StoreFramework
from fairlead_master.registry import Registry, open_registry
from fairlead_master.registry_files import RegistryError, open_files
from fairlead_proto.ids import FrameworkId, Role
from fairlead_proto.resources import ResourceKinds

KINDS = ResourceKinds()


def a_framework(number: int) -> StoreFramework:
    return StoreFramework(
        framework_id=FrameworkId(f"f1-{number}"),
        name="n",
        role=Role("r"),
        principal="",
        failover_timeout_ms=1,
    )


def a_registry(directory: Path, frameworks: int = 1) -> Registry:
    """An open registry with as many commits as frameworks, and one more for the epoch."""
    registry = open_registry(directory, KINDS)
    registry.load(1)
    for number in range(frameworks):
        registry.write([a_framework(number)]).result()
    return registry


def killed(directory: Path, where: Path) -> Path:
    """The files as a kill -9 of their master now would leave them, log and all."""
    shutil.copytree(directory, where)
    (where / "registry.db-shm").unlink()
    return where


def frameworks_in(directory: Path) -> Sequence[StoreFramework]:
    registry = open_registry(directory, KINDS)
    try:
        return registry.load(1).remembered.frameworks
    finally:
        registry.close()


def contents(directory: Path) -> dict[str, bytes]:
    """What is in the files that matter; SQLite may put an empty log beside a database it only looks at."""
    names = ("registry.db", "registry.db-wal", "registry.commit")
    found = {name: (directory / name).read_bytes() for name in names if (directory / name).exists()}
    return {name: content for name, content in found.items() if content}


@pytest.mark.shell
def test_a_kill_at_any_step_leaves_nothing_or_a_whole_registry(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.builders.registry_lives", str(tmp_path)]
    outcomes = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)

    assert len(outcomes) > 20
    assert [outcome for outcome in outcomes if not outcome["was_killed"] or outcome["refusal"]] == []


def _shorten(path: Path, by: int) -> None:
    os.truncate(path, path.stat().st_size - by)


def _spoil(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize(
    "lose",
    [
        lambda log: _shorten(log, 1),
        lambda log: _shorten(log, log.stat().st_size // 2),
        lambda log: os.truncate(log, 0),
        lambda log: log.unlink(),
        lambda log: _spoil(log, 5),
        lambda log: _spoil(log, log.stat().st_size // 2),
        lambda log: _spoil(log, log.stat().st_size - 9),
    ],
    ids=["last byte", "half", "all", "the file", "its head", "its middle", "its last frame"],
)
def test_a_log_that_lost_what_was_told_is_refused_and_left_alone(
    tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    registry = a_registry(tmp_path / "live", frameworks=6)
    left = killed(tmp_path / "live", tmp_path / "left")
    registry.close()
    lose(left / "registry.db-wal")
    before = contents(left)

    with pytest.raises(RegistryError, match=r"registry\.db: expected commit 7, .* restore a copy"):
        open_registry(left, KINDS)

    assert contents(left) == before


def test_a_log_that_lost_only_what_nobody_was_told_is_taken(tmp_path: Path) -> None:
    registry = a_registry(tmp_path / "live", frameworks=2)
    told = (tmp_path / "live" / "registry.commit").read_bytes()
    registry.write([a_framework(2)]).result()
    left = killed(tmp_path / "live", tmp_path / "left")
    registry.close()
    (left / "registry.commit").write_bytes(told)
    _shorten(left / "registry.db-wal", 1)

    assert frameworks_in(left) == (a_framework(0), a_framework(1))


def test_a_kill_between_commit_and_its_number_loses_nothing(tmp_path: Path) -> None:
    registry = a_registry(tmp_path / "live", frameworks=1)
    told = (tmp_path / "live" / "registry.commit").read_bytes()
    registry.write([a_framework(1)]).result()
    left = killed(tmp_path / "live", tmp_path / "left")
    registry.close()
    (left / "registry.commit").write_bytes(told)

    assert frameworks_in(left) == (a_framework(0), a_framework(1))


def test_the_number_is_synced_after_its_commit_and_before_its_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = a_registry(tmp_path)
    synced = []

    def sync(descriptor: int) -> None:
        reader = sqlite3.connect(tmp_path / "registry.db")
        (committed,) = reader.execute("select number from commits").fetchone()
        reader.close()
        synced.append((committed, int(os.pread(descriptor, 100, 0).split()[3])))

    monkeypatch.setattr(os, "fdatasync", sync)
    registry.write([a_framework(1)]).result()
    told = list(synced)
    registry.close()

    assert told == [(3, 3)]


def test_a_batch_that_fails_gives_no_number_away(tmp_path: Path) -> None:
    registry = a_registry(tmp_path)
    broken = StoreFramework(
        framework_id=FrameworkId("f1-9"),
        name="x",
        role=Role("r"),
        principal=None,  # type: ignore[arg-type]  # the fault under test
        failover_timeout_ms=1,
    )
    with pytest.raises(sqlite3.IntegrityError):
        registry.write([broken]).result()
    registry.close()

    assert frameworks_in(tmp_path) == (a_framework(0),)


def test_an_older_copy_in_place_is_refused_and_in_a_new_directory_taken(tmp_path: Path) -> None:
    registry = a_registry(tmp_path / "live", frameworks=1)
    copy = sqlite3.connect(tmp_path / "copy.db")
    source = sqlite3.connect(f"file:{tmp_path / 'live' / 'registry.db'}?mode=ro", uri=True)
    source.backup(copy)
    source.close()
    copy.close()
    registry.write([a_framework(1)]).result()
    registry.close()

    shutil.copy(tmp_path / "copy.db", tmp_path / "live" / "registry.db")
    with pytest.raises(
        RegistryError, match=r"expected commit 3, .* found 2: .* restore a copy in a new directory"
    ):
        open_registry(tmp_path / "live", KINDS)
    (tmp_path / "new").mkdir()
    shutil.copy(tmp_path / "copy.db", tmp_path / "new" / "registry.db")

    assert frameworks_in(tmp_path / "new") == (a_framework(0),)
    assert frameworks_in(tmp_path / "new") == (a_framework(0),)


@pytest.mark.parametrize(
    "content",
    [b"", b"0\n", b"fairlead registry commit 00000000000000000001 00000000\n", b"\xff" * 55],
    ids=["empty", "a bare number", "a wrong sum", "no text"],
)
def test_a_damaged_commit_number_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    a_registry(tmp_path).close()
    (tmp_path / "registry.commit").write_bytes(content)

    with pytest.raises(
        RegistryError, match=r"registry\.commit: expected the number of the last commit, found damage"
    ):
        open_registry(tmp_path, KINDS)

    assert (tmp_path / "registry.commit").read_bytes() == content
    # What the refusal says to do if one knows that the database is as it should be.
    (tmp_path / "registry.commit").unlink()
    (tmp_path / "lock").unlink()
    assert frameworks_in(tmp_path) == (a_framework(0),)


def test_a_lost_commit_number_is_refused(tmp_path: Path) -> None:
    a_registry(tmp_path).close()
    (tmp_path / "registry.commit").unlink()

    with pytest.raises(RegistryError, match=r"registry\.commit: expected the number .* found no file"):
        open_registry(tmp_path, KINDS)


def test_an_empty_database_is_a_loss_and_no_first_start(tmp_path: Path) -> None:
    a_registry(tmp_path).close()
    os.truncate(tmp_path / "registry.db", 0)

    with pytest.raises(
        RegistryError, match=r"registry\.db: expected a registry, got an empty file.* restore a copy"
    ):
        open_registry(tmp_path, KINDS)

    assert (tmp_path / "registry.db").read_bytes() == b""


@pytest.mark.parametrize("left", ["registry.commit", "lock", "registry.db-wal"])
def test_a_database_that_is_gone_is_missed_by_whatever_is_left(tmp_path: Path, left: str) -> None:
    registry = a_registry(tmp_path / "live")
    lost = killed(tmp_path / "live", tmp_path / "lost")
    registry.close()
    for path in lost.iterdir():
        if path.name != left:
            path.unlink()

    with pytest.raises(
        RegistryError, match=rf"served here \({left} tells of it\), found none: restore a copy"
    ):
        open_registry(lost, KINDS)


def modes(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in (directory, *directory.iterdir())}


def test_only_its_owner_can_read_a_registry(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        registry = a_registry(tmp_path / "state")
        found = modes(tmp_path / "state")
        registry.close()
    finally:
        os.umask(old)

    assert found.pop("state") == 0o700
    assert found == dict.fromkeys(
        ("lock", "registry.db", "registry.db-wal", "registry.db-shm", "registry.commit"), 0o600
    )


def test_what_an_older_version_left_open_is_closed(tmp_path: Path) -> None:
    registry = a_registry(tmp_path / "live")
    state = killed(tmp_path / "live", tmp_path / "state")
    registry.close()
    for path in (state, *state.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)

    files = open_files(state)
    found = modes(state)
    files.close()

    assert found.pop("state") == 0o700
    assert set(found.values()) == {0o600}


def test_a_directory_that_holds_other_things_too_keeps_its_mode(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(0o755)
    (state / "theirs").touch()
    (state / "theirs").chmod(0o644)

    open_files(state).close()

    assert modes(state) == {
        "state": 0o755,
        "theirs": 0o644,
        "lock": 0o600,
        "registry.db": 0o600,
        "registry.commit": 0o600,
    }
