"""The border between statuses and acknowledgements and their messages, as lists of fields where a peer can read those.

A message of its own for each status costs both sides more than all that is decided about it; a list of a field is read and
written in one call. As in ``convert``, what is read is checked, and what is written is trusted.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final

from fairlead_proto import limits
from fairlead_proto.convert import fill_status, read_reason, read_state, read_status
from fairlead_proto.enum_numbers import REASONS, STATES
from fairlead_proto.fields import UnknownValueError, is_id, read_id, refusal
from fairlead_proto.ids import AgentId, FrameworkId, TaskId
from fairlead_proto.peers import Unknowns
from fairlead_proto.resources import QUANTITY_MAX
from fairlead_proto.tasks import TaskStatus, TaskUsage
from fairlead_proto.v1 import agent_pb2, framework_pb2, types_pb2

Statuses = agent_pb2.StatusReports | framework_pb2.TaskStatuses
"""The messages that have statuses, each for itself or as columns."""

STATUSES_MIN: Final = 8
"""In a message, for columns: fewer cost both sides less as messages of their own, as measured; five hundred a third."""

_NONE: Final = -1
"""In place of a figure that is absent."""

_STATUS_LISTS: Final = (
    "task_ids",
    "sequences",
    "states",
    "reasons",
    "timestamps_ms",
    "exit_codes",
    "measured",
)
_USAGE_LISTS: Final = (
    "cpu_time_ms",
    "mem_bytes",
    "mem_peak_bytes",
    "mem_limit_bytes",
    "sandbox_bytes",
    "stdout_bytes",
    "stderr_bytes",
)
_USAGE_LEASTS: Final = (0, 0, 0, 0, 0, _NONE, _NONE)


# --- statuses ----------------------------------------------------------------------------------------------------


def fill_statuses(message: Statuses, statuses: Sequence[TaskStatus], *, in_columns: bool) -> None:
    """Write reports into an empty message, those about one task in their order."""
    if not in_columns or len(statuses) < STATUSES_MIN:
        for status in statuses:
            fill_status(message.statuses.add(), status)
        return
    groups: dict[tuple[FrameworkId, AgentId], list[TaskStatus]] = {}
    # Whoever reads takes the columns first, so what follows a status that stands for itself does so too.
    single: set[TaskId] = set()
    for status in statuses:
        if status.message or status.signal is not None or status.task_id in single:
            single.add(status.task_id)
            fill_status(message.statuses.add(), status)
        else:
            groups.setdefault((status.framework_id, status.agent_id), []).append(status)
    for group in groups.values():
        _fill_columns(message.columns.add(), group)


def _fill_columns(columns: types_pb2.StatusColumns, statuses: list[TaskStatus]) -> None:
    columns.framework_id = statuses[0].framework_id
    columns.agent_id = statuses[0].agent_id
    columns.task_ids.extend([status.task_id for status in statuses])
    columns.sequences.extend([status.sequence for status in statuses])
    columns.states.extend([STATES.of[status.state] for status in statuses])
    columns.reasons.extend([REASONS.of[status.reason] for status in statuses])
    times_ms = [status.timestamp_ms for status in statuses]
    columns.timestamps_ms.append(times_ms[0])
    columns.timestamps_ms.extend([after - before for before, after in pairwise(times_ms)])
    columns.exit_codes.extend([_or_none(status.exit_code) for status in statuses])
    columns.measured.extend([status.usage is not None for status in statuses])
    usages = [status.usage for status in statuses if status.usage is not None]
    if usages:
        _fill_usages(columns.usage, usages)


def _fill_usages(columns: types_pb2.UsageColumns, usages: list[TaskUsage]) -> None:
    columns.cpu_time_ms.extend([usage.cpu_time_ms for usage in usages])
    columns.mem_bytes.extend([usage.mem_bytes for usage in usages])
    columns.mem_peak_bytes.extend([usage.mem_peak_bytes for usage in usages])
    columns.mem_limit_bytes.extend([usage.mem_limit_bytes for usage in usages])
    columns.sandbox_bytes.extend([usage.sandbox_bytes for usage in usages])
    columns.stdout_bytes.extend([_or_none(usage.stdout_bytes) for usage in usages])
    columns.stderr_bytes.extend([_or_none(usage.stderr_bytes) for usage in usages])


def _or_none(figure: int | None) -> int:
    return _NONE if figure is None else figure


def read_statuses(field: str, message: Statuses, unknowns: Unknowns) -> list[TaskStatus]:
    """Reports, those about one task in their order, without those in a state that only a newer peer knows.

    Raises:
        InvalidFieldError: a field is wrong.
    """
    found: list[TaskStatus] = []
    for index, columns in enumerate(message.columns):
        found += _read_columns(f"{field}.columns[{index}]", columns, unknowns)
    if message.statuses:

        def read(name: str, single: types_pb2.TaskStatus) -> TaskStatus:
            return read_status(name, single, unknowns)

        found += unknowns.known(f"{field}.statuses", message.statuses, read)
    return found


def _read_columns(field: str, columns: types_pb2.StatusColumns, unknowns: Unknowns) -> list[TaskStatus]:
    framework_id, agent_id = FrameworkId(columns.framework_id), AgentId(columns.agent_id)
    read_id(f"{field}.framework_id", framework_id)
    if agent_id:
        read_id(f"{field}.agent_id", agent_id)
    lists = _lists(field, columns, _STATUS_LISTS)
    task_ids, sequences, states, reasons, differences_ms, exit_codes, measured = lists
    times_ms = list(accumulate(differences_ms))
    _check_ids(field, task_ids)
    _check_range(field, "sequences", sequences, 0, limits.COUNT_MAX)
    _check_range(field, "timestamps_ms", times_ms, 0, limits.TIME_MS_MAX)
    _check_range(field, "exit_codes", exit_codes, _NONE, limits.EXIT_CODE_MAX)
    usages = _read_usages(f"{field}.usage", columns.usage, sum(measured))
    found: list[TaskStatus] = []
    rows = zip(task_ids, sequences, states, reasons, times_ms, exit_codes, measured, strict=True)
    for task_id, sequence, state, reason, time_ms, exit_code, has_usage in rows:
        usage = next(usages) if has_usage else None
        try:
            found.append(
                TaskStatus(
                    framework_id=framework_id,
                    task_id=task_id,
                    agent_id=agent_id,
                    sequence=sequence,
                    state=STATES.by_number.get(state) or read_state(f"{field}.states", state),
                    reason=REASONS.by_number.get(reason) or read_reason(f"{field}.reasons", reason, unknowns),
                    timestamp_ms=time_ms,
                    exit_code=None if exit_code == _NONE else exit_code,
                    usage=usage,
                )
            )
        except UnknownValueError as error:
            unknowns.note(error.what, str(error))
    return found


def _read_usages(field: str, columns: types_pb2.UsageColumns, count: int) -> Iterator[TaskUsage]:
    """So many; figures that no measurement gives become the nearest that one could, as of a single usage."""
    lists = _lists(field, columns, _USAGE_LISTS)
    if len(lists[0]) != count:
        raise refusal(f"{field}.{_USAGE_LISTS[0]}", f"{count}, as many as measured says", len(lists[0]))
    if not count:
        return iter(())
    return map(_usage, *map(_clamped, lists, _USAGE_LEASTS))


def _usage(
    cpu_time_ms: int,
    mem_bytes: int,
    mem_peak_bytes: int,
    mem_limit_bytes: int,
    sandbox_bytes: int,
    stdout_bytes: int,
    stderr_bytes: int,
) -> TaskUsage:
    return TaskUsage(
        cpu_time_ms=cpu_time_ms,
        mem_bytes=mem_bytes,
        mem_peak_bytes=mem_peak_bytes,
        mem_limit_bytes=mem_limit_bytes,
        sandbox_bytes=sandbox_bytes,
        stdout_bytes=None if stdout_bytes == _NONE else stdout_bytes,
        stderr_bytes=None if stderr_bytes == _NONE else stderr_bytes,
    )


def _clamped(figures: list[int], least: int) -> list[int]:
    if min(figures) < least or max(figures) > QUANTITY_MAX:
        return [min(max(least, figure), QUANTITY_MAX) for figure in figures]
    return figures


# --- acknowledgements --------------------------------------------------------------------------------------------


def fill_acknowledgements(
    message: types_pb2.AcknowledgementColumns, items: Iterable[tuple[TaskId, int]]
) -> None:
    """Write sequences of tasks behind those that the message has."""
    task_ids, sequences = zip(*items, strict=True)
    message.task_ids.extend(task_ids)
    message.sequences.extend(sequences)


def read_acknowledgements(
    field: str, message: types_pb2.AcknowledgementColumns
) -> Iterator[tuple[TaskId, int]]:
    """Sequences of tasks; the ids beside them are the caller's to read.

    Raises:
        InvalidFieldError: a field is wrong.
    """
    task_ids, sequences = _lists(field, message, ("task_ids", "sequences"))
    _check_ids(field, task_ids)
    _check_range(field, "sequences", sequences, 0, limits.COUNT_MAX)
    return zip(task_ids, sequences, strict=True)


# --- single lists ------------------------------------------------------------------------------------------------


def _lists(field: str, message: Any, names: Sequence[str]) -> list[list[Any]]:
    """The lists of a message, which are of one length.

    Raises:
        InvalidFieldError: two are not; the text names both.
    """
    lists = [list(getattr(message, name)) for name in names]
    length = len(lists[0])
    for name, values in zip(names, lists, strict=True):
        if len(values) != length:
            raise refusal(f"{field}.{name}", f"{length}, as many as {field}.{names[0]}", len(values))
    return lists


def _check_ids(field: str, task_ids: list[str]) -> None:
    for index, task_id in enumerate(task_ids):
        if len(task_id) > limits.ID_LENGTH_MAX or is_id(task_id) is None:
            read_id(f"{field}.task_ids[{index}]", task_id)


def _check_range(field: str, name: str, numbers: list[int], least: int, most: int) -> None:
    if numbers and (min(numbers) < least or max(numbers) > most):
        wrong = next(index for index, number in enumerate(numbers) if not least <= number <= most)
        raise refusal(f"{field}.{name}[{wrong}]", f"{least} to {most}", numbers[wrong])
