"""Policies on a live cluster beside the exact answer: a short real run."""

import pytest

from fairlead_bench import live_policies
from fairlead_bench.live_policies import COMPETITORS, measure, the_problem
from fairlead_master.solvers import registry


def test_the_solver_is_asked_about_the_cluster_that_runs() -> None:
    problem = the_problem()

    assert problem.capacity == tuple(n * problem.nodes[0].count for n in problem.nodes[0].capacity)
    assert [user.name for user in problem.users] == [c.name for c in COMPETITORS]


@pytest.mark.shell
def test_what_ran_is_shown_beside_what_should(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not how far shares have settled, which takes 15 s, but that tasks are counted and put beside the right answers."""
    monkeypatch.setattr(live_policies, "SETTLE_S", 2.0)

    rows = measure(["drf"], seconds=1.0, seed=1)

    assert [(row.policy, row.name) for row in rows] == [("drf", c.name) for c in COMPETITORS]
    fluid = registry.solve(the_problem(), "drf").tasks
    assert [row.fluid for row in rows] == list(fluid)
    problem = the_problem()
    held = problem.used([row.live for row in rows])
    assert all(0 < amount <= total for amount, total in zip(held, problem.capacity, strict=True))
