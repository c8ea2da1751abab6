"""Hand-overs: notes which attempts are about to be handed to an engine, before they are.

An attempt without a note was never handed over: it is lost with its node, as any other attempt. An attempt with a note
goes on without this node, and another node waits for its end. So no attempt is handed over twice. The notes of attempts
that begin together are one question to the store.
"""

import asyncio
import logging

from everytick.domain.notes import Note
from everytick.errors import Fenced, StoreUnavailable
from everytick.node.health import Health
from everytick.node.inbox import HandedOver, Inbox
from everytick.node.occurrence import OpenAttempt
from everytick.stores.base import Commit, CommitAway, CommitFailed
from everytick.stores.protocols import RunStore

_log = logging.getLogger("everytick.node")

_NOTES_AT_ONCE = 500
"""Largest number of notes in one question: as many as the writer puts into one commit."""

_AGAIN_SECONDS = 1.0
"""How soon the store is asked again if it did not answer. The attempts wait meanwhile, and their timeouts run."""


class HandOvers:
    """Writes the notes of attempts that wait to be handed over, as many at a time as have gathered."""

    def __init__(self, store: RunStore, health: Health, inbox: Inbox) -> None:
        self._store, self._health, self._inbox = store, health, inbox
        self._waiting: list[tuple[OpenAttempt, str, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def note(self, attempt: OpenAttempt, handed_to: str) -> None:
        """Return once the store knows to which engine the attempt will be handed."""
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((attempt, handed_to, written))
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write())
        await written
        attempt.handed_to = handed_to

    def done(self, attempt: OpenAttempt) -> None:
        """Tell the engine of this node that another one has the attempt now."""
        attempt.is_handed = True
        self._inbox.put(HandedOver(attempt))

    async def close(self) -> None:
        """Write no more notes. The attempts that wait for one were not handed over."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)

    async def _write(self) -> None:
        try:
            # One turn of the loop: the attempts that begin with this one are noted with it.
            await asyncio.sleep(0)
            while self._waiting:
                batch, self._waiting = self._waiting[:_NOTES_AT_ONCE], self._waiting[_NOTES_AT_ONCE:]
                wanted = [hand_over for hand_over in batch if not hand_over[2].done()]
                if wanted and not await self._write_some(wanted):
                    await asyncio.sleep(_AGAIN_SECONDS)
        finally:
            self._writing = None

    async def _write_some(self, batch: list[tuple[OpenAttempt, str, asyncio.Future[None]]]) -> bool:
        """Write the notes, and let each attempt go on. Return False if some of them wait for another try."""
        notes = [
            (
                attempt.occurrence.claim,
                Note(attempt.task, attempt.number, attempt.context.started_at, handed_to=handed_to),
            )
            for attempt, handed_to, _ in batch
        ]
        try:
            answers = await self._store.note(notes)
        except StoreUnavailable as error:
            self._health.failed(error)
            self._waiting += batch
            return False
        except Exception as error:  # noqa: BLE001, whatever a driver raises about the store
            answers = [CommitFailed(str(error))] * len(batch)
        again = [hand_over for hand_over, answer in zip(batch, answers, strict=True) if isinstance(answer, CommitAway)]
        self._waiting += again
        for (attempt, _, written), answer in zip(batch, answers, strict=True):
            if written.done() or isinstance(answer, CommitAway):
                continue
            if answer is Commit.COMMITTED:
                written.set_result(None)
            elif isinstance(answer, CommitFailed):
                text = "%r is not handed over: the store refuses to note it: %s; the attempt fails"
                _log.error(text, attempt, answer.reason)
                written.set_exception(RuntimeError(f"the store refuses to note the hand-over: {answer.reason}"))
            else:
                written.set_exception(Fenced(attempt.occurrence.claim.header.id))
        return not again
