"""Tasks of an array arrive as they were given, be they sent as an array or each for itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_proto import array_messages
from fairlead_proto.agent_messages import read_orders, write_orders
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.ids import FrameworkId, TaskId
from fairlead_proto.orders import LaunchTasks, UnreadableLaunch
from fairlead_proto.peers import ARRAYS, NONE, Capabilities, Unknowns
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.tasks import TaskArray, TaskSpec
from fairlead_proto.v1 import agent_pb2, types_pb2

KINDS = ResourceKinds(("tapes",))
F = FrameworkId("f1")


@st.composite
def arrays(draw: st.DrawFn) -> TaskArray:
    indices = draw(st.lists(st.integers(0, 2**31 - 1), unique=True, min_size=1, max_size=5))
    arguments = st.lists(st.text("ab{}#", max_size=5), min_size=len(indices), max_size=len(indices))
    return TaskArray(
        template=TaskSpec(
            task_id=TaskId("sweep"),
            resources=(100, 2**20, 0, 0, 3),
            command=tuple(draw(st.lists(st.sampled_from(["a", "{}", "x{#}", "{{}}"]), max_size=3))),
            name=draw(st.sampled_from(["", "n"])),
            environment=draw(st.sampled_from([{}, {"A": "b"}])),
            labels={"l": "v"},
            max_runtime_ms=5,
        ),
        indices=indices,
        count=draw(st.integers(0, 2**31 - 1)),
        arguments=tuple(draw(arguments)) if draw(st.booleans()) else (),
        attempt=draw(st.integers(1, 3)),
    )


def specs_of(array: TaskArray) -> list[TaskSpec]:
    return [array.spec(position) for position in range(len(array.indices))]


def written(array: TaskArray) -> types_pb2.TaskArray:
    message = types_pb2.TaskArray()
    array_messages.fill_array(message, array, KINDS)
    return message


@given(
    arrays().filter(
        lambda array: array.template.command and all(map(all, [s.command[:1] for s in specs_of(array)]))
    )
)
def test_the_tasks_of_an_array_arrive_as_they_were_given(array: TaskArray) -> None:
    message = written(array)

    read = array_messages.read_array("array", message, KINDS)

    assert read == specs_of(array)
    assert array_messages.task_ids(message) == [spec.task_id for spec in read]


A = TaskArray(
    template=TaskSpec(task_id=TaskId("sweep"), resources=(1, 1, 0, 0, 0), command=("echo", "{}", "{#}")),
    indices=[3, 5, 8],
    count=9,
    arguments=("a", "b", "c"),
)


@pytest.mark.parametrize("peer", [NONE, (ARRAYS,)])
def test_an_agent_is_ordered_the_same_tasks_as_an_array_or_each_for_itself(peer: Capabilities) -> None:
    specs = array_messages.read_array("array", written(A), KINDS)
    other = TaskSpec(task_id=TaskId("t"), resources=(1, 1, 0, 0, 0), command=("true",), name="t")
    order = LaunchTasks(framework_id=F, tasks=(other, specs[0], specs[2]))

    (batch,) = write_orders([order], KINDS, epoch=1, peer=peer)

    (message,) = batch.messages
    assert [list(part.array.indices) for part in message.launch.arrays] == ([[3, 8]] if peer else [])
    assert read_orders(message, KINDS, Unknowns()) == [order]


@pytest.mark.parametrize(
    ("field", "wrong", "why"),
    [
        ("indices", [1], r"array.arguments: expected 1, as many as array.indices, or none, got 3"),
        ("indices", [1, -1, 2], r"array.indices: expected 0 to 2147483647, got -1"),
        ("indices", [1, 2**31, 2], r"array.indices: expected 0 to 2147483647, got 2147483648"),
        ("count", -1, r"array.count: expected 0 to"),
        ("attempt", 0, r"array.attempt: expected 1 to"),
        ("arguments", ["a", "\0", "b"], r"array.arguments: expected no NUL"),
        ("arguments", ["a", "x" * 200_000, "b"], r"array.arguments: expected at most 131072 bytes"),
        ("arguments", ["a", "x" * 600_000, "b"], r"array.arguments: expected at most 524288 letters"),
    ],
)
def test_a_wrong_field_of_an_array_is_named(field: str, wrong: object, why: str) -> None:
    message = written(A)
    if isinstance(wrong, list):
        getattr(message, field)[:] = wrong
    else:
        setattr(message, field, wrong)

    with pytest.raises(InvalidFieldError, match=why):
        array_messages.read_array("array", message, KINDS)


def test_an_id_that_grows_too_long_by_its_index_is_refused() -> None:
    message = written(A)
    message.template.task_id = "x" * 199

    with pytest.raises(InvalidFieldError, match=r"array.template.task_id: expected 1 to 200 letters"):
        array_messages.read_array("array", message, KINDS)


def test_each_task_of_an_array_that_an_agent_cannot_use_is_named() -> None:
    array = written(A)
    array.count = -1
    part = agent_pb2.LaunchArray(framework_id=F, array=array)
    launch = agent_pb2.MasterMessage(launch=agent_pb2.Launch(arrays=[part]))

    found = read_orders(launch, KINDS, Unknowns())

    assert [order.task_id for order in found if isinstance(order, UnreadableLaunch)] == [
        "sweep:3",
        "sweep:5",
        "sweep:8",
    ]
