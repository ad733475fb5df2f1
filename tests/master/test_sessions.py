"""What waits for a peer is bounded in bytes, and goes out in batches that every peer can take."""

import pytest

from fairlead_master import sessions
from fairlead_master.sessions import Outbox
from fairlead_proto.limits import BATCH_BYTES_MAX


class Letter:
    def __init__(self, size: int) -> None:
        self.size = size

    def ByteSize(self) -> int:  # noqa: N802 - protobuf's name
        return self.size


async def test_a_batch_is_as_much_as_one_message_may_carry() -> None:
    outbox: Outbox[Letter] = Outbox()
    third = BATCH_BYTES_MAX // 3
    letters = [Letter(third) for _ in range(4)] + [Letter(BATCH_BYTES_MAX + 1), Letter(1)]
    for letter in letters:
        outbox.put(letter)
    outbox.close()

    batches = []
    while batch := await outbox.take():
        batches.append([letters.index(letter) for letter in batch])

    assert batches == [[0, 1, 2], [3], [4], [5]], "what is too large for a batch goes alone"


async def test_a_queue_that_is_full_ends_the_conversation_and_forgets_what_waited() -> None:
    outbox: Outbox[Letter] = Outbox()

    outbox.put(Letter(sessions.QUEUE_BYTES_MAX))
    assert not outbox.overflown.is_set()
    outbox.put(Letter(1))

    assert outbox.overflown.is_set()
    assert await outbox.take() == []


async def test_room_is_made_by_what_is_taken() -> None:
    outbox: Outbox[Letter] = Outbox()
    for _ in range(5):
        outbox.put(Letter(sessions.QUEUE_BYTES_MAX))
        await outbox.take()

    assert not outbox.overflown.is_set()


async def test_a_batch_that_is_never_taken_off_our_hands_ends_the_conversation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outbox: Outbox[Letter] = Outbox()
    outbox.put(Letter(1))
    await outbox.take()
    monkeypatch.setattr(sessions, "WRITE_SECONDS_MAX", -1.0)

    outbox.put(Letter(1))

    assert outbox.overflown.is_set()
