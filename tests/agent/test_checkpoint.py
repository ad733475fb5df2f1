"""The journal: a cut end is dropped, any other damage is refused, nothing is overwritten."""

import os
import shutil
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_agent.checkpoint import Checkpoint, CheckpointCorrupt
from fairlead_agent.core.records import IdentityTaken, StatusMade, TaskLaunched
from fairlead_agent.record_codec import decode, encode
from fairlead_proto.ids import AgentId, FrameworkId
from fairlead_proto.resources import ResourceKinds
from tests.agent.builders import KINDS, a_running_agent, a_spec, an_exit
from tests.agent.journals import RECORDS, USAGE, WHAT_TO_DO, a_journal, reopened


def test_what_was_appended_is_read_back(tmp_path: Path) -> None:
    a_journal(tmp_path / "checkpoint")

    assert reopened(tmp_path / "checkpoint") == RECORDS


def test_a_launch_written_without_its_start_is_read() -> None:
    launched = next(record for record in RECORDS if isinstance(record, TaskLaunched))

    assert launched.started_ms == 0
    assert decode(encode(launched, KINDS)[:-1], KINDS) == launched


def test_output_is_unknown_in_what_was_written_before_it_was_counted() -> None:
    record = next(record for record in RECORDS if isinstance(record, StatusMade) and record.status.usage)

    *rest, usage = encode(record, KINDS)

    before = replace(USAGE, stdout_bytes=None, stderr_bytes=None)
    assert usage[5:] == [6, None]
    assert decode([*rest, usage[:5]], KINDS) == StatusMade(status=replace(record.status, usage=before))


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


def test_journal_that_an_agent_of_the_baseline_wrote_is_read(tmp_path: Path) -> None:
    """As commit 39edbb5 wrote it, its identity beside it."""
    shutil.copytree(Path(__file__).parent / "checkpoints", tmp_path / "old")

    journal, records = Checkpoint.open(tmp_path / "old" / "checkpoint", KINDS, "b")
    journal.close()

    assert records[0] == IdentityTaken(agent_id=AgentId("a1"), boot_id="b", incarnation=3, epoch=7)
    assert len(records) == 7
    # What agents have written since came in between.
    assert records[1:] == [record for record in RECORDS if record in records[1:]]


def test_journal_of_a_newer_version_is_refused_by_both_numbers_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    a_journal(path)
    payload = b'["fairlead agent checkpoint",2]'
    content = b"%08x %08x %b\n" % (len(payload), zlib.crc32(payload), payload) + b"\0\0"
    path.write_bytes(content)

    with pytest.raises(CheckpointCorrupt) as refusal:
        Checkpoint.open(path, KINDS)

    assert str(refusal.value) == (
        f"{path}: expected version 1 of a checkpoint, got version 2: start the version of the agent that wrote it; "
        "nothing was changed"
    )
    assert path.read_bytes() == content


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
