"""The log of a process, on a disk that is full."""

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
