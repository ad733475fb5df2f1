"""The project's copies of public traces, where they are: they are not part of the repository."""

import os
from pathlib import Path

import pytest

from fairlead_lab.workloads.loading import load, load_jobs
from fairlead_lab.workloads.nodes import parse_nodes
from fairlead_lab.workloads.swim_model import SwimModel
from fairlead_lab.workloads.traces import TraceOptions

FOLDER = Path(os.environ.get("FAIRLEAD_TRACES", Path(__file__).parents[3] / ".." / "shared" / "traces"))


def the_trace(name: str) -> Path:
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"{name} is not there; FAIRLEAD_TRACES may name the folder that has it")
    return path


def test_model_of_bytes_makes_the_tasks_of_the_facebook_trace() -> None:
    """24,442 jobs: what the file has and what its bytes become under the model are the same to the last byte."""
    path = the_trace("fb2010.csv.gz")

    assert load_jobs(path, options=TraceOptions(swim=SwimModel())) == load_jobs(path)


def test_grid_trace_has_gangs_and_constraints_its_nodes_know() -> None:
    loaded = load(the_trace("metacentrum2013.csv.gz"), options=TraceOptions(skip_without_duration=True))
    nodes = parse_nodes(the_trace("metacentrum2013_nodes.csv.gz"))
    names, models = {node.name for node in nodes}, {node.attributes["model"] for node in nodes}

    bundles = [bundle for job in loaded.jobs for bundle in job.bundles]

    assert (len(loaded.jobs), loaded.rows_without_duration) == (17_898, 2)
    assert all(bundle.is_gang == (bundle.tasks > 1) for bundle in bundles)
    for constraint in {constraint for bundle in bundles for constraint in bundle.constraints}:
        assert set(constraint.values) <= (names if constraint.attribute == "hostname" else models)
