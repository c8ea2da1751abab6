"""The store in PostgreSQL, whole: the verbs stand in planning, running, jobs and history.

An ending appends a fact to `wake` and takes no lock on its job: endings come thousands a
second, a job's row would be hot, and a plan that holds jobs and changes occurrences would
wait for a step that holds occurrences and changes jobs. A plan's commit counts the facts
it finds into `woken` and takes them away.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import TypeVar

from everytick.stores.base import AHEAD, STEP, Ahead, NodeScope, StoreAddress
from everytick.stores.postgres.bell import Bell
from everytick.stores.postgres.definers import Definers
from everytick.stores.postgres.door import Door, patiently, read_address
from everytick.stores.postgres.history import History
from everytick.stores.postgres.migrate import migrate
from everytick.stores.postgres.planning import Planning
from everytick.stores.postgres.queries import cold_queries_in
from everytick.stores.postgres.recording import Recording
from everytick.stores.postgres.runner import AsyncRunner
from everytick.stores.postgres.running import Running
from everytick.stores.sql.cold import ColdVerbs
from everytick.stores.sql.commands import Make

T = TypeVar("T")


class PostgresStore(Planning, Running, Recording, Definers, History, ColdVerbs):
    """Jobs and occurrences in one schema of a PostgreSQL, shared by any number of nodes.

    `pooling` says that a transaction-pooling proxy stands before the server: nothing is
    prepared and the bell is looked at instead of listened to. `clock` takes the place of
    the server's time in this schema, for tests; `settings` are the session's.
    """

    def __init__(
        self,
        url: str,
        *,
        schema: str | None = None,
        pooling: bool | None = None,
        connections: int = 8,
        definitions_kept: int = 100_000,
        clock: Callable[[], datetime] | None = None,
        settings: dict[str, str] | None = None,
    ) -> None:
        address = read_address(url, schema, pooling)
        super().__init__(Door(address, connections=connections, clock=clock, settings=settings), definitions_kept)
        self._again = partial(PostgresStore, url, schema=schema, pooling=pooling, clock=clock, settings=settings)
        self._bell = Bell(self._door)
        self._q = cold_queries_in(address.schema)

    @property
    def url(self) -> str:
        """The server's address, without what is ours in it."""
        return self._door.address.url

    @property
    def schema(self) -> str:
        """The schema that holds everything."""
        return self._door.address.schema

    @property
    def definitions_compiled(self) -> int:
        """How many definitions are kept ready for use."""
        return len(self._compiled)

    @property
    def address(self) -> StoreAddress:
        """Where the store is: in one schema of a server."""
        return StoreAddress("postgres", url=self.url, schema=self.schema, is_pooled=self._door.address.pooling)

    async def open(self) -> None:
        """Make the tables ready, or refuse them with a reason; then connect."""
        await migrate(self._door)
        await self._door.open()
        await self._door.set_clock()
        await self._bell.open()

    @asynccontextmanager
    async def apart(self) -> AsyncIterator["PostgresStore"]:
        """Give the same tables through a connection of its own, for the loop that enters here."""
        other = self._again(connections=1)
        await other._door.open()
        try:
            yield other
        finally:
            await other._door.close()

    @patiently
    async def _transact(self, make: Make[T]) -> T:
        async with self._door.transaction() as db:
            return await AsyncRunner(db, self._sql, self._looked_at).run(make)

    @patiently
    async def _question(self, make: Make[T]) -> T:
        async with self._door.connection() as db, db.transaction(isolation="repeatable_read", readonly=True):
            return await AsyncRunner(db, self._sql, self._looked_at).run(make)

    async def close(self) -> None:
        """Give every connection back; closing twice is harmless."""
        await self._bell.close()
        await self._door.close()

    async def now(self) -> datetime:
        """Return the server's time; it follows a clock that is set right, back too."""
        async with self._door.connection() as db:
            now: datetime = await db.fetchval(self._sql.now)
        return now

    @patiently
    async def settle_clock(self) -> list[tuple[str, datetime]]:
        """Let everything go on that was written while the clock was ahead; return the jobs that lie ahead."""
        async with self._door.transaction() as db:
            now: datetime = await db.fetchval(self._sql.now)
            await db.execute(self._sql.bring_runs_back, now, now + STEP)
            await db.execute(self._sql.bring_retries_back, now, now + STEP)
            told = await db.fetch(self._sql.told_ahead, now + STEP)
            for row in told:
                await db.execute(self._sql.rewind_pauses, row["job_key"], now)
                await db.execute(self._sql.bring_told_back, row["job_key"], now)
                await self._revise(db, row["job_key"], now)
            await self._foretell(db, [row["id"] for row in told])
            await db.execute(self._sql.bring_waiting_back, now, now + STEP)
            if await db.fetchval(self._sql.was_ahead, now + STEP):
                await db.execute(self._sql.wake_jobs_ahead, now)
                await db.execute(self._sql.bring_wakes_back, now)
                await db.execute(self._sql.ring)
            found = await db.fetch(self._sql.jobs_ahead, now + AHEAD)
        return [(row["name"], row["watermark"]) for row in found]

    async def ahead(self, scope: NodeScope) -> Ahead:
        """Return what is next in this scope, so that a node sleeps until then and not longer."""
        async with self._door.connection() as db:
            row = await db.fetchrow(self._sql.ahead, scope.met, scope.seen)
        needs = tuple(sorted(row["needs"])) if row["needs"] else ()
        return Ahead(row["now"], row["wake_at"], row["ready_at"], needs)

    async def bell(self, seconds: float) -> bool:
        """Wait for a hint that something changed, at most so many seconds; return whether one came."""
        return await self._bell.wait(seconds)
