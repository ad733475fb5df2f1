"""Many experiments at once, each in a process of its own kind, in the order in which they end, and the files they leave."""

import csv
import json
import time
from collections.abc import Generator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path

from fairlead_lab.papers import catalogue
from fairlead_lab.papers.experiment import Experiment, Result, RunOptions
from fairlead_lab.plotting import save
from fairlead_lab.worker_pool import uninterrupted, worker_pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One experiment's end."""

    id: str
    result: Result | None
    """None if it broke."""
    error: str = ""
    """What broke it, in one line."""
    took_s: float = 0.0


def run_one(experiment_id: str, options: RunOptions) -> Outcome:
    """Run one experiment here; what breaks it is told and not raised, so that one does not take the others with it."""
    began = time.perf_counter()
    try:
        result = catalogue.find(experiment_id).run(options)
    except Exception as error:
        return Outcome(id=experiment_id, result=None, error=f"{type(error).__name__}: {error}")
    return Outcome(id=experiment_id, result=result, took_s=time.perf_counter() - began)


def run_all(experiment_ids: Sequence[str], options: RunOptions, *, processes: int) -> Generator[Outcome]:
    """Run experiments in so many processes; outcomes come as they end. One process means this one.

    Close what this gives to end the processes before they are done.
    """
    if processes == 1 or len(experiment_ids) == 1:
        for experiment_id in experiment_ids:
            yield run_one(experiment_id, options)
        return
    with worker_pool(min(processes, len(experiment_ids))) as pool:
        with uninterrupted():
            futures = [pool.submit(run_one, experiment_id, options) for experiment_id in experiment_ids]
        for future in as_completed(futures):
            yield future.result()


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
