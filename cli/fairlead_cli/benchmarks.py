"""What `fairlead bench` does: have the simulator package measure, and print."""

from collections.abc import Mapping, Sequence

from fairlead_cli.errors import Failed
from fairlead_sim.bench import allocation as allocation_bench
from fairlead_sim.bench import control_path
from fairlead_sim.bench.children import BenchFailed
from fairlead_sim.bench.rows import Header, Row, make_header, print_table, to_json


def allocation(*, seed: int, is_quick: bool, as_json: bool) -> None:
    """Measure the allocator by itself and print the figures."""
    header = make_header(seed=seed)
    report = allocation_bench.run(seed, "quick" if is_quick else "full")
    found = report["rows"]
    assert isinstance(found, list)
    _print(header, [_row(figure) for figure in found], as_json=as_json)


def cluster(*, seed: int, is_quick: bool, as_json: bool) -> None:
    """Measure the control path of a real master, and its floor, and print the figures.

    Raises:
        Failed: a process of the benchmark died.
    """
    header = make_header(seed=seed)
    small = control_path.ControlPathOptions(agents=20, frameworks=5, warm_s=1.0, measure_s=3.0)
    options = small if is_quick else control_path.ControlPathOptions()
    try:
        result = control_path.measure(options)
        floor = control_path.measure_floor(options, result)
    except BenchFailed as error:
        raise Failed(str(error)) from error
    _print(header, control_path.rows(result, floor), as_json=as_json)


def _row(figure: Mapping[str, str | float | None]) -> Row:
    """The allocator's figures know the size of their target; which side of it is good goes by the unit."""
    name, value, unit, target = (figure[key] for key in ("name", "value", "unit", "target"))
    floor = figure["floor"]
    assert isinstance(name, str)
    assert isinstance(unit, str)
    assert isinstance(value, int | float)
    bound = "" if target is None else f">= {target}" if unit == "share" else f"< {target or 1}"
    return Row(name=name, value=value, unit=unit, target=bound, floor=None if floor is None else float(floor))


def _print(header: Header, rows: Sequence[Row], *, as_json: bool) -> None:
    if as_json:
        print(to_json(header, rows))
    else:
        print_table(header, rows)
