"""Zeldes and Feitelson (paper 004), sections 3 and 4: its simulations, process by process and turn by turn, under the live policy.

What the text says of a run is asserted; curves without numbers are not. Times are within a few quanta of 0.1 s of what
exact shares would give, which is derived by hand. The steady states of the same examples are in
test_bbf_zeldes_feitelson, judged without running anything.
"""

import pytest

from fairlead_lab.papers.bbf.timesharing.history import History
from fairlead_lab.papers.bbf.timesharing.program import IDLE, Loop, Program, Use, parse
from fairlead_lab.papers.bbf.timesharing.simulation import QUANTUM_MS, Timesharing
from fairlead_master.allocation.policies import bbf

CPU, DISK, NET = "CPU", "DISK", "NETWORK"
FOREVER = 1_000


def loop(times: int, *uses: tuple[str, float], width_s: float = 0) -> Loop:
    """Uses of resources for so many seconds each."""
    return Loop(times, tuple([Use(resource, length_s, width_s) for resource, length_s in uses]))


def process(name: str, entitlement: float, *loops: Loop) -> Program:
    return Program(name, entitlement, loops)


@pytest.mark.parametrize("clients", [2, 3, 7])
def test_section_3_equal_entitlements_are_served_round_robin(clients: int) -> None:
    """ "If all the clients have the same entitlements our algorithm will produce simple round-robin scheduling"."""
    run = Timesharing([process(f"{client}", 1, loop(1, (CPU, FOREVER))) for client in range(clients)]).run(20)

    for turn in range(1, 200):
        served = [run.used_ms(name, CPU, turn * QUANTUM_MS) // QUANTUM_MS for name in run.processes]
        assert sum(served) == turn
        assert max(served) - min(served) <= 1


def test_section_4_1_the_constants_are_ours() -> None:
    """ "In the last 3 seconds", "more than 90% of the time", quanta of 0.1 s; a grace period of 1 s (4.3); "once a second" (5)."""
    assert (bbf.WINDOW_S, bbf.THRESHOLD, bbf.INTERVAL_MS, QUANTUM_MS) == (3, 0.9, 1_000, 100)
    assert bbf.WINDOW_S / bbf.GRACE_FRACTION == 1
    assert bbf.WINDOW_S * 1_000 / bbf.HORIZON_FRACTION == QUANTUM_MS


def test_figure_1_an_example_program() -> None:
    """Priority 34, 2 s of CPU, then 40 times 0.1 s of disk and 0.1 s of CPU: 6 s and 4 s, but for its deviation of 0.05."""
    text = (
        "# Priority:\n34\n# Requests:\nloop 1\nCPU_CS 2 0 NORM\nloop 40\n"
        "DISK_CS 0.1 0.05 NORM\nCPU_CS 0.1 0.05 NORM\n"
    )

    run = Timesharing([parse(text, "process")]).run()

    assert run.total_s("process", 10) == run.finished_ms["process"] / 1000, "it never waits"
    assert run.total_s("process", 20) == pytest.approx(10, abs=1.5)
    assert run.used_ms("process", CPU, 2_000) == 2_000
    exact = Timesharing([parse(text.replace("0.05", "0"), "process")]).run()
    assert exact.finished_ms == {"process": 10_000}
    assert [exact.used_ms("process", resource, 10_000) for resource in (CPU, DISK)] == [6_000, 4_000]


def test_figure_2_two_quanta_for_one() -> None:
    """Red (33 %) wants 10 s and has the CPU alone for 5; then blue (67 %), which wants 5, gets two quanta for each of its.

    Blue's 5 s take 7.5: it ends at 12.5, and red at 15, as somebody always runs. Blue "receives two quanta each time".
    """
    red = process("red", 33, loop(1, (CPU, 10)))
    run = Timesharing([red, process("blue", 67, loop(1, (IDLE, 5), (CPU, 5)))]).run()

    assert run.share("red", CPU, 0, 5) == 1
    for second in range(5, 11):
        assert run.share("blue", CPU, second, second + 1) == pytest.approx(2 / 3, abs=0.11)
    assert run.finished_ms["blue"] == pytest.approx(12_500, abs=300)
    assert run.finished_ms["red"] == 15_000


def test_figure_3_the_one_with_the_highest_priority_ends_first() -> None:
    """10, 20, 30 and 40 %, 10 s each. At 40 % the last is done after 25 s, when the others have had 2.5, 5 and 7.5.

    Then they have a sixth, a third and a half: done 5 s later, when 3 1/3 and 6 2/3 are. Then a third and two thirds: 5 s
    again, and the first has its second 5 s to itself. Which of the ten turns of a second come first is open.
    """
    run = Timesharing([process(f"{each}", each, loop(1, (CPU, 10))) for each in (10, 20, 30, 40)]).run()

    expected = {"40": 25_000, "30": 30_000, "20": 35_000, "10": 40_000}
    assert run.finished_ms == pytest.approx(expected, abs=1_000)


def test_figure_4_processes_that_use_different_resources() -> None:
    """Five times 0.1 s of CPU and 10 s of the network (70 %) or of the disk (20 and 10 %): nearly 100, 67 and 33 %.

    So blue is done after 50.5 s, green after 50.5 * 3/2 = 75; in all each has used 50 s.
    """
    programs = [
        process(name, entitlement, loop(5, (CPU, 0.1), (resource, 10)))
        for name, entitlement, resource in (("blue", 70, NET), ("green", 20, DISK), ("red", 10, DISK))
    ]

    run = Timesharing(programs).run()

    assert run.share("blue", NET, 5, 45) == pytest.approx(1, abs=0.02)
    assert run.share("green", DISK, 5, 45) == pytest.approx(0.67, abs=0.02)
    assert run.share("red", DISK, 5, 45) == pytest.approx(0.33, abs=0.02)
    assert run.finished_ms == pytest.approx({"blue": 50_500, "green": 75_000, "red": 100_300}, abs=1_000)
    assert [run.total_s(name, 200) for name in run.processes] == [50.5] * 3


def away(length_s: float, resource: str, until_s: float) -> float:
    """Red (70 %) uses the CPU for 2 s and something else for ``length_s``, over and over; blue (30 %) only the CPU.

    Gives red's part of the CPU.
    """
    red = process("red", 70, loop(FOREVER, (CPU, 2), (resource, length_s)))
    run = Timesharing([red, process("blue", 30, loop(1, (CPU, FOREVER)))]).run(until_s)
    return run.share("red", CPU, 20, until_s)


def test_figure_5_a_short_absence_costs_no_entitlement() -> None:
    """Half a second on the disk, within the grace period: red catches up on its return and has 70 % of the CPU in all.

    A cycle is then 2 / 0.7 s. Without the grace period it would be that and half a second more: 2 of 3.36 s, 60 %.
    """
    assert away(0.5, DISK, 140) == pytest.approx(0.7, abs=0.02)


def test_figure_6_a_long_absence_does() -> None:
    """4 s of suspension: on its return red has to share, 70 to 30. A cycle is 2 / 0.7 + 4 s, of which 2 on the CPU: 29 %."""
    assert away(4, IDLE, 200) == pytest.approx(2 / (2 / 0.7 + 4), abs=0.01)


def figure_7(red: float, blue: float, green: float, width_s: float = 0) -> Timesharing:
    """Red wants the CPU and blue the disk; green 2 s of the CPU, then both in turns of 0.1 s."""
    turn_s = 0.1 if width_s else FOREVER
    return Timesharing(
        [
            process("red", red, loop(FOREVER, (CPU, turn_s), width_s=width_s)),
            process("blue", blue, loop(FOREVER, (DISK, turn_s), width_s=width_s)),
            process(
                "green", green, loop(1, (CPU, 2)), loop(FOREVER, (DISK, 0.1), (CPU, 0.1), width_s=width_s)
            ),
        ]
    )


def test_figure_7_red_and_blue_get_67_percent_green_33_of_each() -> None:
    """At first blue has the disk to itself, red and green the CPU 2 : 1; so green's 2 s take 6."""
    run = figure_7(40, 40, 20).run(39)

    assert run.share("blue", DISK, 0, 5.5) == 1
    assert [run.share(name, CPU, 0, 5.5) for name in ("red", "green")] == pytest.approx(
        [0.67, 0.33], abs=0.03
    )
    then = [run.share("red", CPU, 9, 39), run.share("blue", DISK, 9, 39)]
    assert then == pytest.approx([0.67, 0.67], abs=0.02)
    assert [run.share("green", each, 9, 39) for each in (CPU, DISK)] == pytest.approx([0.33, 0.33], abs=0.02)


@pytest.mark.parametrize(("red", "blue", "green"), [(33, 33, 33), (25, 25, 50)])
def test_figure_8_green_makes_twice_the_progress_and_no_more(red: int, blue: int, green: int) -> None:
    """Half of each resource for equal priorities, so twice the total; and for twice the priority, as it idles one in turn."""
    run = figure_7(red, blue, green).run(39)

    for name, resource in (("red", CPU), ("blue", DISK), ("green", CPU), ("green", DISK)):
        assert run.share(name, resource, 9, 39) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(("red", "blue", "green"), [(33, 33, 33), (25, 25, 50)])
def test_figure_8_out_of_step_green_falls_back_to_the_others_rate(red: int, blue: int, green: int) -> None:
    """ "If randomization is introduced", green "makes progress at about the same rate as the other two".

    In step it makes twice theirs; out of step a seventh more than theirs, whatever its priority.
    """
    run = figure_7(red, blue, green, width_s=0.05).run(65)

    rates = {name: run.progress(name, 5, 65) for name in run.processes}
    assert rates == pytest.approx({"red": 0.64, "blue": 0.64, "green": 0.72}, abs=0.02)


OTHERS = ("red", "green", "blue")


def requests(purple: float, other: float, times: int) -> Timesharing:
    """Four processes of the same iterations."""
    iterations = loop(times, (NET, 0.5), (CPU, 1), (DISK, 2))
    return Timesharing(
        [process("purple", purple, iterations), *[process(name, other, iterations) for name in OTHERS]]
    )


def test_figure_9_with_97_percent_one_hardly_waits() -> None:
    """Three iterations of 3.5 s: 10.5 s, and "never has to wait", but for the end of a quantum on each of nine uses."""
    ends = requests(97, 1, times=3).run().finished_ms

    assert 10_500 <= ends["purple"] <= 10_500 + 9 * QUANTUM_MS
    assert min(ends[name] for name in OTHERS) > 2 * ends["purple"]
    # 24 s of disk in all, and the first and the last of it alone with nobody on it.
    assert max(ends.values()) >= 24_000 + 1_500


@pytest.mark.parametrize(
    ("purple", "other", "at_least", "at_most"), [(97, 1, 3.5, 6), (40, 20, 1.5, 2.1), (10, 30, 1 / 3, 1)]
)
def test_figures_9_and_10_progress_follows_the_priorities(
    purple: int, other: int, at_least: float, at_most: float
) -> None:
    """On the disk, the bottleneck, purple has a multiple of the others' mean. At 97 % it can use 2 s of 3.5 and does.

    At 10 % to 30 % it is "more than 1/3 of the others, because they sometimes need to wait for each other".
    """
    simulation = requests(purple, other, times=FOREVER)

    run = simulation.run(120)

    assert simulation.bottlenecks == (DISK,)
    disk = {name: run.share(name, DISK, 20, 120) for name in run.processes}
    mean = sum(disk[name] for name in OTHERS) / 3
    assert at_least * mean < disk["purple"] < at_most * mean
    if purple == 97:
        assert disk["purple"] == pytest.approx(2 / 3.5, abs=0.02)
        assert all(disk[name] > 0.01 for name in OTHERS)


def test_figure_11_turns_lead_to_the_symmetric_solution() -> None:
    """Eight processes in pairs on three of four resources each, 0.1 s at a time: each 1/6 of the time, all used 100 %."""
    programs = [
        process(f"{pair}{which}", 1, loop(FOREVER, *[(f"R{(pair + step) % 4}", 0.1) for step in range(3)]))
        for pair in range(4)
        for which in "ab"
    ]

    run = Timesharing(programs).run(45)

    for name in run.processes:
        parts = [run.share(name, resource, 5, 45) for resource in run.resources]
        assert sorted(parts) == pytest.approx([0, 1 / 6, 1 / 6, 1 / 6], abs=0.01)
    for resource in run.resources:
        assert run.utilisation(resource, 5, 45) == pytest.approx(1)


def figure_12(cpu_s: float) -> History:
    """Red (33) uses CPU and twice as much disk, green (67) CPU and twice as much network; from 5 s on blue (100) the CPU."""
    return Timesharing(
        [
            process("red", 33, loop(FOREVER, (CPU, cpu_s), (DISK, 2 * cpu_s))),
            process("green", 67, loop(FOREVER, (CPU, cpu_s), (NET, 2 * cpu_s))),
            process("blue", 100, loop(1, (IDLE, 5), (CPU, FOREVER))),
        ]
    ).run(70)


def test_figure_12_a_bottleneck_appears() -> None:
    """All three resources 67 % used; then 17, 33 and 50 % of the CPU, and half of the disk. Turns of 0.1 and 0.2 s.

    Green would have to run all the time for its third, but sometimes waits for the end of a quantum; blue has that.
    """
    run = figure_12(0.1)

    for resource in (CPU, DISK, NET):
        assert run.utilisation(resource, 0, 5) == pytest.approx(0.67, abs=0.04)
    cpu = {name: run.share(name, CPU, 10, 70) for name in run.processes}
    assert cpu == pytest.approx({"red": 0.17, "green": 0.33, "blue": 0.50}, abs=0.04)
    disk, network = (
        [run.share(name, resource, *period) for period in ((0, 5), (10, 70))]
        for name, resource in (("red", DISK), ("green", NET))
    )
    assert disk[1] == pytest.approx(disk[0] / 2, abs=0.03)
    assert network[1] == pytest.approx(network[0], abs=0.07)


def test_figure_12_with_random_times_green_waits_for_half_a_quantum_at_least() -> None:
    """Not 33 %, for which it would have to run all the time, but at most 0.2 s of 0.2 + 0.4 + 0.05."""

    def in_turns(name: str, entitlement: float, resource: str) -> Program:
        uses = Use(CPU, 0.2, 0.02), Use(resource, 0.4, 0.04)
        return process(name, entitlement, Loop(FOREVER, uses))

    blue = process("blue", 100, loop(1, (IDLE, 5), (CPU, FOREVER)))
    run = Timesharing([in_turns("red", 33, DISK), in_turns("green", 67, NET), blue]).run(70)

    assert 0.27 < run.share("green", CPU, 10, 70) < 0.2 / 0.65
    assert run.share("blue", CPU, 10, 70) == pytest.approx(0.54, abs=0.02)


def test_figure_12_a_second_at_a_time_gives_those_who_are_away_less() -> None:
    """With turns of 1 and 2 s our policy gives blue more: entitlement on the CPU ends a second after the last use of it.

    The paper's grows while a process is active anywhere (``allocation.policies.bbf`` says why ours does not).
    """
    run = figure_12(1)

    assert 0.55 < run.share("blue", CPU, 10, 70) < 0.66
    assert run.share("green", CPU, 10, 70) == pytest.approx(2 * run.share("red", CPU, 10, 70), abs=0.05)


def test_figure_13_the_focus_shifts_to_another_bottleneck() -> None:
    """50 % (CPU 80 % of its time), 25, 12.5 and 12.5 (CPU and disk; then the network for 70 % of each iteration).

    CPU is the bottleneck first: shares as entitled. Then the network: the first hardly needs it, so it runs at its full
    speed but for waiting for others' quanta, and the rest is 2 : 1 : 1 but for what none of them can use.
    """
    entitled = {"first": 50.0, "second": 25.0, "third": 12.5, "fourth": 12.5}
    programs = [process("first", 50, loop(FOREVER, (CPU, 0.8), (DISK, 0.1), (NET, 0.1)))]
    for name, share in entitled.items():
        if name != "first":
            early = loop(round(share * 2), (CPU, 0.1), (DISK, 0.1))
            late = loop(FOREVER, (CPU, 0.15), (DISK, 0.15), (NET, 0.7))
            programs.append(process(name, share, early, late))
    simulation = Timesharing(programs)

    run = simulation.run(18)

    assert simulation.bottlenecks == (CPU,)
    before = {name: run.share(name, CPU, 0, 18) for name in entitled}
    assert before == pytest.approx({name: share / 100 for name, share in entitled.items()}, abs=0.05)

    run = simulation.run(90)

    assert NET in simulation.bottlenecks
    assert run.utilisation(NET, 30, 90) > 0.9
    cpu, network = ({name: run.share(name, each, 30, 90) for name in entitled} for each in (CPU, NET))
    assert cpu["first"] > before["first"] + 0.1
    assert network["second"] > network["third"] + 0.1
    assert network["third"] == pytest.approx(network["fourth"], abs=0.05)
    for name, share in entitled.items():
        assert max(network[name], cpu[name]) >= share / 100 - 0.01


def test_figure_14_complementary_requirements_do_not_starve_the_third() -> None:
    """CPU and network both are bottlenecks; everybody has a third of one, and the third "tends to get ahead"."""
    simulation = Timesharing(
        [
            process("1", 1, loop(FOREVER, (CPU, 0.1), (NET, 0.014))),
            process("2", 1, loop(FOREVER, (NET, 0.1), (CPU, 0.017))),
            process("3", 1, loop(FOREVER, (CPU, 0.1), (NET, 0.1))),
        ]
    )

    run = simulation.run(45)

    assert simulation.bottlenecks == (CPU, NET)
    for name in run.processes:
        assert max(run.share(name, resource, 5, 45) for resource in run.resources) >= 1 / 3
    assert run.progress("3", 5, 45) > max(run.progress("1", 5, 45), run.progress("2", 5, 45))


@pytest.mark.parametrize(("is_switched", "least", "most"), [(True, 0.8, 0.9), (False, 0.95, 1)])
def test_figure_14_with_random_times_needs_uses_that_are_served_whole(
    is_switched: bool, least: float, most: float
) -> None:
    """Cut into quanta of 0.1 s, every second use is a little longer and waits twice, and nothing stays a bottleneck."""

    def in_turns(name: str, cpu_s: float, network_s: float) -> Program:
        uses = [
            Use(resource, length_s, length_s / 20, is_switched=is_switched)
            for resource, length_s in ((CPU, cpu_s), (NET, network_s))
        ]
        return process(name, 1, Loop(FOREVER, tuple(uses)))

    run = Timesharing([in_turns("1", 0.1, 0.014), in_turns("2", 0.017, 0.1), in_turns("3", 0.1, 0.1)]).run(60)

    for resource in (CPU, NET):
        assert least < run.utilisation(resource, 3, 60) < most
        assert (run.bottleneck(resource, 3, 60) > 0.9) is not is_switched
