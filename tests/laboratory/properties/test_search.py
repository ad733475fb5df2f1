import os
import subprocess
import sys
from itertools import islice
from math import inf
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_lab.properties.claims import claim_about, differs
from fairlead_lab.properties.definitions import PROPERTIES, common_dominant
from fairlead_lab.properties.instances import Shape, draw_problems
from fairlead_lab.properties.minimising import is_sound
from fairlead_lab.properties.model import Case, Setting
from fairlead_lab.properties.search import (
    Verdict,
    check_policies,
    draw_cases,
    examine,
    one_of_each_kind,
    policy_by_name,
    search,
)
from fairlead_master.solvers.problem import Problem, SolverError
from fairlead_master.solvers.registry import NAMES

BY_NAME = {each.name: each for each in PROPERTIES}


def searched(policy: str, name: str, shape: Shape = Shape(), trials: int = 150) -> Verdict:  # noqa: B008 - frozen
    return search(policy, policy_by_name(policy), BY_NAME[name], trials=trials, seed=1, shape=shape)


@given(
    seed=st.integers(0, 1000),
    setting=st.sampled_from(Setting),
    shape=st.builds(Shape, st.booleans(), st.booleans(), st.booleans()),
)
def test_drawn_problems_are_sound_of_their_shape_and_setting(
    seed: int, setting: Setting, shape: Shape
) -> None:
    for problem in islice(draw_problems(Random(seed), shape, setting), 20):
        assert is_sound(Case(problem))
        assert shape.admits(problem)
        assert setting is not Setting.ONE_RESOURCE or len(problem.resources) == 1
        assert setting is not Setting.ONE_BOTTLENECK or common_dominant(problem) == 0


def test_freedoms_of_a_shape_are_used() -> None:
    shape = Shape(is_weighted=True, is_capped=True)
    problems = list(islice(draw_problems(Random(1), shape, Setting.ANY), 50))
    users = [user for problem in problems for user in problem.users]

    assert any(not all(user.demand) for user in users)
    assert any(user.max_tasks < inf for user in users)
    assert len({user.weight for user in users}) > 1
    assert {len(problem.resources) for problem in problems} == {1, 2, 3}
    assert {len(problem.users) for problem in problems} == {2, 3, 4}


def test_all_policies_face_the_same_cases() -> None:
    asked: dict[str, list[Problem]] = {"first": [], "second": []}
    for name, problems in asked.items():

        def allocate(problem: Problem, to: list[Problem] = problems) -> tuple[float, ...]:
            to.append(problem)
            return (0.0,) * len(problem.users)

        search(name, allocate, BY_NAME["scale invariance"], trials=30, seed=1, shape=Shape())

    assert asked["first"] == asked["second"]
    assert len(asked["first"]) > 60


def test_another_seed_draws_other_cases() -> None:
    each = BY_NAME["strategy-proofness"]

    first, again, other = (
        list(draw_cases(each, trials=5, seed=seed, shape=Shape(), examples=())) for seed in (1, 1, 2)
    )

    assert first == again
    assert first != other


def test_verdicts_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "from fairlead_lab.properties.search import examine; from fairlead_lab.properties.instances import Shape;"
        "print(list(examine(['asset'], trials=20, seed=3, shape=Shape())))"
    )

    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
        ).stdout
        for hash_seed in ("1", "2")
    }

    assert len(outputs) == 1


def test_violation_that_needs_a_zero_is_told_from_one_that_does_not() -> None:
    drf = searched("drf", "population monotonicity")

    assert not drf.holds
    assert drf.needs_zero_demand
    assert searched("drf", "population monotonicity", Shape(is_positive=True)).holds
    assert not searched("drf", "resource monotonicity").needs_zero_demand


def test_policy_that_can_be_asked_about_nothing_has_no_verdict() -> None:
    def refuse(problem: Problem) -> tuple[float, ...]:
        raise SolverError(f"no answer for {problem}")

    verdict = search("none", refuse, BY_NAME["envy-freeness"], trials=5, seed=1, shape=Shape())

    assert verdict.trials == 0
    assert not differs(verdict, claim_about("drf", "envy-freeness"))


@pytest.mark.parametrize(
    "name", ["sharing incentive", "envy-freeness", "single-resource fairness", "local fairness"]
)
def test_weighted_drf_keeps_its_properties_in_their_weighted_form(name: str) -> None:
    assert searched("drf", name, Shape(is_weighted=True)).holds


@pytest.mark.parametrize(
    "name",
    ["sharing incentive", "strategy-proofness", "envy-freeness", "Pareto efficiency", "bottleneck fairness"],
)
def test_drf_keeps_its_properties_where_users_want_a_few_tasks_only(name: str) -> None:
    assert searched("drf", name, Shape(is_capped=True)).holds


def test_one_policy_of_every_kind_can_be_asked() -> None:
    policies = one_of_each_kind()

    assert len(policies) == len(NAMES)
    check_policies(policies)


def test_unknown_policy_is_refused_before_the_search() -> None:
    with pytest.raises(SolverError, match="policy: expected one of drf"):
        next(examine(["drf", "drff"], trials=10**6, seed=1, shape=Shape()))
