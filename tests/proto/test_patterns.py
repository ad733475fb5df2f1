"""Patterns from outside may be useful, and may not run away."""

import pytest

from fairlead_proto.patterns import fault_in


@pytest.mark.parametrize(
    "pattern",
    [
        "eu-.*",
        ".*-gpu-.*",
        "rack[0-9]+",
        "(a|b|c)",
        "(?:eu|us)-west",
        r"\(+",
        r"[)*+]{2}",
        "[]*+]*",
        r"[^\]]+",
        "",
        "a?b?",
    ],
)
def test_useful_patterns_pass(pattern: str) -> None:
    assert fault_in(pattern) == ""


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("(a+)+$", "no repetition of a group"),
        ("(a|aa)*b", "no repetition of a group"),
        ("(?:a*){5}", "no repetition of a group"),
        (r"(a)\1", "no reference to a group"),
        ("a*b*c*", "at most 2 repetitions"),
        ("(", "a regular expression"),
        ("[a", "a regular expression"),
        ("a\\", "a regular expression"),
        ("a{99999999999999999999}", "a regular expression"),
    ],
)
def test_patterns_that_could_run_away_or_mean_nothing_are_named(pattern: str, fault: str) -> None:
    assert fault_in(pattern).startswith(fault)
