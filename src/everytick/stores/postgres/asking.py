"""Trigger, Replay, Backfill: something is asked for once per key, alone or together with what a caller commits.

Whoever asks by a key holds that key until its transaction ends (an advisory lock), and
takes it before anything else: a caller's transaction may stay open for long, and whoever
waits for it must not keep the job from everybody else meanwhile.
"""

from dataclasses import replace
from datetime import datetime
from typing import Any

from everytick.domain.codes import CAUSE_CODE, STATUSES
from everytick.domain.job import Job
from everytick.domain.occurrence import Cause
from everytick.domain.snapshots import Request
from everytick.errors import Conflict, JobDisabled, NotFound, shown
from everytick.stores.base import Receipt
from everytick.stores.beginnings import as_stored
from everytick.stores.open_requests import KEEPS_ITS_KEY, KeyUse, has_key_of_its_own, under_key
from everytick.stores.postgres import rows
from everytick.stores.postgres.base import Base, occurrence_key
from everytick.stores.postgres.door import Connection, Locked, patiently
from everytick.stores.postgres.lending import lent
from everytick.stores.postgres.rows import Row

KEY_WITHIN = "5s"
"""So long a request waits for another one of its key whose transaction is still open."""


class Asking(Base):
    """Requests, and what every verb on a job stands on."""

    key_within = KEY_WITHIN

    @patiently
    async def _ask(self, job_id: str, request: Request) -> Receipt:
        if (known := self._compiled.newest(job_id)) is not None:
            async with self._door.connection() as db:
                # A plan may have come in between: hardly twice.
                made = await self._ask_known(db, *known, request) or await self._ask_known(db, *known, request)
            if made is not None:
                return Receipt(made, True)
        async with self._door.transaction() as db:
            await self._wait_for_key(db, job_id, request.key)
            row = await self._hold(db, job_id)
            newest = await db.fetchrow(self._sql.newest, row["job_key"])
            if row["removed_at"] is not None:
                raise NotFound("job", newest["name"])
            job = self._taking_requests((await self._definition(db, row["job_key"], newest["version"])).job)
            self._compiled.remember_newest(row["job_key"], job)
            asked, is_known = await self._under_key(db, row["job_key"], job.id, as_stored(job, request, row["now"]))
            if not is_known:
                await self._use_key(db, row["job_key"], job.id, asked)
                await db.execute(self._sql.add_request, *rows.request_row(row["job_key"], job.id, asked))
                await self._wake(db, row["job_key"], row["now"])
            return Receipt(asked.occurrence_id(job.id), not is_known)

    async def _ask_known(self, db: Connection, seq: int, job: Job, request: Request) -> str | None:
        """Ask by one statement; None says that nothing was written, as the job has changed or the key is known."""
        asked = as_stored(job, request, request.requested_at)
        id_ = asked.occurrence_id(job.id)
        made = None if asked.cause is Cause.BACKFILL else occurrence_key(id_)
        known = job.id, seq, job.version, made
        call = asked.call if has_key_of_its_own(asked) else None
        return id_ if await db.fetch(self._sql.ask, *known, *rows.request_row(seq, job.id, asked)[1:], call) else None

    async def _wait_for_key(self, db: Connection, job_id: str, key: str) -> None:
        try:
            await db.execute(self._sql.wait_for_key, job_id, key, self.key_within)
        except Locked as error:
            text = f"the key '{shown(key)}' is being asked for in a transaction that is still open: "
            raise Conflict(text + "commit it or roll it back, or ask again later") from error

    # ------------------------------------------------------------------------------------------- callers' transactions

    async def _within(self, within: Any, job_id: str, request: Request) -> Receipt:
        """Ask on the caller's connection: without a lock on the job, and without a time on the wire.

        The lock would last as long as the caller's transaction; how times are read and
        written on this connection is the caller's own.
        """
        async with lent(within, self._door) as db:
            row = await db.fetchrow(self._sql.stand_within, job_id)
            self._refuse_stranger(row)
            if row["job_key"] is None or row["is_removed"]:
                raise NotFound("job", job_id if row["name"] is None else row["name"])
            job = self._taking_requests((await self._definition(db, row["job_key"], row["version"])).job)
            await db.execute(self._sql.hold_key, job_id, request.key)
            asked = as_stored(job, request, request.requested_at)
            asked, is_known = await self._under_key(db, row["job_key"], job_id, asked)
            if not is_known:
                await self._use_key(db, row["job_key"], job_id, asked)
                await db.execute(self._sql.ask_within, *rows.request_words(row["job_key"], job_id, asked))
            return Receipt(asked.occurrence_id(job_id), not is_known)

    def _refuse_stranger(self, row: Row) -> None:
        """Return if the caller's connection leads to the tables of this store, and not to others of the same name."""
        if self._door.identity != row["identity"]:
            schema = self._door.address.schema
            raise Conflict(
                f"the connection given as within leads to the schema {schema} of another database, {row['database']}, "
                "which has a store of its own: give a connection to the database of this store"
            )

    # --------------------------------------------------------------------------------------------------- the parts

    def _taking_requests(self, job: Job) -> Job:
        if not job.enabled:
            raise JobDisabled(job.name)
        return job

    async def _under_key(self, db: Connection, seq: int, job_id: str, asked: Request) -> tuple[Request, bool]:
        """Return the request as it counts under its key, which is held, and whether it was made before."""
        return under_key(job_id, asked, await self._key_use(db, seq, job_id, asked))

    async def _key_use(self, db: Connection, seq: int, job_id: str, asked: Request) -> KeyUse | None:
        """Return what the key was last used for."""
        key = seq, CAUSE_CODE[asked.cause], asked.key
        if (open_ := await db.fetchrow(self._sql.open_request, *key)) is not None:
            return KeyUse(open_["nth"], None, True, rows.payload_or_none(open_["payload"]))
        if asked.cause is Cause.BACKFILL:
            return None
        used = await db.fetchrow(self._sql.key_use, *key)
        nth, call = (1, None) if used is None else (used["nth"], used["call"])
        id_ = replace(asked, nth=nth).occurrence_id(job_id)
        made = await db.fetchrow(self._sql.occurrence_payload, occurrence_key(id_))
        if made is None:
            return None if used is None else KeyUse(nth, call, False, None)
        is_taken = STATUSES[made["status"]] in KEEPS_ITS_KEY
        return KeyUse(nth, call, is_taken, rows.payload_or_none(made["payload"]))

    async def _use_key(self, db: Connection, seq: int, job_id: str, asked: Request) -> None:
        if has_key_of_its_own(asked):
            id_ = occurrence_key(asked.occurrence_id(job_id))
            await db.execute(self._sql.use_key, seq, CAUSE_CODE[asked.cause], asked.key, asked.nth, asked.call, id_)

    async def _hold(self, db: Connection, job_id: str) -> Row:
        row = await db.fetchrow(self._sql.hold_job, job_id)
        if row is None:
            raise NotFound("job", job_id)
        return row

    async def _wake(self, db: Connection, job: int, now: datetime) -> None:
        await db.execute(self._sql.wake, job, now)
        await db.execute(self._sql.ring)
