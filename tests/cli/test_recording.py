"""The verb over a recording; what a recording is, tests/master/test_recording.py says."""

import json
from pathlib import Path

import pytest

from fairlead_cli.main import run
from fairlead_master.core.machine import Remembered
from fairlead_master.core.settings import CoreSettings
from fairlead_master.recording import Header, Recorder
from fairlead_proto.framework_calls import FrameworkConnected
from fairlead_proto.ids import Role
from fairlead_proto.resources import ResourceKinds


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "flight"
    header = Header(kinds=ResourceKinds(), settings=CoreSettings(), remembered=Remembered(epoch=1), now_ms=0)
    recorder = Recorder(path.open("w", encoding="utf-8"), header)
    recorder.record(FrameworkConnected(session=1, framework_id=None, name="f", role=Role("eng")), 5)
    recorder.close()
    return path


def test_events_are_printed_with_what_they_led_to(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["replay-recording", str(recording)]) == 0

    event, stored, welcomed = capsys.readouterr().out.splitlines()
    assert event.startswith("5 FrameworkConnected(")
    assert "StoreFramework" in stored
    assert "WelcomeFramework" in welcomed


def test_json_is_one_document_a_line(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay-recording", "--json", str(recording)]) == 0

    (line,) = capsys.readouterr().out.splitlines()
    document = json.loads(line)
    assert [action["$"] for action in document["actions"]] == ["StoreFramework", "WelcomeFramework"]


def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_text("no\n")

    assert run(["replay-recording", str(tmp_path / "x")]) == 2
    assert "expected the header" in capsys.readouterr().err
