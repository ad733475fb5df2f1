"""Flight recordings: every event a core was given, with its time, so that it can be given them again.

The core is deterministic, so the start and the events are all there is to know: played back, a recording orders the same
actions in the same order, here or on another machine. Recordings of failures become tests.

One JSON document a line. The first is the header (kinds, settings, what was remembered, the time of the start), each
other one is ``[now_ms, event]``. Values are tagged with their class, so that a reader needs no schema.
"""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import IO, Any, Final

from fairlead_master.allocation import api
from fairlead_master.core import actions, events, machine, settings
from fairlead_master.core.machine import Machine, Remembered
from fairlead_master.core.settings import CoreSettings
from fairlead_proto import codes, resources, task_state, tasks
from fairlead_proto.resources import ResourceKinds

FORMAT: Final = "fairlead-recording-1"
BYTES_MAX: Final = 4 * 2**30
"""Then recording stops, the master does not: about ten million events."""

_CLASSES: Final[Mapping[str, type]] = {
    name: value
    for module in (api, actions, events, machine, settings, codes, resources, task_state, tasks)
    for name, value in vars(module).items()
    if isinstance(value, type) and (is_dataclass(value) or issubclass(value, Enum))
}

_FIELDS_GONE: Final = {"AgentConnected": ("boot_id",), "RunningTask": ("role",)}
"""That older recordings have, by class: they decided nothing, so a recording is played the same without them."""


class RecordingError(Exception):
    """A recording that cannot be read; the text names the file, the line, what was expected and what was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What the core was started with."""

    kinds: ResourceKinds
    settings: CoreSettings
    remembered: Remembered
    now_ms: int


class Recorder:
    """Writes a recording as its master runs."""

    def __init__(self, file: IO[str], header: Header) -> None:
        """Write the header.

        Raises:
            OSError: the file cannot be written; so too from ``record``.
        """
        self._file = file
        self._room = BYTES_MAX
        start = {
            "format": FORMAT,
            **{field.name: encode(getattr(header, field.name)) for field in fields(header)},
        }
        self._write(json.dumps(start))

    @classmethod
    def make(cls, path: Path, header: Header) -> "Recorder":
        """Write over the file, which its owner alone may read: events hold commands and environments.

        Raises:
            OSError: the file cannot be written.
        """
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        file = os.fdopen(descriptor, "w", encoding="utf-8")
        try:
            found = os.fstat(descriptor)
            if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
                os.fchmod(descriptor, 0o600)
            return cls(file, header)
        except BaseException:
            file.close()
            raise

    def record(self, event: events.Event, now_ms: int) -> None:
        """Write one event; nothing any more once the recording has its full size."""
        if self._room > 0:
            self._write(json.dumps([now_ms, encode(event)]))

    def _write(self, line: str) -> None:
        self._room -= len(line) + 1
        self._file.write(line + "\n")

    def close(self) -> None:
        """Flush and close the file."""
        self._file.close()


def encode(value: object) -> Any:
    """The JSON form of a value of the core: classes and enums tagged, tuples as lists, mappings as pairs.

    Without what does not tell one value from another.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Enum):
        return {"$": type(value).__name__, "name": value.name}
    if is_dataclass(value):
        content = {field.name: encode(getattr(value, field.name)) for field in fields(value) if field.compare}
        return {"$": type(value).__name__, **content}
    if isinstance(value, Mapping):
        return {"$": "map", "items": [[encode(key), encode(item)] for key, item in value.items()]}
    assert isinstance(value, tuple | list), f"no JSON form for {value!r}"
    return [encode(item) for item in value]


def decode(document: Any) -> Any:
    """The value of a JSON form; lists become tuples, as the core has them.

    Raises:
        ValueError: a class is unknown, or its fields are others.
    """
    if isinstance(document, list):
        return tuple([decode(item) for item in document])
    if not isinstance(document, dict):
        return document
    content = dict(document)
    name = content.pop("$", None)
    if name == "map":
        return {decode(key): decode(item) for key, item in content["items"]}
    kind = _CLASSES.get(name)
    if kind is None:
        raise ValueError(f"expected a class of the core, got {name!r}")
    if issubclass(kind, Enum):
        return kind[content["name"]]
    gone = _FIELDS_GONE.get(name, ())
    try:
        return kind(**{field: decode(item) for field, item in content.items() if field not in gone})
    except TypeError as error:
        raise ValueError(f"expected the fields of {name}: {error}") from None


def read_recording(path: Path) -> tuple[Header, Iterator[tuple[int, events.Event]]]:
    """The header, and the events as they are read. A last line that was cut off by a crash ends the recording.

    Raises:
        RecordingError: the file cannot be read or is no recording; from the iterator too.
    """
    try:
        with path.open(encoding="utf-8") as file:
            header = _read_header(json.loads(file.readline()))
    except OSError as error:
        raise RecordingError(f"{path}: expected a readable file, got {error.strerror}") from None
    except (ValueError, TypeError, KeyError) as error:
        raise RecordingError(f"{path}: line 1: expected the header of a {FORMAT}: {error}") from None
    return header, _read_events(path)


def _read_header(document: Any) -> Header:
    found = document.pop("format", None) if isinstance(document, dict) else None
    if found != FORMAT:
        raise ValueError(f"got {found!r}")
    return Header(**{name: decode(item) for name, item in document.items()})


def _read_events(path: Path) -> Iterator[tuple[int, events.Event]]:
    with path.open(encoding="utf-8") as file:
        file.readline()
        for number, line in enumerate(file, start=2):
            if not line.endswith("\n"):
                return
            try:
                now_ms, document = json.loads(line)
                yield now_ms, decode(document)
            except (ValueError, TypeError, KeyError) as error:
                raise RecordingError(f"{path}: line {number}: expected [now_ms, event]: {error}") from None


def play(path: Path) -> Iterator[tuple[int, events.Event, list[actions.Action]]]:
    """Give a core the recorded events again: time, event, and the actions it orders now.

    Raises:
        RecordingError: the recording cannot be read.
    """
    header, recorded = read_recording(path)
    core = Machine(header.kinds, header.settings, header.remembered, header.now_ms)
    for now_ms, event in recorded:
        yield now_ms, event, core.step(event, now_ms)
