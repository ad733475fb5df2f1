"""How long the steps take that peers can make long, by CPU time: `PYTHONPATH=. .venv/bin/python benchmarks/longest_steps.py`.

A master's core without a network. Each row is the longest of all steps that follow what a peer sends, until nothing is due any
more for two seconds; of what operators, watchers, scrapes and the broker get, the longest time between two turns of the loop.
Collections of Python's garbage, which may come at any step, are put off.
"""

import argparse
import asyncio
import gc
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import prometheus_client  # noqa: F401 - before it is timed.

from fairlead_master.core import events
from fairlead_master.core.actions import Action
from fairlead_master.metrics import MasterMetrics
from fairlead_master.operator_service import OperatorService
from fairlead_master.picture import SWEEP_MS, Picture
from fairlead_master.runner import Runner
from fairlead_master.telemetry import MasterTelemetry
from fairlead_proto import patterns
from fairlead_proto.clock import SteadyClock
from fairlead_proto.ids import FrameworkId
from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import Constraint, DemandClass, Operator, TaskUsage
from fairlead_proto.v1 import operator_pb2
from fairlead_telemetry.broker import BrokerOptions
from tests.builders.master import Cluster, a_class, a_running, a_status, resources

TINY = resources(cpus=0.001)


class Timed(Cluster):
    """A cluster whose books nobody checks, with the longest of its steps."""

    longest_s = 0.0
    steps = 0

    def step(self, event: events.Event) -> list[Action]:
        started_s = time.process_time()
        actions = self.machine.step(event, self.now_ms)
        self.longest_s = max(self.longest_s, time.process_time() - started_s)
        self.steps += 1
        return actions

    def agents(self, count: int, cpus: float = 4) -> None:
        for number in range(count):
            names = {"rack": f"rack{number % 50}", "name": f"{number:05d}.host.of.a.cluster.example"}
            self.new_agent(cpus=cpus, gib=cpus * 2, attributes=names)
        self.wait(2_000)


def patterned(number: int, count: int) -> list[DemandClass]:
    """One class with so many patterns that all agents match, and one that none does."""
    names = [f"[0-9]+[.]host.*of.a.{{0,{9 + number}}}cluster.{{{index},}}" for index in range(count - 1)]
    return [
        a_class(
            unit=TINY,
            units=10,
            constraints=[Constraint("name", Operator.MATCHES, (name,)) for name in [*names, f"no{number}.*"]],
        )
    ]


def patterns_of(count: int) -> Callable[[Timed], None]:
    def run(cluster: Timed) -> None:
        session, _ = cluster.new_framework()
        cluster.demand(session, *patterned(0, count))

    return run


def constraints(cluster: Timed) -> None:
    session, _ = cluster.new_framework()
    many = Constraint("rack", Operator.EQUALS, tuple(f"rack{number}" for number in range(99, -1, -1)))
    classes = [
        a_class(
            f"c{each}", unit=TINY, constraints=[*[many] * 31, Constraint("rack", Operator.EQUALS, ("x",))]
        )
        for each in range(10)
    ]
    cluster.demand(session, *classes)


def agent_beside_patterns(cluster: Timed) -> None:
    for number in range(100):
        session, _ = cluster.new_framework()
        cluster.demand(session, *patterned(number, 32))
    cluster.wait(20_000)
    cluster.longest_s, cluster.steps = 0, 0
    cluster.new_agent(cpus=4, attributes={"name": "99999.host.of.a.cluster.example"})


def classes(cluster: Timed) -> None:
    session, _ = cluster.new_framework()
    cluster.demand(session, *[a_class(f"c{n}", unit=resources(cpus=1 + n / 1_000)) for n in range(1_000)])
    cluster.wait(1_000)
    cluster.demand(session, *[a_class(f"c{n}", unit=resources(cpus=2 + n / 1_000)) for n in range(1_000)])


def measurements(cluster: Timed) -> None:
    session, _ = cluster.new_framework()
    keys = []
    for start in range(0, 10_000, 1_000):
        cluster.now_ms += 100
        names = [f"t{number}" for number in range(start, start + 1_000)]
        cluster.launch(session, *names, unit=TINY)
    (agent,) = cluster.master.agents.values()
    keys = list(agent.tasks)
    for cpu_time_ms in (5_000, 10_000):
        cluster.now_ms += 5_000
        reports = tuple((key, TaskUsage(cpu_time_ms=cpu_time_ms, mem_bytes=2**20)) for key in keys)
        assert agent.session is not None
        cluster.step(events.AgentBeat(session=agent.session, used=TINY, tasks=reports))


def many_wait(cluster: Timed, role: str = "") -> None:
    """30 frameworks want a thousand classes each, no two alike, in roles of their own or in one."""
    for start in range(0, 30_000, 1_000):
        session, _ = cluster.new_framework(role=role or f"r{start}")
        cluster.demand(session, *[a_class(f"c{n}", unit=(1_000, 1 + start + n, 0, 0)) for n in range(1_000)])


def tasks_end(cluster: Timed) -> None:
    session, framework_id = cluster.new_framework()
    names = [f"t{number}" for number in range(1_000)]
    cluster.launch(session, *names, unit=resources(cpus=4))
    many_wait(cluster)
    cluster.wait(15_000)
    cluster.longest_s, cluster.steps = 0, 0
    for agent in list(cluster.master.agents.values())[:100]:
        assert agent.session is not None
        ((_, name),) = agent.tasks
        cluster.report(
            agent.session, a_status(framework_id, name, TaskState.FINISHED, agent_id=agent.agent_id)
        )


def agent_beside_classes(cluster: Timed) -> None:
    many_wait(cluster, role="shared")
    cluster.wait(1_000)
    cluster.longest_s, cluster.steps = 0, 0
    cluster.new_agent(cpus=4)
    cluster.wait(100)


def agent_leaves_beside_classes(cluster: Timed) -> None:
    many_wait(cluster, role="shared")
    cluster.wait(1_000)
    cluster.longest_s, cluster.steps = 0, 0
    cluster.agent_leaves(1)
    cluster.wait(100)


def agent_beside_frameworks(cluster: Timed) -> None:
    for number in range(10_000):
        session, _ = cluster.new_framework(role=f"r{number % 100}")
        cluster.demand(session, *[a_class(f"c{n}", unit=(1_000, 1 + number + n, 0, 0)) for n in range(3)])
    cluster.wait(1_000)
    cluster.longest_s, cluster.steps = 0, 0
    cluster.new_agent(cpus=4)
    cluster.wait(1_000)


def leases_end(cluster: Timed) -> None:
    many_wait(cluster)
    cluster.wait(6_000)


def greedy(cluster: Timed) -> None:
    for _ in range(2):
        session, _ = cluster.new_framework()
        cluster.demand(session, a_class(unit=TINY, units=10**7))


def with_offers(cluster: Timed, frameworks: int) -> dict[int, FrameworkId]:
    """Frameworks that have 20,000 offers together, one of a core on each agent and once more; gives their ids by session."""
    ids = dict(cluster.new_framework(role=f"r{number}") for number in range(frameworks))
    classes = [a_class(f"c{number}", units=20_000 // frameworks // 100) for number in range(100)]
    for session in ids:
        cluster.demand(session, *classes)
    cluster.wait(1_000)
    cluster.longest_s, cluster.steps = 0, 0
    print(len(cluster.master.offers), "offers:", end=" ")
    return ids


def framework_with_offers_leaves(cluster: Timed) -> None:
    (session,) = with_offers(cluster, 1)
    cluster.framework_leaves(session)


def framework_with_offers_is_superseded(cluster: Timed) -> None:
    (framework_id,) = with_offers(cluster, 1).values()
    cluster.framework(framework_id=framework_id, role="r0")


def agents_with_offers_leave(cluster: Timed) -> None:
    with_offers(cluster, 10)
    for session in list(cluster.master.agent_by_session):
        cluster.agent_leaves(session)


def agents_with_offers_are_silent(cluster: Timed) -> None:
    with_offers(cluster, 10)
    cluster.master.settings = replace(cluster.master.settings, offer_lease_ms=60_000)
    cluster.wait(25_000)


def slots_end(cluster: Timed) -> None:
    """Of 20,000 offers to agents that hold more than they have."""
    cluster.step(events.PolicySet(request=1, policy="slots:50"))
    with_offers(cluster, 10)
    cluster.step(events.PolicySet(request=2, policy="drf"))


def with_tasks(cluster: Timed, frameworks: int, each: int) -> dict[int, FrameworkId]:
    """Frameworks with so many running tasks each; gives their ids by session."""
    ids = dict(cluster.new_framework(role=f"r{number}") for number in range(frameworks))
    for session, framework_id in ids.items():
        framework = cluster.master.frameworks[framework_id]
        for start in range(0, each, 1_000):
            cluster.now_ms += 100
            names = [f"t{number}" for number in range(start, min(each, start + 1_000))]
            cluster.launch(session, *names, unit=TINY)
        for task in list(framework.tasks.values()):
            on = cluster.master.agents[task.agent_id].session or 0
            cluster.report(on, a_status(framework_id, task.task_id, agent_id=task.agent_id))
    cluster.wait(1_000)
    cluster.longest_s, cluster.steps = 0, 0
    return ids


def framework_with_tasks_ends(cluster: Timed) -> None:
    (session,) = with_tasks(cluster, 1, 10_000)
    cluster.teardown(session)


def reconciled(cluster: Timed) -> None:
    (session,) = with_tasks(cluster, 1, 10_000)
    cluster.reconcile(session)


def agent_with_tasks_is_lost(cluster: Timed) -> None:
    with_tasks(cluster, 1, 10_000)
    cluster.agent_leaves(1)
    cluster.wait(25 * 3600 * 1000)


def agent_with_tasks_comes_back(cluster: Timed) -> None:
    with_tasks(cluster, 1, 10_000)
    (agent,) = cluster.master.agents.values()
    running = [a_running(*key, unit=TINY) for key in agent.tasks]
    cluster.agent_leaves(1)
    cluster.agent(agent_id=agent.agent_id, incarnation=2, cpus=100, tasks=running)


def failovers(cluster: Timed) -> None:
    """All frameworks leave, and their timeouts end at once."""
    for session in with_tasks(cluster, 1_000, 10):
        cluster.framework_leaves(session)
    cluster.longest_s, cluster.steps = 0, 0
    cluster.wait(3_700_000)


def many_roles(cluster: Timed) -> None:
    for number in range(10_000):
        session, _ = cluster.new_framework(role=f"r{number}")
        if number % 2:
            cluster.demand(
                session, a_class(unit=TINY, units=3), a_class("l", unit=resources(cpus=4), units=9)
            )
    cluster.wait(1_000)


def policy_changes(cluster: Timed) -> None:
    """Five times, with one framework a role, until all are ranked and the first are served."""
    many_roles(cluster)
    cluster.wait(6_000)
    cluster.longest_s, cluster.steps = 0, 0
    for policy in ("max-min", "fifo", "asset", "utilization", "drf"):
        cluster.step(events.PolicySet(request=1, policy=policy))
        while cluster.master.allocator.is_cut_short:
            cluster.wait(16)


ROWS: dict[str, tuple[int, float, Callable[[Timed], None]]] = {
    "two frameworks want ten million units": (20, 10**6, greedy),
    "32 constraints of 100 values for 10 classes": (5_000, 4, constraints),
    "one pattern": (5_000, 4, patterns_of(1)),
    "4 patterns": (5_000, 4, patterns_of(4)),
    "32 patterns": (5_000, 4, patterns_of(32)),
    "an agent beside 100 demands with 32 patterns": (50, 4, agent_beside_patterns),
    "1,000 classes, then 1,000 others": (1_000, 4, classes),
    "measurements of 10,000 tasks": (1, 100, measurements),
    "another policy, with 10,000 roles": (1_000, 4, policy_changes),
    "30,000 classes wait in one role, and an agent joins": (100, 4, agent_beside_classes),
    "30,000 classes wait in one role, and an agent leaves": (100, 4, agent_leaves_beside_classes),
    "10,000 frameworks wait in 100 roles, and an agent joins": (100, 4, agent_beside_frameworks),
    "a framework with offers leaves": (5_000, 4, framework_with_offers_leaves),
    "a framework with offers comes back in another session": (5_000, 4, framework_with_offers_is_superseded),
    "all agents with offers leave": (500, 40, agents_with_offers_leave),
    "an agent with offers leaves": (1, 20_000, agents_with_offers_leave),
    "all agents with offers are silent": (500, 40, agents_with_offers_are_silent),
    "slots end, of agents with offers": (500, 40, slots_end),
    "a framework with 10,000 running tasks ends": (100, 100, framework_with_tasks_ends),
    "10,000 tasks are reconciled": (100, 100, reconciled),
    "an agent with 10,000 tasks is lost and forgotten": (1, 100, agent_with_tasks_is_lost),
    "an agent with 10,000 tasks comes back": (1, 100, agent_with_tasks_comes_back),
    "the timeouts of 1,000 frameworks with 10 tasks each end": (100, 100, failovers),
    "30,000 classes wait, and 100 tasks end": (1_000, 4, tasks_end),
    "30,000 classes are offered something, and all leases end": (1_000, 4, leases_end),
}


def many_tasks(cluster: Timed) -> None:
    for number in range(100):
        cluster.now_ms += 100
        session, _ = cluster.new_framework(role=f"r{number}")
        cluster.launch(session, *[f"t{each}" for each in range(1_000)], unit=TINY)


Answer = Callable[[Runner], Coroutine[Any, Any, Callable[[], Any]]]
"""Gives what makes bytes of the answer, as gRPC does."""

PAGE = operator_pb2.ListRequest(page_size=5_000)


def call(name: str, request: Any) -> tuple[str, Answer]:
    async def answer(runner: Runner) -> Any:
        found = await getattr(OperatorService(runner), name)(request, None)
        return found.SerializeToString

    return name, answer


async def watched_roles(runner: Runner) -> Any:
    """The message that has all roles, after the one that begins the picture."""
    picture = Picture(runner.machine.master)
    await runner.in_parts(picture.take(0))
    message = await runner.in_parts(picture.take(SWEEP_MS))
    assert message is not None
    assert message.roles.roles
    return message.SerializeToString


async def scrape(runner: Runner) -> Any:
    metrics = MasterMetrics("127.0.0.1:0", runner, {}, {}, None)
    await metrics._collect()  # noqa: SLF001 - without the text, which is written in a thread.
    metrics.close()
    return bytes


async def shares_for_the_broker(runner: Runner) -> Any:
    """With their bytes, which the link makes when it is given them."""
    telemetry = MasterTelemetry(runner, BrokerOptions(host="127.0.0.1", port=1), "127.0.0.1:5050")
    retain, retained = telemetry.link.retain, asyncio.Event()

    def told(topic: str, fields: Any) -> None:
        retain(topic, fields)
        retained.set()

    telemetry.link.retain = told  # type: ignore[method-assign]
    following = asyncio.create_task(telemetry._follow_shares())  # noqa: SLF001
    await retained.wait()
    following.cancel()
    return bytes


ASKED: list[tuple[str, Callable[[Timed], None], list[tuple[str, Answer]]]] = [
    (
        "10,000 roles and frameworks",
        many_roles,
        [
            call("ListRoles", PAGE),
            ("the roles of a watcher", watched_roles),
            ("a scrape", scrape),
            ("the broker's shares", shares_for_the_broker),
            call("Explain", operator_pb2.ExplainRequest(id="f1-2/l")),
            call("ListFrameworks", PAGE),
            call("ListClasses", PAGE),
            call("ListAgents", PAGE),
            call("ListOffers", PAGE),
        ],
    ),
    (
        "100,000 tasks",
        many_tasks,
        [
            call("ListTasks", operator_pb2.ListTasksRequest(page_size=5_000)),
            call("GetCluster", operator_pb2.GetClusterRequest()),
            ("a watcher's picture begins", watched_roles),
            ("a scrape", scrape),
        ],
    ),
]


async def ask(cluster: Timed, make: Answer) -> str:
    """How long others waited for a turn at most while the master made an answer, its bytes included."""
    runner = Runner(cluster.machine, None, SteadyClock())
    began_s = time.process_time()
    answer = asyncio.ensure_future(make(runner))
    longest_s = 0.0
    while not answer.done():
        turn_s = time.process_time()
        await asyncio.sleep(0)
        longest_s = max(longest_s, time.process_time() - turn_s)
    whole_s, turn_s = time.process_time() - began_s, time.process_time()
    (await answer)()
    bytes_s = time.process_time() - turn_s
    return f"{longest_s * 1000:.1f} of {whole_s * 1000:.0f} ms, as bytes {bytes_s * 1000:.1f} ms"


def ask_all(only: str) -> None:
    for name, fill, answers in ASKED:
        if only not in name:
            continue
        cluster = Timed()
        cluster.agents(1_000)
        fill(cluster)
        for what, make in answers:
            gc.collect()
            gc.disable()
            print(f"{name}: {what}: {asyncio.run(ask(cluster, make))}", flush=True)
            gc.enable()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    only = parser.parse_args().only
    for name, (agents, cpus, run) in ROWS.items():
        if only not in name:
            continue
        cluster = Timed()
        cluster.agents(agents, cpus)
        patterns.matches.cache_clear()
        gc.collect()
        gc.disable()
        cluster.longest_s, cluster.steps = 0, 0
        run(cluster)
        cluster.wait(2_000)
        gc.enable()
        print(f"{name}: {cluster.longest_s * 1000:.1f} ms, {cluster.steps} steps", flush=True)
    ask_all(only)


if __name__ == "__main__":
    main()
