"""Where `fairlead run --output DIR` writes what tasks print: a file for each stream of each attempt that wrote to it."""

from collections.abc import Iterable
from pathlib import Path

from fairlead_cli.errors import Failed, Invalid
from fairlead_sdk.output import PATHS, TaskOutput


class OutputDirectory:
    """One such directory. Nothing that is there is ever changed."""

    def __init__(self, path: Path) -> None:
        """Make the directory, unless it is there.

        Raises:
            Invalid: it cannot be made.
        """
        self.path = path
        self._begun: set[str] = set()
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Invalid(f"--output {path}: {error.strerror or error}") from error

    def check_free(self, task_ids: Iterable[str]) -> None:
        """See before anything runs that no file of these tasks is there.

        Raises:
            Invalid: one is.
        """
        there = {file.name for file in self.path.iterdir()}
        for task_id in task_ids:
            for path in PATHS:
                if (name := f"{task_id}.{path}") in there:
                    raise Invalid(f"--output {self.path}: expected no file {name}, which an earlier run made")

    def write(self, piece: TaskOutput) -> None:
        """Append a piece to its file. Blocks.

        Raises:
            Failed: it cannot be written; the text says why.
        """
        name = f"{piece.task_id}.{piece.path}"
        try:
            if piece.data:
                # Not kept open: as many tasks may write at once as there can be open files.
                with (self.path / name).open("ab" if name in self._begun else "xb") as file:
                    self._begun.add(name)
                    file.write(piece.data)
        except OSError as error:
            raise Failed(f"--output {self.path}: {name}: {error.strerror or error}") from error
        if piece.is_last:
            self._begun.discard(name)
