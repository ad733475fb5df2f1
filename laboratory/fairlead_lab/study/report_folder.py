"""What a study leaves in a folder: the results as JSON, the numbers behind each plot as CSV, the plots, and a page."""

import csv
import json
from pathlib import Path

from fairlead_lab.study.charts import draw_all
from fairlead_lab.study.document import as_document
from fairlead_lab.study.plot_data import Data, all_data
from fairlead_lab.study.report_page import report_page
from fairlead_lab.study.study import Outcome


def write_report(folder: Path, outcome: Outcome, *, title: str, command: str) -> None:
    """Write ``report.html``, ``results.json``, and a CSV and a PNG of each chart into an existing folder.

    The same study writes the same bytes. Without the library that draws, the page has tables only and says so; without the
    template engine there is no page, and a former one is removed.

    Args:
        folder: May hold a former report, which is overwritten.
        outcome: Of the study.
        title: What was simulated.
        command: With which it can be repeated.

    Raises:
        PlotsUnavailable: everything but the plots is there.
        PageUnavailable: everything but the page is there.
        OSError: a file cannot be written.
    """
    data = all_data(outcome)
    document = as_document(outcome, with_speed=False)
    (folder / "results.json").write_text(json.dumps(document, indent=1, allow_nan=False) + "\n")
    for table in data.values():
        _write_csv(folder / f"{table.name}.csv", table)
    plots: dict[str, bytes] = {}
    try:
        plots = draw_all(data, outcome.study.policies)
    finally:
        for name, png in plots.items():
            (folder / f"{name}.png").write_bytes(png)
        (folder / "report.html").unlink(missing_ok=True)
        page = report_page(outcome, plots, title=title, command=command)
        (folder / "report.html").write_text(page, encoding="utf-8")


def _write_csv(path: Path, table: Data) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.columns)
        writer.writerows(table.rows)
