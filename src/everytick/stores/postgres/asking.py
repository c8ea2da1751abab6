"""Trigger, Replay, Fill: a request is written once per key, alone or in a caller's transaction.

A second, faster way: `_ask_known` writes the request for a job that this process has cached, by one statement.
Price: `bench/pickup.py` inside a node, p50, 2.62 ms with it and 3.22 without: 19 %.

A request holds its key until its transaction ends (an advisory lock), and takes it before any other lock: a caller's
transaction may stay open for long, and a request that waits for it must not keep the job from others meanwhile.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from everytick.domain.occurrence import Cause
from everytick.domain.snapshots import Edition, Request
from everytick.errors import Conflict, NotFound, shown
from everytick.stores.base import Receipt
from everytick.stores.open_requests import has_key_of_its_own
from everytick.stores.postgres import rows
from everytick.stores.postgres.base import occurrence_key
from everytick.stores.postgres.connections import Connection, Connections, Locked, patiently
from everytick.stores.postgres.definition_cache import ServerDefinitions
from everytick.stores.postgres.lending import lent
from everytick.stores.postgres.rows import Row
from everytick.stores.postgres.runner import AsyncRunner
from everytick.stores.sql.commands import Verb
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.verbs import facts
from everytick.stores.sql.verbs.locked_job import taking_requests, version_of
from everytick.stores.storing_rules import as_stored

KEY_WITHIN = "5s"
"""How long a request waits for another one of its key whose transaction is still open."""


class Asking:
    """Writes requests: by one statement if the job is cached, else under its lock, or on the caller's connection."""

    def __init__(
        self,
        connections: Connections,
        compiled: ServerDefinitions,
        q: ColdQueries,
        runner: Callable[[Connection], AsyncRunner],
    ) -> None:
        self._connections, self._sql, self._compiled, self._q, self._runner = (
            connections,
            connections.sql,
            compiled,
            q,
            runner,
        )
        self.key_within = KEY_WITHIN

    @patiently
    async def ask(self, job_id: str, request: Request, sign: Callable[[Receipt], Verb[None]] | None = None) -> Receipt:
        """Write a request, once per key, and make its job due. `sign` is carried out in the same transaction."""
        if sign is None and (known := self._compiled.newest(job_id)) is not None:
            async with self._connections.connection() as db:
                # A plan may have come in between: hardly twice.
                made = await self._ask_known(db, *known, request) or await self._ask_known(db, *known, request)
            if made is not None:
                return Receipt(made, True)
        async with self._connections.transaction() as db:
            await self._wait_for_key(db, job_id, request.key)
            asked = await self._runner(db).run(partial(facts.ask, self._q, job_id, request))
            if sign is not None:
                await self._runner(db).run(partial(sign, asked.receipt))
        self._compiled.remember_newest(asked.job_key, asked.newest)
        return asked.receipt

    async def _ask_known(self, db: Connection, seq: int, newest: Edition, request: Request) -> str | None:
        """Write it by one statement. None: nothing was written, as the job has changed or the key exists."""
        job = newest.job
        asked = as_stored(newest, request, request.requested_at)
        id_ = asked.occurrence_id(job.id)
        made = None if asked.cause is Cause.BACKFILL else occurrence_key(id_)
        call = asked.call if has_key_of_its_own(asked) else None
        row = rows.request_row(seq, job.id, asked)
        query = self._sql.ask(**row, job_id=job.id, version=job.version, made_id=made, call=call)
        return id_ if await db.fetch(*query) else None

    async def _wait_for_key(self, db: Connection, job_id: str, key: str) -> None:
        try:
            await db.execute(*self._sql.wait_for_key(job_id=job_id, key=key, patience=self.key_within))
        except Locked as error:
            text = f"the key '{shown(key)}' is being asked for in a transaction that is still open: "
            raise Conflict(text + "commit it or roll it back, or ask again later") from error

    # ------------------------------------------------------------------------------------------- callers' transactions

    async def within(self, within: Any, job_id: str, request: Request) -> Receipt:
        """Ask on the caller's connection: without a lock on the job, and without a time on the wire.

        The lock would last as long as the caller's transaction; how times are read and
        written on this connection is the caller's own.
        """
        async with lent(within, self._connections) as db:
            row = await db.fetchrow(*self._sql.stand_within(job_id=job_id))
            self._refuse_stranger(row)
            if row["job_key"] is None or row["is_removed"]:
                raise NotFound("job", job_id if row["name"] is None else row["name"])
            runner = self._runner(db)
            newest = (await runner.run(partial(version_of, row["job_key"], row["version"]))).edition
            taking_requests(newest.job)
            await db.execute(*self._sql.hold_key(job_id=job_id, key=request.key))
            asked = as_stored(newest, request, request.requested_at)
            counts = partial(facts.under_its_key, self._q, row["job_key"], job_id, asked)
            asked, is_known = await runner.run(counts)
            if not is_known:
                await runner.run(partial(facts.use_key, self._q, row["job_key"], job_id, asked))
                await db.execute(*self._sql.ask_within(**rows.request_words(row["job_key"], job_id, asked)))
            return Receipt(asked.occurrence_id(job_id), not is_known)

    def _refuse_stranger(self, row: Row) -> None:
        """Raise unless the caller's connection is to the tables of this store, and not to others of the same name."""
        if self._connections.identity != row["identity"]:
            schema = self._connections.address.schema
            raise Conflict(
                f"the connection given as within leads to the schema {schema} of another database, {row['database']}, "
                "which has a store of its own: give a connection to the database of this store"
            )
