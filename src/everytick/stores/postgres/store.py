"""The store in PostgreSQL: its hot verbs are in planning and running, the others in `stores/sql`.

An end takes no lock on its job: a plan that holds jobs and changes occurrences would wait for
a step that holds occurrences and changes jobs. It writes the job's tally, and appends a fact
to `wake` where the job awaits it. A plan's commit counts the facts it finds into `woken` and
takes them away.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from functools import cached_property, partial
from typing import Any, TypeVar

from everytick.domain.changes import Edit
from everytick.domain.decisions import Plan
from everytick.domain.facts import ASKS, Fact, request_of
from everytick.domain.snapshots import ASKED_NOW
from everytick.domain.steps import Step
from everytick.errors import Contended
from everytick.stores.base import (
    Ahead,
    Batch,
    Claim,
    CommitAnswer,
    Committed,
    NodeScope,
    Offer,
    Receipt,
    StoreAddress,
    Stored,
)
from everytick.stores.open_requests import refuse_within
from everytick.stores.postgres.access import PostgresAccess
from everytick.stores.postgres.asking import Asking
from everytick.stores.postgres.base import Shared
from everytick.stores.postgres.bell import Bell
from everytick.stores.postgres.connections import Connection, Connections, patiently, read_address
from everytick.stores.postgres.dialect import postgres_dialect
from everytick.stores.postgres.due import DueJobs
from everytick.stores.postgres.migrate import migrate
from everytick.stores.postgres.plan_writer import PlanWriter
from everytick.stores.postgres.planning import PlanCommits
from everytick.stores.postgres.queries import cold_queries_in
from everytick.stores.postgres.runner import AsyncRunner
from everytick.stores.postgres.running import Execution
from everytick.stores.protocols import ClaimTransaction
from everytick.stores.sql.access_queries import access_queries
from everytick.stores.sql.cold import ColdVerbs
from everytick.stores.sql.commands import Again, Make
from everytick.stores.sql.definitions import MOST_KEPT
from everytick.stores.sql.verbs import rollups

T = TypeVar("T")


class PostgresStore(ColdVerbs):
    """Jobs and occurrences in one schema of a PostgreSQL, shared by any number of nodes.

    `pooling` says that a transaction-pooling proxy stands before the server: nothing is
    prepared and the bell is looked at instead of listened to. `clock` takes the place of
    the server's time in this schema, for tests; `settings` are the session's.
    """

    folds_at_once = 40_000

    def __init__(
        self,
        url: str,
        *,
        schema: str | None = None,
        pooling: bool | None = None,
        connections: int = 8,
        definitions_kept: int = MOST_KEPT,
        clock: Callable[[], datetime] | None = None,
        settings: dict[str, str] | None = None,
    ) -> None:
        address = read_address(url, schema, pooling)
        self._connections = Connections(address, most=connections, clock=clock, settings=settings)
        self._sql, self._q = self._connections.sql, cold_queries_in(address.schema)
        self._shared = Shared(self._connections, self._q, definitions_kept)
        self.jobs_due = DueJobs(self._shared)
        self._writer = PlanWriter(self._shared, self._q)
        self._plans = PlanCommits(self._shared, self.jobs_due, self._writer)
        self._execution = Execution(self._shared)
        self._again = partial(PostgresStore, url, schema=schema, pooling=pooling, clock=clock, settings=settings)
        self._bell = Bell(self._connections)
        self.requests = Asking(self._connections, self._shared.compiled, self._q, self._runner)

    @property
    def url(self) -> str:
        """The server's address without everytick's own parameters."""
        return self._connections.address.url

    @property
    def schema(self) -> str:
        """The schema that holds everything."""
        return self._connections.address.schema

    @property
    def definitions_compiled(self) -> int:
        """How many definitions are kept ready for use."""
        return len(self._shared.compiled)

    @property
    def address(self) -> StoreAddress:
        """Where the store is: in one schema of a server."""
        return StoreAddress("postgres", url=self.url, schema=self.schema, is_pooled=self._connections.address.pooling)

    @cached_property
    def access(self) -> PostgresAccess:
        """The part of the store that is about people."""
        queries = access_queries(postgres_dialect(self.schema))
        return PostgresAccess(self._q, queries, self._transact, self._question, self.requests, self.jobs_due)

    async def open(self) -> None:
        """Migrate the tables, or refuse them with a reason, then open the pool."""
        await migrate(self._connections)
        try:
            await self._connections.open()
            await self._connections.set_clock()
            await self._bell.open()
        except BaseException:
            await self.close()
            raise

    @asynccontextmanager
    async def apart(self) -> AsyncIterator["PostgresStore"]:
        """Give the same tables through a connection of its own, for the loop that enters here."""
        other = self._again(connections=1)
        await other._connections.open()
        try:
            yield other
        finally:
            await other._connections.close()

    def _runner(self, db: Connection) -> AsyncRunner:
        """Return the runner of shared verbs on this connection."""
        return AsyncRunner(db, self._shared, self.jobs_due, self._writer)

    @patiently
    async def _transact(self, make: Make[T]) -> T:
        try:
            async with self._connections.transaction() as db:
                return await self._runner(db).run(make)
        except Again as met:
            raise Contended(str(self._connections.address), str(met)) from None

    @patiently
    async def _one_by_one(self, make: Make[T]) -> T:
        async with self._connections.connection() as db:
            return await self._runner(db).run(make)

    @patiently
    async def _question(self, make: Make[T]) -> T:
        async with self._connections.transaction(isolation="repeatable_read", readonly=True) as db:
            return await self._runner(db).run(make)

    async def close(self) -> None:
        """Close every connection. A second call does nothing."""
        try:
            await self._bell.close()
        finally:
            await self._connections.close()

    async def now(self) -> datetime:
        """Return the server's time; it follows a clock that is set right, back too."""
        async with self._connections.connection() as db:
            now: datetime = await db.fetchval(*self._sql.now())
        return now

    async def ahead(self, scope: NodeScope) -> Ahead:
        """Return when the next job or occurrence of this scope comes, so that a node can sleep until then."""
        async with self._connections.connection() as db:
            row = await db.fetchrow(*self._sql.ahead(needs=scope.met, seen=scope.seen))
        needs = tuple(sorted(row["needs"])) if row["needs"] else ()
        ahead = Ahead(row["now"], row["wake_at"], row["ready_at"], needs, limit_changes=row["limit_changes"])
        return await self._ahead_within_limits(ahead) if row["is_limited"] else ahead

    async def bell(self, seconds: float) -> bool:
        """Wait up to `seconds` for a hint that something changed. Return whether one came."""
        return await self._bell.wait(seconds)

    # ------------------------------------------------------------------------------------------------ the hot verbs

    def due(self, scope: NodeScope, limit: int, by: datetime | None = None) -> AbstractAsyncContextManager[Batch]:
        """Give up to `limit` jobs of the scope whose `wake_at` has come, longest-waiting first."""
        return self.jobs_due.due(scope, limit, by)

    async def commit_plans(self, batch: Batch, plans: Sequence[Plan], offer: Offer | None = None) -> Committed:
        """Write each whole plan whose job still has the revision of the snapshot."""
        return await self._plans.commit_plans(batch, plans, offer)

    async def check_writable(self) -> None:
        """Return if every table exists and takes writes. This changes nothing."""
        await self._plans.check_writable()

    async def claim(self, scope: NodeScope, limit: int) -> list[Claim]:
        """Give the node up to `limit` ready occurrences of its scope, by priority, then age."""
        return await self._claim_by(partial(self._execution.claim, scope, limit), scope, limit)

    async def commit_steps(self, steps: Sequence[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
        """Write each step whose claim still has the fence and token of the occurrence."""
        return await self._execution.commit_steps(steps)

    def transaction(self, claim: Claim) -> AbstractAsyncContextManager[ClaimTransaction]:
        """Begin a transaction for a task of the claim. Leaving it without a commit rolls it back."""
        return self._execution.transaction(claim)

    # ------------------------------------------------------------------------------------------- requests and edits

    async def request(self, subject: str, fact: Fact, within: Any = None) -> Receipt:
        """Write one fact about a job or an occurrence, and make its job due.

        `within` is an asyncpg connection to the same database, used on its own loop.
        """
        if within is not None:
            refuse_within(fact)
        if not isinstance(fact, ASKS):
            return await super().request(subject, fact)
        asked = request_of(fact, ASKED_NOW)
        if within is not None:
            return await self.requests.within(within, subject, asked)
        return await self.requests.ask(subject, asked)

    async def apply(self, changes: Sequence[Edit], by: str = "") -> list[Stored]:
        """Make every change in one transaction, or none. Return the result of each."""
        stored = await super().apply(changes, by)
        if any(result.changed for result in stored):
            # An edit may have mended a definition that this node could not read: it is tried again at once.
            self.jobs_due.take_all_in()
        return stored

    @patiently
    async def prune(self, limit: int = 1000) -> int:
        """Delete up to `limit` ended occurrences that the retention of their job no longer keeps. Return how many."""
        async with self._connections.connection() as db:
            await db.execute(*self._sql.relabel_wakes())
        async with self._connections.transaction() as db:
            await db.fetch(*self._q.hold_rollup())
            handles = [row["handle"] for row in await db.fetch(*self._sql.aged(limit=limit))]
            await self._runner(db).run(partial(rollups.count_deleted, self._q, handles))
            return int(await db.fetchval(*self._sql.forget_occurrences(handles=handles)))
