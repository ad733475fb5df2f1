"""A cluster in memory, for testing frameworks without one.

    from fairlead_sdk import Framework, Task
    from fairlead_sim.testing import Outcome, VirtualMaster

    async def test_a_failing_task_is_a_result():
        master = VirtualMaster()
        master.add_agent("a", cpus=4, mem="8GiB")
        master.script("boom", Outcome(exit_code=3))

        async with Framework("f", master=master) as framework:
            [result] = await master.finish(framework.run([Task(["x"], name="boom")]))

        assert result.exit_code == 3

No sockets, no threads, no real time: the clock stands still until ``advance`` or ``finish`` moves it. The master decides as a
live one does, since it is one: its core, those of the agents and the checks at its border are the live ones. Streams and
processes are models: a task does what its ``Outcome`` says.
"""

from fairlead_sim.testing.outcomes import Outcome
from fairlead_sim.testing.virtual_clock import VirtualClock
from fairlead_sim.testing.virtual_master import AT_ONCE, VirtualMaster
from fairlead_sim.testing.virtual_tasks import VirtualAgent, VirtualTask

__all__ = ["AT_ONCE", "Outcome", "VirtualAgent", "VirtualClock", "VirtualMaster", "VirtualTask"]
