"""What follows from a solution."""

from fairlead_master.solvers.problem import Solution
from fairlead_master.solvers.registry import solve
from fairlead_master.solvers.report import report
from tests.solvers.builders import a_problem, nine_and_eighteen


def test_the_drf_example_as_json() -> None:
    """DRF paper, section 4.1: <3, 12> and <6, 2>, dominant shares of two thirds, CPUs full."""
    problem = nine_and_eighteen()

    document = report(problem, "drf", solve(problem, "drf")).as_json()

    assert document == {
        "policy": "drf",
        "mode": "fluid",
        "tasks": {"A": 3.0, "B": 2.0},
        "allocated": {"A": {"cpus": 3.0, "mem": 12.0}, "B": {"cpus": 6.0, "mem": 2.0}},
        "dominant_share": {"A": 3 * (4 / 18), "B": 2 * (3 / 9)},
        "dominant_resource": {"A": "mem", "B": "cpus"},
        "utilization": {"cpus": 1.0, "mem": 14 / 18},
        "saturated": ["cpus"],
    }


def test_whole_tasks_have_steps_and_prices_have_multipliers() -> None:
    problem = nine_and_eighteen()

    discrete = report(problem, "drf", solve(problem, "drf", discrete=True)).as_json()
    priced = report(problem, "pf", Solution(tasks=(0.0, 0.0), multipliers=(1.5, 0.5))).as_json()

    assert discrete["mode"] == "discrete"
    assert discrete["tasks"] == {"A": 3, "B": 2}
    assert discrete["steps"] == ["A", "B", "A", "B", "A"]
    assert "multipliers" not in discrete
    assert priced["multipliers"] == {"cpus": 1.5, "mem": 0.5}
    assert "steps" not in priced


def test_who_got_nothing_has_a_dominant_resource_by_demand() -> None:
    """And of equal shares the first resource is named; what there is none of counts nowhere."""
    problem = a_problem((10, 10, 0), {"A": (2, 2, 0), "B": (0, 1, 0)})

    found = report(problem, "fifo", solve(problem, "fifo"))

    assert found.dominant_shares == (1.0, 0.0)
    assert found.dominant_resources == ("cpus", "mem")
    assert found.utilization == (1.0, 1.0, 0.0)


def test_slots_may_promise_more_than_there_is() -> None:
    problem = nine_and_eighteen()

    found = report(problem, "slots:8", solve(problem, "slots:8"))

    assert found.utilization == (16 / 9, 20 / 18)
    assert found.saturated == ("cpus", "mem")
