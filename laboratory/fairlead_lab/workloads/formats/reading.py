"""What all readers of public formats share: the order of arrivals, rows without a run time, what is left out and why."""

from collections import Counter
from dataclasses import dataclass, field

from fairlead_lab.workloads.csv_rows import Row, TraceError
from fairlead_lab.workloads.traces import SUBMIT_S_MAX, TraceOptions
from fairlead_sim.workload import JobChooser, Selection


@dataclass(slots=True)
class Reading:
    """One reading of one file: its options, and what became of the rows so far."""

    options: TraceOptions
    left_out: Counter[str] = field(default_factory=Counter)
    """Rows that gave no task, by the reason in words. Nothing is left out without a line here."""
    rows_without_duration: int = 0
    """Left out or given the default, as the options say."""
    header: dict[str, str] = field(default_factory=dict)
    """What the file says of itself, name to text; of formats that do."""
    before_ms: int = 0
    """The latest arrival so far."""
    chooser: JobChooser = field(default_factory=lambda: JobChooser(Selection()))
    """Of the selected jobs."""
    has_passed_over: bool = False
    """Whether there was a job that is not selected."""

    def takes(self, job_id: str, submit_ms: int) -> bool:
        """Whether the row of this job, arriving at this time, is selected; asked again it says the same."""
        is_taken = self.chooser.takes(job_id, submit_ms)
        self.has_passed_over = self.has_passed_over or not is_taken
        return is_taken

    def arrival_ms(self, row: Row, column: str) -> int:
        """The arrival in a cell of seconds, of rows that are to be in order.

        Raises:
            TraceError: not a number from 0 on, or earlier than the row before.
        """
        submit_ms = round(row.number(column, most=SUBMIT_S_MAX, unit="seconds") * 1000)
        if submit_ms < self.before_ms and not self.options.accepts_any_order:
            raise row.bad(column, f"rows in order of arrival, so {self.before_ms / 1000:g} or later")
        self.before_ms = submit_ms
        return submit_ms

    def without_duration(self, error: TraceError) -> int | None:
        """The run time in ms of a row that has none; None if it is to be left out. Raises ``error`` if neither is wanted."""
        self.rows_without_duration += 1
        if self.options.default_duration_ms is None and not self.options.skip_without_duration:
            raise error
        return self.options.default_duration_ms
