import json
import os
import pty
import signal
import subprocess
import sys

import pytest

from fairlead_cli.errors import EXIT_INTERRUPTED
from fairlead_cli.properties import blocks
from tests.cli.conftest import Invoke


def test_properties_prints_the_table_and_the_counterexamples(invoke: Invoke) -> None:
    outcome = invoke("properties", "--policy", "asset", "--policy", "drf", "--trials", "20")

    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0].split() == ["PROPERTY", "asset", "drf"]
    assert lines[1].split() == ["sharing", "incentive", "✗", "=", "✓", "="]
    assert any(line.startswith("asset violates sharing incentive (001 theorem 1;") for line in lines)
    assert "001 Ghodsi et al." in outcome.out, "papers are cited by number"
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


@pytest.mark.parametrize(
    "policy", ["", "drff", "drf:2", "slots:0", "slots:many", "alpha", "alpha:-1", "alpha:nan", "baa:most"]
)
def test_properties_refuses_what_is_no_policy_in_one_line(invoke: Invoke, policy: str) -> None:
    outcome = invoke("properties", "--policy", policy)

    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("fairlead: policy: expected ")
    assert repr(policy) in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("option", "value"), [("--trials", "1000001"), ("--trials", "few"), ("--seed", "1.5")]
)
def test_properties_refuses_what_is_no_number_it_can_use(invoke: Invoke, option: str, value: str) -> None:
    outcome = invoke("properties", option, value)

    assert outcome.code == 2
    assert option in outcome.err
    assert outcome.err.count("\n") == 1


def test_long_search_shows_where_it_is_and_ends_cleanly_on_ctrl_c() -> None:
    """A terminal for stderr, so that the first state tells that the search is on its way."""
    ours, theirs = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "fairlead_cli.main",
        "properties",
        "--policy",
        "drf",
        "--trials",
        "1000000",
    ]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs) as search:
            os.close(
                theirs
            )  # So that a search that ends early is an error of the read below, not a wait for ever.
            seen = b""
            while b"1 of 10: drf, sharing incentive, problem 1" not in seen:
                seen += os.read(ours, 1000)
            search.send_signal(signal.SIGINT)
            out, _ = search.communicate(timeout=60)
        rest = os.read(ours, 100_000)
    finally:
        os.close(ours)

    assert search.returncode == EXIT_INTERRUPTED
    assert out == b""
    assert (seen + rest).rstrip().endswith(b"\x1b[K")


def test_table_is_broken_between_policies_where_it_is_too_wide() -> None:
    policies = ["drf", "max-min:cpus", "pf"]

    assert blocks(policies, 100) == [policies]
    assert blocks(policies, 21) == [["drf", "max-min:cpus"], ["pf"]]
    assert blocks(policies, 1) == [["drf"], ["max-min:cpus"], ["pf"]]
