"""What can go wrong for a person at the shell, each with its exit code and one line of text.

Scripts rely on the codes: 2 usage or invalid input, 3 master unreachable, 4 refused, 130 interrupted. Anything else
that is raised is a bug of ours and shows its traceback.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

EXIT_INVALID: Final = 2
EXIT_UNREACHABLE: Final = 3
EXIT_REFUSED: Final = 4
EXIT_INTERRUPTED: Final = 130
"""128 + SIGINT, as shells report a command that Ctrl-C ended."""


class Failed(click.ClickException):
    """Something outside failed: a file, a child process, the master's own error. Exit code 1."""


class Invalid(click.ClickException):
    """Input that cannot be used; the message names it, what was expected and what came."""

    exit_code = EXIT_INVALID


class Refused(click.ClickException):
    """The cluster understood and said no: infeasible, unauthorized, unknown id."""

    exit_code = EXIT_REFUSED


class Unreachable(click.ClickException):
    """No master answers at an address."""

    exit_code = EXIT_UNREACHABLE

    def __init__(self, address: str, detail: str) -> None:
        """Args: the address that was tried, and what the network said."""
        self.address = address
        self.detail = detail
        super().__init__(
            f"cannot reach the master at {address} ({detail}): is it running? "
            "start one with `fairlead up`, or set FAIRLEAD_MASTER"
        )


class BrokerUnreachable(Unreachable):
    """No MQTT broker answers, or it refuses us."""

    def __init__(self, url: str, detail: str) -> None:
        """Args: the broker, and what it or the network said."""
        hint = "is it running? name another by --mqtt or FAIRLEAD_MQTT"
        if "uthori" in detail or "user name" in detail.lower():
            hint = "it refuses the user or the password: name them by mqtt://USER@… and --mqtt-password-file"
        click.ClickException.__init__(self, f"cannot use the MQTT broker at {url} ({detail}): {hint}")


class AgentAway(Unreachable):
    """The master answers, but the agent that was asked for does not. As with a master, it may be back soon."""

    exit_code = 1

    def __init__(self, detail: str) -> None:
        """Args: what the master said."""
        self.address = ""
        self.detail = detail
        click.ClickException.__init__(self, detail)


@contextmanager
def told_if_a_process_is_lost() -> Iterator[None]:
    """Have it said in a line if a process that does part of the work is ended from outside, as for its memory."""
    from concurrent.futures import BrokenExecutor

    try:
        yield
    except BrokenExecutor as error:
        raise Failed(
            "--processes: one that did part of the work was ended from outside, perhaps for want of memory; "
            "with fewer at a time less is needed"
        ) from error


@contextmanager
def told_if_unwritable(out: Path) -> Iterator[None]:
    """Have it said in a line if a folder given as ``--out`` cannot be written.

    To be put around the writing only: standard output may fail as well, and is no business of ``--out``.
    """
    try:
        yield
    except OSError as error:
        raise Failed(f"--out {out}: {error.strerror or error}") from error


@contextmanager
def expected_errors(master: str | None = None) -> Iterator[None]:
    """Turn what the laboratory, local clusters and the SDK raise into errors of one line.

    Args:
        master: the address that was talked to; None is a local cluster's.
    """
    from fairlead_lab.workloads.csv_rows import TraceError
    from fairlead_local.cluster import ClusterFailed, InvalidCluster
    from fairlead_master.allocation.api import AllocationError
    from fairlead_sdk import errors as sdk_errors
    from fairlead_sim.workload import WorkloadError

    try:
        yield
    except (AllocationError, TraceError, WorkloadError, InvalidCluster) as error:
        raise Invalid(str(error)) from error
    except ClusterFailed as error:
        raise Failed(str(error)) from error
    except sdk_errors.MasterUnreachable as error:
        raise Unreachable(master or "the local cluster", error.cause) from error
    except sdk_errors.Refused as error:
        raise Refused(str(error)) from error
    except sdk_errors.FairleadError as error:
        raise Failed(str(error)) from error
