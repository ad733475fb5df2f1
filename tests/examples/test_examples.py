"""The examples do what they say, on a cluster in memory."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from fairlead_sdk import TaskState
from fairlead_sim.testing import Outcome, VirtualMaster

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


async def test_hello_world_prints_what_its_tasks_said(capsys: pytest.CaptureFixture[str]) -> None:
    master = VirtualMaster()
    master.add_agent("a", cpus=1, mem="1GiB")
    for number in range(3):
        master.script(f"f1-1-{number + 1}", Outcome(stdout=f"hi {number}\n"))

    await master.finish(example("hello_world").main(master))

    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"f1-1-{n + 1} FINISHED hi {n}" for n in range(3)]


async def test_the_sweep_prints_a_row_a_point_and_fails_if_one_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    master = VirtualMaster()
    master.add_agent("a", cpus=4, mem="2GiB")
    master.script("rate=0.1 size=10", Outcome(stdout="0.9091\n"))
    master.script("rate=0.1 size=1000", Outcome(exit_code=1))

    code = await master.finish(example("parameter_sweep").main(master, 4))

    rows = capsys.readouterr().out.splitlines()[1:]
    assert code == 1
    assert len(rows) == 4
    assert rows[0].split() == ["0.1", "10", "cpus=0.25,mem=64MiB", "a", "0.10", "0.9091"]
    assert rows[1].split()[2:] == ["cpus=2,mem=256MiB", "a", "0.10", "FAILED", "(EXITED)"]
    demands = {task.spec.resources[0] for task in master.tasks}
    assert demands == {250, 2000}


async def test_a_point_of_the_sweep_that_fits_nowhere_is_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    master = VirtualMaster()
    master.add_agent("a", cpus=1, mem="2GiB")

    code = await master.finish(example("parameter_sweep").main(master, 2))

    small, large = capsys.readouterr().out.splitlines()[1:]
    assert code == 1
    assert small.split()[3] == "a"
    assert large.split()[-2:] == ["ERROR", "(INFEASIBLE)"]


async def test_the_rack_scheduler_keeps_copies_on_different_racks() -> None:
    racks = example("rack_scheduler")
    master = VirtualMaster()
    for name in ("a1", "a2", "b1", "c1"):
        master.add_agent(name, cpus=8, mem="8GiB", attributes={"rack": name[0]})
    master.add_agent("nowhere", cpus=8, mem="8GiB")
    master.script(
        lambda _: True, Outcome(duration_ms=500), Outcome(state=TaskState.LOST), Outcome(duration_ms=500)
    )

    assert await master.finish(racks.main(master, copies=3, runs=7)) == 0

    finished = [task for task in master.tasks if task.state is TaskState.FINISHED]
    assert len(finished) == 7
    assert all(task.agent.agent_id != "nowhere" for task in master.tasks)
    for task in master.tasks:
        together = [
            other
            for other in master.tasks
            if other is not task
            and other.agent.attributes.get("rack") == task.agent.attributes["rack"]
            and other.launched_ms < (task.ended_ms or 0)
            and task.launched_ms < (other.ended_ms or 0)
        ]
        assert not together, f"{task.task_id} shared its rack"
    master.assert_at_rest()


async def test_the_rack_scheduler_says_when_no_agent_has_a_rack(capsys: pytest.CaptureFixture[str]) -> None:
    master = VirtualMaster()
    master.add_agent("nowhere", cpus=8, mem="8GiB")

    assert await master.finish(example("rack_scheduler").main(master)) == 1
    assert "no registered agent meets rack" in capsys.readouterr().out
