"""Charts show all that is in their tables: nothing is cut off at an edge, and nothing hides behind something else."""

from typing import TYPE_CHECKING

import pytest

from fairlead_lab.study.charts import CHARTS
from fairlead_lab.study.plot_data import Cell, Data
from fairlead_master.allocation.policies.names import EXAMPLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POLICIES = ("drf", "pf", "fifo")


def drawn(
    name: str,
    columns: tuple[str, ...],
    rows: list[tuple[Cell, ...]],
    policies: tuple[str, ...] = POLICIES,
) -> list["Axes"]:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    CHARTS[name](figure, Data(name=name, columns=columns, rows=rows), policies)
    return list(figure.axes)


def test_no_share_leaves_its_panel() -> None:
    rows: list[tuple[Cell, ...]] = [
        (policy, user, 3600.0 * hour, share / 10)
        for policy, share in zip(POLICIES, (1, 2, 9), strict=True)
        for user in ("ann", "bob", "all others")
        for hour in (1, 2)
    ]

    panels = drawn("dominant-shares", ("policy", "user", "time_s", "dominant_share"), rows)

    assert [axes.get_title(loc="left") for axes in panels] == ["ann", "bob"]
    assert all(axes.get_ylim()[1] > 0.9 for axes in panels)


@pytest.mark.parametrize("last_s", [7.0, 3_601.0, 86_400 * 98.3])
def test_an_axis_of_time_ends_with_a_number_beyond_the_last_run(last_s: float) -> None:
    rows: list[tuple[Cell, ...]] = [("drf", last_s / 2, 3, 1), ("drf", last_s, 800, 1)]

    (axes,) = drawn("queue", ("policy", "time_s", "waiting", "running"), rows)

    assert axes.get_xlim()[1] >= last_s
    assert axes.get_xticks()[-1] == axes.get_xlim()[1]
    assert axes.get_ylim()[1] > 800


def test_no_user_is_drawn_elsewhere_than_he_is() -> None:
    rows: list[tuple[Cell, ...]] = [
        ("fifo", user, 1, 1.0, 1 - ratio) for user, ratio in (("a", 1 / 700), ("b", 1.0), ("c", 7000.0))
    ]

    (axes,) = drawn("better-and-worse", ("policy", "user", "jobs", "mean_completion_s", "reduction"), rows)
    line = next(line for line in axes.get_lines() if line.get_label() == "fifo")

    assert list(line.get_ydata()) == pytest.approx([1 / 700, 1, 7000])
    assert axes.get_ylim()[0] < 1 / 700
    assert axes.get_ylim()[1] > 7000
    assert "1 ×" in [text.get_text() for text in axes.get_yticklabels()]


def test_a_class_of_a_few_jobs_is_not_charted() -> None:
    columns = ("policy", "tasks_least", "tasks_most", "jobs", "mean_completion_s", "reduction", "half_width")
    rows: list[tuple[Cell, ...]] = [
        (policy, least, least, jobs, 60.0, reduction, 0.1)
        for policy, reduction in zip(POLICIES, (0.0, 0.2, -2.4), strict=True)
        for least, jobs in ((1, 500), (2, 2))
    ]

    (axes,) = drawn("reduction-by-job-size", columns, rows)

    assert [text.get_text() for text in axes.get_xticklabels()] == ["1\n500 jobs"]
    assert axes.get_ylim()[1] > 3.4


def test_where_nobody_waits_stands_a_zero() -> None:
    columns = ("policy", "largest_size", "tasks", "mean_wait_s", "p50_wait_s", "p95_wait_s", "p99_wait_s")
    rows: list[tuple[Cell, ...]] = [
        (policy, 0.5, 40, mean, 0, 0, 9) for policy, mean in zip(POLICIES, (0, 0, 7.0), strict=True)
    ]

    (axes,) = drawn("wait-by-demand-size", columns, rows)

    assert [text.get_text() for text in axes.texts] == ["0", "0"]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["up to 50 %\n40 tasks"]
    assert not [line for line in axes.get_lines() if line.get_marker() == "_"]  # of 95 % who wait for nothing


def test_lines_of_one_course_are_all_seen_however_many_policies() -> None:
    policies = tuple(EXAMPLES)
    rows: list[tuple[Cell, ...]] = [(policy, 10.0, 5, 5) for policy in policies]

    (axes,) = drawn("queue", ("policy", "time_s", "waiting", "running"), rows, policies)
    widths = [patch.get_linewidth() for patch in axes.patches]

    assert widths == sorted(set(widths), reverse=True)
    assert len(widths) == len(policies) > 10
    assert len({(patch.get_edgecolor(), patch.get_linestyle()) for patch in axes.patches}) == len(policies)
