"""What a command left behind, as text to be kept and compared: small outputs whole, large ones as hashes that locate a change.

The text of one case:

    $ fairlead allocate example.json --out out
    exit 0
    stdout, 345 bytes
    | drf, tasks may be split, …
    out/report.html, 61234 bytes, 512 lines, sha256 0123…
    : 5f03a1…

After ``|`` a line as it was. After ``:`` two hexadecimal digits for each line, or for as many lines as it says, so that the first
line that differs can be named.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from itertools import zip_longest
from typing import Final

TEXT_BYTES_MAX: Final = 8_000
"""Of what is printed for people: larger outputs are kept as hashes."""

DATA_BYTES_MAX: Final = 1_200
"""Of files, JSON and CSV."""

MARKS_MAX: Final = 400
"""Of one output: then a mark stands for several lines."""

SQUARE: Final = 8
"""Side of what counts as one spot of a picture, in pixels."""

SHADES: Final = 20
"""Steps from black to white."""

SHOWN_MAX: Final = 160
"""Of a line that differs, around where it does."""

RULES: Final[Mapping[str, tuple[re.Pattern[bytes], bytes]]] = {
    "how long an experiment took": (
        re.compile(rb"^(\[\d+/\d+\] .*)\(\d+\.\d s\)$", re.MULTILINE),
        rb"\1(# s)",
    ),
    "how fast a simulation was": (re.compile(rb'("(?:took_s|events_per_s)": )[\d.e+-]+'), rb"\1#"),
    "age of a task that runs": (re.compile(rb"\b\d{5}d\d\dh\b"), b"#"),
    "release of matplotlib": (re.compile(rb"Matplotlib v[\d.]+"), b"Matplotlib"),
}
"""What differs from run to run and is no result; a picture is what is seen of it, and a drawing's chance names are counted."""


@dataclass(frozen=True, slots=True)
class Left:
    """What one case left behind."""

    exit_code: int
    outputs: Mapping[str, bytes]
    """``stdout``, ``stderr`` and files by their paths; empty ones of the first two are left out."""


def text_of(command: str, left: Left) -> str:
    """The text to keep."""
    parts = [f"$ {command}\n", f"exit {left.exit_code}\n"]
    for name, content in left.outputs.items():
        parts += _kept(name, normalised(name, content))
    return "".join(parts)


def normalised(name: str, content: bytes) -> bytes:
    """An output without what is no result, by ``RULES`` and by the kind of file."""
    if name.endswith(".png"):
        return _pixels(content)
    if name.endswith(".html"):
        content = re.sub(rb"data:image/png;base64,([A-Za-z0-9+/=]+)", _drawn_inside, content)
    if name.endswith(".svg"):
        content = _counted_names(content)
    for pattern, replacement in RULES.values():
        content = pattern.sub(replacement, content)
    return content


def _drawn_inside(found: re.Match[bytes]) -> bytes:
    return b"[" + _pixels(base64.b64decode(found[1])).strip() + b"]"


def _pixels(png: bytes) -> bytes:
    """Size of a picture and a hash of what can be seen of it.

    Not of every bit: where the layout puts an axis depends, in its last bits, on addresses in memory, and a few pixels are then a
    shade lighter. So it is the mean colours of squares, in steps. The numbers that are drawn are held beside it, as CSV or JSON.
    """
    import numpy as np
    from matplotlib.image import imread

    pixels = imread(BytesIO(png))
    height, width, colours = pixels.shape
    padded = np.ones((-(-height // SQUARE) * SQUARE, -(-width // SQUARE) * SQUARE, colours))
    padded[:height, :width] = pixels
    squares = padded.reshape(-(-height // SQUARE), SQUARE, -(-width // SQUARE), SQUARE, colours).mean(
        axis=(1, 3)
    )
    seen = np.rint(squares * SHADES).astype("uint8").tobytes()
    return f"png {width} x {height} {hashlib.sha256(seen).hexdigest()}\n".encode()


def _counted_names(svg: bytes) -> bytes:
    """A drawing whose random names are numbers in the order in which they come."""
    names: dict[bytes, bytes] = {}
    return re.sub(
        rb"\b[a-z][0-9a-f]{10}\b", lambda found: names.setdefault(found[0], b"name%d" % len(names)), svg
    )


def _kept(name: str, content: bytes) -> Iterable[str]:
    text = content.decode("utf-8", "backslashreplace")
    lines = text.removesuffix("\n").split("\n")
    is_data = name not in {"stdout", "stderr"} or text[:1] in {"{", "["}
    if len(content) <= (DATA_BYTES_MAX if is_data else TEXT_BYTES_MAX):
        yield f"{name}, {len(content)} bytes\n"
        yield from ("| " + line.replace("\r", "\\r") + "\n" for line in lines)
        return
    lines = _lines(text)
    yield f"{name}, {len(content)} bytes, {len(lines)} lines, sha256 {hashlib.sha256(content).hexdigest()}\n"
    yield f": {_marks(lines)}\n"


def _lines(text: str) -> list[str]:
    """The lines of a large output; a document on a single line is broken at its commas."""
    lines = text.removesuffix("\n").split("\n")
    return lines if len(lines) > 1 else re.split(r"(?<=,) ", lines[0])


def _marks(lines: list[str]) -> str:
    stride = _stride(len(lines))
    blocks = ("\n".join(lines[at : at + stride]) for at in range(0, len(lines), stride))
    return "".join(
        hashlib.sha256(block.encode("utf-8", "surrogateescape")).hexdigest()[:2] for block in blocks
    )


def _stride(lines: int) -> int:
    return -(-lines // MARKS_MAX)


def difference(expected: str, text: str, left: Left) -> str:
    """Where two texts of one case first differ, in lines for people; empty if they are the same."""
    if expected == text:
        return ""
    were, are = _sections(expected), _sections(text)
    for name in were | are:
        if name not in are:
            return f"{name}: is not there any more"
        if name not in were:
            return f"{name}: is new"
        if were[name] != are[name]:
            return f"{name}: {_first(were[name], are[name], name, left)}"
    return "the same outputs in another order"


def _sections(text: str) -> dict[str, list[str]]:
    """Lines of the text by the output they belong to."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.rstrip("\n").split("\n")[1:]:
        if line[:2] not in {"| ", ": "}:
            name = line.partition(",")[0] if "," in line else "exit code"
            found[name] = []
        found[name].append(line)
    return found


def _first(were: list[str], are: list[str], name: str, left: Left) -> str:
    if name == "exit code":
        return f"{were[0]} became {are[0]}"
    old_head, new_head = were[0].split(" ", 1)[1], are[0].split(" ", 1)[1]
    if were[-1][:2] != ": " or are[-1][:2] != ": ":
        if were[-1][:2] == are[-1][:2]:
            for number, (old, new) in enumerate(zip_longest(were[1:], are[1:]), 1):
                if old != new:
                    return f"line {number}\n{_beside(old, new)}"
        return f"{old_head} became {new_head}"
    lines = _lines(normalised(name, left.outputs[name]).decode("utf-8", "backslashreplace"))
    stride, old_marks, new_marks = _stride(len(lines)), were[-1][2:], are[-1][2:]
    for block in range(0, min(len(old_marks), len(new_marks)), 2):
        if old_marks[block : block + 2] != new_marks[block : block + 2]:
            number = block // 2 * stride
            until = f" to {number + stride}" if stride > 1 else ""
            return f"line {number + 1}{until}, which is now\n  + {lines[number][:SHOWN_MAX]}"
    return f"{old_head} became {new_head}: lines at its end, or one whose mark is the same by chance"


def _beside(old: str | None, new: str | None) -> str:
    """Two lines below one another, cut to where they differ."""
    at = next((place for place, (a, b) in enumerate(zip(old or "", new or "", strict=False)) if a != b), 2)
    begin = max(2, at - SHOWN_MAX // 2)
    cut = "… " if begin > 2 else ""
    shown = [
        f"  {sign} " + ("(no line)" if line is None else cut + line[begin : begin + SHOWN_MAX])
        for sign, line in (("-", old), ("+", new))
    ]
    return "\n".join(shown)
