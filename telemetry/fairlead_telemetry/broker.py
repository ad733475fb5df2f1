"""Which MQTT broker to use and how: the options of `--mqtt`, checked. Needs no MQTT library."""

import re
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Final

KEEP_ALIVE_MS: Final = 10_000
"""The broker announces a host that vanished after one and a half times this, and what its clock lacks: Mosquitto looks every
5 s. Below some seconds a busy network looks dead."""

DEFAULT_CLUSTER: Final = "default"

_KEEP_ALIVE_S_MAX: Final = 65_535
"""MQTT has 16 bits for it."""

_SCHEMES: Final = {"mqtt": 1883, "mqtts": 8883}
_CLUSTER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""A level of a topic: no slash, no wildcard."""


class InvalidBroker(ValueError):
    """A broker option that cannot be used; the message names it, what was expected and what came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerOptions:
    """How to reach a broker."""

    host: str
    port: int
    username: str | None = None
    password: str | None = None
    is_tls: bool = False
    ca: Path | None = None
    """PEM file of the authority that signed the broker's certificate; None: those the system trusts."""
    cluster: str = DEFAULT_CLUSTER
    """Name of the cluster in topics."""
    keep_alive_s: int = KEEP_ALIVE_MS // 1000
    """A vanished host is to be announced within one and a half times this."""

    @property
    def requested_keep_alive_s(self) -> int:
        """The keep-alive to agree on with the broker: two thirds of ours, so that a broker that is late keeps our promise.

        A broker waits one and a half times the agreed time, and Mosquitto 2.0 looks only every 5 s: of the default of 10 s,
        6 s are agreed, and the announcement comes after 9 to 14 s.
        """
        return max(1, self.keep_alive_s * 2 // 3)

    def __repr__(self) -> str:
        """Without the password: this text ends up in logs."""
        return f"BrokerOptions({self.url}, cluster={self.cluster!r})"

    @property
    def url(self) -> str:
        """The address as typed, without credentials."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'mqtts' if self.is_tls else 'mqtt'}://{host}:{self.port}"


@dataclass(slots=True)
class Counters:
    """What happened since the start."""

    published: int = 0
    """Messages the broker has taken."""
    published_bytes: int = 0
    dropped: int = 0
    """Messages that were never sent."""
    connections: int = 0
    is_connected: bool = False


def check_installed() -> None:
    """Say at the start what would else be found out by an import.

    Raises:
        InvalidBroker: the libraries that speak MQTT are not installed.
    """
    missing = [name for name in ("aiomqtt", "orjson") if find_spec(name) is None]
    if missing:
        raise InvalidBroker(
            f"mqtt: expected the extra `fairlead[mqtt]` to be installed, found no {' and no '.join(missing)}"
        )


def read_broker(
    url: str,
    *,
    password_file: Path | None = None,
    ca: Path | None = None,
    cluster: str = DEFAULT_CLUSTER,
    keep_alive_ms: int = KEEP_ALIVE_MS,
) -> BrokerOptions:
    """Check the options of one broker.

    Args:
        url: ``mqtt://[USER@]HOST[:PORT]`` or ``mqtts://…``.
        password_file: its first line is the password; read once, here.
        ca: PEM file; for ``mqtts`` only.
        cluster: name of the cluster in topics.
        keep_alive_ms: rounded up to whole seconds.

    Raises:
        InvalidBroker: an option cannot be used.
    """
    address = _read_url(url)
    if not _CLUSTER.fullmatch(cluster):
        raise InvalidBroker(
            f"cluster name: expected letters, digits, '.', '_' and '-', at most 64, got {cluster!r}"
        )
    if ca is not None and not address.is_tls:
        raise InvalidBroker(f"mqtt ca: expected with mqtts:// only, got {url!r}")
    if ca is not None and not ca.is_file():
        raise InvalidBroker(f"mqtt ca: expected a PEM file, got {ca}: no such file")
    if password_file is not None and address.username is None:
        raise InvalidBroker(f"mqtt password file: expected with a user in the address only, got {url!r}")
    keep_alive_s = -(-keep_alive_ms // 1000)
    if not 1 <= keep_alive_s <= _KEEP_ALIVE_S_MAX:
        raise InvalidBroker(f"mqtt keep-alive: expected 1s to {_KEEP_ALIVE_S_MAX}s, got {keep_alive_ms} ms")
    return replace(
        address,
        password=_read_password(password_file) if password_file is not None else None,
        ca=ca,
        cluster=cluster,
        keep_alive_s=keep_alive_s,
    )


def _read_url(url: str) -> BrokerOptions:
    # Not at the top: agents without a broker need not load it.
    from urllib.parse import unquote, urlsplit

    form = "mqtt: expected mqtt://[USER@]HOST[:PORT] or mqtts://[USER@]HOST[:PORT]"
    parts = urlsplit(url)
    if parts.password is not None:
        raise InvalidBroker(
            f"{form}, got a password in it: anybody sees it in `ps`; use --mqtt-password-file"
        )
    try:
        port = parts.port
    except ValueError:
        port = 0
    is_whole = not (parts.path.strip("/") or parts.query or parts.fragment)
    if parts.scheme not in _SCHEMES or not parts.hostname or port == 0 or not is_whole:
        raise InvalidBroker(f"{form}, got {url!r}")
    return BrokerOptions(
        host=parts.hostname,
        port=port or _SCHEMES[parts.scheme],
        username=unquote(parts.username) if parts.username else None,
        is_tls=parts.scheme == "mqtts",
    )


def _read_password(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = (error.strerror if isinstance(error, OSError) else "") or "not text in UTF-8"
        raise InvalidBroker(f"mqtt password file: expected a file to read, got {path}: {why}") from None
    if not lines or not lines[0]:
        raise InvalidBroker(
            f"mqtt password file: expected the password in the first line, got none in {path}"
        )
    return lines[0]
