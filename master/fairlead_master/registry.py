"""What the master writes down: SQLite, one file, one writer thread, group commit.

Only what changes slowly and cannot be rebuilt is here: framework ids, admitted agents, weights, the policy, the epoch.
Tasks are not: agents keep theirs and report them when they register again. A file that cannot be read, is corrupt, or
was made by a newer version is refused with its name and left as it is.
"""

import fcntl
import json
import os
import sqlite3
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairlead_master.allocation.api import Weight
from fairlead_master.core.actions import (
    Durable,
    ForgetAgent,
    ForgetFramework,
    StoreAgent,
    StoreFramework,
    StorePolicy,
    StoreWeight,
)
from fairlead_master.core.machine import Remembered
from fairlead_proto.ids import AgentId, FrameworkId, Role
from fairlead_proto.resources import ResourceKinds, Vector

_APPLICATION_ID: Final = 0x46614C64
"""Marks the file as ours, so that somebody else's database is never taken for a registry."""
_SCHEMA_VERSION: Final = 2
_SCHEMA: Final = """
create table epoch (number integer not null);
insert into epoch values (0);
create table frameworks (
    id text primary key, name text not null, role text not null, principal text not null,
    failover_timeout_ms integer not null
) without rowid;
create table agents (
    id text primary key, hostname text not null, total text not null, attributes text not null,
    is_away integer not null
) without rowid;
create table weights (role text primary key, weight real not null, by_resource text not null) without rowid;
create table policy (
    only integer primary key check (only = 1), policy text not null, placement text not null,
    when_head_does_not_fit text not null, demand text not null default 'declared'
);
"""

_FROM_VERSION_1: Final = """
begin;
alter table policy add column demand text not null default 'declared';
pragma user_version = 2;
commit;
"""


class RegistryError(Exception):
    """The registry cannot be used; the text says which file, what was expected and what was found."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was found at the start."""

    remembered: Remembered
    policy: StorePolicy | None


class Registry:
    """The open registry of one master. Made by ``open_registry``."""

    def __init__(self, connection: sqlite3.Connection, path: Path, kinds: ResourceKinds, lock: int) -> None:
        self._connection = connection
        self._path = path
        self._kinds = kinds
        self._lock = lock
        # One thread owns the connection: commits wait for the disk, and the loop must not.
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="registry")

    def load(self, unix_s: int) -> Loaded:
        """Read everything, and make the epoch of this start durable before anybody hears of it.

        The epoch follows the clock and never goes back: a registry that is new because the old one was lost must not
        give epochs, and so ids, that agents and frameworks have seen before.

        Raises:
            RegistryError: a table does not hold what it should.
        """
        try:
            with self._connection as connection:
                connection.execute("update epoch set number = max(number + 1, ?)", (unix_s,))
                (epoch,) = connection.execute("select number from epoch").fetchone()
                return Loaded(
                    remembered=Remembered(
                        epoch=epoch,
                        frameworks=tuple(self._frameworks()),
                        agents=tuple(self._agents()),
                        weights=tuple(self._weights()),
                    ),
                    policy=self._policy(),
                )
        except (sqlite3.Error, ValueError, TypeError, KeyError) as error:
            raise RegistryError(f"{self._path}: expected a registry, found damage: {error}") from error

    def _frameworks(self) -> list[StoreFramework]:
        query = "select id, name, role, principal, failover_timeout_ms from frameworks order by id"
        rows = self._connection.execute(query)
        return [
            StoreFramework(
                framework_id=FrameworkId(row[0]),
                name=row[1],
                role=Role(row[2]),
                principal=row[3],
                failover_timeout_ms=int(row[4]),
            )
            for row in rows
        ]

    def _agents(self) -> list[StoreAgent]:
        rows = self._connection.execute(
            "select id, hostname, total, attributes, is_away from agents order by id"
        )
        return [
            StoreAgent(
                agent_id=AgentId(row[0]),
                hostname=row[1],
                total=self._read_vector(row[2]),
                attributes=tuple(sorted(json.loads(row[3]).items())),
                is_away=bool(row[4]),
            )
            for row in rows
        ]

    def _read_vector(self, text: str) -> Vector:
        amounts = json.loads(text)
        # A kind the operator no longer declares is dropped: the agent says anew what it has.
        return self._kinds.vector({name: int(amounts[name]) for name in amounts if name in self._kinds.names})

    def _weights(self) -> list[tuple[Role, Weight]]:
        rows = self._connection.execute("select role, weight, by_resource from weights order by role")
        names = self._kinds.names
        weights = []
        for role, weight, text in rows:
            by_name = json.loads(text)
            places = {names.index(name): float(by_name[name]) for name in by_name if name in names}
            weights.append((Role(role), Weight(float(weight), places or None)))
        return weights

    def _policy(self) -> StorePolicy | None:
        row = self._connection.execute(
            "select policy, placement, when_head_does_not_fit, demand from policy"
        ).fetchone()
        if row is None:
            return None
        return StorePolicy(policy=row[0], placement=row[1], when_head_does_not_fit=row[2], demand=row[3])

    def write(self, actions: Sequence[Durable]) -> "Future[None]":
        """Make the actions durable, all or none, in the writer thread."""
        return self._writer.submit(self._write, tuple(actions))

    def _write(self, actions: tuple[Durable, ...]) -> None:
        with self._connection as connection:
            connection.execute("begin immediate")
            for action in actions:
                self._write_one(connection, action)

    def _write_one(self, connection: sqlite3.Connection, action: Durable) -> None:
        match action:
            case StoreFramework():
                connection.execute(
                    "insert or replace into frameworks values (?, ?, ?, ?, ?)",
                    (
                        action.framework_id,
                        action.name,
                        action.role,
                        action.principal,
                        action.failover_timeout_ms,
                    ),
                )
            case ForgetFramework():
                connection.execute("delete from frameworks where id = ?", (action.framework_id,))
            case StoreAgent():
                total = json.dumps(self._kinds.as_dict(action.total))
                attributes = json.dumps(dict(action.attributes))
                connection.execute(
                    "insert or replace into agents values (?, ?, ?, ?, ?)",
                    (action.agent_id, action.hostname, total, attributes, int(action.is_away)),
                )
            case ForgetAgent():
                connection.execute("delete from agents where id = ?", (action.agent_id,))
            case StoreWeight():
                places = action.weight.by_resource or {}
                by_resource = json.dumps(
                    {self._kinds.names[place]: weight for place, weight in places.items()}
                )
                connection.execute(
                    "insert or replace into weights values (?, ?, ?)",
                    (action.role, action.weight.default, by_resource),
                )
            case StorePolicy():
                connection.execute(
                    "insert or replace into policy values (1, ?, ?, ?, ?)",
                    (action.policy, action.placement, action.when_head_does_not_fit, action.demand),
                )

    def close(self) -> None:
        """Finish what was asked for and close the file."""
        self._writer.shutdown(wait=True)
        self._connection.close()
        os.close(self._lock)


def open_registry(directory: Path, kinds: ResourceKinds) -> Registry:
    """Open the registry in a directory, making both if they are not there.

    Raises:
        RegistryError: the directory or the file cannot be used, or another master uses it.
    """
    path = directory / "registry.db"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise RegistryError(
            f"{directory}: expected a directory that can be written, got {error.strerror}"
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return Registry(_connect(path), path, kinds, lock)
    except BlockingIOError:
        os.close(lock)
        raise RegistryError(
            f"{directory}: expected to be its only master, another process holds its lock"
        ) from None
    except BaseException:
        os.close(lock)
        raise


def _connect(path: Path) -> sqlite3.Connection:
    is_new = not path.exists() or path.stat().st_size == 0
    try:
        if not is_new:
            _check(path)
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        connection.execute("pragma journal_mode = wal")
        # A framework that was told its id must find it again after a power cut.
        connection.execute("pragma synchronous = full")
        if is_new:
            connection.executescript(
                f"begin; {_SCHEMA} pragma application_id = {_APPLICATION_ID};"
                f" pragma user_version = {_SCHEMA_VERSION}; commit;"
            )
        elif connection.execute("pragma user_version").fetchone() == (1,):
            connection.executescript(_FROM_VERSION_1)
    except (sqlite3.Error, OSError) as error:
        raise RegistryError(f"{path}: expected a registry, found damage or no access: {error}") from error
    return connection


def _check(path: Path) -> None:
    """Look at a file without changing it."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        (application,) = connection.execute("pragma application_id").fetchone()
        (version,) = connection.execute("pragma user_version").fetchone()
        if application != _APPLICATION_ID:
            raise RegistryError(f"{path}: expected a registry, got another kind of database")
        if not 1 <= version <= _SCHEMA_VERSION:
            raise RegistryError(f"{path}: expected schema version 1 to {_SCHEMA_VERSION}, got {version}")
        (verdict,) = connection.execute("pragma quick_check(1)").fetchone()
        if verdict != "ok":
            raise RegistryError(f"{path}: expected a sound registry, found damage: {verdict}")
    finally:
        connection.close()
