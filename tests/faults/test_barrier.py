"""The fault harness sees what leaves too early: bugs planted in the barrier fail within a few seeds."""

from collections.abc import Callable

import pytest

from fairlead_agent.core import turn as agent_turn
from fairlead_agent.core.actions import Checkpoint
from fairlead_master.core import durability
from fairlead_master.core.actions import DURABLE, Action
from fairlead_master.core.durability import Released
from fairlead_master.core.turn import Turn
from tests.faults.harness import Plan, Run

pytestmark = pytest.mark.fault

_emit = Turn._emit
_SEEDS = 4


def _is_durable(order: Action) -> bool:
    return type(order) in DURABLE


def leave_before_the_commit(turn: Turn, orders: list[Action]) -> None:
    _emit(turn, [order for order in orders if _is_durable(order)])
    turn._let_go([order for order in orders if not _is_durable(order)])


def overtake_what_waits(turn: Turn, orders: list[Action]) -> None:
    if any(map(_is_durable, orders)):
        _emit(turn, orders)
    else:
        turn._let_go(orders)


def run_seeds(seeds: range = range(_SEEDS)) -> None:
    for seed in seeds:
        Run(Plan(seed=seed)).execute()


@pytest.mark.parametrize("bug", [leave_before_the_commit, overtake_what_waits])
def test_what_leaves_before_what_it_depends_on_is_seen(
    bug: Callable[[Turn, list[Action]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Turn, "_emit", bug)

    with pytest.raises(AssertionError, match="left before it was durable"):
        run_seeds()


def test_an_id_that_is_told_without_room_to_write_it_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durability, "release", lambda orders, *_: Released(list(orders), []))

    with pytest.raises(AssertionError, match="told, and never written"):
        run_seeds()


def test_a_status_that_an_agent_tells_before_the_disk_has_it_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_turn, "_IN_ORDER", frozenset())

    with pytest.raises(AssertionError, match="tells before it is durable"):
        run_seeds()


def test_an_agent_that_acts_before_the_disk_knows_who_it_is_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    run = agent_turn.Turn.run

    def forget_the_sync(turn: agent_turn.Turn, now_ms: int, *, events_max: int) -> None:
        run(turn, now_ms, events_max=events_max)
        turn.must_sync = False

    monkeypatch.setattr(agent_turn.Turn, "run", forget_the_sync)

    with pytest.raises(AssertionError, match="acts before it is durable"):
        run_seeds()


def test_an_agent_whose_host_forgets_what_was_told_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the oracle, by what comes of it: without a sync of statuses a task ends twice, or never."""
    write = agent_turn.Turn._write

    def call_none_durable(turn: agent_turn.Turn, checkpoint: Checkpoint) -> None:
        write(turn, checkpoint)
        turn._has_statuses = False

    monkeypatch.setattr(agent_turn.Turn, "_write", call_none_durable)
    monkeypatch.setattr("tests.faults.harness.AgentBarrier.check", lambda *_: None)

    with pytest.raises(AssertionError, match=r"ended twice|quiet ms|used before"):
        run_seeds(range(15, 45))
