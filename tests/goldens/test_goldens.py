"""What takes a moment is held in every run of the suite; `make goldens` holds all of it. And the holding is tested."""

import subprocess
import sys
import zlib
from struct import pack

import pytest

from tests.goldens.recorded import Left, difference, normalised, text_of
from tests.goldens.running import REPOSITORY, traces_folder


@pytest.mark.timeout(900)  # half a minute of CPU time, on hosts that may be busy
def test_quick_outputs_are_what_was_kept() -> None:
    """The text of a failure names each command and the first line that differs."""
    command = [sys.executable, "-m", "tests.goldens", "--quick", "--processes", "1"]
    outcome = subprocess.run(command, check=False, cwd=REPOSITORY, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_traces_are_there_for_make_goldens() -> None:
    if traces_folder() is None:
        pytest.skip("the public traces are not there: `make goldens` leaves out what needs them")


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


def a_png(content: bytes, level: int) -> bytes:
    chunks = ((b"IHDR", pack(">IIBBBBB", 2, 1, 8, 0, 0, 0, 0)), (b"IDAT", zlib.compress(content, level)))
    body = b"".join(pack(">I", len(data)) + kind + data + b"crc." for kind, data in chunks)
    return b"\x89PNG\r\n\x1a\n" + body


def test_a_picture_is_its_pixels_whatever_compressed_it() -> None:
    content = b"\0ab" * 50

    assert a_png(content, 0) != a_png(content, 9)
    assert normalised("a.png", a_png(content, 0)) == normalised("a.png", a_png(content, 9))
    assert normalised("a.png", a_png(content, 9)) != normalised("a.png", a_png(content + b"\0", 9))


def test_times_and_speeds_are_no_result_and_numbers_beside_them_are() -> None:
    assert normalised("stdout", b"[1/2] x: y (1.5 s)  (0.3 s)\n") == b"[1/2] x: y (1.5 s)  (# s)\n"
    assert normalised("stdout", b'{"took_s": 0.25, "events_per_s": 1e5, "jobs": 3}') == (
        b'{"took_s": #, "events_per_s": #, "jobs": 3}'
    )
