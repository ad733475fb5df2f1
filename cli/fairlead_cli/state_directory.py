"""Where a user's own files of Fairlead are, by the rules of the XDG base directories."""

import os
from pathlib import Path


def state_directory() -> Path:
    """``${XDG_STATE_HOME:-~/.local/state}/fairlead``; it need not exist."""
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "fairlead"
