"""Sandboxes of ended tasks go in time; those of running tasks stay."""

from fairlead_agent.core.actions import RemoveSandboxes
from fairlead_agent.core.events import DiskMeasured, ProcessStarted, Tick
from fairlead_agent.core.machine import SandboxState
from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import TaskUsage
from tests.agent.builders import (
    GIB,
    START_MS,
    Driver,
    a_key,
    a_kill,
    a_launch,
    a_registered_agent,
    a_running_agent,
    a_spec,
    an_ack,
    an_exit,
)


def test_sandbox_is_removed_after_its_retention() -> None:
    agent = a_running_agent("t1", "t2", sandbox_retention_ms=1_000)
    agent.step(an_exit("t1"), an_ack("t1", 2))
    agent.step(an_exit("t2"), an_ack("t2", 2), after_ms=500)

    assert agent.machine.next_deadline_ms() == START_MS + 1_000
    assert agent.step(Tick(), after_ms=500) == [RemoveSandboxes(keys=(a_key("t1"),))]
    assert agent.step(Tick(), after_ms=500) == [RemoveSandboxes(keys=(a_key("t2"),))]


def test_oldest_sandboxes_beyond_the_count_are_removed() -> None:
    agent = a_running_agent("t1", "t2", "t3", sandbox_count_max=2)

    actions = agent.step(an_exit("t2"), an_exit("t1"), an_exit("t3"))

    assert RemoveSandboxes(keys=(a_key("t2"),)) in actions
    assert list(agent.machine.state.sandboxes) == [a_key("t1"), a_key("t3")]


def test_removals_come_in_batches() -> None:
    agent = a_running_agent(*(f"t{number}" for number in range(45)), sandbox_count_max=40)

    actions = agent.step(*(an_exit(f"t{number}") for number in range(45)))

    removals = [action for action in actions if isinstance(action, RemoveSandboxes)]
    assert [[key[1] for key in removal.keys] for removal in removals] == [
        ["t0", "t1", "t2"],
        ["t3", "t4", "t5"],
    ]


def test_oldest_sandboxes_beyond_the_size_are_removed() -> None:
    agent = a_running_agent("t1", "t2", "t3", sandbox_bytes_max=GIB)
    half = TaskUsage(sandbox_bytes=GIB // 2)

    agent.step(an_exit("t1", usage=half), an_exit("t2", usage=half))
    assert len(agent.machine.state.sandboxes) == 2
    actions = agent.step(an_exit("t3", usage=TaskUsage(sandbox_bytes=3 * GIB)))

    # The one that is alone too large stays: somebody may want to know why.
    assert RemoveSandboxes(keys=(a_key("t1"), a_key("t2"))) in actions
    assert list(agent.machine.state.sandboxes) == [a_key("t3")]


def test_full_disk_removes_the_oldest_first_and_nothing_that_runs() -> None:
    agent = a_running_agent("t1", "t2", "t3")
    agent.step(an_exit("t1", usage=TaskUsage(sandbox_bytes=2 * GIB)), an_exit("t2"))

    assert agent.step(DiskMeasured(total_bytes=100 * GIB, free_bytes=11 * GIB)) == []
    assert agent.step(DiskMeasured(total_bytes=100 * GIB, free_bytes=9 * GIB)) == [
        RemoveSandboxes(keys=(a_key("t1"),))
    ]
    assert agent.step(DiskMeasured(total_bytes=100 * GIB, free_bytes=GIB)) == [
        RemoveSandboxes(keys=(a_key("t2"),))
    ]
    assert agent.step(DiskMeasured(total_bytes=100 * GIB, free_bytes=0)) == []


def test_where_a_sandbox_is() -> None:
    agent = a_running_agent("t1", "t2", sandbox_count_max=1)
    agent.step(a_launch("t3"), an_exit("t1"), an_exit("t2"))

    states = [agent.machine.sandbox_state(a_key(task)) for task in ("t1", "t2", "t3", "t4")]

    assert states == [
        SandboxState.COLLECTED,
        SandboxState.COMPLETE,
        SandboxState.GROWING,
        SandboxState.UNKNOWN,
    ]


def test_task_that_never_started_leaves_no_sandbox() -> None:
    agent = a_registered_agent()

    agent.step(a_kill("t9"))

    assert agent.machine.sandbox_state(a_key("t9")) is SandboxState.COLLECTED
    assert agent.machine.state.sandboxes == {}


def test_what_is_found_on_disk_at_the_start_is_matched_with_what_is_known() -> None:
    agent = a_running_agent("t1", "t2", "t3", sandbox_retention_ms=10_000)
    agent.step(an_exit("t1"), an_exit("t2"))
    agent.restart()

    found = [a_key("x9"), a_key("t3"), a_key("t2"), a_key("x1")]
    actions = agent.start(running=[a_key("t3")], sandboxes=found)

    assert actions == [RemoveSandboxes(keys=(a_key("x1"), a_key("x9")))]
    assert list(agent.machine.state.sandboxes) == [a_key("t2")]
    assert agent.machine.sandbox_state(a_key("t1")) is SandboxState.COLLECTED
    assert agent.step(Tick(), after_ms=10_000)[0] == RemoveSandboxes(keys=(a_key("t2"),))


def test_restored_sandboxes_go_oldest_end_first_whatever_the_order_of_acknowledgement() -> None:
    agent = a_running_agent("t1", "t2")
    agent.step(an_exit("t1"))
    agent.step(an_exit("t2"), an_ack("t2", 2), after_ms=10)
    agent.step(an_ack("t1", 2))
    other = Driver()
    other.journal = agent.machine.snapshot()

    other.restart()

    assert list(other.machine.state.over) == [a_key("t2"), a_key("t1")]
    assert list(other.machine.state.sandboxes) == [a_key("t1"), a_key("t2")]
    assert all(status.state is TaskState.FINISHED for status in other.machine.state.over.values())


def test_books_of_sandbox_sizes_balance() -> None:
    agent = a_running_agent("t1", "t2", "t3", sandbox_count_max=1)
    agent.step(*(an_exit(task, usage=TaskUsage(sandbox_bytes=100)) for task in ("t1", "t2", "t3")))

    assert agent.machine.state.sandbox_bytes == 100


def test_task_without_files_has_no_sandbox_while_it_runs_and_after_it_also_for_a_later_life() -> None:
    agent = a_registered_agent()
    agent.step(a_launch(a_spec("t1", no_files=True), a_spec("t2", no_files=True)))
    keys = [a_key("t1"), a_key("t2")]
    agent.step(*[ProcessStarted(key=key) for key in keys], an_exit("t1"), an_ack("t1", 2))
    before = [agent.machine.sandbox_state(key) for key in keys]

    agent.step(an_exit("t2"))
    kept = list(agent.machine.state.sandboxes)
    agent.journal = agent.machine.snapshot()
    agent.restart()

    assert before == [SandboxState.NONE] * 2
    assert kept == []
    assert [agent.machine.sandbox_state(key) for key in keys] == [SandboxState.NONE] * 2
