"""The folder of a study: one page that stands alone, a plot and a table of numbers for each chart."""

import builtins
import csv
import json
import shutil
import subprocess
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from fairlead_lab.plotting import PlotsUnavailable
from fairlead_lab.study import report
from fairlead_lab.study.advice import doubts, summary
from fairlead_lab.study.charts import CHARTS
from fairlead_lab.study.questions import answers
from fairlead_lab.study.report import PageUnavailable, write_report
from fairlead_lab.study.run import run_study
from fairlead_lab.study.study import Outcome, SimulationOptions, Study
from fairlead_lab.study.tables import refusals
from fairlead_master.allocation.policies.names import EXAMPLES
from fairlead_sim.node import Node
from fairlead_sim.workload import Bundle, Job
from tests.laboratory.workloads.workload_builders import GIB

NODES = (Node(name="a", total=(4000, 8 * GIB, 0, 0)), Node(name="b", total=(4000, 8 * GIB, 0, 0)))
SHARP = "<b>$x_1$ & co</b>"
"""A name that would break a page or a plot that takes it for more than a name."""
_VOID = frozenset({"meta", "img", "br"})
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@dataclass(frozen=True)
class Crowd:
    """Two users that want more than there is, one with small tasks and one with large ones."""

    is_gang: bool = False

    def jobs(self, seed: int, /) -> list[Job]:
        found = []
        for number in range(12):
            user, tasks, unit = (
                ("ann", 5 + seed, (1000, GIB, 0, 0)) if number % 2 else (SHARP, 2, (2000, 4 * GIB, 0, 0))
            )
            bundle = Bundle(
                job_id="",
                user=user,
                stage=0,
                tasks=tasks,
                unit=unit,
                submit_ms=0,
                duration_ms=9000 + number,
                is_gang=self.is_gang,
            )
            found.append(Job(job_id=f"j{number}", user=user, submit_ms=number * 1000, bundles=(bundle,)))
        return found


def a_study(*policies: str, seeds: tuple[int, ...] = (1,)) -> Outcome:
    study = Study(source=Crowd(), nodes=NODES, policies=policies, seeds=seeds)
    return run_study(study, processes=1)


def write(folder: Path, outcome: Outcome) -> str:
    write_report(folder, outcome, title="a crowd", command="fairlead simulate --trace 'a crowd.csv'")
    return (folder / "report.html").read_text(encoding="utf-8")


class Page(HTMLParser):
    """Every element and every address of a page; unbalanced elements are an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.sources: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.sources += [value or "" for name, value in attrs if name in {"src", "href", "srcset", "data"}]
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def page_text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of a study of two policies under one seed; drawing the charts takes seconds."""
    pytest.importorskip("matplotlib")
    return write(tmp_path_factory.mktemp("study"), a_study("drf", "slots:8"))


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts are empty, for tests of what is beside them: they are most of what a page costs."""
    monkeypatch.setattr(report, "draw_all", lambda data, _policies: dict.fromkeys(data, b""))


def test_the_page_needs_nothing_from_elsewhere(page_text: str) -> None:
    page = Page(page_text)

    assert not {"script", "link", "iframe", "object"} & set(page.elements)
    assert len(page.sources) == len(CHARTS)
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)
    assert "url(" not in page.text
    assert "@import" not in page.text


def test_each_chart_has_its_numbers_beside_it(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    write(tmp_path, a_study("drf", "slots:3", "fifo", seeds=(1, 2, 3)))

    for name in CHARTS:
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        with (tmp_path / f"{name}.csv").open(newline="") as file:
            rows = list(csv.reader(file))
        assert len({len(row) for row in rows}) == 1
        assert len(rows) > 2


@pytest.mark.usefixtures("undrawn")
def test_the_page_says_which_seeds_it_shows(tmp_path: Path) -> None:
    page = Page(write(tmp_path, a_study("drf", "fifo", seeds=(4, 5))))

    assert page.text.count("This is the run with seed 4 alone.") == 3  # those over time
    assert page.text.count("Jobs of all 2 seeds together.") == 2
    assert page.text.count("Means over all 2 seeds") == len(CHARTS) - 5 + 1  # and the table of users


def test_whatever_is_wide_can_be_scrolled(page_text: str) -> None:
    assert page_text.count('<div class="scroll') == page_text.count("<table") + page_text.count("<img") > 0


def test_names_of_users_are_names(page_text: str) -> None:
    assert SHARP not in page_text
    assert SHARP in Page(page_text).text


def test_the_page_says_what_to_choose_and_what_to_doubt(page_text: str) -> None:
    page = Page(page_text)

    assert "Which policy?" in page.text
    assert "among the best in" in page.text
    assert "Mean time from submission to the end of a job, beside drf: slots:8" in page.text
    assert "dominant resource fairness: next is who" in page.text
    assert "Jain's index of dominant shares, a dominant share being" in page.text
    assert "8 cpus, 16 GiB mem" in page.text
    assert "Under slots:8" in page.text
    assert "promised more than they have" in page.text
    assert "† Not compared: under slots:8" in page.text
    assert "--slowdown 10" in page.text
    assert "fairlead simulate --trace 'a crowd.csv'" in page.text


def test_who_promises_twice_is_not_best_at_starting_early() -> None:
    outcome = a_study("drf", "slots:8")

    for answer in answers(outcome):
        assert not (answer.question.measure.is_of_starts and 1 in answer.best)
    assert any("not compared in waits" in line for line in summary(outcome, answers(outcome)))


def test_chance_is_not_called_best() -> None:
    # One policy under two names.
    outcome = a_study("pf", "ceei", seeds=(1, 2, 3))

    assert not any(answer.best for answer in answers(outcome))
    assert all(answer.has_interval for answer in answers(outcome))
    assert "ceei no difference that could not be chance" in " ".join(summary(outcome, answers(outcome)))


def test_lots_that_gangs_draw_are_a_doubt_of_a_single_run() -> None:
    def of(*seeds: int, is_gang: bool) -> list[str]:
        source = Crowd(is_gang=is_gang)
        study = Study(source=source, nodes=NODES, policies=("drf", "fifo"), seeds=seeds)
        return doubts(run_study(study, processes=1))

    (doubt,) = of(1, is_gang=True)

    assert doubt.startswith("12 jobs are gangs")
    assert "--seeds" in doubt
    assert of(1, 2, is_gang=True) == []
    assert of(1, is_gang=False) == []


def test_hosts_that_slots_draw_are_a_doubt_of_a_single_run() -> None:
    (doubt,) = doubts(a_study("drf", "slots:2"))

    assert doubt.startswith("Under slots:2 tasks are placed on hosts by chance")
    assert doubts(a_study("drf", "slots:2", seeds=(1, 2))) == []
    assert doubts(a_study("slots:2")) == []


def test_what_is_refused_under_every_seed_is_said_once() -> None:
    small = (Node(name="a", total=(1000, 8 * GIB, 0, 0)),)
    study = Study(
        source=Crowd(), nodes=small, policies=("drf", "pf"), seeds=(1, 2),
        options=SimulationOptions(horizon_ms=15_000),
    )  # fmt: skip

    refused, cut_short, _ = refusals(run_study(study, processes=1))

    assert refused == "refused: 6 jobs, the first of them j0: a task wants more cpus than any node has"
    assert cut_short == "cut short: under drf, pf 6 of 6 jobs were not done at the end"


@pytest.mark.usefixtures("undrawn")
def test_every_kind_of_policy_is_put_in_words(tmp_path: Path) -> None:
    text = write(tmp_path, a_study(*EXAMPLES))

    assert [policy for policy in EXAMPLES if f"<dt>{policy}</dt><dd>" not in text] == []
    assert "every host has 4 places" in text
    assert "equal shares of cpus" in text


def test_one_policy_is_nothing_to_choose_from(tmp_path: Path) -> None:
    page = Page(write(tmp_path, a_study("drf")))

    assert "nothing to choose from" in page.text
    assert not (tmp_path / "better-and-worse.png").exists()


def test_the_same_study_is_the_same_bytes(tmp_path: Path) -> None:
    found = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        write(folder, a_study("pf", "slots:3", seeds=(1, 2)))
        found.append({path.name: path.read_bytes() for path in folder.iterdir()})

    assert found[0] == found[1]


def test_without_the_library_that_draws_there_are_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid(monkeypatch, "matplotlib")
    with pytest.raises(PlotsUnavailable, match="pip install"):
        write(tmp_path, a_study("drf", "fifo"))

    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "matplotlib is not installed" in page.text
    assert "table" in page.elements
    assert json.loads((tmp_path / "results.json").read_text())["policies"][1]["policy"] == "fifo"


@pytest.mark.usefixtures("undrawn")
def test_without_the_template_engine_there_is_all_but_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "report.html").write_text("of a former study")

    forbid(monkeypatch, "jinja2")
    with pytest.raises(PageUnavailable, match=r"pip install 'fairlead\[report\]'"):
        write(tmp_path, a_study("drf", "fifo"))

    assert not (tmp_path / "report.html").exists()
    assert (tmp_path / "summary.csv").exists()
    assert (tmp_path / "results.json").exists()


def forbid(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    """Make a library one that is not installed."""
    imported = builtins.__import__

    def without(name: str, *arguments: Any, **options: Any) -> Any:
        if name.startswith(library):
            raise ImportError(name)
        return imported(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)


def test_a_browser_shows_the_page(tmp_path: Path, page_text: str) -> None:
    browser = next((path for name in _BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        pytest.skip(f"none of {', '.join(_BROWSERS)} is installed")
    (tmp_path / "report.html").write_text(page_text, encoding="utf-8")

    command = [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--dump-dom",
        (tmp_path / "report.html").as_uri(),
    ]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert Page(shown.stdout).text.count("Which policy?") == 1
