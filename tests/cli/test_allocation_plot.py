"""Plots of `fairlead allocate`: what is drawn, and that a file is replaced whole or not at all."""

import json
from pathlib import Path
from typing import Any

import pytest

from fairlead_cli import allocation_plot
from fairlead_master.solvers.registry import solve
from fairlead_master.solvers.report import report
from tests.cli.conftest import Invoke
from tests.solvers.builders import a_problem, nine_and_eighteen

PROBLEM = {
    "capacity": {"cpus": 9, "mem": 18},
    "users": [
        {"name": "_a$1$", "demand": {"cpus": 1, "mem": 4}},
        {"name": "共有", "demand": {"cpus": 3, "mem": 1}},
    ],
}


@pytest.fixture
def problem(tmp_path: Path) -> str:
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(PROBLEM))
    return str(path)


@pytest.fixture
def matplotlib() -> Any:
    return pytest.importorskip("matplotlib", reason="the extra `plot` is not installed; make setup does that")


@pytest.mark.parametrize(
    ("name", "beginning"), [("out.png", b"\x89PNG\r\n"), ("out.svg", b"<?xml"), ("out.PDF", b"%PDF")]
)
def test_a_plot_is_written_in_the_format_of_its_name(
    invoke: Invoke, matplotlib: Any, problem: str, tmp_path: Path, name: str, beginning: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")

    outcome = invoke("allocate", problem, "--plot", str(path), "--policy", "pf")

    assert outcome.code == 0
    assert outcome.err == ""
    assert path.read_bytes().startswith(beginning)
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([name, "problem.json"])


def test_the_plot_says_who_holds_what(matplotlib: Any) -> None:
    """Bars are as long as shares, one after the other; names are shown as they are, dollars and all."""
    names = {"_a$1$": (1, 4), "B": (3, 1)}
    found = a_problem((9, 18), names)
    figure = allocation_plot._figure(report(found, "drf", solve(found, "drf")))

    (axes,) = figure.axes
    bars = [[(bar.get_x(), bar.get_width()) for bar in container] for container in axes.containers]
    assert bars == [
        [pytest.approx((0, 3 / 9)), pytest.approx((0, 12 / 18))],
        [pytest.approx((3 / 9, 6 / 9)), pytest.approx((12 / 18, 2 / 18))],
    ]
    labels = axes.get_legend().get_texts()
    assert [label.get_text() for label in labels] == ["_a$1$", "B"]
    assert not any(label.get_parse_math() for label in labels)
    handles = axes.get_legend().legend_handles
    assert [handle.get_facecolor() for handle in handles] == [
        container.patches[0].get_facecolor() for container in axes.containers
    ]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["cpus", "mem"]


@pytest.mark.parametrize(("count", "drawn"), [(1, 1), (18, 18), (19, 19), (40, 19)])
def test_many_users_are_drawn_as_the_largest_and_the_others(matplotlib: Any, count: int, drawn: int) -> None:
    problem = a_problem((100, 100), {f"u{n}": (1, 1 + n % 3) for n in range(count)})
    found = report(problem, "fifo", solve(problem, "max-min"))

    holders = allocation_plot.holders(found)

    assert len(holders) == drawn
    assert [sum(column) for column in zip(*(holder.shares for holder in holders), strict=True)] == [
        pytest.approx(part) for part in found.utilization
    ]
    if count > allocation_plot.USERS_MAX:
        rest = count - allocation_plot.USERS_MAX
        assert holders[-1].label == f"{rest} other{'s' if rest > 1 else ''}"
    assert len(allocation_plot._figure(found).axes[0].containers) == drawn


def test_without_matplotlib_one_line_says_how_to_install_it(
    invoke: Invoke, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allocation_plot, "find_spec", lambda _name: None)
    path = tmp_path / "out.png"
    path.write_bytes(b"old")

    outcome = invoke("allocate", problem, "--plot", str(path))

    assert outcome.code == 1
    assert outcome.out == ""
    assert outcome.err.startswith("fairlead: --plot needs matplotlib, which is not installed: pip install")
    assert outcome.err.count("\n") == 1
    assert path.read_bytes() == b"old"


def test_bad_input_leaves_an_existing_plot_alone(
    invoke: Invoke, matplotlib: Any, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "out.png"
    path.write_bytes(b"old")
    bad = tmp_path / "bad.json"
    bad.write_text('{"capacity": {"cpus": 1}, "users": []}')

    assert invoke("allocate", str(bad), "--plot", str(path)).code == 2
    assert invoke("allocate", problem, "--policy", "best", "--plot", str(path)).code == 2
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("out.bmp", "--plot: expected a name that ends in .png, .svg, .pdf, got"),
        ("out", "--plot: expected a name that ends in .png, .svg, .pdf, got"),
        ("absent/out.png", "--plot: expected a directory that is there, got"),
    ],
)
def test_a_plot_that_cannot_be_is_refused_before_anything_is_read(
    invoke: Invoke, tmp_path: Path, name: str, message: str
) -> None:
    outcome = invoke("allocate", str(tmp_path / "absent.json"), "--plot", str(tmp_path / name))

    assert outcome.code == 2
    assert outcome.err.startswith(f"fairlead: {message}")
    assert outcome.err.count("\n") == 1


def test_a_plot_that_cannot_be_written_prints_nothing_else(
    invoke: Invoke, matplotlib: Any, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a directory that may only be read, or on a full disk. Root may write anywhere, so the disk is full here."""

    def full(_path: Path, _content: bytes) -> int:
        raise OSError(28, "No space left on device")

    path = tmp_path / "out.png"
    path.write_bytes(b"old")
    monkeypatch.setattr(Path, "write_bytes", full)

    outcome = invoke("allocate", problem, "--plot", str(path))

    assert outcome == (1, "", f"fairlead: --plot: cannot write {path}: No space left on device\n")
    assert path.read_bytes() == b"old"


def test_a_report_without_anything_held_can_be_drawn(matplotlib: Any) -> None:
    problem = nine_and_eighteen(caps={"A": 0.5, "B": 0.5})
    found = report(problem, "drf", solve(problem, "drf", discrete=True))

    assert len(allocation_plot._figure(found).axes[0].containers) == 2
