"""What takes a moment is held in every run of the suite; `make goldens` holds all of it. And the holding is tested."""

import re
import subprocess
import sys
from io import BytesIO

import numpy as np
import pytest
from matplotlib.image import imsave

from tests.goldens.cases import all_cases
from tests.goldens.recorded import Left, difference, normalised, text_of
from tests.goldens.running import REPOSITORY, traces_folder


@pytest.mark.timeout(900)  # half a minute of CPU time, on hosts that may be busy
def test_quick_outputs_are_what_was_kept() -> None:
    """The text of a failure names each command and the first line that differs."""
    command = [sys.executable, "-m", "tests.goldens", "--quick", "--processes", "1"]
    outcome = subprocess.run(command, check=False, cwd=REPOSITORY, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_traces_are_there_for_make_goldens() -> None:
    folder = traces_folder()
    if folder is None:
        pytest.skip("the public traces are not there: `make goldens` leaves out what needs them")
    named = {name for case in all_cases() for name in re.findall(r"\btraces/(\S+)", case.command)}
    assert named
    assert [name for name in sorted(named) if not (folder / name).is_file()] == []


def changed(before: bytes, after: bytes, name: str = "stdout") -> str:
    left = Left(0, {name: after})
    return difference(text_of("c", Left(0, {name: before})), text_of("c", left), left)


def test_first_line_that_differs_is_named_with_both_versions() -> None:
    assert changed(b"a\nb\nc\n", b"a\nB\nC\n") == "stdout: line 2\n  - b\n  + B"
    assert changed(b"a\n", b"a\nb\n") == "stdout: line 2\n  - (no line)\n  + b"
    assert changed(b"a\n", b"a\n") == ""


def test_a_newline_that_is_missing_at_the_end_is_a_difference() -> None:
    assert changed(b"a\n", b"a") == "stdout: 2 bytes became 1 bytes"


def test_a_carriage_return_is_kept_where_it_can_be_seen() -> None:
    assert "| a\\r\n" in text_of("c", Left(0, {"stdout": b"a\r\n"}))


def test_line_of_a_large_output_is_named_though_only_hashes_are_kept() -> None:
    lines = [b"line %d" % number for number in range(300)]
    other = [*lines[:122], b"another", *lines[123:]]

    assert changed(b"\n".join(lines), b"\n".join(other), "out/x.csv") == (
        "out/x.csv: line 123, which is now\n  + another"
    )


def test_part_of_a_large_document_on_one_line_is_named() -> None:
    before = b"[" + b", ".join(b"%d" % number for number in range(1000)) + b"]"

    assert changed(before, before.replace(b" 700,", b" 7,")) == (
        "stdout: line 700 to 702, which is now\n  + 699,"
    )


def test_new_and_missing_outputs_and_exit_codes_are_named() -> None:
    before = text_of("c", Left(0, {"out/a": b"x", "out/b": b"x"}))

    for left, expected in (
        (Left(0, {"out/a": b"x"}), "out/b: is not there any more"),
        (Left(0, {"out/a": b"x", "out/b": b"x", "out/c": b"x"}), "out/c: is new"),
        (Left(1, {"out/a": b"x", "out/b": b"x"}), "exit code: exit 0 became exit 1"),
    ):
        assert difference(before, text_of("c", left), left) == expected


def a_picture(*, bar: int, shade: int = 255, level: int = 6) -> bytes:
    """A bar of that length on grey, one pixel of which may have another shade."""
    pixels = [[(200, 200, 200)] * 64 for _ in range(32)]
    pixels[8:16] = [[(31, 119, 180)] * bar + [(255, 255, 255)] * (64 - bar) for _ in range(8)]
    pixels[12][60] = (shade, shade, shade)
    file = BytesIO()
    imsave(file, np.array(pixels, dtype="uint8"), format="png", pil_kwargs={"compress_level": level})
    return file.getvalue()


def test_a_picture_is_what_is_seen_of_it() -> None:
    picture = a_picture(bar=40)
    kept = normalised("a.png", picture)

    assert a_picture(bar=40, level=0) != picture
    assert normalised("a.png", a_picture(bar=40, level=0)) == kept
    assert normalised("a.png", a_picture(bar=40, shade=253)) == kept
    assert normalised("a.png", a_picture(bar=42)) != kept


def test_times_and_speeds_are_no_result_and_numbers_beside_them_are() -> None:
    assert normalised("stdout", b"[1/2] x: y (1.5 s)  (0.3 s)\n") == b"[1/2] x: y (1.5 s)  (# s)\n"
    assert normalised("stdout", b'{"took_s": 0.25, "events_per_s": 1e5, "jobs": 3}') == (
        b'{"took_s": #, "events_per_s": #, "jobs": 3}'
    )
