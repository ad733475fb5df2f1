import fcntl
import os
import re
from pathlib import Path

import pytest

from fairlead_local import leftovers
from fairlead_local.cluster import InvalidCluster, LocalCluster, StartCancelled


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary directories are made."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_start_removes_what_a_dead_cluster_left_and_not_what_lives(
    temporary: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dead, lock = leftovers.make_temporary_directory()
    (dead / "agent-1" / "sandboxes").mkdir(parents=True)
    os.close(lock)
    living, lock = leftovers.make_temporary_directory()
    caplog.set_level("DEBUG", "fairlead_local.leftovers")

    with pytest.raises(StartCancelled):
        a_cancelled_cluster().start()

    assert list(temporary.iterdir()) == [living]
    assert [record.getMessage() for record in caplog.records] == [
        f"removed {dead}: the command that made it was killed"
    ]
    os.close(lock)


@pytest.mark.parametrize("held", ["master/lock", "agent-1/agent.lock", "agent-2/executor/lock"])
def test_directory_stays_as_long_as_anything_of_its_cluster_lives(temporary: Path, held: str) -> None:
    directory, lock = leftovers.make_temporary_directory()
    os.close(lock)
    (directory / held).parent.mkdir(parents=True)
    with (directory / held).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)

        leftovers.remove_temporary_directories()
        assert (directory / held).exists()

    leftovers.remove_temporary_directories()
    assert not directory.exists()


def test_directory_that_is_not_surely_of_a_cluster_of_ours_is_left_alone(temporary: Path) -> None:
    (temporary / "fairlead-notes").mkdir(mode=0o700)
    shared, lock = leftovers.make_temporary_directory()
    os.close(lock)
    shared.chmod(0o777)
    elsewhere, lock = leftovers.make_temporary_directory()
    os.close(lock)
    elsewhere = elsewhere.rename(temporary / "moved")
    (temporary / "fairlead-link").symlink_to(elsewhere)

    leftovers.remove_temporary_directories()

    assert {path.name for path in temporary.iterdir()} == {
        "fairlead-notes",
        "fairlead-link",
        "moved",
        shared.name,
    }
    assert (elsewhere / "cluster.lock").exists()


def test_directory_of_another_user_is_left_alone(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory, lock = leftovers.make_temporary_directory()
    os.close(lock)
    monkeypatch.setattr("os.geteuid", lambda: directory.stat().st_uid + 1)

    leftovers.remove_temporary_directories()

    assert directory.exists()


def a_cancelled_cluster(directory: Path | None = None) -> LocalCluster:
    """One that goes as far as its directory."""
    cluster = LocalCluster(agents=1, directory=directory)
    cluster.cancel_start()
    return cluster


def test_directory_that_another_cluster_is_in_is_refused_and_what_runs_there_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        leftovers, "end_executors", lambda _: pytest.fail("it ended what another cluster runs")
    )
    lock = leftovers.hold_directory(tmp_path)

    with pytest.raises(
        InvalidCluster,
        match=rf"{re.escape(str(tmp_path))}: in use by another local cluster \(process {os.getpid()}\)",
    ):
        LocalCluster(agents=1, directory=tmp_path).start()

    os.close(lock)
    os.close(leftovers.hold_directory(tmp_path))


def test_directory_that_somebody_named_is_never_removed(temporary: Path) -> None:
    named = temporary / "fairlead-state"
    with pytest.raises(StartCancelled):
        a_cancelled_cluster(named).start()

    leftovers.remove_temporary_directories()

    assert (named / "up.lock").exists()
