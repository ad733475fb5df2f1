"""The benchmark of exact answers from nothing runs and counts; what it times is nobody's claim here."""

import pytest

from fairlead_bench import cold_solves
from fairlead_bench.cold_solves import measure


def test_the_quick_benchmark_measures_everything_it_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold_solves, "_QUICK", 100)

    *solves, machines = measure(1, "quick")

    times, passes, errors = solves[::3], solves[1::3], solves[2::3]
    assert [row.name.split(",")[1] for row in times] == [
        " 20 classes x 4 resources (floor: the sums alone)",
        " 100 classes x 8 resources (floor: the sums alone)",
    ]
    assert all(row.value > 0 and row.floor for row in times)
    # These are no times: any machine finds the same.
    assert all(row.is_met for row in (*passes, *errors))
    assert "20 users on 3 kinds of machines" in machines.name


def test_an_unknown_scale_is_refused() -> None:
    with pytest.raises(ValueError, match="full, quick"):
        measure(1, "huge")
