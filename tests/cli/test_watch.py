"""What `fairlead watch` and `fairlead run` refuse before they connect to anything, and what `watch` says of a broker it cannot use."""

import pytest

from fairlead_cli.errors import BrokerUnreachable
from tests.cli.conftest import Invoke


@pytest.mark.parametrize("topic", ["a/#/b", "agents/+x/status"])
def test_a_topic_no_broker_takes_is_invalid_input(invoke: Invoke, topic: str) -> None:
    outcome = invoke("watch", "--mqtt", "mqtt://127.0.0.1:1", topic)

    assert outcome.code == 2
    assert outcome.err.startswith("fairlead: topic: expected ")
    assert topic in outcome.err


def test_a_role_that_is_none_is_invalid_input(invoke: Invoke) -> None:
    outcome = invoke("run", "--master", "127.0.0.1:1", "--role", "a//b", "--", "true")

    assert outcome.code == 2
    assert "--role" in outcome.err


@pytest.mark.parametrize(
    ("detail", "hint"),
    [
        ("[Errno 111] Connection refused", "is it running? name another by --mqtt or FAIRLEAD_MQTT"),
        ("timed out", "is it running? name another by --mqtt or FAIRLEAD_MQTT"),
        ("[code:135] Not authorized", "it refuses the user or the password"),
        ("[code:134] Bad user name or password", "it refuses the user or the password"),
    ],
)
def test_the_next_step_fits_what_the_broker_said(detail: str, hint: str) -> None:
    said = BrokerUnreachable("mqtt://host:1883", detail).message

    assert said.startswith(f"cannot use the MQTT broker at mqtt://host:1883 ({detail}): {hint}")
