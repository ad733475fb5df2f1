"""The border between arrays of tasks and their messages.

A template is written and checked once, whatever the number of its tasks. As in ``convert``, what is read is checked, and what is
written is trusted.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from fairlead_proto import limits
from fairlead_proto.convert import fill_task, read_task
from fairlead_proto.fields import read_command, read_id, refusal
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.tasks import TaskArray, TaskSpec, attempt_name
from fairlead_proto.v1 import types_pb2

_INSERTED_MAX: Final = 4 * limits.COMMAND_BYTES_MAX
"""Letters of an argument in one command, with those places that turn out to be none."""


def read_array(field: str, message: types_pb2.TaskArray, kinds: ResourceKinds) -> list[TaskSpec]:
    """The tasks of an array, in order, every field checked.

    Raises:
        InvalidFieldError: a field is wrong, be it of one task only.
    """
    template = read_task(f"{field}.template", message.template, kinds)
    if not message.template.name:
        template = replace(template, name="")
    indices, arguments = list(message.indices), tuple(message.arguments)
    if arguments and len(arguments) != len(indices):
        expected = f"{len(indices)}, as many as {field}.indices, or none"
        raise refusal(f"{field}.arguments", expected, len(arguments))
    for name, number, least in (
        ("indices", min(indices, default=0), 0),
        ("indices", max(indices, default=0), 0),
        ("count", message.count, 0),
        ("attempt", message.attempt, 1),
    ):
        if not least <= number <= limits.ARRAY_INDEX_MAX:
            raise refusal(f"{field}.{name}", f"{least} to {limits.ARRAY_INDEX_MAX}", number)
    array = TaskArray(
        template=template,
        indices=indices,
        count=message.count,
        arguments=arguments,
        attempt=message.attempt,
    )
    _check_inserted(field, template, arguments)
    specs: list[TaskSpec] = []
    size = 0
    for position in range(len(indices)):
        specs.append(array.spec(position))
        if arguments:
            size += sum(map(len, read_command(f"{field}.arguments", specs[-1].command)))
            if size > limits.ACCEPT_BYTES_MAX:
                raise refusal(
                    f"{field}.arguments", f"commands of at most {limits.ACCEPT_BYTES_MAX} bytes", size
                )
    # Their letters are those of the template's id and of numbers.
    read_id(
        f"{field}.template.task_id", max((spec.task_id for spec in specs), key=len, default=template.task_id)
    )
    return specs


def _check_inserted(field: str, template: TaskSpec, arguments: tuple[str, ...]) -> None:
    """Before any command is made, which might be without bounds: it is long for certain."""
    places = sum([word.count("{}") for word in template.command])
    longest = max(map(len, arguments), default=0)
    if places * longest > _INSERTED_MAX:
        raise refusal(
            f"{field}.arguments", f"at most {_INSERTED_MAX} letters in one command", places * longest
        )


def size_bytes(message: types_pb2.TaskArray) -> int:
    """About how long the message of its tasks would be, each for itself."""
    return message.ByteSize() + len(message.indices) * message.template.ByteSize()


def task_ids(message: types_pb2.TaskArray) -> list[str]:
    """The ids of the tasks, unchecked."""
    array_id, attempt = message.template.task_id, message.attempt
    return [attempt_name(f"{array_id}:{index}", attempt) for index in message.indices]


def fill_array(message: types_pb2.TaskArray, array: TaskArray, kinds: ResourceKinds) -> None:
    """Write an array into an empty message."""
    fill_task(message.template, array.template, kinds)
    message.indices.extend(array.indices)
    message.count = array.count
    message.arguments.extend(array.arguments)
    message.attempt = array.attempt


def arrays_in(tasks: Sequence[TaskSpec]) -> tuple[list[TaskSpec], list[TaskArray]]:
    """The tasks that are of no array, and the arrays that the others are, as each was when it was read."""
    single: list[TaskSpec] = []
    arrays: list[TaskArray] = []
    for _, group in groupby(tasks, lambda task: task.origin and id(task.origin[0])):
        members = list(group)
        if members[0].origin is None:
            single += members
        else:
            arrays.append(members[0].origin[0].part([task.origin[1] for task in members if task.origin]))
    return single, arrays
