"""history, whole, spans and prune: what people ask of the past, and how it is forgotten."""

from collections.abc import Collection, Sequence
from datetime import datetime

from everytick.domain import ids
from everytick.domain.codes import CAUSE_CODE, STATUS_CODE
from everytick.domain.decisions import Span
from everytick.domain.occurrence import Occurrence
from everytick.domain.snapshots import Edition
from everytick.errors import NotFound
from everytick.stores.base import HistoryFilter, Page, Whole, task_run, whole_of
from everytick.stores.open_requests import as_asked
from everytick.stores.postgres import rows
from everytick.stores.postgres.base import Base, occurrence_key
from everytick.stores.postgres.door import patiently


class History(Base):
    """What people ask of the past."""

    @patiently
    async def history(self, filter: HistoryFilter) -> Page:
        """Return a page of occurrences, newest first."""
        at, id_ = (None, None) if filter.cursor is None else _read_cursor(filter.cursor)
        codes, limit = [STATUS_CODE[status] for status in filter.statuses], filter.limit
        kind = None if filter.cause is None else CAUSE_CODE[filter.cause]
        async with self._door.connection() as db:
            asked = codes, kind, filter.after, filter.through, at, id_, limit + 1
            if filter.job_id is None:
                found = await db.fetch(self._sql.history, *asked)
            else:
                found = await db.fetch(self._sql.history_of, *asked, filter.job_id)
        page = tuple(map(rows.occurrence, found[:limit]))
        return Page(page, _cursor(page[-1]) if page and len(found) > limit else None)

    @patiently
    async def whole(self, occurrence_id: str) -> Whole:
        """Return one occurrence with its runs and attempts, in the order of its job's tasks."""
        async with self._door.connection() as db:
            row = await db.fetchrow(self._sql.occurrence, occurrence_key(occurrence_id))
            if row is None:
                asked = await db.fetchrow(self._sql.asked_for, occurrence_key(occurrence_id))
                if asked is not None:
                    job = (await self._definition(db, asked["job_key"], asked["version"])).job
                    return as_asked(job, rows.request(asked))
                # A plan may have answered the request between the two questions.
                row = await db.fetchrow(self._sql.occurrence, occurrence_key(occurrence_id))
            if row is None:
                raise NotFound("occurrence", occurrence_id)
            known, _ = await self._compiled.read(db, [(row["job_key"], row["version"])])
            runs = (await self._runs(db, [row["handle"]])).get(row["handle"], {})
            attempts = await db.fetch(self._sql.attempts, row["handle"])
        record = rows.occurrence(row)
        # What became of it is told though its definition cannot be read any more: then in the order of the names.
        names = [task.name for kept in known.values() for task in kept.job.tasks] or sorted(
            {*runs, *(each["task"] for each in attempts)}
        )
        task_ids = {name: ids.task_id(record.job_id, name) for name in names}
        attempts.sort(key=lambda each: (names.index(each["task"]), each["number"]))
        return whole_of(
            record,
            tuple(
                task_run(record.id, task_id, name, run)
                for name, task_id in task_ids.items()
                if (run := runs.get(name)) is not None
            ),
            tuple(
                (each["task"], rows.attempt(each, ids.run_id(record.id, task_ids[each["task"]]))) for each in attempts
            ),
        )

    @patiently
    async def existing(self, occurrence_ids: Collection[str]) -> frozenset[str]:
        """Return those of these ids that an occurrence has."""
        async with self._door.connection() as db:
            found = await db.fetch(self._sql.existing, [occurrence_key(id_) for id_ in occurrence_ids])
        return frozenset(row[0] for row in found)

    @patiently
    async def spans(self, job_id: str, after: datetime, through: datetime) -> Sequence[Span]:
        """Return the spans of instants that did not run and touch `(after, through]`, in order."""
        async with self._door.connection() as db:
            job = await db.fetchval(self._sql.job_key, job_id)
            if job is None:
                raise NotFound("job", job_id)
            return [rows.span(row) for row in await db.fetch(self._sql.spans, job, after, through)]

    @patiently
    async def editions(
        self, job_id: str, versions: Collection[int] = (), *, at: datetime | None = None
    ) -> Sequence[Edition]:
        """Return these versions of a job's definition, and the one in force at a moment, in order."""
        async with self._door.connection() as db:
            job = await db.fetchval(self._sql.job_key, job_id)
            if job is None:
                raise NotFound("job", job_id)
            wanted = set(versions)
            if at is not None:
                wanted |= {row["version"] for row in await db.fetch(self._sql.version_at, job, at)}
            found, _ = await self._compiled.read(db, [(job, version) for version in sorted(wanted)])
        return [found[key].edition for key in sorted(found)]

    @patiently
    async def prune(self, limit: int = 1000) -> int:
        """Forget up to `limit` ended occurrences that their job's retention no longer keeps; return how many."""
        async with self._door.connection() as db:
            await db.execute(self._sql.relabel_wakes)
            return int(await db.fetchval(self._sql.prune, limit))


def _cursor(record: Occurrence) -> str:
    return f"{record.scheduled_for.isoformat(timespec='microseconds')} {record.id}"


def _read_cursor(cursor: str) -> tuple[datetime, str]:
    at, _, id_ = cursor.partition(" ")
    try:
        return datetime.fromisoformat(at), occurrence_key(id_)
    except (ValueError, NotFound):
        raise NotFound("page", cursor) from None
