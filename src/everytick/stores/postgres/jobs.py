"""put, rename, remove and the rest: what people and definitions do to jobs.

Each verb locks where its job stands, so that it comes wholly before or after a plan's
commit; a planner that merely looks at the job does not make it wait.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count, takewhile

from everytick.domain import ids
from everytick.domain.changes import Edit, Put, Remove, Rename, Tell, in_order, refuse_unexpected
from everytick.domain.job import Job
from everytick.domain.needs import RETIRED
from everytick.domain.occurrence import Cause
from everytick.domain.policies import FirstSight
from everytick.domain.snapshots import Request
from everytick.errors import (
    Contended,
    DuplicateDefinition,
    NotFound,
)
from everytick.stores.base import REMEMBERED, JobRecord, Stored
from everytick.stores.beginnings import (
    as_named,
    first_run,
    first_watermark,
    forgettable,
    has_room,
    name_taken,
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
    async def apply(self, changes: Sequence[Edit], by: str = "") -> list[Stored]:
        """Do every change in one transaction, or nothing; return what came of each."""
        async with self._door.transaction() as db:
            await db.execute(self._sql.add_needs, _needs(changes))
            known = await self._hold_names(db, changes)
            stored = await self._rename_held(db, changes, known, by)
            stored |= await self._put_held(db, changes, known, by)
            made = {changes[place].name: each for place, each in stored.items()}
            for place, change in in_order(changes):
                if isinstance(change, (Tell, Remove)):
                    stored[place] = await self._tell_or_remove(db, change, known, made.get(change.name), by)
            await self._foretell(db, _moved(changes, stored))
        return [stored[place] for place in range(len(changes))]

    async def _hold_names(self, db: Connection, changes: Sequence[Edit]) -> dict[str, Row]:
        """Give jobs their new names, lock where each job stands, and return the jobs by the names they have then.

        Names come before the locks: a planner, too, locks the job before the row where it stands.
        """
        renamed = {change.name: change.to for change in changes if isinstance(change, Rename)}
        for name, to in renamed.items():
            await self._rename(db, name, to)
        puts = [change.name for change in changes if isinstance(change, Put)]
        for old in await db.fetch(self._sql.forgotten, puts, REMEMBERED):
            # A job that was removed long ago makes room for a new one of its name; its history stays.
            await db.execute(self._sql.rename_job, old["job_key"], f"{old['name']} (removed {old['removed_at']})")
        names = [*{renamed.get(change.name, change.name) for change in changes}]
        await db.fetch(self._sql.lock_names, names)
        known = {row["name"]: row for row in await db.fetch(self._sql.hold_names, names)}
        there = {name: row["version"] for name, row in known.items() if row["removed_at"] is None}
        refuse_unexpected(changes, there | {name: there.get(to, 0) for name, to in renamed.items()})
        return known

    async def _rename(self, db: Connection, name: str, to: str) -> None:
        seq = await db.fetchval(self._sql.job_named, name)
        if seq is None:
            raise NotFound("job", name)
        try:
            renamed = await db.fetchval(self._sql.rename_job, seq, to)
        except Taken:
            renamed = None
        if renamed is None:
            raise DuplicateDefinition(name_taken(to))

    async def _rename_held(
        self, db: Connection, changes: Sequence[Edit], known: dict[str, Row], by: str
    ) -> dict[int, Stored]:
        """Give each job that was renamed a version that says so."""
        stored = {}
        for place, change in enumerate(changes):
            if isinstance(change, Rename):
                row = known[change.to]
                if row["removed_at"] is not None:
                    raise NotFound("job", change.name)
                kept = (await self._definition(db, row["job_key"], row["version"])).job
                stored[place] = await self._edit(db, row["job_key"], row, replace(kept, name=change.to), row["now"], by)
        if stored:
            renamed = [change.to for change in changes if isinstance(change, Rename)]
            known |= {row["name"]: row for row in await db.fetch(self._sql.hold_names, renamed)}
        return stored

    async def _put_held(
        self, db: Connection, changes: Sequence[Edit], known: Mapping[str, Row], by: str
    ) -> dict[int, Stored]:
        puts = [(place, change.job) for place, change in enumerate(changes) if isinstance(change, Put)]
        edits = sorted((known[job.name]["job_key"], place, job) for place, job in puts if job.name in known)
        stored = {place: await self._put_known(db, known[job.name], job, by) for _, place, job in edits}
        new = {job.name: place for place, job in puts if job.name not in known}
        if new:
            created = await self._create_all(db, [job for _, job in puts if job.name in new], by)
            stored |= {new[name]: each for name, each in created.items()}
        return stored

    async def _put_known(self, db: Connection, row: Row, job: Job, by: str) -> Stored:
        if row["removed_at"] is None and row["definition"] == write_definition(job):
            return Stored(row["id"], row["version"], changed=False)
        return await self._edit(db, row["job_key"], row, job, row["now"], by)

    async def _tell_or_remove(
        self, db: Connection, change: Tell | Remove, known: Mapping[str, Row], made: Stored | None, by: str
    ) -> Stored:
        """Do the change to a job that is held, or that this transaction has made or brought back."""
        row, changed = known.get(change.name), True
        if made is not None:
            id_, version, row = made.job_id, made.version, await self._hold(db, made.job_id)
        elif row is not None and row["removed_at"] is None:
            id_, version = row["id"], row["version"]
        else:
            raise NotFound("job", change.name)
        match change:
            case Tell():
                changed = await self._write_fact(db, row, change.fact)
                if changed:
                    await self._revise(db, row["job_key"], row["now"])
            case Remove():
                await self._remove_held(db, row, change.retire_after, by)
        return Stored(id_, version, changed)

    async def _create(self, db: Connection, job: Job, by: str) -> Stored:
        """Create one job under the first id of its name that is free."""
        now = await db.fetchval(self._sql.now)
        for nth in count(1):
            id_ = ids.job_id(job.name, nth)
            if not await db.fetchval(self._sql.id_taken, id_):
                break
        seq = await db.fetchval(self._sql.add_job, id_, job.name, now)
        if seq is None:
            raise Contended(str(self._door.address), f"another node made job '{job.name}' at the same moment")
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

    async def _create_all(self, db: Connection, jobs: Sequence[Job], by: str) -> dict[str, Stored]:
        """Create many jobs by a few statements; one whose id a renamed job has is created alone."""
        now = await db.fetchval(self._sql.now)
        ids_ = {ids.job_id(job.name): job for job in jobs}
        taken = {row["id"] for row in await db.fetch(self._sql.ids_taken, list(ids_))}
        free = {id_: under_id(job, id_) for id_, job in ids_.items() if id_ not in taken}
        made = await db.fetch(self._sql.add_jobs, list(free), [job.name for job in free.values()], now)
        if len(made) < len(free):
            raise Contended(str(self._door.address), "another node made one of these jobs at the same moment")
        await self._begin_all(db, [(row["job_key"], free[row["id"]]) for row in made], now, by)
        alone = {job.name: await self._create(db, job, by) for id_, job in ids_.items() if id_ in taken}
        return {job.name: Stored(id_, 1, changed=True) for id_, job in free.items()} | alone

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

    @patiently
    async def get(self, job_ids: Collection[str]) -> dict[str, JobRecord]:
        """Return those of the jobs that exist and can be read."""
        async with self._door.connection() as db:
            found = await self._records(db, await db.fetch(self._sql.jobs_by_id, list(job_ids)))
        by_id = {record.job.id: record for record in found}
        return {id_: by_id[id_] for id_ in job_ids if id_ in by_id}

    @patiently
    async def list(self, *, removed: bool = False) -> Sequence[JobRecord]:
        """Return every job that is not removed, by name, or all; one that cannot be read is among `parked`."""
        async with self._door.connection() as db:
            return await self._records(db, await db.fetch(self._sql.jobs_in_service, removed))

    @patiently
    async def parked(self) -> Mapping[str, str]:
        """Return why each job in service is parked that is, by name."""
        async with self._door.connection() as db:
            return {row["name"]: row["parked_reason"] for row in await db.fetch(self._sql.parked_jobs)}

    async def _records(self, db: Connection, found: Sequence[Row]) -> Sequence[JobRecord]:
        definitions, _ = await self._compiled.read(db, [(row["job_key"], row["version"]) for row in found])
        return [
            JobRecord(
                as_named(definitions[row["job_key"], row["version"]].job, row["name"]),
                row["revision"],
                row["watermark"],
                row["wake_at"],
                None if row["since_at"] is None else rows.pause(row),
                row["removed_at"],
                row["retire_at"],
                rows.ended(row, "last_end"),
                rows.ended(row, "last_success"),
                row["removed_by"],
                row["next_run_at"],
                row["run_count"],
                row["last_error"],
                row["needs"],
                row["parked_reason"],
                row["last_failure_at"],
            )
            for row in found
            if (row["job_key"], row["version"]) in definitions
        ]

    async def _remove_held(self, db: Connection, row: Row, retire_after: timedelta, by: str) -> None:
        retire_at = row["now"] + retire_after
        await db.execute(self._sql.remove_job, row["job_key"], row["now"], retire_at, rows.text(by), RETIRED)
        await db.execute(self._sql.need, row["job_key"], RETIRED)
        await self._wake(db, row["job_key"], row["now"])


def _needs(changes: Sequence[Edit]) -> list[str]:
    """Return the texts of needs that jobs have after these changes."""
    texts = {change.job.needs if isinstance(change, Put) else RETIRED for change in changes if not _is_silent(change)}
    return list(texts)


def _is_silent(change: Edit) -> bool:
    """Whether the job needs after it what it needed before."""
    return isinstance(change, (Rename, Tell))


def _moved(changes: Sequence[Edit], stored: Mapping[int, Stored]) -> list[str]:
    """Return the jobs whose next run may be another now: a new job has its first one already, unless it is held."""
    found = {
        each.job_id
        for place, each in stored.items()
        if each.changed and not (isinstance(changes[place], Put) and each.version == 1)
    }
    return list(found)
