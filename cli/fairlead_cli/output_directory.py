"""Where `fairlead run --output DIR` writes what tasks print: a file for each stream of each attempt that wrote to it.

Files are named after tasks, as lines on a terminal are, and not after ids, which nobody knows before the run.
"""

from collections.abc import Iterable
from os import SEEK_END
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO

from fairlead_cli.errors import Failed, Invalid
from fairlead_sdk.output import PATHS, TaskOutput


class OutputDirectory:
    """One such directory. Nothing that is there is ever changed."""

    def __init__(self, path: Path) -> None:
        """Make the directory, unless it is there, and see that files can be made in it.

        Raises:
            Invalid: it or they cannot be made.
        """
        self.path = path
        self._begun: set[str] = set()
        try:
            path.mkdir(parents=True, exist_ok=True)
            # Tried and not asked: a mount may be read-only or out of inodes whatever the permissions are.
            with NamedTemporaryFile(dir=path, prefix=".fairlead-"):
                pass
        except OSError as error:
            raise Invalid(f"--output {path}: {error.strerror or error}") from error

    def check_free(self, names: Iterable[str]) -> None:
        """See before anything runs that no file of tasks with these names is there.

        Raises:
            Invalid: one is.
        """
        there = {file.name for file in self.path.iterdir()}
        for name in names:
            for path in PATHS:
                if (file := _file_name(name, "", path)) in there:
                    raise Invalid(f"--output {self.path}: expected no file {file}, which an earlier run made")

    def write(self, piece: TaskOutput) -> None:
        """Append a piece to its file, on a line of its own if something is missing before it. Blocks.

        Raises:
            Failed: it cannot be written; the text says why.
        """
        _, _, attempt = piece.task_id.partition(".")
        name = _file_name(piece.name, attempt, piece.path)
        try:
            is_begun = name in self._begun
            if piece.data or (piece.skipped_bytes and is_begun):
                # Not kept open: as many tasks may write at once as there can be open files.
                with (self.path / name).open("a+b" if is_begun else "xb") as file:
                    self._begun.add(name)
                    if piece.skipped_bytes and is_begun:
                        _end_line(file)
                    file.write(piece.data)
        except OSError as error:
            raise Failed(f"--output {self.path}: {name}: {error.strerror or error}") from error
        if piece.is_last:
            self._begun.discard(name)


def _end_line(file: BinaryIO) -> None:
    """Append the end of the last line, if it has none; there is a byte in the file."""
    file.seek(-1, SEEK_END)
    if file.read(1) != b"\n":
        file.write(b"\n")


def _file_name(task: str, attempt: str, path: str) -> str:
    """Of the file for what an attempt writes to ``path``; ``attempt`` is empty for the first."""
    parts = [task.replace("/", "_"), attempt, path]
    return ".".join(filter(None, parts))
