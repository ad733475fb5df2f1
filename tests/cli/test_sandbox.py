from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_cli import sandbox
from fairlead_cli.log_printing import print_chunks
from fairlead_cli.sandbox import AsyncConnection, Chunk, Output, read_output, tail_offset
from fairlead_proto.v1.files_pb2 import ReadRequest, ReadResponse

OUTPUT = Output("fw-1", "t-1", "stdout")


class Files:
    """An agent's file of which the first ``rotated`` bytes are gone; it grows by ``more`` when read at its end."""

    def __init__(self, text: bytes, *, rotated: int = 0, more: list[bytes] | None = None) -> None:
        self.text = text
        self.rotated = rotated
        self.more = more or []

    async def Read(self, request: ReadRequest, *, timeout: float) -> ReadResponse:  # noqa: N802
        assert timeout > request.wait_ms / 1000
        if request.wait_ms and request.offset >= len(self.text) and self.more:
            self.text += self.more.pop(0)
        offset = max(self.rotated, len(self.text) + request.offset if request.offset < 0 else request.offset)
        data = self.text[offset : offset + request.length]
        is_complete = not self.more and offset + len(data) >= len(self.text)
        return ReadResponse(offset=offset, data=data, size=len(self.text), complete=is_complete)


def connection_to(files: Files) -> AsyncConnection:
    connection = AsyncConnection.__new__(AsyncConnection)
    connection.address = "canned"
    connection.files = files  # type: ignore[assignment]  # only Read is used
    return connection


@given(st.binary(max_size=60), st.integers(1, 8))
async def test_all_of_a_file_is_read_in_pieces(text: bytes, piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "CHUNK_BYTES", piece)
        chunks = [chunk async for chunk in read_output(connection_to(Files(text)), OUTPUT)]

    assert b"".join(chunk.data for chunk in chunks) == text


async def test_following_ends_when_the_task_is_over_and_all_is_read() -> None:
    files = Files(b"one\n", more=[b"two\n", b"three\n"])

    chunks = [chunk.data async for chunk in read_output(connection_to(files), OUTPUT, follow=True)]

    assert chunks == [b"one\n", b"two\n", b"three\n"]


async def test_what_was_rotated_away_is_counted() -> None:
    files = Files(b"0123456789", rotated=4)

    chunks = [chunk async for chunk in read_output(connection_to(files), OUTPUT)]

    assert [(chunk.data, chunk.lost_bytes) for chunk in chunks] == [(b"456789", 4)]


@given(
    st.text("ab\n", max_size=40).map(str.encode),
    st.integers(0, 6),
    st.integers(1, 9),
)
async def test_tail_begins_where_the_last_lines_do(text: bytes, lines: int, piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "CHUNK_BYTES", piece)
        offset = await tail_offset(connection_to(Files(text)), OUTPUT, lines)

    *whole, rest = text.split(b"\n")
    every = [line + b"\n" for line in whole] + ([rest] if rest else [])
    assert text[offset:] == b"".join(every[max(0, len(every) - lines) :])


async def test_halves_of_two_lines_around_a_gap_are_two_lines(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    async def chunks() -> AsyncIterator[Chunk]:
        yield Chunk(b"one\nlast 12", lost_bytes=1)
        yield Chunk(b"", lost_bytes=2)
        yield Chunk(b"34 rest\n")
        yield Chunk(b"end", lost_bytes=3)

    await print_chunks(chunks())

    out, err = capfdbinary.readouterr()
    assert out == b"one\nlast 12\n34 rest\nend"
    assert err.count(b"were rotated away\n") == 3
