import csv
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke

EXAMPLES = Path(__file__).parents[2] / "examples" / "timesharing"


def a_program(folder: Path, name: str, *requests: str, priority: str = "1") -> str:
    path = folder / f"{name}.txt"
    path.write_text("\n".join(["# Priority:", priority, "# Requests:", *requests, ""]))
    return str(path)


def example(name: str) -> str:
    return str(EXAMPLES / f"{name}.txt")


def test_the_example_is_figure_7(invoke: Invoke) -> None:
    outcome = invoke("timeshare", *map(example, ("red", "blue", "green")))

    assert outcome.code == 0
    assert outcome.out.splitlines() == [
        "PROCESS  PRIORITY  DONE [s]  CPU [s]  DISK [s]",
        "red      40        14.40     10.00    0.00",
        "blue     40        11.60     0.00     10.00",
        "green    20        17.50     6.00     4.00",
        "Bottlenecks: CPU for 91% of the time, DISK for 74% of the time.",
    ]


def test_json_has_the_columns_of_the_experiments(invoke: Invoke) -> None:
    outcome = invoke("timeshare", example("red"), example("green"), "--json", "--until", "2", "--seed", "5")

    found = json.loads(outcome.out)
    assert found["columns"] == ["time_s", "process", "resource", "used_s"]
    assert found["rows"][0] == [0.0, "red", "CPU", 0.0]
    assert sum(row[3] for row in found["rows"] if row[0] == 2.0) == 2
    assert (found["policy"], found["seed"], found["runs"], found["finish_s"]) == ("bbf", 5, 1, {})
    assert [process["finish_s"] for process in found["processes"]] == [None, None]


def test_runs_differ_by_service_times_and_repeat_by_seed(invoke: Invoke, tmp_path: Path) -> None:
    paths = [a_program(tmp_path, name, "loop 4", "CPU_CS 1 0.3 NORM", "IDLE 0.5 0 EXP") for name in "ab"]

    outputs = [
        invoke("timeshare", *paths, "--runs", "5", "--seed", seed, "--json").out for seed in ("1", "1", "2")
    ]

    assert outputs[0] == outputs[1] != outputs[2]
    assert json.loads(outputs[0])["processes"][0]["finish_deviation_s"] > 0


def test_a_folder_gets_files(invoke: Invoke, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    idle = a_program(tmp_path, "a$b", "loop 1", "IDLE 1 0 NORM")

    outcome = invoke("timeshare", example("red"), idle, "--runs", "2", "--out", str(tmp_path / "new"))

    assert outcome.code == 0
    folder = tmp_path / "new"
    assert json.loads((folder / "timeshare.json").read_text())["finish_s"] == {"red": 10.0, "a$b": 1.0}
    with (folder / "turns.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["start_s", "end_s", "process", "resource"],
            ["0.0", "10.0", "red", "CPU"],
        ]
    with (folder / "usage.csv").open(newline="") as file:
        assert list(csv.reader(file))[-1] == ["10.0", "red", "CPU", "10.0"]
    assert (folder / "timeshare.png").read_bytes().startswith(b"\x89PNG")


def test_long_runs_are_sampled_more_rarely(invoke: Invoke, tmp_path: Path) -> None:
    path = a_program(tmp_path, "long", "loop 10", "TAPE 10000 0 NORM")

    rows = json.loads(invoke("timeshare", path, "--json").out)["rows"]

    assert len(rows) == 2_001
    assert rows[-1] == [100_000.0, "long", "TAPE", 100_000.0]


def test_what_cannot_be_run_is_refused_by_name(invoke: Invoke, tmp_path: Path) -> None:
    bad = a_program(tmp_path, "bad", "loop 1", "CPU_CS x 0 NORM")
    endless = a_program(tmp_path, "endless", "loop 1000000", "CPU_CS 1000000 0 NORM")
    binary = tmp_path / "binary.txt"
    binary.write_bytes(b"\xff")

    for arguments, complaint in (
        ([bad], f"{bad}:5: expected mean: a time in seconds from 0.001 to 1000000, got 'x'"),
        ([str(tmp_path / "none.txt")], f"{tmp_path / 'none.txt'}: No such file or directory"),
        ([str(binary)], f"{binary}: expected text in UTF-8, got byte 0xff"),
        ([example("red"), example("red")], "red: expected a name of its own for each process, got it twice"),
        ([example("red"), "--policy", "drf"], "who waits for a turn holds nothing"),
        ([endless], "programs: expected at most 20,000,000 turns in all runs, got about 10,000,000,000,000"),
    ):
        outcome = invoke("timeshare", *arguments)
        assert outcome.code == 2
        assert complaint in outcome.err
    assert invoke("timeshare", endless, "--until", "3").code == 0
