"""The simulated cluster does what the real one does, on virtual time."""

from random import Random

from fairlead_master.core import actions, events
from fairlead_proto.ids import FrameworkId, Role
from fairlead_proto.task_state import TaskState
from fairlead_sim.engine import Engine
from fairlead_sim.virtual_cluster.cluster import Cluster
from fairlead_sim.virtual_cluster.framework import FrameworkOptions, Job
from fairlead_sim.virtual_cluster.master import Registry
from fairlead_sim.virtual_cluster.network import NetworkOptions
from fairlead_sim.virtual_cluster.processes import HostOptions

GIB = 2**30
UNIT = (1_000, GIB, 0, 0)


def a_cluster(agents: int = 2, cpus: int = 2) -> Cluster:
    cluster = Cluster(Engine(Random(1)))
    for number in range(agents):
        cluster.add_agent(f"host{number}", (cpus * 1_000, 8 * GIB, 0, 0))
    return cluster


def jobs(*commands: tuple[str, ...], name: str = "j") -> list[Job]:
    return [
        Job(name=f"{name}{number}", unit=UNIT, command=command) for number, command in enumerate(commands)
    ]


def test_jobs_end_as_their_commands_say() -> None:
    cluster = a_cluster()
    framework = cluster.add_framework(
        "fw", jobs(("run", "500"), ("run", "500", "3"), ("stubborn", "100"), ("missing",))
    )
    cluster.start()

    cluster.run_for(10_000)

    ends = [job.end for job in framework.jobs.values()]
    assert ends == [TaskState.FINISHED, TaskState.FAILED, TaskState.FINISHED, TaskState.FAILED]
    assert framework.is_done
    assert cluster.observers.master.counters["LaunchTasks"] >= 1


def test_each_of_many_short_tasks_one_after_another_takes_as_long_as_the_first() -> None:
    """Else whoever waits for one at a time makes the cluster busy, is made to wait for company that never comes, and so on."""
    cluster = Cluster(Engine(Random(1)), network=NetworkOptions(delay_max_ms=0))
    cluster.add_agent("host", UNIT, options=HostOptions(gather_ms=5))
    framework = cluster.add_framework("fw", [])
    cluster.start()
    cluster.run_for(1_000)
    took_ms: list[int] = []

    for job in jobs(*[("run", "1")] * 200):
        began_ms = cluster.engine.now_ms
        framework.add(job)
        while job.result is None:
            cluster.run_for(1)
        took_ms.append(cluster.engine.now_ms - began_ms)

    window_ms = cluster.settings.allocation_window_ms
    assert max(took_ms) <= window_ms < 5, f"more than a window: {took_ms}"


def test_work_that_does_not_fit_waits_for_room() -> None:
    cluster = a_cluster(agents=1, cpus=1)
    framework = cluster.add_framework("fw", jobs(*[("run", "1000")] * 3))
    cluster.start()

    cluster.run_for(2_000)
    states = [framework.state_of(name) for name in framework.jobs]
    assert states == [None, ("LIVE", TaskState.RUNNING), ("WAITING", TaskState.STAGING)]
    cluster.run_for(10_000)
    assert framework.is_done


def test_tasks_run_on_while_the_master_is_away_and_are_not_started_again() -> None:
    cluster = a_cluster()
    framework = cluster.add_framework("fw", jobs(*[("run", "5000")] * 4))
    cluster.start()
    cluster.run_for(1_000)

    cluster.crash_master(2_000)
    cluster.run_for(30_000)

    assert framework.is_done
    assert {job.result.attempts for job in framework.jobs.values() if job.result} == {1}
    assert sum(len(processes.starts) for processes in cluster.processes.values()) == 4
    assert cluster.master.registry.epoch == 2


def test_a_restarted_agent_adopts_what_runs() -> None:
    cluster = a_cluster(agents=1)
    framework = cluster.add_framework("fw", jobs(("run", "5000")))
    cluster.start()
    cluster.run_for(1_000)

    agent = cluster.agents["host0"]
    agent.crash()
    cluster.run_for(1_000)
    agent.start()
    cluster.run_for(30_000)

    assert framework.is_done
    assert len(cluster.processes["host0"].starts) == 1


def test_what_a_reboot_took_is_run_again_under_another_id() -> None:
    cluster = a_cluster(agents=1)
    framework = cluster.add_framework("fw", jobs(("run", "5000")))
    cluster.start()
    cluster.run_for(1_000)

    agent = cluster.agents["host0"]
    agent.reboot()
    agent.start()
    cluster.run_for(60_000)

    assert framework.jobs["j0"].end is TaskState.FINISHED
    assert [key[1] for key in cluster.processes["host0"].starts] == ["j0", "j0.2"]


def test_a_framework_given_up_for_good_does_its_work_under_a_new_id() -> None:
    cluster = a_cluster()
    framework = cluster.add_framework(
        "fw", jobs(("run", "20000")), options=FrameworkOptions(failover_timeout_ms=2_000)
    )
    cluster.start()
    cluster.run_for(1_000)

    framework.crash()
    cluster.run_for(10_000)
    framework.start()
    cluster.run_for(60_000)

    assert framework.is_done
    assert framework.former_ids == ["f1-1"]
    assert framework.framework_id == "f1-2"


def test_a_registry_gives_back_what_was_written_and_not_forgotten() -> None:
    registry = Registry()
    for number in (1, 2):
        registry.write(
            actions.StoreFramework(
                framework_id=FrameworkId(f"f1-{number}"),
                name="x",
                role=Role("r"),
                principal="",
                failover_timeout_ms=1,
            )
        )
    registry.write(actions.ForgetFramework(framework_id=FrameworkId("f1-1")))

    first, second = registry.begin(), registry.begin()

    assert (first.epoch, second.epoch) == (1, 2)
    assert [stored.framework_id for stored in second.frameworks] == ["f1-2"]


def test_a_policy_survives_the_master() -> None:
    cluster = a_cluster()
    cluster.start()
    cluster.run_for(100)

    cluster.master.post(events.PolicySet(request=1, policy="slots:2"))
    cluster.run_for(1)
    cluster.crash_master(100)
    cluster.run_for(1_000)

    assert cluster.master.machine is not None
    assert cluster.master.machine.master.settings.allocation.policy == "slots:2"
    assert cluster.master.answers == [actions.AnswerOperator(request=1)]


def test_a_master_that_dies_amid_a_step_has_done_the_first_part_of_it_only() -> None:
    cluster = a_cluster(agents=1)
    cluster.start()

    cluster.crash_master(500, after_actions=1)
    cluster.run_for(400)

    assert cluster.master.machine is None
    assert list(cluster.master.registry.agents) == ["a1-1"], "written down"
    assert cluster.agents["host0"].machine is not None
    assert cluster.agents["host0"].machine.state.agent_id == "", "and not told"
    cluster.run_for(2_000)
    assert cluster.agents["host0"].machine.state.agent_id == "a2-1"
