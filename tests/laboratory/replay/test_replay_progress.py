import io

from rich.console import Console

from fairlead_lab.replay.replay_driver import ReplayProgress
from fairlead_lab.replay.replay_progress import describe, shown_progress


def a_progress(
    *, elapsed_ms: int = 0, submitted: int = 0, over: int = 0, remaining_ms: int | None = None
) -> ReplayProgress:
    return ReplayProgress(
        elapsed_ms=elapsed_ms,
        jobs=10,
        jobs_submitted=submitted,
        jobs_over=over,
        tasks=20,
        tasks_over=2 * over,
        work_fraction=over / 10,
        remaining_ms=remaining_ms,
    )


def test_line_says_what_is_over_what_will_arrive_and_how_long_it_may_take() -> None:
    assert describe(a_progress()) == "0 s, jobs 0/10 (10 to arrive), tasks 0/20"
    assert describe(a_progress(elapsed_ms=5200, submitted=7, over=2, remaining_ms=20_800)) == (
        "5 s, jobs 2/10 (3 to arrive), tasks 4/20, about 21 s left"
    )
    assert describe(a_progress(elapsed_ms=9000, submitted=10, over=10, remaining_ms=0)) == (
        "9 s, jobs 10/10, tasks 20/20"
    )


def test_lines_are_few_where_there_is_no_terminal() -> None:
    console = Console(file=io.StringIO(), record=True, width=20)

    with shown_progress(console, "drf") as show:
        for elapsed_ms in range(0, 12_000, 200):
            show(a_progress(elapsed_ms=elapsed_ms))
        show(a_progress(elapsed_ms=12_000, submitted=10, over=10), final=True)

    assert console.export_text().splitlines() == [
        "drf: 5 s, jobs 0/10 (10 to arrive), tasks 0/20",
        "drf: 10 s, jobs 0/10 (10 to arrive), tasks 0/20",
        "drf: 12 s, jobs 10/10, tasks 20/20",
    ]


def test_bar_is_shown_on_a_terminal() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120)

    with shown_progress(console, "drf") as show:
        show(a_progress(elapsed_ms=12_000, submitted=10, over=10), final=True)

    assert isinstance(console.file, io.StringIO)
    assert "jobs 10/10" in console.file.getvalue()
