"""Versions of jobs: the first one of a new job, and those that edits add."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from everytick.domain import ids
from everytick.domain.changes import Put
from everytick.domain.job import Job, dated
from everytick.domain.occurrence import Cause
from everytick.domain.policies import FirstSight
from everytick.domain.snapshots import Edition, Request
from everytick.domain.upcoming import in_force
from everytick.domain.updates import asked_edition, is_asked, numbered
from everytick.stores.base import REMEMBERED, Stored
from everytick.stores.memory.base import Shared
from everytick.stores.memory.due import DueJobs
from everytick.stores.memory.occurrences import Occurrences
from everytick.stores.memory.promises import keep_promises
from everytick.stores.memory.revising import Revisions
from everytick.stores.memory.rows import JobRow
from everytick.stores.storing_rules import (
    first_run,
    first_watermark,
    forgettable,
    has_room,
    is_lasting,
    refuse_edit,
    under_id,
    updated_by,
)


class VersionRows:
    """The definitions that jobs have had, have and will have."""

    def __init__(self, shared: Shared, occurrences: Occurrences, due: DueJobs, revisions: Revisions) -> None:
        self._shared, self._tables = shared, shared.tables
        self._occurrences, self._due, self._revisions = occurrences, due, revisions

    def put(self, change: Put, by: str, now: datetime) -> Stored:
        """Store a definition: a new job, an edit, or nothing new."""
        job = change.job
        row = self._tables.names.get(job.name)
        if row is not None and is_forgotten(row, now):
            # Its history stays under another name, so that a new job can have this one.
            self._tables.rename(row, f"{row.name} (removed {row.removed_at})")
            row = None
        if row is None:
            return self._create_job(job, by, now)
        if is_stored(row, change, now):
            return Stored(row.id, asked_edition(row.newest, now).job.version, changed=False)
        return self.edit(row, change, job, by, now)

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
        keep_promises(self._tables, row, made, now)
        row.next_run = first_run(made, now)
        self._shared.wake(row, now)
        return Stored(id_, 1, changed=True)

    def edit(self, row: JobRow, change: Put | None, job: Job, by: str, now: datetime) -> Stored:
        """Add the versions of an edit, each with its moment. One that is in force now is taken by what is unclaimed."""
        editions = self.updated(row, change, job, now)
        self.refuse_edit(row, job, editions)
        current = in_force(row.editions, now)
        for edition in numbered(editions, row.job.version, by):
            made = dated(under_id(edition.job, row.id), row.created_at, now)
            row.editions.append(replace(edition, job=made))
            row.add(row.editions[-1])
            if edition.in_force_after == now:
                if current.settings.recovery != made.settings.recovery:
                    row.narrowed_at = now
                if made.settings.depends_on and current.settings.depends_on != made.settings.depends_on:
                    self._occurrences.put_back_in_line(row, now)
                self._occurrences.turn(row, made, now)
        row.is_needed = bool(self._tables.dependents[row.id])
        row.removed_at = row.retire_at = row.undefined_since = None
        self._revisions.revise(row, now)
        if editions[0].in_force_after == now:
            keep_promises(self._tables, row, in_force(row.editions, now), now)
        return Stored(row.id, asked_edition(row.newest, now).job.version, changed=True)

    def updated(self, row: JobRow, change: Put | None, job: Job, now: datetime) -> tuple[Edition, ...]:
        """Return the versions that an edit adds, each with its moment."""
        return updated_by(self._due.snapshot(row, now), change, under_id(job, row.id), now)

    def refuse_edit(self, row: JobRow, job: Job, editions: Sequence[Edition], before: int = 0) -> None:
        """Raise TooManyEditions unless the job has room for these versions after `before` versions to come.

        If there is no room, it deletes the oldest versions that no decision needs.
        """
        if not has_room(len(row.editions) + before, job, len(editions)):
            del row.editions[: forgettable(row.editions, self._shared.now())]
        refuse_edit(row.name, len(row.editions) + before, job, len(editions))


def is_forgotten(row: JobRow, now: datetime) -> bool:
    """Whether the job was removed so long ago that its name is free for a new job."""
    return row.removed_at is not None and now - row.removed_at > REMEMBERED


def is_stored(row: JobRow, change: Put, now: datetime) -> bool:
    """Whether the job is in service and its newest version says the same."""
    return row.removed_at is None and is_asked(
        row.newest, change.job, now, is_lasting=is_lasting(change), is_named=change.policy is not None
    )


def renamed(row: JobRow, to: str, now: datetime) -> Job:
    """Return the definition that was asked for last, under another name."""
    return replace(asked_edition(row.newest, now).job, name=to)
