import pytest

from fairlead_cli.attached_run import final_text, finished_remark
from fairlead_proto.task_state import Reason, TaskState
from fairlead_sdk.task import Task, TaskResult


def a_result(task_id: str, *, state: TaskState = TaskState.FINISHED, message: str = "") -> TaskResult:
    return TaskResult(
        task=Task(["true"], name=f"name of {task_id}", task_id=task_id),
        task_id=task_id,
        state=state,
        reason=Reason.NONE,
        message=message,
    )


def test_finished_task_with_a_message_is_remarked_on() -> None:
    lost = "stdout: 6 bytes could not be written: No space left on device"

    assert finished_remark([a_result("t-1", message=lost)]) == f"fairlead: name of t-1: {lost}"


def test_first_of_several_remarks_stands_for_all() -> None:
    results = [a_result("t-1"), a_result("t-2", message="lost"), a_result("t-3", message="lost")]

    assert finished_remark(results) == (
        "fairlead: name of t-2: lost (and 1 more such tasks; see `fairlead tasks`)"
    )


def test_ordinary_ends_and_failures_are_not_remarked_on() -> None:
    results = [a_result("t-1"), a_result("t-2", state=TaskState.FAILED, message="exit code 3")]

    assert finished_remark(results) == ""


def results_of(states: str) -> list[TaskResult]:
    meant = {"+": TaskState.FINISHED, "-": TaskState.FAILED, "k": TaskState.KILLED}
    return [a_result(f"t-{index}", state=meant[sign], message="why") for index, sign in enumerate(states)]


@pytest.mark.parametrize(
    ("states", "count", "expected"),
    [
        ("++", 2, "2 of 2 tasks finished"),
        ("+-k", 3, "1 of 3 tasks finished, 1 killed; first: name of t-1 failed: why"),
        ("+kk", 3, "1 of 3 tasks finished, 2 killed; first: name of t-1 killed: why"),
        ("k", 1, "killed: why"),
        ("k", 2, "1 task was not over in time; the master goes on killing what still runs"),
        ("", 2, "2 tasks were not over in time; the master goes on killing what still runs"),
    ],
)
def test_what_became_of_the_tasks_is_said(states: str, count: int, expected: str) -> None:
    assert final_text(results_of(states), count) == expected
