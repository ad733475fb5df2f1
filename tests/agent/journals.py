"""Journals of agents for tests."""

from pathlib import Path

from fairlead_agent.checkpoint import Checkpoint
from fairlead_agent.core.records import (
    EndedWithoutFiles,
    IdentityTaken,
    Record,
    StatusesAccepted,
    StatusMade,
    TaskLaunched,
    TaskRemembered,
)
from fairlead_proto.ids import FrameworkId
from fairlead_proto.task_state import Reason, TaskState
from fairlead_proto.tasks import TaskUsage
from tests.agent.builders import AGENT, KINDS, START_MS, a_key, a_spec, a_status

USAGE = TaskUsage(
    cpu_time_ms=1, mem_bytes=2, mem_peak_bytes=3, mem_limit_bytes=4, sandbox_bytes=5, stdout_bytes=6
)
RECORDS: list[Record] = [
    IdentityTaken(agent_id=AGENT, boot_id="b", incarnation=3, epoch=7),
    TaskLaunched(
        framework_id=FrameworkId("f1"),
        spec=a_spec(command=("sh", "-c", "echo 'é\n\0'"), labels={"a": "b"}, max_runtime_ms=5, name="ü"),
        launched_ms=START_MS,
    ),
    TaskLaunched(framework_id=FrameworkId("f1"), spec=a_spec("t3", no_files=True), launched_ms=START_MS),
    EndedWithoutFiles(key=a_key("t3")),
    TaskLaunched(
        framework_id=FrameworkId("f1"),
        spec=a_spec("t2"),
        launched_ms=START_MS,
        started_ms=START_MS + 9,
    ),
    StatusMade(status=a_status()),
    StatusesAccepted(key=a_key(), sequence=1),
    StatusMade(
        status=a_status(
            sequence=2, state=TaskState.FAILED, reason=Reason.EXITED, message="x\n", exit_code=3, usage=USAGE
        )
    ),
    TaskRemembered(status=a_status("t2", sequence=4, state=TaskState.KILLED, signal=9)),
]


WHAT_TO_DO = (
    "move checkpoint and checkpoint.identity away to start as a new agent, which ends the tasks of the old one and removes "
    "their sandboxes: copy what you need of sandboxes/ first (docs/operating.md, What is lost with what)"
)


def a_journal(path: Path, records: list[Record] = RECORDS) -> bytes:
    journal, found = Checkpoint.open(path, KINDS)
    assert found == []
    for record in records:
        journal.append([record])
    journal.close()
    return path.read_bytes()


def reopened(path: Path) -> list[Record]:
    journal, records = Checkpoint.open(path, KINDS)
    journal.close()
    return records
