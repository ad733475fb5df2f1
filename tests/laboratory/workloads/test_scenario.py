"""Scenario files: what they say, what is refused, and that the committed schema agrees with both."""

import copy
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from fairlead_lab.workloads import scenario
from fairlead_lab.workloads.csv_rows import TraceError
from fairlead_lab.workloads.sample import SAMPLE, SAMPLE_NODES
from fairlead_sim.workload import WorkloadError

EXAMPLE = Path(__file__).parents[3] / "examples" / "scenarios" / "two_kinds_of_users.toml"
SCHEMA = jsonschema.Draft202012Validator(json.loads(scenario.SCHEMA.read_text(encoding="utf-8")))

GIB = 2**30


def values(**changes: Any) -> dict[str, Any]:
    """A small scenario, with keys changed by path (``__`` stands for a dot, a number for an item); None takes one out."""
    plain: dict[str, Any] = {
        "nodes": "2:cpus=4,mem=8GiB",
        "arrivals": {"process": "regular", "gap": "10s", "jobs": 3},
        "classes": [{"name": "small", "demand": {"cpus": 1, "mem": "1GiB"}, "duration": "30s"}],
    }
    for path, value in changes.items():
        place: Any = plain
        *way, last = path.split("__")
        for step in way:
            place = place[int(step)] if step.isdigit() else place.setdefault(step, {})
        if value is None:
            del place[last]
        else:
            place[last] = copy.deepcopy(value)
    return plain


def parsed(plain: dict[str, Any]) -> scenario.Scenario:
    return scenario.parse(plain, folder=Path())


def test_small_scenario_says_what_arrives_and_where() -> None:
    found = parsed(values())

    assert [(job.job_id, job.user, job.submit_ms) for job in found.jobs()] == [
        ("small-0", "small", 10_000),
        ("small-1", "small", 20_000),
        ("small-2", "small", 30_000),
    ]
    assert found.jobs()[0].bundles[0].unit == (1000, GIB, 0, 0)
    assert found.jobs()[0].bundles[0].duration_ms == 30_000
    assert len(found.nodes) == 2
    assert (found.policies, found.seeds, found.placement) == ((), (0,), "align")


def test_example_is_a_scenario_of_the_schema() -> None:
    found = scenario.load(EXAMPLE)

    SCHEMA.validate(scenario.read_file(EXAMPLE))
    jobs = found.jobs(1)
    assert found.jobs(1) != found.jobs(2)
    assert found.weights == {"ana": 2.0}
    assert found.seeds == (0, 1, 2, 3, 4)
    assert {job.user for job in jobs} == {"ana", "ben", "cleo"}
    assert [job.submit_ms for job in jobs] == sorted(job.submit_ms for job in jobs)
    training = next(job.bundles[0] for job in jobs if job.job_id.startswith("training"))
    assert training.is_gang
    assert [str(constraint) for constraint in training.constraints] == ["model=T4"]
    statistics = next(job for job in jobs if job.job_id.startswith("statistics"))
    assert [bundle.stage for bundle in statistics.bundles] == [0, 1]
    assert all(0 < bundle.unit[1] <= 24 * GIB for job in jobs for bundle in job.bundles)


def test_seed_decides_everything() -> None:
    found = scenario.load(EXAMPLE)

    assert found.jobs(7) == found.jobs(7)
    assert found.jobs(7) != found.jobs(8)
    assert found.jobs() == found.jobs(0)


def test_jobs_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "import sys; from fairlead_lab.workloads import scenario;"
        "from hashlib import sha256;"
        "print(sha256(repr(scenario.load(sys.argv[1]).jobs(3)).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program, str(EXAMPLE)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(digests) == 1


def test_changing_one_class_leaves_the_others_as_they_were() -> None:
    poisson = {"process": "poisson", "gap": 5, "jobs": 20}
    other = {"name": "other", "demand": {"cpus": 2}, "duration": 9, "arrivals": poisson}
    changed = {**other, "duration": {"distribution": "exponential", "mean": 9}}
    small = {**values()["classes"][0], "arrivals": {**poisson, "gap": 7}}

    def jobs_of_small(second: dict[str, Any]) -> list[Any]:
        found = parsed(values(arrivals=None, classes=[small, second]))
        return [job for job in found.jobs(4) if job.job_id.startswith("small")]

    assert jobs_of_small(other) == jobs_of_small(changed)


def test_yaml_says_the_same_as_toml(tmp_path: Path) -> None:
    path = tmp_path / "same.yaml"
    path.write_text(yaml.safe_dump(scenario.read_file(EXAMPLE)), encoding="utf-8")

    assert scenario.load(path) == scenario.load(EXAMPLE)


def test_scenario_may_be_a_trace_beside_it(tmp_path: Path) -> None:
    (tmp_path / "work.csv").write_bytes(SAMPLE.read_bytes())
    (tmp_path / "hosts.csv").write_bytes(SAMPLE_NODES.read_bytes())
    path = tmp_path / "real.toml"
    path.write_text('nodes = "hosts.csv"\n[trace]\npath = "work.csv"\nlimit = 2\n', encoding="utf-8")

    found = scenario.load(path)

    assert (found.name, len(found.nodes)) == ("real", 4)
    assert found.jobs(1) == found.jobs(2)
    assert len(found.jobs()) == 2


def test_trace_may_be_divided_which_is_a_draw(tmp_path: Path) -> None:
    rows = "".join(f"0,{number},u,0,15,1,100,,1\n" for number in range(40))
    (tmp_path / "work.csv").write_text(
        "submit_s,job_id,user_id,stage,n_tasks,cpus,mem_mb,gpus,duration_s\n" + rows, encoding="utf-8"
    )

    found = scenario.parse({"trace": {"path": "work.csv", "divide": 10}}, folder=tmp_path)

    assert found.jobs(1) != found.jobs(2)
    assert {job.tasks for job in found.jobs(1)} == {1, 2}
    assert found.jobs(1) == found.jobs(1)
    assert found.jobs(1) != found.jobs(2)


def test_trace_of_bytes_may_be_modelled_otherwise(tmp_path: Path) -> None:
    (tmp_path / "jobs.tsv").write_text("a\t0\t0\t100\t0\t50\n", encoding="utf-8")

    def unit_of(share: float) -> tuple[int, ...]:
        plain = {"trace": {"path": "jobs.tsv", "swim": {"map_heavy_share": share}}}
        return scenario.parse(plain, folder=tmp_path).jobs()[0].bundles[0].unit

    assert unit_of(0.0) != unit_of(1.0)


GOOD: list[dict[str, Any]] = [
    {},
    {"seeds": [3, 1], "policies": ["drf", "slots:4"], "placement": "spread", "slowdown": 2.5},
    {"placement": "random:7"},
    {"arrivals": {"process": "at-once", "jobs": 5, "start": "1m"}},
    {"arrivals": {"process": "uniform", "jobs": 5, "until": "1m"}},
    {"arrivals": {"process": "lognormal", "gap": 1, "spread": 2, "until": "1m"}},
    {"users": ["ann", {"name": "ben", "weight": 0.5}], "classes__0__users": ["ben"]},
    {"classes__0__tasks": {"distribution": "uniform", "least": 2, "most": 4}},
    {
        "classes__0__demand": {
            "gpus": 0.5,
            "disk": "1GB",
            "cpus": {"distribution": "choice", "values": [1, 2]},
        }
    },
    {"classes__0__constraints": ["rack=a|b", "!slow"], "classes__0__gang": True},
]


@pytest.mark.parametrize("changes", GOOD)
def test_what_is_taken_is_what_the_schema_takes(changes: dict[str, Any]) -> None:
    plain = values(**changes)

    SCHEMA.validate(plain)
    assert parsed(plain).jobs(1)


STRUCTURE: list[tuple[dict[str, Any], str]] = [
    ({"polices": ["drf"]}, "polices: expected one of the keys arrivals, classes, .* (did you mean policies?)"),
    ({"classes__0__demand__cpu": 1}, "classes[0].demand.cpu: expected one of the keys cpus, .*'cpu' (did you mean cpus?)"),
    ({"arrivals__gapp": 1}, "arrivals.gapp: expected one of the keys .*(did you mean gap?)"),
    ({"classes": None}, "scenario: expected classes of jobs or a trace, got neither"),
    ({"classes": []}, "classes: expected a list of classes of jobs, not empty, got []"),
    ({"trace": {"path": "x"}}, "trace: expected either a trace or classes with arrivals, got both"),
    ({"classes__0__name": None}, "classes[0].name: expected a name, got nothing"),
    ({"classes__0__demand": None}, "classes[0].demand: expected a table of amounts"),
    ({"classes__0__duration": None}, "classes[0].duration: expected how long a task runs, got nothing"),
    ({"classes__0__duration": -1}, "classes[0].duration: expected seconds, or a time such as 500ms"),
    ({"classes__0__duration": True}, "classes[0].duration: expected seconds, or a time such as 500ms"),
    ({"classes__0__tasks": 0}, "classes[0].tasks: expected a number of tasks from 1 to 1000000, got 0"),
    ({"classes__0__tasks": 1.5}, "classes[0].tasks: expected a whole number of tasks, got 1.5"),
    ({"classes__0__gang": "yes"}, "classes[0].gang: expected true or false, got 'yes'"),
    ({"classes__0__weight": 0}, "classes[0].weight: expected a number above 0 and up to 1e+09, got 0"),
    ({"classes__0__stages": [{"demand": {"cpus": 1}, "duration": 1}]}, "classes[0].demand: expected one of the keys"),
    ({"classes__0__duration": {"distribution": "normal"}}, "classes[0].duration.distribution: expected one of uniform,"),
    ({"classes__0__duration": {"distribution": "exponential"}}, "classes[0].duration.mean: expected a value, got nothing"),
    ({"classes__0__duration": {"distribution": "lognormal", "median": 1}}, "classes[0].duration.spread: expected a number"),
    ({"classes__0__duration": {"distribution": "lognormal", "median": 1, "mean": 1, "spread": 1}}, "classes[0].duration.mean"),
    ({"classes__0__duration": {"distribution": "choice", "values": []}}, "classes[0].duration.values: expected a list"),
    ({"arrivals__process": "burst"}, "arrivals.process: expected one of poisson, lognormal"),
    ({"arrivals__gap": None}, "arrivals.gap: expected the mean time between two arrivals, got nothing"),
    ({"arrivals__jobs": None}, "arrivals.jobs: expected how many jobs, or until when they arrive, got nothing"),
    ({"arrivals": {"process": "uniform", "jobs": 3}}, "arrivals.until: expected when the last may arrive, got nothing"),
    ({"arrivals": {"process": "at-once"}}, "arrivals.jobs: expected how many, from 1 to"),
    ({"placement": "best"}, "placement: expected one of align, pack, spread, least-loaded, random, heartbeat, got 'best'"),
    ({"seeds": 0}, "seeds: expected a whole number from 1 to 1000, got 0"),
    ({"seeds": [1, 1]}, "seeds: expected each seed once, got [1, 1]"),
    ({"slowdown": -1}, "slowdown: expected a number from 0 to 1e+06, got -1"),
    ({"users": [{"name": "ann", "weight": 0}]}, "users[0].weight: expected a number above 0 and up to 1e+06, got 0"),
    ({"nodes": 3}, "nodes: expected a text that is not empty, got 3"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), STRUCTURE)
def test_what_the_schema_refuses_is_refused_with_its_path(changes: dict[str, Any], message: str) -> None:
    plain = values(**changes)

    with pytest.raises(jsonschema.ValidationError):
        SCHEMA.validate(plain)
    with pytest.raises(WorkloadError) as caught:
        parsed(plain)

    begin, _, end = message.partition(".*")
    assert str(caught.value).startswith(begin)
    assert str(caught.value).endswith(end)


SENSE: list[tuple[dict[str, Any], str]] = [
    ({"policies": ["drv"]}, "policies[0]: policy: expected"),
    ({"nodes": "0:cpus=4"}, "nodes: expected 1 to 1000000 of them, got 0"),
    ({"users": ["ann", "ann"]}, "users[1].name: expected each name once, got 'ann' twice"),
    ({"users": ["ann"], "classes__0__users": ["bob"]}, "classes[0].users[0]: expected one of ann, got 'bob'"),
    ({"classes__0__demand": {"cpus": 0}}, "classes[0].demand: expected an amount above zero in one of cpus"),
    ({"classes__0__demand": {"cpus": "1GiB"}}, "classes[0].demand.cpus: expected a number such as 1.5, got '1GiB'"),
    ({"classes__0__constraints": ["a=b=c", "=x"]}, "classes[0].constraints[1]: constraint: expected attr=v1|v2"),
    ({"arrivals": {"process": "uniform", "jobs": 3, "start": 9, "until": 9}}, "arrivals.until: expected a time after"),
    ({"arrivals": {"process": "poisson", "gap": "1ms", "until": "360d"}}, "arrivals.gap: expected a gap that leads to"),
    ({"classes__0__duration": {"distribution": "uniform", "least": 2, "most": 1}}, "classes[0].duration.most: expected at"),
    ({"classes__0__duration": {"distribution": "choice", "values": [1], "weights": [1, 2]}}, "classes[0].duration.weights"),
    ({"classes__0__arrivals": {"process": "at-once", "jobs": 1}}, "arrivals: expected a class without arrivals of its own"),
    ({"arrivals": None}, "arrivals: expected how jobs of class small arrive, got nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), SENSE)
def test_what_makes_no_sense_is_refused_with_its_path(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        parsed(values(**changes))

    assert str(caught.value).startswith(message)


def test_scenario_in_which_nothing_arrives_is_refused() -> None:
    late = values(arrivals={"process": "regular", "gap": "1h", "until": "1m"})

    with pytest.raises(WorkloadError, match="expected at least one job, got none with seed 0"):
        parsed(late).jobs()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.toml", b"nodes = ", "FILE: expected TOML, got a file that is not: Invalid value"),
        ("a.yaml", b"nodes: [", "FILE: expected YAML, got a file that is not: while parsing"),
        ("a.yaml", b"- 1", "FILE: scenario: expected a table of keys, got [1]"),
        ("a.yaml", b"1: 2", "FILE: scenario: expected a table of keys, got {1: 2}"),
        ("a.toml", b"\xff", "FILE: expected text in UTF-8, got byte 0xff"),
        ("a.json", b"{}", "FILE: expected a name that ends in .toml, .yaml or .yml, got a.json"),
        ("a.toml", b"#" * 2**20 + b"#", "FILE: expected at most 1048576 bytes, got more"),
        ("a.toml", b"seedz = 1", "FILE: scenario: expected classes of jobs or a trace, got neither"),
    ],
)
def test_file_that_cannot_be_used_is_named(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)

    with pytest.raises((TraceError, WorkloadError)) as caught:
        scenario.load(path)

    assert str(caught.value).replace(str(path), "FILE").startswith(message)
    assert "\n" not in str(caught.value)


def test_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="expected a file that can be read, got No such file"):
        scenario.load(tmp_path / "none.toml")


def test_examples_in_the_documentation_are_scenarios_of_the_schema() -> None:
    text = (Path(__file__).parents[3] / "docs" / "scenarios.md").read_text(encoding="utf-8")

    blocks = [tomllib.loads(block.split("```")[0]) for block in text.split("```toml\n")[1:]]

    assert len(blocks) == 2
    for block in blocks:
        SCHEMA.validate(block)
    assert parsed(blocks[0]).jobs(1)
