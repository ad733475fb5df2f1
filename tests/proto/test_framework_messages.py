"""What a framework is told arrives as it was sent, where both sides hold it alike."""

from collections.abc import Sequence

from fairlead_proto.codes import CallCode, ErrorCode, Rejection
from fairlead_proto.framework_events import (
    AnnounceAgentGone,
    AnswerAccept,
    AnswerCall,
    EndFrameworkSession,
    FinishReconciliation,
    Heartbeat,
    InfeasibleClass,
    LaunchAnswer,
    RescindOffers,
    ToFramework,
)
from fairlead_proto.framework_messages import read_event, write_events
from fairlead_proto.ids import AgentId, ClassId, OfferId
from fairlead_proto.peers import Unknowns
from fairlead_proto.resources import ResourceKinds

KINDS = ResourceKinds(("tapes",))


def test_what_a_framework_is_told_arrives_as_it_was_given() -> None:
    told: Sequence[ToFramework | Heartbeat] = [
        AnswerAccept(
            request_id=1,
            offer_id=OfferId("o1"),
            answers=(LaunchAnswer("t1"), LaunchAnswer("t2", Rejection.NO_FIT, "too large")),
        ),
        AnswerCall(request_id=2, code=CallCode.OK, demand_version=3),
        RescindOffers(offer_ids=(OfferId("o2"), OfferId("o3")), reason="lease ended"),
        FinishReconciliation(request_id=4, recovering_agent_ids=(AgentId("a1"),)),
        AnnounceAgentGone(agent_id=AgentId("a2"), reason="away too long"),
        EndFrameworkSession(code=ErrorCode.SUPERSEDED, detail="a newer session"),
        Heartbeat(5),
    ]

    (batch,) = write_events(told, KINDS, epoch=7)

    assert batch.epoch == 7
    kinds = [event.WhichOneof("event") or "" for event in batch.events]
    assert [read_event("", *both, Unknowns()) for both in zip(kinds, batch.events, strict=True)] == told


def test_what_the_nearest_agent_lacks_arrives_by_the_names_of_resources() -> None:
    near = InfeasibleClass(
        class_id=ClassId("c"), best_agent_id=AgentId("a1"), missing={"mem": 5, "tapes": 2_000}, detail="d"
    )
    none = InfeasibleClass(class_id=ClassId("x"), best_agent_id=None, missing={}, detail="no rack z")
    answer = AnswerCall(request_id=1, code=CallCode.INFEASIBLE, infeasible=(near, none))

    (batch,) = write_events([answer], KINDS, epoch=7)

    assert read_event("", "result", batch.events[0], Unknowns()) == answer
