"""`mqtts://` against a real broker whose certificate an authority of our own has signed."""

import shutil
import subprocess
from pathlib import Path

import pytest
import structlog

from fairlead_telemetry.broker import read_broker
from fairlead_telemetry.link import BrokerLink
from tests.telemetry.mosquitto import Mosquitto, monitoring, needs_mosquitto, until

pytestmark = [
    pytest.mark.shell,
    needs_mosquitto,
    # The library leaves the socket of a failed handshake to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed"),
]

NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")


def openssl_req(folder: Path, name: str, *words: str) -> Path:
    """A new key and its certificate; the path of the certificate."""
    certificate = folder / f"{name}.pem"
    files = ("-keyout", f"{folder / name}.key", "-out", str(certificate), "-subj", f"/CN={name}")
    subprocess.run(["openssl", "req", "-x509", *NEW_KEY, *files, *words], check=True, capture_output=True)
    return certificate


def an_authority(folder: Path, name: str) -> Path:
    return openssl_req(folder, name, "-addext", "keyUsage=critical,keyCertSign")


def start_tls(mosquitto: Mosquitto, folder: Path, *, host: str) -> Path:
    """Start the broker with a certificate for a host; the authority that signed it."""
    authority = an_authority(folder, "authority")
    signed = ("-CA", str(authority), "-CAkey", str(authority.with_suffix(".key")))
    server = openssl_req(
        folder, "server", *signed, "-addext", f"subjectAltName={host}", "-addext", "basicConstraints=CA:FALSE"
    )
    mosquitto.start(listener=(f"certfile {server}", f"keyfile {server.with_suffix('.key')}"))
    return authority


async def why_refused(mosquitto: Mosquitto, ca: Path | None) -> str:
    """What the link says of the broker, which it must not use."""
    options = read_broker(f"mqtts://127.0.0.1:{mosquitto.port}", ca=ca)
    link = BrokerLink(options, None, random=lambda: 0.5, log=structlog.get_logger())
    link.start()
    await until(lambda: link.detail != "")
    await link.stop()
    assert link.counters.connections == 0
    return link.detail


async def test_a_broker_that_the_named_authority_vouches_for_is_used(
    mosquitto: Mosquitto, tmp_path: Path
) -> None:
    authority = start_tls(mosquitto, tmp_path, host="IP:127.0.0.1")
    options = read_broker(f"mqtts://127.0.0.1:{mosquitto.port}", ca=authority)

    async with monitoring(options) as monitor:
        monitor.link.publish("fairlead/v1/default/tasks", {}, qos=1)

        (message,) = await monitor.until(bool)

    assert message.topic == "fairlead/v1/default/tasks"
    assert (monitor.link.counters.connections, monitor.link.detail) == (1, "")


async def test_a_certificate_for_another_host_is_refused(mosquitto: Mosquitto, tmp_path: Path) -> None:
    authority = start_tls(mosquitto, tmp_path, host="DNS:broker.example")

    assert "IP address mismatch" in await why_refused(mosquitto, authority)


async def test_a_certificate_of_another_authority_is_refused(mosquitto: Mosquitto, tmp_path: Path) -> None:
    start_tls(mosquitto, tmp_path, host="IP:127.0.0.1")

    assert "certificate verify failed" in await why_refused(mosquitto, an_authority(tmp_path, "another"))


async def test_broker_that_does_not_speak_tls_is_named_with_what_to_do(mosquitto: Mosquitto) -> None:
    mosquitto.start()

    detail = await why_refused(mosquitto, None)

    assert detail.endswith(
        "(no answer in TLS there: expected the broker's port for TLS, or mqtt:// for one without)"
    ), detail


async def test_without_a_named_authority_only_the_system_s_are_trusted(
    mosquitto: Mosquitto, tmp_path: Path
) -> None:
    start_tls(mosquitto, tmp_path, host="IP:127.0.0.1")

    assert "certificate verify failed" in await why_refused(mosquitto, None)
