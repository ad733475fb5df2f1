"""Runs experiments in parallel and writes what they found: JSON, CSV and a plot of each, and one table of all verdicts."""

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
    """How the run of one experiment ended."""

    id: str
    result: Result | None
    """None if the experiment broke."""
    error: str = ""
    """What broke it, in one line."""
    took_s: float = 0.0

    def as_json(self, seed: int) -> dict[str, object]:
        """The outcome for JSON: the result, or the error."""
        if self.result is None:
            return {"id": self.id, "error": self.error}
        return catalogue.find(self.id).as_json(self.result, seed)


def run_one(experiment_id: str, options: RunOptions) -> Outcome:
    """Run one experiment in this process; an error is part of the outcome, so that other experiments go on."""
    began = time.perf_counter()
    try:
        result = catalogue.find(experiment_id).run(options)
    except Exception as error:
        return Outcome(id=experiment_id, result=None, error=f"{type(error).__name__}: {error}")
    return Outcome(id=experiment_id, result=result, took_s=time.perf_counter() - began)


def run_all(experiment_ids: Sequence[str], options: RunOptions, *, processes: int) -> Generator[Outcome]:
    """Run experiments in up to ``processes`` processes and yield their outcomes as they end; 1 means this process.

    Close the generator to end the processes early.
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
    """Write ``ID.json``, ``ID.csv`` and ``ID.png`` into an existing folder and return their paths.

    Raises:
        PlotsUnavailable: matplotlib is not installed; JSON and CSV are written.
        OSError: a file cannot be written.
    """
    stem = folder / experiment.id
    json_path, csv_path = stem.with_suffix(".json"), stem.with_suffix(".csv")
    json_path.write_text(json.dumps(experiment.as_json(result, seed), indent=1) + "\n")
    with csv_path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(experiment.columns)
        writer.writerows(result.rows)
    plot_path = save(stem.with_suffix(".png"), lambda figure: experiment.draw(figure, result))
    return [json_path, csv_path, plot_path]


def write_verdicts(folder: Path, outcomes: Sequence[Outcome]) -> None:
    """Write ``verdicts.md``: the verdicts of these and of all other experiments whose JSON the folder has, by catalogue.

    Raises:
        OSError: a file cannot be read or written.
    """
    verdicts = {
        outcome.id: f"broke: {outcome.error}" if outcome.result is None else str(outcome.result.verdict)
        for outcome in outcomes
    }
    lines = ["| id | what | verdict |", "|---|---|---|"]
    for experiment in catalogue.all_experiments():
        verdict = verdicts.get(experiment.id) or _former_verdict(folder / f"{experiment.id}.json")
        if verdict:
            lines.append(f"| {experiment.id} | {experiment.title} | {verdict} |")
    (folder / "verdicts.md").write_text("\n".join(lines) + "\n")


def _former_verdict(path: Path) -> str:
    """The verdict that an earlier run wrote; empty if there is no such file or it holds something else."""
    try:
        document = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return ""
    return str(document.get("verdict", "")) if isinstance(document, dict) else ""
