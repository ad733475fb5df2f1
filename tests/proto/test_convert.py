"""The border: every field of a message is checked, and refusals name the field, what was expected and what came."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_proto import convert, fields, limits
from fairlead_proto.enum_numbers import REASONS, STATES
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, TaskId
from fairlead_proto.peers import Unknowns
from fairlead_proto.resources import QUANTITY_MAX, ResourceKinds
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

KINDS = ResourceKinds(custom=("licenses",))
UNIT = types_pb2.Resources(cpus_milli=1000, mem_bytes=2**30)

AMOUNTS = st.integers(0, QUANTITY_MAX)
VECTORS = st.tuples(*[AMOUNTS] * 5)
DEMANDS = VECTORS.filter(any)
IDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:@+=-]{0,30}", fullmatch=True)
WORDS = st.text(st.characters(min_codepoint=1, max_codepoint=1000), max_size=20)
SPECS = st.builds(
    TaskSpec,
    task_id=IDS.map(TaskId),
    resources=DEMANDS,
    command=st.lists(WORDS, min_size=1, max_size=4).filter(lambda words: words[0] != "").map(tuple),
    name=st.text("abc ", min_size=1, max_size=10),
    environment=st.dictionaries(st.text("ABC_", min_size=1), WORDS, max_size=3),
    working_directory=st.sampled_from(["", "data", "/srv"]),
    kill_grace_period_ms=st.integers(0, limits.DURATION_MS_MAX),
    max_runtime_ms=st.integers(0, limits.DURATION_MS_MAX),
    labels=st.dictionaries(st.sampled_from(["team", "x.y"]), st.text("abc", max_size=5)),
    no_files=st.booleans(),
).filter(lambda spec: not spec.no_files or spec.working_directory != "data")
USAGES = st.builds(
    TaskUsage,
    **dict.fromkeys(TaskUsage.__dataclass_fields__, AMOUNTS)
    | dict.fromkeys(["stdout_bytes", "stderr_bytes"], st.none() | AMOUNTS),
)
STATUSES = st.builds(
    TaskStatus,
    framework_id=IDS.map(FrameworkId),
    task_id=IDS.map(TaskId),
    agent_id=st.one_of(st.just(""), IDS).map(AgentId),
    sequence=st.integers(0, limits.COUNT_MAX),
    state=st.sampled_from(TaskState),
    reason=st.sampled_from(Reason),
    message=st.text("abc ", max_size=30),
    timestamp_ms=st.integers(0, limits.TIME_MS_MAX),
    exit_code=st.one_of(st.none(), st.integers(0, limits.EXIT_CODE_MAX)),
    signal=st.one_of(st.none(), st.integers(1, limits.SIGNAL_MAX)),
    usage=st.one_of(st.none(), USAGES),
)


@given(VECTORS)
def test_resources_survive_the_wire(vector: tuple[int, ...]) -> None:
    assert convert.read_resources("total", convert.write_resources(vector, KINDS), KINDS) == vector


@given(SPECS)
def test_a_task_survives_the_wire(spec: TaskSpec) -> None:
    message = types_pb2.TaskSpec()
    convert.fill_task(message, spec, KINDS)
    sent = types_pb2.TaskSpec.FromString(message.SerializeToString())

    assert convert.read_task("task", sent, KINDS) == spec


@given(STATUSES)
def test_a_status_survives_the_wire(status: TaskStatus) -> None:
    message = types_pb2.TaskStatus()
    convert.fill_status(message, status)
    sent = types_pb2.TaskStatus.FromString(message.SerializeToString())

    assert convert.read_status("status", sent, Unknowns()) == status


@given(SPECS, st.sampled_from(TaskState), st.integers(0, 2**40), st.integers(0, 2**40))
def test_a_running_task_survives_the_wire(
    spec: TaskSpec, state: TaskState, sequence: int, ran_ms: int
) -> None:
    running = RunningTask(
        framework_id=FrameworkId("f1-1"),
        spec=spec,
        state=state,
        sequence=sequence,
        ran_ms=ran_ms,
    )

    message = agent_pb2.RunningTask()
    convert.fill_running_task(message, running, KINDS)
    assert convert.read_running_task("task", message, KINDS, Unknowns()) == running


def test_demand_survives_the_wire() -> None:
    demand = DemandClass(
        class_id=ClassId("small"),
        unit=(500, 2**20, 0, 0, 1000),
        units=7,
        constraints=(
            Constraint("rack", Operator.EQUALS, ("a", "b")),
            Constraint("gpu", Operator.NOT_EXISTS),
            Constraint("zone", Operator.MATCHES, ("eu-.*",)),
        ),
        waiting_task_ids=(TaskId("t1"),),
    )

    message = framework_pb2.DemandClass(
        class_id=demand.class_id,
        unit=convert.write_resources(demand.unit, KINDS),
        units=demand.units,
        constraints=map(convert.write_constraint, demand.constraints),
        waiting_task_ids=demand.waiting_task_ids,
    )
    assert convert.read_classes("classes", [message], KINDS) == (demand,)


def test_every_state_reason_and_operator_has_a_number_and_comes_back() -> None:
    assert all(convert.read_state("state", STATES.of[state]) is state for state in TaskState)
    assert all(convert.read_reason("reason", REASONS.of[reason], Unknowns()) is reason for reason in Reason)
    assert [convert.read_reason("reason", 0, Unknowns())] == [Reason.NONE]


def a_task(**changes: object) -> types_pb2.TaskSpec:
    fields: dict[str, object] = {"task_id": "t1", "command": ["true"], "resources": UNIT} | changes
    return types_pb2.TaskSpec(**fields)  # type: ignore[arg-type]  # fields are chosen by the test


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"task_id": ""}, "task.task_id: expected 1 to 200 letters"),
        ({"task_id": "../x"}, "task.task_id: expected"),
        ({"task_id": "x" * 201}, "task.task_id: expected"),
        ({"command": []}, "task.command: expected at least one word, got none"),
        ({"command": [""]}, "task.command: expected at least one word"),
        ({"command": ["a\0b"]}, "task.command: expected no NUL byte"),
        ({"command": ["x" * (limits.COMMAND_BYTES_MAX + 1)]}, f"task.command: expected at most {limits.COMMAND_BYTES_MAX}"),
        ({"resources": types_pb2.Resources()}, "task.resources: expected at least one resource above zero"),
        ({"resources": types_pb2.Resources(cpus_milli=-1)}, "task.resources.cpus: expected 0 to 9007199254740992 (2^53), got -1"),
        ({"resources": types_pb2.Resources(mem_bytes=2**53 + 1)}, "task.resources.mem: expected 0 to"),
        ({"resources": types_pb2.Resources(custom_milli={"watts": 1})}, "task.resources: expected a resource this cluster knows (cpus, mem, disk, gpus, licenses; others by `fairlead master --custom-resource NAME`), got 'watts'"),
        ({"resources": types_pb2.Resources(custom_milli={"licenses": -5})}, "task.resources.licenses: expected 0 to"),
        ({"environment": {"A=B": "1"}}, "task.environment: expected names without ="),
        ({"environment": {"": "1"}}, "task.environment: expected names"),
        ({"environment": {"A": "x\0"}}, "task.environment: expected names"),
        ({"environment": {"A": "x" * limits.ENVIRONMENT_BYTES_MAX}}, "task.environment: expected at most"),
        ({"working_directory": "a\0"}, "task.working_directory: expected a path"),
        ({"working_directory": "a", "no_files": True}, "task.working_directory: expected an absolute path, since there is no sandbox without files, got 'a'"),
        ({"kill_grace_period_ms": -1}, "task.kill_grace_period_ms: expected 0 to"),
        ({"max_runtime_ms": limits.DURATION_MS_MAX + 1}, "task.max_runtime_ms: expected 0 to"),
        ({"name": "a\nb"}, "task.name: expected at most 256 printable"),
        ({"labels": {"1x": ""}}, "task.labels: expected names of letters"),
        ({"labels": {f"x{number}": "" for number in range(65)}}, "task.labels: expected at most 64, got 65"),
        ({"labels": {"x": "a\nb"}}, "task.labels.x: expected"),
    ],
)  # fmt: skip
def test_a_task_with_a_bad_field_is_refused_by_name(changes: dict[str, object], complaint: str) -> None:
    with pytest.raises(InvalidFieldError) as refusal:
        convert.read_task("task", a_task(**changes), KINDS)

    assert str(refusal.value).startswith(complaint)
    assert len(str(refusal.value)) < 400, "a refusal does not repeat a megabyte"
    assert "\n" not in str(refusal.value)


def test_a_task_without_a_name_is_called_by_its_id() -> None:
    assert convert.read_task("task", a_task(), KINDS).name == "t1"


def a_class(**changes: object) -> framework_pb2.DemandClass:
    fields: dict[str, object] = {"class_id": "c", "unit": UNIT, "units": 1} | changes
    return framework_pb2.DemandClass(**fields)  # type: ignore[arg-type]  # fields are chosen by the test


def test_a_class_without_a_demand_says_so() -> None:
    (demand,) = convert.read_classes("classes", [framework_pb2.DemandClass(class_id="c", units=2)], KINDS)

    assert (demand.is_declared, demand.unit, demand.units) == (False, KINDS.zero, 2)


def a_constraint(attribute: str, operator: int, *values: str) -> types_pb2.Constraint:
    return types_pb2.Constraint(attribute=attribute, operator=operator, values=values)  # type: ignore[arg-type]


EQUALS, EXISTS, MATCHES = (
    types_pb2.Constraint.OPERATOR_EQUALS,
    types_pb2.Constraint.OPERATOR_EXISTS,
    types_pb2.Constraint.OPERATOR_MATCHES,
)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"class_id": ""}, "classes[0].class_id: expected"),
        ({"units": -1}, "classes[0].units: expected 0 to 10000000, got -1"),
        ({"units": limits.UNITS_MAX + 1}, "classes[0].units: expected 0 to"),
        ({"unit": types_pb2.Resources()}, "classes[0].unit: expected at least one resource above zero"),
        ({"unit": types_pb2.Resources(mem_bytes=2**52), "units": 3}, "classes[0].units: expected units times the demand"),
        ({"waiting_task_ids": ["/"]}, "classes[0].waiting_task_ids: expected"),
        ({"constraints": [a_constraint("rack", 0, "a")]}, "classes[0].constraints[0].operator: expected one of"),
        ({"constraints": [a_constraint("rack", 99, "a")]}, "classes[0].constraints[0].operator: expected one of"),
        ({"constraints": [a_constraint("", EQUALS, "a")]}, "classes[0].constraints[0].attribute: expected a word"),
        ({"constraints": [a_constraint("rack", EQUALS)]}, "classes[0].constraints[0].values: expected at least one value"),
        ({"constraints": [a_constraint("rack", EXISTS, "a")]}, "classes[0].constraints[0].values: expected no value"),
        ({"constraints": [a_constraint("rack", MATCHES, "a", "b")]}, "classes[0].constraints[0].values: expected one pattern"),
        ({"constraints": [a_constraint("rack", MATCHES, "(")]}, "classes[0].constraints[0].values: expected a regular expression"),
        ({"constraints": [a_constraint("rack", EQUALS, *["v"] * 101)]}, "classes[0].constraints[0].values: expected at most 100"),
        ({"constraints": [a_constraint("rack", EXISTS)] * 33}, "classes[0].constraints: expected at most 32"),
    ],
)  # fmt: skip
def test_a_class_with_a_bad_field_is_refused_by_name(changes: dict[str, object], complaint: str) -> None:
    with pytest.raises(InvalidFieldError) as refusal:
        convert.read_classes("classes", [a_class(**changes)], KINDS)

    assert str(refusal.value).startswith(complaint)


def test_too_many_different_patterns_are_refused_before_one_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def note(pattern: str) -> str:
        asked.append(pattern)
        return ""

    monkeypatch.setattr(convert, "fault_in", note)
    most = [a_class(class_id=f"c{n}", constraints=[a_constraint("rack", MATCHES, f"r{n % 32}")]) for n in range(100)]  # fmt: skip
    another = a_class(class_id="one more", constraints=[a_constraint("rack", MATCHES, "r32")])

    convert.read_classes("classes", most, KINDS)
    assert asked
    asked.clear()
    with pytest.raises(InvalidFieldError, match=r"classes\.constraints: expected at most 32 different patterns, got 33"):  # fmt: skip
        convert.read_classes("classes", [*most, another], KINDS)
    assert not asked


def test_patterns_of_a_demand_that_have_too_many_steps_together_are_refused() -> None:
    large = [a_class(class_id=f"c{n}", constraints=[a_constraint("rack", MATCHES, f"{n}.{{1,63}}")]) for n in range(4)]  # fmt: skip

    convert.read_classes("classes", large[:3], KINDS)
    with pytest.raises(InvalidFieldError, match=r"classes\.constraints: expected patterns of at most 2000 steps together, got 2"):  # fmt: skip
        convert.read_classes("classes", large, KINDS)


def test_too_many_classes_are_refused() -> None:
    with pytest.raises(InvalidFieldError, match="classes: expected at most 1000 classes, got 1001"):
        convert.read_classes("classes", [a_class()] * (limits.CLASSES_MAX + 1), KINDS)


def test_a_class_id_twice_is_refused() -> None:
    with pytest.raises(InvalidFieldError, match="classes: expected each class id once, got 'c'"):
        convert.read_classes("classes", [a_class(), a_class()], KINDS)


def test_waiting_ids_beyond_the_bound_are_left_out() -> None:
    (demand,) = convert.read_classes(
        "classes", [a_class(waiting_task_ids=[f"t{n}" for n in range(100)])], KINDS
    )

    assert len(demand.waiting_task_ids) == limits.WAITING_TASKS_MAX


@pytest.mark.parametrize(
    ("read", "got", "expected"),
    [
        (lambda: fields.read_role("role", "Eng"), "'Eng'", "lower-case words"),
        (lambda: fields.read_role("role", "a//b"), "'a//b'", "lower-case words"),
        (lambda: fields.read_role("role", "/".join("abcdefghi")), "'a/b/c/d/e/f/g/h/i'", "at most 8"),
        (lambda: fields.read_weight("weight", float("nan")), "nan", "1e-06 to 1e"),
        (lambda: fields.read_weight("weight", float("inf")), "inf", "1e-06 to 1e"),
        (lambda: fields.read_weight("weight", 0.0), "0.0", "1e-06"),
        (lambda: fields.read_weight("weight", -1.0), "-1.0", "1e-06"),
        (lambda: convert.read_state("state", 0), "0", "a task state"),
        (lambda: convert.read_state("state", 99), "99", "a task state"),
        (lambda: fields.read_duration("ttl", -1), "-1", "0 to"),
        (lambda: fields.read_name("name", "x" * 300), "...", "at most 256"),
        (lambda: fields.read_attributes("attributes", {"k y": "v"}), "'k y'", "names of letters"),
        (lambda: fields.read_attributes("attributes", {f"k{n}": "" for n in range(101)}), "101", "at most 100"),
    ],
)  # fmt: skip
def test_other_bad_values_are_refused_with_what_came(
    read: Callable[[], object], got: str, expected: str
) -> None:
    with pytest.raises(InvalidFieldError) as refusal:
        read()

    assert got in str(refusal.value)
    assert expected in str(refusal.value)


def test_a_reason_that_is_not_known_here_is_counted_and_explains_nothing() -> None:
    unknowns = Unknowns()

    assert convert.read_reason("reason", 99, unknowns) is Reason.NONE
    assert unknowns.counts == {"reason": 1}


def test_an_empty_role_is_the_default_one() -> None:
    assert fields.read_role("role", "") == "default"
    assert fields.read_role("role", "eng/ml") == "eng/ml"


def test_a_status_without_a_state_is_refused() -> None:
    message = types_pb2.TaskStatus(framework_id="f1-1", task_id="t1")

    with pytest.raises(InvalidFieldError, match=r"status\.state: expected a task state, got 0"):
        convert.read_status("status", message, Unknowns())


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"framework_id": "f\0"}, "status.framework_id: expected 1 to 200 letters"),
        ({"task_id": ""}, "status.task_id: expected 1 to 200 letters"),
        ({"agent_id": "a\0"}, "status.agent_id: expected 1 to 200 letters"),
        ({"sequence": 2**53 + 1}, "status.sequence: expected 0 to 9007199254740992 (2^53), got 9007199254740993"),
        ({"sequence": 2**63}, "status.sequence: expected 0 to"),
        ({"state": "TASK_STATE_UNSPECIFIED"}, "status.state: expected a task state, got 0"),
        ({"state": 99}, "status.state: expected a task state, got 99"),
        ({"timestamp_ms": -1}, "status.timestamp_ms: expected 0 to 253402300799999 ms since 1970, got -1"),
        ({"timestamp_ms": 2**63 - 1}, "status.timestamp_ms: expected 0 to"),
        ({"exit_code": -1}, "status.exit_code: expected 0 to 255, got -1"),
        ({"exit_code": 2**31 - 1}, "status.exit_code: expected 0 to 255"),
        ({"signal": 0}, "status.signal: expected 1 to 126, got 0"),
        ({"signal": -(2**31)}, "status.signal: expected 1 to 126"),
    ],
)  # fmt: skip
def test_a_status_with_a_bad_field_is_refused_by_name(changes: dict[str, Any], complaint: str) -> None:
    good: dict[str, Any] = {"framework_id": "f", "task_id": "t", "state": "TASK_STATE_RUNNING"}
    message = types_pb2.TaskStatus(**(good | changes))

    with pytest.raises(InvalidFieldError) as refusal:
        convert.read_status("status", message, Unknowns())

    assert str(refusal.value).startswith(complaint)


def test_bounds_of_texts_are_in_bytes() -> None:
    """A character may take four, and it is bytes that the kernel takes no more of."""
    wide = "\N{GRINNING FACE}"
    field = {
        "environment": {"A": wide * (limits.ENVIRONMENT_BYTES_MAX // 4)},
        "command": [wide * (limits.COMMAND_BYTES_MAX // 4), "x"],
        "working_directory": wide * (limits.PATH_BYTES_MAX // 4) + "x",
    }
    for name, value in field.items():
        with pytest.raises(
            InvalidFieldError, match=rf"task\.{name}: expected .*at most [0-9]+ bytes, got [0-9]+"
        ):
            convert.read_task("task", a_task(**{name: value}), KINDS)


def test_a_running_task_without_a_framework_is_refused() -> None:
    message = agent_pb2.RunningTask(task=a_task(), state=types_pb2.TASK_STATE_RUNNING)

    with pytest.raises(InvalidFieldError, match=r"tasks\.framework_id: expected 1 to 200"):
        convert.read_running_task("tasks", message, KINDS, Unknowns())


def test_a_running_task_from_the_future_has_not_run() -> None:
    message = agent_pb2.RunningTask(framework_id="f1-1", task=a_task(), state=types_pb2.TASK_STATE_RUNNING)
    message.ran_ms = -5

    assert convert.read_running_task("tasks", message, KINDS, Unknowns()).ran_ms == 0


def test_a_long_message_in_a_status_is_cut() -> None:
    message = types_pb2.TaskStatus(
        framework_id="f1-1", task_id="t1", state=types_pb2.TASK_STATE_FAILED, message="x" * 10_000
    )

    assert len(convert.read_status("status", message, Unknowns()).message) == 4096


def test_measurements_beyond_what_can_be_are_the_most_that_can() -> None:
    usage = types_pb2.TaskUsage(cpu_time_ms=2**63 - 1, mem_bytes=2**53 + 1, sandbox_bytes=2**53)

    most = QUANTITY_MAX
    assert convert.read_usage(usage) == TaskUsage(cpu_time_ms=most, mem_bytes=most, sandbox_bytes=most)


def test_output_of_a_peer_that_does_not_count_it_is_unknown_and_not_empty() -> None:
    assert convert.read_usage(types_pb2.TaskUsage()).written_bytes("stdout") is None
    assert convert.read_usage(types_pb2.TaskUsage(stdout_bytes=0)).written_bytes("stdout") == 0
    assert convert.read_usage(types_pb2.TaskUsage(stderr_bytes=2**60)).written_bytes("stderr") == QUANTITY_MAX


def test_measurements_below_zero_are_none() -> None:
    assert convert.read_usage(types_pb2.TaskUsage(mem_bytes=-5, cpu_time_ms=3)) == TaskUsage(cpu_time_ms=3)
