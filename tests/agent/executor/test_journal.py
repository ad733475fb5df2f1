"""The journal gives a successor what its predecessor knew, also after a full disk."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead_agent.executor import journal as journal_module
from fairlead_agent.executor.journal import Journal, JournalNewer, Recorded
from fairlead_agent.executor.protocol import Exited, Measurement, StartFailed
from fairlead_proto.task_state import Reason
from tests.agent.executor.conftest import key_of


def an_exit(name: str) -> Exited:
    return Exited(key_of(name), 0, None, False, "", Measurement(), 1)


def a_start(name: str) -> Recorded:
    return Recorded(key_of(name), f"/sandboxes/{name}", 5, 6)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    journal = Journal(str(tmp_path / "journal"))
    journal.open(boot_id="boot", directories=["/groups"])
    return journal


def reread(tmp_path: Path) -> Journal:
    return Journal(str(tmp_path / "journal"))


def test_successor_knows_what_runs_and_what_has_ended(journal: Journal, tmp_path: Path) -> None:
    failure = StartFailed(key_of("c"), Reason.SANDBOX_FAILED, "sandbox: …")
    journal.record(starts=[a_start("a"), a_start("b"), a_start("c"), a_start("d")])
    journal.record(ends=[an_exit("b"), failure, an_exit("d")])
    journal.record(forgotten=[key_of("d"), key_of("unknown"), key_of("a")])
    journal.close()

    successor = reread(tmp_path)

    assert (successor.boot_id, successor.directories) == ("boot", ["/groups"])
    assert list(successor.running.values()) == [a_start("a")]
    assert list(successor.ended.values()) == [an_exit("b"), failure]


def test_task_is_in_the_journal_before_its_process_is_made(tmp_path: Path) -> None:
    """Else an executor killed in between would leave a process that its successor knows nothing of."""
    script = """
import sys
from fairlead_agent.executor import server
from fairlead_agent.executor.journal import Journal
from fairlead_agent.executor.no_isolation import NoIsolation
from fairlead_agent.executor.protocol import Start
path = f"{sys.argv[1]}/journal"
class Watched(server.Launcher):
    def launch(self, start, group_name):
        print(*Journal(path).running.values())
        return super().launch(start, group_name)
server.Launcher = Watched
journal = Journal(path)
journal.open(boot_id="boot", directories=[])
settings = {"path": "/usr/bin:/bin", "alone_timeout_ms": 0}
executor = server.Server(NoIsolation("", sys.argv[1]), journal, settings)
key = ("framework", "a")
executor._start_all([Start(key, f"{sys.argv[1]}/s", ("sleep", "1"), {})])
print(Journal(path).running[key].pid == executor._tasks[key].started.pid)
"""
    command = [sys.executable, "-c", script, str(tmp_path)]

    said = subprocess.check_output(command, text=True, timeout=30)

    before = Recorded(key_of("a"), f"{tmp_path}/s", 0, 0)
    assert said.splitlines() == [str(before), "True"]


def test_file_does_not_grow_with_tasks_that_are_forgotten(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "_ENTRIES_MIN", 10)
    journal.record(starts=[a_start("kept")])

    for number in range(100):
        journal.record(starts=[a_start(str(number))])
        journal.record(ends=[an_exit(str(number))])
        journal.record(forgotten=[key_of(str(number))])

    assert (tmp_path / "journal").read_bytes().count(b"\n") <= 11
    assert list(reread(tmp_path).running) == [key_of("kept")]


def test_what_a_full_disk_did_not_take_is_written_when_there_is_room(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.record(starts=[a_start("a")])
    with monkeypatch.context() as full:
        full.setattr(journal_module, "_ENTRIES_MIN", 0)
        full.setattr(journal_module, "_HISTORY_FACTOR", 0)  # so that it rewrites, which needs a new file
        blocker = tmp_path / "journal.new"
        blocker.mkdir()
        with pytest.raises(OSError, match="Is a directory"):
            journal.record(ends=[an_exit("a")])
        blocker.rmdir()
    assert list(reread(tmp_path).running) == [key_of("a")]

    journal.record()

    assert list(reread(tmp_path).ended) == [key_of("a")]


def test_line_a_full_disk_took_in_part_is_taken_back(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:7]))
        with pytest.raises(OSError, match="No space left on device"):
            journal.record(starts=[a_start("a")])

    journal.record(starts=[a_start("b")])

    assert list(reread(tmp_path).running) == [key_of("a"), key_of("b")]


@pytest.mark.parametrize(
    "line",
    [
        "x",
        "5",
        "[5]",
        '[["dance"]]',
        '[["start", ["f"], "/s", 1, 2]]',
        '[["start", ["f", "t"], "/s", "1", 2]]',
        '[["exited", 1]]',
    ],
)
def test_line_that_is_none_of_a_journal_is_named_and_the_others_count(
    journal: Journal, tmp_path: Path, line: str
) -> None:
    journal.record(starts=[a_start("a")])
    with (tmp_path / "journal").open("a") as file:
        file.write(f"{line}\n")
    journal.record(ends=[an_exit("b")])

    successor = reread(tmp_path)

    assert successor.damage.startswith(f"{tmp_path}/journal:4: expected entries of an executor's journal: ")
    assert list(successor.running.values()) == [a_start("a")]
    assert list(successor.ended.values()) == [an_exit("b")]


@pytest.mark.parametrize(
    "content", [b"rubbish without an end", b"\0" * 4096, b"\xff\xfe\n", b"[" * 100_000 + b"\n"]
)
def test_file_with_no_line_of_a_journal_is_damaged(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "journal").write_bytes(content)

    assert reread(tmp_path).damage.startswith(f"{tmp_path}/journal:1: ")


def test_whole_journal_and_none_at_all_are_not_damaged(journal: Journal, tmp_path: Path) -> None:
    journal.record(starts=[a_start("a")])

    assert reread(tmp_path).damage == ""
    assert Journal(str(tmp_path / "no journal")).damage == ""


def test_journal_of_a_newer_version_is_refused_by_both_numbers_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b'["fairlead executor journal",2]\n[["start","in another way"]]\n')

    with pytest.raises(JournalNewer) as refusal:
        Journal(str(path))

    assert str(refusal.value) == (
        f"{path}: expected version 1 of a journal, got version 2: start the version of the agent that wrote it; "
        "nothing was changed"
    )


@pytest.mark.parametrize("line", ['["fairlead executor journal"]', '["fairlead executor journal","new"]'])
def test_version_that_is_none_is_damage_and_the_rest_counts(
    journal: Journal, tmp_path: Path, line: str
) -> None:
    journal.record(starts=[a_start("a")])
    path = tmp_path / "journal"
    path.write_text("\n".join([line, *path.read_text().split("\n")[1:]]))

    successor = reread(tmp_path)

    assert successor.damage.startswith(f"{path}:1: expected entries of an executor's journal: ")
    assert list(successor.running) == [key_of("a")]


def test_journal_of_before_there_were_versions_is_read_and_gets_one(tmp_path: Path) -> None:
    """As commit 39edbb5 wrote it, the last before."""
    path = tmp_path / "journal"
    path.write_bytes((Path(__file__).parent / "journals" / "without-version").read_bytes())

    successor = reread(tmp_path)
    successor.open(boot_id="next", directories=[])
    successor.close()

    assert (successor.damage, list(successor.running), list(successor.ended)) == (
        "",
        [key_of("a")],
        [key_of("b")],
    )
    assert path.read_text().splitlines()[0] == '["fairlead executor journal",1]'
