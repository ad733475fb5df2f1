"""The SDK against a real master, real agents and real processes."""

import asyncio
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from fairlead_local.cluster import LocalCluster
from fairlead_sdk import (
    Driver,
    Framework,
    Offer,
    OperatorClient,
    Progress,
    Reason,
    Scheduler,
    Superseded,
    Task,
    TaskState,
    TaskStatus,
    fitting_tasks,
    quanta_class,
    run_scheduler,
)
from fairlead_sdk.sync import Framework as SyncFramework
from tests.sdk.builders import begin

pytestmark = pytest.mark.shell

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    local = LocalCluster(
        agents=2,
        resources=["cpus=4,mem=1GiB", "cpus=4,mem=2GiB"],
        attributes=[{"rack": "a"}, {"rack": "b"}],
        isolation="none",
    )
    with local:
        yield local


def a_task(*command: str, **options: object) -> Task:
    return Task(command or ("true",), **{"cpus": 0.5, "mem": "16MiB", **options})  # type: ignore[arg-type]


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"cluster_example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


async def test_processes_run_and_their_codes_and_output_come_back(cluster: LocalCluster) -> None:
    async with Framework("f", master=cluster.address) as framework:
        results = await framework.run(
            [
                a_task("sh", "-c", "echo out; echo err >&2; exit 3"),
                a_task("sh", "-c", "kill -9 $$"),
                a_task("no-such-command"),
                a_task("sh", "-c", "echo $WHO", env={"WHO": "me"}, constraints=["rack=b"]),
            ]
        )
        output = [await framework.stdout(result) for result in results[::3]]
        errors = await framework.stderr(results[0])

    assert [result.state for result in results] == [TaskState.FAILED] * 3 + [TaskState.FINISHED]
    assert (results[0].exit_code, results[1].signal) == (3, 9)
    assert (results[2].reason.value, results[2].exit_code) == ("COMMAND_NOT_FOUND", 127)
    assert (output, errors) == (["out\n", "me\n"], "err\n")


async def test_what_no_agent_can_hold_is_a_result_beside_the_others(cluster: LocalCluster) -> None:
    async with Framework("f", master=cluster.address) as framework:
        large, other = await framework.run([a_task(cpus=6), a_task()])

    assert large.reason is Reason.INFEASIBLE
    assert large.refusal is not None
    assert large.refusal.missing == {"cpus": 2000}
    assert other.ok


async def test_a_cancelled_run_leaves_no_task(cluster: LocalCluster) -> None:
    running = asyncio.Event()

    def watch(progress: Progress) -> None:
        if progress.running:
            running.set()

    async with Framework("f", master=cluster.address, on_exit="leave") as framework:
        run = begin(framework.run([a_task("sleep", "60")] * 4, on_progress=watch))
        await running.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        framework_id = framework.framework_id
        async with OperatorClient(cluster.address) as operator:
            states = [task.state async for task in operator.tasks(framework_id=framework_id)]
            await operator.teardown_framework(framework_id)

    assert set(states) <= {"KILLED"}


async def test_output_is_followed_to_its_end(cluster: LocalCluster) -> None:
    async with Framework("f", master=cluster.address) as framework:
        handle = framework.submit(a_task("sh", "-c", "echo one; echo two", name="talks"))
        result = asyncio.ensure_future(handle)
        async with OperatorClient(cluster.address) as operator:
            await result
            pieces = [piece async for piece in operator.follow(handle.task_id)]

    assert b"".join(pieces) == b"one\ntwo\n"


async def test_a_second_session_with_the_same_id_takes_over(cluster: LocalCluster) -> None:
    first = Framework("f", master=cluster.address, on_exit="leave")
    await first.start()
    waiting = first.submit(a_task("sleep", "30"))
    async with Framework("f", master=cluster.address, framework_id=first.framework_id) as second:
        with pytest.raises(Superseded):
            await waiting
        [result] = await second.run([a_task(task_id="another")])
    await first.close()
    assert result.ok


async def test_a_framework_with_its_old_id_takes_up_what_runs_and_what_ended(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    go = tmp_path / "go"

    def tasks() -> list[Task]:
        return [
            a_task("sh", "-c", "echo over; exit 3", task_id="over"),
            a_task("sh", "-c", f"while test ! -e {go}; do sleep 0.05; done; echo runs", task_id="runs"),
        ]

    first = Framework("f", master=cluster.address, on_exit="leave")
    await first.start()
    # Of one kind, they are launched together.
    over, _ = [first.submit(task) for task in tasks()]
    await over
    await first.close()

    async with Framework("f", master=cluster.address, framework_id=first.framework_id) as second:
        again = tasks()
        running = begin(second.run(again))
        await second.submit(a_task(task_id="later"))
        go.touch()
        results = await running
        output = await second.stdout(again[1])
        async with OperatorClient(cluster.address) as operator:
            launched = {task.task_id async for task in operator.tasks(framework_id=first.framework_id)}

    assert [(result.exit_code, result.attempts) for result in results] == [(3, 1), (0, 1)]
    assert output == "runs\n"
    assert launched == {"over", "runs", "later"}


async def test_who_declares_no_demand_runs_tasks_on_quanta(cluster: LocalCluster) -> None:
    class Grabber(Scheduler):
        ended = 0

        def registered(self, driver: Driver) -> None:
            driver.set_demand([quanta_class("any", 4)])

        def resource_offers(self, driver: Driver, offers: Sequence[Offer]) -> None:
            driver.set_demand([])
            for offer in offers:
                driver.accept(offer, fitting_tasks(offer, [Task(["true"], cpus=0.2, mem="300MiB")]))

        def status_update(self, driver: Driver, status: TaskStatus) -> None:
            if status.state is TaskState.FINISHED:
                self.ended += 1
                driver.stop()

    scheduler = Grabber()

    await asyncio.wait_for(run_scheduler(scheduler, master=cluster.address), timeout=30)

    assert scheduler.ended == 1


def test_plain_code_runs_tasks(cluster: LocalCluster) -> None:
    with SyncFramework("f", master=cluster.address) as framework:
        results = framework.run([a_task() for _ in range(20)])

    assert all(result.ok for result in results)


async def test_the_examples_run(cluster: LocalCluster, capsys: pytest.CaptureFixture[str]) -> None:
    await example("hello_world").main(cluster.address)
    assert await example("parameter_sweep").main(cluster.address, 4) == 0
    assert await example("rack_scheduler").main(cluster.address, 2, 4, ("sleep", "0.1")) == 0

    shown = capsys.readouterr().out
    assert "hello 2 from" in shown
    assert "copy-4 FINISHED on" in shown


async def test_a_killed_master_costs_no_task_and_repeats_none(cluster: LocalCluster, tmp_path: Path) -> None:
    """Kept last: the module's cluster has another epoch afterwards."""
    marks = tmp_path / "marks"
    half = asyncio.Event()

    def watch(progress: Progress) -> None:
        if progress.done >= 20:
            half.set()

    async with Framework("f", master=cluster.address) as framework:
        command = ("sh", "-c", f"echo x >> {marks}; sleep 0.1")
        run = begin(framework.run([a_task(*command) for _ in range(60)], on_progress=watch))
        await half.wait()
        await asyncio.to_thread(cluster.kill_master)
        await asyncio.to_thread(cluster.restart_master)
        results = await run

    assert all(result.ok for result in results)
    starts = len(marks.read_text().splitlines())
    assert starts == 60
