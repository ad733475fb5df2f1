import io
import re
from collections.abc import Sequence

import pytest
from rich.console import Console

from fairlead_cli import rows
from fairlead_cli.tables import (
    AGENTS,
    FRAMEWORKS,
    TASKS,
    Column,
    approximate_bytes,
    drawn_table,
    folded_title,
    plain_table,
    printable,
    share_bar,
    span,
)
from fairlead_proto.v1 import operator_pb2
from tests.cli.canned_master import a_task, an_agent


@pytest.mark.parametrize(
    ("amount", "expected"),
    [(0, "0"), (1, "1B"), (1023, "1023B"), (1024, "1KiB"), (1536, "1.5KiB"), (3 * 2**30, "3GiB"), (2**43, "8TiB")],
)  # fmt: skip
def test_bytes_are_written_for_people(amount: int, expected: str) -> None:
    assert approximate_bytes(amount) == expected


@pytest.mark.parametrize(
    ("duration_ms", "expected"),
    [
        (-5, "0.0s"), (0, "0.0s"), (12_345, "12.3s"), (60_000, "1m00s"), (245_000, "4m05s"),
        (3_600_000, "1h00m"), (7_380_000, "2h03m"), (86_400_000, "1d00h"), (273_600_000, "3d04h"),
    ],
)  # fmt: skip
def test_durations_are_written_for_people(duration_ms: int, expected: str) -> None:
    assert span(duration_ms) == expected


@pytest.mark.parametrize(
    ("share", "fair", "expected"),
    [(0.0, 0.0, "········"), (0.5, 0.0, "████····"), (2.0, 0.0, "████████"), (0.5, 0.25, "██┃█····"), (0.0, 1.0, "·······┃")],
)  # fmt: skip
def test_bar_shows_the_share_and_marks_the_fair_one(share: float, fair: float, expected: str) -> None:
    assert share_bar(share, fair, width=8) == expected


def test_what_would_steer_a_terminal_is_shown_and_not_obeyed() -> None:
    columns = (Column("MESSAGE", lambda row: row["message"]),)
    row = {"message": "\x1b]0;title\x07 a\nb \u202eé"}

    assert plain_table([row], columns).splitlines()[1:] == [r"\x1b]0;title\x07 a\nb \u202eé"]
    assert printable("two\nlines\r", keep="\n") == "two\nlines\\r"


def test_columns_align_and_what_is_absent_is_a_dash() -> None:
    table = plain_table([rows.agent(an_agent("a")), rows.agent(an_agent("an-agent-with-a-long-id"))], AGENTS)

    lines = table.splitlines()
    positions = {line.index("host-1") for line in lines[1:]}
    assert positions == {lines[0].index("HOSTNAME")}
    assert "GPUS" not in lines[0], "no agent has one"


def test_narrow_terminal_folds_ids_and_loses_no_character() -> None:
    long_id = "agent-" + "x" * 40
    console = Console(width=30, force_terminal=True, color_system=None, file=io.StringIO(), record=True)
    console.print(drawn_table([rows.agent(an_agent(long_id))], AGENTS[:2], width=30))

    text = console.export_text()
    assert text.count("x") == 40
    assert "…" not in text


def test_remark_on_a_task_without_a_reason_is_listed_shortened() -> None:
    remark = "stdout: 6 bytes could not be written: No space left on device"
    remarked = rows.task(a_task("t-1", state="FINISHED", reason="NONE", message=remark))
    failed = rows.task(a_task("t-2", state="FAILED", reason="EXITED", message="exit code 3"))

    _, first, second = plain_table([remarked, failed], TASKS).splitlines()

    assert first.endswith("  stdout: 6 bytes could not be written: N…")
    assert second.endswith("  EXITED")


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (0, ["MEM", "TOTAL/", "ALLOCATED/", "USED"]),
        (10, ["MEM TOTAL/", "ALLOCATED/", "USED"]),
        (16, ["MEM TOTAL/", "ALLOCATED/USED"]),
        (80, ["MEM TOTAL/ALLOCATED/USED"]),
    ],
)
def test_title_folds_between_its_words(width: int, expected: list[str]) -> None:
    assert folded_title("MEM TOTAL/ALLOCATED/USED", width).splitlines() == expected


def a_framework() -> rows.Row:
    return rows.framework(operator_pb2.FrameworkInfo(framework_id="f1-2", name="sweep", role="default"))


@pytest.mark.parametrize(
    ("row", "columns"), [(rows.agent(an_agent("a1-1")), AGENTS), (a_framework(), FRAMEWORKS)]
)
def test_words_of_titles_are_whole_on_a_common_terminal(row: rows.Row, columns: Sequence[Column]) -> None:
    console = Console(width=80, force_terminal=True, color_system=None, file=io.StringIO(), record=True)
    console.print(drawn_table([row], columns, width=80))

    words = set(re.split(r"[\s/]+", console.export_text()))
    shown = [column for column in columns if column.is_shown([row])]
    assert words >= {word for column in shown for word in re.split(r"[ /]", column.title)}


def test_wide_terminal_has_titles_of_one_line() -> None:
    console = Console(width=200, force_terminal=True, color_system=None, file=io.StringIO(), record=True)
    console.print(drawn_table([a_framework()], FRAMEWORKS, width=200))

    assert "OFFERS SENT/ACCEPTED/DECLINED/EXPIRED" in console.export_text()


def test_what_a_task_asked_for_is_absent_if_nobody_says() -> None:
    row = rows.task(
        a_task("t-1", state="FINISHED", resources=None, submitted_ms=0, started_ms=0, finished_ms=9_000)
    )

    assert [row[key] for key in ("cpus", "mem_bytes", "disk_bytes", "gpus", "command", "submitted_ms")] == [
        None
    ] * 6
    assert plain_table([row], TASKS).splitlines()[1].split()[-6:] == ["agent-1", "-", "-", "-", "-", "-"]
