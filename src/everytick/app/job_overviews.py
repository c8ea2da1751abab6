"""The overview of one job: what its page shows, from one look at the store."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from everytick.app.job_years import JobYears
from everytick.app.occurrence_overviews import OccurrenceOverviews
from everytick.domain.durations import MICROSECOND
from everytick.domain.lookups import (
    Breaches,
    Editions,
    LaterRequests,
    LimitsAndBrakes,
    NewestBackfills,
    Promises,
    Spans,
)
from everytick.domain.statuses import ENDED, OccurrenceStatus
from everytick.domain.values import value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from everytick.app.questions import JobStatus, UpcomingRun
    from everytick.app.versions import JobVersion
    from everytick.deciding.coverage import CoverageLedger
    from everytick.domain.backfills import BackfillRecord
    from everytick.domain.decisions import Span
    from everytick.domain.limits import Limits
    from everytick.domain.occurrence import Occurrence
    from everytick.domain.promises import BreachRecord, PromiseRecord
    from everytick.domain.questions import JobLengths
    from everytick.domain.snapshots import JobSnapshot
    from everytick.node.settings import NodeSettings
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord, Whole

RUNS_READ = 80
"""Occurrences that are read: 60 for the strip, and 20 before them for what was usual then."""

WHOLE_READ = 5
"""Ended occurrences that are read with their tasks, to say where the time goes. Jobs of one task need none."""

_RUNS_SHOWN = 10
"""How many runs to come the page of a job shows."""

_VERSIONS_SHOWN = 5
_BACKFILLS_SHOWN = 5
_STARTED = frozenset({OccurrenceStatus.RUNNING, OccurrenceStatus.AWAITING_RETRY})


@value(frozen=True)
class JobOverview:
    """One job at one moment of the store's clock.

    `runs` are its last occurrences and `spans` the instants among them that did not run, both newest first.
    `has_more_runs` says that the store has older ones. `wholes` are the last ended ones with their tasks, of a job with
    several. `ledger` tells of the time since the oldest of the runs. `refused` says why no living node can run the job.
    """

    now: datetime
    record: JobRecord
    snapshot: JobSnapshot
    status: JobStatus
    coming: tuple[UpcomingRun, ...]
    runs: tuple[Occurrence, ...]
    has_more_runs: bool
    spans: tuple[Span, ...]
    wholes: tuple[Whole, ...]
    lengths: JobLengths | None
    versions: tuple[JobVersion, ...]
    backfills: tuple[BackfillRecord, ...]
    promises: tuple[PromiseRecord, ...]
    ledger: CoverageLedger
    refused: str = ""


class JobOverviews(OccurrenceOverviews, JobYears):
    """The overview of a job. It changes nothing, and each part of it is bounded."""

    settings: NodeSettings

    async def _overview(self, name: str) -> JobOverview:
        """Return what the page of a job shows; also of one that was removed."""
        from everytick.app.coverage import coverage_of
        from everytick.app.questions import last_results, upcoming_among
        from everytick.app.versions import versions_among, versions_read
        from everytick.domain.questions import Lengths, QuestionBatch
        from everytick.stores.base import WholeRuns

        store = await self._opened()
        record = await self._find_past(store, name)
        job_id = record.job.id
        asked = (
            LimitsAndBrakes(),
            LaterRequests([job_id], _RUNS_SHOWN),
            Lengths((job_id,)),
            Editions(job_id, versions_read(record.job.version, _VERSIONS_SHOWN)),
            NewestBackfills(job_id, _BACKFILLS_SHOWN),
            Promises([job_id]),
        )
        limits, later, lengths, editions, backfills, promises = await store.ask(QuestionBatch(asked))
        seen = (await store.look([job_id]))[job_id]
        runs, has_more = await _runs(store, job_id)
        begin = _beginning(record, runs, has_more, limits.now)
        behind = Spans(job_id, begin, limits.now), WholeRuns(_read_whole(record, runs))
        spans, wholes = await store.ask(QuestionBatch(behind))
        return JobOverview(
            now=limits.now,
            record=record,
            snapshot=seen,
            status=_status(record, seen, limits, promises, runs, (await last_results(store, [record]))[job_id]),
            coming=tuple(upcoming_among(later, seen, limits.now, _RUNS_SHOWN, skipped=True)),
            runs=runs,
            has_more_runs=has_more,
            spans=_with_pauses(spans, seen, limits.now),
            wholes=wholes,
            lengths=lengths.get(job_id),
            versions=tuple(versions_among(editions, seen, limits.now, _VERSIONS_SHOWN)),
            backfills=tuple(backfills),
            promises=tuple(promises),
            ledger=await coverage_of(store, record, begin, limits.now),
            refused=await _refused(store, record, limits, self.settings.node_timeout),
        )

    async def _summary(
        self, record: JobRecord, coming: int, past: int
    ) -> tuple[JobStatus, list[UpcomingRun], Sequence[BreachRecord]]:
        """Return the state of a job in service, its next runs, and the promises that it broke last."""
        from everytick.app.questions import last_results, upcoming_among
        from everytick.domain.promises import promises_of
        from everytick.domain.questions import QuestionBatch

        store, job_id = await self._opened(), record.job.id
        asked = LimitsAndBrakes(), LaterRequests([job_id], coming), Promises([job_id]), Breaches(job_id, limit=past)
        limits, later, promises, breaches = await store.ask(QuestionBatch(asked))
        seen = (await store.look([job_id]))[job_id]
        runs = (await _runs(store, job_id))[0] if promises_of(record.job.settings) else ()
        status = _status(record, seen, limits, promises, runs, (await last_results(store, [record]))[job_id])
        return status, upcoming_among(later, seen, limits.now, coming), breaches


def _status(
    record: JobRecord,
    seen: JobSnapshot,
    limits: Limits,
    promises: Sequence[PromiseRecord],
    runs: Sequence[Occurrence],
    last_result: str | None,
) -> JobStatus:
    from everytick.app.outlook import outlook_of
    from everytick.app.questions import status_of

    is_running = any(occurrence.status in _STARTED for occurrence in seen.busy)
    found = status_of(record, seen, limits, is_running=is_running, last_result=last_result)
    started = [run for run in runs if run.status in _STARTED]
    completed = [run for run in runs if run.status is OccurrenceStatus.COMPLETED]
    return replace(found, **outlook_of(record, seen, promises, completed, started, limits.now))


async def _runs(store: AnyStore, job_id: str) -> tuple[tuple[Occurrence, ...], bool]:
    """Return the newest occurrences, newest first, and whether there are more."""
    from everytick.stores.base import HistoryFilter

    page = await store.history(HistoryFilter(job_id=job_id, limit=RUNS_READ))
    return page.occurrences, page.cursor is not None


def _beginning(record: JobRecord, runs: Sequence[Occurrence], has_more: bool, now: datetime) -> datetime:
    """Return the moment after which the overview tells of instants that did not run."""
    known = [now - MICROSECOND, *(run.scheduled_for - MICROSECOND for run in runs)]
    if not has_more and record.job.created_at is not None:
        known.append(record.job.created_at)
    return min(known)


def _with_pauses(spans: Sequence[Span], seen: JobSnapshot, now: datetime) -> tuple[Span, ...]:
    """Return the spans, newest first, with the pause that holds now as one."""
    from everytick.app.history import open_pauses

    found = [*spans, *open_pauses(seen, now)]
    return tuple(sorted(found, key=lambda span: span.through, reverse=True)[:RUNS_READ])


def _read_whole(record: JobRecord, runs: Sequence[Occurrence]) -> list[str]:
    """Return the ids of the last ended runs that are read with their tasks: those of a job with several."""
    if len(record.job.tasks) < 2:
        return []
    ended = [run.id for run in runs if run.started_at is not None and run.status in ENDED]
    return ended[:WHOLE_READ]


async def _refused(store: AnyStore, record: JobRecord, limits: Limits, silence: timedelta) -> str:
    """Return why no living node can run the job; nothing if one may, or if no node lives."""
    from everytick.domain.nodes import unknown_targets, unmet_needs
    from everytick.stores.base import Nodes

    living = [node.facts for node in await store.ask(Nodes()) if node.is_alive(limits.now, silence)]
    told = [facts for facts in living if facts is not None]
    if record.removed_at is not None or not told:
        return ""
    # A node that has not told its facts yet may well run it.
    unmet = unmet_needs([record.job], told, limits.now) if len(told) == len(living) else {}
    return (unmet | unknown_targets([record.job], told)).get(record.job.name, "")
