"""Constraints: which agents they let a class run on, and how they read."""

import pytest

from fairlead_proto.ids import FrameworkId, TaskId
from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import Constraint, Operator, RunningTask, TaskSpec

AGENT = {"rack": "a", "zone": "eu-1", "hostname": "h1", "agent_id": "a1-1"}


@pytest.mark.parametrize(
    ("constraint", "holds", "text"),
    [
        (Constraint("rack", Operator.EQUALS, ("a", "b")), True, "rack=a|b"),
        (Constraint("rack", Operator.EQUALS, ("b",)), False, "rack=b"),
        (Constraint("disk", Operator.EQUALS, ("ssd",)), False, "disk=ssd"),
        (Constraint("rack", Operator.NOT_EQUALS, ("a",)), False, "rack!=a"),
        (Constraint("disk", Operator.NOT_EQUALS, ("ssd",)), True, "disk!=ssd"),
        (Constraint("rack", Operator.EXISTS), True, "rack"),
        (Constraint("disk", Operator.EXISTS), False, "disk"),
        (Constraint("disk", Operator.NOT_EXISTS), True, "!disk"),
        (Constraint("rack", Operator.NOT_EXISTS), False, "!rack"),
        (Constraint("zone", Operator.MATCHES, ("eu-.*",)), True, "zone~eu-.*"),
        (Constraint("zone", Operator.MATCHES, ("eu",)), False, "zone~eu"),
        (Constraint("disk", Operator.MATCHES, (".*",)), False, "disk~.*"),
        (Constraint("hostname", Operator.EQUALS, ("h1",)), True, "hostname=h1"),
    ],
)
def test_a_constraint_holds_for_the_agents_it_names(constraint: Constraint, holds: bool, text: str) -> None:
    assert constraint.holds(AGENT) is holds
    assert str(constraint) == text


def test_a_task_is_named_by_its_framework_and_its_id() -> None:
    spec = TaskSpec(task_id=TaskId("t"), resources=(1, 0, 0, 0), command=("true",))
    running = RunningTask(framework_id=FrameworkId("f"), spec=spec, state=TaskState.RUNNING, sequence=1)

    assert running.key == ("f", "t")
