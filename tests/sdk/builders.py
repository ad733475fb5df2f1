"""Tasks and clusters with everything defaulted that a test is not about."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fairlead_sdk import Task
from fairlead_sim.testing import VirtualMaster

_T = TypeVar("_T")


def a_task(name: str = "", **options: Any) -> Task:
    """One core, 64 MiB."""
    return Task(["true"], **{"cpus": 1, "mem": "64MiB", "name": name, **options})


def a_master(*, cpus: int = 4) -> VirtualMaster:
    """One agent, called a."""
    master = VirtualMaster()
    master.add_agent("a", cpus=cpus, mem="8GiB")
    return master


def begin(coroutine: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
    """Have it run beside the test, which awaits or cancels it."""
    return asyncio.create_task(coroutine)
