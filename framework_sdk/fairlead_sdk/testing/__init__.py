"""A cluster in memory, for testing frameworks without one.

    from fairlead_sdk import Framework, Task
    from fairlead_sdk.testing import FakeMaster, Outcome

    async def test_a_failing_task_is_a_result():
        master = FakeMaster()
        master.add_agent("a", cpus=4, mem="8GiB")
        master.script("boom", Outcome(exit_code=3))

        async with Framework("f", master=master) as framework:
            [result] = await master.finish(framework.run([Task(["x"], name="boom")]))

        assert result.exit_code == 3

No sockets, no threads, no real time: the clock stands still until ``advance`` or ``finish`` moves it. What the fake keeps
of a real master: the protocol with its checks, leases, declines, kills with grace periods, repeated reports until they
are acknowledged, reconciliation, restarts with a new epoch. What it does not: fair sharing, weights, placement (offers go
first come, first served, agents in the order they were added), real processes, limits.
"""

from fairlead_sdk.testing.fake_cluster import FakeAgent, FakeTask
from fairlead_sdk.testing.fake_master import FakeMaster
from fairlead_sdk.testing.outcomes import Outcome
from fairlead_sdk.testing.virtual_clock import VirtualClock

__all__ = ["FakeAgent", "FakeMaster", "FakeTask", "Outcome", "VirtualClock"]
