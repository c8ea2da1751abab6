"""put, rename, remove and the rest: what people and definitions do to jobs.

Each verb locks where its job stands, so that it comes wholly before or after a plan's
commit; a planner that merely looks at the job does not make it wait.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count, takewhile

from everytick.domain import facts, ids
from everytick.domain.job import Job
from everytick.domain.needs import RETIRED
from everytick.domain.occurrence import Cause
from everytick.domain.policies import FirstSight
from everytick.domain.snapshots import Missed, Request
from everytick.errors import (
    Contended,
    DuplicateDefinition,
    NotFound,
    VersionConflict,
)
from everytick.stores.base import REMEMBERED, Edits, JobRecord, Stored
from everytick.stores.beginnings import (
    as_named,
    first_run,
    first_watermark,
    forgettable,
    has_room,
    refuse_edit,
    under_id,
)
from everytick.stores.definitions import write_definition
from everytick.stores.postgres import rows
from everytick.stores.postgres.defining import definition_row
from everytick.stores.postgres.door import Connection, Taken, patiently
from everytick.stores.postgres.facts import Facts
from everytick.stores.postgres.rows import Row


class Jobs(Facts):
    """What people and definitions ask of jobs."""

    # ------------------------------------------------------------------------------------------------ definitions

    @patiently
    async def put(self, job: Job, *, expected_version: int | None = None, by: str = "") -> Stored:
        """Create the job or make this its next version; an equal definition changes nothing."""
        while True:
            async with self._door.transaction() as db:
                await db.execute(self._sql.add_needs, [job.needs])
                stored = await self._put(db, job, expected_version, by)
                if stored is not None and _is_changed(stored):
                    await self._foretell(db, [stored.job_id])
            if stored is not None:
                return stored

    async def _put(self, db: Connection, job: Job, expected: int | None, by: str) -> Stored | None:
        """Return None where another node made a job of this name at the same moment: then it is there to edit."""
        if old := await db.fetchrow(self._sql.forgotten, job.name, REMEMBERED):
            # A job that was removed long ago makes room for a new one of its name; its history stays.
            await db.execute(self._sql.rename_job, old["job"], f"{job.name} (removed {old['removed_at']})")
        row = await db.fetchrow(self._sql.hold_name, job.name)
        if row is None:
            if expected not in (None, 0):
                raise NotFound("job", job.name)
            return await self._create(db, job, by)
        newest = await db.fetchrow(self._sql.newest, row["job"])
        if expected is not None and expected != newest["version"]:
            raise VersionConflict(job.name, expected, newest["version"])
        if row["removed_at"] is None and newest["definition"] == write_definition(job):
            return Stored(newest["id"], newest["version"], changed=False)
        return await self._edit(db, row["job"], newest, job, row["now"], by)

    async def _create(self, db: Connection, job: Job, by: str) -> Stored | None:
        now = await db.fetchval(self._sql.now)
        for nth in count(1):
            id_ = ids.job_id(job.name, nth)
            if not await db.fetchval(self._sql.id_taken, id_):
                break
        seq = await db.fetchval(self._sql.add_job, id_, job.name, now)
        if seq is None:
            return None
        made = under_id(job, id_)
        keep = made.settings.retention
        await db.execute(self._sql.add_definition, *definition_row(seq, made, 1, None, now, by))
        begin, first = first_watermark(made, now), first_run(made, now)
        kept = keep.success, keep.failure, keep.keep_last
        await db.execute(self._sql.add_state, seq, id_, begin, first, *kept, made.needs)
        if made.settings.on_create.begin is FirstSight.IMMEDIATELY:
            await db.execute(self._sql.add_request, *rows.request_row(seq, id_, Request("create", Cause.CREATE, now)))
        await self._wake(db, seq, now)
        return Stored(id_, 1, changed=True)

    async def _edit(self, db: Connection, seq: int, newest: Row, job: Job, now: datetime, by: str) -> Stored:
        """A new version, in force after now; what was not claimed takes it, what has started keeps its own."""
        waiting = newest["editions"]
        if not has_room(waiting, job):
            waiting -= await self._make_room(db, seq, newest["version"], waiting)
        refuse_edit(newest["name"], waiting, job)
        version, made = newest["version"] + 1, under_id(job, newest["id"])
        settings = made.settings
        keep = settings.retention
        await db.execute(self._sql.add_definition, *definition_row(seq, made, version, now, now, by))
        known, broken = await self._compiled.read(db, [(seq, version - back) for back in range(waiting, 0, -1)])
        kept = keep.success, keep.failure, keep.keep_last
        before = None if broken else known[seq, version - 1].job
        narrowed_at = now if before is not None and before.settings.recovery != settings.recovery else None
        await db.execute(self._sql.edit_state, seq, version, *kept, bool(broken), narrowed_at, made.needs)
        timeout = rows.write_timeout(settings.execution_timeout)
        now_is = settings.priority, settings.queue, timeout, made.labels
        await db.execute(self._sql.edit_unclaimed, seq, version, *now_is)
        await db.execute(self._sql.add_needs_of_active, seq)
        await db.execute(self._sql.need, seq, made.needs)
        if not made.enabled:
            await db.execute(self._sql.put_all_back_in_line, seq, now)
        elif before is None or not before.enabled:
            await db.execute(self._sql.let_waits_go, seq, now)
        await self._wake(db, seq, now)
        self._left_out.pop(seq, None)
        return Stored(newest["id"], version, changed=True)

    async def _make_room(self, db: Connection, seq: int, newest: int, waiting: int) -> int:
        """Forget the oldest versions that nobody needs; return how many."""
        versions = [(seq, version) for version in range(newest - waiting + 1, newest + 1)]
        found, _ = await self._compiled.read(db, versions)
        forgotten = forgettable([found[each].job for each in takewhile(found.__contains__, versions)])
        await db.execute(self._sql.forget_editions, seq, forgotten)
        return forgotten

    async def put_all(self, jobs: Sequence[Job], *, by: str = "") -> Sequence[Stored]:
        """Do to each of these, no two of one name, what `put` does, all together or not at all."""
        return await self.apply(Edits(tuple(jobs)), by=by)

    @patiently
    async def apply(self, edits: Edits, *, by: str = "") -> Sequence[Stored]:
        """Do everything that the edits say in one transaction, or nothing; return what came of each put."""
        async with self._door.transaction() as db:
            texts = {*(job.needs for job in edits.puts), *([RETIRED] if edits.removes else ())}
            await db.execute(self._sql.add_needs, list(texts))
            names = [*{*edits.names, *edits.expected}]
            await db.fetch(self._sql.lock_names, names)
            known = {row["name"]: row for row in await db.fetch(self._sql.hold_names, names)}
            _expect(edits, known)
            stored = await self._put_held(db, known, edits.puts, by)
            held = await self._hold_schedules(db, edits, known, stored)
            for name, retire_after in edits.removes.items():
                await self._remove_held(db, await self._in_service(db, name, known, stored), retire_after, by)
            changed = [known[name]["id"] for name in {*held, *edits.removes} if name not in stored]
            # A new job has its first run already, unless it is held at once.
            changed += [each.job_id for name, each in stored.items() if _is_changed(each) or name in held]
            await self._foretell(db, changed)
        return [stored[job.name] for job in edits.puts]

    async def _put_held(
        self, db: Connection, known: Mapping[str, Row], jobs: Sequence[Job], by: str
    ) -> dict[str, Stored]:
        stored: dict[str, Stored] = {}
        for row, job in sorted(((known[job.name], job) for job in jobs if job.name in known), key=_key):
            stored[job.name] = await self._put_known(db, row, job, by)
        new = [job for job in jobs if job.name not in known]
        return stored | (await self._create_all(db, new, by) if new else {})

    async def _hold_schedules(
        self, db: Connection, edits: Edits, known: Mapping[str, Row], stored: Mapping[str, Stored]
    ) -> set[str]:
        """Return the names of the jobs whose schedules were held or let go."""
        changed = {*edits.suspends}
        for name, reason in edits.suspends.items():
            row = await self._in_service(db, name, known, stored)
            await self._pause(db, row, facts.Pause(None, Missed.CATCH_UP, reason, edits.held_by))
            await self._revise(db, row["job"], row["now"])
        for name in sorted(edits.resumes):
            row = await self._in_service(db, name, known, stored)
            if await self._resume(db, row, facts.Resume(edits.held_by)):
                await self._revise(db, row["job"], row["now"])
                changed.add(name)
        return changed

    async def _in_service(
        self, db: Connection, name: str, known: Mapping[str, Row], stored: Mapping[str, Stored]
    ) -> Row:
        """The job of this name, which is held or was made or brought back by this transaction itself."""
        if name in stored:
            return await self._hold(db, stored[name].job_id)
        if name not in known or known[name]["removed_at"] is not None:
            raise NotFound("job", name)
        return known[name]

    async def _put_known(self, db: Connection, row: Row, job: Job, by: str) -> Stored:
        if row["removed_at"] is not None:
            return self._surely(await self._put(db, job, None, by), job)
        if row["definition"] == write_definition(job):
            return Stored(row["id"], row["version"], changed=False)
        return await self._edit(db, row["job"], row, job, row["now"], by)

    async def _create_all(self, db: Connection, jobs: Sequence[Job], by: str) -> dict[str, Stored]:
        """Create many jobs by a few statements; one whose id a renamed job has is created alone."""
        now = await db.fetchval(self._sql.now)
        ids_ = {ids.job_id(job.name): job for job in jobs}
        taken = {row["id"] for row in await db.fetch(self._sql.ids_taken, list(ids_))}
        free = {id_: under_id(job, id_) for id_, job in ids_.items() if id_ not in taken}
        made = await db.fetch(self._sql.add_jobs, list(free), [job.name for job in free.values()], now)
        if len(made) < len(free):
            raise Contended(str(self._door.address), "another node made one of these jobs at the same moment")
        await self._begin_all(db, [(row["seq"], free[row["id"]]) for row in made], now, by)
        alone = {job.name: await self._create(db, job, by) for id_, job in ids_.items() if id_ in taken}
        return {job.name: Stored(id_, 1, changed=True) for id_, job in free.items()} | {
            job.name: self._surely(alone[job.name], job) for job in jobs if job.name in alone
        }

    async def _begin_all(self, db: Connection, made: Sequence[tuple[int, Job]], now: datetime, by: str) -> None:
        definitions = [definition_row(seq, job, 1, None, now, by) for seq, job in made]
        await db.executemany(self._sql.add_definition, definitions)
        keeps = [(seq, job, job.settings.retention) for seq, job in made]
        states = [
            (
                seq,
                job.id,
                first_watermark(job, now),
                first_run(job, now),
                keep.success,
                keep.failure,
                keep.keep_last,
                job.needs,
            )
            for seq, job, keep in keeps
        ]
        await db.executemany(self._sql.add_state, states)
        asked = [(seq, job.id) for seq, job in made if job.settings.on_create.begin is FirstSight.IMMEDIATELY]
        if asked:
            request = Request("create", Cause.CREATE, now)
            await db.executemany(self._sql.add_request, [rows.request_row(*each, request) for each in asked])
        await db.executemany(self._sql.wake, [(seq, now) for seq, _ in made])
        await db.execute(self._sql.ring)

    def _surely(self, stored: Stored | None, job: Job) -> Stored:
        if stored is None:
            raise Contended(str(self._door.address), f"another node made job '{job.name}' at the same moment")
        return stored

    @patiently
    async def rename(self, job_id: str, name: str, *, by: str = "") -> None:
        """Give the job another name; its id and history stay."""
        async with self._door.transaction() as db:
            seq = await db.fetchval(self._sql.job_key, job_id)
            if seq is None:
                raise NotFound("job", job_id)
            await self._rename(db, seq, name)
            row = await self._hold(db, job_id)
            newest = await db.fetchrow(self._sql.newest, seq)
            kept = await self._definition(db, seq, newest["version"])
            await self._edit(db, seq, newest, replace(kept.job, name=name), row["now"], by)
            await self._foretell(db, [job_id])

    async def _rename(self, db: Connection, seq: int, name: str) -> None:
        try:
            renamed = await db.fetchval(self._sql.rename_job, seq, name)
        except Taken:
            renamed = None
        if renamed is None:
            raise DuplicateDefinition(f"there is a job named '{name}' already: remove or rename it first")

    @patiently
    async def get(self, job_ids: Collection[str]) -> dict[str, JobRecord]:
        """Return those of the jobs that exist and can be read."""
        async with self._door.connection() as db:
            found = await self._records(db, await db.fetch(self._sql.jobs_by_id, list(job_ids)))
        by_id = {record.job.id: record for record in found}
        return {id_: by_id[id_] for id_ in job_ids if id_ in by_id}

    @patiently
    async def list(self, *, removed: bool = False) -> Sequence[JobRecord]:
        """Return every job that is not removed, by name, or all; one that cannot be read is in the view `jobs` only."""
        async with self._door.connection() as db:
            return await self._records(db, await db.fetch(self._sql.jobs_in_service, removed))

    async def _records(self, db: Connection, found: Sequence[Row]) -> Sequence[JobRecord]:
        definitions, _ = await self._compiled.read(db, [(row["job"], row["version"]) for row in found])
        return [
            JobRecord(
                as_named(definitions[row["job"], row["version"]].job, row["name"]),
                row["revision"],
                row["watermark"],
                row["wake_at"],
                None if row["since"] is None else rows.pause(row),
                row["removed_at"],
                row["retire_at"],
                rows.ended(row, "end"),
                rows.ended(row, "success"),
                row["removed_by"],
                row["next_run_at"],
                row["run_count"],
                row["last_error"],
                row["needs"],
            )
            for row in found
            if (row["job"], row["version"]) in definitions
        ]

    @patiently
    async def remove(self, job_id: str, *, retire_after: timedelta = timedelta(0), by: str = "") -> None:
        """Take the job out of service: nothing new is created, what was not claimed is canceled."""
        async with self._door.transaction() as db:
            await db.execute(self._sql.add_needs, [RETIRED])
            await self._remove_held(db, await self._hold(db, job_id), retire_after, by)
            await self._foretell(db, [job_id])

    async def _remove_held(self, db: Connection, row: Row, retire_after: timedelta, by: str) -> None:
        retire_at = row["now"] + retire_after
        await db.execute(self._sql.remove_job, row["job"], row["now"], retire_at, rows.text(by), RETIRED)
        await db.execute(self._sql.need, row["job"], RETIRED)
        await self._wake(db, row["job"], row["now"])


def _expect(edits: Edits, known: Mapping[str, Row]) -> None:
    """Refuse the edits where a job is at another version than they were made up for."""
    for name, expected in edits.expected.items():
        row = known.get(name)
        version = 0 if row is None or row["removed_at"] is not None else row["version"]
        if version != expected:
            raise VersionConflict(name, expected, version)


def _is_changed(stored: Stored) -> bool:
    """Whether a job that was there before is another now."""
    return stored.changed and stored.version > 1


def _key(pair: tuple[Row, Job]) -> int:
    """Where the job stands, which is the order in which everybody locks."""
    key: int = pair[0]["job"]
    return key
