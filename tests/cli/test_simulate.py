import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke

NODES = "2:cpus=4,mem=8GiB"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Ann's small tasks and Bob's large ones compete; one job is for a machine that is not there."""
    rows = ["submit_s,job_id,user_id,stage,n_tasks,cpus,mem_mb,gpus,duration_s"]
    for number in range(8):
        rows += [
            f"{number * 5},a{number},ann,0,6,1,1024,0,20",
            f"{number * 5},b{number},bob,0,2,2,4096,0,40",
        ]
    rows.append("50,huge,eve,0,1,64,1024,0,10")
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


SCENARIO = """
nodes = "2:cpus=4,mem=8GiB"
policies = ["drf", "slots:2"]
seeds = 3
[arrivals]
process = "poisson"
gap = "4s"
until = "2m"
[[classes]]
name = "query"
tasks = 3
demand = { cpus = 1, mem = "1GiB" }
duration = { distribution = "exponential", mean = "20s" }
[[classes]]
name = "report"
demand = { cpus = 1, mem = "4GiB" }
duration = "30s"
"""


def test_policies_stand_side_by_side(invoke: Invoke, trace: Path) -> None:
    outcome = invoke(
        "simulate", "--trace", str(trace), "--nodes", NODES, "--policy", "drf", "--policy", "slots:2", "--processes", "1"
    )  # fmt: skip

    assert outcome.code == 0
    lines = [line.split() for line in outcome.out.splitlines()]
    assert lines[0] == ["MEASURE", "drf", "slots:2"]
    assert lines[1] == ["jobs", "finished", "16", "of", "16", "16", "of", "16"]
    assert "refused: 1 job, huge: a task wants more cpus than any node has" in outcome.out


def test_rows_that_are_left_out_are_told(invoke: Invoke, trace: Path, tmp_path: Path) -> None:
    with trace.open("a") as file:
        file.write("60,later,ann,0,1,1,1024,0,\n")
    given = (
        "simulate",
        "--trace",
        str(trace),
        "--nodes",
        NODES,
        "--skip-without-duration",
        "--processes",
        "1",
    )

    outcome = invoke(*given, "--out", str(tmp_path / "out"))
    assumed = invoke(*given[:-3], "--default-duration", "5s")

    said = "1 row of the trace left out: without a run time"
    assert said in outcome.out
    assert said in (tmp_path / "out" / "report.html").read_text()
    assert json.loads((tmp_path / "out" / "results.json").read_text())["workload"][0]["remarks"] == [said]
    assert "1 row of the trace without a run time: taken as 5 s" in assumed.out


def test_json_has_each_policy(invoke: Invoke, trace: Path) -> None:
    outcome = invoke("simulate", "--trace", str(trace), "--nodes", NODES, "--policy", "pf", "--json")

    document = json.loads(outcome.out)
    assert document["nodes"] == {
        "count": 2,
        "capacity": {"cpus": 8.0, "mem": 16 * 2**30},
    }
    (policy,) = document["policies"]
    assert policy["policy"] == "pf"
    assert policy["jobs_finished"] == 16
    assert policy["jobs_refused"] == 1
    assert set(policy["utilization"]) == {"cpus", "mem"}
    assert set(policy["completion_ms"]) == {"count", "mean", "p50", "p95", "p99", "most"}
    assert policy["decisions"] == 64
    assert policy["events_per_s"] > 0
    assert policy["waits_by_size"]
    assert 0 < policy["jain"] <= 1


def test_one_trace_gives_an_interval_by_its_jobs(invoke: Invoke, trace: Path) -> None:
    given = ("simulate", "--trace", str(trace), "--nodes", NODES, "--policy", "drf", "--policy", "slots:2",
             "--processes", "1")  # fmt: skip

    table, document = invoke(*given).out, json.loads(invoke(*given, "--json").out)

    (row,) = [line.split() for line in table.splitlines() if line.startswith("mean completion / drf's")]
    ratio = document["comparison"][0]["completion_ratio"]
    means = {policy["policy"]: policy["completion_ms"]["mean"] for policy in document["policies"]}
    assert ratio["value"] == pytest.approx(means["slots:2"] / means["drf"])
    assert ratio["low"] < ratio["value"] < ratio["high"]
    assert row[4:] == ["1", f"{ratio['value']:.2f}", f"({ratio['low']:.2f}–{ratio['high']:.2f})"]


def test_processes_change_nothing(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even the rows behind the charts, which are drawn in no process of the pool and left out here."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    scenario = tmp_path / "two.toml"
    scenario.write_text(SCENARIO)
    found = {}
    for processes in ("1", "3"):
        folder = tmp_path / processes
        outcome = invoke(
            "simulate", "--scenario", str(scenario), "--processes", processes, "--out", str(folder)
        )
        assert outcome.code == 0, outcome.err
        found[processes] = {path.name: path.read_bytes() for path in folder.iterdir()}

    assert found["1"] == found["3"]
    assert "results.json" in found["1"]


def test_seeds_give_intervals(invoke: Invoke, tmp_path: Path) -> None:
    scenario = tmp_path / "two.toml"
    scenario.write_text(SCENARIO)

    outcome = invoke("simulate", "--scenario", str(scenario), "--json", "--processes", "1")

    document = json.loads(outcome.out)
    assert [each["seed"] for each in document["workload"]] == [0, 1, 2]
    policy = document["policies"][0]
    runs = [run["completion_ms"]["mean"] for run in policy["runs"]]
    assert len(set(runs)) == 3
    assert policy["completion_ms"]["mean"] == pytest.approx(sum(runs) / 3)
    assert policy["half_width"]["completion_ms.mean"] > 0


def test_rows_behind_a_chart_are_those_of_the_results(invoke: Invoke, trace: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    invoke("simulate", "--trace", str(trace), "--nodes", NODES, "--policy", "drf", "--policy", "fifo", "--out", str(folder), "--processes", "1")  # fmt: skip

    results = json.loads((folder / "results.json").read_text())
    with (folder / "utilization.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if (row["policy"], row["resource"]) == ("drf", "cpus")]
    ends = [float(row["time_s"]) for row in rows]
    lengths = [end - start for start, end in zip([0.0, *ends[:-1]], ends, strict=True)]
    held = sum(float(row["utilization"]) * length for row, length in zip(rows, lengths, strict=True))
    assert ends[-1] * 1000 == results["policies"][0]["makespan_ms"]
    assert held / ends[-1] == pytest.approx(results["policies"][0]["utilization"]["cpus"])


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "either --trace FILE or --scenario FILE"),
        (("--trace", "TRACE"), 2, "expected --nodes"),
        (("--trace", "TRACE", "--nodes", "0:cpus=1,mem=1GiB"), 2, "nodes"),
        (("--trace", "TRACE", "--nodes", NODES, "--policy", "slot:3"), 2, "slot:3"),
        (("--trace", "TRACE", "--nodes", NODES, "--format", "tape"), 2, "tape"),
        (("--trace", "TRACE", "--nodes", "1:cpus=0.1,mem=1MiB"), 2, "expected a job that the nodes can hold"),
    ],
)
def test_what_cannot_be_run_is_one_line(
    invoke: Invoke, trace: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    outcome = invoke("simulate", *(str(trace) if word == "TRACE" else word for word in arguments))

    assert outcome.code == code
    assert said in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_run_that_is_cut_short_says_so(invoke: Invoke, trace: Path) -> None:
    outcome = invoke("simulate", "--trace", str(trace), "--nodes", NODES, "--until", "45s")

    assert outcome.code == 1
    assert "cut short: under drf 14 of 16 jobs were not done at the end, and 1 come later" in outcome.out
    assert "means above are of jobs that were done" in outcome.out
    assert "2 of 16" in outcome.out
    assert "job completion, mean" in outcome.out
    for of_all_jobs in ("half of the jobs", "99 % of jobs", "all done after"):
        assert of_all_jobs not in outcome.out


def test_ctrl_c_ends_all_processes(tmp_path: Path) -> None:
    """Afterwards nobody of the group is left."""
    with _long_run_in_two_processes(tmp_path) as process:
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=30)

    assert process.returncode == 130
    assert "Traceback" not in said
    # The helper of multiprocessing that looks after shared memory ends when it sees that the others have.
    end = time.monotonic() + 30
    while left := _group(process.pid):
        assert time.monotonic() < end, f"left behind: {left}"
        time.sleep(0.05)


def test_a_process_ended_from_outside_is_told_in_one_line(tmp_path: Path) -> None:
    """As the kernel does when memory runs out."""
    with _long_run_in_two_processes(tmp_path) as process:
        worker = next(pid for pid in _group(process.pid) if b"spawn_main" in _command_of(pid))
        os.kill(worker, signal.SIGKILL)
        _, said = process.communicate(timeout=30)

    assert process.returncode == 1
    assert said.startswith("fairlead: --processes: one that did part of the work was ended from outside")
    assert said.count("\n") == 1


@contextmanager
def _long_run_in_two_processes(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """One that has begun, leading a group of its own."""
    scenario = folder / "long.toml"
    scenario.write_text(SCENARIO.replace('"2m"', '"100h"').replace("seeds = 3", "seeds = 4"))
    command = [sys.executable, "-m", "fairlead_cli.main", "simulate", "--scenario", str(scenario)]
    with subprocess.Popen(
        [*command, "--processes", "2"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    ) as process:
        while len(_group(process.pid)) < 4:  # with the helper that looks after shared memory
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.05)
        yield process


def _command_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def _group(group: int) -> list[int]:
    """The processes of a group."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # gone meanwhile
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found
