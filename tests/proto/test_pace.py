"""Calm until much has happened, busy while it does, calm again soon after."""

from fairlead_proto.pace import Pace


def test_one_thing_after_another_is_calm_however_quickly() -> None:
    pace = Pace(25)
    for now_ms in range(3_000):
        pace.note(1, now_ms)
        assert not pace.is_busy(now_ms)


def test_a_burst_is_busy_at_once_and_calm_two_intervals_later() -> None:
    pace = Pace(25)
    pace.note(25, 1_000)
    assert not pace.is_busy(1_000), "the first is not counted"
    pace.note(2, 1_001)

    assert pace.is_busy(1_001)
    assert pace.is_busy(1_199), "the interval before counts"
    assert not pace.is_busy(1_200)


def test_a_steady_stream_stays_busy() -> None:
    pace = Pace(25)
    for now_ms in range(0, 1_000, 3):
        pace.note(2, now_ms)

    assert all(pace.is_busy(now_ms) for now_ms in range(1_000, 1_100, 10))


def test_a_long_silence_is_forgotten_whole() -> None:
    pace = Pace(1)
    pace.note(100, 0)

    assert not pace.is_busy(10**9)
