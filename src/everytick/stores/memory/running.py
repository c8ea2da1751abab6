"""Claims, steps, notes and reports: one owner at a time, and every write carries its fence."""

from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import islice

from everytick.domain.decisions import Why
from everytick.domain.notes import Note
from everytick.domain.statuses import ATTEMPT_ENDED, ENDED, AttemptStatus, OccurrenceStatus, may_move
from everytick.domain.steps import OccurrenceEnd, Step
from everytick.stores.base import Claim, Commit, CommitAnswer, NodeScope
from everytick.stores.each_alone import each_alone
from everytick.stores.memory.base import Shared, merged
from everytick.stores.memory.claims import claim_of, claim_order, header_and_life, waits_for_a_plan
from everytick.stores.memory.limiting import LimitVerbs
from everytick.stores.memory.occurrences import Occurrences, note_end, note_failure
from everytick.stores.memory.rows import AttemptRow, OccurrenceRow

# Bound once: to look a member up in its class takes as long as to call a function.
_S = OccurrenceStatus
_COMMITTED, _STALE = Commit.COMMITTED, Commit.STALE


class Execution:
    """Claims, and what their owners write."""

    def __init__(self, shared: Shared, occurrences: Occurrences, limits: LimitVerbs) -> None:
        self._shared, self._tables = shared, shared.tables
        self._occurrences, self._limits = occurrences, limits

    def claim(self, scope: NodeScope, limit: int) -> list[Claim]:
        """Give the node up to `limit` ready occurrences of its scope, by priority, then age."""
        if self._tables.reaches:
            return self._limits.claim(scope, limit)
        now = self._shared.now()
        self._tables.release_early(scope.met)
        rows = merged(self._tables.ready, scope, claim_order)
        unknown = scope.unknown
        ready = (row for row in rows if row.job.id not in unknown and not waits_for_a_plan(row, now))
        taken = list(islice(ready, limit))
        if taken:
            # A claim counts as a beat, so that no reaper takes it from a node that was silent for long.
            self._shared.record_beat(scope.node, now)
        token = self._shared.tokens()
        for row in taken:
            self._tables.own(row, scope.node, token, now)
        return [claim_of(row) for row in taken]

    async def commit_steps(self, steps: Sequence[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
        """Write each step whose claim still has the fence and token of the occurrence."""
        now = self._shared.now()

        async def write(some: Sequence[tuple[Claim, Step]]) -> Sequence[Commit]:
            return [self.commit_step(claim, step, now) for claim, step in some]

        return await each_alone(steps, write, "steps")

    def commit_step(self, claim: Claim, step: Step, now: datetime) -> Commit:
        """Write one step, or nothing of it."""
        handle, fence, token = claim.key
        row = self._tables.handles.get(handle)
        if row is None or row.token != token:
            return _STALE
        if row.fence != fence:
            # An end raises the fence and keeps the number: this tells a repeated end from a stale step.
            again = row.status in ENDED and row.fence == fence + 1 and row.number == step.number
            return _COMMITTED if again else _STALE
        if step.number <= row.number:
            return _COMMITTED
        after = step.after
        assert after.status is row.status or may_move(row.status, after.status), (
            f"{row.id}: {row.status} cannot become {after.status}"
        )
        _write_rows(row, step)
        note_failure(row.job, step.rows)
        row.number, row.lost = step.number, after.lost
        row.superseded_by_next = step.superseded_by_next
        if after.ended_at is not None:
            row.ready_at = after.ready_at or row.ready_at
            self._tables.end(row, after.status, after.ended_at, after.error, now, report_due=claim.header.rules.reports)
            note_end(row, after.ended_at, step.failure)
        else:
            self._tables.change(
                row,
                status=after.status,
                owner=None if step.resume_at is not None or step.release else row.owner,
                ready_at=step.resume_at or after.ready_at or row.ready_at,
                error=after.error,
                updated_at=now,
            )
        # An end that is not awaited wakes no job. An occurrence that is ready later rings the bell.
        if row.awaited and (step.end is not None or step.resume_at is not None):
            self._shared.wake(row.job, now)
        elif step.release or step.resume_at is not None or (step.end is not None and row.holds_place):
            self._shared.bell.ring()
        if step.release:
            self._hold_given_back(row, step, now)
        return _COMMITTED

    def _hold_given_back(self, row: OccurrenceRow, step: Step, now: datetime) -> None:
        """Hold or end an occurrence that was given back, if its job was paused, disabled or removed."""
        if step.restores:
            row.started_at, row.node = step.after.started_at, _last_node(row)
        job = row.job
        if job.retire_at is not None and now >= job.retire_at:
            self._occurrences.end(row, _S.CANCELED, Why.REMOVED, now)
            self._shared.wake(job, now)
        elif row.status is _S.PENDING and job.holds_back(row.creation.cause, now):
            self._occurrences.move(row, _S.QUEUED, now)

    async def note(self, notes: Sequence[tuple[Claim, Note]]) -> Sequence[CommitAnswer]:
        """Write the row of a running attempt, for people, if the claim still has its fence and token."""

        async def write(some: Sequence[tuple[Claim, Note]]) -> Sequence[Commit]:
            return [self._write_note(claim, note) for claim, note in some]

        return await each_alone(notes, write, "notes")

    def _write_note(self, claim: Claim, note: Note) -> Commit:
        row = self._tables.handles.get(claim.handle)
        if row is None or row.token != claim.key.token:
            return Commit.STALE
        return _note(row, claim.fence, note)

    def reports(self, scope: NodeScope, limit: int) -> list[OccurrenceEnd]:
        """Return ended occurrences of the scope whose report was not delivered yet, oldest end first."""
        rows = merged(self._tables.unreported, scope, lambda row: (row.ended_at, row.id))
        unreported = (row for row in rows if row.job.id not in scope.unknown)
        return [OccurrenceEnd(*header_and_life(row)) for row in islice(unreported, limit)]

    def reported(self, occurrence_ids: Collection[str]) -> None:
        """Record that these reports were delivered. A report may be delivered twice; it is never lost."""
        for id_ in occurrence_ids:
            if id_ in self._tables.occurrences:
                self._tables.change(self._tables.occurrences[id_], report_due=False)


def _last_node(row: OccurrenceRow) -> str | None:
    """Return the node of the attempt that began last, None if none began."""
    tries = [
        (attempt.started_at, key, attempt.node)
        for key, attempt in row.attempts.items()
        if attempt.started_at is not None
    ]
    return max(tries)[2] if tries else None


def _write_rows(row: OccurrenceRow, step: Step) -> None:
    for written in step.rows:
        row.runs[written.task] = written.run
        if written.attempt is None:
            continue
        key = written.task, written.number
        attempt = row.attempts.get(key)
        if attempt is None:
            columns = written.attempt, written.started_at, written.ended_at, written.error
            row.attempts[key] = AttemptRow(*columns, None, None, row.node)
        elif attempt.status not in ATTEMPT_ENDED:
            attempt.status, attempt.error = written.attempt, written.error
            attempt.started_at, attempt.ended_at = written.started_at, written.ended_at


def _note(row: OccurrenceRow, fence: int, note: Note) -> Commit:
    # The end raised the fence by one. A take-over before the end would have raised it by two.
    ended = row.status in ENDED and row.fence == fence + 1
    if row.fence != fence and not ended:
        return Commit.STALE
    known = row.attempts.get((note.task, note.number))
    if known is None:
        if ended:
            return Commit.STALE
        known = AttemptRow(AttemptStatus.RUNNING, note.started_at, node=row.node)
        row.attempts[note.task, note.number] = known
    known.progress, known.log = note.progress or known.progress, note.log or known.log
    known.handed_to = note.handed_to or known.handed_to
    return Commit.COMMITTED
