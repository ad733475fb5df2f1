import json
from pathlib import Path

import pytest

from fairlead_lab.papers.experiment import Agreement, Experiment, Result, RunOptions, Verdict
from tests.cli.conftest import Invoke


def run_well(options: RunOptions) -> Result:
    verdict = Verdict(Agreement.DIFFERS, "the paper rounds")
    return Result(rows=[[0.123456, options.is_quick]], verdict=verdict, notes="Two users.")


def run_badly(options: RunOptions) -> Result:
    raise ValueError("nothing")


@pytest.fixture(autouse=True)
def _two(monkeypatch: pytest.MonkeyPatch) -> None:
    experiments = tuple(
        Experiment(id=name, title="a title", columns=("load", "quick"), run=run, draw=lambda *_: None)
        for name, run in (("drf-well", run_well), ("drf-badly", run_badly))
    )
    for paper in ("pf", "baa", "bbf"):
        monkeypatch.setattr(f"fairlead_lab.papers.{paper}.EXPERIMENTS", ())
    monkeypatch.setattr("fairlead_lab.papers.drf.EXPERIMENTS", experiments)


def test_list_names_all(invoke: Invoke) -> None:
    assert invoke("reproduce", "list").out == "drf-well         a title\ndrf-badly        a title\n"
    assert json.loads(invoke("reproduce", "LIST", "--json").out)[0] == {
        "id": "drf-well", "paper": "001", "figure": "well", "title": "a title", "columns": ["load", "quick"],
    }  # fmt: skip


def test_bare_command_lists_and_says_what_next(invoke: Invoke) -> None:
    """Everything takes an hour: too long for somebody who only looks what there is."""
    outcome = invoke("reproduce")

    assert outcome.code == 0
    assert outcome.out == invoke("reproduce", "list").out
    assert "`fairlead reproduce all`" in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("words", [["all"], ["ALL"], ["--quick"], ["--out", "FOLDER"]])
def test_all_are_computed_when_that_is_said(invoke: Invoke, tmp_path: Path, words: list[str]) -> None:
    given = [str(tmp_path) if word == "FOLDER" else word for word in words]

    outcome = invoke("reproduce", *given, "--processes", "1")

    assert "[1/2] drf-well: a title" in outcome.out
    assert "[2/2] drf-badly: ValueError: nothing" in outcome.err


def test_rows_notes_and_verdict_are_printed(invoke: Invoke) -> None:
    outcome = invoke("reproduce", "drf-well", "--quick", "--processes", "1")

    assert outcome.code == 0
    assert "0.1235  True" in outcome.out
    assert "Two users." in outcome.out
    assert outcome.out.endswith("drf-well: differs: the paper rounds\n")


def test_json_of_one_is_an_object_and_of_several_an_array(invoke: Invoke) -> None:
    one = invoke("reproduce", "drf-well", "--json", "--processes", "1")
    both = invoke("reproduce", "all", "--json", "--processes", "1")

    assert json.loads(one.out)["rows"] == [[0.123456, False]]
    assert [found["id"] for found in json.loads(both.out)] == ["drf-well", "drf-badly"]
    assert both.code == 1, "one of them broke"
    assert "drf-badly: ValueError: nothing" in both.err


def test_a_folder_gets_files_and_all_verdicts(invoke: Invoke, tmp_path: Path) -> None:
    outcome = invoke("reproduce", "drf-well", "--out", str(tmp_path / "new"), "--processes", "1")

    assert outcome.code == 0
    assert {path.name for path in (tmp_path / "new").iterdir()} >= {
        "drf-well.json",
        "drf-well.csv",
        "verdicts.md",
    }
    assert (
        "| drf-well | a title | differs: the paper rounds |" in (tmp_path / "new" / "verdicts.md").read_text()
    )


def test_the_verdicts_of_a_folder_are_those_of_all_that_is_in_it(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "drf-badly.json").write_text('{"id": "drf-badly", "verdict": "agrees: before"}')

    invoke("reproduce", "drf-well", "--out", str(tmp_path), "--processes", "1")

    assert (tmp_path / "verdicts.md").read_text().splitlines()[2:] == [
        "| drf-well | a title | differs: the paper rounds |",
        "| drf-badly | a title | agrees: before |",
    ]
    (tmp_path / "drf-badly.json").write_text("[half a fi")
    invoke("reproduce", "drf-well", "--out", str(tmp_path), "--processes", "1")
    assert len((tmp_path / "verdicts.md").read_text().splitlines()) == 3


def test_what_cannot_be_done_is_refused_in_one_line(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    unknown = invoke("reproduce", "drf-fig99")
    no_folder = invoke("reproduce", "drf-well", "--out", str(tmp_path / "file" / "below"), "--processes", "1")

    assert (unknown.code, unknown.err) == (
        2,
        "fairlead: id: expected one of drf-well, drf-badly, got 'drf-fig99'\n",
    )
    assert no_folder.code == 1
    assert no_folder.err.count("\n") == 1
    assert "Not a directory" in no_folder.err
