"""Runs planned tasks as real processes on a live cluster: one framework a user, each task a ``sleep``.

A sleep is the cheapest process there is: it holds what it declares and uses nothing, so one small machine can play a
large cluster. What is real is everything between: offers, launches, processes, statuses. What is not is contention
inside a host: a sleep among a hundred others is as fast as alone.
"""

import asyncio
from collections.abc import Mapping, Sequence
from decimal import Decimal
from types import TracebackType
from typing import Final, Self

from fairlead_lab.replay.replay_driver import TaskOutcome
from fairlead_lab.workloads.plan import PlannedTask
from fairlead_proto.resources import CPUS, DISK, GPUS, MEM
from fairlead_sdk import Framework, Task, TaskResult
from fairlead_sdk.transport import Transport

SLEEP: Final = "/bin/sleep"
"""By absolute path: a search along PATH costs as much as the exec."""

GRACE_PERIOD_S: Final = 1.0
"""A sleep ends at the first SIGTERM; a second of grace covers a machine that swaps."""

RECONNECT_TIMEOUT_S: Final = 60.0
"""A master that restarts is back within seconds. A replay whose master is gone for good must end, and not in an hour."""


class SleepRunner:
    """One framework for each role, opened and closed together. An async context manager and a ``TaskRunner``."""

    def __init__(
        self,
        master: str | Transport,
        roles: Mapping[str, str],
        *,
        clock_ahead_ms: Mapping[str, int] | None = None,
    ) -> None:
        """Nothing is opened yet.

        Args:
            master: HOST:PORT, or a transport as ``Framework`` takes it.
            roles: user to role.
            clock_ahead_ms: agent id to how far its clock is ahead of this host's.
        """
        self._frameworks = {
            user: Framework(
                f"replay of {user}",
                master=master,
                role=role,
                on_exit="teardown",
                reconnect_timeout=RECONNECT_TIMEOUT_S,
            )
            for user, role in roles.items()
        }
        self._clock_ahead_ms = clock_ahead_ms or {}

    async def __aenter__(self) -> Self:
        """Open all sessions.

        Raises:
            MasterUnreachable, Refused: as ``Framework``; those already open are closed again.
        """
        opened = [asyncio.ensure_future(framework.start()) for framework in self._frameworks.values()]
        try:
            await asyncio.gather(*opened)
        except BaseException:
            await asyncio.gather(*opened, return_exceptions=True)
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        await asyncio.gather(
            *(framework.close() for framework in self._frameworks.values()), return_exceptions=True
        )

    async def run(self, user: str, tasks: Sequence[PlannedTask]) -> list[TaskOutcome]:
        """Launch the tasks side by side as their user; see ``TaskRunner``.

        Raises:
            FairleadError: the session ended, or the master will not have a demand, or a task fits on no agent: a trace
                of which a part cannot run is not the trace.
        """
        results = await self._frameworks[user].run([sleep_task(task) for task in tasks])
        for result in results:
            if result.refusal is not None:
                raise result.refusal
        return [self._outcome(result) for result in results]

    def _outcome(self, result: TaskResult) -> TaskOutcome:
        ahead_ms = self._clock_ahead_ms.get(result.agent_id, 0)
        return TaskOutcome(
            state=result.state.value,
            started_unix_ms=result.started_ms - ahead_ms if result.started_ms else None,
            finished_unix_ms=result.finished_ms - ahead_ms if result.finished_ms else None,
            agent_id=result.agent_id,
            attempts=result.attempts,
            reason=result.reason.value,
        )


def sleep_task(task: PlannedTask) -> Task:
    """The process of a planned task."""
    unit = task.unit
    return Task(
        [SLEEP, f"{task.duration_ms / 1000:.3f}"],
        cpus=Decimal(unit[CPUS]) / 1000,
        mem=unit[MEM],
        disk=unit[DISK],
        gpus=Decimal(unit[GPUS]) / 1000,
        task_id=task.task_id,
        grace_period=GRACE_PERIOD_S,
    )
