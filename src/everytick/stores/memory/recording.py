"""record: the runs that a node fired while it could not reach this store."""

from collections.abc import Sequence
from datetime import datetime

from everytick.domain.fired import Fired, FiredRun
from everytick.domain.statuses import OccurrenceStatus
from everytick.stores.memory.base import Shared
from everytick.stores.memory.occurrences import Occurrences, note_end, note_failure
from everytick.stores.memory.rows import AttemptRow, JobRow

_S = OccurrenceStatus


class Recording:
    """Runs that began while this store was away."""

    def __init__(self, shared: Shared, occurrences: Occurrences) -> None:
        self._shared, self._tables, self._occurrences = shared, shared.tables, occurrences

    def record(self, job_id: str, fired: Fired) -> Sequence[int | None]:
        """Record the runs that a node fired while this store was away. Return the handle of each run, or None."""
        row, now = self._shared.job(job_id), self._shared.now()
        told = {run.creation.id for run in fired.runs if self._was_told(run)}
        handles = [self._record_run(row, run, now) for run in fired.runs]
        for ended_at, handle, run in fired.ends(handles):
            note_end(self._tables.handles[handle], ended_at, run.failure, is_new=run.creation.id not in told)
        row.spans += [span for span in fired.spans if span.after >= row.watermark]
        if row.watermark >= fired.after:
            row.watermark = max(row.watermark, fired.through)
        row.revision += 1
        for owner in {run.owner for run in fired.runs if run.owner is not None}:
            # Like a claim it counts as a beat, so that no reaper takes the runs over at once.
            self._shared.record_beat(owner, now)
        self._shared.wake(row, now)
        return handles

    def _was_told(self, run: FiredRun) -> bool:
        known = self._tables.occurrences.get(run.creation.id)
        return known is not None and known.reason == run.reason

    def _record_run(self, job: JobRow, run: FiredRun, now: datetime) -> int | None:
        known = self._tables.occurrences.get(run.creation.id)
        if known is not None and known.reason == run.reason:
            return known.handle
        if known is not None:
            if not run.is_begun or known.started_at is not None or known.status not in (_S.PENDING, _S.QUEUED):
                return None
            # This store planned the instant and no node has begun it: the fired run takes its place.
            self._tables.remove(known)
        self._occurrences.create(job, run.creation, now)
        made = self._tables.occurrences[run.creation.id]
        note_failure(job, run.rows)
        for row in run.rows:
            made.runs[row.task] = row.run
            if row.attempt is not None:
                tried = AttemptRow(row.attempt, row.started_at, row.ended_at, row.error, node=run.node)
                made.attempts[row.task, row.number] = tried
        made.number, made.lost, made.claimed_at = run.number, run.lost, run.claimed_at
        made.started_at, made.error, made.superseded_by_next = run.started_at, run.error, run.superseded_by_next
        made.token, made.node = run.token, run.node
        self._tables.change(made, owner=run.owner, fence=run.fence, ended_at=run.ended_at, report_due=run.report_due)
        return made.handle
