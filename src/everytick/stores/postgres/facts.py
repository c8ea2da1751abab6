"""request: one fact about a job or an occurrence is written, and wakes the job; only a plan decides.

A fact about a job locks where the job stands, so that it comes wholly before or after a plan's
commit; a planner that merely looks at the job does not make it wait.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from everytick.domain import facts
from everytick.domain.codes import FIRST_ENDED, STATUS_CODE
from everytick.domain.facts import ASKS, Fact, adjustment_of, request_of
from everytick.domain.snapshots import ASKED_NOW, Adjustment
from everytick.domain.statuses import OccurrenceStatus
from everytick.errors import NotFound
from everytick.stores.base import Receipt
from everytick.stores.beginnings import shown_next_run
from everytick.stores.open_requests import as_waiting, refuse_within
from everytick.stores.postgres import rows
from everytick.stores.postgres.asking import Asking
from everytick.stores.postgres.base import lean_columns, occurrence_key
from everytick.stores.postgres.door import Connection, patiently
from everytick.stores.postgres.due import Due
from everytick.stores.postgres.rows import Row
from everytick.stores.postgres.settling import created_row


class Facts(Asking, Due):
    """What is said about jobs and occurrences."""

    async def request(self, subject: str, fact: Fact, within: Any = None) -> Receipt:
        """Write one fact about a job, or about an occurrence, and let its job be looked at.

        `within` is an asyncpg connection to the same database, used on its own loop.
        """
        if within is not None:
            refuse_within(fact)
        if isinstance(fact, ASKS):
            asked = request_of(fact, ASKED_NOW)
            return await (self._ask(subject, asked) if within is None else self._within(within, subject, asked))
        if isinstance(fact, facts.Cancel):
            return Receipt(subject, await self._cancel(subject, fact.reason))
        return await self._tell(subject, fact)

    @patiently
    async def _tell(self, job_id: str, fact: Fact) -> Receipt:
        """Write what makes older snapshots of the job stale."""
        async with self._door.transaction() as db:
            row = await self._hold(db, job_id)
            changed = await self._write_fact(db, row, fact)
            if changed:
                await self._revise(db, row["job_key"], row["now"])
                await self._foretell(db, [job_id])
            return Receipt(job_id, changed)

    async def _write_fact(self, db: Connection, row: Row, fact: Fact) -> bool:
        job, now = row["job_key"], row["now"]
        match fact:
            case facts.Pause():
                await self._pause(db, row, fact)
            case facts.Resume():
                return await self._resume(db, row, fact)
            case facts.Reschedule():
                await db.execute(self._sql.reschedule_job, job, now, fact.to, rows.text(fact.by))
            case facts.Rewind():
                return await self._rewind(db, job, now)
            case facts.Skip() | facts.Move() | facts.Amend() | facts.Undo():
                await self._adjust(db, job, adjustment_of(fact))
        return True

    async def _pause(self, db: Connection, row: Row, fact: facts.Pause) -> None:
        """Hold the schedule from now on; what was not claimed waits."""
        job, now = row["job_key"], row["now"]
        running = await db.fetchrow(self._sql.end_pause, job, now)
        since = running["since_at"] if running else now
        said = str(fact.missed), rows.text(fact.reason), rows.text(fact.by)
        await db.execute(self._sql.add_pause, job, since, fact.until, *said)
        await db.execute(self._sql.put_back_in_line, job, now)

    async def _resume(self, db: Connection, row: Row, fact: facts.Resume) -> bool:
        """End a pause now; return whether there was one."""
        return await db.fetchval(self._sql.resume_pause, row["job_key"], row["now"], rows.text(fact.by)) is not None

    async def _adjust(self, db: Connection, job: int, adjustment: Adjustment) -> None:
        overrides, payload = rows.write_overrides(adjustment.overrides)
        said = rows.text(adjustment.reason), rows.text(adjustment.by), adjustment.done
        what = job, adjustment.at, str(adjustment.kind), adjustment.to
        await db.execute(self._sql.adjust, *what, *said, overrides, payload)

    async def _rewind(self, db: Connection, job: int, now: datetime) -> bool:
        """Set a watermark that lies ahead back to now; return whether it lay ahead."""
        if not await db.fetchval(self._sql.rewind, job, now):
            return False
        await db.execute(self._sql.undo_spans, job, now)
        await db.execute(self._sql.rewind_pauses, job, now)
        await db.execute(self._sql.rewind_wakes, job, now)
        return True

    @patiently
    async def _cancel(self, occurrence_id: str, reason: str) -> bool:
        """End what no node has claimed, or ask its owner to stop; return whether it was still active."""
        key, why = occurrence_key(occurrence_id), rows.text(reason)
        async with self._door.transaction() as db:
            row = await db.fetchrow(self._sql.hold_occurrence, key)
            if row is None:
                row = await self._made_to_cancel(db, occurrence_id)
            if row["status"] >= FIRST_ENDED:
                return False
            if row["owner"] is None:
                canceled = STATUS_CODE[OccurrenceStatus.CANCELED]
                [over] = await self._end_unowned(db, [(key, canceled, why)], row["now"])
                times = row["now"], over["scheduled_for"], over["started_at"]
                await db.execute(self._sql.note_end, row["job_key"], *times, over["id"])
            else:
                await db.execute(self._sql.ask_to_stop, [key], why, True)
            await db.execute(self._sql.ring)
            return True

    async def _made_to_cancel(self, db: Connection, occurrence_id: str) -> Row:
        """Return what is asked for as an occurrence that waits in line: a plan makes it no more, or has just made it.

        Under the lock of its job: the commit of a plan that answers it comes before or after.
        """
        key = occurrence_key(occurrence_id)
        asked = await db.fetchrow(self._sql.asked_for, key)
        if asked is not None:
            await self._hold(db, asked["job_id"])
            asked = await db.fetchrow(self._sql.asked_for, key)
        if asked is not None:
            job = (await self._definition(db, asked["job_key"], asked["version"])).job
            made = created_row(asked["job_key"], job, as_waiting(job, rows.request(asked)), False)
            now = await db.fetchval(self._sql.now)
            await db.execute(self._sql.create_occurrences, now, *lean_columns([made]))
            await db.execute(self._sql.forget_asked_for, key)
        row = await db.fetchrow(self._sql.hold_occurrence, key)
        if row is None:
            raise NotFound("occurrence", occurrence_id)
        return row

    async def _foretell(self, db: Connection, job_ids: Collection[str]) -> None:
        """Write down when these jobs run next by what is true now; of one that cannot be read here nothing is known."""
        if not job_ids:
            return
        now = await db.fetchval(self._sql.now)
        standing = await db.fetch(self._sql.standing_by_id, list(job_ids))
        told = {seen.job_id: shown_next_run(seen, now) for seen in await self._seen(db, standing, {})}
        await db.execute(self._sql.foretell, [row[0] for row in standing], [told.get(row[1]) for row in standing])

    async def _revise(self, db: Connection, job: int, now: datetime) -> None:
        await db.execute(self._sql.revise, job)
        await self._wake(db, job, now)
