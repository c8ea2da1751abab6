"""The verbs of promises, and what edits of a definition mean for them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice, takewhile

from everytick.domain.durations import MICROSECOND
from everytick.domain.job import Job
from everytick.domain.lookups import Breaches, Promises
from everytick.domain.promise_policies import PromiseKind
from everytick.domain.promises import (
    BREACHES_KEPT,
    JUDGED_BY_ANY_AFTER,
    READ_AT_ONCE,
    Breach,
    BreachRecord,
    DuePromises,
    Judgement,
    OwedBreach,
    PromisedRun,
    PromiseRecord,
    PromiseSnapshot,
    PromiseState,
    promises_of,
)
from everytick.stores.base import Commit, NodeScope
from everytick.stores.memory.base import Shared
from everytick.stores.memory.due import DueJobs
from everytick.stores.memory.rows import JobRow, OccurrenceRow
from everytick.stores.memory.tables import Tables

_NEVER = datetime.max.replace(tzinfo=UTC)


class PromiseVerbs:
    """Promises and breaches."""

    def __init__(self, shared: Shared, due: DueJobs) -> None:
        self._shared, self._tables, self._due = shared, shared.tables, due

    def promises(self, scope: NodeScope, limit: int) -> DuePromises:
        """Return up to `limit` promises that may be broken now, and breaches that were not told for a while."""
        now = self._shared.now()
        due = [
            (state.check_at, row.id, str(kind), row, state)
            for row in self._tables.promising.values()
            for kind, state in row.promises.items()
            if state.check_at is not None
            and state.check_at <= (now if row.needs in scope.met else now - JUDGED_BY_ANY_AFTER)
        ]
        snapshots = [
            self._promise_snapshot(row, state, now)
            for *_, row, state in sorted(due, key=lambda place: place[:3])[:limit]
        ]
        owed = [
            known
            for row in self._tables.promising.values()
            for known in row.breaches.values()
            if (known.is_begin_owed or known.is_end_owed) and known.breach.found_at <= now - 2 * JUDGED_BY_ANY_AFTER
        ]
        owed.sort(
            key=lambda known: (known.breach.found_at, known.job_id, str(known.breach.kind), known.breach.broken_for)
        )
        return DuePromises(now, tuple(snapshots), tuple(owed[:limit]))

    def _promise_snapshot(self, row: JobRow, state: PromiseState, now: datetime) -> PromiseSnapshot:
        seen, after = self._due.snapshot(row, now), state.judged_through
        if state.kind is PromiseKind.SUCCESS_WITHIN:
            return PromiseSnapshot(row.id, state, seen)
        runs = takewhile(lambda run: run.creation.scheduled_for <= now, row.history.since((after + MICROSECOND,)))
        spans = sorted((span for span in row.spans if span.through > after), key=lambda span: span.through)
        read = tuple(map(_run, islice(runs, READ_AT_ONCE)))
        return PromiseSnapshot(row.id, state, seen, read, tuple(spans[:READ_AT_ONCE]))

    def commit_promises(self, judgements: Sequence[Judgement], told: Sequence[OwedBreach] = ()) -> Sequence[Commit]:
        """Write each whole judgement whose promise still has the revision that was read, and what was told."""
        for owed in told:
            self._tell_breach(owed)
        return [self._commit_promise(judgement) for judgement in judgements]

    def _tell_breach(self, told: OwedBreach) -> None:
        row = self._tables.jobs.get(told.job_id)
        key = told.breach.kind, told.breach.broken_for
        if row is not None and key in row.breaches:
            known = row.breaches[key]
            begin, end = known.is_begin_owed and not told.is_begin_owed, known.is_end_owed and not told.is_end_owed
            row.breaches[key] = replace(known, is_begin_owed=begin, is_end_owed=end)

    def _commit_promise(self, judgement: Judgement) -> Commit:
        row, state = self._tables.jobs.get(judgement.job_id), judgement.state
        known = None if row is None else row.promises.get(state.kind)
        if row is None or known is None or known.revision != state.revision:
            return Commit.STALE
        row.promises[state.kind] = replace(state, revision=state.revision + 1)
        for breach in judgement.breaches:
            self._write_breach(row, breach)
        if judgement.breaches:
            kept_since = self._shared.now() - BREACHES_KEPT
            forgotten = [
                key for key, owed in row.breaches.items() if owed.breach.ended_at and owed.breach.ended_at < kept_since
            ]
            for key in forgotten:
                del row.breaches[key]
        return Commit.COMMITTED

    def _write_breach(self, row: JobRow, breach: Breach) -> None:
        """Keep the breach. A new one is to be told of, and so is the end of one."""
        key, is_end_owed = (breach.kind, breach.broken_for), breach.ended_at is not None and not breach.is_withdrawn
        known = row.breaches.get(key)
        row.breaches[key] = OwedBreach(row.id, breach, known is None or known.is_begin_owed, is_end_owed)

    def promised(self, asked: Promises) -> Sequence[PromiseRecord]:
        """Return the promises of jobs in service, the one that is judged next first."""
        rows = [row for row in self._tables.promising.values() if row.removed_at is None]
        records = [
            PromiseRecord(row.id, row.name, state)
            for row in rows
            if asked.job_ids is None or row.id in asked.job_ids
            for state in row.promises.values()
        ]
        return sorted(records, key=_soonest)[: asked.limit]

    def breaches(self, asked: Breaches) -> Sequence[BreachRecord]:
        """Return breaches, newest first."""
        records = [
            BreachRecord(row.id, row.name, owed.breach)
            for row in self._tables.promising.values()
            if asked.job_id in (None, row.id)
            for owed in row.breaches.values()
            if not asked.is_open or owed.breach.ended_at is None
        ]
        records.sort(key=lambda record: (record.job, str(record.breach.kind), record.breach.broken_for))
        return sorted(records, key=lambda record: record.breach.due_at, reverse=True)[: asked.limit]


def _run(row: OccurrenceRow) -> PromisedRun:
    creation = row.creation
    return PromisedRun(
        id=row.id,
        scheduled_for=creation.scheduled_for,
        status=row.status,
        cause=creation.cause,
        started_at=row.started_at,
        ended_at=row.ended_at,
        covers_after=creation.covers_after,
        covers_through=creation.covers_through,
        reason=row.reason,
    )


def _soonest(record: PromiseRecord) -> tuple[bool, datetime, str, str]:
    at = record.state.check_at
    return at is None, at or _NEVER, record.job, str(record.state.kind)


def keep_promises(tables: Tables, row: JobRow, job: Job, now: datetime) -> None:
    """Let the promises of this definition hold, and end those that the job makes no more."""
    wanted = promises_of(job.settings)
    for key, owed in row.breaches.items():
        if key[0] not in wanted and owed.breach.ended_at is None:
            row.breaches[key] = replace(owed, breach=replace(owed.breach, ended_at=now, is_withdrawn=True))
    kept = {}
    for kind in wanted:
        since = row.created_at if kind is PromiseKind.SUCCESS_WITHIN else now
        kept[kind] = row.promises.get(kind) or PromiseState(kind, since, now)
    row.promises = kept
    tables.promise(row)


def recheck_promises(row: JobRow, now: datetime) -> None:
    """Make the promises of the job due now."""
    for kind, state in row.promises.items():
        row.promises[kind] = replace(state, check_at=now, revision=state.revision + 1)


def bring_promises_back(row: JobRow, now: datetime, step_at: datetime) -> None:
    """Let promises that were judged while the clock was ahead be judged from now on."""
    for kind, state in row.promises.items():
        if state.judged_through > step_at:
            row.promises[kind] = replace(state, judged_through=now, check_at=now, revision=state.revision + 1)
