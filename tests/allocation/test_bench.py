"""The benchmark runs and counts; what it times is nobody's claim here."""

import pytest

from fairlead_bench import allocation
from fairlead_bench.allocation import measure


def test_the_quick_benchmark_measures_everything_it_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocation, "_DECISIONS", 300)

    rows = {row.name.split(",")[0]: row for row in measure(1, "quick")}

    assert set(rows) == {
        "decision",
        "decision by bbf",
        "cycle",
        "cycle on a full cluster",
        "idle cycle",
        "scarcest resource used",
    }
    assert rows["idle cycle"].value == 0
    assert rows["idle cycle"].is_met
    assert all(row.value > 0 for name, row in rows.items() if name != "idle cycle")
    assert all(row.floor for name, row in rows.items() if name in {"decision", "decision by bbf", "cycle"})


def test_an_unknown_scale_is_refused() -> None:
    with pytest.raises(ValueError, match="full, quick"):
        measure(1, "huge")
