"""A master among newer agents and frameworks: what it does not know is skipped or answered, and nobody is sent away for it."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from fairlead_proto.agent_messages import read_register
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.ids import FrameworkId
from fairlead_proto.peers import CAPABILITIES, Unknowns
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.v1 import agent_pb2, framework_pb2, types_pb2
from tests.builders.messages import from_a_newer_peer
from tests.builders.peers import RawAgent, RawFramework, a_master, resources

KINDS = ResourceKinds()
NEW_STATE: Any = 99
NEW_REASON: Any = 99


def a_status(task_id: str, *, state: Any = "TASK_STATE_RUNNING", reason: Any = 0) -> types_pb2.TaskStatus:
    return types_pb2.TaskStatus(
        framework_id="f1-1", task_id=task_id, sequence=1, state=state, reason=reason, message="m"
    )


def a_running_task(state: Any) -> agent_pb2.RunningTask:
    spec = types_pb2.TaskSpec(task_id="t1", command=["true"], resources=resources())
    return agent_pb2.RunningTask(framework_id="f1-1", task=spec, state=state)


@pytest.mark.shell
async def test_a_newer_agent_stays_and_what_is_known_of_its_reports_counts() -> None:
    async with a_master() as master:
        framework = RawFramework(master.port)
        framework_id = (await framework.hello()).framework_id
        agent = RawAgent(master.port)
        await agent.stream.write(
            agent_pb2.AgentMessages(messages=[from_a_newer_peer(agent_pb2.AgentMessage())])
        )
        newer = from_a_newer_peer(agent_pb2.Register(hostname="h", total=resources(4, 8), capabilities=["x"]))
        registered = await agent.register(**{field.name: value for field, value in newer.ListFields()})
        await framework.want(2)
        await framework.accept(await framework.offer(), "t1", "t2")
        await agent.expect("launch")

        with capture_logs() as logs:
            for _ in range(3):
                await agent.stream.write(
                    agent_pb2.AgentMessages(messages=[from_a_newer_peer(agent_pb2.AgentMessage())])
                )
            news = a_status("t1", state=NEW_STATE)
            known = a_status("t2", reason=NEW_REASON)
            news.framework_id = known.framework_id = framework_id
            await agent.send(statuses=agent_pb2.StatusReports(statuses=[news, known]))
            statuses = await framework.expect("statuses")

        assert [(status.task_id, status.state) for status in statuses.statuses] == [
            ("t2", types_pb2.TASK_STATE_RUNNING)
        ]
        assert statuses.statuses[0].message == "m"
        assert master._agents is not None
        assert master._agents.unknowns.counts == {"message": 4, "task state": 1, "reason": 1}
        assert [line["what"] for line in logs if line["event"] == "agent.unknown_skipped"] == [
            "task state",
            "reason",
        ], "the first message of an unknown kind came before"
        assert registered.version
        assert list(registered.capabilities) == list(CAPABILITIES)
        await asyncio.gather(agent.close(), framework.close())


@pytest.mark.shell
async def test_a_newer_framework_gets_an_answer_to_what_is_not_known_and_stays() -> None:
    async with a_master() as master:
        framework = RawFramework(master.port)
        newer = from_a_newer_peer(framework_pb2.FrameworkCall(request_id=70))
        await framework.stream.write(framework_pb2.FrameworkCalls(calls=[newer]))
        early = await framework.expect("result")
        welcome = await framework.hello(version="9.9", capabilities=["x"] * 100)

        await framework.stream.write(framework_pb2.FrameworkCalls(calls=[newer]))
        late = await framework.expect("result")

        for answer in (early, late):
            assert (answer.request_id, answer.code) == (70, framework_pb2.CALL_CODE_INVALID)
            assert "got none that this version knows" in answer.detail
        assert (await framework.want()).code == framework_pb2.CALL_CODE_OK
        assert welcome.version
        assert list(welcome.capabilities) == list(CAPABILITIES)
        assert master.runner.machine.master.frameworks[FrameworkId(welcome.framework_id)].version == "9.9"
        assert master._frameworks is not None
        assert master._frameworks.unknowns.counts == {"call": 2}
        await framework.close()


def test_a_running_task_in_an_unknown_state_holds_its_resources_as_a_running_one() -> None:
    unknowns = Unknowns()
    register = agent_pb2.Register(
        hostname="h",
        tasks=[a_running_task(NEW_STATE)],
        unacknowledged=[a_status("t0", state=NEW_STATE), a_status("t2", reason=NEW_REASON)],
    )

    event = read_register(1, agent_pb2.AgentMessage(register=register), KINDS, unknowns)

    assert [task.state for task in event.tasks] == [TaskState.RUNNING]
    assert [(status.task_id, status.reason) for status in event.unacknowledged] == [("t2", Reason.NONE)]
    assert unknowns.counts == {"task state": 2, "reason": 1}


def test_a_state_that_nobody_set_is_no_news_but_a_fault() -> None:
    register = agent_pb2.Register(hostname="h", tasks=[a_running_task("TASK_STATE_UNSPECIFIED")])

    with pytest.raises(InvalidFieldError, match=r"register.tasks\[0\].state: expected a task state, got 0"):
        read_register(1, agent_pb2.AgentMessage(register=register), KINDS, Unknowns())
