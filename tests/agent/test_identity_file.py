"""The agent's identity beside its journal: a loss is told from a first start."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead_agent.checkpoint import Checkpoint, CheckpointCorrupt
from fairlead_agent.core.records import (
    IdentityTaken,
)
from fairlead_proto.ids import AgentId
from tests.agent.builders import AGENT, KINDS
from tests.agent.journals import RECORDS, WHAT_TO_DO, a_journal, reopened


def an_identity(agent_id: str = "a1", *, incarnation: int = 3, epoch: int = 7) -> IdentityTaken:
    return IdentityTaken(agent_id=AgentId(agent_id), boot_id="b", incarnation=incarnation, epoch=epoch)


def a_life(path: Path, *identities: IdentityTaken) -> bytes:
    """Write a journal with these identities, each made durable, and a task."""
    journal, _ = Checkpoint.open(path, KINDS)
    for identity in identities:
        journal.append([identity])
        journal.sync(identity)
    journal.append(RECORDS[1:2])
    journal.close()
    return path.read_bytes()


@pytest.mark.parametrize(
    ("damaged", "found"),
    [
        (None, "no file"),
        (lambda _data: b"", "an empty file"),
        (lambda data: b"\0" * len(data), "one that names no agent"),
        (lambda data: b"".join(data.splitlines(keepends=True)[:1]), "one that names no agent"),
        (
            lambda data: b"".join(data.splitlines(keepends=True)[:2]),
            "an agent without an id in life 3, epoch 0",
        ),
        (lambda data: b"".join(data.splitlines(keepends=True)[:3]), "agent a1 in life 3, epoch 7"),
    ],
)
def test_journal_that_lost_its_agent_is_no_first_start(
    tmp_path: Path, damaged: Callable[[bytes], bytes] | None, found: str
) -> None:
    path = tmp_path / "checkpoint"
    data = a_life(path, an_identity("", epoch=0), an_identity(), an_identity(epoch=8))
    path.unlink()
    if damaged is not None:
        path.write_bytes(damaged(data))

    with pytest.raises(CheckpointCorrupt) as raised:
        Checkpoint.open(path, KINDS)

    assert str(raised.value) == (
        f"{path}: expected the journal of agent a1 in life 3, epoch 8, which was here, or of a later life of it, "
        f"found {found}; its tasks may run still: {WHAT_TO_DO}"
    )
    assert (path.read_bytes() if path.exists() else None) == (damaged and damaged(data))


def test_copy_of_an_earlier_life_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    copy = a_life(path, an_identity())
    a_life(path, an_identity(incarnation=4))
    path.write_bytes(copy)

    with pytest.raises(
        CheckpointCorrupt, match=r"agent a1 in life 4, epoch 7, .* found agent a1 in life 3, epoch 7"
    ):
        Checkpoint.open(path, KINDS)


def test_journal_cut_between_two_records_is_refused_until_the_next_boot(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    identity = replace(an_identity(), boot_id="boot")
    short = a_life(path, identity)
    journal, _ = Checkpoint.open(path, KINDS, "boot")
    journal.append([identity])
    journal.sync(identity)
    long = path.read_bytes()
    journal.append(RECORDS)
    journal.close()
    whole = path.read_bytes()

    for cut in (long, whole[:-3]):
        path.write_bytes(cut)
        with pytest.raises(
            CheckpointCorrupt, match=f"expected the {len(whole)} bytes .* found {len(long)}; "
        ):
            Checkpoint.open(path, KINDS, "boot")
        assert path.read_bytes() == cut

    journal, records = Checkpoint.open(path, KINDS, "next boot")
    journal.close()
    assert records == [identity, RECORDS[1], identity]
    assert len(short) < len(long) < len(whole)


@pytest.mark.parametrize("is_renamed", [True, False])
def test_kill_while_a_journal_is_compacted_is_no_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_renamed: bool
) -> None:
    path = tmp_path / "checkpoint"
    identity = replace(an_identity(), boot_id="boot")
    journal, _ = Checkpoint.open(path, KINDS, "boot")
    journal.append([*RECORDS[1:], identity])
    journal.sync(identity)
    rename = Path.rename

    def killed(beside: Path, target: Path) -> None:
        if is_renamed:
            rename(beside, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", killed)
    with pytest.raises(KeyboardInterrupt):
        journal.compact([identity])
    journal.close()
    monkeypatch.undo()

    journal, records = Checkpoint.open(path, KINDS, "boot")
    journal.close()
    assert records == ([identity] if is_renamed else [*RECORDS[1:], identity])


def test_journal_of_another_agent_is_refused(tmp_path: Path) -> None:
    a_life(tmp_path / "checkpoint", an_identity("a1"))
    (tmp_path / "checkpoint").unlink()
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / "checkpoint").write_bytes(
        a_life(other / "checkpoint", an_identity("a2", incarnation=9, epoch=9))
    )

    with pytest.raises(CheckpointCorrupt, match="found agent a2 in life 9, epoch 9"):
        Checkpoint.open(tmp_path / "checkpoint", KINDS)


def test_journal_and_identity_moved_away_make_a_new_agent(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    a_life(path, an_identity())
    path.unlink()
    (tmp_path / "checkpoint.identity").unlink()

    assert reopened(path) == []


def test_crash_between_journal_and_identity_is_no_loss(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    a_life(path, an_identity("", incarnation=1, epoch=0))
    journal, _ = Checkpoint.open(path, KINDS)
    journal.append([an_identity()])
    journal.close()

    assert reopened(path)[-1] == an_identity()


def test_first_start_that_was_cut_off_is_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(b"")
    assert reopened(path) == []
    data = a_journal(path, [])

    path.write_bytes(data[:10])

    assert reopened(path) == []


def test_agent_of_before_there_was_such_a_file_gets_one(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    a_journal(path)
    journal, records = Checkpoint.open(path, KINDS)
    assert records == RECORDS
    journal.append([an_identity(AGENT, incarnation=4)])
    journal.sync(an_identity(AGENT, incarnation=4))
    journal.close()

    path.write_bytes(b"")

    with pytest.raises(CheckpointCorrupt, match="found an empty file"):
        Checkpoint.open(path, KINDS)


@pytest.mark.parametrize("content", [b"", b"\0" * 512, b"00000000 []\n", b"rubbish\n"])
def test_damaged_identity_is_refused_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "checkpoint"
    a_life(path, an_identity())
    (tmp_path / "checkpoint.identity").write_bytes(content)

    with pytest.raises(
        CheckpointCorrupt, match=r"checkpoint.identity: damaged: .* remove checkpoint.identity to use it"
    ):
        Checkpoint.open(path, KINDS)

    (tmp_path / "checkpoint.identity").unlink()
    assert reopened(path)[0] == an_identity()


def test_identity_is_written_over_in_place(tmp_path: Path) -> None:
    """A full disk has no room for a new file, and must not keep an agent from noting a newer epoch."""
    path = tmp_path / "checkpoint"
    a_life(path, an_identity("x" * 200))
    before = (tmp_path / "checkpoint.identity").stat()

    journal, _ = Checkpoint.open(path, KINDS)
    journal.sync(an_identity("y", epoch=8))
    journal.close()

    after = (tmp_path / "checkpoint.identity").stat()
    assert (before.st_ino, before.st_size) == (after.st_ino, after.st_size)
    assert after.st_size == 512


def test_journal_is_synced_before_its_identity_and_with_every_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []

    def note(file: int) -> None:
        name = str(Path(f"/proc/self/fd/{file}").readlink())
        synced.append("directory" if name == str(tmp_path) else Path(name).name)

    monkeypatch.setattr(os, "fdatasync", note)
    monkeypatch.setattr(os, "fsync", note)
    journal, _ = Checkpoint.open(tmp_path / "checkpoint", KINDS)
    assert synced == ["directory"]

    journal.append([an_identity()])
    journal.sync(an_identity())
    assert synced[1:] == ["checkpoint", "checkpoint.identity", "directory"]

    journal.compact([an_identity()])
    assert synced[4:] == ["checkpoint.new", "directory"]
    journal.sync(an_identity())
    assert synced[6:] == ["checkpoint", "checkpoint.identity"]
    journal.close()
