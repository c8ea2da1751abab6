"""How occurrences come to be, move and end without their owner, and which version they run under."""

from collections.abc import Collection, Iterable
from datetime import datetime

from everytick.domain.config import Level, Overrides
from everytick.domain.decisions import Creation
from everytick.domain.job import Job
from everytick.domain.needs import are_late, late_needs, needs_in
from everytick.domain.occurrence import Cause
from everytick.domain.snapshots import Ended
from everytick.domain.statuses import ENDED, WELL, OccurrenceStatus, RunStatus, may_move
from everytick.domain.steps import RunRow, bounded, closed, failed_at
from everytick.domain.upcoming import NOTHING_COMING
from everytick.stores.memory.base import Shared
from everytick.stores.memory.rows import JobRow, OccurrenceRow, new_row
from everytick.stores.storing_rules import NOTHING_TO_KEEP, own_overrides

_S = OccurrenceStatus
_NO_OVERRIDES = Overrides(Level.OCCURRENCE)

UNSTARTED = frozenset({_S.PENDING, _S.QUEUED, _S.AWAITING_RETRY})
"""Statuses in which an occurrence may end without its owner: no attempt of it is running."""

UNBEGUN = frozenset({_S.PENDING, _S.QUEUED})
"""The statuses of occurrences that no node has claimed. If it has no runs either, no task of it has begun."""


class Occurrences:
    """What happens to occurrences beside the steps of their owners."""

    def __init__(self, shared: Shared) -> None:
        self._shared, self._tables = shared, shared.tables

    def status(self, occurrence_id: str) -> OccurrenceStatus:
        """Return the status of an occurrence. A pruned one has ended: CANCELED stands for any end."""
        row = self._tables.occurrences.get(occurrence_id)
        return _S.CANCELED if row is None else row.status

    def create(self, row: JobRow, creation: Creation, now: datetime) -> None:
        """Create the occurrence unless it exists. Its id follows from job and instant, so a repeat changes nothing."""
        if creation.id in self._tables.occurrences:
            return
        job = row.edition(creation.version).job
        own, overrides = job.settings, _NO_OVERRIDES
        if creation.overrides is not None or creation.payload is not None:
            overrides = own_overrides(creation, own)
            own = own.overridden_by(overrides)
        needs = needs_in(job.labels, own.queue)
        created = new_row(
            handle=next(self._tables.new_handles),
            id=creation.id,
            job=row,
            creation=creation,
            overrides=overrides,
            reason=f"{creation.why}, {creation.detail}" if creation.detail else str(creation.why),
            created_at=now,
            line_at=creation.line_at,
            version=creation.version,
            status=creation.status,
            priority=own.priority,
            needs=needs if not creation.in_lane else late_needs(needs),
            ready_at=creation.ready_at,
            updated_at=now,
            ended_at=now if creation.status in ENDED else None,
            execution_timeout=bounded(own.execution_timeout),
        )
        self._tables.add(created)
        if creation.keeps and creation.status not in ENDED:
            self._keep(created, creation, now)

    def _keep(self, made: OccurrenceRow, creation: Creation, now: datetime) -> None:
        """Copy the results that a replay keeps from its original."""
        original = self._tables.occurrences.get(creation.replay_of or "")
        runs = {} if original is None else original.runs
        made.runs = {
            task: runs[task].kept()
            for task in creation.keeps
            if task in runs and runs[task].status is RunStatus.SUCCESS
        }
        made.number = 1
        if len(made.runs) < len(creation.keeps):
            self.end(made, _S.CANCELED, NOTHING_TO_KEEP, now)

    def move(self, row: OccurrenceRow, to: OccurrenceStatus, now: datetime) -> None:
        """Give the occurrence this status."""
        assert may_move(row.status, to), f"{row.id}: {row.status} cannot become {to}"
        self._tables.change(row, status=to, updated_at=now)

    def end(self, row: OccurrenceRow, status: OccurrenceStatus, reason: str, now: datetime) -> None:
        """End an occurrence without its owner. A node that still owns it is fenced out."""
        assert may_move(row.status, status), f"{row.id}: {row.status} cannot become {status}"
        job, rules = row.job.versions[row.version]
        row.runs |= closed(rules, row.runs, now)
        self._tables.end(row, status, now, reason, now, report_due=job.owes_reports)
        note_end(row, now)

    def end_unclaimed(self, occurrence_ids: Collection[str], reason: str, now: datetime) -> None:
        """End those of these occurrences that no node has claimed."""
        for id_ in occurrence_ids:
            row = self._tables.occurrences.get(id_)
            if row is not None and row.owner is None and row.status in UNSTARTED:
                self.end(row, _S.CANCELED, reason, now)
                self._shared.wake(row.job, now)

    def put_back_in_line(self, row: JobRow, now: datetime) -> None:
        """Queue the occurrences of the schedule that no node has claimed."""
        for occurrence in list(row.busy):
            if occurrence.status is _S.PENDING and occurrence.creation.cause is Cause.SCHEDULE:
                self.move(occurrence, _S.QUEUED, now)

    def turn(self, row: JobRow, job: Job, now: datetime) -> None:
        """Let a version be in force. Unclaimed occurrences take it; started ones keep their own."""
        self._tables.need(row, job.needs)
        row.turned = job.version
        if job.settings.horizon is None:
            row.coming = NOTHING_COMING
        for occurrence in [*row.busy, *row.waiting]:
            if occurrence.status in UNBEGUN and not occurrence.runs:
                own = job.settings.overridden_by(occurrence.overrides) if occurrence.overrides.items else job.settings
                timeout, needs = bounded(own.execution_timeout), needs_in(job.labels, own.queue)
                needs = late_needs(needs) if are_late(occurrence.needs) else needs
                self._tables.change(
                    occurrence, version=job.version, priority=own.priority, needs=needs, execution_timeout=timeout
                )
            if occurrence.status is _S.PENDING and not job.enabled:
                self.move(occurrence, _S.QUEUED, now)
            # The job may have been enabled or disabled: the index of claimable occurrences follows.
            self._tables.change(occurrence)


def note_failure(job: JobRow, rows: Iterable[RunRow]) -> None:
    """Set the time of the job's last failure if one of these attempts failed."""
    at = failed_at(rows)
    if at is not None:
        job.last_failure_at = at if job.last_failure_at is None else max(job.last_failure_at, at)


def note_end(row: OccurrenceRow, at: datetime, failure: str | None = None, *, is_new: bool = True) -> None:
    """Count the end for its job: its last end, its last two successes, its last error."""
    job = row.job
    job.run_count += is_new and row.started_at is not None
    job.last_error = failure or job.last_error
    job.last_end = Ended(row.creation.scheduled_for, row.started_at, at, row.id)
    if row.status in WELL and (job.last_success is None or job.last_success.id != row.id):
        job.last_success, job.other_success = job.last_end, job.last_success
