import io
import sys

import pytest

from fairlead_cli.progress_bar import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown_on(stderr: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is drawn of a bar that is told one thing."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stderr)
    with progress_bar("reading") as tell:
        tell("drf, [seed 7]", 30, 120)
    return stderr.getvalue()


def test_a_terminal_is_shown_what_goes_on_and_how_much_is_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = shown_on(Terminal(), monkeypatch)

    assert "drf, [seed 7]" in shown
    assert "25%" in shown
    assert not capsys.readouterr().out


def test_a_file_or_pipe_is_shown_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not shown_on(io.StringIO(), monkeypatch)
