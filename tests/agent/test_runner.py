"""The loop around the machine: written before done, in order, and never without bound."""

import asyncio
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import structlog

from fairlead_agent import runner as runner_module
from fairlead_agent.checkpoint import Checkpoint
from fairlead_agent.core import actions
from fairlead_agent.core.events import AgentStarted, Event, LeaveRequested, SessionOpened
from fairlead_agent.core.machine import AgentMachine
from fairlead_agent.core.records import IdentityTaken, Record, StatusMade, TaskLaunched
from fairlead_agent.core.restore import restore
from fairlead_agent.runner import JournalFailed, Runner
from fairlead_proto.clock import SteadyClock
from tests.agent.builders import (
    KINDS,
    Driver,
    a_key,
    a_kill,
    a_launch,
    a_registered_agent,
    a_registration,
    a_running_agent,
    a_start,
    an_ack,
    an_exit,
    settings,
)

LEAVE = LeaveRequested(is_stopping_tasks=False, reason="bye")
LOG = structlog.get_logger()


def a_runner(
    agent: Driver, journal: Checkpoint, carry_out: Callable[[actions.Action], None] | None = None
) -> Runner:
    done: list[actions.Action] = []
    return Runner(agent.machine, journal, SteadyClock(), carry_out or done.append, LOG)


@pytest.fixture
def journal(tmp_path: Path) -> Iterable[Checkpoint]:
    opened, _ = Checkpoint.open(tmp_path / "checkpoint", KINDS)
    yield opened
    opened.close()


def written(path: Path) -> list[Record]:
    opened, records = Checkpoint.open(path, KINDS)
    opened.close()
    return records


async def test_records_are_on_disk_before_an_action_that_follows_from_them(
    tmp_path: Path, journal: Checkpoint
) -> None:
    seen: list[int] = []

    def carry_out(action: actions.Action) -> None:
        if isinstance(action, actions.SendStatuses):
            seen.append(sum(isinstance(record, StatusMade) for record in written(tmp_path / "checkpoint")))

    runner = a_runner(a_registered_agent(), journal, carry_out)
    await runner.feed([a_launch(), a_start(), an_exit(), LEAVE])
    await runner.run()

    assert seen == [2]


async def test_launch_is_on_disk_before_its_process_is_ordered(tmp_path: Path, journal: Checkpoint) -> None:
    """Else an agent killed in between would not know the task, and start it again when asked to."""
    seen: list[str] = []

    def carry_out(action: actions.Action) -> None:
        if isinstance(action, actions.StartProcess):
            seen.extend(
                r.spec.task_id for r in written(tmp_path / "checkpoint") if isinstance(r, TaskLaunched)
            )

    runner = a_runner(a_registered_agent(), journal, carry_out)
    await runner.feed([a_launch("t1"), LEAVE])
    await runner.run()

    assert seen == ["t1"]


async def test_identity_is_durable_before_an_action_that_follows_from_it(
    journal: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    sync = journal.sync

    def note(identity: IdentityTaken | None) -> None:
        sync(identity)
        if identity is not None:
            order.append(f"synced {identity.agent_id or 'nobody'} of epoch {identity.epoch}")

    monkeypatch.setattr(journal, "sync", note)
    machine = AgentMachine(settings(), restore([], settings()))
    runner = Runner(machine, journal, SteadyClock(), lambda action: order.append(type(action).__name__), LOG)
    run = asyncio.create_task(runner.run())
    turns: list[list[Event]] = [
        [AgentStarted(boot_id="b"), SessionOpened()],
        [a_registration()],
        [a_kill("t9", epoch=2)],
    ]
    for events in turns:
        await runner.feed(events)
        stepped = asyncio.Event()
        runner.after(stepped.set)
        await stepped.wait()
    runner.put(LEAVE)
    await run

    assert order[:6] == [
        "synced nobody of epoch 0",
        "SendRegistration",
        "synced a1-1 of epoch 1",
        "ConfirmSession",
        "synced a1-1 of epoch 2",
        "SendStatuses",
    ]


async def test_a_status_is_on_the_disk_before_it_is_told_and_nothing_else_waits(
    journal: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    may_sync, started, synced = threading.Event(), asyncio.Event(), asyncio.Event()
    sync, loop = journal.sync, asyncio.get_running_loop()

    def sync_later(identity: IdentityTaken | None) -> None:
        may_sync.wait()
        sync(identity)
        loop.call_soon_threadsafe(order.append, "synced")
        loop.call_soon_threadsafe(synced.set)

    def carry_out(action: actions.Action) -> None:
        order.append(type(action).__name__)
        if isinstance(action, actions.StartProcess):
            started.set()
            if order.count("StartProcess") == 2:
                may_sync.set()

    monkeypatch.setattr(journal, "sync", sync_later)
    runner = a_runner(a_registered_agent(), journal, carry_out)
    run = asyncio.create_task(runner.run())
    await runner.feed([a_launch("t1"), a_start("t1")])
    await started.wait()
    await runner.feed([a_launch("t2")])
    await synced.wait()
    runner.put(LEAVE)
    await run

    told = [name for name in order if name in ("StartProcess", "synced", "SendStatuses")]
    assert told[:3] == ["StartProcess", "StartProcess", "synced"]
    assert told.count("SendStatuses") == 1


async def test_a_disk_that_fails_while_a_status_waits_ends_the_agent(
    journal: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_identity: IdentityTaken | None) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(journal, "sync", fail)
    done: list[actions.Action] = []
    runner = a_runner(a_registered_agent(), journal, done.append)
    await runner.feed([a_launch(), a_start()])

    with pytest.raises(JournalFailed, match=r"checkpoint: cannot be made durable: .*Input/output error"):
        await runner.run()
    assert not any(isinstance(action, actions.SendStatuses) for action in done)


async def test_disk_that_cannot_be_synced_ends_the_agent_before_it_registers(
    journal: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sync(_identity: IdentityTaken) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(journal, "sync", sync)
    done: list[actions.Action] = []
    machine = AgentMachine(settings(), restore([], settings()))
    runner = Runner(machine, journal, SteadyClock(), done.append, LOG)
    await runner.feed([AgentStarted(boot_id="b"), SessionOpened()])

    with pytest.raises(JournalFailed, match=r"checkpoint: cannot be made durable: .*Input/output error"):
        await runner.run()

    assert done == []


async def test_statuses_of_one_turn_are_one_action_and_come_before_the_goodbye(journal: Checkpoint) -> None:
    done: list[actions.Action] = []
    runner = a_runner(a_registered_agent(), journal, done.append)
    await runner.feed([a_launch("t1", "t2"), a_start("t1"), a_start("t2"), an_exit("t1"), LEAVE])

    leave = await runner.run()

    assert leave == actions.LeaveCluster(is_refused=False, message="bye")
    assert [type(action).__name__ for action in done] == [
        "StartProcess",
        "StartProcess",
        "ForgetProcess",
        "SendStatuses",
        "SendGoodbye",
    ]
    statuses = done[3]
    assert isinstance(statuses, actions.SendStatuses)
    assert [(status.task_id, status.sequence) for status in statuses.statuses] == [
        ("t1", 1),
        ("t2", 1),
        ("t1", 2),
    ]


async def test_full_disk_is_waited_out_and_nothing_is_done_meanwhile(
    journal: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "JOURNAL_PAUSE_S", 0)
    failures = [OSError(28, "No space left on device")] * 3
    append = journal.append
    done: list[actions.Action] = []
    done_at_failure: list[int] = []

    def append_later(records: Iterable[Record]) -> None:
        if failures:
            done_at_failure.append(len(done))
            raise failures.pop()
        append(records)

    monkeypatch.setattr(journal, "append", append_later)
    runner = a_runner(a_registered_agent(), journal, done.append)
    await runner.feed([a_launch(), LEAVE])
    await runner.run()

    assert done_at_failure == [0, 0, 0]
    assert isinstance(done[0], actions.StartProcess)


async def test_disk_that_stays_full_ends_the_agent(
    journal: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "JOURNAL_PAUSE_S", 0)

    def append(_records: Iterable[Record]) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(journal, "append", append)
    runner = a_runner(a_registered_agent(), journal)
    await runner.feed([a_launch()])

    with pytest.raises(JournalFailed, match=r"checkpoint: cannot be written: .*No space left on device"):
        await runner.run()


async def test_long_journal_is_compacted_while_running(
    tmp_path: Path, journal: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead_agent.checkpoint.COMPACT_BYTES_MIN", 5_000)
    agent = a_running_agent("t0")
    journal.append(agent.journal)
    runner = a_runner(agent, journal)
    for number in range(100):
        task = f"t{number}"
        await runner.feed([a_launch(task), a_start(task), an_exit(task), an_ack(task, 2)])
    await runner.feed([LEAVE])
    await runner.run()

    records = written(tmp_path / "checkpoint")
    assert len(records) < 250
    restored = restore(records, settings())
    assert list(restored.over) == [a_key(f"t{number}") for number in range(100)]


async def test_failed_compaction_does_not_stop_the_agent(
    journal: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compact(_records: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(journal, "is_long", lambda: True)
    monkeypatch.setattr(journal, "compact", compact)
    done: list[actions.Action] = []
    runner = a_runner(a_registered_agent(), journal, done.append)
    await runner.feed([a_launch(), LEAVE])
    await runner.run()

    assert isinstance(done[0], actions.StartProcess)


async def test_feeding_waits_while_too_much_is_waiting(
    journal: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "INBOX_LENGTH_MAX", 2)
    runner = a_runner(a_registered_agent(), journal)
    await runner.feed([a_launch("t1"), a_start("t1")])
    feeding = asyncio.create_task(runner.feed([LEAVE]))
    await asyncio.sleep(0)
    assert not feeding.done()

    await runner.run()
    await feeding


async def test_what_looks_at_the_machine_waits_for_what_was_fed_before(journal: Checkpoint) -> None:
    agent = a_registered_agent()
    runner = a_runner(agent, journal)
    seen: list[int] = []
    runner.after(lambda: seen.append(len(agent.machine.state.live)))
    await runner.feed([a_launch("t1")])
    runner.after(lambda: seen.append(len(agent.machine.state.live)))
    await runner.feed([LEAVE])

    await runner.run()

    assert seen == [0, 1]


async def test_deadline_wakes_the_loop(tmp_path: Path, journal: Checkpoint) -> None:
    machine = AgentMachine(settings(), restore([], settings()))
    beaten = asyncio.Event()

    def carry_out(action: actions.Action) -> None:
        if isinstance(action, actions.SendHeartbeat):
            beaten.set()

    runner = Runner(machine, journal, SteadyClock(), carry_out, LOG)
    run = asyncio.create_task(runner.run())
    await runner.feed([SessionOpened(), a_registration(heartbeat_ms=100)])

    await beaten.wait()
    runner.put(LEAVE)
    assert (await run).message == "bye"
