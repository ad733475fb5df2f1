"""Finds the public traces that some experiments run on. They are not part of the repository."""

import os
from pathlib import Path
from typing import Final

VARIABLE: Final = "FAIRLEAD_TRACES"
"""Names the folder; without it, ``shared/traces`` beside the checkout is looked at."""


def find_trace(name: str) -> Path | None:
    """The path of a trace; None if the file is not there, in which case the caller needs a stand-in.

    Raises:
        FileNotFoundError: the variable names a folder that lacks the file, which is a mistake and no reason for a stand-in.
    """
    folder = os.environ.get(VARIABLE)
    if folder:
        path = Path(folder) / name
        if not path.is_file():
            raise FileNotFoundError(f"{VARIABLE}: expected a folder with {name}, got {folder!r}")
        return path
    beside = Path(__file__).resolve().parents[4] / "shared" / "traces" / name
    return beside if beside.is_file() else None
