"""What a study leaves in a folder: the results as JSON, the numbers behind each plot as CSV."""

import csv
import json
from pathlib import Path

from fairlead_sim.simulating.document import as_document
from fairlead_sim.simulating.plot_data import Data, all_data
from fairlead_sim.simulating.study import Outcome


def write_report(folder: Path, outcome: Outcome) -> None:
    """Write ``results.json`` and a CSV of each chart into an existing folder.

    The same study writes the same bytes.

    Args:
        folder: May hold a former report, which is overwritten.
        outcome: Of the study.

    Raises:
        OSError: a file cannot be written.
    """
    data = all_data(outcome)
    document = as_document(outcome, with_speed=False)
    (folder / "results.json").write_text(json.dumps(document, indent=1, allow_nan=False) + "\n")
    for table in data.values():
        _write_csv(folder / f"{table.name}.csv", table)


def _write_csv(path: Path, table: Data) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.columns)
        writer.writerows(table.rows)
