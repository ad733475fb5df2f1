"""Constraints: which agents they let a class run on, and how they read. Arrays: the tasks they stand for."""

import pytest

from fairlead_proto.ids import FrameworkId, TaskId
from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import (
    ArrayMember,
    Constraint,
    Operator,
    RunningTask,
    TaskArray,
    TaskSpec,
    has_place,
    member_index,
)

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


def an_array(*, arguments: tuple[str, ...] = (), attempt: int = 1, name: str = "sweep") -> TaskArray:
    template = TaskSpec(
        task_id=TaskId("f1-1"),
        resources=(1, 0, 0, 0),
        command=("sh", "-c", "echo {} {#}"),
        name=name,
        environment={"A": "1", "FAIRLEAD_TASK_COUNT": "7"},
        working_directory="/tmp",
        kill_grace_period_ms=5,
        max_runtime_ms=6,
        labels={"l": "m"},
    )
    return TaskArray(
        template=template, indices=range(3, 9, 2), count=50, arguments=arguments, attempt=attempt
    )


def test_a_member_is_the_template_with_its_own_id_name_and_index() -> None:
    assert an_array().spec(1) == TaskSpec(
        task_id=TaskId("f1-1:5"),
        resources=(1, 0, 0, 0),
        command=("sh", "-c", "echo {} {#}"),
        name="sweep-5",
        environment={"A": "1", "FAIRLEAD_TASK_INDEX": "5", "FAIRLEAD_TASK_COUNT": "50"},
        working_directory="/tmp",
        kill_grace_period_ms=5,
        max_runtime_ms=6,
        labels={"l": "m"},
    )


def test_a_further_attempt_of_a_member_is_named_as_one_of_a_task() -> None:
    again = an_array(attempt=2, name="").spec(0)

    assert again.task_id == "f1-1:3.2"
    assert again.name == "f1-1:3.2"


def test_a_member_with_an_argument_has_it_in_its_command() -> None:
    assert an_array(arguments=("a", "{#} {}", "c")).spec(1).command == ("sh", "-c", "echo {#} {} 5")


@pytest.mark.parametrize(
    ("word", "replaced", "is_place"),
    [
        ("{}", "x y", True),
        ("--in={}/{}.gz", "--in=x y/x y.gz", True),
        ("run-{#}", "run-4", True),
        ("{{}} {{#}}", "{} {#}", False),
        ('{"a": {}}', '{"a": x y}', True),
        ("${x} {1} { } {", "${x} {1} { } {", False),
    ],
)
def test_only_places_in_a_word_are_replaced(word: str, replaced: str, is_place: bool) -> None:
    member = ArrayMember(array_id=TaskId("a"), index=4, count=9, argument="x y")

    assert member.command(["do", word]) == ("do", replaced)
    assert has_place(["do", word]) is is_place


@pytest.mark.parametrize(
    ("task_id", "index"), [("f1-1:7", 7), ("a:b:12.3", 12), ("f1-1-7", None), ("a:7.x", None), (":7", None)]
)
def test_the_index_of_a_member_is_in_its_id(task_id: str, index: int | None) -> None:
    assert member_index(task_id) == index
