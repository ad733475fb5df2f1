"""Bounds and default times of the agent's core, each with its reason."""

from typing import Final

KILL_GRACE_PERIOD_MS: Final = 5_000
"""SIGTERM to SIGKILL where neither the task nor the kill says otherwise: enough to flush files and close connections,
short enough that a person who waits for a kill does not think it was lost. Mesos has 3 s, Kubernetes 30 s."""

RESEND_FIRST_MS: Final = 2_000
"""An acknowledgement takes milliseconds when all is well; earlier resends only repeat what is on its way."""

RESEND_MAX_MS: Final = 60_000
"""A framework may be away for an hour before it answers; one repeat a minute and task costs nobody anything."""

RESEND_GRID_MS: Final = 250
"""Resends fall on multiples of this, so that those of a thousand tasks share one wake-up and one message."""

SLOW_START_MS: Final = 1_000
"""A start takes a millisecond, and RUNNING confirms the launch. One that takes this long (a disk that hangs, an executor
being replaced) is confirmed by STARTING, well before the master's staging deadline. Reporting every STARTING would be
a third status for each task."""

HISTORY_COUNT_MAX: Final = 10_000
"""Tasks remembered after their end was acknowledged, so that a late copy of their launch is answered and not run. A
master repeats a launch only across a broken session, so what matters is the last minutes; ten thousand are that at a
hundred tasks a second, and about 5 MiB."""

SANDBOX_COUNT_MAX: Final = 10_000
"""Sandboxes of ended tasks kept: three inodes each, and a directory listing that still takes milliseconds."""

SANDBOX_BYTES_MAX: Final = 10 * 1024**3
"""What the sandboxes of ended tasks may hold together, as far as their output was measured."""

SANDBOX_RETENTION_MS: Final = 24 * 3600 * 1000
"""A person who looks for last night's failure finds it in the morning."""

SANDBOX_ROOM_DIVISOR: Final = 20
"""A bound that is exceeded is met again with a twentieth of room: at a thousand ends a second, one removal of five
hundred sandboxes instead of five hundred removals, each with a thread of its own."""

SANDBOX_REMOVALS_MAX: Final = 1_000
"""Sandboxes removed by one step: removing takes about 0.1 ms each, and the thread that does it should end soon."""

SANDBOX_BYTES_ASSUMED: Final = 16 * 1024
"""Size of a sandbox whose files nobody measured: a directory and two short files."""

DISK_FREE_PERCENT_MIN: Final = 10
"""Below it, sandboxes go before their time. File systems slow down and root's reserve begins at 5 %."""

USAGE_WAIT_MS: Final = 1_000
"""How long a heartbeat waits for the executor's measurement before it goes out without: the master's patience is a few
heartbeats long, and a stuck executor must not look like a dead agent."""

HEARTBEAT_INTERVAL_MIN_MS: Final = 100
"""A master that asks for more often than this made a mistake of units."""

REGISTER_STATUSES_MAX: Final = 20_000
"""Unacknowledged statuses inside one registration, about 4 MiB; the rest follows as ordinary reports."""

LEAVE_PATIENCE_MS: Final = 1_000
"""Beyond the longest grace period, how long an agent that stops its tasks waits for their ends. A killed process is gone in
milliseconds; what is left then ends with the executor, and whoever pressed Ctrl-C waits for this."""
