"""The files of a registry: made whole or not at all, private to their owner, refused when a part of them is lost.

``registry.db`` (with ``-wal`` and ``-shm``) is the database. ``registry.commit`` has the number of the last commit whose
news may have left the process: written after the commit and before the news, so a database behind it has lost something
that somebody was told, whatever SQLite makes of the rest. A database ahead of it lost nothing: a kill came in between.
``lock`` is held by the running master, and has a text once a first start came to its end in the directory; from then on
a missing file is a loss and not a beginning.
"""

import errno
import fcntl
import json
import os
import sqlite3
import stat
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

APPLICATION_ID: Final = 0x46614C64
"""Marks the file as ours, so that somebody else's database is never taken for a registry."""
SCHEMA_VERSION: Final = 5
_SCHEMA: Final = """
create table commits (number integer not null, checksum integer not null);
insert into commits values (0, row_checksum(0));
create table epoch (number integer not null, checksum integer not null);
insert into epoch values (0, row_checksum(0));
create table frameworks (
    id text primary key, name text not null, role text not null, principal text not null,
    failover_timeout_ms integer not null, checksum integer not null
) without rowid;
create table agents (
    id text primary key, hostname text not null, total text not null, attributes text not null,
    is_away integer not null, checksum integer not null
) without rowid;
create table weights (
    role text primary key, weight real not null, by_resource text not null, checksum integer not null
) without rowid;
create table policy (
    only integer primary key check (only = 1), policy text not null, placement text not null,
    when_head_does_not_fit text not null, demand text not null default 'declared', checksum integer not null
);
"""

COLUMNS: Final = {
    "commits": ("number",),
    "epoch": ("number",),
    "frameworks": ("id", "name", "role", "principal", "failover_timeout_ms"),
    "agents": ("id", "hostname", "total", "attributes", "is_away"),
    "weights": ("role", "weight", "by_resource"),
    "policy": ("only", "policy", "placement", "when_head_does_not_fit", "demand"),
}
"""Of each table: what the checksum of a row is over, the key first. SQLite has none, and reads on what a disk gives back changed
as long as it looks like a row."""

_NUMBERS: Final = ("commits", "epoch")
"""Tables of one row, which is a number."""


def _add_checksums(*tables: str) -> str:
    return "".join(
        f"alter table {table} add column checksum integer not null default 0;"  # noqa: S608 - our own names
        f"update {table} set checksum = row_checksum({', '.join(COLUMNS[table])});"
        for table in tables
    )


_FROM_VERSION: Final = {
    1: "alter table policy add column demand text not null default 'declared';",
    2: "create table commits (number integer not null); insert into commits values (0);",
    3: _add_checksums("frameworks", "agents", "weights", "policy"),
    4: _add_checksums(*_NUMBERS),
}

_DATABASE: Final = "registry.db"
_COMMIT: Final = "registry.commit"
_LOCK: Final = "lock"
_NEW: Final = ".new"
"""Ends the name of a file that is being made. Only a whole one is given its own name."""
_SQLITE_ADDS: Final = ("-wal", "-shm", "-journal")
_OURS: Final = frozenset(
    {
        *(name + end for name in (_DATABASE, _DATABASE + _NEW) for end in ("", *_SQLITE_ADDS)),
        _COMMIT,
        _COMMIT + _NEW,
        _LOCK,
    }
)
_SERVED: Final = b"a master has served from this directory\n"

_DIRECTORY_MODE: Final = 0o700
_FILE_MODE: Final = 0o600

_RESTORE: Final = "restore a copy in a new directory, or name a new one and accept what is lost (docs/operating.md, Backup and restore)"


class RegistryError(Exception):
    """The registry cannot be used; the text says which file, what was expected and what was found."""


class NoRoomError(RegistryError):
    """The registry cannot be written for now, as when the disk is full. Nothing is damaged; written later it may work."""


ROOM_BYTES: Final = 256 * 1024
"""Below so much free space nothing new is taken on: several times what a commit and SQLite's log need, so that what must
be written all the same, such as ends, finds room still."""

LOG_PAGES: Final = 64
"""Pages of SQLite's log before it is moved into the database and begun anew: as much as the room above, where SQLite's own
choice would let it grow to 4 MiB, which on a small disk is the disk."""

_NO_ROOM_CODES: Final = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_IOERR_SHMMAP,
        sqlite3.SQLITE_IOERR_SHMOPEN,
        sqlite3.SQLITE_IOERR_SHMSIZE,
    }
)
_NO_ROOM_ERRORS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def lacks_room(error: BaseException) -> bool:
    """Whether a write failed for want of space, of quota, or of leave to make a file larger.

    A sync that fails is none of these: what of the file is on the disk is not known then.
    """
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", None) in _NO_ROOM_CODES
    return isinstance(error, OSError) and error.errno in _NO_ROOM_ERRORS


def shortage(directory: Path) -> str | None:
    """That the file system of a directory is nearly full, in words; None if it is not, or does not say."""
    try:
        found = os.statvfs(directory)
    except OSError:
        return None
    free = (found.f_bavail if os.geteuid() else found.f_bfree) * found.f_frsize
    if not found.f_blocks or free >= ROOM_BYTES:
        return None
    return f"no room for the registry: expected {ROOM_BYTES} bytes free in {directory}, got {free}: make room"


class CommitFile:
    """The open ``registry.commit``: one short line, written over in place.

    The line is far smaller than a sector, which disks write whole or not at all, so a crash leaves the old number or
    the new one.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, number: int) -> None:
        """Make the number durable."""
        os.pwrite(self._descriptor, _commit_line(number), 0)
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


@dataclass(frozen=True, slots=True)
class RegistryFiles:
    """The files of one registry, open and locked."""

    path: Path
    connection: sqlite3.Connection
    commits: CommitFile
    lock: int

    def close(self) -> None:
        """Close all, the lock last."""
        self.connection.close()
        self.commits.close()
        os.close(self.lock)


def open_files(directory: Path) -> RegistryFiles:
    """Open the registry in a directory, making both if no master has served there.

    Raises:
        RegistryError: the directory or a file cannot be used, a part is lost, or another master uses it. The database
            and its commit number are left as they were.
    """
    try:
        directory.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
        lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
    except OSError as error:
        raise RegistryError(
            f"{directory}: expected a directory that can be written, got {error.strerror}"
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _make_private(directory)
        return _open_locked(directory / _DATABASE, lock)
    except BlockingIOError:
        os.close(lock)
        raise RegistryError(
            f"{directory}: expected to be its only master, another process holds its lock"
        ) from None
    except BaseException:
        os.close(lock)
        raise


def _make_private(directory: Path) -> None:
    """Close what an older version left open to others: our files, and the directory if nothing else is in it."""
    names = {entry.name for entry in directory.iterdir()}
    for path in [directory / name for name in sorted(names & _OURS)]:
        _tighten(path, stat.S_ISREG, _FILE_MODE)
    if names <= _OURS:
        _tighten(directory, stat.S_ISDIR, _DIRECTORY_MODE)


def _tighten(path: Path, is_kind: Callable[[int], bool], mode: int) -> None:
    found = path.lstat()
    is_ours = is_kind(found.st_mode) and found.st_uid == os.geteuid()
    if is_ours and stat.S_IMODE(found.st_mode) & ~mode:
        path.chmod(mode)


def _open_locked(path: Path, lock: int) -> RegistryFiles:
    try:
        has_served = os.fstat(lock).st_size > 0
        if path.exists():
            _check(path, has_served=has_served)
        else:
            _check_first_start(path, has_served=has_served)
            _make_database(path)
        connection = _connect(path)
    except (sqlite3.Error, OSError, TypeError) as error:
        short = shortage(path.parent)
        if lacks_room(error) or (short is not None and not isinstance(error, TypeError)):
            raise NoRoomError(
                f"{path}: cannot be written ({error}): {short or 'make room'}, then start again; nothing is damaged"
            ) from error
        # A table without its row reads as None, which is no row to take apart.
        raise RegistryError(f"{path}: expected a registry, found damage or no access: {error}") from error
    try:
        number = read_number(path, connection, "commits")
        commits = _open_commit(path.with_name(_COMMIT), number)
        if not has_served:
            os.pwrite(lock, _SERVED, 0)
            os.fsync(lock)
    except BaseException:
        connection.close()
        raise
    return RegistryFiles(path, connection, commits, lock)


def _check_first_start(path: Path, *, has_served: bool) -> None:
    told = _read_commit(path.with_name(_COMMIT))
    log = path.with_name(path.name + "-wal")
    has_log = log.exists() and log.stat().st_size > 0
    if told is None and not has_served and not has_log:
        return
    left = _COMMIT if told is not None else _LOCK if has_served else log.name
    raise RegistryError(
        f"{path}: expected the registry of the master that served here ({left} tells of it), found none: {_RESTORE}"
    )


def _check(path: Path, *, has_served: bool) -> None:
    """Look at a database, and whether it reaches what was told, without changing it.

    Its version comes first: what of a newer one looks like damage, the file with the number of its commit included, is none.
    """
    if path.stat().st_size == 0:
        # We never make an empty one: it is whole before it has this name.
        raise RegistryError(
            f"{path}: expected a registry, got an empty file, which no first start leaves: {_RESTORE}"
        )
    # What a change of the journal's mode left half done can only be taken back by a connection that may write.
    mode = "rw" if path.with_name(path.name + "-journal").exists() else "ro"
    with closing(sqlite3.connect(f"file:{path}?mode={mode}", uri=True)) as connection:
        (application,) = connection.execute("pragma application_id").fetchone()
        (version,) = connection.execute("pragma user_version").fetchone()
        if application != APPLICATION_ID:
            raise RegistryError(f"{path}: expected a registry, got another kind of database")
        if not 1 <= version <= SCHEMA_VERSION:
            raise RegistryError(
                f"{path}: expected schema version 1 to {SCHEMA_VERSION}, got {version}: start the version of the master that "
                "wrote it; nothing was changed"
            )
        told = _read_commit(path.with_name(_COMMIT))
        (verdict,) = connection.execute("pragma quick_check(1)").fetchone()
        if verdict != "ok":
            said = " ".join(str(verdict).split())
            raise RegistryError(f"{path}: expected a sound registry, found damage ({said}): {_RESTORE}")
        number = _read_commits(path, connection, version)
    if told is None and has_served:
        raise RegistryError(
            f"{path.with_name(_COMMIT)}: expected the number of the last commit, found no file, so nobody knows whether "
            f"{path.name} is complete: {_RESTORE}; if it is as its master left it, remove {_LOCK} to use it as it is"
        )
    if told is not None and number < told:
        raise RegistryError(
            f"{path}: expected commit {told}, which {_COMMIT} says was made, found {number}: what was written since is "
            f"lost from {path.name} or its -wal: {_RESTORE}"
        )


def _read_commits(path: Path, connection: sqlite3.Connection, version: int) -> int:
    """The number of the last commit in a database that may be of an older schema."""
    if version >= SCHEMA_VERSION:
        return read_number(path, connection, "commits")
    return int(connection.execute("select number from commits").fetchone()[0]) if version >= 3 else 0


def _make_database(path: Path) -> None:
    """Make an empty registry under another name, whole, and only then give it its own."""
    made = path.with_name(path.name + _NEW)
    for end in ("", *_SQLITE_ADDS):
        made.with_name(made.name + end).unlink(missing_ok=True)
    os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE))
    with closing(sqlite3.connect(made, isolation_level=None)) as connection:
        connection.execute("pragma synchronous = full")
        _define_checksum(connection)
        connection.executescript(
            f"begin; {_SCHEMA} pragma application_id = {APPLICATION_ID};"
            f" pragma user_version = {SCHEMA_VERSION}; commit;"
        )
        connection.execute("pragma journal_mode = wal")
    _give_name(made, path)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("pragma journal_mode = wal")
        # A framework that was told its id must find it again after a power cut.
        connection.execute("pragma synchronous = full")
        connection.execute(f"pragma wal_autocheckpoint = {LOG_PAGES}")
        (version,) = connection.execute("pragma user_version").fetchone()
        if version < SCHEMA_VERSION:
            _define_checksum(connection)
            steps = "".join(_FROM_VERSION[older] for older in range(version, SCHEMA_VERSION))
            connection.executescript(f"begin; {steps} pragma user_version = {SCHEMA_VERSION}; commit;")
    except BaseException:
        connection.close()
        raise
    return connection


def _define_checksum(connection: sqlite3.Connection) -> None:
    connection.create_function("row_checksum", -1, lambda *row: row_checksum(row))


def row_checksum(row: Sequence[str | float]) -> int:
    """The checksum of a row's columns."""
    return zlib.crc32(json.dumps(row).encode())


def read_rows(path: Path, connection: sqlite3.Connection, table: str) -> list[list[Any]]:
    """The rows of a table in the order of their keys, each as its ``COLUMNS``.

    Raises:
        RegistryError: a row is not what was written.
    """
    columns = COLUMNS[table]
    rows = []
    try:
        found = connection.execute(
            f"select {', '.join(columns)}, checksum from {table} order by {columns[0]}"  # noqa: S608
        )
        for *row, checksum in found:
            if row_checksum(row) != checksum:
                raise RegistryError(
                    f"{path}: table {table}, key {row[0]!r}: expected a row of checksum {checksum}, found one of "
                    f"{row_checksum(row)}, so it is not what was written: {_RESTORE}"
                )
            rows.append(row)
    except (sqlite3.Error, TypeError) as error:
        raise RegistryError(f"{path}: table {table}: found damage: {error}: {_RESTORE}") from error
    return rows


def read_number(path: Path, connection: sqlite3.Connection, table: str) -> int:
    """The number in a table that has nothing else.

    Raises:
        RegistryError: it is not what was written.
    """
    rows = read_rows(path, connection, table)
    if len(rows) != 1:
        raise RegistryError(f"{path}: table {table}: expected one row, found {len(rows)}: {_RESTORE}")
    return int(rows[0][0])


def write_number(connection: sqlite3.Connection, table: str, number: int) -> None:
    """Put a number in the place of the one in the table."""
    connection.execute(
        f"update {table} set number = ?, checksum = ?",  # noqa: S608 - our own names
        (number, row_checksum((number,))),
    )


def _commit_line(number: int) -> bytes:
    text = f"fairlead registry commit {number:020d}"
    return f"{text} {zlib.crc32(text.encode()):08x}\n".encode()


def _read_commit(path: Path) -> int | None:
    """The number in the file; None if there is no file."""
    try:
        line = path.read_bytes()
    except FileNotFoundError:
        return None
    with suppress(ValueError, IndexError):
        number = int(line.split()[3])
        if line == _commit_line(number):
            return number
    raise RegistryError(
        f"{path}: expected the number of the last commit, found damage, so nobody knows whether {_DATABASE} is complete: "
        f"{_RESTORE}; if it is as its master left it, remove {_COMMIT} and {_LOCK} to use it as it is"
    )


def _open_commit(path: Path, number: int) -> CommitFile:
    """The file, with the number at which the database is now."""
    if not path.exists():
        made = path.with_name(path.name + _NEW)
        made.unlink(missing_ok=True)
        _write_whole(made, _commit_line(number))
        _give_name(made, path)
    commits = CommitFile(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    commits.write(number)
    return commits


def _write_whole(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE)
    try:
        os.write(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _give_name(made: Path, path: Path) -> None:
    """Rename, and make the name durable."""
    made.replace(path)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
