"""Followers of output: who is asked for what, and how little a slow reader costs."""

import asyncio
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from fairlead_master import output_follows
from fairlead_master.output_follows import Follows
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.ids import AgentId, FrameworkId, TaskId
from fairlead_proto.v1 import agent_pb2 as pb

F = FrameworkId("f1")
T1, T2 = TaskId("t1"), TaskId("t2")


class Agent:
    """The stream of an agent that notes what it is told."""

    def __init__(self, *, can_follow: bool = True) -> None:
        self.can_follow = can_follow
        self.told: list[pb.FileRequests] = []

    def put(self, requests: pb.FileRequests) -> None:
        self.told.append(requests)

    @property
    def orders(self) -> list[pb.FollowOutput]:
        return [order for requests in self.told for order in requests.follow]

    @property
    def taken(self) -> list[int]:
        return [number for requests in self.told for number in requests.taken]


def cluster(agents: dict[str, Agent], tasks: Iterable[tuple[TaskId, str]] = ()) -> Follows:
    """Followers in a master with one framework whose tasks run on these agents."""
    running = {task_id: SimpleNamespace(agent_id=AgentId(agent_id)) for task_id, agent_id in tasks}
    framework = SimpleNamespace(tasks=running)
    master: Any = SimpleNamespace(frameworks={F: framework}, find_task=lambda key: running.get(key[1]))
    return Follows(master, agents.get)


def said(number: int, task_id: str, data: bytes, *, offset: int = 0, **fields: Any) -> pb.FollowedOutput:
    piece = pb.OutputPiece(task_id=task_id, path="stdout", offset=offset, data=data, **fields)
    return pb.FollowedOutput(follow_id=number, pieces=[piece])


def test_agents_with_tasks_of_the_framework_are_asked_and_no_others() -> None:
    agents = {"a1": Agent(), "a2": Agent(), "a3": Agent()}
    follows = cluster(agents, [(T1, "a1"), (T2, "a2")])

    follows.open(F, {T2: (5, 0)})

    assert [list(order.positions) for order in agents["a1"].orders] == [[]]
    assert [list(order.positions) for order in agents["a2"].orders] == [
        [pb.OutputPosition(task_id="t2", stdout_offset=5)]
    ]
    assert agents["a3"].told == []


def test_an_agent_that_gets_tasks_is_asked_once_and_for_who_follows_them() -> None:
    agent = Agent()
    follows = cluster({})
    follows.open(F, {})

    for framework_id in (F, F, FrameworkId("f2")):
        follows.launched(framework_id, agent)

    assert [order.framework_id for order in agent.orders] == ["f1"]


def test_an_agent_of_before_is_not_asked() -> None:
    agent = Agent(can_follow=False)
    follows = cluster({"a1": agent}, [(T1, "a1")])

    follows.open(F, {})
    follows.launched(F, agent)
    follows.joined(agent)

    assert agent.told == []


def test_an_agent_that_comes_back_goes_on_where_its_output_was_handed_on() -> None:
    agent = Agent()
    follows = cluster({"a1": agent}, [(T1, "a1"), (T2, "a1")])
    follows.open(F, {})
    follows.sent(agent, [said(1, "t1", b"abc")])
    follows.passed_on([1])
    follows.sent(agent, [said(1, "t2", b"abc", complete=True)])
    follows.left(agent)

    follows.joined(agent)

    assert [list(order.positions) for order in agent.orders] == [
        [],
        [pb.OutputPosition(task_id="t1", stdout_offset=3)],
    ]


async def test_an_agent_may_send_more_once_its_message_was_passed_on() -> None:
    agent = Agent()
    follows = cluster({"a1": agent}, [(T1, "a1")])
    follower = follows.open(F, {})
    (order,) = agent.orders
    follows.sent(agent, [said(order.follow_id, "t1", b"abc")])

    output, numbers = await follower.take()
    before = agent.taken
    follows.passed_on(numbers)

    assert [piece.data for piece in output.pieces] == [b"abc"]
    assert (before, agent.taken) == ([], [order.follow_id])


def test_an_agent_that_sends_before_its_message_was_taken_is_not_listened_to() -> None:
    agent = Agent()
    follows = cluster({"a1": agent}, [(T1, "a1")])
    follows.open(F, {})
    follows.sent(agent, [said(1, "t1", b"abc")])

    with pytest.raises(InvalidFieldError, match="expected nothing before the last message was taken"):
        follows.sent(agent, [said(1, "t1", b"def", offset=3)])


@pytest.mark.parametrize(
    ("piece", "complaint"),
    [
        ({"task_id": "", "path": "stdout"}, "task_id"),
        ({"task_id": "t1", "path": "../passwd"}, "path: expected stdout or stderr"),
        ({"task_id": "t1", "path": "stdout", "offset": -1}, "offset: expected 0 or more"),
        ({"task_id": "t1", "path": "stdout", "data": b"x" * (256 * 1024 + 1)}, "at most 262144 bytes"),
    ],
)
def test_what_no_agent_sends_is_refused(piece: dict[str, Any], complaint: str) -> None:
    agent = Agent()
    follows = cluster({"a1": agent}, [(T1, "a1")])
    follows.open(F, {})

    with pytest.raises(InvalidFieldError, match=complaint):
        follows.sent(agent, [pb.FollowedOutput(follow_id=1, pieces=[pb.OutputPiece(**piece)])])


def test_windows_of_all_followers_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_follows, "WINDOWS_BYTES", 100 * 1024)
    agents = {f"a{number}": Agent() for number in range(4)}
    follows = cluster(agents, [(TaskId(f"t{number}"), f"a{number}") for number in range(4)])

    follows.open(F, {})

    windows = [order.window_bytes for agent in agents.values() for order in agent.orders]
    assert windows == [100 * 1024, 50 * 1024, 100 * 1024 // 3, 25 * 1024]


def test_who_leaves_is_sent_nothing_and_agents_are_told() -> None:
    agent = Agent()
    follows = cluster({"a1": agent}, [(T1, "a1")])
    follower = follows.open(F, {})

    follows.close(follower)
    follows.sent(agent, [said(1, "t1", b"late")])
    follows.launched(F, agent)

    assert [list(requests.unfollow) for requests in agent.told] == [[], [1]]
    assert len(agent.orders) == 1


async def test_a_message_has_what_several_agents_sent() -> None:
    agents = {"a1": Agent(), "a2": Agent()}
    follows = cluster(agents, [(T1, "a1"), (T2, "a2")])
    follower = follows.open(F, {})
    waiting = asyncio.ensure_future(follower.take())
    for agent in agents.values():
        (order,) = agent.orders
        follows.sent(agent, [said(order.follow_id, "t1", b"x")])

    output, numbers = await waiting

    assert (len(output.pieces), sorted(numbers)) == (2, [1, 2])
