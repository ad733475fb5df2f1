"""What tasks use, from the figures in their agents' heartbeats: rates, sums per framework, and samples of whole lives.

An agent reports the CPU time a task has spent so far; the rate is the difference over the time between two reports. A task
whose figures did not change is not reported, so its rate is zero. What is measured of a task begins with the first
report, or with its start where this master saw it: CPU time that an adopted task spent earlier is nobody's.

An agent may have ten thousand tasks, so rates are taken in parts, all of them for the time of the heartbeat.
"""

from collections import deque
from typing import Final

from fairlead_master.core import settings as bounds
from fairlead_master.core.events import AgentBeat
from fairlead_master.core.state import Agent, Framework, Master, Measured, Measuring, Task
from fairlead_proto.ids import AgentId, FrameworkId
from fairlead_proto.resources import CPUS, DISK, MEM, Vector, add, subtract
from fairlead_proto.tasks import TaskUsage

LIFE_MIN_MS: Final = 1_000
"""A task that was over sooner says nothing of what such tasks use: its start is most of it."""


def beat(master: Master, agent: Agent, event: AgentBeat, now_ms: int) -> None:
    """An agent measured its tasks; those whose figures did not change are not among the reports."""
    for key, usage in event.tasks:
        task = agent.tasks.get(key)
        if task is not None:
            task.usage = usage
    if event.is_last:
        left = deque(task for task in agent.tasks.values() if task.usage is not None)
        master.measuring[agent.agent_id] = Measuring(left, now_ms)
        _measure_some(master, agent.agent_id, bounds.TASKS_PER_STEP_MAX)


def measure_in_parts(master: Master, most: int, _now_ms: int) -> int:
    """Take the rates of so many tasks that agents measured; gives how many that were."""
    done = 0
    while master.measuring and done < most:
        done += _measure_some(master, next(iter(master.measuring)), most - done)
    return done


def _measure_some(master: Master, agent_id: AgentId, most: int) -> int:
    tasks, measuring = master.agents[agent_id].tasks, master.measuring[agent_id]
    done = min(most, len(measuring.left))
    touched: dict[FrameworkId, Framework] = {}
    for _ in range(done):
        task = measuring.left.popleft()
        framework = master.frameworks.get(task.framework_id)
        if framework is not None and task.usage is not None and tasks.get(task.key) is task:
            _measure(master, framework, task, task.usage, measuring.at_ms)
            touched[task.framework_id] = framework
    for framework_id, framework in touched.items():
        master.allocator.observe(framework_id, framework.used, framework.measured_held)
    if not measuring.left:
        del master.measuring[agent_id]
    return done


def ended(master: Master, framework: Framework, task: Task, now_ms: int, *, has_last_word: bool) -> bool:
    """A task is over: it uses nothing any more. Whether the allocator is to be told what its framework uses.

    With its agent's last word on it (``has_last_word``) the figures are those of its whole life; without, as for a task
    whose agent is gone, what was measured before stands.
    """
    if has_last_word and task.usage is not None and (task.measured is not None or task.started_ms):
        _measure(master, framework, task, task.usage, now_ms)
    if task.measured is None:
        return False
    framework.used = subtract(framework.used, task.measured.used)
    if task.measured.has_rate:
        framework.measured_held = subtract(framework.measured_held, task.resources)
    task.measured = None
    return True


def _measure(master: Master, framework: Framework, task: Task, usage: TaskUsage, now_ms: int) -> None:
    measured = task.measured
    if measured is None:
        zero = master.kinds.zero
        is_whole = task.offer_id is not None and task.started_ms > 0
        since_ms, cpu_time_ms = (task.started_ms, 0) if is_whole else (now_ms, usage.cpu_time_ms)
        measured = task.measured = Measured(
            since_ms=since_ms,
            cpu_time_ms=cpu_time_ms,
            last_ms=since_ms,
            last_cpu_time_ms=cpu_time_ms,
            used=zero,
        )
        framework.used = framework.used or zero
        framework.measured_held = framework.measured_held or zero
    elapsed_ms = now_ms - measured.last_ms
    if elapsed_ms > 0:
        if not measured.has_rate:
            framework.measured_held = add(framework.measured_held, task.resources)
        spent_ms = max(0, usage.cpu_time_ms - measured.last_cpu_time_ms)
        used = _used(task, usage, spent_ms * 1000 // elapsed_ms)
        framework.used = add(subtract(framework.used, measured.used), used)
        measured.used = used
        measured.last_ms, measured.last_cpu_time_ms = now_ms, usage.cpu_time_ms
    life_ms = now_ms - measured.since_ms
    if life_ms >= LIFE_MIN_MS:
        cpus_milli = max(0, usage.cpu_time_ms - measured.cpu_time_ms) * 1000 // life_ms
        sample = _sample(len(task.resources), usage, cpus_milli)
        master.allocator.sample(task.framework_id, task.task_id, task.resources, sample, now_ms)


def _used(task: Task, usage: TaskUsage, cpus_milli: int) -> Vector:
    """Measured use; the allocation where a resource is not measured."""
    used = list(task.resources)
    used[CPUS], used[MEM], used[DISK] = cpus_milli, usage.mem_bytes, usage.sandbox_bytes
    return tuple(used)


def _sample(places: int, usage: TaskUsage, cpus_milli: int) -> tuple[int | None, ...]:
    sample: list[int | None] = [None] * places
    sample[CPUS] = cpus_milli
    # The peak and not the present: what a task has once needed it may need again, and holds until its end.
    sample[MEM], sample[DISK] = max(usage.mem_peak_bytes, usage.mem_bytes), usage.sandbox_bytes
    return tuple(sample)
