"""A cluster whose start is interrupted leaves neither processes nor directories."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from fairlead_local.cluster import LocalCluster, StartCancelled
from fairlead_local.end_signals import ended_as_by_ctrl_c

STARTS = {
    "up": ["up", "--port", "0", "--isolation", "none"],
    "demo": ["demo"],
}


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary directories are made, here and in children."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_cancelled_start_starts_no_process_and_leaves_no_directory(temporary: Path) -> None:
    cluster = LocalCluster(agents=1)
    cluster.cancel_start()

    with pytest.raises(StartCancelled):
        cluster.start()

    assert not list(temporary.iterdir())
    assert cluster.master.exit_code is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_ends_are_as_ctrl_c_within_the_context_only(number: signal.Signals) -> None:
    before = signal.getsignal(number)

    with pytest.raises(KeyboardInterrupt), ended_as_by_ctrl_c():
        signal.raise_signal(number)

    assert signal.getsignal(number) == before


@pytest.mark.shell
def test_cancelled_task_that_starts_a_cluster_leaves_nothing(temporary: Path) -> None:
    cluster = LocalCluster(agents=1, isolation="none")

    async def start() -> None:
        async with cluster:
            raise AssertionError("it was cancelled long before")

    async def cancel_early() -> None:
        starting = asyncio.create_task(start())
        while not cluster.master.is_alive:  # noqa: ASYNC110 - a process gives no event
            await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting

    asyncio.run(cancel_early())

    assert not any(process.is_alive for process in cluster.processes)
    assert not list(temporary.iterdir())


@pytest.mark.shell
@pytest.mark.parametrize("verb", list(STARTS))
@pytest.mark.parametrize(("number", "codes"), [(signal.SIGINT, (130,)), (signal.SIGHUP, (0, 130))])
def test_signal_during_the_start_leaves_nothing(
    temporary: Path, verb: str, number: signal.Signals, codes: tuple[int, ...]
) -> None:
    command = [sys.executable, "-m", "fairlead_cli.main", *STARTS[verb]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not list(temporary.glob("fairlead-*/logs/*")):
            assert process.poll() is None, "it ended before it began"
        children = psutil.Process(process.pid).children(recursive=True)

        process.send_signal(number)
        _, err = process.communicate(timeout=30)

    assert process.returncode in codes
    assert "Traceback" not in err
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive
    assert not list(temporary.glob("fairlead-*"))
