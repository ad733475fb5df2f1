"""The journal: a cut end is dropped, any other damage is refused, nothing is overwritten."""

import os
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_agent.checkpoint import Checkpoint, CheckpointCorrupt
from fairlead_agent.core.records import (
    IdentityTaken,
    Record,
    StatusesAccepted,
    StatusMade,
    TaskLaunched,
    TaskRemembered,
)
from fairlead_agent.record_codec import decode, encode
from fairlead_proto.ids import AgentId, FrameworkId
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import TaskUsage
from tests.agent.builders import AGENT, KINDS, START_MS, a_key, a_running_agent, a_spec, a_status, an_exit

USAGE = TaskUsage(cpu_time_ms=1, mem_bytes=2, mem_peak_bytes=3, mem_limit_bytes=4, sandbox_bytes=5)
RECORDS: list[Record] = [
    IdentityTaken(agent_id=AGENT, boot_id="b", incarnation=3, epoch=7),
    TaskLaunched(
        framework_id=FrameworkId("f1"),
        spec=a_spec(command=("sh", "-c", "echo 'é\n\0'"), labels={"a": "b"}, max_runtime_ms=5, name="ü"),
        launched_ms=START_MS,
    ),
    TaskLaunched(
        framework_id=FrameworkId("f1"),
        spec=a_spec("t2"),
        launched_ms=START_MS,
        started_ms=START_MS + 9,
    ),
    StatusMade(status=a_status()),
    StatusesAccepted(key=a_key(), sequence=1),
    StatusMade(
        status=a_status(
            sequence=2, state=TaskState.FAILED, reason=Reason.EXITED, message="x\n", exit_code=3, usage=USAGE
        )
    ),
    TaskRemembered(status=a_status("t2", sequence=4, state=TaskState.KILLED, signal=9)),
]


WHAT_TO_DO = (
    "move checkpoint and checkpoint.identity away to start as a new agent, which ends the tasks of the old one and removes "
    "their sandboxes: copy what you need of sandboxes/ first (docs/operating.md, What is lost with what)"
)


def a_journal(path: Path, records: list[Record] = RECORDS) -> bytes:
    journal, found = Checkpoint.open(path, KINDS)
    assert found == []
    for record in records:
        journal.append([record])
    journal.close()
    return path.read_bytes()


def reopened(path: Path) -> list[Record]:
    journal, records = Checkpoint.open(path, KINDS)
    journal.close()
    return records


def test_what_was_appended_is_read_back(tmp_path: Path) -> None:
    a_journal(tmp_path / "checkpoint")

    assert reopened(tmp_path / "checkpoint") == RECORDS


def test_a_launch_written_without_its_start_is_read() -> None:
    launched = next(record for record in RECORDS if isinstance(record, TaskLaunched))

    assert launched.started_ms == 0
    assert decode(encode(launched, KINDS)[:-1], KINDS) == launched


def test_appending_goes_on_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    a_journal(path)
    journal, _ = Checkpoint.open(path, KINDS)
    journal.append(RECORDS[:1])
    journal.close()

    assert reopened(path) == [*RECORDS, RECORDS[0]]


@given(cut=st.integers(min_value=1))
def test_cut_end_is_dropped_and_overwritten_by_what_follows(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("journal") / "checkpoint"
    data = a_journal(path)
    path.write_bytes(data[: len(data) - 1 - cut % (len(data) - 1)])

    kept = reopened(path)
    assert kept == RECORDS[: len(kept)]
    journal, _ = Checkpoint.open(path, KINDS)
    journal.append(RECORDS[-1:])
    journal.close()
    assert reopened(path) == [*kept, RECORDS[-1]]


def test_zeros_that_a_host_crash_leaves_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    data = a_journal(path)
    path.write_bytes(data + b"\0" * 4096)

    assert reopened(path) == RECORDS
    assert path.read_bytes() == data


@given(where=st.integers(min_value=0), bit=st.integers(0, 7))
def test_flipped_bit_before_the_end_is_refused_and_the_file_left_alone(
    tmp_path_factory: pytest.TempPathFactory, where: int, bit: int
) -> None:
    path = tmp_path_factory.mktemp("journal") / "checkpoint"
    data = bytearray(a_journal(path))
    # The last record's damage can look like a cut; every earlier byte is followed by a whole record.
    last = bytes(data).rstrip(b"\n").rindex(b"\n")
    data[where % last] ^= 1 << bit
    path.write_bytes(bytes(data))

    with pytest.raises(CheckpointCorrupt, match=r"checkpoint: damaged at byte \d+"):
        Checkpoint.open(path, KINDS)

    assert path.read_bytes() == bytes(data)


def test_damage_is_named_with_file_and_offset(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    lines = a_journal(path).splitlines(keepends=True)
    path.write_bytes(lines[0] + b"rubbish\n" + lines[2])

    with pytest.raises(CheckpointCorrupt) as raised:
        Checkpoint.open(path, KINDS)

    assert str(raised.value) == (
        f"{path}: damaged at byte {len(lines[0])}: expected a record with its checksum, got "
        f"{(b'rubbish' + bytes([10]) + lines[2])[:40]!r}; {WHAT_TO_DO}"
    )


def test_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.write_text("these are my notes\nand more of them\n")

    with pytest.raises(CheckpointCorrupt, match="damaged at byte 0"):
        Checkpoint.open(path, KINDS)

    assert path.read_text() == "these are my notes\nand more of them\n"


def test_journal_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    a_journal(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[1:]))

    with pytest.raises(CheckpointCorrupt, match=r'expected .*fairlead agent checkpoint",1'):
        Checkpoint.open(path, KINDS)


def test_record_of_a_newer_version_is_refused_by_its_offset(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    data = a_journal(path)
    payload = b'[["levitated","t1"]]'
    path.write_bytes(data + b"%08x %08x %b\n" % (len(payload), zlib.crc32(payload), payload))

    with pytest.raises(CheckpointCorrupt, match=f"unreadable at byte {len(data)}: expected a record"):
        Checkpoint.open(path, KINDS)


def test_role_that_earlier_versions_wrote_is_passed_over_and_its_place_kept() -> None:
    launched = next(record for record in RECORDS if isinstance(record, TaskLaunched))
    array = encode(launched, KINDS)
    older = [*array[:2], "eng/ml", *array[3:]]

    assert array[2] == ""
    assert decode(older, KINDS) == launched


def test_records_of_one_turn_survive_together_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    journal, _ = Checkpoint.open(path, KINDS)
    journal.append(RECORDS[:2])
    journal.append(RECORDS[2:])
    journal.close()
    assert reopened(path) == RECORDS

    path.write_bytes(path.read_bytes()[:-10])

    assert reopened(path) == RECORDS[:2]


def test_long_journal_is_compacted_to_several_lines(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    journal, _ = Checkpoint.open(path, KINDS)
    journal.compact(RECORDS * 1_000)
    journal.close()

    assert reopened(path) == RECORDS * 1_000
    assert len(path.read_bytes().splitlines()) == 1 + len(RECORDS)


def test_compaction_replaces_the_journal_and_appending_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    journal, _ = Checkpoint.open(path, KINDS)
    journal.append(RECORDS * 100)

    journal.compact(RECORDS[:2])
    journal.append(RECORDS[2:3])
    journal.close()

    assert reopened(path) == RECORDS[:3]
    assert list(tmp_path.iterdir()) == [path]


def test_journal_is_long_when_it_has_doubled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead_agent.checkpoint.COMPACT_BYTES_MIN", 2_000)
    journal, _ = Checkpoint.open(tmp_path / "checkpoint", KINDS)
    while not journal.is_long():
        journal.append(RECORDS)
    journal.compact(RECORDS * 20)
    assert not journal.is_long()
    journal.append(RECORDS * 21)
    assert journal.is_long()
    journal.close()


def test_full_disk_leaves_no_half_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "checkpoint"
    journal, _ = Checkpoint.open(path, KINDS)
    journal.append(RECORDS[:1])
    write = os.write

    def write_half(file: int, data: bytes) -> int:
        if len(data) < 20:
            raise OSError(28, "No space left on device")
        return write(file, data[: len(data) // 2])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write_half)
        with pytest.raises(OSError, match="No space left"):
            journal.append(RECORDS[1:])
    journal.append(RECORDS[2:3])
    journal.close()

    assert reopened(path) == [RECORDS[0], RECORDS[2]]


def test_full_disk_leaves_the_journal_uncompacted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "checkpoint"
    journal, _ = Checkpoint.open(path, KINDS)
    journal.append(RECORDS)

    def no_space(_file: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", no_space)
        with pytest.raises(OSError, match="No space left"):
            journal.compact(RECORDS[:1])
    journal.append(RECORDS[:1])
    journal.close()

    assert reopened(path) == [*RECORDS, RECORDS[0]]
    assert list(tmp_path.iterdir()) == [path]


def test_amounts_survive_a_change_of_the_kinds_of_resources(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    kinds = ResourceKinds(("licenses", "tapes"))
    journal, _ = Checkpoint.open(path, kinds)
    spec = a_spec(resources=(1000, 5, 0, 0, 2000, 3000))
    journal.append([TaskLaunched(framework_id=FrameworkId("f1"), spec=spec, launched_ms=1)])
    journal.close()

    journal, (record,) = Checkpoint.open(path, ResourceKinds(("tapes",)))
    journal.close()
    assert isinstance(record, TaskLaunched)
    assert record.spec.resources == (1000, 5, 0, 0, 3000)


def test_state_after_replay_is_the_state_before(tmp_path: Path) -> None:
    agent = a_running_agent("t1", "t2")
    agent.step(an_exit("t1", usage=USAGE))
    a_journal(tmp_path / "checkpoint", agent.journal)

    agent.journal = reopened(tmp_path / "checkpoint")
    before = agent.machine.snapshot()
    agent.restart()

    assert agent.machine.snapshot() == before


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
