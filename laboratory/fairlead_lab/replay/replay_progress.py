"""Shows how far a replay is: a bar on a terminal, a line now and then elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from fairlead_lab.replay.replay_driver import ReplayProgress

LINE_INTERVAL_MS: Final = 5_000
"""Between lines where no terminal overwrites them: a few dozen for a run of some minutes."""


class ShowProgress(Protocol):
    """Is told how far the replay is, several times a second."""

    def __call__(self, progress: ReplayProgress, *, final: bool = False) -> None: ...


@contextmanager
def shown_progress(console: Console, policy: str) -> Iterator[ShowProgress]:
    """A function that shows progress on this console for as long as the context."""
    if console.is_terminal:
        with _bar(console, policy) as show:
            yield show
        return
    last_ms = 0

    def show_line(progress: ReplayProgress, *, final: bool = False) -> None:
        nonlocal last_ms
        if final or progress.elapsed_ms - last_ms >= LINE_INTERVAL_MS:
            last_ms = progress.elapsed_ms
            console.print(f"{policy}: {describe(progress)}", highlight=False, soft_wrap=True)

    yield show_line


@contextmanager
def _bar(console: Console, policy: str) -> Iterator[ShowProgress]:
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"))
    with Progress(*columns, console=console) as bars:
        bar = bars.add_task(policy, total=1.0, text="")

        def show_bar(progress: ReplayProgress, *, final: bool = False) -> None:
            bars.update(bar, completed=progress.work_fraction, text=describe(progress), refresh=final)

        yield show_bar


def describe(progress: ReplayProgress) -> str:
    """One line of how far it is and how long it may take yet."""
    is_over = progress.jobs_over == progress.jobs
    rest = ""
    if progress.remaining_ms is not None and not is_over:
        rest = f", about {progress.remaining_ms / 1000:.0f} s left"
    waiting = progress.jobs - progress.jobs_submitted
    arriving = f" ({waiting} to arrive)" if waiting else ""
    return (
        f"{progress.elapsed_ms / 1000:.0f} s, jobs {progress.jobs_over}/{progress.jobs}{arriving}, "
        f"tasks {progress.tasks_over}/{progress.tasks}{rest}"
    )
