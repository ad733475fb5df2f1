"""A recording played back orders the same actions."""

import io
import json
from pathlib import Path

import pytest

from fairlead_master.allocation.weights import Weight
from fairlead_master.core import events
from fairlead_master.core.actions import Action, StoreAgent
from fairlead_master.core.machine import Machine, Remembered
from fairlead_master.core.settings import CoreSettings
from fairlead_master.recording import Header, Recorder, RecordingError, decode, encode, play
from fairlead_proto.codes import DeclineScope
from fairlead_proto.framework_calls import (
    FrameworkConnected,
    KillAsked,
    OffersDeclined,
    ReconcileAsked,
    StatusesAcknowledged,
    TeardownAsked,
)
from fairlead_proto.ids import AgentId, ClassId, FrameworkId, OfferId, Role, TaskId
from fairlead_proto.reports import AgentConnected
from fairlead_proto.resources import ResourceKinds
from fairlead_proto.task_state import TaskState
from fairlead_proto.tasks import Constraint, DemandClass, Operator, TaskArray, TaskSpec, TaskStatus

GIB = 2**30
HEADER = Header(
    kinds=ResourceKinds(("licenses",)),
    settings=CoreSettings(),
    remembered=Remembered(
        epoch=3,
        agents=(
            StoreAgent(agent_id=AgentId("a2-1"), hostname="h", total=(4000, GIB, 0, 0, 0), attributes=()),
        ),
        weights=((Role("eng"), Weight(2.0, {0: 3.0})),),
    ),
    now_ms=1_000,
)
UNIT = (1000, GIB, 0, 0, 1000)


def some_events() -> list[tuple[int, events.Event]]:
    rack = Constraint("rack", Operator.EQUALS, ("a",))
    demand = DemandClass(class_id=ClassId("c"), unit=UNIT, units=2, constraints=(rack,))
    task = TaskSpec(task_id=TaskId("t1"), resources=UNIT, command=("true",), environment={"A": "ü"})
    status = TaskStatus(
        framework_id=FrameworkId("f3-1"),
        task_id=TaskId("t1"),
        agent_id=AgentId("a2-1"),
        sequence=1,
        state=TaskState.FINISHED,
        exit_code=0,
    )
    return [
        (1_010, FrameworkConnected(session=1, framework_id=None, name="f", role=Role("eng"))),
        (
            1_020,
            AgentConnected(
                session=2,
                agent_id=AgentId("a2-1"),
                incarnation=1,
                hostname="h",
                total=(4000, 8 * GIB, 0, 0, 2000),
                attributes={"rack": "a"},
            ),
        ),
        (1_030, events.DemandSet(session=1, request_id=1, version=1, classes=(demand,))),
        (1_030, events.Ticked()),
        (
            1_040,
            events.OfferAccepted(
                session=1,
                request_id=2,
                offer_id=OfferId("o3-1"),
                tasks=(task, events.InvalidTask("t2", "no")),
            ),
        ),
        (1_050, events.StatusesReported(session=2, statuses=(status,))),
        (1_052, StatusesAcknowledged(session=1, items=((TaskId("t1"), 1, AgentId("a2-1")),))),
        (
            1_054,
            OffersDeclined(
                session=1,
                request_id=3,
                offer_ids=(OfferId("o3-2"),),
                reason="no",
                scope=DeclineScope.CLASS,
                ttl_ms=0,
            ),
        ),
        (1_056, KillAsked(session=1, request_id=4, task_ids=(TaskId("t9"),), grace_period_ms=0)),
        (1_058, ReconcileAsked(session=1, request_id=5)),
        (1_060, events.WeightSet(request=1, role=Role("eng"), weight=Weight(1.5, {4: 2.0}))),
        (1_070, TeardownAsked(session=1, request_id=6)),
        (9_999, events.Ticked()),
    ]


def a_recording(path: Path) -> list[list[Action]]:
    core = Machine(HEADER.kinds, HEADER.settings, HEADER.remembered, HEADER.now_ms)
    recorder = Recorder(path.open("w", encoding="utf-8"), HEADER)
    taken = []
    for now_ms, event in some_events():
        recorder.record(event, now_ms)
        taken.append(core.step(event, now_ms))
    recorder.close()
    return taken


def test_a_recording_played_back_orders_the_same_actions(tmp_path: Path) -> None:
    ordered = a_recording(tmp_path / "flight")

    played = list(play(tmp_path / "flight"))

    assert [(now_ms, event) for now_ms, event, _ in played] == some_events()
    assert [orders for _, _, orders in played] == ordered
    assert sum(map(len, ordered)) > 8, "or it was a recording of nothing"


def test_a_recording_with_fields_that_are_gone_is_played_without_them(tmp_path: Path) -> None:
    ordered = a_recording(tmp_path / "flight")
    lines = (tmp_path / "flight").read_text().splitlines()
    older = [line.replace('"$": "AgentConnected"', '"$": "AgentConnected", "boot_id": "b"') for line in lines]
    assert older != lines
    (tmp_path / "flight").write_text("".join(f"{line}\n" for line in older))

    assert [orders for _, _, orders in play(tmp_path / "flight")] == ordered


def test_a_line_cut_off_by_a_crash_ends_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "flight"
    a_recording(path)
    path.write_bytes(path.read_bytes()[:-5])

    assert len(list(play(path))) == len(some_events()) - 1


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "line 1: expected the header"),
        (
            '{"format": "fairlead-recording-2"}\n',
            "line 1: expected the header of a fairlead-recording-1: got 'fairlead-recording-2'",
        ),
        ("not json\n", "line 1: expected the header"),
    ],
)
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, content: str, expected: str) -> None:
    (tmp_path / "flight").write_text(content)

    with pytest.raises(RecordingError, match=expected):
        list(play(tmp_path / "flight"))


@pytest.mark.parametrize(
    "line",
    [
        '{"$": "Popen"}',
        '[5, {"$": "Popen"}]',
        '[5, {"$": "Ticked", "x": 1}]',
        '[5, {"$": "TaskState", "name": "X"}]',
    ],
)
def test_a_bad_line_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "flight"
    a_recording(path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:3], line, *lines[3:]]) + "\n")

    with pytest.raises(RecordingError, match=r"flight: line 4: expected \[now_ms, event\]"):
        list(play(path))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="No such file"):
        list(play(tmp_path / "none"))


def test_a_recording_stops_at_its_full_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead_master.recording.BYTES_MAX", 10)
    file = io.StringIO()

    recorder = Recorder(file, HEADER)
    recorder.record(events.Ticked(), 5)

    assert file.getvalue().count("\n") == 1


def test_a_member_of_an_array_is_recorded_without_the_array() -> None:
    template = TaskSpec(task_id=TaskId("s"), resources=(1, 1, 0, 0), command=("true",))
    spec = TaskArray(template=template, indices=[3], count=4).spec(0)

    document = encode(spec)

    assert "origin" not in document
    assert decode(document) == spec


def test_every_kind_of_event_has_a_json_form() -> None:
    for _, event in some_events():
        assert decode(json.loads(json.dumps(encode(event)))) == event
