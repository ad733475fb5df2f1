"""The figures of paper 004: their contract, and that their verdicts come from what was simulated."""

from functools import cache
from itertools import pairwise

import pytest

from fairlead_lab.papers.bbf import EXPERIMENTS, bottlenecks, entitlements, sharing
from fairlead_lab.papers.bbf.study import Study
from fairlead_lab.papers.catalogue import find
from fairlead_lab.papers.experiment import Agreement, Result, RunOptions
from fairlead_lab.papers.statements import about, between, judge_by_count

STUDIES = (*sharing.STUDIES, *entitlements.STUDIES, *bottlenecks.STUDIES)
IDS = [experiment.id for experiment in EXPERIMENTS]
QUICK = RunOptions(seed=1, is_quick=True)


@cache
def found(experiment_id: str) -> Result:
    return find(experiment_id).run(QUICK)


def test_there_is_one_for_each_figure_of_a_simulation() -> None:
    assert [f"bbf-fig{figure}" for figure in range(2, 15)] == IDS


@pytest.mark.parametrize("experiment_id", IDS)
def test_rows_are_cumulative_use_at_least_once_a_second(experiment_id: str) -> None:
    experiment = find(experiment_id)
    assert experiment.columns == ("time_s", "process", "resource", "used_s")

    result = found(experiment_id)

    used: dict[tuple[object, object], dict[float, float]] = {}
    for time_s, process, resource, used_s in result.rows:
        assert isinstance(time_s, float)
        assert isinstance(used_s, float)
        used.setdefault((process, resource), {})[time_s] = used_s
    for line in used.values():
        times = list(line)
        assert times[0] == 0
        assert line[0] == 0
        for earlier, later in pairwise(times):
            assert 0 < later - earlier <= 1
            assert -1e-6 <= line[later] - line[earlier] <= later - earlier + 1e-6
    assert {process for process, _ in used} == set(result.finish_s)
    for (name, _), line in used.items():
        # What a process has used does not grow once it is done in every run.
        end_s = max(line)
        assert result.finish_s[str(name)] <= end_s
        assert line[end_s] > 0


@pytest.mark.parametrize("experiment_id", IDS)
def test_what_the_text_says_is_found(experiment_id: str) -> None:
    verdict = found(experiment_id).verdict

    assert verdict.agreement is not Agreement.DIFFERS, str(verdict)


@pytest.mark.parametrize("experiment_id", ["bbf-fig5", "bbf-fig6", "bbf-fig8"])
def test_the_same_seed_gives_the_same_result_and_another_another(experiment_id: str) -> None:
    experiment = find(experiment_id)

    again, other = experiment.run(QUICK), experiment.run(RunOptions(seed=2, is_quick=True))

    assert experiment.as_json(again, 1) == experiment.as_json(found(experiment_id), 1)
    is_random = experiment_id != "bbf-fig8"
    assert (other.rows != again.rows) is is_random


def test_finish_times_of_the_exact_runs() -> None:
    """Nothing is random in figures 2, 3 and 7; blue's 5 s at two thirds end after 12.5 s but for two quanta."""
    assert found("bbf-fig2").finish_s == {"red": 15.0, "blue": pytest.approx(12.5, abs=0.3)}
    assert found("bbf-fig3").finish_s == pytest.approx({"10%": 40, "20%": 35, "30%": 30, "40%": 25}, abs=1)
    assert found("bbf-fig4").finish_s == pytest.approx({"blue": 50.5, "green": 75, "red": 100}, rel=0.03)


@pytest.mark.parametrize("study", STUDIES, ids=IDS)
def test_every_verdict_can_fail(study: Study) -> None:
    """Under another policy, without priorities, the same programs contradict the text of nearly every figure."""
    runs = study.simulate(QUICK, policy="fifo")

    verdict = judge_by_count(study.claims(runs, QUICK))

    # Figure 11 is about processes that are all equal, which need no priorities.
    assert (verdict.agreement is Agreement.DIFFERS) is (study.id != "bbf-fig11"), str(verdict)


def test_a_verdict_names_what_differs_or_the_number_that_is_furthest_off() -> None:
    near = about("red of the CPU", 0.331, 0.33, 0.02)
    off = about("blue of the CPU", 0.683, 0.67, 0.02)
    broken = about("green of the CPU", 0.4, 0.5, 0.02)
    words = between("gap [s]", "terminates first", 2.7, low=0)

    assert str(judge_by_count([near, words])) == "agrees: 1 number and 1 statement of the text"
    assert str(judge_by_count([words, words])) == "agrees: 2 statements of the text"
    assert str(judge_by_count([near, off])) == (
        "agrees within 1.3 percentage points (2 numbers): blue of the CPU 0.683 (text: 67 %)"
    )
    assert str(judge_by_count([near, broken])) == "differs: green of the CPU 0.4 (text: 50 %)"


@pytest.mark.parametrize("experiment_id", ["bbf-fig2", "bbf-fig9", "bbf-fig10"])
def test_figures_are_drawn_with_a_lane_for_each_resource(experiment_id: str) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    from matplotlib.figure import Figure

    figure = Figure()
    result = found(experiment_id)

    find(experiment_id).draw(figure, result)

    resources = {row[2] for row in result.rows}
    lanes = figure.axes[0]
    assert {label.get_text() for label in lanes.get_yticklabels()} == resources
    assert lanes.lines, "bottlenecks are marked"
    processes = [text.get_text() for text in figure.axes[-1].get_legend().get_texts()]
    assert processes == list(dict.fromkeys(str(row[1]).split()[0] for row in result.rows))
    assert len(figure.axes) == {"bbf-fig2": 2, "bbf-fig9": 3, "bbf-fig10": 6}[experiment_id]
