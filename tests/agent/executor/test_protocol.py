"""Every message survives the wire, and what is no message is refused with what was expected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_agent.executor import protocol
from fairlead_agent.executor.protocol import (
    Command,
    Event,
    Exited,
    Forget,
    Hello,
    KillAll,
    LineBuffer,
    Measurement,
    MeasureUsage,
    ProtocolError,
    Shutdown,
    Signal,
    Start,
    Started,
    StartFailed,
    Usage,
    decode_commands,
    decode_events,
    encode,
)
from fairlead_proto.task_state import Reason
from tests.agent.executor.conftest import key_of

KEY = key_of("täsk\n☃")
EXITED = Exited(KEY, None, 9, True, "out of memory", Measurement(1, 2, 3, 4, 5, 0, 7), 6)
FAILED = StartFailed(KEY, Reason.COMMAND_NOT_FOUND, "command: 'x' not found")


def test_every_command_survives_the_wire() -> None:
    commands: list[Command] = [
        Start(KEY, "/s", ("a", "b\n"), {"A": "1"}, "w", 1, 2, 3),
        Signal(KEY, 15),
        KillAll(KEY),
        Forget(KEY),
        MeasureUsage(),
        Shutdown(kill_tasks=False),
    ]

    line = encode(commands)

    assert line.count(b"\n") == 1
    decoded = decode_commands(line)
    assert decoded == commands
    assert [type(command) for command in decoded] == [type(command) for command in commands]


def test_every_event_survives_the_wire() -> None:
    running = (Started(KEY, 1, 2), Started(key_of("b"), 3, 4))
    events: list[Event] = [
        Hello(1, 2, "none", "note", running, (EXITED, FAILED)),
        *running,
        FAILED,
        EXITED,
        Usage(((KEY, Measurement(1, 2, 3, 4, 5)),)),
    ]

    decoded = decode_events(encode(events))

    assert decoded == events
    assert [type(event) for event in decoded] == [type(event) for event in events]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"not json",
        b"{}",
        b'["start"]',
        b"[[]]",
        b'[["dance", ["f", "t"]]]',
        b'[["forget"]]',
        b'[["forget", ["f"]]]',
        b'[["forget", ["f", "t"], 1]]',
        b'[["shutdown", true, true]]',
        b'[["start", ["f", "t"], "/s", 5]]',
        b'[["started", ["f", "t"], 1, 2]]',
    ],
)
def test_line_without_commands_is_refused(line: bytes) -> None:
    with pytest.raises(ProtocolError, match="expected"):
        decode_commands(line)


@pytest.mark.parametrize(
    "line",
    [b"[1]", b'[["hello"]]', b'[["failed", ["f", "t"], "NO_SUCH_REASON", ""]]', b'[["kill", ["f", "t"]]]'],
)
def test_line_without_events_is_refused(line: bytes) -> None:
    with pytest.raises(ProtocolError, match="expected"):
        decode_events(line)


@given(
    lines=st.lists(st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"")), max_size=6),
    data=st.data(),
)
def test_lines_are_the_same_however_the_stream_is_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines) + b"rest"
    buffer = LineBuffer()

    received = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        received += buffer.feed(stream[:size])
        stream = stream[size:]

    assert received == lines


def test_line_without_end_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "LINE_BYTES_MAX", 100)
    buffer = LineBuffer()
    buffer.feed(b"x" * 60)

    with pytest.raises(ProtocolError, match="at most 100 bytes, got 120"):
        buffer.feed(b"x" * 60)
