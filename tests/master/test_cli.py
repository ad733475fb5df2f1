"""Options become settings; what cannot be used is refused by name."""

import gc
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import structlog

from fairlead_master.cli import MasterOptions, make_settings, run_master
from fairlead_master.core.actions import StorePolicy
from fairlead_master.registry import open_registry
from fairlead_proto.resources import ResourceKinds


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """A run configures logging for its process, and to the standard error of this moment."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def test_options_become_settings(tmp_path: Path) -> None:
    settings = make_settings(
        MasterOptions(
            listen="127.0.0.1:0",
            state=tmp_path,
            policy="slots:3",
            placement="pack",
            when_head_does_not_fit="freeze",
            reservation_after_ms=500,
            offer_lease_ms=100,
            agent_timeout_ms=200,
            recovery_wait_ms=0,
            failover_timeout_max_ms=400,
            custom_resources=("licenses",),
        )
    )

    allocation = settings.core.allocation
    assert (allocation.policy, allocation.placement, allocation.when_head_does_not_fit) == (
        "slots:3",
        "pack",
        "freeze",
    )
    assert allocation.reservation_after_ms == 500
    assert (settings.core.offer_lease_ms, settings.core.agent_timeout_ms, settings.core.recovery_wait_ms) == (
        100,
        200,
        0,
    )
    assert settings.core.failover_timeout_max_ms == 400
    assert settings.kinds.names[-1] == "licenses"
    assert settings.given == {"policy", "placement", "when_head_does_not_fit"}


def test_what_is_not_given_keeps_its_default_and_leaves_the_policy_to_the_registry() -> None:
    settings = make_settings(MasterOptions())

    assert settings.core.allocation.policy == "drf"
    assert settings.core.allocation.reservation_after_ms == 10_000
    assert settings.given == frozenset()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "[::]", "example.org"])
def test_listening_beyond_this_host_must_be_said_twice(host: str) -> None:
    with pytest.raises(ValueError, match="not a loopback address"):
        make_settings(MasterOptions(listen=f"{host}:5050"))

    assert make_settings(MasterOptions(listen=f"{host}:5050", insecure=True)).listen == f"{host}:5050"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "localhost", "[::1]"])
def test_this_host_needs_no_permission(host: str) -> None:
    assert make_settings(MasterOptions(listen=f"{host}:5050")).listen == f"{host}:5050"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"listen": "5050"}, "listen: expected HOST:PORT"),
        ({"listen": "127.0.0.1:99999"}, "listen: expected HOST:PORT"),
        ({"policy": "lottery"}, "policy: expected"),
        ({"placement": "anywhere"}, "placement: expected"),
        ({"placement": "heartbeat:soon"}, "placement: expected heartbeat:SEED"),
        ({"custom_resources": ("cpus",)}, "custom resource name"),
        ({"log_level": "loud"}, "log level: expected"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(
    options: dict[str, object], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_master(MasterOptions(**options))  # type: ignore[arg-type]  # the faults under test

    assert code == 2
    assert expected in capsys.readouterr().err


def test_a_metrics_address_in_use_is_refused_in_one_line_and_nothing_is_left_to_the_collector(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        code = run_master(MasterOptions(listen="127.0.0.1:0", metrics=address))
    # A server that is only dropped complains of its closed event loop, which fails the test.
    gc.collect()

    assert code == 2
    said = capsys.readouterr().err.splitlines()
    assert said == [f"fairlead master: metrics: cannot listen on {address}: Address already in use"]


def test_a_corrupt_registry_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "registry.db").write_bytes(b"junk" * 1000)

    code = run_master(MasterOptions(listen="127.0.0.1:0", state=tmp_path))

    assert code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("policy", "placement", "option"), [("lottery", "pack", "policy"), ("fifo", "scatter", "placement")]
)
def test_written_down_policy_that_is_unknown_names_the_file_and_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], policy: str, placement: str, option: str
) -> None:
    registry = open_registry(tmp_path, ResourceKinds())
    registry.load(1)
    row = StorePolicy(policy=policy, placement=placement, when_head_does_not_fit="skip", demand="declared")
    registry.write([row]).result()
    registry.close()

    code = run_master(MasterOptions(listen="127.0.0.1:0", state=tmp_path))

    assert code == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"{tmp_path}/registry.db: table policy, key 1: {option}: expected one of" in said
    assert said.endswith(f"; choose another by --{option}")
