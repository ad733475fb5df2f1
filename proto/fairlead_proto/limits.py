"""Bounds on everything that enters from outside, each with its reason.

The border checks them (convert), the cores rely on them. A refusal names the bound, so they are part of the interface.
"""

from typing import Final

COUNT_MAX: Final = 2**53
"""Largest sequence, version, epoch or incarnation: nothing counts that far, and beyond it SQLite, signed fields and readers
of JSON each fail in their own way."""

TIME_MS_MAX: Final = 253_402_300_799_999
"""The last millisecond of the year 9999, after which dates cannot be written."""

EXIT_CODE_MAX: Final = 255
SIGNAL_MAX: Final = 126
"""What the kernel can say of how a process ended."""

ID_LENGTH_MAX: Final = 200
"""Ids appear in file names (255 bytes on every common file system) with a suffix or two."""

NAME_LENGTH_MAX: Final = 256
ROLE_DEPTH_MAX: Final = 8
CLASSES_MAX: Final = 1_000
"""Demand classes of one framework. A class is a *kind* of task; a cycle may look at each of them once."""

UNITS_MAX: Final = 10_000_000
ARRAY_INDEX_MAX: Final = 2**31 - 1
"""Largest index of an array's task, and count of them: fits a signed 32-bit number, which a task's own program may read it as."""

CONSTRAINTS_MAX: Final = 32
CONSTRAINT_VALUES_MAX: Final = 100
PATTERN_LENGTH_MAX: Final = 256
"""Of a regular expression in a constraint: it runs on the master."""

PATTERNS_MAX: Final = 32
"""Different regular expressions in one demand. An agent is matched with all of a class in one piece: an ordinary one costs some
microseconds."""

PATTERN_STEPS_MAX: Final = 2_000
"""Steps that all of them have together, each of which a byte of an attribute may cost 8 ns: at worst 4 ms for 256 letters. A
usual pattern has 25."""

ATTRIBUTES_MAX: Final = 100
TASKS_PER_ACCEPT_MAX: Final = 1_000
"""No offer has more units. Judging and staging a task takes the master some 10 µs, and all of an accept is one step."""

PATH_BYTES_MAX: Final = 4096
"""PATH_MAX of Linux."""

STATUS_MESSAGE_LENGTH_MAX: Final = 4096
COMMAND_BYTES_MAX: Final = 128 * 1024
"""One argument may have 128 KiB on Linux (MAX_ARG_STRLEN)."""

ENVIRONMENT_BYTES_MAX: Final = 512 * 1024
LABELS_MAX: Final = 64
DEMAND_BYTES_MAX: Final = 32 * 1024 * 1024
"""What one demand may take in the master's memory, as it estimates from the message. A thousand classes with all the
waiting tasks they may name take half of it."""

WAITING_TASKS_MAX: Final = 32
"""Waiting task ids a class may name. They serve listings and explain; all of them would be a second queue."""

MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024
"""One gRPC message. 10,000 small tasks are about 2 MiB."""

BATCH_BYTES_MAX: Final = MESSAGE_BYTES_MAX // 4
"""Where one message of a stream is closed and the next begun. What is put into one is far below that by itself, so that every
message stays under the limit."""

RECORDS_PER_ACTION_MAX: Final = 2_000
"""Statuses, acknowledgements or offers in one part of such a message, for the same reason."""

ACCEPT_BYTES_MAX: Final = MESSAGE_BYTES_MAX // 2
"""One accept: its tasks go to an agent in one message, with a little more around each."""

CLIENT_IDLE_MS: Final = 3_000
"""After so long without a call a client lets its connection go by itself, mostly before the master does, after 5 s."""

DURATION_MS_MAX: Final = 366 * 24 * 3600 * 1000
WEIGHT_MIN: Final = 1e-6
WEIGHT_MAX: Final = 1e6
