"""Whatever a peer sends is taken or refused by name; nothing it sends may break what others see."""

import asyncio
from collections.abc import Sequence
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_master import framework_wire, views
from fairlead_master.agent_service import beat_events, status_events
from fairlead_master.allocation.parts import Parts, Result, at_once
from fairlead_master.core import actions, events
from fairlead_master.operator_service import OperatorService
from fairlead_proto import framework_messages
from fairlead_proto.agent_messages import read_heartbeat, read_register, read_statuses, write_orders
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.framework_call_messages import read_hello
from fairlead_proto.framework_events import ToFramework
from fairlead_proto.orders import ToAgent
from fairlead_proto.peers import Unknowns
from fairlead_proto.task_state import TaskState
from fairlead_proto.v1 import agent_pb2, framework_pb2, operator_pb2, types_pb2
from tests.builders.master import GIB, KINDS, Cluster, a_class, a_running, a_status
from tests.builders.messages import any_message, spoiled

AMOUNT = types_pb2.Resources(cpus_milli=100, mem_bytes=GIB)
SPEC = types_pb2.TaskSpec(task_id="t9", command=["true"], resources=AMOUNT, environment={"A": "b"})
USAGE = types_pb2.TaskUsage(
    cpu_time_ms=1, mem_bytes=2, mem_peak_bytes=3, mem_limit_bytes=4, sandbox_bytes=5, stdout_bytes=0
)
STATUS = types_pb2.TaskStatus(
    framework_id="f1-1", task_id="t1", agent_id="a1-1", sequence=2,
    state=types_pb2.TASK_STATE_FINISHED, reason=types_pb2.REASON_EXITED, exit_code=0, timestamp_ms=5, usage=USAGE,
)  # fmt: skip
RUNNING = agent_pb2.RunningTask(
    framework_id="f1-1", task=SPEC, state=types_pb2.TASK_STATE_RUNNING, sequence=1, ran_ms=9
)
REGISTER = agent_pb2.AgentMessage(
    register=agent_pb2.Register(
        agent_id="a1-1", incarnation=2, hostname="h", total=AMOUNT, attributes={"rack": "a"},
        tasks=[RUNNING], unacknowledged=[STATUS], last_epoch=1, agent_time_ms=1_000_000, isolation="none", version="1",
    )
)  # fmt: skip
REPORT = agent_pb2.TaskUsageReport(framework_id="f1-1", task_id="t1", usage=USAGE)
BEAT = agent_pb2.AgentHeartbeat(agent_time_ms=1_000_000, used=AMOUNT, tasks=[REPORT])
REPORTS = agent_pb2.StatusReports(statuses=[STATUS])
CONSTRAINT = types_pb2.Constraint(
    attribute="rack", operator=types_pb2.Constraint.OPERATOR_MATCHES, values=["a.*"]
)
ITEM = framework_pb2.Acknowledge.Item
CLASS = framework_pb2.DemandClass(
    class_id="c", unit=AMOUNT, units=2, constraints=[CONSTRAINT], waiting_task_ids=["w"]
)
HELLO = framework_pb2.FrameworkCall(
    request_id=1, hello=framework_pb2.Hello(framework_id="f1-1", name="n", role="default", weight=2)
)
CALLS = [
    framework_pb2.FrameworkCall(
        request_id=9, set_demand=framework_pb2.SetDemand(version=9, classes=[CLASS])
    ),
    framework_pb2.FrameworkCall(request_id=9, accept=framework_pb2.Accept(offer_id="o1-2", tasks=[SPEC])),
    framework_pb2.FrameworkCall(
        request_id=9, decline=framework_pb2.Decline(offer_ids=["o1-2"], reason="r", scope="SCOPE_AGENT", ttl_ms=5)
    ),
    framework_pb2.FrameworkCall(
        request_id=9, kill=framework_pb2.Kill(task_ids=["t1"], grace_period_ms=5)
    ),
    framework_pb2.FrameworkCall(
        request_id=9,
        acknowledge=framework_pb2.Acknowledge(
            items=[ITEM(task_id="t1", sequence=1, agent_id="a1-1")]
        ),
    ),
    framework_pb2.FrameworkCall(request_id=9, reconcile=framework_pb2.Reconcile(task_ids=["t1"])),
    framework_pb2.FrameworkCall(request_id=9, teardown=framework_pb2.Teardown()),
]  # fmt: skip


def a_lively_cluster() -> tuple[Cluster, int, int]:
    """One agent that runs one task of one framework, which has an offer besides; with the sessions of both."""
    cluster = Cluster(now_ms=1_000_000)
    agent = cluster.new_agent()
    framework, _ = cluster.new_framework()
    cluster.launch(framework, "t1")
    cluster.report(agent, a_status("f1-1"))
    cluster.demand(framework, a_class(units=2, waiting=["w1"]))
    cluster.offers()
    return cluster, agent, framework


def all_listings(cluster: Cluster) -> list[bytes]:
    """What every listing says, as bytes."""
    master, now_ms = cluster.master, cluster.now_ms
    known = [*master.frameworks.values(), *master.completed_frameworks.values()]
    messages: list[Any] = [
        at_once(views.cluster(master, now_ms)),
        *(views.agent_info(master, agent) for agent in master.agents.values()),
        *(views.framework_info(master, framework) for framework in known),
        *(views.task_row_info(master, row) for row in views.select_tasks(master, frozenset(), "") if row),
        *(views.offer_info(master, offer, now_ms) for offer in master.offers.values()),
        *views.class_infos(master, views.class_rows(master)),
        *at_once(views.roles(master)),
        *views.decisions(master, 100),
        views.changes_after(master, max(0, master.version - 50), frozenset(), 100),
    ]
    return [message.SerializeToString() for message in messages]


def step(cluster: Cluster, event: events.Event) -> None:
    """Take an event, and write what the master answers."""
    for action in cluster.step(event):
        if isinstance(action, ToFramework):
            framework_messages.write_events([action], KINDS, epoch=1)
        elif isinstance(action, ToAgent):
            write_orders([action], KINDS, epoch=1)


def read(what: Any, session: int) -> Sequence[events.Event]:
    """The events of a message, by the reader that its service would use."""
    match what:
        case agent_pb2.AgentMessage():
            return [read_register(session, what, KINDS, Unknowns())]
        case agent_pb2.AgentHeartbeat():
            return beat_events(session, *read_heartbeat(what, KINDS))
        case agent_pb2.StatusReports():
            return status_events(session, read_statuses(what, Unknowns()))
        case framework_pb2.FrameworkCall() if what.WhichOneof("call") == "hello":
            return [read_hello(session, what)]
        case _:
            return framework_wire.read_call(session, what, KINDS)


def of_agents() -> st.SearchStrategy[Any]:
    return st.one_of(
        [spoiled(message) for message in (REGISTER, BEAT, REPORTS)]
        + [any_message(kind) for kind in (agent_pb2.AgentMessage, agent_pb2.AgentHeartbeat, agent_pb2.StatusReports)]
    )  # fmt: skip


def of_frameworks() -> st.SearchStrategy[Any]:
    return st.one_of([any_message(framework_pb2.FrameworkCall)] + [spoiled(call) for call in [HELLO, *CALLS]])


@given(messages=st.lists(of_agents() | of_frameworks(), min_size=1, max_size=6))
def test_whatever_peers_send_is_taken_or_refused_and_every_listing_answers(messages: list[Any]) -> None:
    cluster, agent, framework = a_lively_cluster()
    for message in messages:
        of_agent = message.DESCRIPTOR.file.name.endswith("agent.proto")
        opens = isinstance(message, agent_pb2.AgentMessage) or (
            isinstance(message, framework_pb2.FrameworkCall) and message.WhichOneof("call") == "hello"
        )
        session = agent if of_agent else framework
        if opens:
            cluster.session += 1
            session = cluster.session
        try:
            taken = read(message, session)
        except InvalidFieldError as error:
            if isinstance(message, framework_pb2.FrameworkCall):
                framework_wire.write_invalid(message, error).SerializeToString()
            continue
        for event in taken:
            step(cluster, event)
        if opens and of_agent:
            agent = session
        elif opens:
            framework = session
        cluster.now_ms += 1_000
        step(cluster, events.Ticked())
        assert all_listings(cluster)


def test_one_agents_largest_figures_break_no_listing() -> None:
    cluster, agent, _ = a_lively_cluster()
    most = 2**63 - 1
    usage = types_pb2.TaskUsage(
        cpu_time_ms=most, mem_bytes=most, mem_peak_bytes=most, mem_limit_bytes=most, sandbox_bytes=most
    )
    report = agent_pb2.TaskUsageReport(framework_id="f1-1", task_id="t1", usage=usage)
    for now_ms in (1_000_100, 1_000_101, 1_002_000):
        cluster.now_ms = now_ms
        (beat,) = read(agent_pb2.AgentHeartbeat(tasks=[report]), agent)
        step(cluster, beat)

        assert all_listings(cluster)


def test_sums_beyond_what_a_field_holds_are_shown_as_the_largest_it_does() -> None:
    cluster = Cluster()
    _, framework_id = cluster.new_framework()
    tasks = [a_running(framework_id, f"t{number}", unit=(2**53, 2**53, 0, 0)) for number in range(1025)]
    cluster.agent()
    cluster.agent(agent_id="a1-1", incarnation=2, tasks=tasks)
    while cluster.master.registering:
        cluster.tick()

    assert all_listings(cluster)
    (agent,) = cluster.master.agents.values()
    assert views.agent_info(cluster.master, agent).allocated.mem_bytes == 2**63 - 1


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (agent_pb2.Register(incarnation=2**53 + 1), "register.incarnation: expected 0 to"),
        (agent_pb2.Register(last_epoch=2**64 - 1), "register.last_epoch: expected 0 to"),
        (agent_pb2.Register(agent_time_ms=-(2**63)), "register.agent_time_ms: expected 0 to"),
        (agent_pb2.Register(agent_time_ms=2**63 - 1), "register.agent_time_ms: expected 0 to"),
        (agent_pb2.Register(agent_id="a\0"), "register.agent_id: expected"),
        (agent_pb2.Register(hostname="\x1b[2J"), "register.hostname: expected"),
        (
            agent_pb2.Register(
                tasks=[agent_pb2.RunningTask(framework_id="f", task=SPEC, state="TASK_STATE_STAGING")]
            ),
            "register.tasks[0].state: expected a state that an agent may report, got 'STAGING'",
        ),
        (
            agent_pb2.Register(
                unacknowledged=[
                    types_pb2.TaskStatus(framework_id="f", task_id="t", state="TASK_STATE_RUNNING")
                ]
            ),
            "register.unacknowledged[0].sequence: expected 1 or more from an agent, got 0",
        ),
        (
            agent_pb2.Register(
                unacknowledged=[
                    types_pb2.TaskStatus(
                        framework_id="f", task_id="t", state="TASK_STATE_UNREACHABLE", sequence=1
                    )
                ]
            ),
            "register.unacknowledged[0].state: expected a state that an agent may report, got 'UNREACHABLE'",
        ),
    ],
)
def test_a_registration_with_a_bad_field_is_refused_by_name(
    message: agent_pb2.Register, complaint: str
) -> None:
    with pytest.raises(InvalidFieldError) as refusal:
        read_register(1, agent_pb2.AgentMessage(register=message), KINDS, Unknowns())

    assert str(refusal.value).startswith(complaint)


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        ({"decline": framework_pb2.Decline(scope=99)}, "decline.scope: expected one of 0 to 3, got 99"),  # type: ignore[arg-type]
        ({"decline": framework_pb2.Decline(offer_ids=["\0"])}, "decline.offer_ids: expected"),
        ({"decline": framework_pb2.Decline(ttl_ms=-1)}, "decline.ttl_ms: expected"),
        ({"set_demand": framework_pb2.SetDemand(version=2**64 - 1)}, "set_demand.version: expected 0 to"),
        ({"accept": framework_pb2.Accept(offer_id="")}, "accept.offer_id: expected"),
        ({"kill": framework_pb2.Kill(task_ids=["t", "x" * 201])}, "kill.task_ids: expected"),
        ({"reconcile": framework_pb2.Reconcile(task_ids=["a b"])}, "reconcile.task_ids: expected"),
        (
            {"acknowledge": framework_pb2.Acknowledge(items=[ITEM(task_id="t", sequence=2**63)])},
            "acknowledge.items.sequence: expected 0 to",
        ),
        (
            {"acknowledge": framework_pb2.Acknowledge(items=[ITEM(task_id="t", agent_id="\0")])},
            "acknowledge.items.agent_id: expected",
        ),
        ({}, "call: expected one of"),
    ],
)
def test_a_call_with_a_bad_field_is_refused_by_name(call: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidFieldError) as refusal:
        framework_wire.read_call(1, framework_pb2.FrameworkCall(**call), KINDS)

    assert str(refusal.value).startswith(complaint)


def test_a_task_that_needs_nothing_is_refused_wherever_it_comes_from() -> None:
    nothing = types_pb2.TaskSpec(task_id="t1", command=["true"], resources=types_pb2.Resources())
    accept = framework_pb2.FrameworkCall(accept=framework_pb2.Accept(offer_id="o1", tasks=[nothing]))
    running = agent_pb2.RunningTask(framework_id="f", task=nothing, state=types_pb2.TASK_STATE_RUNNING)
    register = agent_pb2.AgentMessage(register=agent_pb2.Register(tasks=[running]))

    (event,) = framework_wire.read_call(1, accept, KINDS)
    assert isinstance(event, events.OfferAccepted)
    assert isinstance(event.tasks[0], events.InvalidTask)
    assert "task.resources: expected at least one resource above zero" in event.tasks[0].detail
    with pytest.raises(InvalidFieldError, match=r"tasks\[0\].task.resources: expected at least one"):
        read_register(1, register, KINDS, Unknowns())


def test_a_lost_status_is_one_an_agent_may_report() -> None:
    lost = types_pb2.TaskStatus(framework_id="f", task_id="t", state=types_pb2.TASK_STATE_LOST, sequence=1)

    (status,) = read_statuses(agent_pb2.StatusReports(statuses=[lost]), Unknowns())

    assert status.state is TaskState.LOST


class Refused(Exception):
    """What ``context.abort`` raises, with the status and the detail."""


class Context:
    """Of a call that an operator made."""

    async def abort(self, code: grpc.StatusCode, detail: str) -> None:
        raise Refused(code, detail)


class Runner:
    """Carries an operator's orders out at once."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.machine = cluster.machine
        self.clock = self

    def now_ms(self) -> int:
        return self.cluster.now_ms

    async def ask(self, make: Any) -> actions.AnswerOperator:
        answers = self.cluster.step(make(1))
        return next(action for action in answers if isinstance(action, actions.AnswerOperator))

    async def in_parts(self, parts: Parts[Result]) -> Result:
        return at_once(parts)


ASKED = {
    "GetCluster": operator_pb2.GetClusterRequest(),
    "ListTasks": operator_pb2.ListTasksRequest(page_size=5, states=["RUNNING"], task_ids=["t1"]),
    "ListAgents": operator_pb2.ListRequest(page_size=5, page_token="a"),
    "ListFrameworks": operator_pb2.ListRequest(page_size=5),
    "ListRoles": operator_pb2.ListRequest(page_size=5),
    "ListOffers": operator_pb2.ListRequest(page_size=5),
    "ListClasses": operator_pb2.ListRequest(page_size=5),
    "KillTasks": operator_pb2.KillTasksRequest(task_ids=["t1"], framework_id="f1-1", grace_period_ms=5),
    "TeardownFramework": operator_pb2.TeardownFrameworkRequest(framework_id="f1-1", detail="why"),
    "Explain": operator_pb2.ExplainRequest(id="f1-1/c"),
    "GetPolicy": operator_pb2.GetPolicyRequest(),
    "SetPolicy": operator_pb2.SetPolicyRequest(policy="slots:4", placement="pack", demand="measured"),
    "SetWeight": operator_pb2.SetWeightRequest(role="default", weight=2, resource_weights={"cpus": 3}),
    "AllocationLog": operator_pb2.AllocationLogRequest(limit=5),
}
POLICIES = (
    "drf", "pf", "slots:0", "slots:99999999999999999999", "alpha:nan", "alpha:1e999", "bbf:-1", "bbf:60,999%",
    "max-min:nothing", "baa:x", "fifo:1", "\0",
)  # fmt: skip


def orders() -> st.SearchStrategy[tuple[str, Any]]:
    def one(name: str) -> st.SearchStrategy[tuple[str, Any]]:
        requests = st.just(ASKED[name]) | spoiled(ASKED[name])
        if name == "SetPolicy":
            requests |= st.sampled_from(POLICIES).map(
                lambda policy: operator_pb2.SetPolicyRequest(policy=policy)
            )
        return requests.map(lambda request: (name, request))

    return st.sampled_from(list(ASKED)).flatmap(one)


@given(asked=st.lists(orders(), min_size=1, max_size=6))
def test_whatever_an_operator_asks_is_answered_or_refused(asked: list[tuple[str, Any]]) -> None:
    cluster, _, _ = a_lively_cluster()
    service = OperatorService(Runner(cluster))  # type: ignore[arg-type]  # it asks for no more than this of a runner
    for name, request in asked:
        try:
            answer = asyncio.run(getattr(service, name)(request, Context()))
        except Refused as refusal:
            code, detail = refusal.args
            assert code in {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND}, detail
            assert detail
        else:
            answer.SerializeToString()
        cluster.now_ms += 1_000
        step(cluster, events.Ticked())
        assert all_listings(cluster)
