"""due, look and ahead: snapshots of jobs, and when the next job or occurrence comes."""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from everytick.domain.backfills import OpenBackfill
from everytick.domain.durations import MICROSECOND
from everytick.domain.ids import occurrence_id
from everytick.domain.lookups import ComingRuns, LaterRequests
from everytick.domain.occurrence import Cause
from everytick.domain.rollouts import TrialCounts
from everytick.domain.snapshots import (
    BUSY_LIMIT,
    PLAN_LIMIT,
    Active,
    Dependence,
    InLine,
    JobSnapshot,
    Past,
    Request,
    Upstream,
    UpstreamRun,
)
from everytick.domain.statuses import ACTIVE, FAILURES, WELL, OccurrenceStatus
from everytick.domain.upcoming import Coming, is_counted
from everytick.stores.base import Ahead, Batch, NodeScope
from everytick.stores.memory.backfills import open_backfill
from everytick.stores.memory.base import Shared, merged
from everytick.stores.memory.limiting import LimitVerbs
from everytick.stores.memory.rows import JobRow, OccurrenceRow
from everytick.stores.open_batches import OpenBatches
from everytick.stores.open_requests import PAST_LIMIT, PastAsked, past_of, pasts_asked
from everytick.stores.storing_rules import is_in_force

if TYPE_CHECKING:
    from everytick.stores.memory.ordered import Ordered

_S = OccurrenceStatus
_NO_REQUESTS: list[Request] = []


class DueJobs:
    """Jobs as plans see them, and when their time comes."""

    def __init__(self, shared: Shared, limits: LimitVerbs, open_batches: OpenBatches[str]) -> None:
        self._shared, self._tables = shared, shared.tables
        self._limits, self._open_batches = limits, open_batches

    @asynccontextmanager
    async def due(self, scope: NodeScope, limit: int, by: datetime | None) -> AsyncIterator[Batch]:
        """Give up to `limit` jobs of the scope whose `wake_at` has come, longest-waiting first."""
        now = self._shared.now()
        until = now if by is None else by
        rows = merged(self._tables.wakes, scope, lambda row: (row.wake_at, row.id))
        come = takewhile(lambda row: row.wake_at is not None and row.wake_at <= until, rows)
        left_out = scope.unknown | self._open_batches.of(scope.node)
        known = (row for row in come if row.id not in left_out) if left_out else come
        snapshots = [self.snapshot(row, until) for row in islice(known, limit)]
        with self._open_batches.opened(scope.node, {snapshot.job_id for snapshot in snapshots}):
            yield Batch(until, snapshots, self._shared.tokens(), len(snapshots) == limit, now < until)

    def ahead(self, scope: NodeScope) -> Ahead:
        """Return when the next job or occurrence of this scope comes, so that a node can sleep until then."""
        now, tables = self._shared.now(), self._tables
        later = [tables.wakes[needs].since((now + MICROSECOND,)) for needs in scope.met if needs in tables.wakes]
        wakes = [row.wake_at for rows in later for row in islice(rows, 1) if row.wake_at is not None]
        early = [tables.early[needs].since((now + MICROSECOND,)) for needs in scope.met if needs in tables.early]
        firsts = [row for rows in early for row in islice(rows, 1)]
        ready = [row.ready_at for row in firsts]
        if tables.reaches and (opens_at := self._limits.opens_at(now)) is not None:
            ready.append(opens_at)
        ready_at = min(ready, default=None)
        texts = tuple(sorted(tables.needs)) if len(tables.needs) != scope.seen else ()
        # Alone: no other process shares this memory.
        number = len(tables.limit_changes)
        return Ahead(now, min(wakes, default=None), ready_at, texts, alone=True, limit_changes=number)

    def look(self, job_ids: Collection[str]) -> dict[str, JobSnapshot]:
        """Return the snapshot of each of these jobs that exists, due or not. No job is locked."""
        now = self._shared.now()
        return {id_: self.snapshot(self._tables.jobs[id_], now) for id_ in job_ids if id_ in self._tables.jobs}

    def later(self, asked: LaterRequests) -> Sequence[tuple[str, Request]]:
        """Return the open requests of these jobs that wait for a moment to come, first to last."""
        rows = (self._tables.jobs[id_] for id_ in asked.job_ids if id_ in self._tables.jobs)
        places = sorted(
            (due_at, number, row.id, request) for row in rows for due_at, number, request in row.places.values()
        )
        return [(id_, request) for _, _, id_, request in places if request.due_at is not None][: asked.limit]

    def coming(self, asked: ComingRuns) -> dict[str, Coming]:
        """Return the runs to come that plans have written down for these jobs."""
        rows = (self._tables.jobs[id_] for id_ in asked.job_ids if id_ in self._tables.jobs)
        return {row.id: row.coming for row in rows if row.coming.runs}

    def snapshot(self, row: JobRow, until: datetime) -> JobSnapshot:
        """Return what a plan for this moment may see of the job."""
        busy, waiting = len(row.busy), len(row.waiting)
        asked, next_request_at = row.requests_by(until) if row.requests else (_NO_REQUESTS, None)
        backfill, more_backfills = open_backfill(self._tables, row, until) if row.backfills else (None, False)
        return JobSnapshot(
            job_id=row.id,
            revision=row.revision,
            woken=row.woken,
            watermark=row.watermark,
            editions=tuple(row.editions),
            wake_at=row.wake_at,
            retire_at=row.retire_at,
            pauses=tuple(row.pauses) if row.pauses else (),
            adjustments=tuple(row.adjustments.values()) if row.adjustments else (),
            reschedule=row.reschedule,
            requests=tuple(asked[:PLAN_LIMIT]),
            more_requests=len(asked) > PLAN_LIMIT,
            busy=tuple(map(_active, islice(row.busy, BUSY_LIMIT))) if busy else (),
            busy_count=busy,
            waiting=tuple(map(_active, self._shown(row))) if waiting else (),
            waiting_count=waiting,
            last_end=row.last_end,
            last_success=row.last_success,
            awaited=not busy or all(occurrence.awaited for occurrence in row.busy),
            other_success=row.other_success,
            narrowed_at=row.narrowed_at,
            pasts=_pasts(row, asked[:PLAN_LIMIT], backfill) if asked or backfill else (),
            next_request_at=next_request_at,
            dependence=self._dependence(row) if row.job.settings.depends_on else None,
            is_needed=row.is_needed,
            backfill=backfill,
            more_backfills=more_backfills,
            trial=None if row.editions[-1].rollout is None else _trial(row),
            stopped_at=row.stopped_at,
        )

    def _dependence(self, row: JobRow) -> Dependence:
        """Return what the plan of a job must know about the jobs on which it depends."""
        shown = self._shown(row) if row.waiting else ()
        in_line = [InLine(run.id, run.created_at, run.creation.covers_through) for run in shown]
        alike = [dependency.job for dependency in row.job.settings.depends_on if dependency.within is None]
        instants = sorted({waiting.instant for waiting in in_line})
        return Dependence(
            tuple(
                self._upstream(name, id_, instants if name in alike else ())
                for name, id_ in sorted(row.needs_jobs.items())
            ),
            tuple(in_line),
        )

    def _upstream(self, name: str, job_id: str, instants: Sequence[datetime]) -> Upstream:
        row = self._tables.jobs.get(job_id)
        if row is None:
            return Upstream(name, job_id, state="deleted")
        runs = tuple(self._upstream_run(row, instant) for instant in instants)
        return Upstream(name, job_id, row.name, self._state(row), row.watermark, row.last_success, runs)

    def _state(self, row: JobRow) -> str:
        if row.removed_at is not None:
            return "removed"
        if not row.job.enabled:
            return "disabled"
        return "paused" if row.pause_at(self._shared.now()) is not None else ""

    def _upstream_run(self, row: JobRow, instant: datetime) -> UpstreamRun:
        """Return what became of an instant: of its own occurrence, which may have been moved, and of its repeats."""
        own = self._tables.occurrences.get(occurrence_id(row.id, instant))
        times = {instant} if own is None else {instant, own.creation.scheduled_for}
        alike = [run for at in times for run in row.scheduled_for(at) if run.creation.covers_through == instant]
        well = [run.ended_at for run in alike if run.status in WELL and run.ended_at is not None]
        return UpstreamRun(
            instant,
            min(well, default=None),
            any(run.status in ACTIVE for run in alike),
            None if own is None else own.status,
        )

    def _shown(self, row: JobRow) -> Sequence[OccurrenceRow]:
        """Return the oldest waiting occurrences, the newest one, and the newest one of the schedule."""
        line: Ordered[OccurrenceRow] | list[OccurrenceRow] = row.waiting
        if row.pause_at(self._shared.now()) is not None:
            # A pause holds the schedule and not people: show what they asked for, however many instants wait.
            line = [occurrence for occurrence in row.waiting if occurrence.creation.cause is not Cause.SCHEDULE]
        shown = list(islice(line, PLAN_LIMIT))
        if len(line) <= PLAN_LIMIT:
            return shown
        newest = next(reversed(line))
        last = shown[-1]
        behind = takewhile(lambda occurrence: occurrence is not last, reversed(line))
        own = next((occurrence for occurrence in behind if occurrence.creation.cause is Cause.SCHEDULE), newest)
        return [*shown, newest] if own is newest else [*shown, own, newest]


def _pasts(row: JobRow, requests: Sequence[Request], backfill: OpenBackfill | None) -> tuple[Past, ...]:
    """Return the old definitions that requests and the open backfill need beside the editions."""
    return tuple(_past(row, past) for past in pasts_asked(requests, backfill, row.editions))


def _past(row: JobRow, asked: PastAsked) -> Past:
    older = [row.edition(version) for version in sorted(row.versions) if version < row.editions[0].job.version]
    begun = [place for place, past in enumerate(older) if is_in_force(past, asked.after)]
    needed = older[max(begun, default=0) :]
    if asked.newest_first:
        needed = [past for past in needed if past.in_force_after is None or past.in_force_after < asked.through][::-1]
    return past_of(asked, [(past.in_force_after, past) for past in needed[: PAST_LIMIT + 1]])


def _trial(row: JobRow) -> TrialCounts:
    """Return what became of the occurrences of the version on trial."""
    trial = row.editions[-1]
    counted = [run for run in row.history if is_counted(trial, run.creation.cause, run.creation.scheduled_for)]
    tried = [run.status for run in counted if run.version == trial.job.version]
    failed = sum(1 for status in tried if status in FAILURES)
    return TrialCounts(tried.count(_S.COMPLETED), failed, len(counted))


def _active(row: OccurrenceRow) -> Active:
    creation = row.creation
    return Active(
        row.id, row.line_at, creation.scheduled_for, row.status, creation.cause, row.superseded_by_next, creation.late
    )
