"""A framework's program, for the SDK of any version since the baseline: what it is told on standard input it does.

Usage: ``python -c ... MASTER GATE HOST...``. After the line it reads it runs tasks on each host, kills one and follows the output
of one; it prints ``waiting``, and once GATE is there and its tasks are over it prints, as JSON, what became of them.
"""

import asyncio
import json
import sys
from dataclasses import replace
from typing import Any

import fairlead_sdk
from fairlead_sdk import Framework, Task, TaskResult


def a_task(script: str, host: str) -> Task:
    return Task(["sh", "-c", script], cpus=0.1, mem="16MiB", constraints=(f"hostname={host}",))


async def on_host(framework: Framework, host: str, gate: str, held: asyncio.Barrier) -> dict[str, Any]:
    """Run the tasks of one host; ``held`` is passed when one of them waits for the gate."""
    doomed = framework.submit(a_task("sleep 60", host))
    held_task = framework.submit(
        a_task(f"echo begun; while [ ! -e '{gate}' ]; do sleep 0.05; done; echo over", host)
    )
    (short,) = await framework.run([a_task("echo out; echo err >&2; exit 3", host)])
    outputs = [await framework.stdout(short), await framework.stderr(short)]
    followed = framework.logs(held_task)
    outputs.append((await anext(followed)).decode())
    doomed.kill()
    killed = await doomed
    await held.wait()
    over = await held_task
    outputs.append(await framework.stdout(over))
    (after,) = await framework.run([a_task("true", host)])
    many = await several(framework, a_task('echo "$FAIRLEAD_TASK_INDEX $0"', host))
    states = [result.state.name for result in (short, killed, over, after, *many)]
    outputs += [await framework.stdout(result) for result in many]
    return {
        "states": states,
        "exit_code": short.exit_code,
        "outputs": outputs,
    }


async def several(framework: Framework, task: Task) -> list[TaskResult]:
    """Three tasks with an index and a word each: an array, if this SDK has them."""
    words = ["a", "b", "c"]
    if hasattr(fairlead_sdk, "Array"):
        array = fairlead_sdk.Array(replace(task, command=[*task.command, "{}"]), over=words)
        return await framework.submit_array(array)
    return await framework.run(
        [
            replace(task, command=[*task.command, word], env={"FAIRLEAD_TASK_INDEX": str(index)})
            for index, word in enumerate(words)
        ]
    )


async def main(master: str, gate: str, *hosts: str) -> None:
    """Print what became of the tasks."""
    sys.stdin.readline()
    held = asyncio.Barrier(len(hosts) + 1)
    async with Framework("program", master=master) as framework:
        running = [asyncio.create_task(on_host(framework, host, gate, held)) for host in hosts]
        await asyncio.wait(
            [asyncio.ensure_future(held.wait()), *running], return_when=asyncio.FIRST_COMPLETED
        )
        print("waiting", flush=True)
        print(json.dumps(dict(zip(hosts, await asyncio.gather(*running), strict=True))), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
