"""`ctx.transaction()`: a task's writes, its success and the step that follows from it, in one commit."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self

from everytick.deciding.advance import advance
from everytick.domain.outcome import Succeeded
from everytick.domain.payload import Payload, payload
from everytick.domain.statuses import AttemptStatus
from everytick.domain.steps import AttemptEnded, LifeEvent, Step
from everytick.errors import Fenced, StoreUnavailable
from everytick.node.clock import NodeClock
from everytick.node.health import Backoff
from everytick.node.inbox import Inbox, TransactionOver
from everytick.node.occurrence import CanBeTakenBack, OpenAttempt, OwnedOccurrence
from everytick.stores.addresses import AnyStore
from everytick.stores.base import Commit
from everytick.stores.protocols import ClaimTransaction

_log = logging.getLogger("everytick.node")


class _TaskTransaction:
    """What the task sees of the transaction."""

    def __init__(self, inner: ClaimTransaction) -> None:
        self._inner = inner
        self.given: Payload | None = None

    @property
    def connection(self) -> Any:
        """The driver's connection; it must not commit."""
        return self._inner.connection

    async def execute(self, sql: str, *arguments: object) -> None:
        """Carry out one statement."""
        await self._inner.execute(sql, *arguments)

    async def fetch(self, sql: str, *arguments: object) -> Any:
        """Return the rows of one question."""
        return await self._inner.fetch(sql, *arguments)

    def result(self, value: object) -> None:
        """Make this the task's result."""
        self.given = None if value is None else payload(value, "result")


class LentTransaction:
    """A store's transaction in the hands of a task; it can be taken back from one that does not give it up.

    `has_turn` says that no other task of the occurrence has its transaction now.
    """

    inner: ClaimTransaction

    def __init__(self, opening: AbstractAsyncContextManager[ClaimTransaction]) -> None:
        self._opening = opening
        self._is_open = self._is_committing = False
        self.has_turn = self.was_taken = False

    async def __aenter__(self) -> Self:
        self.inner = await self._opening.__aenter__()
        self._is_open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end()

    def take_turn(self) -> bool:
        """Note that its turn has come. False if it was taken from its task before."""
        self.has_turn = not self.was_taken
        return self.has_turn

    def may_commit(self) -> bool:
        """Whether the task still has the transaction. From here on it cannot be taken away: the commit decides."""
        self._is_committing = not self.was_taken
        return self._is_committing

    def take(self) -> bool:
        """Take the transaction from its task: from here on it cannot commit. False if its commit is under way."""
        self.was_taken = not self._is_committing
        return self.was_taken

    async def end(self) -> None:
        """Roll back, unless it has ended."""
        if self._is_open:
            self._is_open = False
            await self._opening.__aexit__(None, None, None)


class Transactions:
    """Gives each attempt its one transaction. While it is open, no other event of the occurrence is decided."""

    def __init__(self, store: AnyStore, clock: NodeClock, inbox: Inbox) -> None:
        self._store, self._clock, self._inbox = store, clock, inbox
        self._taking_back: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def begin(self, attempt: OpenAttempt) -> AsyncIterator[_TaskTransaction]:
        """Give the attempt its transaction.

        Everything decided before is written first: the store's transaction may keep every
        other writer waiting. Fenced out, nothing was written and `Fenced` is raised.
        """
        occurrence = attempt.occurrence
        if attempt.has_transacted:
            raise RuntimeError("an attempt has one transaction, and this one has had it: put all writes into one block")
        attempt.has_transacted = True
        lent = attempt.open_transaction = LentTransaction(self._store.transaction(occurrence.claim))
        step: Step | None = None
        try:
            async with _turn(occurrence):
                if not lent.take_turn():
                    raise Fenced(occurrence.claim.header.id)
                occurrence.deferred = []
                try:
                    await occurrence.written()
                    if occurrence.is_gone:
                        raise Fenced(occurrence.claim.header.id)
                    async with lent:
                        task = _TaskTransaction(lent.inner)
                        yield task
                        step = await self._commit(attempt, lent, task)
                        attempt.is_settled = True
                finally:
                    # Where it was taken back, `_take_back` puts the events that waited for it.
                    if not lent.was_taken:
                        self._end(occurrence, step)
        finally:
            attempt.open_transaction = None

    async def _commit(self, attempt: OpenAttempt, lent: LentTransaction, task: _TaskTransaction) -> Step:
        """Commit the task's writes with its success and return the step that follows from it."""
        occurrence = attempt.occurrence
        ended = AttemptEnded(attempt.task, attempt.number, Succeeded(task.given))
        step = advance(occurrence.claim.header, occurrence.follow(self._clock), ended, self._clock.now())
        commit = _committed(self._store, lent.inner, step, attempt) if lent.may_commit() else _refused()
        if await _await_despite_cancel(commit) is Commit.STALE:
            raise Fenced(occurrence.claim.header.id)
        return step

    def take_back(self, attempt: OpenAttempt) -> None:
        """End the transaction of an attempt that is left behind, unless its commit is under way.

        One that still waits for its turn has nothing to roll back. What is deferred then waits for another task's.
        """
        lent, occurrence = attempt.open_transaction, attempt.occurrence
        if lent is None or not lent.take() or not lent.has_turn:
            return
        assert occurrence.deferred is not None, "events wait for a transaction that has its turn"
        # A retry must not wait for an attempt that does not end: it gets a lock of its own.
        occurrence.transaction_lock = None
        task = asyncio.get_running_loop().create_task(self._take_back(attempt, lent, occurrence.deferred))
        self._taking_back.add(task)
        task.add_done_callback(self._taking_back.discard)

    async def _take_back(self, attempt: OpenAttempt, lent: CanBeTakenBack, deferred: list[LifeEvent]) -> None:
        """Roll back, and put the events that waited for the transaction into the inbox."""
        try:
            await lent.end()
        except Exception:  # noqa: BLE001, its connection may be gone
            text = "the transaction of task '%s' could not be taken back; the database does so when its connection ends"
            _log.exception(text, attempt.task)
        if attempt.occurrence.deferred is deferred:
            attempt.occurrence.deferred = None
        self._inbox.put(TransactionOver(attempt.occurrence, None, deferred))

    def _end(self, occurrence: OwnedOccurrence, step: Step | None) -> None:
        deferred, occurrence.deferred = occurrence.deferred or [], None
        self._inbox.put(TransactionOver(occurrence, step, deferred))


@asynccontextmanager
async def _turn(occurrence: OwnedOccurrence) -> AsyncIterator[None]:
    """Wait until no other task of the occurrence has its transaction, and keep others from theirs."""
    while True:
        lock = occurrence.transaction_lock = occurrence.transaction_lock or asyncio.Lock()
        async with lock:
            # The lock of a transaction that was taken back is not the one that tasks wait for now.
            if lock is occurrence.transaction_lock:
                yield
                return


async def _refused() -> Commit:
    """Answer for a transaction that was taken back: nothing of it was written."""
    return Commit.STALE


async def _committed(store: AnyStore, inner: ClaimTransaction, step: Step, attempt: OpenAttempt) -> Commit:
    """Commit. If the answer is lost, look whether the success is in the store: it was written with the task's rows.

    The step must not be written again without those rows: it would record the success of work that is not there.
    """
    try:
        return await inner.commit(step)
    except StoreUnavailable as lost:
        backoff = Backoff()
        while True:
            try:
                whole = await store.whole(attempt.context.occurrence_id)
            except StoreUnavailable as error:
                await asyncio.sleep(backoff.failed(error))
                continue
            of_this = (record for _, record in whole.attempts if record.id == attempt.context.attempt_id)
            if any(record.status is AttemptStatus.SUCCESS for record in of_this):
                return Commit.COMMITTED
            raise lost from None


async def _await_despite_cancel(commit: Coroutine[Any, Any, Commit]) -> Commit:
    """Return the answer to the commit, also if the task is told to stop: the answer must be known."""
    under_way = asyncio.ensure_future(commit)
    try:
        answer = await asyncio.shield(under_way)
    except asyncio.CancelledError:
        answer = await under_way
    return answer
