import json

from tests.cli.conftest import Invoke


def test_properties_prints_the_table_and_the_counterexamples(invoke: Invoke) -> None:
    outcome = invoke("properties", "--policy", "asset", "--policy", "drf", "--trials", "20")

    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0].split() == ["PROPERTY", "asset", "drf"]
    assert lines[1].split() == ["sharing", "incentive", "✗", "=", "✓", "="]
    assert any(line.startswith("asset violates sharing incentive (001 theorem 1;") for line in lines)
    assert outcome.err == ""


def test_properties_as_json_says_what_was_tried_and_found(invoke: Invoke) -> None:
    rows = json.loads(invoke("properties", "--policy", "drf", "--trials", "5", "--json").out)

    assert len(rows) == 10
    by_name = {row["property"]: row for row in rows}
    assert by_name["envy-freeness"]["holds"]
    assert by_name["envy-freeness"]["counterexample"] is None
    assert by_name["resource monotonicity"]["counterexample"]["problem"]["capacity"].keys() == {"cpus", "mem"}


def test_properties_of_an_unknown_policy_is_invalid_input(invoke: Invoke) -> None:
    outcome = invoke("properties", "--policy", "drf", "--policy", "max-min:gold")

    assert outcome.code == 2
    assert outcome.out == ""
    assert "expected max-min:RES with RES one of cpus, mem, disk" in outcome.err
    assert outcome.err.count("\n") == 1


def test_properties_wants_at_least_one_trial(invoke: Invoke) -> None:
    assert invoke("properties", "--trials", "0").code == 2
