"""Say hello from some task of a cluster: `python examples/hello_world.py --master 127.0.0.1:5050`."""

import argparse
import asyncio

from fairlead_sdk import Framework, Task, Transport


async def main(master: str | Transport | None = None) -> None:
    tasks = [Task(["sh", "-c", f"echo hello {i} from $(hostname)"], cpus=0.5, mem="32MiB") for i in range(3)]
    async with Framework("hello", master=master) as framework:
        for result in await framework.run(tasks):
            print(result.task_id, result.state.value, (await framework.stdout(result)).strip())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--master", help="HOST:PORT; by default FAIRLEAD_MASTER, then 127.0.0.1:5050")
    asyncio.run(main(parser.parse_args().master))
