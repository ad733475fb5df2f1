from fairlead_cli.attached_run import finished_remark
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
