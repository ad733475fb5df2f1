"""A broker for the tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.telemetry.mosquitto import Mosquitto


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    """A broker that is not started yet; it ends with the test."""
    broker = Mosquitto(tmp_path)
    try:
        yield broker
    finally:
        broker.kill()
