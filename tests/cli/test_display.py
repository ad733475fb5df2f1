import asyncio
import io
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from fairlead_cli.display import Display, Screen, progress_text
from fairlead_cli.errors import Failed
from fairlead_cli.output_directory import OutputDirectory
from fairlead_sdk.output import OutputFollower, TaskOutput
from fairlead_sdk.task import Progress, Task


class Terminal(io.BytesIO):
    """What a terminal is to a program: it says that it is one, and lines can be drawn over."""

    def isatty(self) -> bool:
        return True

    @property
    def screen(self) -> list[str]:
        """Lines as a person sees them in the end."""
        lines = [""]
        for part in re.split(r"(\r\x1b\[K|\n)", self.getvalue().decode()):
            if part == "\n":
                lines.append("")
            elif part.startswith("\r"):
                lines[-1] = ""
            else:
                lines[-1] += part
        return lines


def a_display(
    stdout: io.BytesIO, stderr: io.BytesIO, *, has_prefix: bool = False, is_quiet: bool = False
) -> Display:
    return Display(has_prefix=has_prefix, is_quiet=is_quiet, stdout=stdout, stderr=stderr)


def test_output_passes_unchanged_byte_by_byte() -> None:
    stdout, stderr = io.BytesIO(), io.BytesIO()
    display = a_display(stdout, stderr)

    for piece in (b"par", b"tial\xff", b"\n\x00"):
        display.output("t", "stdout", piece)
    display.output("t", "stderr", b"oops")
    display.end_output("t", "stdout")

    assert stdout.getvalue() == b"partial\xff\n\x00"
    assert stderr.getvalue() == b"oops"


def test_lines_of_several_tasks_are_never_mixed() -> None:
    stdout, stderr = io.BytesIO(), io.BytesIO()
    display = a_display(stdout, stderr, has_prefix=True)

    display.output("a", "stdout", b"one\ntw")
    display.output("b", "stdout", b"eins\n")
    display.output("a", "stdout", b"o\nrest")
    display.end_output("a", "stdout")
    display.end_output("b", "stdout")

    assert stdout.getvalue() == b"a| one\nb| eins\na| two\na| rest\n"


@pytest.mark.parametrize("has_prefix", [False, True])
def test_halves_of_two_lines_around_a_gap_are_two_lines(has_prefix: bool) -> None:
    stdout, stderr = io.BytesIO(), io.BytesIO()
    display = a_display(stdout, stderr, has_prefix=has_prefix)

    display.gap("t", "stdout", 1)
    display.output("t", "stdout", b"one\nlast 12")
    display.gap("t", "stdout", 2)
    display.output("t", "stdout", b"34 rest\n")
    display.gap("t", "stdout", 3)
    display.output("t", "stdout", b"end\n")

    lines = [b"one\n", b"last 12\n", b"34 rest\n", b"end\n"]
    assert stdout.getvalue() == b"".join([b"t| " * has_prefix + line for line in lines])
    assert stderr.getvalue().decode().splitlines() == [
        f"fairlead: {count} bytes of t's stdout were rotated away" for count in (1, 2, 3)
    ]


def test_state_is_drawn_over_on_a_terminal_and_makes_room_for_output() -> None:
    terminal = Terminal()
    display = a_display(terminal, terminal)

    display.state("waiting")
    display.state("on agent a")
    assert terminal.screen == ["on agent a"]
    display.output("t", "stdout", b"hello\n")
    assert terminal.screen == ["hello", "on agent a"]
    display.note("careful")
    assert terminal.screen == ["hello", "careful", "on agent a"]
    display.state("finished", is_final=True)
    assert terminal.screen == ["hello", "careful", "finished", ""]


def test_unfinished_line_of_output_is_not_drawn_over() -> None:
    terminal = Terminal()
    display = a_display(terminal, terminal)

    display.state("on agent a")
    display.output("t", "stdout", b"Name? ")
    display.state("still on agent a")
    assert terminal.screen == ["Name? "]
    display.state("finished", is_final=True)
    assert terminal.screen == ["Name? ", "finished", ""]


def test_states_elsewhere_are_lines_but_not_a_flood() -> None:
    stdout, stderr = io.BytesIO(), io.BytesIO()
    display = a_display(stdout, stderr)

    for number in range(100):
        display.state(f"{number} done")
    display.state("all done", is_final=True)

    assert stderr.getvalue() == b"0 done\nall done\n"


def test_quiet_display_shows_notes_only() -> None:
    stdout, stderr = io.BytesIO(), io.BytesIO()
    display = a_display(stdout, stderr, is_quiet=True)

    display.state("waiting")
    display.state("finished", is_final=True)
    display.note("lost")

    assert stderr.getvalue() == b"lost\n"


@pytest.mark.parametrize(
    ("finished", "running", "expected"),
    [(0, 0, "··········"), (0, 3, "▒▒▒▒▒▒▒▒▒▒"), (3, 0, "██████████"), (1, 1, "███▒▒▒····")],
)
def test_bar_shows_done_and_running_parts(finished: int, running: int, expected: str) -> None:
    waiting = 3 - finished - running

    progress = Progress(waiting=waiting, running=running, finished=finished, failed=0, retried=0)
    text = progress_text(progress, is_bar=True)

    bar = "".join(3 * mark for mark in expected)
    assert text.startswith(f"[{bar}]") or text[1:31].count("█") == finished * 10
    assert len(text[1:31]) == 30
    assert f"{finished}/3 done, {running} running, {waiting} waiting" in text


@pytest.mark.parametrize(
    ("killed", "expected"), [(0, "2 failed"), (1, "1 failed, 1 killed"), (2, "2 killed")]
)
def test_failures_are_counted_apart_from_what_was_killed(killed: int, expected: str) -> None:
    progress = Progress(waiting=1, running=0, finished=1, failed=2, retried=0, killed=killed)

    assert progress_text(progress, is_bar=False) == f"3/4 done, 0 running, 1 waiting, {expected}"


def test_tasks_that_were_never_run_are_no_failures() -> None:
    progress = Progress(waiting=0, running=0, finished=1, failed=3, retried=0, refused=2)

    assert progress_text(progress, is_bar=False) == "4/4 done, 0 running, 0 waiting, 1 failed, 2 refused"


def test_tasks_that_run_again_are_counted() -> None:
    progress = Progress(waiting=1, running=2, finished=0, failed=0, retried=3)

    assert progress_text(progress, is_bar=False) == "0/3 done, 2 running, 1 waiting, 3 run again"


class _LateOutput:
    """Gives one piece when all tasks are over."""

    def __init__(self) -> None:
        self._finishing = asyncio.Event()

    def finish(self) -> None:
        self._finishing.set()

    async def __aiter__(self) -> AsyncIterator[TaskOutput]:
        await self._finishing.wait()
        yield TaskOutput(task=Task(["t"]), name="t", task_id="f-1", path="stdout", offset=0, data=b"x")


async def test_output_that_cannot_be_written_ends_a_run_whose_tasks_are_over(tmp_path: Path) -> None:
    """Most of a short task's output comes with its end; it was lost without a word there."""
    directory = OutputDirectory(tmp_path)
    (tmp_path / "t.stdout").write_text("mine")
    output = cast("OutputFollower", _LateOutput())
    screen = Screen(a_display(io.BytesIO(), io.BytesIO()), output, directory)

    try:
        with pytest.raises(Failed, match=r"t\.stdout: File exists"):
            await screen.drain()
    finally:
        await screen.close()
