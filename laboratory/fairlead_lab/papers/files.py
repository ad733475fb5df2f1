"""What experiments leave in a folder: for each its JSON, its rows as CSV, its plot, and one table of all verdicts."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

from fairlead_lab.papers import catalogue
from fairlead_lab.papers.batch import Outcome
from fairlead_lab.papers.experiment import Experiment, Result
from fairlead_lab.plotting import save


def write(folder: Path, experiment: Experiment, result: Result, seed: int) -> list[Path]:
    """Write ``ID.json``, ``ID.csv`` and ``ID.png`` into an existing folder; gives their paths.

    Raises:
        PlotsUnavailable: JSON and CSV are there, the plot is not.
        OSError: a file cannot be written.
    """
    stem = folder / experiment.id
    json_path, csv_path = stem.with_suffix(".json"), stem.with_suffix(".csv")
    json_path.write_text(json.dumps(experiment.as_json(result, seed), indent=1) + "\n")
    with csv_path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(experiment.columns)
        writer.writerows(result.rows)
    return [json_path, csv_path, draw(stem.with_suffix(".png"), experiment, result)]


def draw(path: Path, experiment: Experiment, result: Result) -> Path:
    """Draw the plot into a file.

    Raises:
        PlotsUnavailable: see there.
    """
    return save(path, lambda figure: experiment.draw(figure, result))


def verdict_table(folder: Path, outcomes: Sequence[Outcome]) -> str:
    """The verdicts of these and of all other experiments whose JSON the folder has, as Markdown in the order of the catalogue.

    Raises:
        OSError: a file cannot be read.
    """
    by_id = {outcome.id: outcome for outcome in outcomes}
    lines = ["| id | what | verdict |", "|---|---|---|"]
    for experiment in catalogue.all_experiments():
        outcome = by_id.get(experiment.id)
        if outcome is None:
            found = _former_verdict(folder / f"{experiment.id}.json")
        elif outcome.result is None:
            found = f"broke: {outcome.error}"
        else:
            found = str(outcome.result.verdict)
        if found:
            lines.append(f"| {experiment.id} | {experiment.title} | {found} |")
    return "\n".join(lines) + "\n"


def _former_verdict(path: Path) -> str:
    """What an earlier run wrote; empty if it did not, or if the file is something else."""
    try:
        document = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return ""
    return str(document.get("verdict", "")) if isinstance(document, dict) else ""
