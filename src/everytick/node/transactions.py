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
from everytick.domain.steps import AttemptEnded, Step
from everytick.errors import Fenced, StoreUnavailable
from everytick.node.clock import NodeClock
from everytick.node.health import Backoff
from everytick.node.inbox import Inbox, TransactionOver
from everytick.node.occurrence import CanBeTakenBack, OpenAttempt, OwnedOccurrence
from everytick.stores.addresses import AnyStore
from everytick.stores.base import Commit
from everytick.stores.protocols import ClaimTransaction

_log = logging.getLogger("everytick.executor")


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
    """A store's transaction in the hands of a task; it can be taken back from one that does not give it up."""

    inner: ClaimTransaction

    def __init__(self, opening: AbstractAsyncContextManager[ClaimTransaction]) -> None:
        self._opening = opening
        self._is_open = False
        self.is_committing = self.was_taken = False

    async def __aenter__(self) -> Self:
        self.inner = await self._opening.__aenter__()
        self._is_open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    def may_commit(self) -> bool:
        """Whether the task still has the transaction. From here on it cannot be taken away: the commit decides."""
        self.is_committing = not self.was_taken
        return self.is_committing

    async def take_back(self) -> None:
        """Take the transaction from its task: its writes are rolled back."""
        self.was_taken = True
        await self._end()

    async def _end(self) -> None:
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
        occurrence.transaction_lock = occurrence.transaction_lock or asyncio.Lock()
        lent = attempt.open_transaction = LentTransaction(self._store.transaction(occurrence.claim))
        step: Step | None = None
        async with occurrence.transaction_lock:
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
                attempt.open_transaction = None
                # A transaction that was taken away has ended: events that are deferred now belong to another.
                if not lent.was_taken:
                    self._end(occurrence, step)

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
        """End the transaction of an attempt that is left behind, unless its commit is under way."""
        if attempt.open_transaction is not None and not attempt.open_transaction.is_committing:
            task = asyncio.get_running_loop().create_task(self._take_back(attempt, attempt.open_transaction))
            self._taking_back.add(task)
            task.add_done_callback(self._taking_back.discard)

    async def _take_back(self, attempt: OpenAttempt, lent: CanBeTakenBack) -> None:
        """Roll back, and let the events come that waited for it.

        The lock is replaced too: a retry must not wait for an attempt that does not end.
        """
        occurrence = attempt.occurrence
        deferred, occurrence.deferred, occurrence.transaction_lock = occurrence.deferred or [], None, None
        try:
            await lent.take_back()
        except Exception:  # noqa: BLE001, its connection may be gone
            text = "the transaction of task '%s' could not be taken back; the database does so when its connection ends"
            _log.exception(text, attempt.task)
        self._inbox.put(TransactionOver(occurrence, None, deferred))

    def _end(self, occurrence: OwnedOccurrence, step: Step | None) -> None:
        deferred, occurrence.deferred = occurrence.deferred or [], None
        self._inbox.put(TransactionOver(occurrence, step, deferred))


async def _refused() -> Commit:
    """It was taken back: nothing of it was written."""
    return Commit.STALE


async def _committed(store: AnyStore, inner: ClaimTransaction, step: Step, attempt: OpenAttempt) -> Commit:
    """Commit; where the answer was lost, look whether the success is there, since it came with the task's writes.

    To write the step again without them would record a success of something that is not there.
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
            of_this = (each for _, each in whole.attempts if each.id == attempt.context.attempt_id)
            if any(each.status is AttemptStatus.SUCCESS for each in of_this):
                return Commit.COMMITTED
            raise lost from None


async def _await_despite_cancel(commit: Coroutine[Any, Any, Commit]) -> Commit:
    """Return the answer to the commit, also if the task is told to stop: the answer must be known."""
    under_way = asyncio.ensure_future(commit)
    try:
        found = await asyncio.shield(under_way)
    except asyncio.CancelledError:
        found = await under_way
    return found
