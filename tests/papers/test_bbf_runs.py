"""Zeldes and Feitelson (paper 004), sections 3 and 4: its simulations, process by process and turn by turn, under the live policy.

What the text says of a run is asserted; curves without numbers are not. Times are within a few quanta of 0.1 s of what
exact shares would give, which is derived by hand. The steady states of the same examples are in
test_bbf_zeldes_feitelson, judged without running anything.
"""

import random

import pytest

from fairlead_master.allocation.policies import bbf
from tests.papers.turns import IDLE, QUANTUM_MS, Phase, Turns, repeated, seconds

CPU, DISK, NET = 0, 1, 2
FOREVER = 1_000


@pytest.mark.parametrize("clients", [2, 3, 7])
def test_section_3_equal_entitlements_are_served_round_robin(clients: int) -> None:
    """ "If all the clients have the same entitlements our algorithm will produce simple round-robin scheduling"."""
    turns = Turns(1)
    for client in range(clients):
        turns.join(f"{client}", 1, seconds((CPU, FOREVER)))

    for turn in range(1, 200):
        turns.run_until(turn * QUANTUM_MS)
        served = [process.used_ms[CPU] // QUANTUM_MS for process in turns.processes.values()]
        assert sum(served) == turn
        assert max(served) - min(served) <= 1


def test_section_4_1_the_constants_are_ours() -> None:
    """ "In the last 3 seconds", "more than 90% of the time", quanta of 0.1 s; a grace period of 1 s (4.3); "once a second" (5)."""
    assert (bbf.WINDOW_S, bbf.THRESHOLD, bbf.INTERVAL_MS, QUANTUM_MS) == (3, 0.9, 1_000, 100)
    assert bbf.WINDOW_S / bbf.GRACE_FRACTION == 1
    assert bbf.WINDOW_S * 1_000 / bbf.HORIZON_FRACTION == QUANTUM_MS


def test_figure_1_an_example_program() -> None:
    """Priority 34, 2 s of CPU, then 40 times 0.1 s of disk and 0.1 s of CPU: 6 s and 4 s, without its deviation of 0.05."""
    turns = Turns(2)
    turns.join("process", 34, seconds((CPU, 2), *[(DISK, 0.1), (CPU, 0.1)] * 40))

    assert turns.run() == {"process": 10}
    assert turns.processes["process"].used_ms == [6_000, 4_000]


def test_figure_2_two_quanta_for_one() -> None:
    """Red (33 %) wants 10 s and has the CPU alone for 5; then blue (67 %), which wants 5, gets two quanta for each of its.

    Blue's 5 s take 7.5: it ends at 12.5, and red at 15, as somebody always runs. Blue "receives two quanta each time".
    """
    turns = Turns(1)
    turns.join("red", 33, seconds((CPU, 10)))
    assert turns.run_until(5_000) == {"red": [1]}

    turns.join("blue", 67, seconds((CPU, 5)))
    for second in range(6, 12):
        given = turns.run_until(second * 1_000)
        assert given["blue"][0] == pytest.approx(2 / 3, abs=0.11)

    ends = turns.run()
    assert ends["blue"] == pytest.approx(12.5, abs=0.3)
    assert ends["red"] == 15


def test_figure_3_the_one_with_the_highest_priority_ends_first() -> None:
    """10, 20, 30 and 40 %, 10 s each. At 40 % the last is done after 25 s, when the others have had 2.5, 5 and 7.5.

    Then they have a sixth, a third and a half: done 5 s later, when 3 1/3 and 6 2/3 are. Then a third and two thirds: 5 s
    again, and the first has its second 5 s to itself. Which of the ten turns of a second come first is open.
    """
    turns = Turns(1)
    for percent in (10, 20, 30, 40):
        turns.join(f"{percent}", percent, seconds((CPU, 10)))

    assert turns.run() == pytest.approx({"40": 25, "30": 30, "20": 35, "10": 40}, abs=1)


def test_figure_4_processes_that_use_different_resources() -> None:
    """Five times 0.1 s of CPU and 10 s of the network (70 %) or of the disk (20 and 10 %): nearly 100, 67 and 33 %.

    So blue is done after 50.5 s, green after 50.5 * 3/2 = 75; in all each has used 50 s.
    """
    turns = Turns(3)
    turns.join("blue", 70, repeated(5, seconds((CPU, 0.1), (NET, 10))))
    turns.join("green", 20, repeated(5, seconds((CPU, 0.1), (DISK, 10))))
    turns.join("red", 10, repeated(5, seconds((CPU, 0.1), (DISK, 10))))
    turns.run_until(5_000)

    given = turns.run_until(45_000)

    assert given["blue"][NET] == pytest.approx(1, abs=0.02)
    assert given["green"][DISK] == pytest.approx(0.67, abs=0.02)
    assert given["red"][DISK] == pytest.approx(0.33, abs=0.02)
    assert turns.run() == pytest.approx({"blue": 50.5, "green": 75, "red": 100.3}, abs=1)
    assert [max(process.used_ms) for process in turns.processes.values()] == [50_000] * 3


def away(length_s: float, place: int) -> Turns:
    """Red (70 %) uses the CPU for 2 s and something else for ``length_s``, over and over; blue (30 %) only the CPU."""
    turns = Turns(2)
    turns.join("red", 70, repeated(FOREVER, seconds((CPU, 2), (place, length_s))))
    turns.join("blue", 30, seconds((CPU, FOREVER)))
    turns.run_until(20_000)
    return turns


def test_figure_5_a_short_absence_costs_no_entitlement() -> None:
    """Half a second on the disk, within the grace period: red catches up on its return and has 70 % of the CPU in all.

    A cycle is then 2 / 0.7 s. Without the grace period it would be that and half a second more: 2 of 3.36 s, 60 %.
    """
    turns = away(0.5, DISK)

    assert turns.run_until(140_000)["red"][CPU] == pytest.approx(0.7, abs=0.02)


def test_figure_6_a_long_absence_does() -> None:
    """4 s of suspension: on its return red has to share, 70 to 30. A cycle is 2 / 0.7 + 4 s, of which 2 on the CPU: 29 %."""
    turns = away(4, IDLE)

    assert turns.run_until(200_000)["red"][CPU] == pytest.approx(2 / (2 / 0.7 + 4), abs=0.01)


def figure_7(red: float, blue: float, green: float) -> Turns:
    """Red wants the CPU and blue the disk; green 2 s of the CPU, then both in turns of 0.1 s."""
    turns = Turns(2)
    turns.join("red", red, seconds((CPU, FOREVER)))
    turns.join("blue", blue, seconds((DISK, FOREVER)))
    turns.join("green", green, seconds((CPU, 2), *[(DISK, 0.1), (CPU, 0.1)] * FOREVER))
    return turns


def test_figure_7_red_and_blue_get_67_percent_green_33_of_each() -> None:
    """At first blue has the disk to itself, red and green the CPU 2 : 1; so green's 2 s take 6."""
    turns = figure_7(40, 40, 20)

    first = turns.run_until(5_500)
    assert first["blue"][DISK] == 1
    assert [first["red"][CPU], first["green"][CPU]] == pytest.approx([0.67, 0.33], abs=0.03)

    turns.run_until(9_000)
    then = turns.run_until(39_000)
    assert [then["red"][CPU], then["blue"][DISK]] == pytest.approx([0.67, 0.67], abs=0.02)
    assert then["green"] == pytest.approx([0.33, 0.33], abs=0.02)


@pytest.mark.parametrize(("red", "blue", "green"), [(33, 33, 33), (25, 25, 50)])
def test_figure_8_green_makes_twice_the_progress_and_no_more(red: int, blue: int, green: int) -> None:
    """Half of each resource for equal priorities, so twice the total; and for twice the priority, as it idles one in turn."""
    turns = figure_7(red, blue, green)
    turns.run_until(9_000)

    given = turns.run_until(39_000)

    assert [given["red"][CPU], given["blue"][DISK]] == pytest.approx([0.5, 0.5], abs=0.02)
    assert given["green"] == pytest.approx([0.5, 0.5], abs=0.02)


@pytest.mark.parametrize(("red", "blue", "green"), [(33, 33, 33), (25, 25, 50)])
def test_figure_8_out_of_step_green_falls_back_to_the_others_rate(red: int, blue: int, green: int) -> None:
    """ "If randomization is introduced", green "makes progress at about the same rate as the other two"."""
    dice = random.Random(8)

    def drawn() -> float:
        return max(0.01, dice.gauss(0.1, 0.05))

    turns = Turns(2)
    turns.join("red", red, seconds(*[(CPU, drawn()) for _ in range(FOREVER)]))
    turns.join("blue", blue, seconds(*[(DISK, drawn()) for _ in range(FOREVER)]))
    turns.join("green", green, seconds(*[(place % 2, drawn()) for place in range(FOREVER)]))
    turns.run_until(5_000)

    given = turns.run_until(65_000)

    assert sum(given["green"]) == pytest.approx(given["red"][CPU], abs=0.08)
    assert sum(given["green"]) == pytest.approx(given["blue"][DISK], abs=0.08)


REQUEST = seconds((NET, 0.5), (CPU, 1), (DISK, 2))
OTHERS = ("red", "green", "blue")


def requests(purple: float, other: float, times: int) -> Turns:
    """Four processes of the same iterations."""
    turns = Turns(3)
    turns.join("purple", purple, repeated(times, REQUEST))
    for name in OTHERS:
        turns.join(name, other, repeated(times, REQUEST))
    return turns


def test_figure_9_with_97_percent_one_hardly_waits() -> None:
    """Three iterations of 3.5 s: 10.5 s, and "never has to wait", but for the end of a quantum on each of nine uses."""
    ends = requests(97, 1, times=3).run()

    assert 10.5 <= ends["purple"] <= 10.5 + 9 * QUANTUM_MS / 1_000
    assert min(ends[name] for name in OTHERS) > 2 * ends["purple"]
    # 24 s of disk in all, and the first and the last of it alone with nobody on it.
    assert max(ends.values()) >= 24 + 1.5


@pytest.mark.parametrize(
    ("purple", "other", "at_least", "at_most"), [(97, 1, 3.5, 6), (40, 20, 1.5, 2.1), (10, 30, 1 / 3, 1)]
)
def test_figures_9_and_10_progress_follows_the_priorities(
    purple: int, other: int, at_least: float, at_most: float
) -> None:
    """On the disk, the bottleneck, purple has a multiple of the others' mean. At 97 % it can use 2 s of 3.5 and does.

    At 10 % to 30 % it is "more than 1/3 of the others, because they sometimes need to wait for each other".
    """
    turns = requests(purple, other, times=FOREVER)
    turns.run_until(20_000)

    given = turns.run_until(120_000)

    assert turns.policy.bottlenecks == (DISK,)
    disk = {name: parts[DISK] for name, parts in given.items()}
    mean = sum(disk[name] for name in OTHERS) / 3
    assert at_least * mean < disk["purple"] < at_most * mean
    if purple == 97:
        assert disk["purple"] == pytest.approx(2 / 3.5, abs=0.02)
        assert all(disk[name] > 0.01 for name in OTHERS)


def test_figure_11_turns_lead_to_the_symmetric_solution() -> None:
    """Eight processes in pairs on three of four resources each, 0.1 s at a time: each 1/6 of the time, all used 100 %."""
    turns = Turns(4)
    for pair in range(4):
        for which in "ab":
            program = repeated(FOREVER, seconds(*[((pair + step) % 4, 0.1) for step in range(3)]))
            turns.join(f"{pair}{which}", 1, program)
    turns.run_until(5_000)

    given = turns.run_until(45_000)

    for parts in given.values():
        assert sorted(parts) == pytest.approx([0, 1 / 6, 1 / 6, 1 / 6], abs=0.01)
    for place in range(4):
        assert sum(parts[place] for parts in given.values()) == pytest.approx(1)


def figure_12(cpu_s: float) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Red (33) uses CPU and twice as much disk, green (67) CPU and twice as much network; from 5 s on blue (100) the CPU."""
    turns = Turns(3)
    turns.join("red", 33, repeated(FOREVER, seconds((CPU, cpu_s), (DISK, 2 * cpu_s))))
    turns.join("green", 67, repeated(FOREVER, seconds((CPU, cpu_s), (NET, 2 * cpu_s))))
    before = turns.run_until(5_000)
    turns.join("blue", 100, seconds((CPU, FOREVER)))
    turns.run_until(10_000)
    return before, turns.run_until(70_000)


def test_figure_12_a_bottleneck_appears() -> None:
    """All three resources 67 % used; then 17, 33 and 50 % of the CPU, and half of the disk. Turns of 0.1 and 0.2 s.

    Green would have to run all the time for its third, but sometimes waits for the end of a quantum; blue has that.
    """
    before, after = figure_12(0.1)

    for place in (CPU, DISK, NET):
        assert sum(parts[place] for parts in before.values()) == pytest.approx(0.67, abs=0.04)
    cpu = {name: parts[CPU] for name, parts in after.items()}
    assert cpu == pytest.approx({"red": 0.17, "green": 0.33, "blue": 0.50}, abs=0.04)
    assert after["red"][DISK] == pytest.approx(before["red"][DISK] / 2, abs=0.03)
    assert after["green"][NET] == pytest.approx(before["green"][NET], abs=0.07)


def test_figure_12_a_second_at_a_time_gives_those_who_are_away_less() -> None:
    """With turns of 1 and 2 s our policy gives blue more: entitlement on the CPU ends a second after the last use of it.

    The paper's grows while a process is active anywhere (``allocation.policies.bbf`` says why ours does not).
    """
    _, after = figure_12(1)

    assert 0.55 < after["blue"][CPU] < 0.66
    assert after["green"][CPU] == pytest.approx(2 * after["red"][CPU], abs=0.05)


def test_figure_13_the_focus_shifts_to_another_bottleneck() -> None:
    """50 % (CPU 80 % of its time), 25, 12.5 and 12.5 (CPU and disk; then the network for 70 % of each iteration).

    CPU is the bottleneck first: shares as entitled. Then the network: the first hardly needs it, so it runs at its full
    speed but for waiting for others' quanta, and the rest is 2 : 1 : 1 but for what none of them can use.
    """
    entitled = {"first": 50.0, "second": 25.0, "third": 12.5, "fourth": 12.5}
    turns = Turns(3)
    for name, share in entitled.items():
        early = (CPU, 0.8), (DISK, 0.1), (NET, 0.1)
        program: list[Phase] = repeated(FOREVER, seconds(*early))
        if name != "first":
            cpu_and_disk = repeated(round(share * 2), seconds((CPU, 0.1), (DISK, 0.1)))
            program = cpu_and_disk + repeated(FOREVER, seconds((CPU, 0.15), (DISK, 0.15), (NET, 0.7)))
        turns.join(name, share, program)
    before = turns.run_until(18_000)
    assert turns.policy.bottlenecks == (CPU,)
    for name, share in entitled.items():
        assert before[name][CPU] == pytest.approx(share / 100, abs=0.05)

    turns.run_until(30_000)
    after = turns.run_until(90_000)

    assert NET in turns.policy.bottlenecks
    assert after["first"][CPU] > before["first"][CPU] + 0.1
    assert sum(parts[NET] for parts in after.values()) > 0.9
    assert after["second"][NET] > after["third"][NET] + 0.1
    assert after["third"][NET] == pytest.approx(after["fourth"][NET], abs=0.05)
    for name, share in entitled.items():
        assert max(after[name][NET], after[name][CPU]) >= share / 100 - 0.01


def test_figure_14_complementary_requirements_do_not_starve_the_third() -> None:
    """CPU and network both are bottlenecks; everybody has a third of one, and the third "tends to get ahead"."""
    turns = Turns(2)
    turns.join("1", 1, repeated(FOREVER, seconds((0, 0.1), (1, 0.014))))
    turns.join("2", 1, repeated(FOREVER, seconds((1, 0.1), (0, 0.017))))
    turns.join("3", 1, repeated(FOREVER, seconds((0, 0.1), (1, 0.1))))
    turns.run_until(5_000)

    given = turns.run_until(45_000)

    assert turns.policy.bottlenecks == (0, 1)
    assert all(max(parts) >= 1 / 3 for parts in given.values())
    assert sum(given["3"]) > max(sum(given["1"]), sum(given["2"]))
