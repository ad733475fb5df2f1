"""Patterns from outside may be useful, and may not run away."""

import subprocess
import sys

import pytest

from fairlead_proto import patterns
from fairlead_proto.patterns import fault_in, matches


@pytest.mark.parametrize(
    ("pattern", "value", "fits"),
    [
        ("eu-.*", "eu-west", True),
        ("eu-.*", "my-eu-west", False),
        ("eu", "eu-west", False),
        (".*-gpu-.*", "a-gpu-1", True),
        ("rack[0-9]+", "rack12", True),
        ("rack[0-9]+", "rack12\n", False),
        ("(a|b|c)", "b", True),
        ("(?:eu|us)-west", "us-west", True),
        (r"(?:rack|row)(?:-[0-9]{1,3})*", "rack-1-22-333", True),
        (r"[^\]]+", "a]", False),
        ("r.ck", "r\N{LATIN SMALL LETTER U WITH DIAERESIS}ck", True),
        ("(?i)EU-.*", "eu-west", True),
        ("", "", True),
        ("", "a", False),
    ],
)
def test_a_pattern_is_matched_with_the_whole_value(pattern: str, value: str, fits: bool) -> None:
    assert fault_in(pattern) == ""
    assert matches(pattern, value) is fits


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        ("(?:(?:a|aa)|a)" * 18 + "c", "a" * 40 + "b"),
        ("a?" * 80 + "a" * 80, "a" * 150 + "b"),
        ("(a+)+$", "a" * 255 + "b"),
        ("(?:a*){5}b", "a" * 256),
        (".*" * 100 + "x", "a" * 256),
        ("(?:a|b)*a(?:a|b){150}", "ab" * 128),
        ("(?:a{1,20}){1,20}b", "a" * 256),
    ],
)
def test_patterns_that_backtracking_never_ends_are_matched_at_once(pattern: str, value: str) -> None:
    """A matcher that tries one way after another would still be at it when the universe ends."""
    assert fault_in(pattern) == ""
    assert not matches(pattern, value)


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        (r"(a)\1", "a regular expression of RE2, without look-around and references to groups (invalid escape"),
        ("(?=a)b", "a regular expression of RE2, without look-around and references to groups (invalid perl"),
        ("a(?<!b)", "a regular expression of RE2"),
        ("(", "a regular expression of RE2, without look-around and references to groups (missing )"),
        ("[a", "a regular expression of RE2"),
        ("a\\", "a regular expression of RE2"),
        ("a{1001}", "a regular expression of RE2"),
        (r"\pL{1000}", "a regular expression of RE2, without look-around and references to groups (pattern too large"),
        ("(((a{1,10}){1,10}){1,10})b", "a smaller pattern: at most 1000 steps, not 200"),
        ("\udc80", "a pattern that has an encoding in UTF-8"),
    ],
)  # fmt: skip
def test_patterns_that_cannot_be_used_are_named(pattern: str, fault: str) -> None:
    assert fault_in(pattern).startswith(fault)


def test_a_pattern_is_refused_without_a_word_on_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    assert fault_in("(unclosed")
    assert fault_in(r"\pL{999}")

    assert capfd.readouterr().err == ""


def test_a_value_is_matched_once_with_a_pattern_and_then_remembered() -> None:
    matches.cache_clear()
    for _ in range(1_000):
        for rack in range(5):
            matches("rack[0-9]", f"rack{rack}")

    assert matches.cache_info().misses == 5


def test_patterns_and_verdicts_are_kept_within_bounds() -> None:
    for number in range(patterns.PATTERNS_KEPT + 10):
        matches(f"x{number}", "x1")

    assert patterns._compiled.cache_info().currsize == patterns.PATTERNS_KEPT
    assert matches.cache_info().maxsize == patterns.VERDICTS_KEPT


@pytest.mark.parametrize(
    "modules", ["fairlead_agent.agent, fairlead_agent.cli", "fairlead_sdk", "fairlead_master.server"]
)
def test_the_library_is_loaded_only_by_who_matches_a_pattern(modules: str) -> None:
    code = f"import sys, {modules}; print([name for name in sys.modules if name.startswith('re2')])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.strip() == "[]"
