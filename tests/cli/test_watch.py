"""What `fairlead watch` and `fairlead run` refuse before they connect to anything."""

import pytest

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
