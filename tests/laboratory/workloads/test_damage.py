"""Whatever a file has in it, reading it gives jobs or one clear error: never another exception, never an endless loop."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_lab.workloads import scenario
from fairlead_lab.workloads.csv_rows import TraceError
from fairlead_lab.workloads.loading import load
from fairlead_lab.workloads.nodes import parse_nodes
from fairlead_lab.workloads.sample import SAMPLE, SAMPLE_NODES
from fairlead_lab.workloads.traces import TraceOptions
from fairlead_sim.workload import WorkloadError

SAMPLES = Path(__file__).parent / "samples"
SKIPPING = TraceOptions(skip_without_duration=True)
EXAMPLE = Path(__file__).parents[3] / "examples" / "scenarios" / "two_kinds_of_users.toml"

PIECES = st.sampled_from(
    [b"", b"-1", b"0", b"1e9", b"9" * 30, b"nan", b"x", b",", b"\t", b"\n", b";", b'"', b"\x00", b"\xff", b"-", b"\xb2"]
)  # fmt: skip


def damaged(whole: bytes, data: st.DataObject) -> bytes:
    """The bytes with a few short pieces replaced."""
    for _ in range(data.draw(st.integers(1, 3))):
        begin = data.draw(st.integers(0, len(whole)))
        end = min(len(whole), begin + data.draw(st.integers(0, 4)))
        whole = whole[:begin] + data.draw(PIECES) + whole[end:]
    return whole


def problems(read: Callable[[Path], bool], name: str, content: bytes) -> list[str]:
    """What is wrong with what came of a file: nothing, if ``read`` is content or there is an error of one line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            return [] if read(path) else ["it was read, and is nonsense"]
        except (TraceError, WorkloadError) as error:
            return [str(error)] if "\n" in str(error) else []


def has_sound_jobs(path: Path) -> bool:
    bundles = [bundle for job in load(path, options=SKIPPING).jobs for bundle in job.bundles]
    return all(
        bundle.tasks > 0 and min(bundle.unit) >= 0 and any(bundle.unit) and bundle.duration_ms >= 0
        for bundle in bundles
    )


@pytest.mark.parametrize("path", [SAMPLE, *sorted(SAMPLES.iterdir())], ids=lambda path: path.name)
@given(data=st.data())
def test_damaged_trace_is_read_or_refused(path: Path, data: st.DataObject) -> None:
    content = damaged(path.read_bytes(), data)

    assert not problems(has_sound_jobs, path.name, content)


@given(data=st.data())
def test_damaged_nodes_are_read_or_refused(data: st.DataObject) -> None:
    content = damaged(SAMPLE_NODES.read_bytes(), data)

    assert not problems(lambda path: all(any(node.total) for node in parse_nodes(path)), "nodes.csv", content)


@given(data=st.data())
def test_damaged_scenario_is_read_or_refused(data: st.DataObject) -> None:
    content = damaged(EXAMPLE.read_bytes(), data)

    assert not problems(lambda path: bool(scenario.load(path).seeds), "scenario.toml", content)
