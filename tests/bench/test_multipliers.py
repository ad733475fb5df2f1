"""The benchmark of multipliers runs and gives what it promises; what it times is nobody's claim here."""

import pytest

from fairlead_bench import multipliers
from fairlead_bench.multipliers import measure


def test_the_quick_benchmark_measures_everything_it_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multipliers, "_DECISIONS", 300)
    monkeypatch.setattr(multipliers, "_EVENTS", 200)

    rows = measure(1, "quick")

    decision, event, batch, churning, quiet = rows
    assert decision.name.startswith("pf decision, 1000 accounts")
    assert event.name.startswith("pf arrival or departure, 1000 accounts, 100 classes x 4 resources")
    assert all(row.value > 0 for row in (decision, event, batch))
    assert decision.floor
    assert event.floor
    # These two are no times: any machine finds the same.
    assert churning.is_met
    assert quiet.is_met


def test_an_unknown_scale_is_refused() -> None:
    with pytest.raises(ValueError, match="full, quick"):
        measure(1, "huge")
