"""The options of `--mqtt`."""

from pathlib import Path

import pytest

from fairlead_telemetry.broker import BrokerOptions, InvalidBroker, read_broker
from fairlead_telemetry.topics import fault_in_filter


def test_an_address_without_a_port_takes_the_scheme_s_own() -> None:
    assert read_broker("mqtt://host") == BrokerOptions(host="host", port=1883)
    assert read_broker("mqtts://[::1]") == BrokerOptions(host="::1", port=8883, is_tls=True)


def test_user_password_and_authority_are_read(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("s3cret\nignored\n")
    (tmp_path / "ca.pem").write_text("")

    options = read_broker(
        "mqtts://a%40b@host:1",
        password_file=tmp_path / "password",
        ca=tmp_path / "ca.pem",
        cluster="lab-1",
        keep_alive_ms=1_500,
    )

    assert (options.username, options.password, options.cluster, options.keep_alive_s) == (
        "a@b",
        "s3cret",
        "lab-1",
        2,
    )
    assert "s3cret" not in repr(options)
    assert options.url == "mqtts://host:1"


@pytest.mark.parametrize(
    ("url", "changes", "said"),
    [
        ("host:1883", {}, "mqtt: expected mqtt://[USER@]HOST[:PORT]"),
        ("http://host", {}, "mqtt: expected mqtt://[USER@]HOST[:PORT]"),
        ("mqtt://", {}, "got 'mqtt://'"),
        ("mqtt://host:99999", {}, "got 'mqtt://host:99999'"),
        ("mqtt://host/path", {}, "got 'mqtt://host/path'"),
        ("mqtt://a:b@host", {}, "use --mqtt-password-file"),
        ("mqtt://host", {"cluster": "a/b"}, "cluster name: expected letters"),
        ("mqtt://host", {"cluster": "+"}, "cluster name: expected letters"),
        ("mqtt://host", {"keep_alive_ms": 0}, "mqtt keep-alive: expected 1s to 65535s, got 0 ms"),
        ("mqtt://host", {"ca": Path("ca.pem")}, "mqtt ca: expected with mqtts:// only"),
        ("mqtts://host", {"ca": Path("no/ca.pem")}, "no/ca.pem: no such file"),
        ("mqtt://host", {"password_file": Path("p")}, "expected with a user in the address"),
        ("mqtt://a@host", {"password_file": Path("no/p")}, "got no/p: No such file or directory"),
    ],
)
def test_a_refusal_names_the_option_what_was_expected_and_what_came(
    url: str, changes: dict[str, object], said: str
) -> None:
    with pytest.raises(InvalidBroker) as refused:
        read_broker(url, **changes)  # type: ignore[arg-type]  # of the table above

    assert said in str(refused.value)


@pytest.mark.parametrize("text", ["tasks", "#", "agents/+/status", "fairlead/v1/#"])
def test_a_filter_that_a_broker_takes_has_no_fault(text: str) -> None:
    assert fault_in_filter(text) == ""


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a/#/b", "# as the last level only"),
        ("a/b#", "# as the last level only"),
        ("a/b+/c", "+ as a whole level"),
        ("", "a topic"),
    ],
)
def test_a_filter_that_no_broker_takes_is_named(text: str, fault: str) -> None:
    assert fault_in_filter(text).startswith(fault)


def test_an_empty_password_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("\n")

    with pytest.raises(InvalidBroker, match="expected the password in the first line"):
        read_broker("mqtt://a@host", password_file=tmp_path / "password")
