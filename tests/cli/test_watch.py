"""What `fairlead watch` and `fairlead run` refuse before they connect to anything, and what `watch` says of a broker it cannot use."""

import pytest

from fairlead_cli.errors import BrokerUnreachable
from fairlead_telemetry.topics import matches_any
from tests.cli.conftest import Invoke


@pytest.mark.parametrize("topic", ["a/#/b", "agents/+x/status"])
def test_a_topic_no_broker_takes_is_invalid_input(invoke: Invoke, topic: str) -> None:
    outcome = invoke("watch", "--mqtt", "mqtt://127.0.0.1:1", topic)

    assert outcome.code == 2
    assert outcome.err.startswith("fairlead: topic: expected ")
    assert topic in outcome.err


@pytest.mark.parametrize(
    "topic", ["task", "agents", "agents/a1", "master/usage", "fairlead/v2/default/tasks", "fairlead"]
)
def test_a_topic_that_nothing_is_published_on_is_invalid_input_with_those_there_are(
    invoke: Invoke, topic: str
) -> None:
    outcome = invoke("watch", "--mqtt", "mqtt://127.0.0.1:1", topic)

    assert outcome.code == 2
    assert outcome.err.startswith(
        "fairlead: topic: expected master/status, agents/AGENT/status, agents/AGENT/usage, tasks"
    )
    assert topic in outcome.err


@pytest.mark.parametrize(
    "topic",
    [
        "#",
        "tasks",
        "tasks/#",
        "+",
        "agents/#",
        "agents/a1/+",
        "+/status",
        "fairlead/#",
        "fairlead/v1/+/shares",
    ],
)
def test_a_filter_that_lets_something_through_is_taken(topic: str) -> None:
    assert matches_any(topic if topic.startswith("fairlead") else f"fairlead/v1/default/{topic}")


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
