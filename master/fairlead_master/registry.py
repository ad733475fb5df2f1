"""What the master writes down: SQLite, one writer thread, group commit.

Only what changes slowly and cannot be rebuilt is here: framework ids, admitted agents, weights, the policy, the epoch.
Tasks are not: agents keep theirs and report them when they register again. The files, how they are made and when they
are refused are the subject of ``registry_files``.
"""

import json
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead_master.allocation.weights import Weight
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
from fairlead_master.registry_files import (
    NoRoomError,
    RegistryError,
    RegistryFiles,
    lacks_room,
    open_files,
    read_number,
    read_rows,
    row_checksum,
    shortage,
    write_number,
)
from fairlead_proto.ids import AgentId, FrameworkId, Role
from fairlead_proto.resources import ResourceKinds, Vector


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was found at the start."""

    remembered: Remembered
    policy: StorePolicy | None


class Registry:
    """The open registry of one master. Made by ``open_registry``."""

    def __init__(self, files: RegistryFiles, kinds: ResourceKinds) -> None:
        self._files = files
        self._connection = files.connection
        self._kinds = kinds
        # One thread owns the connection: commits wait for the disk, and the loop must not.
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="registry")

    def load(self, unix_s: int) -> Loaded:
        """Read everything, and make the epoch of this start durable before anybody hears of it.

        The epoch follows the clock and never goes back: a registry that is new because the old one was lost must not
        give epochs, and so ids, that agents and frameworks have seen before.

        Raises:
            RegistryError: a table does not hold what it should, or there is no room to write the epoch.
        """
        try:
            self._commit(lambda connection: self._begin_epoch(connection, unix_s))
            return Loaded(
                remembered=Remembered(
                    epoch=read_number(self._files.path, self._connection, "epoch"),
                    frameworks=tuple(self._frameworks()),
                    agents=tuple(self._agents()),
                    weights=tuple(self._weights()),
                ),
                policy=self._policy(),
            )
        except (sqlite3.Error, OSError, ValueError, TypeError, KeyError) as error:
            raise RegistryError(f"{self._files.path}: expected a registry, found damage: {error}") from error

    def _begin_epoch(self, connection: sqlite3.Connection, unix_s: int) -> None:
        write_number(connection, "epoch", max(read_number(self._files.path, connection, "epoch") + 1, unix_s))

    def _frameworks(self) -> list[StoreFramework]:
        return [
            StoreFramework(
                framework_id=FrameworkId(row[0]),
                name=row[1],
                role=Role(row[2]),
                principal=row[3],
                failover_timeout_ms=int(row[4]),
            )
            for row in self._rows("frameworks")
        ]

    def _agents(self) -> list[StoreAgent]:
        return [
            StoreAgent(
                agent_id=AgentId(row[0]),
                hostname=row[1],
                total=self._read_vector(row[2]),
                attributes=tuple(sorted(json.loads(row[3]).items())),
                is_away=bool(row[4]),
            )
            for row in self._rows("agents")
        ]

    def _read_vector(self, text: str) -> Vector:
        amounts = json.loads(text)
        # A kind the operator no longer declares is dropped: the agent says anew what it has.
        return self._kinds.vector({name: int(amounts[name]) for name in amounts if name in self._kinds.names})

    def _weights(self) -> list[tuple[Role, Weight]]:
        names = self._kinds.names
        weights = []
        for role, weight, text in self._rows("weights"):
            by_name = json.loads(text)
            places = {names.index(name): float(by_name[name]) for name in by_name if name in names}
            weights.append((Role(role), Weight(float(weight), places or None)))
        return weights

    def _policy(self) -> StorePolicy | None:
        for _, policy, placement, head, demand in self._rows("policy"):
            return StorePolicy(policy=policy, placement=placement, when_head_does_not_fit=head, demand=demand)
        return None

    def _rows(self, table: str) -> list[list[Any]]:
        return read_rows(self._files.path, self._connection, table)

    def write(self, actions: Sequence[Durable]) -> "Future[None]":
        """Make the actions durable, all or none, in the writer thread.

        The future raises ``NoRoomError`` if there is no room for them now; anything else means that the registry failed.
        """
        return self._writer.submit(self._write, tuple(actions))

    def _write(self, actions: tuple[Durable, ...]) -> None:
        def write_all(connection: sqlite3.Connection) -> None:
            for action in actions:
                self._write_one(connection, action)

        self._commit(write_all)

    def _commit(self, change: Callable[[sqlite3.Connection], None]) -> None:
        """Commit a change with the next number, then write the number beside it: the order makes a loss noticed.

        To repeat it does no harm: every action says what is so from now on.

        Raises:
            NoRoomError: there is no room for it.
        """
        try:
            try:
                number = self._commit_once(change)
            except sqlite3.Error as error:
                if not lacks_room(error):
                    raise
                # What the log holds is durable: moved into the database, it leaves room for this commit.
                self._connection.execute("pragma wal_checkpoint(truncate)")
                number = self._commit_once(change)
            self._files.commits.write(number)
        except (sqlite3.Error, OSError) as error:
            if not lacks_room(error):
                raise
            raise NoRoomError(f"{self._files.path}: cannot be written ({error}): make room") from error

    def _commit_once(self, change: Callable[[sqlite3.Connection], None]) -> int:
        with self._connection as connection:
            connection.execute("begin immediate")
            change(connection)
            number = read_number(self._files.path, connection, "commits") + 1
            write_number(connection, "commits", number)
        return number

    def shortage(self) -> str | None:
        """That there is hardly room for another commit, in words; None if there is."""
        return shortage(self._files.path.parent)

    def _write_one(self, connection: sqlite3.Connection, action: Durable) -> None:
        def put(table: str, *row: str | float) -> None:
            places = "?, " * len(row)
            connection.execute(
                f"insert or replace into {table} values ({places}?)",  # noqa: S608 - our own names
                (*row, row_checksum(row)),
            )

        match action:
            case StoreFramework():
                put(
                    "frameworks",
                    action.framework_id,
                    action.name,
                    action.role,
                    action.principal,
                    action.failover_timeout_ms,
                )
            case ForgetFramework():
                connection.execute("delete from frameworks where id = ?", (action.framework_id,))
            case StoreAgent():
                total = json.dumps(self._kinds.as_dict(action.total))
                attributes = json.dumps(dict(action.attributes))
                put("agents", action.agent_id, action.hostname, total, attributes, int(action.is_away))
            case ForgetAgent():
                connection.execute("delete from agents where id = ?", (action.agent_id,))
            case StoreWeight():
                places = action.weight.by_resource or {}
                by_resource = json.dumps(
                    {self._kinds.names[place]: weight for place, weight in places.items()}
                )
                put("weights", action.role, float(action.weight.default), by_resource)
            case StorePolicy():
                put(
                    "policy", 1, action.policy, action.placement, action.when_head_does_not_fit, action.demand
                )

    def close(self) -> None:
        """Finish what was asked for and close the file."""
        self._writer.shutdown(wait=True)
        self._files.close()


def open_registry(directory: Path, kinds: ResourceKinds) -> Registry:
    """Open the registry in a directory, making both if no master has served there.

    Raises:
        RegistryError: the directory or a file cannot be used, a part is lost, or another master uses it.
    """
    return Registry(open_files(directory), kinds)
