"""The one transition table: what every reader of it may rely on."""

import pytest

from fairlead_proto.task_state import RETRIABLE, TERMINAL, TRANSITIONS, TaskState, can_move, is_terminal

S = TaskState


def test_every_state_has_a_row() -> None:
    assert set(TRANSITIONS) == set(TaskState)


@pytest.mark.parametrize("state", [state for state in TaskState if state in TERMINAL])
def test_a_task_that_is_over_stays_over(state: TaskState) -> None:
    assert is_terminal(state)
    assert not any(can_move(state, after) for after in TaskState)


@pytest.mark.parametrize("state", [state for state in TaskState if state not in TERMINAL])
def test_a_live_task_can_come_to_every_end(state: TaskState) -> None:
    assert not is_terminal(state)
    assert all(can_move(state, end) for end in TERMINAL)


def test_a_repeat_is_no_move() -> None:
    assert not any(can_move(state, state) for state in TaskState)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (S.RUNNING, S.STARTING),
        (S.KILLING, S.RUNNING),
        (S.STARTING, S.STAGING),
        (S.UNREACHABLE, S.STAGING),
    ],
)
def test_a_task_does_not_go_back(before: TaskState, after: TaskState) -> None:
    assert not can_move(before, after)


@pytest.mark.parametrize("after", [S.STARTING, S.RUNNING, S.KILLING])
def test_a_task_thought_unreachable_may_prove_to_live(after: TaskState) -> None:
    assert can_move(S.UNREACHABLE, after)
    assert not is_terminal(S.UNREACHABLE)


def test_only_ends_that_do_not_speak_against_the_task_are_retriable() -> None:
    assert {S.DROPPED, S.LOST, S.GONE} == RETRIABLE
    assert RETRIABLE < TERMINAL
