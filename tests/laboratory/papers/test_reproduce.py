"""What holds of all experiments, and what becomes of one that breaks."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fairlead_lab.papers import catalogue, runner
from fairlead_lab.papers.experiment import (
    PAPERS,
    Agreement,
    Experiment,
    Result,
    RunOptions,
    Verdict,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def run_well(options: RunOptions) -> Result:
    return Result(
        rows=[[0.1, "drf", options.seed]],
        verdict=Verdict(Agreement.WITHIN, "2 %"),
        finish_s={"red": 1.5},
    )


def run_badly(options: RunOptions) -> Result:
    raise ZeroDivisionError("no load")


def draw(figure: "Figure", result: Result) -> None:
    figure.add_subplot().plot([row[0] for row in result.rows])


WELL = Experiment(
    id="pf-well", title="goes well", columns=("load", "policy", "seed"), run=run_well, draw=draw
)
BADLY = Experiment(id="pf-badly", title="breaks", columns=("load",), run=run_badly, draw=draw)


@pytest.fixture
def _two(monkeypatch: pytest.MonkeyPatch) -> None:
    import fairlead_lab.papers.pf

    for paper in PAPERS:
        monkeypatch.setattr(f"fairlead_lab.papers.{paper}.EXPERIMENTS", ())
    monkeypatch.setattr(fairlead_lab.papers.pf, "EXPERIMENTS", (WELL, BADLY))


def test_ids_are_unique_and_every_experiment_is_found_by_its_own() -> None:
    experiments = catalogue.all_experiments()

    assert len({experiment.id for experiment in experiments}) == len(experiments)
    for experiment in experiments:
        assert catalogue.find(experiment.id) is experiment
        assert experiment.title
        assert experiment.columns


@pytest.mark.usefixtures("_two")
def test_the_json_of_an_experiment_says_what_made_it() -> None:
    assert WELL.as_json(run_well(RunOptions(seed=7)), 7) == {
        "id": "pf-well",
        "paper": "000",
        "figure": "well",
        "title": "goes well",
        "columns": ["load", "policy", "seed"],
        "rows": [[0.1, "drf", 7]],
        "seed": 7,
        "notes": "",
        "verdict": "agrees within 2 %",
        "finish_s": {"red": 1.5},
    }


@pytest.mark.usefixtures("_two")
@pytest.mark.parametrize(
    ("experiment_id", "complaint"),
    [
        ("well", "id: expected one that begins with pf-, drf-, baa-, bbf-, got 'well'"),
        ("pf-fig9", "id: expected one of pf-well, pf-badly, got 'pf-fig9'"),
    ],
)
def test_an_unknown_id_is_refused(experiment_id: str, complaint: str) -> None:
    with pytest.raises(catalogue.UnknownExperiment) as refused:
        catalogue.find(experiment_id)

    assert str(refused.value) == complaint


@pytest.mark.usefixtures("_two")
def test_one_that_breaks_is_told_and_does_not_take_the_others_with_it(tmp_path: Path) -> None:
    badly, well = runner.run_all(["pf-badly", "pf-well"], RunOptions(), processes=1)

    assert badly.result is None
    assert badly.error == "ZeroDivisionError: no load"
    assert well.result is not None
    runner.write_verdicts(tmp_path, [well, badly])
    table = (tmp_path / "verdicts.md").read_text()
    assert "| pf-badly | breaks | broke: ZeroDivisionError: no load |" in table


@pytest.mark.usefixtures("_two")
def test_files_hold_the_result(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")

    json_path, csv_path, png_path = runner.write(tmp_path, WELL, run_well(RunOptions(seed=3)), 3)

    assert json.loads(json_path.read_text())["rows"] == [[0.1, "drf", 3]]
    with csv_path.open(newline="") as file:
        assert list(csv.reader(file)) == [["load", "policy", "seed"], ["0.1", "drf", "3"]]
    before = png_path.read_bytes()
    assert before.startswith(b"\x89PNG")
    runner.write(tmp_path, WELL, run_well(RunOptions(seed=3)), 3)
    assert png_path.read_bytes() == before, "the same numbers are the same file"


IN_SMALL = """
from fairlead_lab.papers.baa import joining
from fairlead_lab.papers.experiment import RunOptions
from fairlead_lab.papers.pf import dynamic
from fairlead_lab.papers.pf.traffic import FIGURE_3, Traffic
scale = dynamic.Scale(exact_loads=(0.2,), simulated_loads=(0.2, 0.5), jobs=400)
figure = dynamic.Figure(traffic=Traffic(FIGURE_3, (1, 1, 1, 1)), quick=scale, full=scale, judged=lambda _: [])
print(joining._run(100, 1), figure.run(RunOptions()), flush=True)
from fairlead_cli.main import main
main()
"""


def test_the_same_seed_gives_the_same_bytes_under_any_hash_seed() -> None:
    """Of each paper what draws at random: whole tasks, time sharing, and in small fluid dynamics and a system that is solved."""
    ids = ("drf-fig8", "bbf-fig8")

    outputs = [
        subprocess.run(
            [sys.executable, "-c", IN_SMALL, "reproduce", *ids, "--quick", "--json", "--processes", "1"],
            check=True,
            capture_output=True,
            timeout=120,
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": hash_seed},
        ).stdout
        for hash_seed in ("1", "2")
    ]

    assert outputs[0] == outputs[1]
    in_small, _, document = outputs[0].partition(b"\n[")
    assert b"Run(" in in_small
    assert b"Result(" in in_small
    assert [result["id"] for result in json.loads(b"[" + document)] == list(ids)
