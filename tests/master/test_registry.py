"""The registry: what is written survives, what is damaged is refused and left alone."""

import contextlib
import os
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairlead_master import registry_files
from fairlead_master.allocation.weights import Weight
from fairlead_master.core.actions import (
    ForgetAgent,
    ForgetFramework,
    StoreAgent,
    StoreFramework,
    StorePolicy,
    StoreWeight,
)
from fairlead_master.registry import open_registry
from fairlead_master.registry_files import SCHEMA_VERSION, NoRoomError, RegistryError
from fairlead_proto.ids import AgentId, FrameworkId, Role
from fairlead_proto.resources import ResourceKinds

KINDS = ResourceKinds(("licenses",))


def a_framework(number: int = 1) -> StoreFramework:
    return StoreFramework(
        framework_id=FrameworkId(f"f1-{number}"),
        name="sweep",
        role=Role("eng/ml"),
        principal="ada",
        failover_timeout_ms=60_000,
    )


def an_agent(number: int = 1) -> StoreAgent:
    return StoreAgent(
        agent_id=AgentId(f"a1-{number}"),
        hostname="h1",
        total=(4000, 2**33, 0, 0, 2000),
        attributes=(("rack", "a"),),
        is_away=number % 2 == 0,
    )


def test_each_start_has_a_higher_epoch_that_follows_the_clock(tmp_path: Path) -> None:
    epochs = []
    for unix_s in (1_000, 1_000, 5_000, 10):
        registry = open_registry(tmp_path, KINDS)
        epochs.append(registry.load(unix_s).remembered.epoch)
        registry.close()

    assert epochs == [1_000, 1_001, 5_000, 5_001]


def test_a_lost_registry_is_followed_by_a_newer_epoch_all_the_same(tmp_path: Path) -> None:
    lost = open_registry(tmp_path / "lost", KINDS)
    before = lost.load(1_000).remembered.epoch
    lost.close()

    new = open_registry(tmp_path / "new", KINDS)
    assert new.load(1_060).remembered.epoch > before
    new.close()


def test_what_was_written_is_found_again(tmp_path: Path) -> None:
    registry = open_registry(tmp_path, KINDS)
    registry.load(1)
    policy = StorePolicy(
        policy="slots:4", placement="pack", when_head_does_not_fit="freeze", demand="measured"
    )
    weight = StoreWeight(role=Role("eng"), weight=Weight(2.0, {0: 3.0, 4: 0.5}))
    registry.write([a_framework(1), a_framework(2), an_agent(1), an_agent(2), weight, policy]).result()
    registry.write([ForgetFramework(framework_id=FrameworkId("f1-2"))]).result()
    registry.close()

    registry = open_registry(tmp_path, KINDS)
    loaded = registry.load(1)
    registry.close()

    assert loaded.remembered.frameworks == (a_framework(1),)
    assert loaded.remembered.agents == (an_agent(1), an_agent(2))
    assert loaded.remembered.weights == ((Role("eng"), Weight(2.0, {0: 3.0, 4: 0.5})),)
    assert loaded.policy == policy


REGISTRIES = Path(__file__).parent / "registries"
"""Of each version, as masters of that version made them."""


def of_version(version: int, directory: Path) -> Path:
    directory.mkdir()
    with contextlib.closing(sqlite3.connect(directory / "registry.db")) as connection:
        connection.executescript((REGISTRIES / f"version-{version}.sql").read_text())
    if version >= 3:
        (directory / "registry.commit").write_text("fairlead registry commit 00000000000000000002 d133660c\n")
        (directory / "lock").write_text("a master has served from this directory\n")
    return directory


def version_in(directory: Path) -> int:
    with contextlib.closing(sqlite3.connect(directory / "registry.db")) as connection:
        (version,) = connection.execute("pragma user_version").fetchone()
        return int(version)


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
def test_a_registry_of_each_version_is_read_and_brought_up_to_date(tmp_path: Path, version: int) -> None:
    directory = of_version(version, tmp_path / "old")

    registry = open_registry(directory, KINDS)
    loaded = registry.load(1)
    measured = StorePolicy(policy="drf", placement="align", when_head_does_not_fit="skip", demand="measured")
    registry.write([measured]).result()
    registry.close()
    registry = open_registry(directory, KINDS)
    again = registry.load(1)
    registry.close()

    remembered = loaded.remembered
    assert (version_in(directory), remembered.epoch, again.remembered.epoch) == (SCHEMA_VERSION, 7_001, 7_002)
    assert [framework.name for framework in remembered.frameworks] == ["sweep"]
    assert [(agent.hostname, agent.is_away) for agent in remembered.agents] == [("h1", True)]
    assert remembered.weights == ((Role("eng"), Weight(2.0, {0: 3.0})),)
    assert loaded.policy == StorePolicy(
        policy="pf", placement="pack", when_head_does_not_fit="freeze", demand="declared"
    )
    assert again.policy == measured
    assert again.remembered.agents == remembered.agents


def test_a_migration_that_fails_leaves_the_version_there_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = of_version(1, tmp_path / "old")
    steps = registry_files._FROM_VERSION
    with monkeypatch.context() as failing:
        failing.setattr(registry_files, "_FROM_VERSION", {**steps, 4: "select no_such_function();"})
        with pytest.raises(RegistryError, match="no_such_function"):
            open_registry(directory, KINDS)
    assert version_in(directory) == 1

    open_registry(directory, KINDS).close()

    assert version_in(directory) == SCHEMA_VERSION


@pytest.mark.parametrize("table", ["epoch", "commits"])
@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("update {} set number = number + 256", ", key "),
        ("update {} set number = number - 1", ", key "),
        ("update {} set number = 'x'", ", key 'x'"),
        ("update {} set checksum = 0", ", key "),
        ("delete from {}", ": expected one row, found 0"),
    ],
)
def test_a_number_that_is_not_what_was_written_is_refused_and_named(
    tmp_path: Path, table: str, change: str, what: str
) -> None:
    registry = open_registry(tmp_path, KINDS)
    registry.load(1)
    registry.close()
    connection = sqlite3.connect(tmp_path / "registry.db")
    connection.execute(change.format(table))
    connection.commit()
    connection.close()

    with pytest.raises(RegistryError) as refused:
        open_registry(tmp_path, KINDS).load(1)

    assert str(refused.value).startswith(f"{tmp_path / 'registry.db'}: table {table}{what}")
    assert "restore a copy" in str(refused.value)


def test_forgotten_agents_are_not_waited_for(tmp_path: Path) -> None:
    registry = open_registry(tmp_path, KINDS)
    registry.load(1)
    registry.write([an_agent(1), ForgetAgent(agent_id=AgentId("a1-1"))]).result()

    assert registry.load(1).remembered.agents == ()
    registry.close()


def test_a_batch_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    registry = open_registry(tmp_path, KINDS)
    registry.load(1)
    broken = StoreFramework(
        framework_id=FrameworkId("f1-9"),
        name="x",
        role=Role("r"),
        principal=None,  # type: ignore[arg-type]  # the fault under test
        failover_timeout_ms=1,
    )

    with pytest.raises(Exception, match="NOT NULL"):
        registry.write([a_framework(1), broken]).result()

    assert registry.load(1).remembered.frameworks == ()
    registry.close()


@pytest.mark.parametrize(
    "content",
    [b"this is not a database, it is a text of some length " * 40, b"SQLite format 3\0" + b"\xff" * 4096],
    ids=["text", "torn header"],
)
def test_a_file_that_is_no_registry_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "registry.db"
    path.write_bytes(content)

    with pytest.raises(RegistryError, match=r"registry\.db: expected a registry"):
        open_registry(tmp_path, KINDS)

    assert path.read_bytes() == content


def test_a_corrupt_page_is_refused_and_left_alone(tmp_path: Path) -> None:
    registry = open_registry(tmp_path, KINDS)
    registry.load(1)
    registry.write([a_framework(number) for number in range(500)]).result()
    registry.close()
    path = tmp_path / "registry.db"
    content = bytearray(path.read_bytes())
    content[8192:12288] = b"\xaa" * 4096
    path.write_bytes(content)

    with pytest.raises(RegistryError, match="damage"):
        open_registry(tmp_path, KINDS)

    assert path.read_bytes() == bytes(content)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ("update frameworks set role = 'eng/mk' where id = 'f1-2'", "table frameworks, key 'f1-2'"),
        ("update frameworks set name = cast(x'ff' as text)", "table frameworks"),
        ("update agents set total = replace(total, '4000', '4001')", "table agents, key 'a1-1'"),
        ("update weights set weight = 3", "table weights, key 'eng'"),
        ("update policy set policy = 'fifi'", "table policy, key 1"),
        ("update policy set checksum = 'x'", "table policy, key 1"),
    ],
)
def test_a_row_that_is_not_what_was_written_is_refused_and_named(
    tmp_path: Path, change: str, where: str
) -> None:
    registry = open_registry(tmp_path, KINDS)
    registry.load(1)
    policy = StorePolicy(policy="fifo", placement="pack", when_head_does_not_fit="skip", demand="measured")
    weight = StoreWeight(role=Role("eng"), weight=Weight(2, None))
    registry.write([a_framework(1), a_framework(2), an_agent(1), weight, policy]).result()
    registry.close()
    connection = sqlite3.connect(tmp_path / "registry.db")
    connection.execute(change)
    connection.commit()
    connection.close()

    registry = open_registry(tmp_path, KINDS)
    with pytest.raises(RegistryError) as refused:
        registry.load(1)
    registry.close()

    assert str(refused.value).startswith(f"{tmp_path / 'registry.db'}: {where}: ")
    assert "restore a copy" in str(refused.value)


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "registry.db")
    connection.execute("create table theirs (x)")
    connection.close()

    with pytest.raises(RegistryError, match="another kind of database"):
        open_registry(tmp_path, KINDS)


def test_a_commit_is_durable_when_it_is_told(tmp_path: Path) -> None:
    registry = open_registry(tmp_path, KINDS)

    # 2 is FULL: the log is synced at each commit. SQLite offers nothing else to see it by.
    assert registry._connection.execute("pragma synchronous").fetchone() == (2,)
    registry.close()


@contextmanager
def no_file_grows() -> Iterator[None]:
    """As on a full disk, but for this process alone."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_there_is_no_room_for_is_written_once_there_is(tmp_path: Path) -> None:
    registry = open_registry(tmp_path, KINDS)
    registry.load(1)
    with no_file_grows():
        first = registry.write([a_framework(1)]).exception()
        second = registry.write([a_framework(1), a_framework(2)]).exception()
    registry.write([a_framework(1)]).result()
    registry.close()

    registry = open_registry(tmp_path, KINDS)
    found = registry.load(2).remembered.frameworks
    registry.close()

    assert isinstance(first, NoRoomError)
    assert isinstance(second, NoRoomError)
    assert str(first).startswith(f"{tmp_path}/registry.db: cannot be written (")
    assert found == (a_framework(1),)


def test_a_log_in_the_way_makes_room_for_the_commit(tmp_path: Path) -> None:
    registry = open_registry(tmp_path, KINDS)
    registry.load(1)
    log = tmp_path / "registry.db-wal"
    size = log.stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # As much as the log has now, which is more than the database with its log moved in needs.
    limit = max(size, (tmp_path / "registry.db").stat().st_size)
    for number in range(limit // 4096):
        registry.write([a_framework(number)]).result()
    grown = log.stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (grown, hard))
    try:
        registry.write([a_framework(99)]).result()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    smaller = log.stat().st_size
    registry.close()

    assert smaller < grown


@pytest.mark.parametrize("start", ["first", "later"])
def test_a_start_without_room_says_so_and_speaks_of_no_damage(tmp_path: Path, start: str) -> None:
    if start == "later":
        open_registry(tmp_path, KINDS).close()
    with no_file_grows():
        try:
            registry = open_registry(tmp_path, KINDS)
            registry.load(1)
            refusal = ""
        except RegistryError as error:
            refusal = str(error)
    open_registry(tmp_path, KINDS).close()

    assert "cannot be written" in refusal
    assert "make room" in refusal
    assert "expected" not in refusal


@pytest.mark.parametrize(
    ("blocks", "free", "is_short"), [(10, 1, True), (10**6, 10**6, False), (0, 0, False)]
)
def test_little_room_is_noticed_before_a_commit_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocks: int, free: int, is_short: bool
) -> None:
    registry = open_registry(tmp_path, KINDS)
    values = (4096, 4096, blocks, free, free, 10, 10, 10, 0, 255)
    monkeypatch.setattr(os, "statvfs", lambda _path: os.statvfs_result(values))

    why = registry.shortage()
    registry.close()

    assert (why is not None) == is_short
    assert why is None or "no room for the registry: expected 262144 bytes free in" in why


def test_a_newer_schema_is_refused_by_both_numbers_and_left_alone(tmp_path: Path) -> None:
    """Whatever else of it is new, which may look like damage."""
    directory = of_version(SCHEMA_VERSION, tmp_path / "newer")
    connection = sqlite3.connect(directory / "registry.db")
    connection.execute("pragma user_version = 99")
    connection.close()
    (directory / "registry.commit").write_text("another line\n")
    before = {path.name: path.read_bytes() for path in directory.iterdir()}

    with pytest.raises(RegistryError) as refusal:
        open_registry(directory, KINDS)

    assert str(refusal.value) == (
        f"{directory}/registry.db: expected schema version 1 to {SCHEMA_VERSION}, got 99: start the version of the master "
        "that wrote it; nothing was changed"
    )
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before


def test_a_second_master_on_one_directory_is_refused(tmp_path: Path) -> None:
    registry = open_registry(tmp_path, KINDS)

    with pytest.raises(RegistryError, match="only master"):
        open_registry(tmp_path, KINDS)

    registry.close()


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(RegistryError, match="expected a directory"):
        open_registry(tmp_path / "file" / "state", KINDS)
