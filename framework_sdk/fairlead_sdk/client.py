"""A session with the master that outlives its streams: the shell around ``SessionState``.

It owns the stream, the writer, the watch on the master's heartbeats and the retries; what to say and what the answers
mean is decided in ``session_state``. Everything queued in one turn of the event loop leaves in one message.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from fairlead_proto.backoff import Backoff
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.framework_calls import FrameworkConnected
from fairlead_proto.framework_events import AnswerCall
from fairlead_proto.peers import Unknowns
from fairlead_sdk.clock import Timer, sleep, wait_until
from fairlead_sdk.errors import FairleadError, LinkBroken, MasterUnreachable, Refused
from fairlead_sdk.events import Connected, Event, SessionOver, Welcome
from fairlead_sdk.session_state import Phase, SessionState
from fairlead_sdk.transport import Link, Transport
from fairlead_sdk.wire import read_events, write_batches

# The standard library's logging and not structlog: this runs inside other people's programs, on their standard output.
_log = logging.getLogger("fairlead_sdk")

WELCOME_MS_MAX: Final = 10_000
"""A connected master answers Hello in milliseconds; one that takes this long hangs, and another may be there by now."""

SILENCE_INTERVALS_MAX: Final = 3
"""Heartbeats that may be missing. One is lost to a pause of either process, two to a bad network; three is a master gone."""

OUTGOING_MAX: Final = 50_000
"""Calls that may wait behind a write that does not end. More means a master that stopped reading: the stream is given up."""

ACKNOWLEDGE_MS: Final = 20
"""How long acknowledgements wait for other calls to travel with. Agents repeat a report after seconds; shorter, and each
single task costs a message more, longer, and a burst of results keeps more reports on the agents' disks."""

TEARDOWN_MS_MAX: Final = 5_000
"""How long a closing session waits for its teardown to be answered. The master's failover timeout does the rest."""


class MasterClient:
    """One framework's session: call it from one event loop; ``on_events`` is called there, and must not block.

    Args:
        transport: how the master is reached. The client closes it.
        hello: who this framework is.
        on_events: is given what happened, in order. It may call ``state``'s methods; no ``flush`` is needed then.
        connect_timeout_ms: how long the first connection may take.
        reconnect_timeout_ms: how long a broken session may stay without a master; 0 is what the master granted.
    """

    def __init__(
        self,
        transport: Transport,
        hello: FrameworkConnected,
        on_events: Callable[[Sequence[Event]], None],
        *,
        connect_timeout_ms: int = 10_000,
        reconnect_timeout_ms: int = 0,
    ) -> None:
        self.state = SessionState(hello)
        self.transport = transport
        self.unknowns = Unknowns(_tell_of_unknown)
        """What newer masters said that is not known here."""
        self._on_events = on_events
        self._connect_timeout_ms = connect_timeout_ms
        self._reconnect_timeout_ms = reconnect_timeout_ms
        self._backoff = Backoff(transport.jitter)
        self._wake = asyncio.Event()
        self._link: Link | None = None
        self._watch: _Watch | None = None
        self._acknowledging: Timer | None = None
        self._sending_since_ms: int | None = None
        self._last_heard_ms = 0
        self._over: FairleadError | None = None
        self._closing = False
        self._drained: asyncio.Future[None] | None = None
        self._answers: dict[int, asyncio.Future[AnswerCall]] = {}
        self._welcomed: asyncio.Future[Welcome] | None = None
        self._task: asyncio.Task[None] | None = None

    # --- for the application -------------------------------------------------------------------------------------

    async def start(self) -> Welcome:
        """Connect, and return what the master granted.

        Raises:
            MasterUnreachable: nobody answered within ``connect_timeout_ms``.
            Refused: the master will not have this framework; the text says why.
            FrameworkExpired: the id given is not, or no longer, known.
        """
        assert self._task is None, "a client is started once"
        self._welcomed = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(), name="fairlead session")
        try:
            return await asyncio.shield(self._welcomed)
        except BaseException:
            await self.close(teardown=False)
            raise

    def flush(self) -> None:
        """Have everything queued written, together with what else this turn of the loop brings.

        Acknowledgements alone wait a moment for company: nobody waits for them, and a message of their own costs both
        sides as much as the task's launch did.
        """
        if self.state.outgoing_count:
            self._wake.set()
        elif self._acknowledging is None and self.state.has_outgoing():
            self._acknowledging = self.transport.clock.call_later(ACKNOWLEDGE_MS, self._acknowledge)

    def _acknowledge(self) -> None:
        self._acknowledging = None
        self._wake.set()

    async def answer(self, request_id: int) -> AnswerCall:
        """The answer to a call.

        Raises:
            FairleadError: the session ended first.
        """
        if self._over is not None:
            raise self._over
        future = self._answers.setdefault(request_id, asyncio.get_running_loop().create_future())
        return await asyncio.shield(future)

    async def close(self, *, teardown: bool) -> None:
        """End the session; a second call does nothing.

        Args:
            teardown: kill every task and forget the framework; otherwise both stay for the failover timeout.
        """
        if self._closing:
            return
        self._closing = True
        try:
            if self._link is not None and self._over is None:
                await self._say_goodbye(self._link, teardown=teardown)
        finally:
            if self._acknowledging is not None:
                self._acknowledging.cancel()
            if self._task is not None:
                self._task.cancel()
                await asyncio.gather(self._task, return_exceptions=True)
            await self.transport.close()

    async def _say_goodbye(self, link: Link, *, teardown: bool) -> None:
        self._drained = asyncio.get_running_loop().create_future()
        answer = asyncio.ensure_future(self.answer(self.state.teardown())) if teardown else None
        self._wake.set()
        waited_for = answer or self._drained
        try:
            if not await wait_until(self.transport.clock, waited_for, TEARDOWN_MS_MAX):
                _log.info("session.goodbye_unanswered", extra={"framework_id": self.state.framework_id})
        finally:
            if answer is not None:
                answer.cancel()
                await asyncio.gather(answer, return_exceptions=True)
        await link.finish()

    # --- the session's life --------------------------------------------------------------------------------------

    async def _run(self) -> None:
        clock = self.transport.clock
        alone_since_ms = clock.now_ms()
        while self._over is None:
            try:
                await self._live_one_stream()
                continue
            except Refused as refusal:
                self._end(refusal)
                continue
            except (LinkBroken, InvalidFieldError) as trouble:
                reason = str(trouble)
            except Exception as bug:
                # A callback of the application, or we ourselves, broke: nobody would hear of it in this task.
                self._fail(bug)
                raise
            if self.state.phase is Phase.OPEN:
                alone_since_ms = clock.now_ms()
                self._backoff.reset()
            if self._closing:
                # The master ends the stream of a framework that has said goodbye: nothing broke, and nothing is tried again.
                return
            self._break(reason)
            if clock.now_ms() - alone_since_ms >= self._patience_ms():
                was_there = self.state.welcome is not None
                self._end(MasterUnreachable(self.transport.address, reason, was_there=was_there))
                continue
            delay_ms = min(
                self._backoff.next_ms(), max(1, alone_since_ms + self._patience_ms() - clock.now_ms())
            )
            await sleep(clock, delay_ms)

    def _patience_ms(self) -> int:
        if self.state.welcome is None:
            return self._connect_timeout_ms
        return self._reconnect_timeout_ms or self.state.welcome.failover_timeout_ms

    async def _live_one_stream(self) -> None:
        link = await self.transport.open()
        self._link = link
        self._last_heard_ms = self.transport.clock.now_ms()
        self.state.link_opened()
        self._wake.set()
        writer = asyncio.create_task(self._write(link), name="fairlead writer")
        watch = self._watch = _Watch(self, link)
        try:
            await self._read(link)
        finally:
            watch.stop()
            self._watch = None
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
            link.abort("the session is done with this stream")
            self._link = None

    async def _read(self, link: Link) -> None:
        while self._over is None:
            message = await link.receive()
            self._last_heard_ms = self.transport.clock.now_ms()
            events = self.state.receive(message.epoch, read_events(message, self.unknowns))
            self._deliver(events)
            # Answers to what was just read leave now, not in a later turn.
            self.flush()

    async def _write(self, link: Link) -> None:
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                for batch in write_batches(self.state.take_outgoing(), self.state.peer):
                    self._sending_since_ms = self.transport.clock.now_ms()
                    await link.send(batch)
                    self._sending_since_ms = None
                if self._drained is not None and not self._drained.done():
                    self._drained.set_result(None)
        except LinkBroken as trouble:
            link.abort(str(trouble))
        except Exception as bug:
            self._fail(bug)
            link.abort("the writer failed")
            raise
        finally:
            self._sending_since_ms = None

    def overdue(self) -> str:
        """Why the stream should be given up now; empty if it should not."""
        now_ms = self.transport.clock.now_ms()
        limit_ms = self.silence_limit_ms()
        if now_ms - self._last_heard_ms >= limit_ms:
            return f"nothing heard for {now_ms - self._last_heard_ms} ms"
        if self._sending_since_ms is not None and (
            now_ms - self._sending_since_ms >= limit_ms or self.state.outgoing_count > OUTGOING_MAX
        ):
            return f"the master does not read; {self.state.outgoing_count} calls wait"
        return ""

    def silence_limit_ms(self) -> int:
        """How long the master may say nothing."""
        if self.state.welcome is None or self.state.phase is not Phase.OPEN:
            return min(WELCOME_MS_MAX, self._patience_ms())
        return SILENCE_INTERVALS_MAX * self.state.welcome.heartbeat_interval_ms

    # --- telling the application ---------------------------------------------------------------------------------

    def _deliver(self, events: Sequence[Event]) -> None:
        if not events:
            return
        for event in events:
            match event:
                case Connected():
                    if self._watch is not None:
                        # The limit is now the master's own, and usually far shorter than the one for Welcome.
                        self._watch.wind()
                    welcome = event.welcome
                    ids = {"framework_id": welcome.framework_id, "master_version": welcome.master_version}
                    _log.info("session.connected", extra=ids)
                    if self._welcomed is not None and not self._welcomed.done():
                        self._welcomed.set_result(event.welcome)
                case AnswerCall():
                    future = self._answers.pop(event.request_id, None)
                    if future is not None and not future.done():
                        future.set_result(event)
                case SessionOver():
                    self._conclude(event.error)
                case _:
                    pass
        self._on_events(events)

    def _break(self, reason: str) -> None:
        _log.info("session.broken", extra={"framework_id": self.state.framework_id, "reason": reason})
        self._deliver(self.state.link_broken(reason))

    def _end(self, error: FairleadError) -> None:
        self._deliver([*self.state.link_broken(str(error)), SessionOver(error)])

    def _fail(self, bug: Exception) -> None:
        _log.error("session.failed", exc_info=bug)
        error = FairleadError(f"the session failed: {bug!r}")
        error.__cause__ = bug
        self._conclude(error)
        with suppress(Exception):
            self._on_events([SessionOver(error)])

    def _conclude(self, error: FairleadError) -> None:
        self._over = error
        waiting: list[asyncio.Future[Any]] = [*self._answers.values()]
        if self._welcomed is not None:
            waiting.append(self._welcomed)
        self._answers = {}
        for future in waiting:
            if not future.done():
                future.set_exception(error)
                # Whoever waits gets it; if nobody does, the application was told by SessionOver.
                future.exception()


def _tell_of_unknown(what: str, detail: str) -> None:
    _log.warning("session.unknown_skipped", extra={"what": what, "detail": detail})


class _Watch:
    """Gives a stream up when the master is silent or does not read.

    One timer that looks and winds itself up again, instead of one for each message.
    """

    def __init__(self, client: MasterClient, link: Link) -> None:
        self._client = client
        self._link = link
        self._clock = client.transport.clock
        self._timer = self._clock.call_later(client.silence_limit_ms(), self._look)

    def _look(self) -> None:
        reason = self._client.overdue()
        if reason:
            self._link.abort(reason)
            return
        self._timer = self._clock.call_later(max(1, self._client.silence_limit_ms() // 2), self._look)

    def wind(self) -> None:
        """Look after the limit that holds now."""
        self._timer.cancel()
        self._timer = self._clock.call_later(self._client.silence_limit_ms(), self._look)

    def stop(self) -> None:
        """Stop looking."""
        self._timer.cancel()
