"""The text format of paper 004, figure 1, and what is said of a text that is not of it."""

from contextlib import suppress
from random import Random
from statistics import fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_lab.papers.bbf.timesharing.program import (
    Distribution,
    Loop,
    Program,
    ProgramError,
    Use,
    parse,
    resources_of,
)

FIGURE_1 = """# Priority:
34
# Requests:
loop 1
CPU_CS 2 0 NORM
loop 40
DISK_CS 0.1 0.05 NORM
CPU_CS 0.1 0.05 NORM
"""


def test_the_papers_example_is_read() -> None:
    assert parse(FIGURE_1, "red") == Program(
        "red",
        34,
        (
            Loop(1, (Use("CPU", 2, 0),)),
            Loop(40, (Use("DISK", 0.1, 0.05), Use("CPU", 0.1, 0.05))),
        ),
    )


def test_comments_empty_lines_and_case_of_headers_mean_nothing() -> None:
    text = FIGURE_1.replace("# Requests:", "#requests\n\n# Two phases.").replace(
        "# Priority:", "#  PRIORITY :"
    )

    assert parse(text.replace("\n", "  \r\n"), "red") == parse(FIGURE_1, "red")


def test_a_resource_without_the_suffix_is_not_switched_and_idle_is_no_resource() -> None:
    program = parse("# Priority:\n1\n# Requests:\nloop 2\nidle 5 0 EXP\nTAPE 1 1 UNIF\n", "p")

    pause, tape = program.loops[0].uses
    assert pause.is_pause
    assert (tape.resource, tape.is_switched, tape.distribution) == ("TAPE", False, Distribution.UNIF)
    assert resources_of([program]) == {"TAPE": False}
    assert [use.is_pause for use in program] == [True, False] * 2
    assert program.expected_s() == 12


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("34", "x", "red:2: expected a priority from 0.001 to 1000000, got 'x'"),
        ("34", "nan", "red:2: expected a priority from 0.001 to 1000000, got 'nan'"),
        ("34", "0", "red:2: expected a priority from 0.001 to 1000000, got '0'"),
        ("34\n", "34\n35\n", "red:3: expected one priority, got a second: '35'"),
        ("34\n", "", "red: expected a number below '# Priority:', got none"),
        ("# Priority:\n", "", "red:1: expected '# Priority:', got '34'"),
        ("loop 1\n", "", "red:4: expected 'loop N' before the first use, got 'CPU_CS 2 0 NORM'"),
        ("loop 40", "loop", "red:6: expected 'loop N' with N from 1 to 1000000, got 'loop'"),
        ("loop 40", "loop 0", "red:6: expected 'loop N' with N from 1 to 1000000, got 'loop 0'"),
        ("loop 40", "loop 1.5", "red:6: expected 'loop N' with N from 1 to 1000000, got 'loop 1.5'"),
        ("CPU_CS 2 0 NORM\n", "", "red:4: expected a use of a resource in the loop, got none"),
        (
            "CPU_CS 2 0 NORM",
            "CPU_CS 2 0",
            "red:5: expected 'loop N' or 'RESOURCE MEAN WIDTH DISTRIBUTION', got 'CPU_CS 2 0'",
        ),
        ("2 0 NORM", "2 0 POISSON", "red:5: distribution: expected one of UNIF, EXP, NORM, got 'POISSON'"),
        ("2 0 NORM", "-2 0 NORM", "red:5: expected mean: a time in seconds from 0.001 to 1000000, got '-2'"),
        ("2 0 NORM", "2 inf NORM", "red:5: expected width: a time in seconds from 0 to 1000000, got 'inf'"),
        ("2 0 NORM", "2 3 UNIF", "red:5: width: expected at most the mean of 2, as half the range, got 3"),
        (
            "CPU_CS 2",
            "2CPU_CS 2",
            "red:5: resource: expected a letter and up to 63 letters, digits and underscores, got '2CPU_CS'",
        ),
        ("CPU_CS 2", "IDLE_CS 2", "red:5: resource: expected IDLE, which nobody waits for, without _CS"),
    ],
)
def test_a_bad_program_is_refused_by_line(old: str, new: str, complaint: str) -> None:
    with pytest.raises(ProgramError) as refused:
        parse(FIGURE_1.replace(old, new, 1), "red")

    assert str(refused.value) == complaint


def test_no_loops_are_refused() -> None:
    with pytest.raises(ProgramError, match="red: expected loops below '# Requests:', got none"):
        parse("# Priority:\n34\n", "red")


def test_a_resource_that_is_switched_here_and_not_there_is_refused() -> None:
    other = parse(FIGURE_1.replace("DISK_CS", "DISK"), "blue")

    with pytest.raises(ProgramError) as refused:
        resources_of([parse(FIGURE_1, "red"), other])

    assert str(refused.value) == (
        "blue: expected DISK_CS, as in red, got DISK: a resource can be switched between processes or it cannot"
    )


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    text = f"# Priority:\n1\n# Requests:\nloop 1\n{text}"
    with suppress(ProgramError):
        assert parse(text, "name").loops


@pytest.mark.parametrize(
    ("distribution", "width_s", "deviation_s"),
    [
        (Distribution.NORM, 0.2, 0.2),
        (Distribution.UNIF, 0.6, 0.6 / 3**0.5),
        (Distribution.EXP, 0, 1),
    ],
)
def test_service_times_have_the_mean_and_the_deviation(
    distribution: Distribution, width_s: float, deviation_s: float
) -> None:
    use = Use("CPU", 1, width_s, distribution)
    dice = Random(4)

    drawn = [use.draw_ms(dice) / 1000 for _ in range(20_000)]

    assert fmean(drawn) == pytest.approx(1, abs=0.02)
    assert pstdev(drawn) == pytest.approx(deviation_s, rel=0.03)
    assert min(drawn) >= 0
    if distribution is Distribution.UNIF:
        assert min(drawn) == pytest.approx(0.4, abs=0.01)
        assert max(drawn) == pytest.approx(1.6, abs=0.01)


def test_what_would_be_below_zero_is_zero() -> None:
    use = Use("CPU", 0.1, 1.0)
    dice = Random(4)

    drawn = [use.draw_ms(dice) for _ in range(1_000)]

    assert min(drawn) == 0
    assert 0.4 < sum(not each for each in drawn) / 1_000 < 0.52, "a little less than half"
