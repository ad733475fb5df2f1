"""What a master orders and what an agent says arrive as they were sent."""

from dataclasses import replace

from fairlead_proto import convert
from fairlead_proto.agent_messages import (
    REGISTER_COMMAND_BYTES_MAX,
    STATUSES_PER_MESSAGE_MAX,
    read_heartbeat,
    read_orders,
    read_register,
    read_statuses,
    write_heartbeat,
    write_orders,
    write_register,
    write_statuses,
)
from fairlead_proto.codes import RefusalCode
from fairlead_proto.ids import AgentId, FrameworkId, TaskId
from fairlead_proto.limits import MESSAGE_BYTES_MAX
from fairlead_proto.orders import (
    AcknowledgeStatuses,
    ConfirmAgent,
    EndAgentSession,
    KillTask,
    LaunchTasks,
    PingAgent,
    ToAgent,
)
from fairlead_proto.peers import Unknowns
from fairlead_proto.reports import AgentConnected
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import RunningTask, TaskSpec, TaskStatus, TaskUsage

KINDS = ResourceKinds(("tapes",))
F, T = FrameworkId("f1"), TaskId("t1")
SPEC = TaskSpec(task_id=T, resources=(100, 2**20, 0, 0, 3), command=("sh", "-c", "true"), name="t1")
STATUS = TaskStatus(
    framework_id=F, task_id=T, agent_id=AgentId("a1"), sequence=2, state=TaskState.FINISHED, exit_code=0
)


def test_orders_arrive_as_they_were_given() -> None:
    orders: list[ToAgent] = [
        LaunchTasks(framework_id=F, tasks=(SPEC,)),
        KillTask(framework_id=F, task_id=T, grace_period_ms=5, reason=Reason.MAX_RUNTIME),
        AcknowledgeStatuses(items=(((F, T), 2), ((F, TaskId("t2")), 1))),
        PingAgent(),
        EndAgentSession(code=RefusalCode.LIMIT, detail="the disk is full"),
    ]

    (batch,) = write_orders(orders, KINDS, epoch=7)

    assert batch.epoch == 7
    assert [
        order for message in batch.messages for order in read_orders(message, KINDS, Unknowns())
    ] == orders


def test_a_confirmation_says_the_version_of_the_master_that_writes_it() -> None:
    order = ConfirmAgent(agent_id=AgentId("a1"), heartbeat_interval_ms=5_000, files_token="x")

    (batch,) = write_orders([order], KINDS, epoch=7)
    (read,) = read_orders(batch.messages[0], KINDS, Unknowns())

    assert isinstance(read, ConfirmAgent)
    assert (read.agent_id, read.heartbeat_interval_ms, read.files_token) == ("a1", 5_000, "x")
    assert read.version


def test_a_registration_arrives_as_it_was_given_in_the_session_it_came_by() -> None:
    report = AgentConnected(
        agent_id=None,
        incarnation=3,
        hostname="h",
        total=(4_000, 2**30, 0, 0, 7),
        attributes={"rack": "a"},
        tasks=(RunningTask(framework_id=F, spec=SPEC, state=TaskState.RUNNING, sequence=1, ran_ms=9),),
        unacknowledged=(STATUS,),
        last_epoch=2,
        agent_time_ms=1_000,
        isolation="none",
    )

    read = read_register(5, write_register(report, KINDS), KINDS, Unknowns())

    assert read.version
    assert read.answers_ping
    assert read == replace(report, session=5, version=read.version, answers_ping=True)


def test_statuses_and_heartbeats_arrive_as_they_were_given() -> None:
    usages = (((F, T), TaskUsage(cpu_time_ms=1, mem_bytes=2)),)

    (statuses,) = write_statuses([STATUS])
    heartbeat = write_heartbeat(1_000, (1, 2, 3, 4, 5), usages, KINDS).heartbeat

    assert read_statuses(statuses.statuses, Unknowns()) == (STATUS,)
    assert heartbeat.agent_time_ms == 1_000
    assert read_heartbeat(heartbeat, KINDS) == ((1, 2, 3, 4, 5), usages)


def a_registration_of(*specs: TaskSpec) -> AgentConnected:
    return AgentConnected(
        agent_id=STATUS.agent_id,
        incarnation=1,
        hostname="h",
        total=(1000, 0, 0, 0, 3),
        attributes={},
        tasks=tuple(
            RunningTask(framework_id=F, spec=spec, state=TaskState.RUNNING, sequence=1) for spec in specs
        ),
    )


def test_many_statuses_are_cut_into_messages() -> None:
    statuses = tuple(
        replace(STATUS, task_id=TaskId(f"t{number}")) for number in range(2 * STATUSES_PER_MESSAGE_MAX + 1)
    )

    messages = write_statuses(statuses)

    assert [len(message.statuses.statuses) for message in messages] == [1_000, 1_000, 1]
    read_back = [
        convert.read_status("status", status, Unknowns())
        for message in messages
        for status in message.statuses.statuses
    ]
    assert tuple(read_back) == statuses


def test_registration_with_huge_commands_stays_below_the_size_of_a_message() -> None:
    huge = "x" * 100_000
    specs = [replace(SPEC, task_id=TaskId(f"t{number}"), command=("sh", "-c", huge)) for number in range(200)]
    assert sum(len(word) for spec in specs for word in spec.command) > REGISTER_COMMAND_BYTES_MAX

    message = write_register(a_registration_of(*specs), KINDS)

    assert message.ByteSize() < MESSAGE_BYTES_MAX
    assert [list(task.task.command) for task in message.register.tasks] == [["sh"]] * 200


def test_registration_with_ordinary_commands_has_them_whole() -> None:
    message = write_register(a_registration_of(SPEC), KINDS)

    assert list(message.register.tasks[0].task.command) == ["sh", "-c", "true"]
