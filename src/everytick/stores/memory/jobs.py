"""The verbs of definitions and people's requests. Each writes a fact and wakes the job; only a plan decides."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any

from everytick.domain import facts, ids
from everytick.domain.backfills import BackfillRecord
from everytick.domain.changes import Edit, Put, Remove, Rename, Tell, in_order, refuse_unexpected
from everytick.domain.dependencies import Dependency
from everytick.domain.facts import ASKS, LIMITING, REVISES, Fact, adjusted, request_of
from everytick.domain.job import Job, dated
from everytick.domain.lookups import Editions, NewestBackfills, ParkedJobs
from everytick.domain.needs import RETIRED
from everytick.domain.occurrence import Cause
from everytick.domain.policies import FirstSight
from everytick.domain.snapshots import Edition, PausedSpan, Request, Rescheduled
from everytick.domain.statuses import ENDED, OccurrenceStatus
from everytick.domain.upcoming import in_force
from everytick.domain.updates import asked_edition, is_asked, numbered
from everytick.errors import (
    DuplicateDefinition,
    JobDisabled,
    NotFound,
    TransactionsUnsupported,
)
from everytick.stores.backfill_rules import stopped_because
from everytick.stores.base import REMEMBERED, JobRecord, Receipt, Stored
from everytick.stores.depending import refuse_circles, refuse_never_meeting, unknown_dependency
from everytick.stores.memory.backfills import backfill_record, plan_backfill, steer_backfill
from everytick.stores.memory.base import UNSTARTED
from everytick.stores.memory.planning import Planning
from everytick.stores.memory.promises import keep_promises, recheck_promises
from everytick.stores.memory.rows import JobRow
from everytick.stores.open_requests import (
    KEEPS_ITS_KEY,
    KeyUse,
    as_waiting,
    has_key_of_its_own,
    refuse_within,
    under_key,
)
from everytick.stores.storing_rules import (
    as_named,
    as_stored,
    first_run,
    first_watermark,
    forgettable,
    has_room,
    in_force_at,
    is_lasting,
    name_taken,
    refuse_edit,
    refuse_purge,
    shown_next_run,
    under_id,
    updated_by,
)

_S = OccurrenceStatus


class Jobs(Planning):
    """Definitions, and the facts that people write about jobs."""

    async def apply(self, changes: Sequence[Edit], by: str = "") -> list[Stored]:
        """Make every change in one transaction, or none. Return the result of each."""
        self._check(changes)
        now = self._now()
        for change in changes:
            if isinstance(change, Put):
                # A version that is still to come, or is tried, may need what no job has needed so far.
                self._tables.needs.setdefault(change.job.needs)
        stored: dict[int, Stored] = {}
        for kinds in (Rename, Put), (Tell, Remove):
            done = [(place, change) for place, change in in_order(changes) if isinstance(change, kinds)]
            stored |= {place: self._change(change, by, now) for place, change in done}
            self._depend(
                [change.job for place, change in done if isinstance(change, Put) and stored[place].changed], now
            )
        return [stored[place] for place in range(len(changes))]

    def _depend(self, jobs: Sequence[Job], now: datetime) -> None:
        """Let these jobs follow those on which they depend, which know from now on that others depend on them."""
        for job in jobs:
            row, needs_jobs = self._tables.names[job.name], dict[str, str]()
            for each in job.settings.depends_on:
                named = self._tables.names.get(each.job)
                in_service = named is not None and named.removed_at is None
                needs_jobs[each.job] = named.id if in_service and named is not None else row.needs_jobs[each.job]
            self._tables.depend(row, needs_jobs)
        for id_ in sorted({id_ for job in jobs for id_ in self._tables.names[job.name].needs_jobs.values()}):
            needed = self._tables.jobs.get(id_)
            if needed is not None and not needed.is_needed:
                needed.is_needed = True
                needed.revision += 1
                self._wake(needed, now)

    def _check(self, changes: Sequence[Edit]) -> None:
        """Raise what the changes could raise, before the first of them is made."""
        named = {change.name: self._tables.names.get(change.name) for change in changes}
        there = {name: row for name, row in named.items() if row is not None and row.removed_at is None}
        now = self._now()
        asked = {name: asked_edition(row.newest, now).job.version for name, row in there.items()}
        refuse_unexpected(changes, asked)
        known, renamed, freed = {*there}, dict[str, JobRow](), set[str]()
        puts = {change.name: change.job for change in changes if isinstance(change, Put)}
        is_checked = False
        for _, change in in_order(changes):
            if isinstance(change, Put):
                row = renamed.get(change.name) or named[change.name]
                if row is not None and not self._is_forgotten(row) and not _is_stored(row, change, now):
                    before = len(self._updated(row, None, row.job, now)) if change.name in renamed else 0
                    self._refuse_edit(row, change.job, self._updated(row, change, change.job, now), before)
                known.add(change.name)
                continue
            if not isinstance(change, Rename) and not is_checked:
                is_checked = True
                self._check_dependencies(changes)
            if change.name not in known:
                raise NotFound("job", change.name)
            if isinstance(change, Tell) and isinstance(change.fact, ASKS):
                self._check_request(change.fact, renamed.get(change.name) or named[change.name], puts.get(change.name))
            if isinstance(change, Rename):
                if change.to != change.name and change.to in self._tables.names and change.to not in freed:
                    raise DuplicateDefinition(name_taken(change.to))
                row = there[change.to] = renamed[change.to] = there[change.name]
                self._refuse_edit(row, row.job, self._updated(row, None, _renamed(row, change.to, now), now))
                freed.add(change.name)
                known.discard(change.name)
                known.add(change.to)
        if not is_checked:
            self._check_dependencies(changes)

    def _check_request(self, fact: facts.Asks, row: JobRow | None, put: Job | None) -> None:
        """Raise if the job, as it is after these changes, takes no requests or another has the key."""
        job = row.job if put is None and row is not None else put
        assert job is not None, "the job is there, or is made"
        if not job.enabled:
            raise JobDisabled(job.name)
        if row is not None and not self._is_forgotten(row):
            request = as_stored(Edition(job, self._now()), request_of(fact, self._now()), self._now())
            under_key(row.id, request, self._key_use(row, request))

    def _check_dependencies(self, changes: Sequence[Edit]) -> None:
        """Raise if a job that is put depends on one that is not there, or on itself through others."""
        puts, now = [change for change in changes if isinstance(change, Put)], self._now()
        if not any(change.job.settings.depends_on for change in puts):
            return
        rows = self._names_after(changes)
        new = {change.name: change.job for change in puts}
        edited = [
            change.job for change in puts if (row := rows.get(change.name)) is None or not _is_stored(row, change, now)
        ]
        followed: dict[str, list[str]] = {}
        for job in edited:
            row = rows.get(job.name)
            followed[job.name] = [self._followed(each, job, row, rows, new) for each in job.settings.depends_on]
        names = {row.id: name for name, row in rows.items()}

        def needed_by(name: str) -> list[str]:
            row = rows.get(name)
            return (
                followed[name]
                if name in followed or row is None
                else [names[id_] for id_ in row.needs_jobs.values() if id_ in names]
            )

        refuse_circles(followed, needed_by)

    def _names_after(self, changes: Sequence[Edit]) -> dict[str, JobRow]:
        """Return all jobs by the names that they have after the renames; a name that is free for a new job has none."""
        renamed = {change.name: change.to for change in changes if isinstance(change, Rename)}
        put = {change.name for change in changes if isinstance(change, Put)}
        rows = {renamed.get(name, name): row for name, row in self._tables.names.items()}
        return {name: row for name, row in rows.items() if name not in put or not self._is_forgotten(row)}

    def _followed(
        self, dependency: Dependency, job: Job, row: JobRow | None, rows: Mapping[str, JobRow], new: Mapping[str, Job]
    ) -> str:
        """Return the name of the job that a dependency follows: the one of that name, or one that had it before."""
        named = rows.get(dependency.job)
        if dependency.job not in new and (named is None or named.removed_at is not None):
            before = None if row is None else self._tables.jobs.get(row.needs_jobs.get(dependency.job, ""))
            if before is None:
                in_service = [name for name, each in rows.items() if each.removed_at is None]
                raise unknown_dependency(job.name, dependency.job, sorted({*in_service, *new}))
            return next(name for name, each in rows.items() if each is before)
        needed = new[dependency.job] if dependency.job in new or named is None else named.job
        refuse_never_meeting(job, dependency, needed, self._now())
        return dependency.job

    def _change(self, change: Edit, by: str, now: datetime) -> Stored:
        if isinstance(change, Put):
            return self._put(change, by, now)
        row, changed = self._tables.names[change.name], True
        match change:
            case Rename():
                stored = self._edit(row, None, _renamed(row, change.to, now), by, now)
                self._tables.rename(row, change.to)
                return stored
            case Tell():
                changed = self._write(row, change.fact, now).changed
            case Remove():
                row.removed_at, row.removed_by, row.retire_at = now, by, now + change.retire_after
                self._tables.need(row, RETIRED)
        if changed:
            is_asked = isinstance(change, Tell) and isinstance(change.fact, ASKS)
            (self._wake if is_asked else self._revise)(row, now)
        return Stored(row.id, asked_edition(row.newest, now).job.version, changed)

    def _put(self, change: Put, by: str, now: datetime) -> Stored:
        job = change.job
        row = self._tables.names.get(job.name)
        if row is not None and self._is_forgotten(row):
            self._forget(row)
            row = None
        if row is None:
            return self._create_job(job, by, now)
        if _is_stored(row, change, now):
            return Stored(row.id, asked_edition(row.newest, now).job.version, changed=False)
        return self._edit(row, change, job, by, now)

    async def get(self, job_ids: Collection[str]) -> dict[str, JobRecord]:
        """Return the jobs with these ids that exist, by id."""
        return {id_: self._record(self._tables.jobs[id_]) for id_ in job_ids if id_ in self._tables.jobs}

    async def list(self, *, removed: bool = False, after: str = "", limit: int | None = None) -> Sequence[JobRecord]:
        """Return every job that is not removed, by name. With `removed`, return removed jobs too."""
        by_name = (row for name, row in sorted(self._tables.names.items()) if name > after)
        meant = (row for row in by_name if removed or row.removed_at is None)
        return [self._record(row) for row in islice(meant, limit)]

    def _parked(self, _: ParkedJobs) -> Mapping[str, str]:
        in_service = (row for _, row in sorted(self._tables.names.items()) if row.removed_at is None)
        records = map(self._record, in_service)
        return {record.job.name: record.parked_reason for record in records if record.parked_reason is not None}

    def _editions(self, asked: Editions) -> Sequence[Edition]:
        row = self._job(asked.job_id)
        known = [row.edition(version) for version in sorted(row.versions)]
        wanted = {*asked.versions, *([] if asked.at is None else [in_force_at(known, asked.at).job.version])}
        return [edition for edition in known if edition.job.version in wanted]

    async def purge(self, job_id: str, limit: int = 1000) -> bool:
        """Delete up to `limit` occurrences of a removed job, and the job with the last of them."""
        row = self._job(job_id)
        refuse_purge(row.name, row.removed_at, sum(1 for occurrence in row.busy if occurrence.owner is not None))
        for occurrence in list(islice(row.history, limit)):
            self._tables.remove(occurrence)
        if row.history:
            return False
        self._tables.remove_job(row)
        return True

    async def request(self, subject: str, fact: Fact, within: Any = None) -> Receipt:
        """Write one fact about a job or an occurrence, and make its job due."""
        if within is not None:
            refuse_within(fact)
            raise TransactionsUnsupported("memory")
        now = self._now()
        if isinstance(fact, facts.Cancel):
            return Receipt(subject, self._cancel(subject, fact.reason, now))
        if isinstance(fact, LIMITING):
            return self._say(subject, fact, now)
        row = self._job(subject)
        receipt = self._write(row, fact, now)
        if receipt.changed:
            (self._revise if type(fact) in REVISES else self._wake)(row, now)
        return receipt

    def _write(self, row: JobRow, fact: Fact, now: datetime) -> Receipt:
        if isinstance(fact, ASKS):
            return self._ask(row, request_of(fact, now), now)
        changed = True
        match fact:
            case facts.Pause():
                self._pause(row, fact, now)
            case facts.Resume():
                changed = self._resume(row, fact, now)
            case facts.Reschedule():
                row.reschedule = Rescheduled(now, fact.to, fact.by)
            case facts.UndoReschedule():
                changed = row.reschedule is not None and row.reschedule.to == fact.to
                row.reschedule = None if changed else row.reschedule
            case facts.Rewind():
                changed = self._rewind(row, now)
            case facts.Skip() | facts.Move() | facts.Amend() | facts.Undo():
                made = adjusted(row.adjustments.get(fact.at), fact, now, row.watermark)
                changed = made is not None
                if made is not None:
                    row.adjustments[fact.at] = made
            case facts.PlanBackfill():
                return plan_backfill(row, fact, now)
            case facts.SteerBackfill():
                receipt, unclaimed = steer_backfill(row, fact, now)
                self._end_unclaimed(unclaimed, stopped_because(fact.by), now)
                return receipt
        return Receipt(row.id, changed)

    def _end_unclaimed(self, occurrence_ids: Collection[str], reason: str, now: datetime) -> None:
        """End those of these occurrences that no node has claimed."""
        for id_ in occurrence_ids:
            row = self._tables.occurrences.get(id_)
            if row is not None and row.owner is None and row.status in UNSTARTED:
                self._end(row, _S.CANCELED, reason, now)
                self._wake(row.job, now)

    def _newest_backfills(self, asked: NewestBackfills) -> Sequence[BackfillRecord]:
        rows = [self._tables.jobs[id_] for id_ in self._tables.jobs if asked.job_id in (None, id_)]
        found = [backfill_record(self._tables, row, each) for row in rows for each in row.backfills.values()]
        return sorted(found, key=lambda each: (each.planned_at, each.id), reverse=True)[: asked.limit]

    def _pause(self, row: JobRow, fact: facts.Pause, now: datetime) -> None:
        running = row.pause_at(now)
        if running is not None:
            row.pauses.remove(running)
        since = running.since if running else now
        row.pauses.append(PausedSpan(since, fact.until, fact.missed, fact.reason, fact.by))
        self._put_back_in_line(row, now)

    def _put_back_in_line(self, row: JobRow, now: datetime) -> None:
        """Queue the occurrences of the schedule that no node has claimed."""
        for occurrence in list(row.busy):
            if occurrence.status is _S.PENDING and occurrence.creation.cause is Cause.SCHEDULE:
                self._move(occurrence, _S.QUEUED, now)

    def _resume(self, row: JobRow, fact: facts.Resume, now: datetime) -> bool:
        running = row.pause_at(now)
        if running is None:
            return False
        missed = fact.missed or running.missed
        row.pauses[row.pauses.index(running)] = replace(running, until=now, missed=missed, resumed_by=fact.by)
        return True

    def _ask(self, row: JobRow, request: Request, now: datetime) -> Receipt:
        if row.removed_at is not None:
            raise NotFound("job", row.name)
        if not row.job.enabled:
            raise JobDisabled(row.name)
        request = as_stored(row.editions[-1], request, now)
        request, is_known = under_key(row.id, request, self._key_use(row, request))
        if not is_known:
            if has_key_of_its_own(request):
                row.keys[request.cause, request.key] = request.nth, request.call
            self._tables.ask(row, replace(request, call=None))
        return Receipt(request.occurrence_id(row.id), not is_known)

    def _key_use(self, row: JobRow, request: Request) -> KeyUse | None:
        """Return the newest use of the request's key."""
        key = request.cause, request.key
        if (open_ := row.requests.get(key)) is not None:
            return KeyUse(open_.nth, None, True, open_.payload)
        if request.cause is Cause.BACKFILL:
            return None
        nth, call = row.keys.get(key, (1, None))
        made = self._tables.occurrences.get(replace(request, nth=nth).occurrence_id(row.id))
        if made is None:
            return None if call is None else KeyUse(nth, call, False, None)
        return KeyUse(nth, call, made.status in KEEPS_ITS_KEY, made.own_payload)

    def _cancel(self, occurrence_id: str, reason: str, now: datetime) -> bool:
        """End an occurrence that no node has claimed, or ask its owner to stop. Return whether it was active."""
        if occurrence_id not in self._tables.occurrences:
            self._cancel_request(occurrence_id, reason, now)
            return True
        row = self._occurrence(occurrence_id)
        if row.status in ENDED:
            return False
        if row.owner is None and row.status in UNSTARTED:
            self._end(row, _S.CANCELED, reason, now)
            self._wake(row.job, now)
        else:
            row.cancel = reason
            self._ring()
        return True

    def _rewind(self, row: JobRow, now: datetime) -> bool:
        """Set a watermark that lies ahead back to now. Return whether it lay ahead."""
        if row.watermark <= now:
            return False
        undone = [span for span in row.spans if span.through > now]
        row.spans = [span for span in row.spans if span.through <= now]
        row.watermark = min([now, *(span.after for span in undone)])
        self._bring_back(row, now)
        if row.last_end is not None:
            row.last_end = replace(row.last_end, ended_at=min(row.last_end.ended_at, now))
        if row.last_failure_at is not None:
            row.last_failure_at = min(row.last_failure_at, now)
        return True

    def _bring_back(self, row: JobRow, now: datetime) -> None:
        """Let the newest version, pauses, resumes and a reschedule that were written ahead apply from now on."""
        newest = row.editions[-1]
        if newest.job.updated_at is not None and newest.job.updated_at > now:
            last = newest.follows or newest.job.version
            known = [each.job.version for each in row.editions if each.rollout is None and each.job.version <= last]
            oldest = max(known, default=newest.job.version)
            row.editions = [each for each in row.editions if each.job.version >= oldest]
        row.pauses = [pause.brought_back(now) for pause in row.pauses]
        if row.reschedule is not None:
            row.reschedule = replace(row.reschedule, made_at=min(row.reschedule.made_at, now))

    def _revise(self, row: JobRow, now: datetime) -> None:
        """Make older snapshots stale, make the job due, and set its next run as of now."""
        row.revision += 1
        row.next_run = shown_next_run(self._snapshot(row, now), now)
        if row.promises:
            recheck_promises(row, now)
        self._wake(row, now)

    def _cancel_request(self, occurrence_id: str, reason: str, now: datetime) -> None:
        """Create the occurrence of an unplanned request as canceled, so that no older plan creates it."""
        asked = self._tables.asked_for(occurrence_id)
        if not asked:
            raise NotFound("occurrence", occurrence_id)
        row, request = asked[0]
        self._create(row, as_waiting(row.job, request), now)
        for _, open_request in asked:
            self._tables.answer(row, open_request.cause, open_request.key)
        self._end(self._occurrence(occurrence_id), _S.CANCELED, reason, now)
        self._wake(row, now)

    def _record(self, row: JobRow) -> JobRecord:
        asked = asked_edition(row.newest, self._now())
        return JobRecord(
            job=as_named(asked.job, row.name),
            revision=row.revision,
            watermark=row.watermark,
            wake_at=row.wake_at,
            pause=row.pause_at(self._now()),
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

    def _create_job(self, job: Job, by: str, now: datetime) -> Stored:
        nth = 1
        while (id_ := ids.job_id(job.name, nth)) in self._tables.jobs:
            nth += 1
        made = replace(dated(under_id(job, id_), now, now), version=1)
        row = JobRow(id_, job.name, [Edition(made, by=by)], first_watermark(made, now), now, made.needs)
        row.is_needed = bool(self._tables.dependents[id_])
        row.add(row.editions[0])
        if job.settings.on_create.begin is FirstSight.IMMEDIATELY:
            self._tables.ask(row, Request("create", Cause.CREATE, now))
        self._tables.add_job(row)
        keep_promises(row, made, now)
        row.next_run = first_run(made, now)
        self._wake(row, now)
        return Stored(id_, 1, changed=True)

    def _edit(self, row: JobRow, change: Put | None, job: Job, by: str, now: datetime) -> Stored:
        """Add the versions of an edit, each with its moment. One that is in force now is taken by what is unclaimed."""
        editions = self._updated(row, change, job, now)
        self._refuse_edit(row, job, editions)
        current = in_force(row.editions, now)
        for edition in numbered(editions, row.job.version, by):
            made = dated(under_id(edition.job, row.id), row.created_at, now)
            row.editions.append(replace(edition, job=made))
            row.add(row.editions[-1])
            if edition.in_force_after == now:
                if current.settings.recovery != made.settings.recovery:
                    row.narrowed_at = now
                if made.settings.depends_on and current.settings.depends_on != made.settings.depends_on:
                    self._put_back_in_line(row, now)
                self._turn(row, made, now)
        row.is_needed = bool(self._tables.dependents[row.id])
        row.removed_at = row.retire_at = row.undefined_since = None
        self._revise(row, now)
        if editions[0].in_force_after == now:
            keep_promises(row, in_force(row.editions, now), now)
        return Stored(row.id, asked_edition(row.newest, now).job.version, changed=True)

    def _promise(self, row: JobRow, job: Job, now: datetime) -> None:
        """Let the promises of a version that came into force hold; those that were made before are looked at now."""
        recheck_promises(row, now)
        keep_promises(row, job, now)

    def _updated(self, row: JobRow, change: Put | None, job: Job, now: datetime) -> tuple[Edition, ...]:
        return updated_by(self._snapshot(row, now), change, under_id(job, row.id), now)

    def _refuse_edit(self, row: JobRow, job: Job, editions: Sequence[Edition], before: int = 0) -> None:
        """Raise TooManyEditions unless the job has room for these versions after `before` versions to come.

        If there is no room, it deletes the oldest versions that no decision needs.
        """
        if not has_room(len(row.editions) + before, job, len(editions)):
            del row.editions[: forgettable(row.editions, self._now())]
        refuse_edit(row.name, len(row.editions) + before, job, len(editions))

    def _is_forgotten(self, row: JobRow) -> bool:
        """Whether the job was removed so long ago that its name is free for a new job."""
        return row.removed_at is not None and self._now() - row.removed_at > REMEMBERED

    def _forget(self, row: JobRow) -> None:
        """Rename a job that was removed long ago, so that a new job can have its name. Its history stays."""
        self._tables.rename(row, f"{row.name} (removed {row.removed_at})")


def _is_stored(row: JobRow, change: Put, now: datetime) -> bool:
    """Whether the job is in service and its newest version says the same."""
    return row.removed_at is None and is_asked(
        row.newest, change.job, now, is_lasting=is_lasting(change), is_named=change.policy is not None
    )


def _renamed(row: JobRow, to: str, now: datetime) -> Job:
    """Return the definition that was asked for last, under another name."""
    return replace(asked_edition(row.newest, now).job, name=to)
