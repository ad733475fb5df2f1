"""The border between messages and values, with ``enum_numbers`` the only file that knows both.

Every function here that reads a message checks every field it reads, by ``fields`` where it stands for itself, and raises
``InvalidFieldError`` naming the field, what was expected and what came; so whoever holds a value need not check again. Functions that write trust their values.
Amounts become vectors of the given ``ResourceKinds``.
"""

from collections.abc import Mapping, Sequence

from fairlead_proto import __version__, limits
from fairlead_proto.enum_numbers import OPERATORS, REASONS, STATES
from fairlead_proto.fields import (
    InvalidFieldError,
    UnknownValueError,
    is_attribute,
    is_id,
    read_attributes,
    read_command,
    read_count,
    read_duration,
    read_environment,
    read_id,
    read_name,
    read_path,
    read_time,
    refusal,
)
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, TaskId, TaskKey
from fairlead_proto.patterns import fault_in, steps
from fairlead_proto.peers import CAPABILITIES, Unknowns
from fairlead_proto.resources import QUANTITY_MAX, STANDARD_NAMES, ResourceKinds, Vector
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import (
    Constraint,
    DemandClass,
    Operator,
    RunningTask,
    TaskSpec,
    TaskStatus,
    TaskUsage,
)
from fairlead_proto.v1 import agent_pb2, framework_pb2, types_pb2


def read_key(field: str, framework_id: str, task_id: str) -> TaskKey:
    """The name of a task in the whole cluster."""
    return (
        FrameworkId(read_id(f"{field}.framework_id", framework_id)),
        TaskId(read_id(f"{field}.task_id", task_id)),
    )


# --- resources ---------------------------------------------------------------------------------------------------


def read_resources(field: str, message: types_pb2.Resources, kinds: ResourceKinds) -> Vector:
    """The vector of a message; every amount is within 0 and 2^53 and of a known resource."""
    vector: Vector = (message.cpus_milli, message.mem_bytes, message.disk_bytes, message.gpus_milli)
    if message.custom_milli or kinds.custom:
        vector += _read_custom(field, message.custom_milli, kinds)
    # One comparison for the common case: no place out of range.
    if min(vector) < 0 or max(vector) > QUANTITY_MAX:
        for name, amount in zip(kinds.names, vector, strict=True):
            if not 0 <= amount <= QUANTITY_MAX:
                raise refusal(f"{field}.{name}", f"0 to {QUANTITY_MAX} (2^53)", amount)
    return vector


def _read_custom(field: str, custom: Mapping[str, int], kinds: ResourceKinds) -> Vector:
    for name in custom:
        if name not in kinds.custom:
            known = f"{', '.join(kinds.names)}; others by `fairlead master --custom-resource NAME`"
            raise refusal(field, f"a resource this cluster knows ({known})", name)
    return tuple([custom.get(name, 0) for name in kinds.custom])


def read_named(field: str, message: types_pb2.Resources) -> dict[str, int]:
    """Name to amount of whatever resources the peer knows, each within 0 and 2^53, zeros left out."""
    vector = (message.cpus_milli, message.mem_bytes, message.disk_bytes, message.gpus_milli)
    standard = zip(STANDARD_NAMES, vector, strict=True)
    amounts = {name: amount for name, amount in (*standard, *sorted(message.custom_milli.items())) if amount}
    for name, amount in amounts.items():
        if not 0 <= amount <= QUANTITY_MAX:
            raise refusal(f"{field}.{name}", f"0 to {QUANTITY_MAX} (2^53)", amount)
    return amounts


def read_demand(field: str, message: types_pb2.Resources, kinds: ResourceKinds) -> Vector:
    """Like ``read_resources``, and not zero everywhere."""
    vector = read_resources(field, message, kinds)
    if not any(vector):
        raise InvalidFieldError(f"{field}: expected at least one resource above zero, got none")
    return vector


def write_resources(vector: Vector, kinds: ResourceKinds) -> types_pb2.Resources:
    """The message of a vector."""
    message = types_pb2.Resources()
    fill_resources(message, vector, kinds)
    return message


def fill_resources(message: types_pb2.Resources, vector: Vector, kinds: ResourceKinds) -> None:
    """Write a vector into an empty message, which is then there, be it all zeros."""
    message.SetInParent()
    message.cpus_milli, message.mem_bytes, message.disk_bytes, message.gpus_milli = vector[:4]
    if kinds.custom:
        for name, amount in zip(kinds.custom, vector[4:], strict=True):
            if amount:
                message.custom_milli[name] = amount


# --- states ------------------------------------------------------------------------------------------------------


def read_state(field: str, number: int) -> TaskState:
    """The task state of an enum number.

    Raises:
        InvalidFieldError: it is unspecified.
        UnknownValueError: a newer peer may know it.
    """
    state = STATES.by_number.get(number)
    if state is None:
        error = refusal(field, "a task state", number)
        raise UnknownValueError("task state", str(error)) if number else error
    return state


def read_reason(field: str, number: int, unknowns: Unknowns) -> Reason:
    """The reason of an enum number; none where it is unspecified, and where only a newer peer could explain it."""
    if number == 0:
        return Reason.NONE
    reason = REASONS.by_number.get(number)
    if reason is None:
        unknowns.note("reason", str(refusal(field, "a reason", number)))
        return Reason.NONE
    return reason


# --- tasks -------------------------------------------------------------------------------------------------------


def read_task(field: str, message: types_pb2.TaskSpec, kinds: ResourceKinds) -> TaskSpec:
    """A task description, every field checked."""
    # Tens of thousands come a second: the names of fields are put together only for a refusal, and what is absent, as
    # most fields are, is not asked for twice.
    task_id = message.task_id
    command = tuple(message.command)
    environment, labels = message.environment, message.labels
    grace_period_ms, max_runtime_ms = message.kill_grace_period_ms, message.max_runtime_ms
    working_directory, name = message.working_directory, message.name
    read_command(f"{field}.command", command)
    if len(task_id) > limits.ID_LENGTH_MAX or is_id(task_id) is None:
        read_id(f"{field}.task_id", task_id)
    if working_directory:
        read_path(f"{field}.working_directory", working_directory, is_absolute=message.no_files)
    if grace_period_ms:
        read_duration(f"{field}.kill_grace_period_ms", grace_period_ms)
    if max_runtime_ms:
        read_duration(f"{field}.max_runtime_ms", max_runtime_ms)
    return TaskSpec(
        task_id=TaskId(task_id),
        resources=_read_unit(field, message.resources, kinds),
        command=command,
        name=read_name(f"{field}.name", name) if name else task_id,
        environment=read_environment(f"{field}.environment", environment) if environment else {},
        working_directory=working_directory,
        kill_grace_period_ms=grace_period_ms,
        max_runtime_ms=max_runtime_ms,
        labels=read_attributes(f"{field}.labels", labels, count_max=limits.LABELS_MAX) if labels else {},
        no_files=message.no_files,
    )


def _read_unit(field: str, message: types_pb2.Resources, kinds: ResourceKinds) -> Vector:
    """A task's demand: like ``read_demand`` of its field ``resources``, at once if it is plain and in range."""
    vector = (message.cpus_milli, message.mem_bytes, message.disk_bytes, message.gpus_milli)
    if kinds.custom or message.custom_milli or min(vector) < 0 or not 0 < max(vector) <= QUANTITY_MAX:
        return read_demand(f"{field}.resources", message, kinds)
    return vector


def fill_task(message: types_pb2.TaskSpec, task: TaskSpec, kinds: ResourceKinds) -> None:
    """Write a task description into an empty message: one that is part of another need not be copied into it then."""
    message.task_id = task.task_id
    message.name = task.name
    message.command.extend(task.command)
    fill_resources(message.resources, task.resources, kinds)
    # Absent and empty are the same on the wire, and most tasks have none of these.
    if task.environment:
        message.environment.update(task.environment)
    if task.working_directory:
        message.working_directory = task.working_directory
    if task.kill_grace_period_ms:
        message.kill_grace_period_ms = task.kill_grace_period_ms
    if task.max_runtime_ms:
        message.max_runtime_ms = task.max_runtime_ms
    if task.labels:
        message.labels.update(task.labels)
    if task.no_files:
        message.no_files = True


def read_status(field: str, message: types_pb2.TaskStatus, unknowns: Unknowns) -> TaskStatus:
    """One report about a task, every field checked.

    Raises:
        InvalidFieldError: a field is wrong.
        UnknownValueError: a newer peer may know its state.
    """
    framework_id, task_id = message.framework_id, message.task_id
    if len(framework_id) > limits.ID_LENGTH_MAX or is_id(framework_id) is None:
        read_id(f"{field}.framework_id", framework_id)
    if len(task_id) > limits.ID_LENGTH_MAX or is_id(task_id) is None:
        read_id(f"{field}.task_id", task_id)
    state = STATES.by_number.get(message.state) or read_state(f"{field}.state", message.state)
    reason = REASONS.by_number.get(message.reason) or read_reason(f"{field}.reason", message.reason, unknowns)
    agent_id, sequence, timestamp_ms = message.agent_id, message.sequence, message.timestamp_ms
    if agent_id and (len(agent_id) > limits.ID_LENGTH_MAX or is_id(agent_id) is None):
        read_id(f"{field}.agent_id", agent_id)
    if sequence > limits.COUNT_MAX:
        read_count(f"{field}.sequence", sequence)
    if not 0 <= timestamp_ms <= limits.TIME_MS_MAX:
        read_time(f"{field}.timestamp_ms", timestamp_ms)
    text = message.message
    return TaskStatus(
        framework_id=FrameworkId(framework_id),
        task_id=TaskId(task_id),
        agent_id=AgentId(agent_id),
        sequence=sequence,
        state=state,
        reason=reason,
        message=text[: limits.STATUS_MESSAGE_LENGTH_MAX] if text else "",
        timestamp_ms=timestamp_ms,
        exit_code=_read_end(f"{field}.exit_code", message.exit_code, 0, limits.EXIT_CODE_MAX)
        if message.HasField("exit_code")
        else None,
        signal=_read_end(f"{field}.signal", message.signal, 1, limits.SIGNAL_MAX)
        if message.HasField("signal")
        else None,
        usage=read_usage(message.usage) if message.HasField("usage") else None,
    )


def _read_end(field: str, number: int, least: int, most: int) -> int:
    if not least <= number <= most:
        raise refusal(field, f"{least} to {most}", number)
    return number


def fill_status(message: types_pb2.TaskStatus, status: TaskStatus) -> None:
    """Write a report into an empty message."""
    message.framework_id = status.framework_id
    message.task_id = status.task_id
    message.agent_id = status.agent_id
    message.sequence = status.sequence
    message.state = STATES.of[status.state]
    message.reason = REASONS.of[status.reason]
    message.timestamp_ms = status.timestamp_ms
    if status.message:
        message.message = status.message
    if status.exit_code is not None:
        message.exit_code = status.exit_code
    if status.signal is not None:
        message.signal = status.signal
    if status.usage is not None:
        fill_usage(message.usage, status.usage)


def read_usage(message: types_pb2.TaskUsage) -> TaskUsage:
    """What a task used; figures that no measurement gives become the nearest that one could, 0 or 2^53."""
    figures = (
        message.cpu_time_ms,
        message.mem_bytes,
        message.mem_peak_bytes,
        message.mem_limit_bytes,
        message.sandbox_bytes,
    )
    if min(figures) < 0 or max(figures) > QUANTITY_MAX:
        figures = tuple([_clamped(figure) for figure in figures])  # type: ignore[assignment]  # still five
    cpu_time_ms, mem_bytes, mem_peak_bytes, mem_limit_bytes, sandbox_bytes = figures
    return TaskUsage(
        cpu_time_ms=cpu_time_ms,
        mem_bytes=mem_bytes,
        mem_peak_bytes=mem_peak_bytes,
        mem_limit_bytes=mem_limit_bytes,
        sandbox_bytes=sandbox_bytes,
        stdout_bytes=_clamped(message.stdout_bytes) if message.HasField("stdout_bytes") else None,
        stderr_bytes=_clamped(message.stderr_bytes) if message.HasField("stderr_bytes") else None,
    )


def _clamped(figure: int) -> int:
    return min(max(0, figure), QUANTITY_MAX)


def fill_usage(message: types_pb2.TaskUsage, usage: TaskUsage) -> None:
    """Write a measurement into an empty message, which is then there, be it all zeros."""
    message.SetInParent()
    message.cpu_time_ms = usage.cpu_time_ms
    message.mem_bytes = usage.mem_bytes
    message.mem_peak_bytes = usage.mem_peak_bytes
    message.mem_limit_bytes = usage.mem_limit_bytes
    message.sandbox_bytes = usage.sandbox_bytes
    if usage.stdout_bytes is not None:
        message.stdout_bytes = usage.stdout_bytes
    if usage.stderr_bytes is not None:
        message.stderr_bytes = usage.stderr_bytes


def read_running_task(
    field: str, message: agent_pb2.RunningTask, kinds: ResourceKinds, unknowns: Unknowns
) -> RunningTask:
    """A task an agent says it runs, be its state one that only a newer agent knows: it holds its resources."""
    try:
        state = read_state(f"{field}.state", message.state)
    except UnknownValueError as error:
        unknowns.note(error.what, str(error))
        state = TaskState.RUNNING
    return RunningTask(
        framework_id=FrameworkId(read_id(f"{field}.framework_id", message.framework_id)),
        spec=read_task(f"{field}.task", message.task, kinds),
        state=state,
        sequence=read_count(f"{field}.sequence", message.sequence),
        ran_ms=min(max(0, message.ran_ms), limits.TIME_MS_MAX),
    )


def fill_running_task(message: agent_pb2.RunningTask, task: RunningTask, kinds: ResourceKinds) -> None:
    """Write a running task into an empty message."""
    message.framework_id = task.framework_id
    fill_task(message.task, task.spec, kinds)
    message.state = STATES.of[task.state]
    message.sequence = task.sequence
    message.ran_ms = task.ran_ms


# --- peers -------------------------------------------------------------------------------------------------------

_Introduction = agent_pb2.Register | agent_pb2.Registered | framework_pb2.Hello | framework_pb2.Welcome
"""Messages in which a peer says what it is."""


def introduce(message: _Introduction) -> None:
    """Write into a message what this version says of itself."""
    message.version = __version__
    message.capabilities.extend(CAPABILITIES)


# --- demand ------------------------------------------------------------------------------------------------------


def read_classes(
    field: str, messages: Sequence[framework_pb2.DemandClass], kinds: ResourceKinds
) -> tuple[DemandClass, ...]:
    """The demand classes of one call: bounded in number, no class id twice."""
    if len(messages) > limits.CLASSES_MAX:
        raise refusal(field, f"at most {limits.CLASSES_MAX} classes", len(messages))
    _check_pattern_count(field, messages)
    classes = tuple(
        _read_class(f"{field}[{index}]", message, kinds) for index, message in enumerate(messages)
    )
    seen: set[str] = set()
    for demand in classes:
        if demand.class_id in seen:
            raise refusal(field, "each class id once", demand.class_id)
        seen.add(demand.class_id)
    _check_pattern_steps(field, classes)
    return classes


def _check_pattern_count(field: str, messages: Sequence[framework_pb2.DemandClass]) -> None:
    """Before any is compiled: a thousand bad ones would take seconds to refuse."""
    patterns = {
        value
        for message in messages
        for constraint in message.constraints
        if constraint.operator == types_pb2.Constraint.OPERATOR_MATCHES
        for value in constraint.values
    }
    if len(patterns) > limits.PATTERNS_MAX:
        raise refusal(
            f"{field}.constraints", f"at most {limits.PATTERNS_MAX} different patterns", len(patterns)
        )


def _check_pattern_steps(field: str, classes: Sequence[DemandClass]) -> None:
    found = {
        constraint.values[0]
        for demand in classes
        for constraint in demand.constraints
        if constraint.operator is Operator.MATCHES
    }
    count = sum(map(steps, found))
    if count > limits.PATTERN_STEPS_MAX:
        expected = f"patterns of at most {limits.PATTERN_STEPS_MAX} steps together"
        raise refusal(f"{field}.constraints", expected, count)


def _read_class(field: str, message: framework_pb2.DemandClass, kinds: ResourceKinds) -> DemandClass:
    if not 0 <= message.units <= limits.UNITS_MAX:
        raise refusal(f"{field}.units", f"0 to {limits.UNITS_MAX}", message.units)
    waiting = message.waiting_task_ids[: limits.WAITING_TASKS_MAX]
    demand = DemandClass(
        class_id=ClassId(read_id(f"{field}.class_id", message.class_id)),
        unit=read_demand(f"{field}.unit", message.unit, kinds) if message.HasField("unit") else kinds.zero,
        units=message.units,
        constraints=read_constraints(f"{field}.constraints", message.constraints),
        waiting_task_ids=tuple([TaskId(read_id(f"{field}.waiting_task_ids", text)) for text in waiting]),
        is_declared=message.HasField("unit"),
    )
    if any(amount * demand.units > QUANTITY_MAX for amount in demand.unit):
        raise refusal(f"{field}.units", "units times the demand to stay below 2^53", message.units)
    return demand


def read_constraints(field: str, messages: Sequence[types_pb2.Constraint]) -> tuple[Constraint, ...]:
    """Constraints in their order, each checked; patterns must compile."""
    if len(messages) > limits.CONSTRAINTS_MAX:
        raise refusal(field, f"at most {limits.CONSTRAINTS_MAX} constraints", len(messages))
    return tuple(_read_constraint(f"{field}[{index}]", message) for index, message in enumerate(messages))


def _read_constraint(field: str, message: types_pb2.Constraint) -> Constraint:
    operator = OPERATORS.by_number.get(message.operator)
    if operator is None:
        error = refusal(f"{field}.operator", "one of the operators", message.operator)
        raise UnknownValueError("operator", str(error)) if message.operator else error
    if is_attribute(message.attribute) is None:
        raise refusal(f"{field}.attribute", "a word of letters, digits, _ . -", message.attribute)
    values = tuple(message.values)
    is_long = any(len(value) > limits.NAME_LENGTH_MAX for value in values)
    if is_long or len(values) > limits.CONSTRAINT_VALUES_MAX:
        raise refusal(f"{field}.values", f"at most {limits.CONSTRAINT_VALUES_MAX} short values", len(values))
    needs_values = operator not in (Operator.EXISTS, Operator.NOT_EXISTS)
    if bool(values) is not needs_values:
        raise refusal(f"{field}.values", "at least one value" if needs_values else "no value", list(values))
    if operator is Operator.MATCHES:
        _check_pattern(field, values)
    return Constraint(message.attribute, operator, values)


def _check_pattern(field: str, values: tuple[str, ...]) -> None:
    most = limits.PATTERN_LENGTH_MAX
    if len(values) != 1 or len(values[0]) > most:
        raise refusal(f"{field}.values", f"one pattern of at most {most} characters", list(values))
    if fault := fault_in(values[0]):
        raise refusal(f"{field}.values", fault, values[0])


def write_constraint(constraint: Constraint) -> types_pb2.Constraint:
    """The message of a constraint."""
    number = OPERATORS.of[constraint.operator]
    return types_pb2.Constraint(
        attribute=constraint.attribute,
        operator=number,
        values=constraint.values,
    )
