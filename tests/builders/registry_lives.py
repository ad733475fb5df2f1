"""Lives of a registry that are ended by SIGKILL at every step that changes a file; a program of its own, for it forks.

Usage: ``python -m tests.builders.registry_lives DIRECTORY``. It prints, as JSON, what became of each life: how it ended, and
what the next master in its directory said.
"""

import json
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from fairlead_master import registry, registry_files
from fairlead_master.core.actions import StoreFramework
from fairlead_proto.ids import FrameworkId, Role
from fairlead_proto.resources import ResourceKinds

_TRACED = {registry.__file__, registry_files.__file__}
_BYTES_MAX = 32_768
"""SQLite's index of its log has as many, so a smaller limit always ends a life."""
_PAGE_BYTES = 4_096
FRAMEWORK = StoreFramework(
    framework_id=FrameworkId("f1-1"), name="n", role=Role("r"), principal="p", failover_timeout_ms=1
)


def _live(directory: Path) -> None:
    opened = registry.open_registry(directory, ResourceKinds())
    opened.load(1)
    opened.write([FRAMEWORK]).result()
    (directory.parent / f"{directory.name}.told").touch()
    opened.close()


def _contents(directory: Path) -> dict[str, bytes]:
    found = sorted(directory.iterdir()) if directory.exists() else []
    return {path.name: path.read_bytes() for path in found}


def _on_each_line(do: Callable[[], None]) -> None:
    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        if frame.f_code.co_filename not in _TRACED:
            return None
        if event == "line":
            do()
        return trace

    threading.settrace(trace)
    sys.settrace(trace)


def _steps(directory: Path) -> list[int]:
    """The lines of a life, by number, before which a file has changed."""
    count, seen, steps = 0, _contents(directory), []

    def look() -> None:
        nonlocal count, seen
        count += 1
        now = _contents(directory)
        if now != seen:
            seen = now
            steps.append(count)

    _on_each_line(look)
    _live(directory)
    sys.settrace(None)
    threading.settrace(None)
    return steps


def _kill_at_line(step: int) -> None:
    count = 0

    def look() -> None:
        nonlocal count
        count += 1
        if count == step:
            os.kill(os.getpid(), signal.SIGKILL)

    _on_each_line(look)


def _kill_at_size(size: int) -> None:
    """Let no file grow beyond: the write that would is the last, wherever in SQLite it is."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def _end_and_follow(directory: Path, aim: Callable[[], None]) -> dict[str, Any]:
    child = os.fork()
    if child == 0:
        aim()
        _live(directory)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    was_told = (directory.parent / f"{directory.name}.told").exists()
    refusal = ""
    try:
        following = registry.open_registry(directory, ResourceKinds())
        found = following.load(1).remembered.frameworks
        following.close()
        if was_told and found != (FRAMEWORK,):
            refusal = f"what was told is gone: {found}"
    except registry_files.RegistryError as error:
        refusal = str(error)
    return {"directory": directory.name, "was_killed": os.WIFSIGNALED(status), "refusal": refusal}


def main(place: Path) -> None:
    """End a life at each step and print what followed."""
    steps = _steps(place / "whole")
    outcomes = [
        *(_end_and_follow(place / f"line-{step}", lambda step=step: _kill_at_line(step)) for step in steps),  # type: ignore[misc]
        *(
            _end_and_follow(place / f"size-{size}", lambda size=size: _kill_at_size(size))  # type: ignore[misc]
            for size in range(0, _BYTES_MAX, _PAGE_BYTES)
        ),
    ]
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
