"""A bar for work that may take long: what is going on, how much of it is done, and the time that is left."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

Tell = Callable[[str, int, int], None]
"""Says what is going on, how much is done, and of how much in all, in any unit; about as much is enough."""

_INTERVAL_S: Final = 0.1
"""Between two states that are shown. To be told costs little, to draw does not."""


@contextmanager
def progress_bar(beginning: str) -> Iterator[Tell]:
    """A bar on stderr for as long as the context, if that is a terminal; else what is told goes nowhere.

    Args:
        beginning: what is going on before the first word.
    """
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    shown_s = -_INTERVAL_S
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        whole = bar.add_task(beginning, total=None)

        def tell(doing: str, done: int, total: int) -> None:
            nonlocal shown_s
            now_s = time.monotonic()
            if now_s - shown_s >= _INTERVAL_S:
                shown_s = now_s
                bar.update(whole, description=doing, completed=done, total=max(done, total))

        yield tell
