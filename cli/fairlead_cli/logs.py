"""`fairlead logs`: a task's output, as far as it got or as it is written."""

import asyncio

import click

from fairlead_cli.addresses import master_option


@click.command()
@click.argument("task_id", metavar="TASK")
@click.option("-f", "--follow", is_flag=True, help="Go on until the task is over.")
@click.option(
    "--stderr", "is_stderr", is_flag=True, help="Its standard error instead of its standard output."
)
@click.option("--framework", "framework_id", default="", help="Whose task, if the id is not unique.")
@click.option("--tail", "lines", type=click.IntRange(0), default=None, help="Begin with the last N lines.")
@master_option
def logs(
    master: str, task_id: str, *, follow: bool, is_stderr: bool, framework_id: str, lines: int | None
) -> None:
    """Print a task's output.

    Output is kept until its sandbox is collected; of very much output the beginning may have been rotated away.
    """
    from fairlead_cli.log_printing import print_log

    path = "stderr" if is_stderr else "stdout"
    asyncio.run(print_log(master, task_id, path, framework_id=framework_id, follow=follow, lines=lines))
