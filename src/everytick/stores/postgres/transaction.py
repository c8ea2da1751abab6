"""The transaction a task writes in: its rows and the step of its success become true together, or neither does."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from everytick.domain.codes import FIRST_ENDED
from everytick.domain.steps import Step
from everytick.errors import StoreUnavailable
from everytick.stores.base import Claim, Commit
from everytick.stores.postgres.connections import Connection, Connections
from everytick.stores.postgres.rows import Row

StepWriter: TypeAlias = Callable[[Connection, Sequence[tuple[Claim, Step]]], Awaitable[set[int]]]
"""Writes steps on a connection as `commit_steps` does, and returns the handles of those that were written."""

_AS_THE_SERVER_LIKES = (
    "begin; set local plan_cache_mode = auto; set local enable_seqscan = on; set local enable_bitmapscan = on; "
    "set local jit = on"
)
"""A task's statements run with the server's defaults, not with the settings of our sessions."""

_LEAVE_SECONDS = 2.0
"""How long the server has to cancel what a task has asked, to roll back and to reset the session. Then the line is cut,
and the server rolls back once it hears of that: a node that stops does not wait for a server that is frozen."""


class PostgresClaimTransaction:
    """A transaction on its own connection. It locks no row of everytick before its commit."""

    def __init__(self, connections: Connections, db: Connection, claim: Claim, write: StepWriter) -> None:
        self._connections = connections
        self._db = db
        self._claim = claim
        self._write = write
        self._open = False

    @property
    def connection(self) -> Any:
        """The asyncpg connection, for what `execute` and `fetch` do not offer; it must not commit."""
        return self._in_use()

    async def execute(self, sql: str, *arguments: object) -> None:
        """Carry out one statement, with placeholders as `$1`."""
        db = self._in_use()
        with self._connections.lending(db):
            await db.execute(sql, *arguments)

    async def fetch(self, sql: str, *arguments: object) -> Sequence[tuple[Any, ...]]:
        """Return the rows of one query, which sees the rows that the transaction wrote."""
        db = self._in_use()
        with self._connections.lending(db):
            return [tuple(row) for row in await db.fetch(sql, *arguments)]

    async def commit(self, step: Step) -> Commit:
        """Write the step and commit it together with the task's rows. STALE: nothing was written."""
        db = self._in_use()
        await self._connections.keep_time()
        with self._connections.answering():
            if not db.is_in_transaction():
                raise RuntimeError("the task ended its transaction by itself: leave commit and rollback to everytick")
            if not await self._write(db, [(self._claim, step)]):
                await self._end("rollback")
                return Commit.STALE
        try:
            with self._connections.answering():
                await self._end("commit")
        except StoreUnavailable:
            if not await self._was_written(step):
                raise
        return Commit.COMMITTED

    async def begin(self) -> None:
        """Open it."""
        with self._connections.answering():
            await self._db.execute(_AS_THE_SERVER_LIKES)
        self._open = True

    async def leave(self) -> None:
        """Roll back and release the connection as it was.

        A connection that is lost took its transaction with it, so that is no failure. Nor is a server that does not
        answer in time.
        """
        try:
            async with asyncio.timeout(_LEAVE_SECONDS):
                with self._connections.answering():
                    if self._open:
                        await self._end("rollback")
                    await self._connections.forget_session(self._db)
        except (StoreUnavailable, TimeoutError):
            self._connections.drop(self._db)
        except BaseException:
            self._connections.drop(self._db)
            raise
        finally:
            self._connections.give_back(self._db)

    async def _end(self, word: str) -> None:
        self._open = False
        await self._db.execute(word)

    def _in_use(self) -> Connection:
        if not self._open:
            raise RuntimeError("this transaction is over: write before its commit, or in a transaction of your own")
        return self._db

    async def _was_written(self, step: Step) -> bool:
        """Return the result of a commit whose reply was lost, as soon as the server knows it."""
        async with self._connections.connection() as db:
            mark = await db.fetchrow(*self._connections.sql.wait_for_mark(handle=self._claim.handle))
        return is_repeat(mark, self._claim, step)


def is_repeat(mark: Row | None, claim: Claim, step: Step) -> bool:
    """Tell from a stored occurrence whether the same step is there already: a commit whose reply was lost."""
    if mark is None or mark["claim_token"] != claim.key.token:
        return False
    if mark["fence"] == claim.fence:
        return bool(step.number <= mark["step_number"])
    # An end raises the fence and keeps the number: its repeat finds its own effect.
    over = mark["status"] >= FIRST_ENDED and mark["fence"] == claim.fence + 1
    return bool(over and mark["step_number"] == step.number)
