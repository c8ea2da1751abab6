"""apply, and jobs as people see them."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import islice

from everytick.domain.changes import Edit, Put, Remove, Rename, Tell, in_order, refuse_unexpected
from everytick.domain.facts import ASKS, Asks, request_of
from everytick.domain.job import Job
from everytick.domain.lookups import Editions, ParkedJobs
from everytick.domain.needs import RETIRED
from everytick.domain.snapshots import Edition
from everytick.domain.updates import asked_edition
from everytick.errors import Conflict, DuplicateDefinition, JobDisabled, NotFound
from everytick.stores.base import JobRecord, Stored
from everytick.stores.memory.base import Shared
from everytick.stores.memory.depending import Dependencies
from everytick.stores.memory.facts import FactVerbs
from everytick.stores.memory.revising import Revisions
from everytick.stores.memory.rows import JobRow
from everytick.stores.memory.versions import VersionRows, is_forgotten, is_stored, renamed
from everytick.stores.open_requests import under_key
from everytick.stores.storing_rules import as_named, as_stored, in_force_at, name_taken, refuse_purge


class JobVerbs:
    """Changes of definitions, and the records of jobs."""

    def __init__(
        self, shared: Shared, facts: FactVerbs, versions: VersionRows, dependencies: Dependencies, revisions: Revisions
    ) -> None:
        self._shared, self._tables = shared, shared.tables
        self._facts, self._versions, self._dependencies, self._revisions = facts, versions, dependencies, revisions

    def apply(self, changes: Sequence[Edit], by: str) -> list[Stored]:
        """Make every change in one transaction, or none. Return the result of each."""
        now = self._shared.now()
        self._refuse_unreadable(changes)
        self._check(changes, now)
        for change in changes:
            if isinstance(change, Put):
                # A version that is still to come, or is tried, may need what no job has needed so far.
                self._tables.needs.setdefault(change.job.needs)
        stored: dict[int, Stored] = {}
        for kinds in (Rename, Put), (Tell, Remove):
            done = [(place, change) for place, change in in_order(changes) if isinstance(change, kinds)]
            stored |= {place: self._change(change, by, now) for place, change in done}
            self._dependencies.depend(
                [change.job for place, change in done if isinstance(change, Put) and stored[place].changed], now
            )
        return [stored[place] for place in range(len(changes))]

    def _refuse_unreadable(self, changes: Sequence[Edit]) -> None:
        """Raise if one of these jobs has a definition that this process cannot read: it is left alone."""
        reasons = {job.name: job.reason for job in self._tables.unreadable.values()}
        for change in changes:
            if change.name in reasons:
                raise Conflict(
                    f"job '{change.name}' is not changed: this process cannot read it: {reasons[change.name]}"
                )

    def _check(self, changes: Sequence[Edit], now: datetime) -> None:
        """Raise what the changes could raise, before the first of them is made."""
        named = {change.name: self._tables.names.get(change.name) for change in changes}
        there = {name: row for name, row in named.items() if row is not None and row.removed_at is None}
        asked = {name: asked_edition(row.newest, now).job.version for name, row in there.items()}
        refuse_unexpected(changes, asked)
        known, moved, freed = {*there}, dict[str, JobRow](), set[str]()
        puts = {change.name: change.job for change in changes if isinstance(change, Put)}
        is_checked = False
        for _, change in in_order(changes):
            if isinstance(change, Put):
                row = moved.get(change.name) or named[change.name]
                if row is not None and not is_forgotten(row, now) and not is_stored(row, change, now):
                    before = len(self._versions.updated(row, None, row.job, now)) if change.name in moved else 0
                    self._versions.refuse_edit(
                        row, change.job, self._versions.updated(row, change, change.job, now), before
                    )
                known.add(change.name)
                continue
            if not isinstance(change, Rename) and not is_checked:
                is_checked = True
                self._dependencies.check(changes, now)
            if change.name not in known:
                raise NotFound("job", change.name)
            if isinstance(change, Tell) and isinstance(change.fact, ASKS):
                self._check_request(
                    change.fact, moved.get(change.name) or named[change.name], puts.get(change.name), now
                )
            if isinstance(change, Rename):
                if change.to != change.name and change.to in self._tables.names and change.to not in freed:
                    raise DuplicateDefinition(name_taken(change.to))
                row = there[change.to] = moved[change.to] = there[change.name]
                self._versions.refuse_edit(
                    row, row.job, self._versions.updated(row, None, renamed(row, change.to, now), now)
                )
                freed.add(change.name)
                known.discard(change.name)
                known.add(change.to)
        if not is_checked:
            self._dependencies.check(changes, now)

    def _check_request(self, fact: Asks, row: JobRow | None, put: Job | None, now: datetime) -> None:
        """Raise if the job, as it is after these changes, takes no requests or another has the key."""
        job = row.job if put is None and row is not None else put
        assert job is not None, "the job is there, or is made"
        if not job.enabled:
            raise JobDisabled(job.name)
        if row is not None and not is_forgotten(row, now):
            request = as_stored(Edition(job, now), request_of(fact, now), now)
            under_key(row.id, request, self._facts.key_use(row, request))

    def _change(self, change: Edit, by: str, now: datetime) -> Stored:
        if isinstance(change, Put):
            return self._versions.put(change, by, now)
        row, changed = self._tables.names[change.name], True
        match change:
            case Rename():
                stored = self._versions.edit(row, None, renamed(row, change.to, now), by, now)
                self._tables.rename(row, change.to)
                return stored
            case Tell():
                changed = self._facts.write(row, change.fact, now).changed
            case Remove():
                row.removed_at, row.removed_by, row.retire_at = now, by, now + change.retire_after
                self._tables.need(row, RETIRED)
        if changed:
            is_asked = isinstance(change, Tell) and isinstance(change.fact, ASKS)
            (self._shared.wake if is_asked else self._revisions.revise)(row, now)
        return Stored(row.id, asked_edition(row.newest, now).job.version, changed)

    def purge(self, job_id: str, limit: int) -> bool:
        """Delete up to `limit` occurrences of a removed job, and the job with the last of them."""
        row = self._shared.job(job_id)
        refuse_purge(row.name, row.removed_at, sum(1 for occurrence in row.busy if occurrence.owner is not None))
        for occurrence in list(islice(row.history, limit)):
            self._tables.remove(occurrence)
        if row.history:
            return False
        self._tables.remove_job(row)
        return True

    def get(self, job_ids: Collection[str]) -> dict[str, JobRecord]:
        """Return the jobs with these ids that exist, by id."""
        return {id_: self._record(self._tables.jobs[id_]) for id_ in job_ids if id_ in self._tables.jobs}

    def list(self, *, removed: bool, after: str, limit: int | None) -> Sequence[JobRecord]:
        """Return every job that is not removed, by name. With `removed`, return removed jobs too."""
        by_name = (row for name, row in sorted(self._tables.names.items()) if name > after)
        meant = (row for row in by_name if removed or row.removed_at is None)
        return [self._record(row) for row in islice(meant, limit)]

    def _record(self, row: JobRow) -> JobRecord:
        asked = asked_edition(row.newest, self._shared.now())
        return JobRecord(
            job=as_named(asked.job, row.name),
            revision=row.revision,
            watermark=row.watermark,
            wake_at=row.wake_at,
            pause=row.pause_at(self._shared.now()),
            removed_at=row.removed_at,
            retire_at=row.retire_at,
            last_end=row.last_end,
            last_success=row.last_success,
            removed_by="" if row.removed_at is None else row.removed_by,
            next_run=row.next_run,
            run_count=row.run_count,
            last_error=row.last_error,
            needs=row.needs,
            parked_reason=row.parked_reason,
            last_failure_at=row.last_failure_at,
            lapsed=None if asked.follows is None else row.edition(asked.follows).job,
        )

    def parked(self, _: ParkedJobs) -> Mapping[str, str]:
        """Return why each job in service is parked that is, also those that this process cannot read, by name."""
        in_service = (row for _, row in sorted(self._tables.names.items()) if row.removed_at is None)
        records = map(self._record, in_service)
        parked = {record.job.name: record.parked_reason for record in records if record.parked_reason is not None}
        return {**parked, **{job.name: job.reason for job in self._tables.unreadable.values()}}

    def editions(self, asked: Editions) -> Sequence[Edition]:
        """Return versions of a job, by number or by the moment at which they were in force."""
        row = self._shared.job(asked.job_id)
        known = [row.edition(version) for version in sorted(row.versions)]
        wanted = {*asked.versions, *([] if asked.at is None else [in_force_at(known, asked.at).job.version])}
        return [edition for edition in known if edition.job.version in wanted]
