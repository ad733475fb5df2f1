"""The log of a process, on a disk that is full."""

import json
from datetime import datetime
from pathlib import Path

import pytest
import structlog

from fairlead_telemetry.log_setup import configure_logging


def test_a_log_that_cannot_be_written_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    full = Path("/dev/full").open("w")  # noqa: SIM115 - closing it fails, as what it holds back cannot be written then
    monkeypatch.setattr("sys.stderr", full)
    configure_logging("info")

    structlog.get_logger().error("disk.full")
    structlog.get_logger().error("disk.full_still")

    with pytest.raises(OSError, match="No space left"):
        full.close()


def test_a_log_that_was_closed_ends_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as log:
        monkeypatch.setattr("sys.stderr", log)
        configure_logging("info")

    structlog.get_logger().error("log.closed")


def test_a_line_is_one_object_with_what_was_said_its_level_its_time_and_its_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with (tmp_path / "log").open("w") as log:
        monkeypatch.setattr("sys.stderr", log)
        configure_logging("info")
        logger = structlog.get_logger().bind(agent_id="a1")
        logger.info("task.moved", path=Path("/x"))
        try:
            raise ValueError("odd")
        except ValueError:
            logger.exception("step.failed")
        logger.debug("task.launched")

    moved, failed = map(json.loads, (tmp_path / "log").read_text().splitlines())
    assert list(moved) == ["agent_id", "path", "event", "level", "timestamp"]
    assert (moved["path"], moved["level"]) == ("PosixPath('/x')", "info")
    assert datetime.fromisoformat(moved["timestamp"]).tzinfo is not None
    assert (failed["level"], failed["exception"].splitlines()[-1]) == ("error", "ValueError: odd")
