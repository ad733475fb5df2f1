"""Where the master is, and how it is reached: what was said, else ``FAIRLEAD_MASTER``, else this host."""

import os
import re
from typing import Final

from fairlead_sdk.transport import Transport

MASTER_VARIABLE: Final = "FAIRLEAD_MASTER"
DEFAULT_MASTER: Final = "127.0.0.1:5050"
_ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\s:\[\]/]+):(\d{1,5})")


def resolve_master(address: str | None = None) -> str:
    """HOST:PORT of the master.

    Raises:
        ValueError: not HOST:PORT; the text says where it came from.
    """
    source = "master"
    if address is None and os.environ.get(MASTER_VARIABLE):
        source, address = MASTER_VARIABLE, os.environ[MASTER_VARIABLE]
    address = address or DEFAULT_MASTER
    match = _ADDRESS.fullmatch(str(address))  # whatever callers without a type checker bring
    if match is None or not 0 < int(match[2]) < 65536:
        raise ValueError(f"{source}: expected HOST:PORT, got {address!r}")
    return address


def check_master(master: str | Transport | None) -> None:
    """Raise ValueError unless the master is named by a text, or by a transport; whether the text is an address shows later."""
    if master is None or isinstance(master, str):
        return
    if not callable(getattr(master, "open", None)) or isinstance(master, type):
        raise ValueError(f"master: expected HOST:PORT or a transport, got {master!r}")  # noqa: TRY004 - one kind of error


def make_transport(master: str | Transport | None) -> Transport:
    """The transport to a master given by address, or None for the usual place; a transport is returned as it is."""
    check_master(master)
    if master is not None and not isinstance(master, str):
        return master
    # Here and not above: importing grpc costs more than all the rest, and tests in memory do without it.
    from fairlead_sdk.grpc_transport import GrpcTransport

    return GrpcTransport(resolve_master(master))
